# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM508: what is wrong with the container runtime of a node, told apart.

The tests also check how one that is down comes back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import CATALOGUE
from tests.unit.support import known_rows
from tests.unit.support.facts import facts
from tests.unit.support.runtime_evidence import (
    ASKED,
    CODES,
    DOCKER_UNIT,
    DOWN,
    NOT_ASKED,
    UP,
    WELL,
    Node,
    dead,
)

DISABLED = {"v1": 12, "v1alpha2": 12}
CONFIG = {"path": "/etc/containerd/config.toml", "disabled_plugins": ["cri"], "line": 3}
RUN_DOCKER = {
    "kind": "docker",
    "path": "/var/run/docker.sock",
    "endpoint": "/var/run/dockershim.sock",
    "calls": {},
}
FAILED = {
    **DOWN,
    "active_state": "failed",
    "sub_state": "failed",
    "exec_main_status": 1,
    "result": "exit-code",
}
CLOCK = 1_800_000_000.0  # 2027-01-15T08:00:00Z
PLEG = (
    "2027-01-15T07:59:{second}+0000 w1 kubelet[1]: E0115 07:59:50.000000       1 kubelet.go:2412]"
    ' "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m5.2s'
    ' ago; threshold is 3m0s"'
)
OLD_PLEG = (
    "2027-01-15T07:59:50+0000 w1 kubelet[1]: I0115 07:59:50.000000       1 kubelet.go:1838]"
    " skipping pod synchronization - PLEG is not healthy: pleg was last seen active 3m5.2s ago;"
    " threshold is 3m0s"
)
FRESH_PLEG = (
    "2027-01-15T07:59:50+0000 w1 kubelet[1]: E0115 07:59:50.000000       1 kubelet.go:2412]"
    ' "Skipping pod synchronization" err="[container runtime status check may not have completed'
    ' yet, PLEG is not healthy: pleg has yet to be successful]"'
)


@pytest.fixture
def node(world):
    return Node(world)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"calls": {"v1": 0, "v1alpha2": 12}},
        {"kind": "crio", "path": "/run/crio/crio.sock", "unit": {"name": "crio.service"}},
        {**RUN_DOCKER, "unit": [DOCKER_UNIT]},
        {**RUN_DOCKER, "unit": [{**DOCKER_UNIT, "unit_file_state": "disabled"}]},
        {"unit": {"unit_file_state": "disabled", "brought_by": ["multi-user.target"]}},
        {
            "unit": {
                "unit_file_state": "disabled",
                "wanted_by": ["docker.service", "multi-user.target"],
            }
        },
        {"unit": {"unit_file_state": "static"}},
        {**RUN_DOCKER, **NOT_ASKED, "unit": [{**DOCKER_UNIT, **DOWN}]},
        {"kind": "other", "path": "/run/isulad.sock", "unit": []},
        {"unit": [{"name": "containerd.service", "absent": True}]},
    ],
)
def test_layouts_that_are_well(node, changes):
    node.set(**changes)
    if changes.get("kind") == "docker":
        node.version("v1.18.4")
    assert (node.verdict(), node.judged()[1]) == ("clear", [])


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        (
            "rke2-agent.service",
            {
                "kind": "embedded",
                "path": "/run/k3s/containerd/containerd.sock",
                "unit": [],
                **NOT_ASKED,
                "socket": None,
            },
        ),
        (
            "k3s.service",
            {"kind": "embedded", "path": None, "unit": [], **NOT_ASKED, "socket": None},
        ),
        (
            "snap.microk8s.daemon-kubelite.service",
            {
                "kind": "embedded",
                "path": "/var/snap/a.sock",
                "unit": [],
                **NOT_ASKED,
                "socket": None,
            },
        ),
        (
            "snap.k8s.kubelet.service",
            {
                "unit": [{"name": "containerd.service", "absent": True}],
                **NOT_ASKED,
                "socket": "missing",
            },
        ),
    ],
)
def test_a_runtime_within_another_program_is_not_judged(node, family, changes):
    node.world.data("w1", "kubelet")["unit"]["name"] = family
    node.set(**changes)
    assert (node.verdict(), node.judged()[1]) == ("not_applicable", [])


@pytest.mark.parametrize(
    ("unit", "severity", "risk", "said", "cure"),
    [
        (
            {**DOWN},
            "critical",
            2,
            "does not run: containerd.service: it is enabled and exited cleanly: it was stopped",
            "systemctl start containerd.service",
        ),
        (
            {**DOWN, "unit_file_state": "disabled"},
            "critical",
            2,
            ("does not run: containerd.service: it is disabled: it was not started since the boot"),
            (
                "systemctl enable --no-reload containerd.service, and systemctl start"
                " containerd.service"
            ),
        ),
        (
            {
                "active_state": "failed",
                "sub_state": "failed",
                "result": "exit-code",
                "exec_main_status": 1,
            },
            "critical",
            2,
            "it ended (result exit-code, status 1)",
            "journalctl -u containerd.service",
        ),
        (
            {"active_state": "failed", "sub_state": "failed", "result": "start-limit-hit"},
            "critical",
            2,
            "it ended too often",
            "systemctl start",
        ),
        (
            {"active_state": "activating", "sub_state": "auto-restart", "result": "exit-code"},
            "critical",
            0,
            "systemd is about to start it again",
            "systemd starts it again by itself",
        ),
        (
            {**DOWN, "load_state": "masked", "unit_file_state": "masked"},
            "critical",
            0,
            "is masked (containerd.service): it was taken out",
            "systemctl unmask",
        ),
        (
            {"load_state": "masked", "unit_file_state": "masked"},
            "warning",
            0,
            "its process runs on until it ends",
            "systemctl unmask",
        ),
        (
            {"unit_file_state": "disabled"},
            "warning",
            1,
            "runs, and will not after the next boot: containerd.service: it is disabled",
            "systemctl enable --no-reload containerd.service",
        ),
        (
            {"unit_file_state": "enabled-runtime", "brought_by": ["multi-user.target"]},
            "warning",
            1,
            "under /run only",
            "systemctl enable --no-reload",
        ),
    ],
)
def test_what_its_unit_tells(node, unit, severity, risk, said, cure):
    node.set(unit, **(NOT_ASKED if unit.get("active_state") else {}))
    found = node.finding()
    assert (found.severity, found.risk, found.component, found.node) == (
        severity,
        risk,
        "containerd",
        "w1",
    )
    assert said in found.summary
    assert cure in found.remedy
    assert found.evidence[0].object == "containerd.service"


@pytest.mark.parametrize(
    ("changes", "version", "said", "cure"),
    [
        (
            {"asked": False, "socket": "missing", "calls": {}},
            "v1.30.1",
            "its unit runs, and there is no socket at /run/containerd/containerd.sock",
            "where it listens",
        ),
        (
            {"asked": False, "socket": "other", "calls": {}},
            "v1.30.1",
            "there is no socket at",
            "where it listens",
        ),
        (
            {"error": "Connection refused", "calls": {}},
            "v1.30.1",
            "takes no connection (Connection refused)",
            "journalctl -u containerd.service",
        ),
        (
            {"calls": DISABLED, "config": CONFIG},
            "v1.30.1",
            "serves no CRI: its plugin cri is disabled in /etc/containerd/config.toml",
            "take cri out of disabled_plugins",
        ),
        (
            {
                "calls": DISABLED,
                "config": {**CONFIG, "disabled_plugins": ["io.containerd.cri.v1.runtime", "x"]},
            },
            None,
            "io.containerd.cri.v1.runtime is disabled",
            "take",
        ),
        (
            {"calls": DISABLED, "config": {**CONFIG, "disabled_plugins": ["btrfs"]}},
            "v1.30.1",
            "serves no CRI at all",
            "ctr plugins ls",
        ),
        ({"calls": DISABLED}, "v1.18.4", "serves no CRI at all", "its configuration"),
        (
            {
                "calls": DISABLED,
                "config": {**CONFIG, "disabled_plugins": []},
                "plugin_failures": [
                    'msg="failed to load plugin" error="invalid cri image config: `mirrors` cannot'
                    ' be set when `config_path` is provided" id=io.containerd.cri.v1.images'
                ],
            },
            "v1.34.0",
            "it did not load its plugin io.containerd.cri.v1.images: invalid cri image config:"
            " `mirrors` cannot be set",
            "hosts.toml",
        ),
        (
            {"calls": {"v1": 12, "v1alpha2": 0}},
            "v1.26.0",
            "speaks v1alpha2 of the CRI only",
            "install containerd 1.6",
        ),
        (
            {"calls": {"v1": 0, "v1alpha2": 12}},
            "v1.22.17",
            "speaks v1 of the CRI only",
            "1.6 or 1.7",
        ),
        (
            {**RUN_DOCKER, "unit": [DOCKER_UNIT]},
            "v1.24.0",
            (
                "--container-runtime-endpoint=/var/run/dockershim.sock), which kubelets from 1.24"
                " on cannot"
            ),
            "install cri-dockerd",
        ),
        (
            {
                **RUN_DOCKER,
                "endpoint": None,
                "docker": True,
                "unit": [{"name": "docker.service", "absent": True}],
                **NOT_ASKED,
                "socket": "missing",
            },
            "v1.26.1",
            "(--container-runtime=docker)",
            "install cri-dockerd",
        ),
        (
            {
                "kind": "cri-docker",
                "path": "/run/cri-dockerd.sock",
                "unit": [DOCKER_UNIT, {"name": "cri-docker.service", "absent": True}],
                **NOT_ASKED,
                "socket": "missing",
            },
            "v1.30.1",
            "cri-dockerd is not there: neither that socket nor a unit cri-docker.service",
            "by cri-dockerd alone",
        ),
        (
            {
                "unit": [{"name": "containerd.service", "absent": True}],
                **NOT_ASKED,
                "socket": "missing",
            },
            "v1.30.1",
            "there is no such runtime",
            "install it",
        ),
    ],
)
def test_what_its_socket_tells(node, changes, version, said, cure):
    node.set(**changes)
    node.version(version)
    found = node.finding()
    assert (found.severity, found.risk) == ("critical", 0), (found.summary, found.remedy)
    assert said in found.summary, (found.summary, found.remedy)
    assert cure in found.remedy, (found.summary, found.remedy)
    assert found.evidence
    assert not node.steps()


SILENT = {"calls": {"v1": "no answer"}}
LOOP = {"sub_state": "auto-restart", "active_state": "activating", "result": "exit-code"}


@pytest.mark.parametrize(
    ("healthz", "kubelet", "lines", "severity"),
    [
        ({"status": 200, "error": None}, {}, [], "warning"),
        ({"status": 500, "error": None}, {}, [], "critical"),
        ({"status": None, "error": "timed out"}, {}, [], "critical"),
        ({"status": None, "error": "switched off"}, {}, [], "warning"),
        (None, {}, [], "warning"),
        ({"status": None, "error": "Connection refused"}, LOOP, [], "warning"),
        ({"status": 200, "error": None}, {}, [PLEG.format(second="50")], "critical"),
        (
            {"status": 200, "error": None},
            {},
            [PLEG.format(second="50").replace("07:59", "07:49")],
            "warning",
        ),
    ],
)
def test_one_call_without_an_answer_is_doubtful_alone(node, healthz, kubelet, lines, severity):
    node.set(**SILENT)
    told = node.world.data("w1", "kubelet")
    told.update(healthz=healthz, argv_source="process")
    told["unit"].update(kubelet)
    node.world.documents["w1"]["collectors"]["kubelet_log"] = {
        "status": "ok",
        "data": {"lines": lines},
    }
    found = node.finding()
    assert (found.severity, found.risk) == (severity, 0)
    assert "a full or slow disk" in found.remedy
    assert not node.steps()
    if severity == "warning":
        assert "did not answer within 2 s" in found.summary
        assert "hangs" not in found.summary
    else:
        assert (
            "hangs: /run/containerd/containerd.sock takes connections, and answers no call within 2"
            " s, the kubelet" in found.summary
        )
        assert len(found.evidence) == 2


@pytest.mark.parametrize(
    ("calls", "version", "verdict"),
    [
        ({"v1": 12, "v1alpha2": 0}, "v1.25.16", "clear"),
        ({"v1": 12, "v1alpha2": 0}, None, "unknown"),
        ({"v1": 0, "v1alpha2": 12}, "v1.23.0", "clear"),
        ({"v1": 0, "v1alpha2": 12}, None, "unknown"),
        ({"v1": 0, "v1alpha2": 0}, None, "clear"),
        ({"v1": 14, "v1alpha2": 14}, "v1.30.1", "unknown"),
        ({"v1": "the answer is no gRPC"}, "v1.30.1", "unknown"),
        ({}, "v1.30.1", "unknown"),
        (None, "v1.30.1", "unknown"),
        ({"v1": 14, "v1alpha2": 12}, "v1.30.1", "unknown"),
    ],
)
def test_what_calls_do_not_tell(node, calls, version, verdict):
    node.set(calls=calls)
    node.version(version)
    node.argv("kubelet", "--container-runtime=remote")
    assert (node.verdict(), node.judged()[1]) == (verdict, [])


@pytest.mark.parametrize(
    ("calls", "argv", "verdict"),
    [
        ({"v1": 0, "v1alpha2": 12}, ["--config=/x"], "clear"),
        ({"v1": 0, "v1alpha2": 12}, ["--container-runtime", "remote"], "unknown"),
        ({"v1": 0, "v1alpha2": 12}, [], "unknown"),
        ({"v1": 12, "v1alpha2": 0}, ["--config=/x"], "unknown"),
    ],
)
def test_a_kubelet_that_needs_no_flag_for_containerd_is_of_1_24_or_newer(
    node, calls, argv, verdict
):
    """However well it is: one that runs says so for minutes after its runtime was replaced."""
    node.set(calls=calls)
    node.version(None)
    node.argv("kubelet", *argv)
    assert node.verdict() == verdict


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([PLEG.format(second="50")], True),
        ([OLD_PLEG], True),
        ([FRESH_PLEG], False),
        ([PLEG.format(second="50").replace("07:59", "07:49")], False),
        ([], False),
        (
            [
                PLEG.format(second="50"),
                PLEG.format(second="50").replace("2027-01-15T07:59:50", "2027-13-45T99:99:99"),
            ],
            True,
        ),
        ([PLEG.format(second="50").replace("2027-01-15T07:59:50", "2027-13-45T99:99:99")], False),
        (["PLEG is not healthy: pleg was last seen active 3m ago"], False),
        ("PLEG", False),
        ([7, None], False),
    ],
)
def test_what_the_kubelet_says_of_its_lists(node, lines, found):
    node.set()
    node.world.documents["w1"]["collectors"]["kubelet_log"] = {
        "status": "ok",
        "data": {"lines": lines},
    }
    verdict, hits, _result = node.judged()
    assert verdict.verdict == ("present" if found else "clear")
    if found:
        assert "the kubelet has had no list of its containers for 3m5.2s" in hits[0].summary
        assert "PLEG is not healthy" in hits[0].evidence[0].text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"kind": None, "path": None, "unit": [], **NOT_ASKED}, "ok"),
        ({"unit": {"active_state": "activating", "sub_state": "start"}, **NOT_ASKED}, "ok"),
        (
            {"unit": {"active_state": "deactivating", "sub_state": "stop-sigterm"}, **NOT_ASKED},
            "ok",
        ),
        ({"unit": {"active_state": ""}, **NOT_ASKED}, "ok"),
        ({"socket": "denied", **NOT_ASKED}, "ok"),
        ({}, "error"),
        ({}, "denied"),
        ({}, "timeout"),
    ],
)
def test_what_is_not_known_is_unknown(node, changes, status):
    node.set(**changes)
    node.world.documents["w1"]["collectors"]["runtime"]["status"] = status
    if status != "ok":
        node.world.documents["w1"]["collectors"]["runtime"]["data"] = None
    assert (node.verdict(), node.judged()[1]) == ("unknown", [])


def test_an_empty_configuration_of_containerd_is_told_as_a_warning(node):
    node.set(emptied="/etc/containerd/config.toml")
    found = node.finding()
    assert (found.severity, found.risk, found.component, node.steps()) == (
        "warning",
        0,
        "containerd",
        (),
    )
    assert (
        "the configuration of containerd is an empty file (/etc/containerd/config.toml), as a"
        " power cut leaves it" in found.summary
    )
    assert [(proof.path, proof.text) for proof in found.evidence] == [
        ("/etc/containerd/config.toml", "0 bytes")
    ]
    assert "SystemdCgroup = true" in found.remedy
    node.set(
        {"active_state": "inactive", "sub_state": "dead"}, emptied="/etc/containerd/config.toml"
    )
    assert sorted(item.severity for item in node.judged()[1]) == ["critical", "warning"]


@pytest.mark.parametrize(
    "changes",
    [
        {"emptied": None},
        {"emptied": 7},
        {"emptied": ""},
        {"emptied": "/etc/containerd/config.toml", "kind": "crio"},
    ],
)
def test_no_other_configuration_is(node, changes):
    node.set(**changes)
    assert node.judged()[1] == []


def test_no_kubelet_no_runtime_to_judge(node):
    node.told("w1", None, "absent")
    assert node.verdict() == "not_applicable"
    node.world.documents["w1"]["collectors"].pop("runtime")  # evidence of before it was collected
    result = fault_engine.evaluate([*node.world.documents.values(), node.world.api], faults=CODES)
    assert not [item for item in result.verdicts if (item.host, item.code) == ("w1", "KM508")]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": 7},
        {"kind": "containerd", "units": "x"},
        {"kind": "containerd", "units": [7, {}]},
        {"kind": "containerd", "calls": 7, "units": [UP], **ASKED},
    ],
)
def test_evidence_of_any_shape_is_never_a_finding(node, data):
    node.told("w1", data)
    assert (node.verdict(), node.judged()[1]) == ("unknown", [])


@pytest.mark.parametrize(
    "changes",
    [
        {"calls": DISABLED, "config": CONFIG},
        {"unit": DOWN, **NOT_ASKED},
        {"calls": {"v1": 12, "v1alpha2": 0}},
    ],
)
def test_a_kubelet_that_is_started_again_until_its_runtime_is_back_is_no_finding_of_its_own(
    node, changes
):
    node.set(**changes)
    node.version(None)
    dead(node)
    _verdict, hits, result = node.judged()
    assert [(item.code, item.host) for item in result.findings] == [("KM508", "w1")]
    assert "unknown service runtime.v1.RuntimeService" in hits[0].evidence[-1].text
    (kubelet,) = [item for item in result.verdicts if (item.code, item.host) == ("KM502", "w1")]
    assert (kubelet.verdict, kubelet.note) == ("not_applicable", "KM508 is why")


def test_a_kubelet_that_gave_up_is_started_after_its_runtime(node):
    node.set(DOWN, **NOT_ASKED)
    dead(node, active_state="failed", sub_state="failed", result="start-limit-hit")
    found = node.judged()[2].findings
    assert {(item.code, item.because) for item in found} == {("KM508", ()), ("KM502", ("KM508",))}
    assert [(step.remedy, step.target, step.allowed) for step in node.steps()] == [
        ("start_runtime", "containerd.service", True),
        ("start_kubelet", "kubelet.service", True),
    ]


@pytest.mark.parametrize("changes", [{}, SILENT])
def test_a_runtime_that_is_well_or_only_slow_explains_no_death(node, changes):
    node.set(**changes)
    dead(node)
    node.world.data("w1", "kubelet")["healthz"] = {"status": None, "error": "Connection refused"}
    (found,) = [item for item in node.judged()[2].findings if item.code == "KM502"]
    assert found.because == ()
    assert "KM508 shows why, where it can be determined" in found.summary


# -- how it comes back
# -----------------------------------------------------------------------------------------------


def test_one_that_was_disabled_and_stopped_is_enabled_and_started(node):
    node.set({**DOWN, "unit_file_state": "disabled"}, **NOT_ASKED)
    enable, start = node.steps()
    assert (enable.id, enable.remedy, enable.risk, enable.component) == (
        "01-w1-enable-runtime-containerd",
        "enable_runtime",
        1,
        "containerd",
    )
    assert enable.change == {
        "kind": "enable_runtime",
        "path": "enablement of containerd.service",
        "unit": "containerd.service",
        "former": "disabled",
    }
    assert (start.remedy, start.risk, start.diff) == (
        "start_runtime",
        2,
        "systemctl is-active containerd.service: inactive -> active\n",
    )
    assert "containers that ran on are taken over" in start.note
    assert enable.allowed
    assert start.allowed
    assert [step.allowed for step in node.steps(max_risk=1)] == [True, False]
    assert not any(step.allowed for step in node.steps(max_risk=0))


TOML = (
    "2027-01-15T07:59:50+0000 w1 containerd[9]: containerd: failed to load TOML from"
    ' /etc/containerd/config.toml: invalid plugin key URI "cri" expect io.containerd.x.vx'
)
DIAL = (
    "2027-01-15T07:59:50+0000 w1 containerd[9]: containerd: failed to get service plugin: dial unix"
    " /run/x.sock: connect: connection refused"
)
LATER = "2027-01-15T07:59:55+0000 w1 containerd[11]: containerd: something new"
SURVIVED = "2027-01-15T07:59:50+0000 w1 containerd[9]: open /var/x: no space left on device"


@pytest.mark.parametrize(
    ("lines", "result", "allowed"),
    [
        ([TOML], "exit-code", False),
        ([TOML], "start-limit-hit", False),
        ([TOML], "oom-kill", True),
        ([DIAL], "exit-code", True),
        ([TOML, LATER], "exit-code", True),
        ([SURVIVED], "exit-code", True),
        ([], "exit-code", True),
    ],
)
def test_a_runtime_that_would_end_again_is_not_started(node, lines, result, allowed):
    unit = {"active_state": "failed", "sub_state": "failed", "exec_main_status": 1}
    node.set({**DOWN, **unit, "result": result, "said": lines}, **NOT_ASKED)
    (step,) = node.steps()
    assert (step.remedy, step.allowed) == ("start_runtime", allowed)
    assert ("another start would end" in (step.blocked_by or "")) is not allowed


def test_docker_comes_before_what_uses_it(node):
    plain = {**UP, **DOWN, "trigger": None}
    node.set(
        [{**plain, "name": "docker.service"}, {**plain, "name": "cri-docker.service"}],
        kind="cri-docker",
        path="/run/cri-dockerd.sock",
        **NOT_ASKED,
    )
    assert [step.target for step in node.steps()] == ["docker.service", "cri-docker.service"]


def test_a_start_of_docker_may_end_containers(node):
    down = {**UP, **DOWN, "trigger": None}
    node.version("v1.18.4")
    node.set([{**down, "name": "docker.service"}], **{**RUN_DOCKER, **NOT_ASKED})
    found = node.finding()
    assert found.risk == 3
    assert "ends containers that still run" in found.remedy
    assert "still do" not in found.remedy
    (step,) = node.steps()
    assert (step.target, step.risk, step.allowed) == (
        "docker.service",
        3,
        False,
    )
    assert "dockerd without live-restore, its default, ends" in step.note
    assert "taken over" not in step.note
    assert node.steps(max_risk=3)[0].allowed
    node.set(
        [{**DOCKER_UNIT, **DOWN}, {**down, "name": "cri-docker.service"}],
        kind="cri-docker",
        path="/run/cri-dockerd.sock",
        **NOT_ASKED,
    )
    # whose connection has systemd start docker
    assert [(step.target, step.risk) for step in node.steps()] == [("cri-docker.service", 3)]
    dead(node, active_state="failed", sub_state="failed", result="start-limit-hit")
    last = node.steps()[-1]
    # it connects to docker too
    assert (last.target, last.risk) == ("kubelet.service", 3)
    assert "live-restore" in last.note
    node.set(
        [DOCKER_UNIT, {**down, "name": "cri-docker.service"}],
        kind="cri-docker",
        path="/run/cri-dockerd.sock",
        **NOT_ASKED,
    )
    assert [(step.target, step.risk) for step in node.steps()] == [
        ("cri-docker.service", 2),
        ("kubelet.service", 2),
    ]
    assert "taken over" in node.steps()[0].note


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "a restart of the runtime leaves containers running, and is yours to do"),
        (
            {**RUN_DOCKER, "unit": [DOCKER_UNIT]},
            (
                "at a restart dockerd without live-restore, its default, ends containers that still"
                " run; that is yours to do"
            ),
        ),
        (
            {"kind": "cri-docker", "unit": [DOCKER_UNIT, {**UP, "name": "cri-docker.service"}]},
            "running (of docker, only with live-restore), and is yours to do",
        ),
    ],
)
def test_what_a_restart_does_to_containers(node, changes, said):
    node.version("v1.18.4")
    node.set(**{**changes, "error": "Connection refused", "calls": {}})
    assert said in node.finding().remedy


def test_a_node_that_somebody_took_out_is_left_alone(node):
    node.set(DOWN, **NOT_ASKED)
    api = next(one for one in node.world.data("api", "nodes")["items"] if one["name"] == "w1")
    api.update(unschedulable=True, cordon=None)
    facts(node.steps()[0].blocked_by, "w1", "-e kubemend_allow=fenced")
    assert node.steps("fenced")[0].allowed
    api.update(unschedulable=False)
    node.world.data("w1", "kubelet")["unit"].update(load_state="masked", unit_file_state="masked")
    assert "the kubelet of w1 is masked" in node.steps()[0].blocked_by


def test_manifests_that_were_changed_meanwhile_are_looked_at_first(node):
    node.told("m2", {**WELL, **NOT_ASKED, "units": [{**UP, **DOWN}]})
    node.world.manifest("m2", "kube-scheduler", "--leader-elect=false")
    (step,) = node.steps()
    assert "kube-scheduler.yaml" in step.blocked_by
    assert "pending_changes" in step.blocked_by
    assert node.steps("pending_changes")[0].allowed


def test_the_catalogue_has_it():
    assert CATALOGUE["KM508"].risk == 2
    page = Path(__file__).parents[6] / "docs" / "faults" / "KM508.md"
    assert "PLEG is not healthy" in page.read_text(encoding="utf-8")


def test_the_cause_of_a_known_message_is_told(node):
    line = "containerd: waiting for response from boltdb open"
    unit = {"active_state": "failed", "sub_state": "failed", "exec_main_status": 1}
    node.set({**DOWN, **unit, "result": "exit-code", "said": [line]}, **NOT_ASKED)
    found = node.finding()
    assert "Known cause: Another process has the database of containerd open" in found.summary
    assert found.remedy.startswith("on the node: fuser -v")


HELD = "containerd: waiting for response from boltdb open"
MIRRORS = (
    'msg="failed to load plugin" error="invalid cri image config: `mirrors` cannot be set when'
    ' `config_path` is provided" id=io.containerd.cri.v1.images'
)


@pytest.mark.parametrize(
    ("unit", "changes", "words"),
    [
        # what it wrote last means nothing that is known
        ({**FAILED, "said": [HELD, "containerd: bye"]}, NOT_ASKED, "Another process has"),
        (
            {},
            {
                "calls": DISABLED,
                "config": {**CONFIG, "disabled_plugins": []},
                "plugin_failures": [MIRRORS],
            },
            "The configuration of containerd has both registry.mirrors and",
        ),
    ],
    ids=["a line before the last", "a plugin that is not loaded"],
)
def test_the_cause_of_a_known_message_is_told_wherever_it_is_quoted(node, unit, changes, words):
    node.version("v1.34.0")
    node.set(unit, **changes)
    assert f"Known cause: {words}" in node.finding().summary


OF_WORKLOADS = known_rows.of_workloads()


@pytest.mark.parametrize(
    ("name", "place", "text"), OF_WORKLOADS, ids=[line[0] for line in OF_WORKLOADS]
)
def test_no_workload_is_the_cause_of_a_runtime_that_does_not_run(node, name, place, text):
    node.set({**FAILED, "said": [f"containerd: {text}", "containerd: bye"]}, **NOT_ASKED)
    assert "Known cause" not in node.finding().summary


@pytest.mark.parametrize(
    ("before", "last"),
    [
        # the meaning of the last line is certain
        (HELD, TOML),
        # it was said at an earlier start
        (f"2027-01-15T07:59:40+0000 w1 containerd[7]: {HELD}", LATER),
    ],
)
def test_lines_that_tell_nothing_of_the_last_end(node, before, last):
    node.set({**FAILED, "said": [before, last]}, **NOT_ASKED)
    assert "Known cause: Another process has" not in node.finding().summary


CRIO_SOCKET = "/var/run/crio/crio.sock"
SERVING = [{"unit": "crio.service", "paths": [CRIO_SOCKET]}]
MISSING = {**NOT_ASKED, "socket": "missing", "serving": SERVING}
MISSPELT = {"kind": "other", "path": "/run/crio/crio.socket", "endpoint": "/run/crio/crio.socket"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({**MISSING}, ("there is no socket at",)),
        ({**MISSING, "unit": [{"name": "containerd.service", "absent": True}]}, ("no such",)),
        ({**MISSING, **MISSPELT, "unit": []}, ("/run/crio/crio.socket",)),
    ],
)
def test_a_kubelet_whose_runtime_listens_elsewhere_names_that_socket(node, changes, words):
    node.set(**changes)
    found = node.finding()
    for word in (f"crio.service listens at {CRIO_SOCKET}", *words):
        assert word in found.summary
    assert found.remedy


def test_the_advice_is_the_socket_that_is_served(node):
    node.set([], **{**MISSING, **MISSPELT})
    assert f"unix://{CRIO_SOCKET}" in node.finding().remedy


def test_an_endpoint_of_an_unknown_runtime_needs_a_proof(node):
    node.set([], **{**MISSING, **MISSPELT, "serving": []})
    assert node.verdict() == "unknown"
    dead(node)
    assert node.finding().severity == "critical"


def test_the_endpoint_of_cri_dockerd_is_told(node):
    own = "unix:///var/run/cri.sock"
    node.set(
        [DOCKER_UNIT, {**UP, "name": "cri-docker.service"}],
        **{**MISSING, "kind": "cri-docker", "path": "/run/cri-dockerd.sock"},
        flags={"container-runtime-endpoint": own},
    )
    assert f"--container-runtime-endpoint of cri-dockerd is {own}" in node.finding().summary
