# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that no scheduler takes (KM203, KM204), or that are unschedulable (KM210 to KM225)."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import taints
from tests.unit.support.facts import facts

SAID = ("KM210", "KM211", "KM212", "KM213", "KM214", "KM215", "KM216", "KM217", "KM224", "KM225")
CODES = frozenset(("KM203", "KM204", *SAID))
SCHEDULER = "kube-scheduler"
FRESH, STALE, LONG_AGO, JUST_NOW = (
    "2027-01-15T07:59:58.000000Z",
    "2027-01-15T07:50:00.000000Z",
    "2027-01-15T07:40:00Z",
    "2027-01-15T07:58:00Z",
)


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes) or CODES)
    return {item.code: item.verdict for item in result.verdicts}, list(result.findings)


def lock(world, **changes):
    for server in world.data("api", "locks")["servers"]:
        next(one for one in server["objects"] if one["name"] == SCHEDULER).update(changes)


def stopped(world, *hosts):
    for name in hosts:
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] != SCHEDULER]


def unseen(world, name, since=LONG_AGO, pods=2):
    world.data("api", "pending")["unseen"].append(
        {"scheduler": name, "pods": pods, "names": ["shop/a"], "since": since}
    )


def waiting(world, message, **more):
    world.data("api", "pending")["items"].append(
        {
            "namespace": "shop",
            "names": ["cart-1"],
            "pods": 2,
            "since": LONG_AGO,
            "owner": "ReplicaSet/cart",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": [],
            "targets": [],
            **more,
        }
    )


def node(world, name):
    return next(one for one in world.data("api", "nodes")["items"] if one["name"] == name)


def taint(world, name, key, value="", effect="NoSchedule"):
    node(world, name)["taints"].append({"key": key, "value": value, "effect": effect})


def test_a_healthy_cluster(world):
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])


def test_no_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world) == (dict.fromkeys(CODES, "unknown"), [])


def test_no_cluster(world):
    world.leave_kubernetes()
    assert judged(world)[0] == dict.fromkeys(CODES, "not_applicable")


def test_evidence_of_an_older_release(world):
    del world.data("api", "pending")["unseen"]
    assert [item.code for item in world.judge(faults=frozenset({"KM204", "KM210"})).not_judged] == [
        "KM204"
    ]


# KM203


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"renew_time": FRESH}, "clear"),
        ({"renew_time": STALE}, "present"),
        ({"renew_time": STALE, "holder": ""}, "present"),
        ({"renew_time": None}, "unknown"),
        ({"name": "another"}, "unknown"),
    ],
)
def test_a_lock_that_stands_still(world, changes, verdict):
    lock(world, **changes)
    verdicts, findings = judged(world, "KM203")
    assert verdicts == {"KM203": verdict}
    for found in findings:
        assert "it runs on m1, m2, m3 and does not renew its lock" in found.summary
        facts(found.remedy, "every new pod", "Pending")
        assert (found.component, found.severity, found.risk) == (SCHEDULER, "critical", 0)


@pytest.mark.parametrize(
    ("renewed", "leased", "verdict"),
    [
        ("2027-01-15T07:58:30Z", {}, "present"),
        ("2027-01-15T07:59:10Z", {}, "clear"),
        # one of them may have written it by a clock of its own
        ("2027-01-15T07:58:30Z", {"m2": "2027-01-15T07:58:40Z"}, "clear"),
        ("2027-01-15T07:58:30Z", {"m2": None}, "clear"),
        ("2027-01-15T07:58:30Z", {"w1": "2027-01-15T07:58:40Z"}, "present"),
    ],
)
def test_a_lock_that_was_given_up(world, renewed, leased, verdict):
    """As newer schedulers do when they end: it names no holder, and its duration is a second."""
    lock(world, renew_time=renewed, holder="", lease_duration_s=1)
    for name, at in leased.items():
        node(world, name)["lease"] = at
    assert judged(world, "KM203")[0] == {"KM203": verdict}


def test_no_scheduler_runs(world):
    stopped(world, "m1", "m2", "m3")
    lock(world, renew_time=STALE)
    _verdicts, (found,) = judged(world, "KM203")
    assert "it runs on no host that answered" in found.summary
    assert "kube-scheduler.yaml" in found.remedy
    world.silence("m2")
    assert "m2 did not" in judged(world, "KM203")[1][0].summary


def test_which_schedulers_are_down_and_why(world):
    """No manifest, a broken one, a container that does not stay up, and a dead kubelet."""
    stopped(world, "m1", "m2", "m3")
    lock(world, renew_time=STALE)
    files = {name: world.data(name, "manifests")["files"] for name in ("m1", "m2", "m3")}
    files["m1"][:] = [one for one in files["m1"] if not one["name"].startswith(SCHEDULER)]
    next(one for one in files["m2"] if one["name"].startswith(SCHEDULER))["text"] = (
        "spec:\n\tcontainers: []\n"
    )
    _verdicts, (found,) = judged(world, "KM203")
    assert "; m1: it has no manifest; m2: its manifest does not parse (" in found.summary
    assert found.summary.endswith(
        "; m3: its manifest is there, and its container does not start or does not stay up"
    )
    assert [(proof.host, proof.path) for proof in found.evidence[1:]] == [
        (name, f"/etc/kubernetes/manifests/{SCHEDULER}.yaml") for name in ("m1", "m2", "m3")
    ]
    assert found.evidence[2].line == 2
    world.data("m3", "kubelet").update(process=None, unit={"active_state": "inactive"})
    assert judged(world, "KM203")[1][0].summary.endswith(
        "; m3: the kubelet does not run (unit inactive)"
    )
    files["m1"][:] = [dict(one, text=None, error="denied") for one in files["m1"]]
    assert (
        "; m1: none runs, and whether it has a manifest could not be read"
        in judged(world, "KM203")[1][0].summary
    )


def test_one_without_election_needs_no_lock(world):
    lock(world, renew_time=STALE)
    for name in ("m1", "m2", "m3"):
        world.run(name, SCHEDULER, "--leader-elect=false", elect=False)
    assert judged(world, "KM203")[0] == {"KM203": "clear"}


# KM204


@pytest.mark.parametrize(
    ("name", "since", "verdict"),
    [
        ("volcano", LONG_AGO, "present"),
        ("volcano", JUST_NOW, "clear"),
        ("volcano", None, "unknown"),
        ("default-scheduler", LONG_AGO, "clear"),
        ("hostile\nname", LONG_AGO, "present"),
    ],
)
def test_a_scheduler_that_nobody_runs(world, name, since, verdict):
    unseen(world, name, since)
    verdicts, findings = judged(world, "KM204")
    assert verdicts == {"KM204": verdict}
    assert len(findings) == (verdict == "present")
    for found in findings:
        assert "\n" not in found.summary
        facts(found.summary, "2 pods wait", f"oldest since {LONG_AGO}", "default-scheduler")


def test_where_nobody_leads_that_is_why(world):
    """All are down: the pods want a scheduler that exists, so that there is one fault only."""
    unseen(world, "default-scheduler")
    stopped(world, "m1", "m2", "m3")
    lock(world, renew_time=STALE)
    assert judged(world, "KM203", "KM204")[0] == {"KM203": "present", "KM204": "clear"}
    unseen(world, "volcano")
    assert judged(world, "KM203", "KM204")[0] == {"KM203": "present", "KM204": "present"}


def test_a_scheduler_of_another_name_on_the_control_plane(world):
    unseen(world, "batch")
    world.run("m1", SCHEDULER, "--leader-elect=true", "--scheduler-name=batch", elect=True)
    assert judged(world, "KM204") == ({"KM204": "clear"}, [])


HOURS_AGO = "2027-01-15T04:00:00Z"


def test_a_scheduler_that_leads_and_takes_no_pods(world):
    unseen(world, "default-scheduler", HOURS_AGO)
    verdicts, (found,) = judged(world, "KM203", "KM204")
    assert verdicts == {"KM203": "clear", "KM204": "present"}
    assert (found.severity, found.component) == ("warning", SCHEDULER)
    holder = world.data("api", "locks")["servers"][0]["objects"]
    name = next(one["holder"] for one in holder if one["name"] == SCHEDULER).rsplit("_", 1)[0]
    assert name in found.summary
    assert "kube-scheduler.yaml" in found.remedy


def test_a_scheduler_within_another_program_that_takes_no_pods(world):
    unseen(world, "default-scheduler", HOURS_AGO)
    stopped(world, "m1", "m2", "m3")
    paths = {"paths": ["/var/snap/microk8s"]}
    world.documents["m1"]["collectors"]["installer"] = {"status": "ok", "data": paths}
    (found,) = judged(world, "KM204")[1]
    assert "systemctl restart snap.microk8s.daemon-kubelite" in found.remedy


def test_a_scheduler_that_refused_other_pods_since_is_not_stalled(world):
    unseen(world, "default-scheduler", HOURS_AGO)
    waiting(world, "0/4 nodes are available: 4 Insufficient cpu.")
    assert judged(world, "KM204") == ({"KM204": "clear"}, [])


@pytest.mark.parametrize("changes", [{"renew_time": STALE}, {"holder": ""}])
def test_a_scheduler_without_a_lease_is_not_stalled(world, changes):
    unseen(world, "default-scheduler", HOURS_AGO)
    lock(world, **changes)
    assert judged(world, "KM204")[0] == {"KM204": "clear"}


def test_the_usual_scheduler_is_not_missed_where_it_may_run_unseen(world):
    unseen(world, "default-scheduler")
    stopped(world, "m1", "m2", "m3")
    # it runs nowhere: KM203, or a program that is more than it
    assert judged(world, "KM204")[0] == {"KM204": "unknown"}
    for name in ("m1", "m3"):
        world.run(name, SCHEDULER, "--leader-elect=true", "--scheduler-name=batch", elect=True)
    assert judged(world, "KM204")[0] == {"KM204": "present"}  # a profile that renames it
    world.silence("m2")
    assert judged(world, "KM204")[0] == {"KM204": "unknown"}


# KM210 to KM215


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("Insufficient nvidia.com/gpu", "KM210"),
        ("node(s) didn't match Pod's node affinity/selector", "KM211"),
        ("node(s) didn't match pod affinity rules", "KM211"),
        ("node(s) didn't match pod topology spread constraints", "KM212"),
        ("node(s) didn't have free ports for the requested pod ports", "KM213"),
        ("Too many pods", "KM214"),
        ("node(s) had volume node affinity conflict", "KM224"),
        ("node(s) didn't find available persistent volumes to bind", "KM224"),
        ("node(s) had untolerated taint(s)", None),
        ("node(s) didn't match the rack of the group", "KM225"),
    ],
)
def test_each_reason_is_its_own_fault(world, clause, code):
    waiting(world, f"0/4 nodes are available: 4 {clause}.")
    verdicts, findings = judged(world, *SAID)
    assert verdicts == {one: "present" if one == code else "clear" for one in SAID}
    for found in findings:
        assert found.summary.startswith("2 pods wait because ")
        assert found.summary.endswith("ReplicaSet shop/cart")
        assert found.severity == "warning"
        assert clause in found.evidence[0].text
        assert found.remedy


def test_what_is_one_reason_of_several_is_a_hint(world):
    waiting(
        world,
        "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't have free ports for the"
        " requested pod ports.",
    )
    found = next(one for one in judged(world, *SAID)[1] if one.code == "KM210")
    assert found.severity == "info"
    assert "(cpu)" in found.summary
    world.data("api", "pending")["items"].clear()
    # a node that is dedicated to others is none that this pod lacks
    node(world, "m2")["taints"] = [{"key": "caf", "value": "log", "effect": "NoExecute"}]
    waiting(
        world, "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint(s)."
    )
    _verdicts, (found,) = judged(world, *SAID)
    assert (found.code, found.severity) == ("KM210", "warning")
    assert "(cpu)" in found.summary
    waiting(
        world, "0/4 nodes are available: 4 Insufficient memory.", names=["b"], owner=None, pods=1
    )
    _verdicts, (found,) = judged(world, *SAID)
    assert found.severity == "warning"
    assert found.summary.startswith("3 pods wait")
    assert "(cpu, memory)" in found.summary
    assert ", shop/b" in found.summary


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            (
                "0/4 nodes are available: 1 node(s) had taint {caf: log}, that the pod didn't"
                " tolerate, 3 node(s) didn't match node selector."
            ),
            False,
        ),
        (
            "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match node selector.",
            False,
        ),
        # m1 to m3 carry the control plane's taint, and no other
        (
            (
                "0/4 nodes are available: 1 node(s) didn't match node selector, 3 node(s) had"
                " untolerated taint(s)."
            ),
            True,
        ),
        (
            (
                "0/4 nodes are available: 1 node(s) didn't match node selector, 3 node(s) had"
                " untolerated taint {node-role.kubernetes.io/control-plane: }."
            ),
            True,
        ),
    ],
)
def test_a_selector_is_the_reason_where_there_is_no_other(world, message, found):
    waiting(world, message)
    assert judged(world, "KM211")[0] == {"KM211": "present" if found else "clear"}


@pytest.mark.parametrize(
    ("since", "verdict"),
    [(JUST_NOW, "clear"), (None, "unknown"), ("soon", "unknown"), (LONG_AGO, "present")],
)
def test_a_moment_is_no_fault(world, since, verdict):
    """An autoscaler that adds nodes needs minutes."""
    waiting(world, "0/4 nodes are available: 4 Insufficient cpu.", since=since)
    assert judged(world, "KM210")[0] == {"KM210": verdict}


def test_an_unbound_claim_is_of_the_pod(world):
    waiting(
        world,
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/2"
        " nodes are available: 2 Preemption is not helpful for scheduling.",
    )
    assert [one.code for one in judged(world, *SAID)[1]] == ["KM215"]


def test_a_daemonsets_pod_is_of_one_node(world):
    """What the others say of it is no reason."""
    waiting(
        world,
        "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match Pod's node"
        " affinity/selector.",
        targets=[["cart-1", "w1"]],
    )
    _verdicts, (found,) = judged(world, *SAID)
    assert (found.code, found.severity) == ("KM210", "warning")


def test_a_list_that_was_cut_is_never_clear(world):
    world.api["collectors"]["pending"]["truncated"] = True
    assert judged(world, *SAID, "KM204")[0] == dict.fromkeys((*SAID, "KM204"), "unknown")


# KM216 and KM217, and the nodes that are excluded

MASTERS = "3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
UNREACHABLE = "node.kubernetes.io/unreachable"


def excluded(found):
    return [proof.object for proof in found.evidence if (proof.text or "").startswith("excluded: ")]


@pytest.mark.parametrize(
    "others",
    [
        MASTERS,
        "3 node(s) had untolerated taint(s)",
        "3 node(s) didn't match Pod's node affinity/selector",
    ],
)
def test_a_cordoned_node(world, others):
    node(world, "w1")["unschedulable"] = True
    taint(world, "w1", "node.kubernetes.io/unschedulable")
    waiting(
        world,
        f"0/4 nodes are available: 1 node(s) were unschedulable, {others}.",
        off=["m1", "m2", "m3"] if "match" in others else [],
    )
    verdicts, findings = judged(world, *SAID)
    (found,) = (one for one in findings if one.code == "KM216")
    assert excluded(found) == ["Nodes w1"]
    assert verdicts["KM217"] == "clear"
    assert judged(world, "KM216", "KM514")[1][0].because == ("KM514",)


def test_a_cordoned_node_that_the_pod_does_not_ask_for_is_no_reason(world):
    node(world, "m2")["unschedulable"] = True
    waiting(
        world,
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, 2 node(s) had"
        " untolerated taint(s).",
    )
    # the control plane's taint keeps it off m2 anyway
    assert [(one.code, one.severity) for one in judged(world, *SAID)[1]] == [("KM210", "warning")]


@pytest.mark.parametrize(
    "message",
    [
        f"0/4 nodes are available: 1 node(s) had untolerated taint {{{UNREACHABLE}: }}, {MASTERS}.",
        "0/4 nodes are available: 4 node(s) had untolerated taint(s).",
        f"0/4 nodes are available: 1 node(s) were not ready, {MASTERS}.",
    ],
)
def test_a_node_that_is_not_ready(world, message):
    taint(world, "w1", UNREACHABLE)
    node(world, "w1")["ready"] = "Unknown"
    waiting(world, message)
    _verdicts, (found,) = judged(world, *SAID)
    assert (found.code, found.severity, excluded(found)) == ("KM217", "warning", ["Nodes w1"])


def test_an_unready_node_with_a_taint_of_somebodys_own_is_kept_by_that(world):
    taint(world, "w1", UNREACHABLE)
    taint(world, "w1", "caf", "log")
    node(world, "w1")["ready"] = "Unknown"
    waiting(world, "0/4 nodes are available: 4 node(s) had untolerated taint(s).")
    assert judged(world, *SAID)[1] == []
    assert [one.code for one in judged(world, "KM513", "KM217")[1]] == ["KM513", "KM513"]


@pytest.mark.parametrize(
    ("message", "off", "named"),
    [
        ("1 Insufficient cpu, 3 node(s) had untolerated taint(s)", [], ["Nodes w1"]),
        (
            "1 Insufficient cpu, 1 Insufficient memory, 3 node(s) had untolerated taint(s)",
            [],
            ["Nodes w1", "Nodes w1"],
        ),
        (
            "1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector",
            ["m1", "m2", "m3"],
            ["Nodes w1"],
        ),
        # the labels are not known
        ("1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector", None, []),
        # one is missing
        ("1 Insufficient cpu, 2 node(s) had untolerated taint(s)", [], []),
        ("4 Insufficient cpu", [], ["Nodes m1, m2, m3, w1"]),
    ],
)
def test_a_node_is_named_where_it_is_certain(world, message, off, named):
    waiting(world, f"0/4 nodes are available: {message}.", off=off)
    found = next(one for one in judged(world, *SAID)[1] if one.code == "KM210")
    assert excluded(found) == named


def test_of_another_list_of_nodes_nobody_is_named_by_what_is_left(world):
    waiting(world, "0/5 nodes are available: 5 Insufficient cpu.")
    assert excluded(judged(world, *SAID)[1][0]) == []


def test_the_pod_that_was_asked_for_need_not_wait(world):
    waiting(world, "0/4 nodes are available: 4 Insufficient cpu.", since=JUST_NOW)
    assert judged(world, "KM210")[0] == {"KM210": "clear"}
    waiting(
        world,
        "0/4 nodes are available: 4 Insufficient memory.",
        since=JUST_NOW,
        asked=True,
        names=["mine"],
        owner=None,
        pods=1,
    )
    _verdicts, (found,) = judged(world, "KM210")
    assert found.summary.startswith("1 pod waits")
    assert ": shop/mine" in found.summary


@pytest.mark.parametrize(
    "message",
    [
        "running PreBind plugin: binding rejected",
        "something else",
        "0/4 nodes are available: 4 node(s) didn't match the rack of the group.",
    ],
)
def test_words_that_are_not_known_are_quoted(world, message):
    waiting(world, message)
    _verdicts, (found,) = judged(world, *SAID)
    assert found.code == "KM225"
    assert found.evidence[0].text == message


def test_the_cause_of_known_words_of_the_scheduler_is_told(world):
    waiting(
        world, 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )
    _verdicts, (found,) = judged(world, *SAID)
    assert found.code == "KM225"
    assert "Known cause: The volume of a pod was not made or bound" in found.summary
    assert "kubectl -n NAMESPACE describe pvc NAME" in found.remedy


# 1.18 looks at resources before it looks at selectors: a full node is of every pod's reasons


@pytest.mark.parametrize(
    ("off", "codes", "named"),
    [
        (["m1", "m2", "m3", "w2"], ["KM213"], ["Nodes w1"]),
        (["m1", "m2", "m3", "w1"], ["KM214"], ["Nodes w2"]),
    ],
)
def test_a_full_node_that_the_pod_does_not_ask_for_is_no_reason(world, off, codes, named):
    world.data("api", "nodes")["items"].append({**node(world, "w1"), "name": "w2"})
    world.data("api", "pending")["full"] = ["w2"]
    port = (
        "1 node(s) didn't have free ports for the requested pod ports, "
        if codes == ["KM213"]
        else ""
    )
    waiting(
        world,
        f"0/5 nodes are available: 1 Too many pods, {port}{3 if port else 4} node(s) didn't match"
        " node selector.",
        off=off,
    )
    findings = judged(world, *SAID)[1]
    assert [(one.code, one.severity) for one in findings] == [(code, "warning") for code in codes]
    assert excluded(findings[0]) == named


def test_which_nodes_are_full_may_not_be_known(world):
    world.data("api", "pending")["full"] = None
    waiting(
        world,
        "0/4 nodes are available: 1 Too many pods, 1 Insufficient cpu, 2 node(s) didn't match node"
        " selector.",
        off=["m1", "m2"],
    )
    assert [(one.code, one.severity) for one in judged(world, *SAID)[1]] == [
        ("KM210", "info"),
        ("KM214", "info"),
    ]


def test_of_a_resource_that_other_nodes_lack_as_well_the_pods_own_node_is_named(world):
    node(world, "m2")["unschedulable"] = True
    waiting(
        world,
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu.",
        off=["m1", "m2", "m3"],
    )
    assert excluded(judged(world, "KM210")[1][0]) == ["Nodes m1, m3, w1"]
    world.data("api", "pending")["items"].clear()
    waiting(
        world,
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu, 1 Insufficient"
        " memory.",
        off=["m1", "m2", "m3"],
    )
    assert excluded(judged(world, "KM210")[1][0]) == []  # which of both is of w1 is not known


def test_nodes_that_are_many_are_judged_once_for_all_faults(world, monkeypatch):
    """Nodes are judged by what they carry and what pods tolerate.

    They are not judged one by one, for each pod, by each fault.
    """
    first, asked = node(world, "w1"), []
    world.data("api", "nodes")["items"] += [
        {
            **first,
            "name": f"n{number}",
            "taints": [
                {"key": "rack", "value": str(number % 3), "effect": "NoSchedule", "added": LONG_AGO}
            ],
        }
        for number in range(300)
    ]
    for number in range(40):
        waiting(
            world,
            "0/304 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu, 300"
            " node(s) had untolerated taint(s).",
            names=[f"p{number}"],
            tolerations=[{"key": "rack", "value": str(number % 2), "operator": "Equal"}],
            off=["m1"],
        )
    told = taints.keeps_away
    monkeypatch.setattr(taints, "keeps_away", lambda *args: asked.append(args) or told(*args))
    findings = judged(world, *SAID, "KM513")[1]
    assert {one.code for one in findings} >= {"KM210", "KM513"}
    # two kinds of pods; the control plane's taint, w1's none, and three racks
    assert len(asked) <= 2 * 5


def test_a_second_scheduler_may_wait_for_the_lease_of_the_first_one(world):
    unseen(world, "batch")
    (found,) = judged(world, "KM204")[1]
    facts(found.summary, "2 pods wait", "batch", LONG_AGO, "default-scheduler", "own")
    assert "leaderElection.resourceName" in found.remedy
