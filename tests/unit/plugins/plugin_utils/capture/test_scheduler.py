# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables: which leader may be sent a signal, by the evidence alone, and what a capture becomes."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    scheduler as capture_scheduler,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.outcome import Became
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    cache_dump,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    scheduler_capture as report_scheduler_capture,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.text_page import (
    Page,
    plain,
)
from tests.unit.plugins.plugin_utils.faults.scheduling.test_lost_nodes import (
    SHORT,
    versions,
    waiting,
    zoned,
)
from tests.unit.plugins.plugin_utils.models.scheduling.test_cache_dump import of_1_14
from tests.unit.support.facts import facts

RUN = "20261121T090000Z-1a2b3c"
NODES = ("m1", "m2", "m3", "w1")


@pytest.fixture
def lost(world):
    """Incident B, whose DaemonSet's pod waits for m3."""
    return struck(world)


def struck(world):
    versions(world, "v1.18.4")
    zoned(world, m1="200002", m2="200002", m3="200002", w1="200004")
    waiting(world)
    return world


def chosen(world, level=4):
    hosts = [fault_engine.extract(document) for document in world.documents.values()]
    return capture_scheduler.choose(
        fault_engine.assembled(hosts, [world.api] if world.api else []),
        level,
        fault_engine.KEY_DIGITS,
    )


def hold(world, holder, renewed="2027-01-15T08:00:00Z"):
    for server in world.data("api", "locks")["servers"]:
        for one in server["objects"]:
            if one["name"] == "kube-scheduler":
                one.update(holder=holder, renew_time=renewed)


def scheduler_of(world, host):
    return next(
        one
        for one in world.data(host, "instances")["processes"]
        if one["component"] == "kube-scheduler"
    )


def test_the_one_that_holds_the_lock_is_captured(lost):
    hold(lost, "m2_8c2f")
    (one,), notes = chosen(lost)
    process = scheduler_of(lost, "m2")
    assert (one["host"], one["version"], one["faulty"], one["former"], one["nodes"], notes) == (
        "m2",
        "v1.18.4",
        True,
        0,
        list(NODES),
        [],
    )
    assert one["process"] == {
        "pid": process["pid"],
        "started_at": process["started_at"],
        "argv": process["argv"],
    }
    assert one["heard"] == [
        {"message": SHORT, "waiting": ["kube-system/agent-x"], "targets": ["m3"]}
    ]
    assert capture_scheduler.wish(one, 60).startswith(
        "the log level of kube-scheduler of m2 0 -> 4 for 60 s"
    )


def test_a_pod_whose_selector_leaves_one_node_waits_for_it(lost):
    (entry,) = lost.data("api", "pending")["items"]
    entry.update(targets=[], off=["m1", "m2", "w1"])
    assert chosen(lost)[0][0]["heard"] == [
        {"message": SHORT, "waiting": ["kube-system/agent-x"], "targets": ["m3"]}
    ]
    entry.update(off=["m1", "m2"])
    assert chosen(lost)[0][0]["heard"][0]["targets"] == []


def nothing_waits(world):
    world.data("api", "pending")["items"].clear()


def no_message(world):
    world.data("api", "pending")["items"][0]["message"] = (
        "pod has unbound immediate PersistentVolumeClaims"
    )


def of_another(world):
    world.data("api", "pending")["items"][0]["scheduler"] = "batch"


def api_down(world):
    world.api.update(status="error", reason="refused", collectors={})


def stale(world):
    hold(world, "m1_x", "2027-01-15T07:00:00Z")
    for item in world.data("api", "nodes")["items"]:
        item["ready"] = "Unknown"


def no_static_pod(world):
    scheduler_of(world, "m1")["static"] = False


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (nothing_waits, "no pod waits there"),
        (no_message, "no pod waits there"),
        (of_another, "no kube-scheduler that serves them"),
        (api_down, "does not say which pods wait (refused)"),
        (stale, "no process is seen to renew"),
        (lambda world: hold(world, "elsewhere_1"), "no scheduler of these"),
        (lambda world: hold(world, ""), "no scheduler of these"),
        (no_static_pod, "no static pod"),
        (lambda world: versions(world, "v1.13.12"), "is v1.13.12"),
    ],
)
def test_nothing_is_captured_and_the_reason_is_one_note(lost, change, why):
    change(lost)
    captures, notes = chosen(lost)
    assert captures == []
    assert len(notes) == 1
    assert why in notes[0]
    assert notes[0].startswith("kubemend_capture: nothing is captured of cluster ")


def test_hosts_of_no_cluster(lost):
    lost.leave_kubernetes()
    captures, (note,) = chosen(lost)
    assert captures == []
    assert "no host proved" in note


def test_of_an_unknown_version_nobody_knows_what_the_signal_does(lost):
    versions(lost, None)
    for name in ("m1", "m2", "m3"):
        lost.data(name, "manifests")["files"].clear()
    captures, (note,) = chosen(lost)
    assert captures == []
    assert "is not known, and only of 1.14 and newer" in note


def test_a_vendors_build_is_captured_and_proves_nothing_by_itself(lost):
    versions(lost, "v1.18.4-tke.5")
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(
        {**one, "process_is": "ok", "sent": True}, None, of_1_14(*NODES), RUN, {}
    )
    assert one["faulty"] is None
    assert found["verdict"] == cache_dump.OPEN


def test_the_only_one_needs_no_lock(lost):
    for name in ("m2", "m3"):
        lost.data(name, "instances")["processes"].remove(scheduler_of(lost, name))
    answer = next(
        one
        for one in lost.data("m1", "component_http")["components"]
        if one["component"] == "kube-scheduler"
    )
    answer["configz"]["leader_election"]["leaderElect"] = False
    hold(lost, "")
    assert [one["host"] for one in chosen(lost)[0]] == ["m1"]


def done(one, **more):
    return {**one, "process_is": "ok", "offered": "offered", "sent": True, **more}


def became(host, raised=True, restored=True, reason="", trying=False):
    return Became(
        Target(host, host, "kube-scheduler", "level:kube-scheduler", 0, 4, host),
        raised,
        restored,
        reason,
        trying,
    )


def rendered(found):
    page = Page(200, plain)
    report_scheduler_capture.render(page, found)
    return "\n".join(page.lines)


def test_what_it_proves_and_where_the_files_are(lost):
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(
        done(one), became("m1"), of_1_14(*NODES), RUN, {"dump": "/r/d.txt", "matters": "/r/m.txt"}
    )
    assert found["nodes"] == {
        "api": 4,
        "cached": 4,
        "counted": 4,
        "reasons": 3,
        "not_cached": (),
        "only_cached": (),
    }
    assert found["verdict"] == cache_dump.SHORT
    assert found["sentence"].endswith("in the cache, and waited for: m3")
    assert found["level"] == {
        "former": 0,
        "level": 4,
        "raised": True,
        "restored": True,
        "reason": "",
    }
    assert found["dump"]["taken"]
    text = rendered(found)
    for part in (
        "kube-scheduler of m1",
        "4 in the API, 4 in its cache, 4 in its message",
        "is 0 again",
        "/r/d.txt",
        "/r/m.txt",
        SHORT[:-1],
    ):
        assert part in text, text


def test_a_node_that_may_have_been_tried_is_not_named(lost):
    """A Node without a kubelet has no room.

    Its pod waits for a reason that is its own, and another node is lost.
    """
    waiting(
        lost,
        "0/4 nodes are available: 1 Too many pods, 2 node(s) didn't match node selector.",
        "m2",
        names=["agent-y"],
    )
    lost.data("api", "pending")["items"].reverse()
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(done(one), None, of_1_14(*NODES), RUN, {})
    assert (found["verdict"], found["targets"], found["message"]) == (
        cache_dump.SHORT,
        ["m3"],
        SHORT,
    )
    one["heard"] = one["heard"][:1]
    assert capture_scheduler.result(done(one), None, of_1_14(*NODES), RUN, {})["targets"] == []


def test_a_message_that_was_logged_meanwhile_counts_too(lost):
    (one,), _notes = chosen(lost)
    one["heard"][0]["message"] = "0/3 nodes are available: 3 Too many pods."
    found = capture_scheduler.result(
        done(one),
        None,
        [*of_1_14(*NODES), f"x Unable to schedule a/b: no fit: {SHORT}; waiting"],
        RUN,
        {},
    )
    assert (found["verdict"], found["message"]) == (cache_dump.SHORT, SHORT)


@pytest.mark.parametrize(
    ("more", "lines", "dump", "level"),
    [
        (
            {"sent": False, "sent_reason": "run X holds the cluster"},
            [],
            "run X holds the cluster",
            "",
        ),
        (
            {"process_is": "it does not run any more", "sent": None},
            [],
            "it does not run any more",
            "",
        ),
        ({"sent": None}, [], "it was not begun", ""),
        ({"sent": None, "process_is": ""}, [], "it was not begun", ""),
        ({}, [], "its log has none of it", ""),
        ({}, of_1_14(*NODES)[:9], "its log has no whole dump", ""),
    ],
)
def test_what_failed_is_said(lost, more, lines, dump, level):
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(done(one, **more), became("m1"), lines, RUN, {})
    assert found["dump"]["reason"] == dump
    assert found["level"]["reason"] == level
    assert found["verdict"] == cache_dump.UNKNOWN
    assert "not known in its cache" in rendered(found)


@pytest.mark.parametrize(
    ("more", "level", "stated"),
    [
        ({"former": 5}, None, ("level 5",)),
        (
            {"offered": "absent", "level_reason": "it runs without profiling"},
            None,
            ("it runs without profiling",),
        ),
        ({}, became("m1", False, None, "it did not take it"), ("it did not take it",)),
        (
            {},
            became("m1", True, False, "no answer", True),
            (
                "NOT PUT BACK",
                "no answer",
                f"ansible-playbook kubemend.remediation.revert -e kubemend_run_id={RUN}",
            ),
        ),
    ],
)
def test_what_became_of_its_level(lost, more, level, stated):
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(done(one, **more), level, of_1_14(*NODES), RUN, {})
    facts(found["level"]["reason"], *stated)
    assert found["level"]["reason"] in rendered(found)
    assert found["verdict"] == cache_dump.SHORT


def test_only_what_can_be_raised_at_run_time_is_planned(lost):
    (one,), _notes = chosen(lost)
    for offered, former, count in (
        ("offered", 0, 1),
        ("absent", 0, 0),
        ("refused", 0, 0),
        ("offered", 4, 0),
    ):
        plan = capture_scheduler.levels([done(one, offered=offered, former=former)], RUN, 60, 5.0)
        assert len(plan.targets) == count
        assert not any(target.step for target in plan.targets)
        assert plan.logging == {"m1": ("kube-scheduler",)}
        assert plan.begun == 5.0


def test_where_the_list_of_nodes_is_cut_nothing_is_compared(lost):
    lost.api["collectors"]["nodes"]["truncated"] = True
    (one,), _notes = chosen(lost)
    found = capture_scheduler.result(done(one), None, of_1_14(*NODES), RUN, {})
    assert one["nodes"] is None
    assert found["verdict"] == cache_dump.UNKNOWN
