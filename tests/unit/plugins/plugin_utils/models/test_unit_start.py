# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd refuses is named by KM502, KM501 and KM508.

No start is planned that systemd would refuse.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    unit_start as model_unit_start,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    services,
)
from tests.unit.plugins.plugin_utils.faults.node.test_container_runtime import Node as Runtime
from tests.unit.support import failed_unit
from tests.unit.support.failed_unit import NAME
from tests.unit.support.fake_kubelet_messages import entry, fatal, klog, systemd
from tests.unit.support.service_plan import plan_services

CODES = frozenset(("KM501", "KM502", "KM503", "KM508"))
OWN = frozenset(("KM502", "KM505", "KM506", "KM507", "KM510", "KM515", "KM516", "KM517"))
IDLE = {**failed_unit.IDLE, "unit_file_state": "enabled", "n_restarts": 0}
FAILED = {**IDLE, "active_state": "failed", "sub_state": "failed", "result": "exit-code"}
LOST = {
    "name": "mounts.service",
    "load_state": "loaded",
    "active_state": "failed",
    "result": "exit-code",
    "exec_main_status": 1,
}


def checked(text, result="condition", met=False):
    one = {
        "text": text,
        "assert": result == "assert",
        "trigger": False,
        "met": met,
        "last": False,
        "seen": "/gone is missing",
        "path": "/a.conf",
        "line": 2,
    }
    return {"checks": [one], result + "_result": False}


def path(setting, name, state="missing"):
    return {
        "paths": [
            {
                "setting": setting,
                "name": name,
                "state": state,
                "changed_at": None,
                "path": "/a.conf",
                "line": 2,
            }
        ]
    }


# (the unit's record, what unit_start brings, what the finding says)
REFUSED = {
    "condition": (
        IDLE,
        checked("ConditionPathExists=/gone"),
        "ConditionPathExists=/gone is not met (/gone is missing)",
    ),
    "assert": (
        IDLE,
        checked("AssertPathExists=/gone", "assert"),
        "AssertPathExists=/gone is not met (/gone is missing)",
    ),
    "dependency": (
        IDLE,
        {"needs": [{**LOST, "how": "Requires", "ordered": True}], "condition_result": None},
        "Requires=mounts.service failed (result exit-code, status 1)",
    ),
    "environment": (
        {**FAILED, "result": "resources"},
        path("EnvironmentFile", "/gone.env"),
        "EnvironmentFile=/gone.env: it is missing",
    ),
    "folder": (
        {**FAILED, "exec_main_status": 200},
        path("WorkingDirectory", "/var/lib/kubelet"),
        "systemd cannot enter the working directory (200/CHDIR): /var/lib/kubelet is missing",
    ),
    "program": (
        {**FAILED, "exec_main_status": 203},
        path("ExecStart", "/usr/bin/kubelet"),
        "(203/EXEC): /usr/bin/kubelet is missing",
    ),
    "namespace": ({**FAILED, "exec_main_status": 226}, {}, "226/NAMESPACE"),
    "old": (
        {**IDLE, "load_state": "bad-setting"},
        {},
        "systemd cannot load its unit (bad-setting)",
    ),
}


class Node:
    def __init__(self, world):
        self.world = world

    def set(self, record, facts=None, lines=()):
        self.world.data("w1", "kubelet").update(unit=dict(record), process=None)
        self.world.documents["w1"]["collectors"]["kubelet_end"] = {
            "status": "ok",
            "data": {"unit": NAME, "lines": list(lines)},
        }
        if facts is not None:
            self.world.documents["w1"]["collectors"]["unit_start"] = {
                "status": "ok",
                "data": {"units": [{**record, **facts}]},
            }
        return self

    def finding(self, code="KM502"):
        (found,) = [
            one
            for one in self.world.judge(faults=CODES | OWN).findings
            if (one.host, one.code) == ("w1", code)
        ]
        return found

    def verdicts(self):
        return {
            one.code: one.verdict
            for one in self.world.judge(faults=OWN).verdicts
            if one.host == "w1"
        }

    def steps(self, *allow, risk=2):
        return plan_services(self.world, CODES, risk, allow)


@pytest.fixture
def node(world):
    return Node(world)


@pytest.mark.parametrize(("record", "facts", "said"), REFUSED.values(), ids=list(REFUSED))
def test_it_is_named_and_no_start_is_planned(node, record, facts, said):
    found = node.set(record, facts).finding()
    assert said in found.summary
    assert "it was stopped" not in found.summary
    assert "no cause that is known" not in found.summary
    steps = node.steps()
    assert not any(step.allowed for step in steps)
    assert [step for step in steps if step.remedy == services.START and said in step.blocked_by]
    assert node.verdicts() == {**dict.fromkeys(OWN, "clear"), "KM502": "present"}


@pytest.mark.parametrize(
    ("record", "facts", "said"),
    [REFUSED["condition"], REFUSED["assert"], REFUSED["environment"], REFUSED["folder"]],
)
def test_the_line_that_sets_it_is_shown(node, record, facts, said):
    places = [
        (one.path, one.line)
        for one in node.set(record, facts).finding().evidence
        if one.kind == "file"
    ]
    assert places == [("/a.conf", 2)]


@pytest.mark.parametrize(
    ("record", "facts"),
    [
        (IDLE, checked("ConditionPathExists=/gone", met=True)),
        ({**FAILED, "exec_main_status": 200}, path("WorkingDirectory", "/var/lib/kubelet", "ok")),
        (IDLE, {"checks": [], "condition_result": True}),
        (IDLE, None),
        ({**FAILED, "exec_main_status": 1}, None),
        (
            IDLE,
            {
                "needs": [
                    {
                        **LOST,
                        "active_state": "inactive",
                        "result": "success",
                        "how": "Requires",
                        "ordered": True,
                    }
                ]
            },
        ),
    ],
)
def test_what_systemd_would_accept_now_is_started(node, record, facts):
    (step,) = node.set(record, facts).steps()
    assert (step.remedy, step.allowed, step.blocked_by) == (services.START, True, None)


def test_a_start_that_would_be_refused_now_is_told_with_what_happened(node):
    facts = {**checked("ConditionPathExists=/gone"), "condition_result": True}
    found = node.set(IDLE, facts).finding()
    assert "it was stopped" in found.summary
    assert model_unit_start.WOULD_NOT in found.summary
    assert "ConditionPathExists=/gone" in found.summary
    assert not node.steps()[0].allowed


def test_enabling_alone_is_planned_and_says_that_it_starts_nothing(node):
    record, facts, said = REFUSED["condition"]
    node.set({**record, "unit_file_state": "disabled"}, facts)
    enable, start = node.steps()
    assert (enable.remedy, enable.allowed, enable.risk) == (
        services.ENABLE,
        True,
        1,
    )
    assert "alone does not start" in enable.note
    assert (start.remedy, start.allowed) == (services.START, False)
    assert said in start.blocked_by
    assert said in node.finding("KM501").remedy


def test_a_kubelet_behind_a_mask_that_would_not_start_stays_masked(node):
    record = {
        **IDLE,
        "load_state": "masked",
        "unit_file_state": "masked",
        "mask": {
            "links": [{"path": "/etc/systemd/system/kubelet.service", "to": "/dev/null"}],
            "file": "/lib/systemd/system/kubelet.service",
            "wanted": True,
        },
    }
    assert all(step.allowed for step in node.set(record, {"checks": []}).steps("fenced", risk=3))
    facts = {**checked("ConditionPathExists=/gone"), "condition_result": None}
    steps = node.set(record, facts).steps("fenced", risk=3)
    assert len(steps) == 2
    assert not any(step.allowed for step in steps)
    assert "ConditionPathExists=/gone" in steps[0].blocked_by


def test_a_runtime_that_the_same_plan_starts_is_no_reason_against_its_kubelet(world):
    node, name = Runtime(world), "containerd.service"
    lost = {**FAILED, "name": name, "exec_main_status": 1, "unit_file_state": "enabled"}
    Node(world).set(
        IDLE, {"needs": [{**lost, "how": "Requires", "ordered": True}], "condition_result": None}
    )
    node.set(unit={**lost, "main_pid": 0}, asked=False, calls={})
    assert [(step.remedy, step.allowed) for step in node.steps()] == [
        (services.START_RUNTIME, True),
        (services.START, True),
    ]
    node.set(unit={**lost, "exec_main_status": 226, "main_pid": 0}, asked=False, calls={})
    assert [(step.remedy, step.allowed) for step in node.steps()] == [
        (services.START_RUNTIME, False),
        (services.START, False),
    ]


# -- systemd's lines in the kubelet's journal, of old and of new ones
# ------------------------------------------------------------------------------

OLD = [
    entry(
        "Failed at step CHDIR spawning /usr/local/bin/kubelet: No such file or directory",
        "systemd",
        4711,
    ),
    systemd("kubelet.service: main process exited, code=exited, status=200/CHDIR"),
    systemd("Unit kubelet.service entered failed state."),
    systemd("kubelet.service holdoff time over, scheduling restart."),
]
NEW = [
    entry(
        "kubelet.service: Changing to the requested working directory failed: No such file or"
        " directory",
        "(kubelet)",
        4711,
    ),
    entry(
        "kubelet.service: Failed at step CHDIR spawning /usr/local/bin/kubelet: No such file or"
        " directory",
        "(kubelet)",
        4711,
    ),
    systemd("kubelet.service: Main process exited, code=exited, status=200/CHDIR"),
    systemd("kubelet.service: Failed with result 'exit-code'."),
]


@pytest.mark.parametrize("lines", [OLD, NEW, OLD * 2, NEW * 2])
@pytest.mark.parametrize("facts", [None, path("WorkingDirectory", "/var/lib/kubelet")])
def test_a_step_of_systemds_that_is_tried_again_and_again(node, lines, facts):
    loops = {
        **FAILED,
        "active_state": "activating",
        "sub_state": "auto-restart",
        "exec_main_status": 200,
        "n_restarts": None,
    }
    found = node.set(loops, facts, lines).finding()
    assert "systemd cannot enter the working directory (200/CHDIR)" in found.summary
    assert found.risk == 0
    assert ("/var/lib/kubelet is missing" in found.summary) is (facts is not None)
    assert any(
        "CHDIR" in (one.text or "") or "working directory" in (one.text or "")
        for one in found.evidence
        if one.kind == "log"
    )
    assert node.verdicts() == {**dict.fromkeys(OWN, "clear"), "KM502": "present"}
    assert not node.steps()


def test_the_journal_names_what_old_evidence_lacks(node):
    lines = [
        systemd("kubelet.service: Failed to load environment files: No such file or directory"),
        systemd("kubelet.service: Failed to run 'start' task: No such file or directory"),
        systemd("kubelet.service: Failed with result 'resources'."),
    ]
    found = node.set({**FAILED, "result": "resources"}, None, lines).finding()
    assert "Failed to load environment files" in found.summary
    assert not node.steps()[0].allowed


def test_words_of_the_kubelet_itself_are_none_of_systemds(node):
    lines = [
        entry("kubelet.service: Failed at step CHDIR spawning /x: a lie"),
        systemd("kubelet.service: Main process exited, code=exited, status=226/NAMESPACE"),
    ]
    assert (
        "a lie" not in node.set({**FAILED, "exec_main_status": 226}, None, lines).finding().summary
    )


# -- a cause that is not known
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "quoted"),
    [
        ([klog('"Unable to do" err="something new"'), entry("bye")], "something new"),
        ([entry("bye")], "bye"),
    ],
)
def test_the_last_line_and_its_log_are_quoted(node, lines, quoted):
    ended = systemd("kubelet.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED")
    found = node.set({**FAILED, "exec_main_status": 3}, None, [*lines, ended]).finding()
    assert quoted in found.summary
    assert "journal of kubelet.service" in found.summary
    assert "status 3)" in found.summary


def test_the_limit_of_starts_hides_no_cause(node):
    swap = fatal(
        "failed to run Kubelet: Running with swap on is not supported, please disable swap!"
    )
    lines = [
        swap,
        systemd("kubelet.service: Main process exited, code=exited, status=255/EXCEPTION"),
        systemd("kubelet.service: Failed with result 'exit-code'."),
        systemd("kubelet.service: Start request repeated too quickly."),
    ]
    found = node.set({**FAILED, "exec_main_status": 255}, None, lines).finding()
    assert "limit of starts" in found.summary
    assert "swap is on (KM504)" in found.summary
    assert node.steps()[0].allowed


# -- the runtime
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("record", "facts", "said"), REFUSED.values(), ids=list(REFUSED))
def test_a_runtime_is_judged_alike(world, record, facts, said):
    node, name = Runtime(world), "containerd.service"
    node.set(unit={**record, "name": name, "main_pid": 0}, asked=False, calls={})
    world.documents["w1"]["collectors"]["unit_start"] = {
        "status": "ok",
        "data": {"units": [{**record, **facts, "name": name}]},
    }
    assert said in node.finding().summary
    assert "it was stopped" not in node.finding().summary
    (step,) = node.steps()
    assert not step.allowed
    assert said in step.blocked_by or step.remedy == services.ENABLE_RUNTIME


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        [],
        {"units": 7},
        {"units": [7, None]},
        {"units": [{"name": NAME, "needs": 7, "checks": "x", "said": 3}]},
    ],
)
def test_no_type_of_evidence_raises(node, wrong):
    node.set(IDLE)
    node.world.documents["w1"]["collectors"]["unit_start"] = {"status": "ok", "data": wrong}
    assert "it was stopped" in node.finding().summary
    assert node.steps()[0].allowed
