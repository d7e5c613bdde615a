# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next start of kubelet and runtime loads: KM700, KM701, KM703. Tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.plugins.plugin_utils.conftest import CLOCK, file_record

STARTED = CLOCK - 7200


def judged(world, code):
    """Return (the verdict of w1, its findings)."""
    result = world.judge(faults={code}, deep=True)
    verdicts = {item.host: item.verdict for item in result.verdicts}
    return verdicts.get("w1", "not judged"), [one for one in result.findings if one.host == "w1"]


@pytest.fixture
def kubelet(world):
    """Return the kubelet of w1, with a unit, a configuration and a start."""
    data = world.data("w1", "kubelet")
    data["process"].update(started_at=STARTED, argv=["/usr/bin/kubelet", "--v=2"])
    data["config"] = file_record(
        "config.yaml", "", STARTED - 60, path="/var/lib/kubelet/config.yaml"
    )
    data["unit"].update(
        start_words=["/usr/bin/kubelet", "$KUBELET_EXTRA_ARGS"],
        split_variables=[["KUBELET_EXTRA_ARGS", "--v=2"]],
        environment_files=[file_record("kubelet", "", STARTED - 60, path="/etc/default/kubelet")],
    )
    return data


@pytest.fixture
def runtime(world):
    """Return the unit of w1's containerd."""
    unit = {
        "name": "containerd.service",
        "absent": False,
        "active_state": "active",
        "main_pid": 77,
        "need_daemon_reload": False,
    }
    world.documents["w1"]["collectors"]["runtime"] = {
        "status": "ok",
        "data": {"kind": "containerd", "units": [unit]},
    }
    return unit


def test_nothing_was_changed(world, kubelet, runtime):
    assert judged(world, "KM700") == ("clear", [])


def test_a_configuration_that_is_newer_than_the_kubelet(world, kubelet):
    kubelet["config"]["mtime"] = STARTED + 600
    verdict, (found,) = judged(world, "KM700")
    assert (verdict, found.component, found.severity) == ("present", "kubelet", "info")
    assert kubelet["config"]["path"] in [proof.path for proof in found.evidence]


@pytest.mark.parametrize("name", ["config_dropins", "environment_files"])
def test_other_files_of_the_kubelet(world, kubelet, name):
    holder = kubelet if name == "config_dropins" else kubelet["unit"]
    holder[name] = [
        file_record(
            "10-more.conf", "", STARTED + 600, path="/etc/kubernetes/kubelet.conf.d/10-more.conf"
        )
    ]
    assert judged(world, "KM700")[0] == "present"


def test_a_file_of_the_moment_of_the_start(world, kubelet):
    kubelet["config"]["mtime"] = STARTED + 0.4
    assert judged(world, "KM700") == ("clear", [])


@pytest.mark.parametrize(
    ("error", "verdict"),
    [("denied", "unknown"), ("Input/output error", "unknown"), ("missing", "clear")],
)
def test_a_configuration_that_could_not_be_read(world, kubelet, error, verdict):
    kubelet["config"].update(mtime=None, text=None, error=error)
    assert judged(world, "KM700") == (verdict, [])


def test_a_flag_of_the_unit_that_the_process_has_not(world, kubelet):
    kubelet["unit"]["split_variables"] = [["KUBELET_EXTRA_ARGS", "--v=2 --node-ip=10.0.0.9"]]
    _verdict, (found,) = judged(world, "KM700")
    assert "--node-ip" in found.summary
    assert "--v" not in found.summary.replace("--node-ip", "")


@pytest.mark.parametrize(
    ("start_words", "variables"),
    [
        (["/usr/bin/kubelet", "$KUBELET_EXTRA_ARGS"], [["KUBELET_EXTRA_ARGS", None]]),  # a secret
        (["/usr/bin/kubelet", "--node-ip=${ADDRESS}"], []),
        (["/bin/sh", "-c", "exec kubelet $$EXTRA"], []),
        ([], []),
    ],
)
def test_a_command_line_that_is_not_known_proves_nothing(world, kubelet, start_words, variables):
    kubelet["unit"].update(start_words=start_words, split_variables=variables)
    assert judged(world, "KM700") == ("clear", [])


def test_a_unit_that_systemd_has_not_read(world, kubelet):
    kubelet["unit"]["need_daemon_reload"] = True
    _verdict, (found,) = judged(world, "KM700")
    assert (found.component, found.severity) == ("kubelet", "warning")
    assert "daemon-reload" in found.remedy
    assert [proof.kind for proof in found.evidence] == ["unit"]


def test_the_unit_of_the_runtime(world, kubelet, runtime):
    runtime["need_daemon_reload"] = True
    _verdict, (found,) = judged(world, "KM700")
    assert (found.component, found.severity) == ("containerd", "warning")


def test_a_changed_configuration_of_the_runtime(world, kubelet, runtime):
    world.data("w1", "next_start")["runtime_files"]["files"][0]["newer"] = True
    _verdict, (found,) = judged(world, "KM700")
    assert (found.component, found.severity) == ("containerd", "info")
    assert "/etc/containerd/config.toml" in found.summary


def test_a_runtime_that_does_not_run_has_nothing_pending(world, kubelet, runtime):
    runtime.update(active_state="failed", need_daemon_reload=True)
    assert judged(world, "KM700") == ("clear", [])


def test_a_runtime_that_could_not_be_read(world, kubelet):
    world.documents["w1"]["collectors"]["runtime"] = {"status": "timeout", "data": None}
    assert judged(world, "KM700")[0] == "unknown"


@pytest.mark.parametrize("code", ["KM700", "KM701", "KM703"])
@pytest.mark.parametrize(
    ("collector", "status", "verdict"),
    [
        ("next_start", "denied", "unknown"),
        ("next_start", "timeout", "unknown"),
        ("next_start", "absent", "not_applicable"),
        ("kubelet", "denied", "unknown"),
        ("kubelet", "absent", "not_applicable"),
        ("next_start", "not_asked", "not judged"),
    ],
)
def test_a_host_without_the_evidence(world, code, collector, status, verdict):
    world.documents["w1"]["collectors"][collector] = {"status": status, "data": None}
    assert judged(world, code) == (verdict, [])


def program(world, name="kubelet"):
    rows = world.data("w1", "next_start")["programs"]
    return next(row for row in rows if row["name"] == name)


@pytest.mark.parametrize(
    ("running", "disk", "severity"),
    [
        ("Kubernetes v1.30.1", "Kubernetes v1.31.0", "warning"),
        ("Kubernetes v1.30.1", "Kubernetes v1.30.9", "info"),
        ("Kubernetes v1.30.1", "", "warning"),
        ("", "Kubernetes v1.30.1", "warning"),
        ("containerd containerd.io 1.6.33 d2d", "containerd containerd.io 1.7.1 abc", "warning"),
    ],
)
def test_another_program_starts_next(world, running, disk, severity):
    program(world).update(pid=812, replaced=True, running=running, disk=disk)
    verdict, (found,) = judged(world, "KM701")
    assert (verdict, found.component, found.severity) == ("present", "kubelet", severity)
    assert {proof.kind for proof in found.evidence} == {"process", "file"}


def test_no_program_starts_next(world):
    program(world, "containerd").update(replaced=True, missing=True)
    _verdict, (found,) = judged(world, "KM701")
    assert (found.component, found.severity) == ("containerd", "critical")


def test_programs_that_are_the_same(world):
    assert judged(world, "KM701") == ("clear", [])


def test_a_kubelet_whose_program_may_not_be_read(world):
    program(world).update(path=None, replaced=None)
    assert judged(world, "KM701") == ("unknown", [])


def test_k3s_unpacks_its_programs(world):
    world.data("w1", "kubelet")["distribution"] = {"program": "k3s", "files": []}
    program(world).update(replaced=True)
    assert judged(world, "KM701") == ("not_applicable", [])


REFUSED = (
    "containerd: failed to load TOML: /etc/containerd/config.toml: (3, 8): was expecting token =,"
    ' but got "is" instead'
)
READING = {"asked": True, "error": REFUSED}


def test_a_configuration_that_containerd_refuses(world):
    files = world.data("w1", "next_start")["runtime_files"]
    files.update(READING)
    verdict, (found,) = judged(world, "KM703")
    assert (verdict, found.component, found.severity) == ("present", "containerd", "critical")
    assert "failed to load TOML" in found.summary
    assert found.evidence[0].path == "/etc/containerd/config.toml"


def test_registries_that_its_cri_refuses(world):
    path = "/etc/containerd/config.toml"
    world.data("w1", "next_start")["runtime_files"].update(
        asked=True,
        conflicts=[
            {"path": path, "line": 9, "key": "config_path"},
            {"path": path, "line": 12, "key": "mirrors"},
        ],
    )
    _verdict, (found,) = judged(world, "KM703")
    assert [(proof.line, proof.text) for proof in found.evidence] == [
        (9, "config_path"),
        (12, "mirrors"),
    ]


def test_containerd_gave_no_answer(world):
    world.data("w1", "next_start")["runtime_files"]["error"] = None
    assert judged(world, "KM703") == ("unknown", [])


def test_files_that_containerd_takes(world):
    world.data("w1", "next_start")["runtime_files"]["asked"] = True
    assert judged(world, "KM703") == ("clear", [])


def test_another_runtime(world):
    world.data("w1", "next_start")["runtime_files"] = None
    assert judged(world, "KM703") == ("not_applicable", [])


def trial_of(world, release, name, kind="containerd"):
    """Let w1 have the answer of a real trial start, and what its reading told."""
    folder = Path(__file__).parents[5] / "fixtures" / "containerd_trial"
    text = (folder / release / f"{name}.json").read_text(encoding="utf-8")
    data = world.data("w1", "next_start")
    data["trial"] = json.loads(text)
    world.documents["w1"]["collectors"]["runtime"] = {"status": "ok", "data": {"kind": kind}}
    return data


@pytest.mark.parametrize("release", ["1.6.20", "2.2.1"])
@pytest.mark.parametrize(
    ("name", "verdict"),
    [("healthy", "clear"), ("no-toml", "present"), ("mirrors", "present"), ("cgroup", "unknown")],
)
def test_a_trial_start(world, release, name, verdict):
    trial_of(world, release, name)
    assert judged(world, "KM703")[0] == verdict


def test_the_file_and_the_key_that_containerd_names_in_a_trial(world):
    trial_of(world, "1.6.20", "another-type")
    _verdict, (found,) = judged(world, "KM703")
    assert (found.component, found.severity) == ("containerd", "critical")
    proofs = [(proof.kind, proof.path, proof.line, proof.text) for proof in found.evidence[1:]]
    assert proofs == [("file", "/etc/containerd/config.toml", 3, "grpc.gid")]
    assert found.evidence[0].kind == "log"
    assert "many(string)" in found.evidence[0].text


def test_a_trial_that_proves_is_better_than_reading(world):
    trial_of(world, "2.2.1", "healthy")["runtime_files"].update(READING)
    assert judged(world, "KM703") == ("clear", [])
    trial_of(world, "2.2.1", "mirrors")["runtime_files"].update(READING)
    _verdict, (found,) = judged(world, "KM703")
    assert "config_path" in found.summary


def test_a_trial_that_proves_nothing_leaves_what_was_read(world):
    data = trial_of(world, "2.2.1", "cgroup")
    data["runtime_files"].update(READING)
    _verdict, (found,) = judged(world, "KM703")
    assert "failed to load TOML" in found.summary
    data["runtime_files"].update(error="")
    data["trial"] = {"state": "refused", "reason": "namespaces of its own: Operation not permitted"}
    result = world.judge(faults={"KM703"}, deep=True)
    (verdict,) = [item for item in result.verdicts if item.host == "w1"]
    assert verdict.verdict == "unknown"
    assert "Operation not permitted" in verdict.note


def test_a_containerd_without_cri_below_docker(world):
    trial_of(world, "2.2.1", "cri-disabled", kind="cri-docker")
    assert judged(world, "KM703") == ("clear", [])
    trial_of(world, "2.2.1", "cri-disabled")
    _verdict, (found,) = judged(world, "KM703")
    assert "disabled_plugins" in found.remedy
