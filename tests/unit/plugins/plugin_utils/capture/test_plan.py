# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which levels a capture raises, from where, what lines must hold.

The tests also check why some stay as they are.
"""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    space as space_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    maintenance,
)
from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.run_leftovers import raised_level

SCHEDULER, MANAGER, API = "kube-scheduler", "kube-controller-manager", "kube-apiserver"
RUN = "20261121T090000Z-1a2b3c"
ALL = ("kubelet", SCHEDULER, MANAGER, API)
UID = "11111111-0000-0000-0000-00000000000a"


def planned(world, components=ALL, level=4, pod=None):
    api = [world.api] if world.api else []
    return capture_plan.plan(
        RUN, copy.deepcopy([*world.documents.values(), *api]), tuple(components), level, 60, pod
    )


def reals(made):
    return {(target.host, target.on, target.real, target.former) for target in made.targets}


def pod(world, status="ok", **data):
    world.api["collectors"]["pod"] = {"status": status, "data": data or None}


@pytest.mark.parametrize(
    ("components", "level", "allow", "word"),
    [
        (("kubelet",), 6, (), None),
        (("kubelet",), 7, (), "above 6 kubelet"),
        ((SCHEDULER,), 7, (), None),
        ((SCHEDULER,), 8, (), "above 7 kube-scheduler"),
        ((SCHEDULER, MANAGER), 7, (), "above 6 kube-controller-manager"),
        ((API,), 7, ("fenced",), "above 6 kube-apiserver"),
        (ALL, 10, ("body_logging",), None),
        ((), 10, (), None),
    ],
)
def test_what_may_log_the_bodies_of_requests_needs_consent(components, level, allow, word):
    if word is None:
        assert capture_plan.demand(components, level, allow) is None
        return
    with pytest.raises(capture_plan.CaptureError, match=word) as error:
        capture_plan.demand(components, level, allow)
    assert "kubemend_allow=body_logging" in str(error.value)
    assert "Secrets" in str(error.value)


@pytest.mark.parametrize(
    ("argv", "level"),
    [
        (["x"], 0),
        (["x", "--v=3"], 3),
        (["x", "-v", "2"], 2),
        (["x", "--v=1", "--v=5"], 5),
        (["x", "--v=x"], 0),
        (["x", "--v=²"], 0),
        (["x", "--v="], 0),
        (["x", 3, None], 0),
        (["x", "--vmodule=a=9"], 0),
    ],
)
def test_the_level_of_a_command_line(argv, level):
    assert capture_plan.of_argv(argv) == level


def verbosity(value):
    return {"text": f"logging: {{verbosity: {value}}}\n"}


@pytest.mark.parametrize(
    ("kubelet", "level"),
    [
        ({}, 0),
        ({"argv": ["kubelet"], "config": verbosity(2)}, 2),
        ({"argv": ["kubelet", "--v=3"], "config": verbosity(2)}, 3),
        (
            {
                "argv": ["kubelet", "--v=0"],
                "config": verbosity(2),
                "config_dropins": [verbosity(5)],
            },
            0,
        ),
        ({"config": verbosity(2), "config_dropins": [verbosity(5), verbosity(3)]}, 3),
        ({"config": verbosity(2), "config_dropins": [{"text": "kind: KubeletConfiguration\n"}]}, 2),
        (
            {
                "config": verbosity(2),
                "config_dropins": [
                    {"text": "a: [\n"},
                    {"text": "- a"},
                    {"text": "x"},
                    {"text": None},
                    None,
                    "x",
                    {"text": 3},
                ],
            },
            2,
        ),
        ({"config": verbosity("'4'")}, 4),
        ({"config": verbosity("high")}, 0),
        ({"config": verbosity("[]")}, 0),
        ({"config": verbosity(".inf")}, 0),
        ({"config": verbosity(".nan")}, 0),
        ({"config": {"text": "logging: " + "[" * 5000}}, 0),
        ({"config": None, "config_dropins": None}, 0),
    ],
)
def test_the_level_of_a_kubelet(kubelet, level):
    answer = decode.decode(kubelet_answer.Kubelet, kubelet).answer
    assert capture_plan.kubelet_level(answer) == level


def folder(free=2**40, inodes=10**6, path="/var/log/pods"):
    return {
        "path": path,
        "free_bytes": free,
        "total_bytes": 2**41,
        "free_inodes": inodes,
        "error": None,
    }


@pytest.mark.parametrize(
    ("folders", "stated"),
    [
        ([], ()),
        ([folder()], ()),
        ([folder(2**28)], ()),
        ([folder(2**28 - 1)], ("/var/log/pods", "255 MiB", "256")),
        ([folder(), folder(0, path="/x")], ("/x", "0 MiB", "256")),
        ([folder(inodes=1023)], ("/var/log/pods", "1023 inodes", "1024")),
        ([folder(inodes=1024)], ()),
        ([folder(None, None)], ()),
        ([folder(None, 3)], ("/var/log/pods", "3 inodes", "1024")),
        (None, ()),
    ],
)
def test_where_too_little_is_free(folders, stated):
    answer = decode.decode(space_answer.Spaces, {"folders": folders}).answer
    text = capture_plan.full(answer)
    assert bool(text) == bool(stated)
    facts(text, *stated)


def test_each_component_by_its_own_host_and_kubelets_through_the_host_of_the_api(world):
    made = planned(world)
    assert reals(made) == (
        {
            (f"m{n}", f"m{n}", f"level:{name}", 0)
            for n in (1, 2, 3)
            for name in (SCHEDULER, MANAGER, API)
        }
        | {("m1", name, f"level:kubelet/{name}", 0) for name in ("m1", "m2", "m3", "w1")}
    )
    assert made.raising == ("m1", "m2", "m3")
    assert len(made.host_targets("m1")) == 7
    assert len(made.host_targets("w1")) == 0
    assert made.refused == made.notes == made.needles == ()
    assert {(target.component == "kubelet", target.cluster_uid) for target in made.targets} == {
        (True, "ks"),
        (False, None),
    }
    assert made.logging == {**dict.fromkeys(("m1", "m2", "m3"), ALL), "w1": ("kubelet",)}


def test_the_nodes_name_is_not_the_hosts(world):
    world.documents["w1"]["node"] = "worker-1.example"
    world.api["collectors"]["nodes"]["data"]["items"][-1]["name"] = "worker-1.example"
    assert ("m1", "w1", "level:kubelet/worker-1.example", 0) in reals(planned(world, ["kubelet"]))


OTHER = "20261121T080000Z-4d5e6f"


@pytest.mark.parametrize(
    ("real", "by", "more", "left_out", "told"),
    [
        (
            "level:kubelet/w1",
            "m2",
            {},
            ("w1", "kubelet"),
            "until 09:30:00Z (its service puts it back); wait, or revert it: ansible-playbook",
        ),
        (
            "level:kubelet/w1",
            "m2",
            {"until": None},
            ("w1", "kubelet"),
            "and no service of it is left; revert it: ansible-playbook",
        ),
        (
            "level:kubelet",
            "w1",
            {},
            ("w1", "kubelet"),
            f"kubemend.remediation.revert -e kubemend_run_id={OTHER}",
        ),
        ("level:kube-scheduler", "m2", {}, ("m2", SCHEDULER), "until 09:30:00Z"),
        (
            "level:kube-scheduler",
            "m2",
            {"by_hand": "/m was edited meanwhile: take --v=4 out by hand"},
            ("m2", SCHEDULER),
            ": /m was edited meanwhile",
        ),
    ],
)
def test_what_an_earlier_run_raised_is_left_out_and_says_until_when(
    world, real, by, more, left_out, told
):
    """The target is left out whatever its command line says.

    A component that was restarted for its level has the level there already, and would go back in
    the middle of the window.
    """
    one = {"real": real, "run_id": OTHER, "until": "2026-11-21T09:30:00Z", "by_hand": None, **more}
    for number, former in enumerate((0, 4)):
        if left_out[1] == SCHEDULER:
            world.run("m2", SCHEDULER, f"--v={former}", elect=True)
        world.documents[by]["collectors"]["journal"] = {"status": "ok", "data": {"levels": [one]}}
        made = planned(world, ["kubelet", SCHEDULER])
        assert left_out not in {(target.on, target.component) for target in made.targets}, number
        assert len(made.targets) == 6, number
        (note,) = made.refused
        assert note.startswith(f"{left_out[0]} {left_out[1]} is raised by run {OTHER}")
        assert told in note


def test_one_that_may_be_raised_is_left_out_too(world):
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {
            "levels": [],
            "pending": [
                {"real": "level:kube-scheduler", "run_id": OTHER},
                {"real": "/etc/x", "run_id": OTHER},
                {"real": None},
            ],
        },
    }
    assert [note[:29] for note in planned(world, [SCHEDULER]).refused] == [
        "m2 kube-scheduler is raised b"
    ]


def test_only_what_was_asked_for(world):
    assert {target.component for target in planned(world, [MANAGER]).targets} == {MANAGER}


def test_what_has_the_level_already_stays(world):
    world.run("m2", SCHEDULER, "--v=4", elect=True)
    world.run("m3", SCHEDULER, "--v=3", elect=True)
    made = planned(world, [SCHEDULER])
    assert reals(made) == {
        ("m1", "m1", "level:kube-scheduler", 0),
        ("m3", "m3", "level:kube-scheduler", 3),
    }
    facts_of_each(made.notes, ("kube-scheduler", "m2", "level 4", "4"))
    assert made.logging["m2"] == (SCHEDULER,)


def test_instances_that_are_no_static_pods_are_not_ours(world):
    world.run("m2", SCHEDULER, elect=True, static=False)
    assert {target.on for target in planned(world, [SCHEDULER]).targets} == {"m1", "m3"}


def test_a_kubelet_that_does_not_run_is_not_raised(world):
    world.data("w1", "kubelet")["process"] = None
    made = planned(world, ["kubelet"])
    assert {target.on for target in made.targets} == {"m1", "m2", "m3"}
    assert made.logging["w1"] == ("kubelet",)
    assert any("kubelet of w1 does not run" in note for note in made.notes)


def test_a_full_disk_is_refused_there_alone(world):
    world.documents["m2"]["collectors"]["space"] = {
        "status": "ok",
        "data": {"folders": [folder(3)]},
    }
    made = planned(world, [SCHEDULER, "kubelet"])
    assert {target.on for target in made.targets} == {"m1", "m3", "w1"}
    facts_of_each(
        (sentence.partition(", because ")[0] for sentence in made.refused),
        ("kube-scheduler", "m2", "level 0"),
        ("kubelet", "m2", "level 0"),
    )
    assert "has 0 MiB free" in made.refused[0]


def test_without_an_api_server_kubelets_stay_as_they_are(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    made = planned(world)
    assert {target.component for target in made.targets} == {SCHEDULER, MANAGER, API}
    assert len(made.refused) == 4
    assert (
        "kubelet of w1 stays at level 0, because no API server answers through which it could be"
        " asked (connection refused)" in made.refused
    )


def test_without_anything_of_an_api_neither(world):
    world.api = None
    made = planned(world, ["kubelet"])
    assert not made.targets
    assert len(made.refused) == 4
    assert "(not_asked)" in made.refused[0]


def test_a_node_that_is_not_proven_is_not_assumed(world):
    world.documents["w1"]["node"] = None
    made = planned(world, ["kubelet"])
    facts_of_each(made.refused, ("kubelet", "w1", "level 0", "cannot be proven"))
    assert all(target.on != "w1" for target in made.targets)


def test_beside_a_named_pod_a_node_that_is_not_proven_refuses_nothing(world):
    """Whether the pod is there is not known, which must not end the capture of the others."""
    pod(
        world,
        name="web-1",
        uid=UID,
        owner=None,
        pod={"name": "web-1", "uid": UID, "node": "m1"},
        siblings=[],
    )
    world.documents["w1"]["node"] = None
    made = planned(world, ["kubelet"], pod="default/web-1")
    assert made.refused == ()
    assert any("kubelet of w1 stays at level 0, because which Node" in note for note in made.notes)


def test_a_node_that_the_api_does_not_know(world):
    world.documents["w1"]["node"] = "w9"
    facts_of_each(planned(world, ["kubelet"]).refused, ("kubelet", "w1", "level 0", "w9"))


def test_where_nobody_can_list_nodes_the_proof_is_enough(world):
    world.api["collectors"]["nodes"] = {"status": "error", "data": None}
    assert ("m1", "w1", "level:kubelet/w1", 0) in reals(planned(world, ["kubelet"]))


def test_hosts_that_do_not_answer_are_named(world):
    world.silence("m2")
    world.silence("m3", "not_asked")
    made = planned(world, [SCHEDULER])
    assert made.notes == ("m2: timed out",)
    assert made.raising == ("m1",)
    assert set(made.logging) == {"m1", "w1"}


def test_nobody_answers(world):
    for name in world.documents:
        world.silence(name)
    with pytest.raises(
        capture_plan.CaptureError,
        match=r"No host gave evidence, so that nothing is captured .m1: timed out; m2: timed out; ",
    ):
        planned(world)


def test_a_pod_narrows_kubelets_and_says_what_lines_must_hold(world):
    pod(
        world,
        namespace="default",
        name="job-a-x7f2p",
        uid=UID,
        owner={"kind": "Job", "name": "job-a"},
        pod={"name": "job-a-x7f2p", "uid": UID, "node": "w1"},
        siblings=[
            {"name": "job-a-b9k1z", "uid": "u2", "node": "m2"},
            {"name": "job-a-none", "uid": None, "node": None},
        ],
    )
    made = planned(world, pod="default/job-a-x7f2p")
    assert {target.on for target in made.targets if target.component == "kubelet"} == {"w1", "m2"}
    assert {target.on for target in made.targets if target.component == SCHEDULER} == {
        "m1",
        "m2",
        "m3",
    }
    assert made.needles == (
        "job-a-x7f2p",
        "job-a",
        UID,
        "job-a-b9k1z",
        "u2",
        "job-a-none",
        *capture_plan.DEVICE_LINES,
    )
    # that one has nothing to do with the pod
    assert made.logging["m1"] == tuple(name for name in ALL if name != "kubelet")


@pytest.mark.parametrize("change", ["silent", "unproven", "elsewhere"])
def test_the_node_of_a_pod_that_nobody_looks_at_is_named(world, change):
    """Without the lines of that kubelet there is hardly anything to see.

    The note is the only place that gives the reason.
    """
    pod(
        world,
        name="web-1",
        uid=UID,
        owner=None,
        pod={"name": "web-1", "uid": UID, "node": "w9" if change == "elsewhere" else "w1"},
        siblings=[],
    )
    if change == "silent":
        world.silence("w1", "not_asked")
    elif change == "unproven":
        world.documents["w1"]["node"] = None
    made = planned(world, ["kubelet"], pod="default/web-1")
    assert not made.targets
    assert (
        f"is on {'w9' if change == 'elsewhere' else 'w1'}, and no host that answered is proven to"
        " be that Node" in made.notes[-1]
    )
    # a host of which it is not known may be the one: it is read, and not raised
    assert [name for name, logs in made.logging.items() if logs] == (
        ["w1"] if change == "unproven" else []
    )
    assert not [
        note
        for note in planned(world, [SCHEDULER], pod="default/web-1").notes
        if "is proven" in note
    ]


def test_of_many_such_nodes_some_are_named(world):
    pod(
        world,
        name="web-1",
        uid=UID,
        owner=None,
        pod={"name": "web-1", "uid": UID, "node": "w1"},
        siblings=[
            {"name": f"web-{number}", "uid": f"u{number}", "node": f"x{number}"}
            for number in range(9)
        ],
    )
    assert (
        "is on x0, x1, x2, x3, x4 and 4 more, and no host"
        in planned(world, ["kubelet"], pod="default/web-1").notes[-1]
    )


def test_a_pod_that_is_nowhere_yet_narrows_nothing(world):
    pod(
        world,
        name="web-1",
        uid=UID,
        owner={"kind": "ReplicaSet", "name": "web"},
        pod={"name": "web-1", "uid": UID, "node": None},
        siblings=[],
    )
    made = planned(world, ["kubelet"], pod="default/web-1")
    assert len(made.targets) == 4
    assert made.needles == ("web-1", UID, *capture_plan.DEVICE_LINES)
    assert "is on no node yet" in made.notes[-1]


@pytest.mark.parametrize("owner", [None, "x", {"kind": "Job"}, {"kind": "Job", "name": None}])
def test_an_owner_without_a_name_is_no_needle(world, owner):
    pod(world, name="web-1", uid=None, owner=owner, pod=None, siblings=None)
    assert planned(world, pod="default/web-1").needles == ("web-1", *capture_plan.DEVICE_LINES)


def test_a_pod_that_is_not_there_ends_it(world):
    pod(world, "absent")
    with pytest.raises(
        capture_plan.CaptureError,
        match="kubemend_pod is default/no, but no API of these hosts knows such a pod",
    ) as error:
        planned(world, pod="default/no")
    assert "kubemend_capture_match=NAME" in str(error.value)


@pytest.mark.parametrize(("status", "ends"), [("absent", True), ("error", False)])
def test_a_pod_that_one_of_two_clusters_does_not_know(world, status, ends):
    """It may be in the other."""
    pod(world, "absent")
    key = "beef" + "0" * 60
    other = {**copy.deepcopy(world.documents["m1"]), "host": "o1", "node": "o1", "cluster_key": key}
    api = {**copy.deepcopy(world.api), "host": "o1", "cluster_key": key}
    api["collectors"].update(
        server={"status": "ok", "data": {"kube_system_uid": "second"}},
        pod={"status": status, "data": None},
    )
    documents = [*world.documents.values(), other, world.api, api]
    if ends:
        with pytest.raises(
            capture_plan.CaptureError, match="no API of these hosts knows such a pod"
        ):
            capture_plan.plan(RUN, documents, ALL, 4, 60, "default/web-1")
    else:
        assert capture_plan.plan(RUN, documents, ALL, 4, 60, "default/web-1").needles[0] == "web-1"


@pytest.mark.parametrize("status", ["error", "timeout", "denied", None])
def test_a_pod_of_which_the_api_says_nothing(world, status):
    if status:
        pod(world, status)
    made = planned(world, ["kubelet"], pod="default/web-1")
    assert made.needles == ("web-1", *capture_plan.DEVICE_LINES)
    assert len(made.targets) == 4
    facts_of_each(made.notes, ("default/web-1", "not known", "name alone"))


def test_without_a_pod_every_line_is_wanted(world):
    pod(world, name="web-1", uid=UID, pod=None)
    assert planned(world).needles == ()


def test_the_plan_survives_json(world):
    world.silence("m2")
    made = planned(world)
    again = capture_plan.loaded(json.loads(json.dumps(capture_plan.dumped(made))))
    assert again == made
    assert again.raising == made.raising
    assert isinstance(again.targets, tuple)
    assert isinstance(again.notes, tuple)
    assert again.host_targets("m1") == made.host_targets("m1")


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"targets": [3]},
        {"targets": [{"real": "x"}]},
        {"targets": []},
        {"targets": [], "logging": []},
        {"targets": [], "logging": {}},
        {"targets": None},
        None,
    ],
)
def test_what_is_no_plan(document):
    with pytest.raises((ValueError, KeyError, TypeError)):
        capture_plan.loaded(document)


# KM903: what a capture left behind.


@pytest.mark.parametrize(("max_risk", "allowed"), [(0, False), (1, True)])
def test_putting_back_is_planned_with_risk_1(world, max_risk, allowed):
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {"levels": [raised_level(True), raised_level(True, entry="002-raise")]},
    }
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    steps = plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk),
        maintenance.REMEDIES,
        fault_engine.KEY_DIGITS,
        None,
    )
    assert [(step.host, step.code, step.remedy, step.risk, step.allowed) for step in steps] == [
        ("m2", "KM903", "restore_levels", 1, allowed)
    ]
    assert steps[0].limit == 150
    assert "put back the log levels" in steps[0].diff
    assert steps[0].blocked_by is None if allowed else "kubemend_max_risk=1" in steps[0].blocked_by


@pytest.mark.parametrize("alone", [True, False])
def test_what_only_a_hand_can_take_back_is_planned_so(world, alone):
    """The manifest was edited meanwhile: none of kubemend's bytes can come back."""
    told = "/m.yaml was edited meanwhile: take --v=4 out by hand (before it was: no --v)"
    theirs = raised_level(True, restart=True, by_hand=told, path="log level of kube-scheduler")
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {"levels": [theirs] if alone else [theirs, raised_level(True)]},
    }
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    assert told in {finding.remedy for finding in result.findings if finding.code == "KM903"}
    (step,) = plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(2),
        maintenance.REMEDIES,
        fault_engine.KEY_DIGITS,
        None,
    )
    assert (step.blocked_by, step.risk, "restart" in step.diff) == (
        told if alone else None,
        1,
        False,
    )
