# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel setting raised: to what, in which step, and what stands in its way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    limits as model_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    EVENTS,
    FILE_MAX,
    INSTANCES,
    NR_OPEN,
    PID_MAX,
    WATCHES,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    kernel_settings,
    login_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variables
from tests.unit.support.facts import facts
from tests.unit.support.file_evidence import named_record

OURS = "/etc/sysctl.d/99-zz-kubemend.conf"
ALLOW = "-e kubemend_allow="


class Node:
    """w1, whose root cannot make another inotify instance."""

    def __init__(self, world):
        self.world, self.document = world, world.documents["w1"]
        self.files = []
        self.seen = {
            "kernel": {
                FILE_MAX: "100000",
                NR_OPEN: "1048576",
                INSTANCES: "128",
                WATCHES: "65536",
                EVENTS: "16384",
                PID_MAX: "32768",
            },
            "file_nr": [10, 100000],
            "inotify": {"instance": "EMFILE", "opened": 0, "watch": None, "uid": 0},
            "init": None,
            "processes": [],
            "units": [],
            "sysctl_files": self.files,
            "limits_files": [],
            "pam": [],
        }
        self.document["collectors"]["limits"] = {"status": "ok", "data": self.seen}

    def holds(self, *rows):
        self.document["collectors"]["descriptors"] = {
            "status": "ok",
            "data": {
                "processes": 9,
                "denied": 0,
                "complete": True,
                "uids": [],
                "nofile": [],
                "inotify": [
                    {"pid": pid, "comm": "app", "uid": 0, "instances": count, "watches": 0}
                    for pid, count in rows
                ],
            },
        }

    def sysctl(self, *files):
        self.files += [named_record(path, text) for path, text in files]
        return self

    def api_node(self):
        return next(one for one in self.world.data("api", "nodes")["items"] if one["name"] == "w1")

    def steps(self, *allow, max_risk=1, **limits):
        documents = self.world.documents
        result, found = fault_engine.evaluate_clusters(
            [*documents.values(), self.world.api], deep=True
        )
        consent = plan.Consent(
            max_risk,
            frozenset(allow),
            limits={key_of(name): value for name, value in limits.items()},
        )
        return plan.plan(
            result.findings,
            found,
            documents.__getitem__,
            consent,
            kernel_settings.REMEDIES,
            fault_engine.KEY_DIGITS,
        )

    def step(self, *allow, **more):
        (found,) = self.steps(*allow, **more)
        return found


def test_control_plane_hosts_come_first_whatever_their_names(world):
    """The way back of a worker may need an API server."""
    node = Node(world)
    other = {**world.documents.pop("w1"), "host": "a-worker"}
    world.documents["a-worker"] = other
    world.documents["m2"]["collectors"]["limits"] = {"status": "ok", "data": node.seen}
    assert [step.host for step in node.steps()] == ["m2", "a-worker"]


def key_of(name):
    return {variable: key for key, variable in model_limits.VARIABLES.items()}["kubemend_" + name]


@pytest.fixture
def node(world):
    return Node(world)


def raised(step):
    return step.change["settings"]


def test_the_step(node):
    step = node.step()
    assert (step.id, step.host, step.node, step.code) == (
        "01-w1-kernel-setting-fs.inotify.max-user-instances",
        "w1",
        "w1",
        "KM402",
    )
    assert (step.remedy, step.risk, step.target, step.component, step.limit) == (
        "kernel_setting",
        1,
        OURS,
        INSTANCES,
        60,
    )
    assert step.change == {"kind": "kernel_setting", "path": OURS, "settings": {INSTANCES: 8192}}
    assert step.diff == f"--- {OURS}\n+++ {OURS}\n+{INSTANCES} = 8192\nthe kernel: 128 -> 8192\n"
    assert step.allowed
    assert step.blocked_by is None
    assert step.note == ""
    assert step.cluster == "c0ffee" + "0" * 10


def test_without_consent(node):
    step = node.step(max_risk=0)
    assert plan.only_risk(step)
    facts(step.blocked_by, "risk 1", "-e kubemend_max_risk=1")


def test_nothing_to_do(node):
    node.seen["inotify"]["instance"] = None
    assert node.steps() == ()


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        ({}, "KM402", {INSTANCES: 8192}),
        ({"inotify": {"instance": None, "watch": "ENOSPC", "uid": 0}}, "KM403", {WATCHES: 524288}),
        (
            {"inotify": {"instance": None, "watch": None, "uid": 0}, "file_nr": [99000, 100000]},
            "KM405",
            {FILE_MAX: 2097152},
        ),
    ],
)
def test_each_limit_that_is_used_up(node, change, code, expected):
    node.seen.update(change)
    assert (node.step().code, raised(node.step()), node.step().allowed) == (code, expected, True)


def test_one_process_that_holds_most_gets_time(node):
    node.holds((7, 100))
    assert (node.step().code, raised(node.step())) == ("KM401", {INSTANCES: 8192})


@pytest.mark.parametrize(("asked", "expected"), [(16000, 16000), (256, 256)])
def test_the_variable_says_how_much(node, asked, expected):
    assert raised(node.step(inotify_instances=asked)) == {INSTANCES: expected}
    assert raised(node.step(inotify_watches=asked)) == {INSTANCES: 8192}


def test_every_variable_is_one():
    assert set(model_limits.VARIABLES.values()) < set(variables.VARIABLES)
    assert set(model_limits.VARIABLES) == {*model_limits.TARGETS, *login_limits.TARGETS}


# Never below


def test_never_below_what_runs(node):
    node.seen["kernel"][INSTANCES] = "500"
    step = node.step(inotify_instances=256)
    assert raised(step) == {INSTANCES: 500}
    assert not step.allowed
    facts(step.blocked_by, INSTANCES, "500", "used up", "-e kubemend_inotify_instances=NUMBER")


def test_never_below_what_runs_where_nothing_says_so(node):
    node.seen["inotify"] = {"instance": None, "watch": "ENOSPC", "uid": 0}
    assert raised(node.step(inotify_watches=9000)) == {WATCHES: 65536}


@pytest.mark.parametrize(
    "files",
    [
        [("/etc/sysctl.d/10-a.conf", "20000")],
        [("/usr/lib/sysctl.d/10-a.conf", "20000")],
        [("/etc/sysctl.conf", "20000")],
        # overridden, and meant all the same
        [("/etc/sysctl.d/10-a.conf", "20000"), ("/etc/sysctl.d/20-b.conf", "512")],
        [(OURS, "20000")],
    ],
)
def test_never_below_what_a_file_says(node, files):
    node.sysctl(*((path, f"{INSTANCES} = {value}\n") for path, value in files))
    assert all(raised(step) == {INSTANCES: 20000} and step.allowed for step in node.steps())


@pytest.mark.parametrize("value", ["99999999999", "-1", "much"])
def test_what_the_kernel_does_not_take_is_not_written(node, value):
    assert raised(node.sysctl(("/etc/sysctl.d/10-a.conf", f"{INSTANCES} = {value}\n")).step()) == {
        INSTANCES: 8192
    }


def test_a_vendors_value_that_somebody_lowered_stays_lowered(node):
    node.sysctl(
        ("/usr/lib/sysctl.d/10-a.conf", f"{INSTANCES} = 20000\n"),
        ("/etc/sysctl.d/20-b.conf", f"{INSTANCES} = 128\n"),
    )
    assert raised(node.step()) == {INSTANCES: 8192}


def test_used_up_at_the_target_already(node):
    node.seen["kernel"][INSTANCES] = "8192"
    step = node.sysctl(("/etc/sysctl.d/10-a.conf", f"{INSTANCES} = 8192\n")).step()
    assert not step.allowed
    assert "is 8192 already, and it is used up" in step.blocked_by
    assert "-e kubemend_inotify_instances=NUMBER" in step.blocked_by
    assert "the kernel:" not in step.diff
    step = node.step(inotify_instances=16384)
    assert step.allowed
    assert raised(step) == {INSTANCES: 16384}


# What is read after ours


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{0} = 200", "{0} = 8192"),
        (" -{0}=200 ", "-{0}=8192"),
        ("fs/inotify/max_user_instances\t=\t0x80\r", "fs/inotify/max_user_instances\t=\t8192"),
        ("{0} =", "{0} =8192"),
    ],
)
def test_a_later_line_that_says_less_is_raised_where_it_stands(node, old, new):
    path, old, new = "/etc/sysctl.d/99-zzz.conf", old.format(INSTANCES), new.format(INSTANCES)
    (step,) = [
        step for step in node.sysctl((path, f"# low\n{old}\n")).steps() if step.code == "KM402"
    ]
    assert step.allowed
    assert step.target == path
    assert step.change == {
        "kind": "kernel_setting",
        "path": path,
        "settings": {INSTANCES: 8192},
        "line": {"number": 2, "text": old},
    }
    assert step.diff == f"--- {path}\n+++ {path}\n-{old.strip()}\n+{new}\nthe kernel: 128 -> 8192\n"
    assert f"{path}:2 is read after {OURS} and says " in step.note
    assert f": it must read {new}; whatever writes {path} has to say so too" in step.note


@pytest.mark.parametrize("path", ["/usr/lib/sysctl.d/99-zzz.conf", "/run/sysctl.d/99-zzz.conf"])
def test_a_later_line_of_a_vendor_or_of_this_boot_is_named_and_nothing_is_written(node, path):
    (step,) = node.sysctl((path, f"# low\n{INSTANCES} = 200\n")).steps()
    assert not step.allowed
    facts(step.blocked_by, f"{path}:2", OURS, "200", f"sysctl -w {INSTANCES}=8192", "next boot")


def test_a_later_link_is_raised_in_the_file_that_it_leads_to(node):
    node.files.append(
        named_record(
            "/etc/sysctl.d/99-zzz.conf",
            f"{INSTANCES} = 200\n",
            kind="symlink",
            link="../app/limits.conf",
        )
    )
    assert node.step().target == "/etc/app/limits.conf"
    assert node.step().allowed
    node.files[-1]["link"] = "/usr/share/app/limits.conf"
    assert not node.step().allowed
    assert (
        "/etc/sysctl.d/99-zzz.conf:1 (/usr/share/app/limits.conf) is read after"
        in node.step().blocked_by
    )


@pytest.mark.parametrize(
    "text", ["{0} = 8192", "{0} = 20000", "fs.inotify.* = 5", "{0} = 5", "#{0} = 5"]
)
@pytest.mark.parametrize("name", ["/etc/sysctl.d/99-sysctl.conf", "/etc/sysctl.d/99-zzz.conf"])
def test_files_that_do_not_beat_ours(node, name, text):
    """Among managed lines the exact name counts before a pattern.

    The file 99-sysctl is read before 99-zz.
    """
    is_beaten = name.endswith("zzz.conf") and text == "{0} = 5"
    assert {step.target for step in node.sysctl((name, text.format(INSTANCES))).steps()} == {
        name if is_beaten else OURS
    }


def test_a_line_that_keeps_it_from_being_set(node):
    step = node.sysctl(("/etc/sysctl.d/99-zzz.conf", f"-{INSTANCES}\n")).step()
    assert step.blocked_by.startswith(
        f"/etc/sysctl.d/99-zzz.conf:1 (-{INSTANCES}, without a value) is read after {OURS}"
    )
    assert "put a # before that line; until then sysctl -w" in step.blocked_by


@pytest.mark.parametrize("text", ["{0} = 200", "-{0}"])
def test_our_own_file_as_it_was_beats_nothing(node, text):
    assert raised(node.sysctl((OURS, text.format(INSTANCES))).steps()[0]) == {INSTANCES: 8192}
    assert node.steps()[0].allowed


def test_sysctl_conf_is_read_last_by_hand(node):
    node.sysctl(("/etc/sysctl.conf", f"\n{INSTANCES} = 128\n"))
    node.files.append(
        named_record(
            "/etc/sysctl.d/99-sysctl.conf",
            f"\n{INSTANCES} = 128\n",
            kind="symlink",
            link="../sysctl.conf",
        )
    )
    step = node.step()
    assert step.allowed
    facts(step.note, "sysctl --system", "/etc/sysctl.conf:2", "128", f"{INSTANCES} = 8192")
    node.files[0]["text"] = node.files[1]["text"] = f"{INSTANCES} = 8192\n"
    assert {step.note for step in node.steps()} == {""}


def test_a_later_file_that_could_not_be_read_is_said(node):
    node.files += [
        named_record("/etc/sysctl.d/10-a.conf", None, error="denied"),
        named_record("/etc/sysctl.d/zz.conf", None, error="denied"),
    ]
    step = node.step()
    assert step.allowed
    facts(step.note, "/etc/sysctl.d/zz.conf", "not be read", "not known")


# KM407


@pytest.mark.parametrize(
    ("key", "running", "files", "expected"),
    [
        (INSTANCES, "8192", [], 8192),
        (INSTANCES, "8192", [("/etc/sysctl.d/10-a.conf", 512)], 8192),
        (INSTANCES, "128", [("/etc/sysctl.d/10-a.conf", 512)], 512),
        (
            WATCHES,
            "1000",
            [("/etc/sysctl.d/10-a.conf", 9000), ("/etc/sysctl.d/20-b.conf", 1000)],
            9000,
        ),
        (PID_MAX, "32768", [("/etc/sysctl.d/50-pid-max.conf", 4194304)], 4194304),
        (EVENTS, "40000", [("/etc/sysctl.conf", 40000)], 40000),
    ],
)
def test_what_would_not_last_is_written_as_it_is_meant_and_no_further(
    node, key, running, files, expected
):
    node.seen["inotify"]["instance"] = None
    node.seen["kernel"][key] = running
    step = node.sysctl(*((path, f"{key} = {value}\n") for path, value in files)).step()
    assert (step.code, step.component, raised(step)) == (
        "KM407",
        key,
        {key: expected},
    )
    assert step.allowed
    assert ("the kernel:" in step.diff) == (expected > int(running))


def test_two_findings_of_one_key_are_one_step(node):
    node.sysctl(("/etc/sysctl.d/10-a.conf", f"{INSTANCES} = 512\n"))
    # no file here speaks of ip_forward: KM520
    result, _clusters = fault_engine.evaluate_clusters(
        node.world.documents.values(), frozenset({"KM402", "KM407"})
    )
    assert {(item.code, item.component) for item in result.findings} == {
        ("KM402", INSTANCES),
        ("KM407", INSTANCES),
    }
    assert (node.step().code, raised(node.step())) == ("KM402", {INSTANCES: 8192})


def test_two_keys_are_two_steps(node):
    node.seen["kernel"][PID_MAX] = "5000"
    steps = node.sysctl(("/etc/sysctl.d/10-a.conf", f"{PID_MAX} = 6000\n")).steps()
    assert [raised(step) for step in steps] == [{INSTANCES: 8192}, {PID_MAX: 6000}]
    assert {step.target for step in steps} == {OURS}


# Who was taken out on purpose


def test_a_masked_kubelet(node):
    node.world.data("w1", "kubelet")["unit"]["load_state"] = "masked"
    facts(node.step().blocked_by, "kubelet", "w1", "masked", f"{ALLOW}fenced")
    assert node.step("fenced").allowed


def test_somebody_cordoned_it(node):
    node.api_node().update(unschedulable=True, cordon=None)
    facts(node.step().blocked_by, "cordoned", "w1", f"{ALLOW}fenced")
    assert node.step("fenced").allowed


@pytest.mark.parametrize(
    ("cordon", "allowed"),
    [({"run": "r", "held": False}, True), ({"run": "r", "held": True}, False)],
)
def test_our_own_cordon(node, cordon, allowed):
    node.api_node().update(unschedulable=True, cordon=cordon)
    assert node.step().allowed is allowed
    node.api_node()["unschedulable"] = False
    assert node.step().allowed


@pytest.mark.parametrize(
    ("taint", "means"),
    [
        (
            {
                "key": "node.kubernetes.io/out-of-service",
                "value": "nodeshutdown",
                "effect": "NoExecute",
            },
            "the node is declared dead",
        ),
        (
            {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"},
            "the cloud says that the instance is shut down",
        ),
        (
            {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"},
            "the node is being drained to be deleted",
        ),
    ],
)
def test_a_taint_that_fences(node, taint, means):
    node.api_node()["taints"] = [{"key": "caf", "effect": "NoExecute"}, taint]
    blocked = node.step().blocked_by
    assert blocked.startswith(f"w1 carries the taint {taint['key']}")
    assert means in blocked
    assert blocked.endswith(f"{ALLOW}fenced")
    assert node.step("fenced").allowed


@pytest.mark.parametrize(
    "listed",
    [
        None,
        [],
        [{"key": "caf", "value": "log", "effect": "NoExecute"}],
        [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}],
        [{"key": "node.kubernetes.io/out-of-service", "effect": "PreferNoSchedule"}],
    ],
)
def test_a_taint_that_fences_nobody(node, listed):
    node.api_node()["taints"] = listed
    assert node.step().allowed


@pytest.mark.parametrize(
    "change", [{"taints": 7}, {"taints": "x"}, {"taints": [None, 7]}, {"cordon": "x"}]
)
def test_a_node_of_another_type_forbids_it(node, change):
    node.api_node().update(change)
    assert not node.step().allowed


def test_the_taint_of_our_own_cordon_is_no_fence(node):
    node.api_node().update(
        unschedulable=True,
        cordon={"run": "r", "held": False},
        taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    )
    assert node.step().allowed


def test_a_node_that_is_gone(node):
    items = node.world.data("api", "nodes")["items"]
    items[:] = [one for one in items if one["name"] != "w1"]
    facts(node.step().blocked_by, "Node object", "w1", "gone", f"{ALLOW}fenced")
    assert node.step("fenced").allowed
    items.clear()
    assert "is gone" in node.step().blocked_by


def test_no_api_server(node):
    node.world.api = {
        **node.world.api,
        "status": "unreachable",
        "reason": "refused",
        "collectors": {},
    }
    facts(node.step().blocked_by, "no API server", "refused", f"{ALLOW}api_down")
    assert node.step("api_down").allowed
    assert not node.step("fenced").allowed


def test_only_who_names_a_host_takes_it_for_none_that_was_taken_out(node):
    """A finding is of a host without a kubelet and without a Node.

    No operator named that host, so it may well be one that was taken out.
    """
    node.world.api = {
        **node.world.api,
        "status": "unreachable",
        "reason": "refused",
        "collectors": {},
    }
    node.document["node"] = None
    node.document["collectors"]["kubelet"].update(status="absent", data=None)
    step = node.step()
    assert not step.allowed
    assert step.blocked_by.startswith("no API server answers (refused)")
    assert node.step("api_down").allowed


def test_what_is_allowed_already_is_named_again(node):
    """A variable that is given anew replaces what it was."""
    node.world.data("w1", "kubelet")["unit"]["unit_file_state"] = "masked"
    node.world.api = {**node.world.api, "status": "unreachable", "reason": "", "collectors": {}}
    assert node.step("api_down").blocked_by.endswith(f"{ALLOW}api_down,fenced")
    assert node.step("fenced").blocked_by.endswith(f"{ALLOW}api_down,fenced")
    assert node.step("api_down", "fenced").allowed


@pytest.mark.parametrize(
    "nodes",
    [
        {"status": "denied", "data": None},
        {"status": "ok", "data": {}},
        {"status": "ok", "data": {"items": None}},
    ],
)
def test_an_api_server_that_lists_no_nodes_tells_nothing(node, nodes):
    node.world.api["collectors"]["nodes"] = nodes
    assert node.step().blocked_by.startswith(
        "the API server did not list the nodes, so that it is unknown"
    )
    assert node.step("api_down").allowed


def test_every_word_that_lifts_something_is_one():
    assert {"fenced", "api_down"} <= set(variables.REFUSALS)


def scene(host, **more):
    """more: of the finding."""
    result, (cluster,) = fault_engine.evaluate_clusters(
        [*host.world.documents.values(), host.world.api]
    )
    finding = next(item for item in result.findings if item.code == "KM402")
    return plan.RemedyContext(replace(finding, **more), cluster, host.document, plan.Consent(1))


def test_a_host_that_limit_leaves_out(node):
    made = scene(node)
    made.cluster.hosts[:] = [
        replace(host, status="not_asked") if host.host == "w1" else host
        for host in made.cluster.hosts
    ]
    facts(kernel_settings.raised(made).blocked_by, "w1", "--limit")


@pytest.mark.parametrize("component", [None, NR_OPEN, "kernel.threads-max", "net.ipv4.ip_forward"])
def test_nothing_else_is_ever_raised(node, component):
    node.seen["kernel"].update({"kernel.threads-max": "5", "net.ipv4.ip_forward": "0"})
    assert kernel_settings.raised(scene(node, component=component)) is None


def test_a_host_whose_node_is_not_proven(node):
    assert kernel_settings.raised(scene(node, node=None)).blocked_by is None


@pytest.mark.parametrize(
    "wrong", [None, 7, "x", [], [7], {"items": 7}, {"items": [7, None, {"name": None}]}]
)
def test_an_odd_answer_of_the_api_is_no_answer(node, wrong):
    made = scene(node)
    made.cluster.api = {"nodes": {"status": "ok", "data": wrong}}
    assert kernel_settings.raised(made).blocked_by
