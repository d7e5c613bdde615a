# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet brought back: in which steps, and what stands in their way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    services,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_kubelet_messages import AGAIN, ended, failed
from tests.unit.support.fake_limits import Node as Limits

DOWN = {"active_state": "inactive", "sub_state": "dead", "result": "success"}
ALLOW = "-e kubemend_allow="
ENABLE, START = services.ENABLE, services.START


class Node:
    """w1, whose kubelet is disabled."""

    def __init__(self, world):
        self.world = world
        self.set(unit_file_state="disabled", sub_state="running", result="success")

    def set(self, host="w1", **changes):
        unit = self.world.data("w1", "kubelet")["unit"]
        self.world.data(host, "kubelet")["unit"] = {**unit, **changes}

    def api_node(self):
        return next(one for one in self.world.data("api", "nodes")["items"] if one["name"] == "w1")

    def steps(self, *allow, max_risk=2, stopped=()):
        """Make a case.

        stopped: hosts of which KM502 is found too
        """
        documents = self.world.documents
        result, clusters = fault_engine.evaluate_clusters(
            [*documents.values(), *([self.world.api] if self.world.api else [])],
            faults=frozenset(("KM501",)),
        )
        findings = list(result.findings)
        for host in stopped:
            found = next((one for one in findings if one.host == host), None)
            node = {"host": host, "node": host, "component": "kubelet", "code": "KM502"}
            findings.insert(0, replace(found or findings[0], **node))
        return plan.plan(
            findings,
            clusters,
            documents.__getitem__,
            plan.Consent(max_risk, frozenset(allow)),
            services.REMEDIES,
            fault_engine.KEY_DIGITS,
        )

    def told(self, *allow, **more):
        return [(step.remedy, step.code, step.allowed) for step in self.steps(*allow, **more)]

    def blocked(self, *allow, **more):
        (why,) = {step.blocked_by for step in self.steps(*allow, **more)}
        return why


@pytest.fixture
def node(world):
    return Node(world)


def test_a_kubelet_that_runs_is_enabled(node):
    (step,) = node.steps(max_risk=1)
    assert (step.id, step.host, step.node, step.code, step.cluster) == (
        "01-w1-enable-kubelet",
        "w1",
        "w1",
        "KM501",
        "c0ffee" + "0" * 10,
    )
    assert (step.remedy, step.risk, step.target, step.component) == (
        ENABLE,
        1,
        "kubelet.service",
        "kubelet",
    )
    assert step.allowed
    assert step.change == {
        "kind": ENABLE,
        "path": "enablement of kubelet.service",
        "unit": "kubelet.service",
        "former": "disabled",
    }
    assert step.diff == "systemctl is-enabled kubelet.service: disabled -> enabled\n"
    assert "a revert disables it again" in step.note


def test_one_that_is_down_is_started_too(node):
    node.set(**DOWN)
    enable, start = node.steps()
    assert (enable.remedy, start.remedy, start.risk) == (
        ENABLE,
        START,
        2,
    )
    assert start.diff == "systemctl is-active kubelet.service: inactive -> active\n"
    assert start.change["former"] is None
    assert "a revert leaves it running" in start.note
    assert start.change["unit"] == "kubelet.service"
    assert "ends pods that were replaced" in start.note
    assert "daemon-reload" not in start.note
    assert [(step.allowed, step.blocked_by) for step in node.steps(max_risk=1)] == [
        (True, None),
        (False, "risk 2 needs -e kubemend_max_risk=2"),
    ]


def test_two_findings_of_one_kubelet_are_one_start(node):
    node.set(**DOWN)
    assert node.told(stopped=["w1"]) == [(ENABLE, "KM501", True), (START, "KM501", True)]
    enable, start = node.steps(stopped=["w1"])
    assert (enable.codes, start.codes) == (("KM501",), ("KM501", "KM502"))
    assert [step.codes for step in node.steps()] == [("KM501",), ("KM501",)]


def test_one_that_is_enabled_and_down_is_started(node):
    node.set("m2", **DOWN, unit_file_state="enabled")
    assert node.told(stopped=["m2"]) == [(START, "KM502", True), (ENABLE, "KM501", True)]


def test_control_plane_hosts_come_first(node):
    node.set(**DOWN)
    node.world.documents["a-worker"] = {**node.world.documents.pop("w1"), "host": "a-worker"}
    node.world.data("m2", "kubelet")["unit"] = node.world.data("a-worker", "kubelet")["unit"]
    assert [(step.host, step.remedy) for step in node.steps()] == [
        ("m2", ENABLE),
        ("m2", START),
        ("a-worker", ENABLE),
        ("a-worker", START),
    ]


@pytest.mark.parametrize(
    ("changes", "starts"),
    [
        ({"active_state": "activating", "sub_state": "auto-restart", "result": "exit-code"}, False),
        ({"active_state": "activating", "sub_state": "start"}, False),
        ({"active_state": "deactivating", "sub_state": "stop-sigterm"}, False),
        ({"active_state": "failed", "sub_state": "failed", "result": "exit-code"}, True),
        ({"active_state": "failed", "sub_state": "failed", "result": "start-limit-hit"}, True),
        (DOWN, True),
    ],
)
def test_a_start_is_planned_only_where_nothing_else_starts_it(node, changes, starts):
    node.set(**changes)
    assert [step.remedy for step in node.steps()] == [ENABLE] + [START] * starts
    node.set(**changes, unit_file_state="enabled")
    node.set("m1", unit_file_state="disabled", active_state="active")
    assert [step.remedy for step in node.steps(stopped=["w1"]) if step.host == "w1"] == [
        START
    ] * starts


def test_what_else_a_start_brings_is_said(node):
    node.set(
        **{**DOWN, "active_state": "failed", "result": "start-limit-hit"}, need_daemon_reload=True
    )
    note = node.steps()[1].note
    assert "starts as they were before, until systemctl daemon-reload" in note
    assert "ended too often before, and may again" in note


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit_file_state": "linked"}, "its file is linked into systemd's folders"),
        ({"unit_file_state": "transient"}, "gone after a boot"),
        ({"unit_file_state": "bad"}, "systemd cannot read its file"),
    ],
)
def test_what_enable_does_not_mend_is_left(node, change, said):
    node.set(**DOWN, **change)
    (step,) = node.steps()
    assert said in step.blocked_by
    assert "systemctl cat kubelet.service" in step.blocked_by
    assert not step.allowed
    assert node.told(stopped=["w1"]) == [(ENABLE, "KM501", False), (START, "KM502", True)]


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("k3s.service", DOWN, None),
        ("k3s-agent.service", {}, None),
        ("rke2-agent.service", {}, None),
        ("rke2-server.service", DOWN, "which one is this node's cannot be determined"),
        (
            "snap.microk8s.daemon-kubelite.service",
            DOWN,
            "snap start --enable microk8s.daemon-kubelite",
        ),
        ("kubelet-custom.service", {}, "none that is known here"),
    ],
)
def test_units_of_other_installers(node, name, changes, said):
    node.set(name=name, **changes)
    assert node.blocked() == said if said is None else said in node.blocked()


def test_a_masked_kubelet_is_not_enabled_or_started_beside_its_mask(node):
    node.set(**DOWN, unit_file_state="masked", load_state="masked")
    node.set("m1", unit_file_state="disabled", load_state="loaded", active_state="active")
    assert [step.host for step in node.steps("fenced", stopped=["w1"])] == ["m1"]


MASK = "/etc/systemd/system/kubelet.service"
MASKED = {"unit_file_state": "masked", "load_state": "masked"}
BEHIND = {
    "links": [{"path": MASK, "to": "/dev/null"}],
    "file": "/usr/lib/systemd/system/kubelet.service",
    "wanted": True,
}
UNMASK = services.UNMASK


class Masked(Node):
    """w1, whose kubelet is masked and down."""

    proven = True

    def mask(self, mask, **changes):
        self.set(
            **{
                **DOWN,
                **MASKED,
                "mask": {**BEHIND, **mask} if isinstance(mask, dict) else mask,
                **changes,
            }
        )
        return self

    def steps(self, *allow, max_risk=3, stopped=()):
        documents = self.world.documents
        result, clusters = fault_engine.evaluate_clusters(
            [*documents.values(), *([self.world.api] if self.world.api else [])],
            faults=frozenset(("KM501", "KM502", "KM503")),
        )
        findings = [one if self.proven else replace(one, node=None) for one in result.findings]
        return plan.plan(
            findings,
            clusters,
            documents.__getitem__,
            plan.Consent(max_risk, frozenset(allow)),
            services.REMEDIES,
            fault_engine.KEY_DIGITS,
        )


@pytest.fixture
def masked(world):
    return Masked(world).mask({})


def test_a_masked_kubelet_is_untouched_until_that_is_allowed(masked):
    facts(masked.blocked(), "kubelet", "w1", "masked", ALLOW + "fenced")
    assert {step.blocked_by for step in masked.steps("fenced", max_risk=2)} == {
        "risk 3 needs -e kubemend_max_risk=3"
    }
    unmask, start = masked.steps("fenced")
    assert (
        unmask.remedy,
        unmask.code,
        unmask.risk,
        unmask.allowed,
        start.remedy,
        start.risk,
        start.allowed,
    ) == (UNMASK, "KM503", 3, True, START, 3, True)
    assert unmask.diff == f"--- {MASK} -> /dev/null\n"
    assert unmask.guard == {"allow": ["fenced"]}
    assert "daemon-reload, which is refused where pods with" in unmask.note
    assert unmask.change == {
        "kind": UNMASK,
        "path": MASK,
        "unit": "kubelet.service",
        "to": "/dev/null",
    }
    assert "masks it again" in unmask.note
    assert start.change["unit"] == "kubelet.service"
    assert start.diff == "systemctl is-active kubelet.service: inactive -> active\n"


@pytest.mark.parametrize(
    ("mask", "changes", "remedies"),
    [
        ({"wanted": False}, {}, [UNMASK, ENABLE, START]),
        ({"wanted": False}, {"active_state": "active", "sub_state": "running"}, [UNMASK, ENABLE]),
        ({}, {"active_state": "active", "sub_state": "running"}, [UNMASK]),
        ({}, {"active_state": "failed", "result": "exit-code"}, [UNMASK, START]),
        (
            {"links": [{"path": "/run/systemd/system/kubelet.service", "to": "/dev/null"}]},
            {"unit_file_state": "masked-runtime"},
            [UNMASK, START],
        ),
    ],
)
def test_what_follows_once_it_is_unmasked(masked, mask, changes, remedies):
    steps = masked.mask(mask, **changes).steps("fenced")
    assert [step.remedy for step in steps] == remedies
    assert all(step.allowed and step.risk == 3 for step in steps)
    assert {step.change["former"] for step in steps if step.remedy == ENABLE} <= {"disabled"}


def test_a_start_behind_a_mask_is_by_what_systemd_has_read_anew(masked):
    unmask, start = masked.mask({}, need_daemon_reload=True).steps("fenced")
    assert "daemon-reload" in unmask.note
    assert "daemon-reload" not in start.note


@pytest.mark.parametrize(
    ("mask", "changes", "said"),
    [
        (
            {"links": [{"path": MASK, "to": None}]},
            {},
            "is an empty file, which a power cut may have left",
        ),
        ({"links": []}, {}, "systemctl daemon-reload, then"),
        (
            {"links": [{"path": MASK, "to": "/dev/null"}, {"path": "/run/x", "to": "/dev/null"}]},
            {},
            "it is masked twice, by " + MASK + " and /run/x",
        ),
        ({"file": None}, {}, "may have removed the kubelet too"),
        ({}, {"name": "rke2-server.service"}, "which one is this node's cannot be determined"),
        ({}, {"name": "snap.microk8s.daemon-kubelite.service"}, "snap start --enable"),
        ({}, {"name": "other.service"}, "none that is known here"),
        (None, {}, "does not say where the mask lies"),
    ],
)
def test_a_mask_that_is_not_one_link_is_left(masked, mask, changes, said):
    why = masked.mask(mask, **changes).blocked("fenced")
    assert said in why
    assert not any(step.allowed for step in masked.steps("fenced"))


def test_a_mask_of_another_type_is_unknown_and_plans_nothing(masked):
    assert not masked.mask(["x"]).steps("fenced")


def test_another_sign_beside_the_mask_keeps_it(masked):
    masked.api_node().update(unschedulable=True, cordon=None)
    assert masked.blocked("fenced").startswith(
        "another client cordoned w1, and its kubelet is masked too: nothing here unmasks it then"
    )
    masked.api_node().update(
        unschedulable=False,
        taints=[
            {
                "key": "node.kubernetes.io/out-of-service",
                "value": "nodeshutdown",
                "effect": "NoExecute",
            }
        ],
    )
    assert "out-of-service" in masked.blocked("fenced")
    assert "masked too" in masked.blocked("fenced")
    masked.world.data("api", "nodes")["items"].remove(masked.api_node())
    assert "the Node object of w1 is gone" in masked.blocked("fenced")
    assert "masked too" in masked.blocked("fenced")


def test_a_masked_kubelet_stays_so_while_the_api_is_silent(masked):
    masked.world.api = None
    for allow in ((), ("fenced",), ("api_down",), ("api_down", "fenced")):
        why = masked.blocked(*allow)
        assert "no API server answers, so that it is unknown" in why
        assert "its kubelet is masked too: nothing here unmasks it then" in why
        assert ALLOW not in why


def test_a_masked_kubelet_stays_so_while_its_node_is_not_proven(masked):
    masked.proven = False
    why = masked.blocked("fenced")
    assert why.startswith("which Node w1 is was not proven, so that it is unknown")
    assert "nothing here unmasks it then" in why
    assert ALLOW not in why
    masked.world.api = None
    assert "no API server answers" in masked.blocked("fenced", "api_down")


def test_a_node_that_somebody_took_out(node):
    node.set(**DOWN)
    node.api_node().update(unschedulable=True, cordon=None)
    facts(node.blocked(), "cordoned", "w1", ALLOW + "fenced")
    assert node.blocked("fenced") is None
    node.world.data("api", "nodes")["items"].remove(node.api_node())
    assert "the Node object of w1 is gone" in node.blocked()
    assert node.blocked("fenced") is None


def test_one_that_is_only_down_is_not_started_on_a_node_that_somebody_took_out(node):
    node.set(**DOWN, unit_file_state="enabled")
    node.set("m1", unit_file_state="disabled")
    node.api_node().update(unschedulable=True, cordon=None)
    found = {step.host: step for step in node.steps(stopped=["w1"])}
    assert found["m1"].allowed
    facts(found["w1"].blocked_by, "cordoned", "w1", ALLOW + "fenced")
    assert {step.host: step.allowed for step in node.steps("fenced", stopped=["w1"])} == {
        "m1": True,
        "w1": True,
    }


def test_after_a_power_cut_nobody_can_tell(node):
    node.set(**DOWN)
    node.world.api = None
    assert "no API server answers" in node.blocked()
    assert node.blocked().endswith(ALLOW + "api_down")
    assert node.blocked("api_down") is None


def test_a_limited_run_leaves_others_alone(node):
    node.world.documents["w1"] = {**node.world.documents["w1"], "status": "not_asked"}
    facts(node.blocked(), "w1", "--limit")


@pytest.mark.parametrize(
    ("manifest", "waits"), [("--leader-elect=true", False), ("--leader-elect=false", True)]
)
def test_a_start_that_would_load_other_changes_waits(node, manifest, waits):
    node.set(unit_file_state="enabled")
    node.set("m2", **DOWN, unit_file_state="disabled")
    node.world.data("m2", "kubelet")["healthz"] = {"status": None, "body": None, "error": "refused"}
    node.world.manifest("m2", "kube-scheduler", manifest)
    assert [step.remedy for step in node.steps()] == [ENABLE] + [START] * (not waits)
    steps = node.steps(stopped=["m2"])
    assert [step.allowed for step in steps] == [True, not waits]
    if waits:
        assert (
            "changed while it was away: /etc/kubernetes/manifests/kube-scheduler.yaml"
            in steps[1].blocked_by
        )
        assert steps[1].blocked_by.endswith(ALLOW + "pending_changes")
        assert node.told("pending_changes") == [(ENABLE, "KM501", True), (START, "KM501", True)]


def test_a_manifest_of_a_component_that_does_not_run_is_no_reason_to_wait(node):
    node.set(unit_file_state="enabled")
    node.set("m2", **DOWN, unit_file_state="disabled")
    running = node.world.data("m2", "instances")["processes"]
    running[:] = [one for one in running if one["component"] != "kube-scheduler"]
    node.world.manifest("m2", "kube-scheduler", "--leader-elect=false")
    broken = next(
        one
        for one in node.world.data("m2", "manifests")["files"]
        if one["name"] == "kube-scheduler.yaml"
    )
    broken["text"] = "apiVersion: [\n"
    assert node.told() == [(ENABLE, "KM501", True), (START, "KM501", True)]


def test_after_a_power_cut_there_is_nothing_that_a_start_would_change(node):
    node.set(unit_file_state="enabled")
    node.set("m2", **DOWN, unit_file_state="disabled")
    node.world.data("m2", "instances")["processes"].clear()
    node.world.manifest("m2", "kube-scheduler", "--leader-elect=false")
    assert [step.remedy for step in node.steps()] == [ENABLE, START]


# Lines with which kubelets end (tests/messages/public.tsv has where they come from), and what
# another start would do.
GAVE_UP = {"active_state": "failed", "sub_state": "failed", "result": "start-limit-hit"}
ENDS_AGAIN = (
    "failed to construct kubelet dependencies: unable to load client CA file"
    " /etc/kubernetes/ca.crt: open /etc/kubernetes/ca.crt: no such file or directory",
    "failed to run Kubelet: unable to load bootstrap kubeconfig: stat"
    " /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory",
    "unknown flag: --cni-bin-dir",
    "failed to validate kubelet flags: the container runtime endpoint address was not specified or"
    " empty, use --container-runtime-endpoint to set",
    "failed to run Kubelet: mkdir /var/lib/kubelet/pki: no space left on device",
    "failed to run Kubelet: mkdir /sys/fs/cgroup/kubepods: read-only file system",
    "failed to run Kubelet: could not detect number of cpus",
    "failed to run Kubelet: failed to start OOM watcher: open /dev/kmsg: operation not permitted",
    "failed to run Kubelet: start cpu manager error: could not restore state from checkpoint: x,"
    " please drain this node and delete the CPU manager checkpoint file"
    ' \\"/var/lib/kubelet/cpu_manager_state\\" before restarting Kubelet',
    "failed to run Kubelet: checkpoint is corrupted",
    "failed to run Kubelet: component globals of default already registered",
    "failed to run Kubelet: listen tcp 0.0.0.0:10250: bind: address already in use",
    "failed to run Kubelet: kubelet is configured to not run on a host using cgroup v1",
)
MAY_START = (
    "failed to run Kubelet: cannot create certificate signing request: Post x: dial tcp"
    " 10.0.0.9:6443: connect: connection refused",
    "failed to run Kubelet: validate service connection: context deadline exceeded",
    "failed to run Kubelet: Get x: dial tcp: lookup api.example.org: no such host",
    "failed to run Kubelet: something new",
    "failed to run Kubelet: running with swap on is not supported, please disable swap or set"
    " --fail-swap-on flag to false",
    "failed to run Kubelet: error creating fsnotify watcher: too many open files",
)


def ends(node, error, **unit):
    """Let the kubelet of w1 end with this error."""
    node.set(**{**GAVE_UP, "exec_main_status": 1, **unit}, unit_file_state="enabled")
    node.set("m1", unit_file_state="disabled", active_state="active")
    lines = [*AGAIN, failed(error), *ended(1)]
    data = {"unit": "kubelet.service", "lines": lines}
    node.world.documents["w1"]["collectors"]["kubelet_end"] = {"status": "ok", "data": data}


def start_of(node, **more):
    (step,) = [step for step in node.steps(stopped=["w1"], **more) if step.host == "w1"]
    assert step.remedy == START
    return step


@pytest.mark.parametrize("error", ENDS_AGAIN)
def test_no_start_where_another_one_would_end_as_the_last_one_did(node, error):
    ends(node, error)
    step = start_of(node)
    assert not step.allowed
    assert "another start would end as the last one did" in step.blocked_by


@pytest.mark.parametrize("error", MAY_START)
def test_a_start_where_the_cause_may_have_passed(node, error):
    ends(node, error)
    assert start_of(node).allowed


def test_a_last_line_that_is_not_known_for_certain_keeps_no_start_back(node):
    ends(node, ENDS_AGAIN[0], exec_main_status=2)
    assert start_of(node).allowed


def test_a_kubelet_that_was_stopped_is_started_whatever_ended_it_before(node):
    ends(node, ENDS_AGAIN[0], **DOWN)
    assert start_of(node).allowed


def test_one_that_would_end_again_is_enabled_alone(node):
    ends(node, ENDS_AGAIN[0])
    node.set(unit_file_state="disabled")
    enable = next(step for step in node.steps() if step.host == "w1")
    assert (enable.remedy, enable.allowed) == (ENABLE, True)
    assert "another start would end" in enable.note
    assert START not in [step.remedy for step in node.steps() if step.host == "w1"]


def test_no_start_while_the_fault_that_ended_it_is_still_there(node):
    ends(node, MAY_START[-1])
    Limits(node.world).used_up()
    step = start_of(node)
    assert not step.allowed
    assert "KM402, which is still there" in step.blocked_by
