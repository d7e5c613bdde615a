# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that lives with a runtime of another cgroup driver, by the words of runc and CRI-O."""

from __future__ import annotations

import pytest

from tests.unit.support.cri_evidence import cri, kubelet_driver

CLOCK = 1795372289.0  # 2026-11-22T18:31:29Z
RUNC = (
    'kubelet[812]: E1122 18:31:02.000001     812 remote_runtime.go:222] "RunPodSandbox from runtime'
    ' service failed" err="rpc error: code = Unknown desc = failed to create containerd task:'
    " failed to create shim task: OCI runtime create failed: runc create failed: expected"
    ' cgroupsPath to be of format \\"slice:prefix:name\\" for systemd cgroups, got'
    ' \\"/kubepods/besteffort/pod1/a\\" instead: unknown"'
)
CRIO = (
    'kubelet[812]: err="rpc error: code = Unknown desc = cri-o configured with %s cgroup manager,'
    ' but %s slice as parent: %s"'
)
CRIO_SYSTEMD = CRIO % ("systemd", "did not receive", "/kubepods/a")
CRIO_CGROUPFS = CRIO % ("cgroupfs", "received", "kubepods.slice")


def judged(world, lines, status="ok", clock=CLOCK):
    world.documents["w1"]["collectors"]["kubelet_log"] = {
        "status": status,
        "data": {"lines": lines} if status == "ok" else None,
    }
    world.data("w1", "system")["clock"] = clock
    result = world.judge(faults={"KM524"}, deep=True)
    return next(item for item in result.verdicts if item.host == "w1"), [
        item for item in result.findings if item.host == "w1"
    ]


@pytest.mark.parametrize(
    ("line", "runtime", "kubelet"),
    [
        (RUNC, "systemd", "cgroupfs"),
        (CRIO_SYSTEMD, "systemd", "cgroupfs"),
        (CRIO_CGROUPFS, "cgroupfs", "systemd"),
    ],
)
def test_each_refusal_names_both_drivers(world, line, runtime, kubelet):
    line = "2026-11-22T18:31:02+0000 w1 " + line
    verdict, (found,) = judged(world, [line])
    assert verdict.verdict == "present"
    assert f"the runtime uses the cgroup driver {runtime}, the kubelet {kubelet}" in found.summary
    assert [proof.text for proof in found.evidence] == [line]
    assert (
        found.severity,
        found.risk,
        found.component,
    ) == ("critical", 0, "kubelet")


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        ("2026-11-22T18:21:30+0000", "present"),
        ("2026-11-22T18:21:28+0000", "clear"),
        ("yesterday", "unknown"),
    ],
)
def test_what_was_said_long_ago_is_no_fault_now(world, at, verdict):
    assert judged(world, [f"{at} w1 {RUNC}"])[0].verdict == verdict


@pytest.mark.parametrize(
    ("status", "verdict"), [("ok", "clear"), ("denied", "unknown"), ("timeout", "unknown")]
)
def test_without_its_words(world, status, verdict):
    assert (
        judged(world, ["2026-11-22T18:31:02+0000 w1 kubelet[812]: something else"], status)[
            0
        ].verdict
        == verdict
    )


@pytest.mark.parametrize(("started", "verdict"), [(CLOCK - 60, "present"), (CLOCK - 10, "clear")])
def test_a_kubelet_that_was_started_since_has_another_driver_perhaps(world, started, verdict):
    world.data("w1", "kubelet")["process"]["started_at"] = started
    assert judged(world, [f"2026-11-22T18:30:59+0000 w1 {RUNC}"])[0].verdict == verdict


@pytest.mark.parametrize(
    ("state", "verdict"), [("activating", "clear"), ("failed", "clear"), ("active", "present")]
)
def test_a_kubelet_that_does_not_run_is_refused_nothing(world, state, verdict):
    world.data("w1", "kubelet").update(process=None)
    world.data("w1", "kubelet")["unit"].update(active_state=state, sub_state="auto-restart")
    assert judged(world, [f"2026-11-22T18:30:59+0000 w1 {RUNC}"])[0].verdict == verdict


@pytest.mark.parametrize("clock", [float("inf"), 1e999, True, "now"])
def test_a_clock_that_is_none(world, clock):
    assert judged(world, [f"2026-11-22T18:31:02+0000 w1 {RUNC}"], clock=clock)[0].verdict in (
        "clear",
        "unknown",
    )


def test_no_clock(world):
    assert (
        judged(world, [f"2026-11-22T18:31:02+0000 w1 {RUNC}"], clock=None)[0].verdict == "unknown"
    )


def of_w1(world):
    result = world.judge(faults={"KM516"}, deep=True)
    verdict = next(item for item in result.verdicts if item.host == "w1")
    return verdict, [item for item in result.findings if item.host == "w1"]


def test_kubelet_and_runtime_that_run_with_different_drivers(world):
    kubelet_driver(world, "systemd")
    cri(world)["config"]["systemd_cgroup"] = False
    verdict, (finding,) = of_w1(world)
    assert verdict.verdict == "present"
    assert (finding.severity, finding.component, finding.risk) == ("critical", "kubelet", 0)
    assert "the kubelet systemd, containerd v1.6.36 cgroupfs" in finding.summary
    assert [(proof.path, proof.line) for proof in finding.evidence] == [
        ("/var/lib/kubelet/config.yaml", 2),
        ("/etc/containerd/config.toml", None),
    ]


@pytest.mark.parametrize(("age", "verdict"), [(21, "present"), (19, "clear")])
def test_a_runtime_that_changed_after_the_kubelet_had_asked_it(world, age, verdict):
    kubelet_driver(world, "systemd", version="v1.36.3")
    cri(world, driver="cgroupfs", version="v2.2.1")
    world.data("w1", "pinning")["pod_cgroups"] = ["kubepods.slice"]
    world.data("w1", "system")["clock"] = CLOCK
    world.data("w1", "kubelet")["process"]["started_at"] = CLOCK - age
    judged, found = of_w1(world)
    assert judged.verdict == verdict
    for finding in found:
        assert "the kubelet systemd, containerd v2.2.1 cgroupfs" in finding.summary
        assert finding.evidence[0].path == "/sys/fs/cgroup/kubepods.slice"
        assert "systemctl restart kubelet" in (finding.remedy or "")


def test_what_the_runtime_refuses_is_a_consequence_of_drivers_that_differ(world):
    kubelet_driver(world, "cgroupfs")
    cri(world)
    world.documents["w1"]["collectors"]["kubelet_log"] = {
        "status": "ok",
        "data": {"lines": [f"2026-11-22T18:31:02+0000 w1 {RUNC}"]},
    }
    world.data("w1", "system")["clock"] = CLOCK
    result = world.judge(faults={"KM516", "KM524"}, deep=True)
    found = {finding.code: finding.because for finding in result.findings}
    assert found == {"KM516": (), "KM524": ("KM516",)}


@pytest.mark.parametrize(
    ("status", "verdict"), [("error", "unknown"), ("not_asked", "clear"), ("absent", "clear")]
)
def test_a_runtime_that_did_not_say(world, status, verdict):
    world.documents["w1"]["collectors"]["cri"] = {"status": status, "data": None}
    assert of_w1(world)[0].verdict == verdict


def test_equal_drivers_are_clear(world):
    kubelet_driver(world, "systemd")
    cri(world)
    assert of_w1(world)[0].verdict == "clear"
