# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API says of nodes that do not come back: KM511 to KM514. Tables."""

from __future__ import annotations

import pytest

CODES = frozenset(("KM511", "KM512", "KM513", "KM514"))
MANAGER = "kube-controller-manager"
NODE = "node.kubernetes.io/"
MASTER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
CAF = {"key": "caf", "value": "log", "effect": "NoExecute"}
NOW, FRESH, STALE, LONG = (
    "2027-01-15T08:00:00Z",
    "2027-01-15T07:59:58.000000Z",
    "2027-01-15T07:50:00.000000Z",
    "2027-01-15T07:40:00Z",
)


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes) or CODES)
    verdicts = {item.code: item.verdict for item in result.verdicts}
    verdicts.update({item.code: "not judged" for item in result.not_judged})
    return verdicts, list(result.findings)


def node(world, name):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def silent(world, name, ready="Unknown"):
    conditions = [
        {
            "type": "Ready",
            "status": ready,
            "reason": "NodeStatusUnknown",
            "since": "2027-01-15T07:55:00Z",
        }
    ]
    node(world, name).update(
        ready=ready,
        conditions=conditions,
        lease="2027-01-15T07:54:20.000000Z",
        taints=[
            {"key": NODE + "unreachable", "effect": "NoExecute", "added": "2027-01-15T07:55:05Z"}
        ],
    )


def lock(world, **changes):
    for server in world.data("api", "locks")["servers"]:
        next(one for one in server["objects"] if one["name"] == MANAGER).update(changes)


def test_a_healthy_cluster(world):
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])


def test_evidence_of_an_older_release(world):
    """Locks and Ready stand in it: they are judged; taints and pods are not."""
    for item in world.data("api", "nodes")["items"]:
        for name in ("taints", "conditions", "lease"):
            del item[name]
    del world.api["collectors"]["pending"]
    assert judged(world) == (
        {"KM511": "clear", "KM512": "clear", "KM513": "not judged", "KM514": "not judged"},
        [],
    )
    node(world, "w1")["unschedulable"] = True
    assert judged(world)[0]["KM514"] == "present"


def test_no_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world) == (dict.fromkeys(CODES, "unknown"), [])


def test_no_cluster(world):
    world.api = None
    for name in list(world.documents):
        world.documents[name].update(cluster_key=None, node=None)
        world.documents[name]["collectors"] = {"kubelet": {"status": "absent", "data": None}}
    assert set(judged(world)[0].values()) <= {"not_applicable"}


# KM511


@pytest.mark.parametrize(
    ("changes", "lease", "verdict"),
    [
        ({"renew_time": FRESH}, FRESH, "clear"),
        ({"renew_time": STALE}, FRESH, "present"),
        # its holder's lease stopped with it: that is no clock
        ({"renew_time": STALE}, "2027-01-15T07:50:05.000000Z", "present"),
        # a clock that is ahead of ours cannot make it fresh
        ({"renew_time": "2027-01-15T08:05:00Z"}, "2027-01-15T08:10:00Z", "present"),
        # another may be about to take it
        ({"renew_time": "2027-01-15T07:59:10Z"}, "2027-01-15T08:00:00Z", "clear"),
        ({"renew_time": "2027-01-15T07:58:30Z"}, "2027-01-15T08:00:00Z", "present"),
        (
            {"renew_time": "2027-01-15T07:58:30Z", "lease_duration_s": 60},
            "2027-01-15T08:00:00Z",
            "clear",
        ),
        # by our clock, with a larger margin
        ({"renew_time": STALE}, None, "present"),
        ({"renew_time": "2027-01-15T07:58:30Z"}, None, "clear"),
        ({"renew_time": STALE, "holder": "nobody-here_x"}, FRESH, "present"),
        ({"renew_time": STALE, "holder": None}, FRESH, "present"),
        ({"renew_time": None}, FRESH, "unknown"),
        ({"renew_time": "soon"}, FRESH, "unknown"),
    ],
)
def test_a_lock_that_stands_still(world, changes, lease, verdict):
    lock(world, **changes)
    node(world, "m1")["lease"] = lease
    verdicts, found = judged(world, "KM511")
    assert verdicts == {"KM511": verdict}
    assert len(found) == (verdict == "present")
    assert all(
        (one.host, one.component, one.severity, one.risk) == (None, MANAGER, "critical", 0)
        for one in found
    )


def test_no_controller_manager_runs(world):
    lock(world, renew_time=STALE)
    for name in ("m1", "m2", "m3"):
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] != MANAGER]
    _dummy, (found,) = judged(world, "KM511")
    assert (
        found.summary
        == f"no controller manager leads since {STALE}: it runs on no host that answered; "
        "m1, m2, m3: its manifest is there, and its container does not start or does not stay up"
    )
    assert "kube-controller-manager.yaml" in found.remedy
    assert "held by m1_x" in found.evidence[0].text
    world.silence("m3")
    assert judged(world, "KM511")[1][0].summary.endswith(
        "it runs on no host that answered; m3 did not; m1, m2: its manifest is there, and its"
        " container does not start or does not stay up"
    )


def test_controller_managers_that_run_and_do_not_renew(world):
    lock(world, renew_time=STALE)
    _dummy, (found,) = judged(world, "KM511")
    assert found.summary.endswith("it runs on m1, m2, m3 and does not renew its lock")
    assert "log" in found.remedy


def test_any_fresh_lock_is_a_leader(world):
    """Endpoints that an older release's lock left behind, an API server that answers late."""
    objects = world.data("api", "locks")["servers"]
    objects[0]["objects"].append(
        {
            "kind": "Endpoints",
            "name": MANAGER,
            "holder": "m9_x",
            "renew_time": "2020-01-01T00:00:00Z",
        }
    )
    next(one for one in objects[1]["objects"] if one["name"] == MANAGER)["renew_time"] = STALE
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


def test_without_a_lock_nobody_knows_but_where_one_works_without(world):
    for server in world.data("api", "locks")["servers"]:
        server["objects"] = [one for one in server["objects"] if one["name"] != MANAGER]
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
    world.run("m1", MANAGER, "--leader-elect=false", elect=False)
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


def test_a_lock_that_was_left_behind_where_one_works_without(world):
    lock(world, renew_time=STALE)
    world.run("m1", MANAGER, "--leader-elect=false", elect=False)
    assert judged(world, "KM511") == ({"KM511": "clear"}, [])


@pytest.mark.parametrize(
    ("behind", "verdict"), [(600.0, "clear"), (0.0, "present"), (None, "unknown")]
)
def test_the_clock_of_the_holder_counts_where_its_host_told_it(world, behind, verdict):
    """Its lock and its lease look ten minutes old: they are, or its clock is behind.

    Where it told none, nobody knows.
    """
    lock(world, renew_time=STALE, holder="m2_x")
    node(world, "m2")["lease"] = "2027-01-15T07:50:05.000000Z"
    if behind is None:
        del world.documents["m2"]["asked_at"]
    else:
        world.data("m2", "system")["clock"] -= behind
    assert judged(world, "KM511")[0] == {"KM511": verdict}
    lock(world, holder="m1_x")
    assert judged(world, "KM511")[0] == {"KM511": "present"}


def test_a_holder_whose_node_stopped_took_its_clock_with_it(world):
    """Its lease stopped with the lock, whatever its Node still says.

    The time since counts by the clock of the host that asked.
    """
    lock(world, renew_time=STALE)
    node(world, "m1")["lease"] = "2027-01-15T07:50:20.000000Z"
    for ready in ("True", "Unknown"):
        node(world, "m1")["ready"] = ready
        assert judged(world, "KM511")[0] == {"KM511": "present"}


def test_without_any_clock_nobody_knows(world):
    lock(world, renew_time=STALE)
    node(world, "m1")["lease"] = None
    world.api["collected_at"] = None
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}


def test_a_lock_of_another_name_is_the_one_that_counts(world):
    for name in ("m1", "m2", "m3"):
        answers = world.data(name, "component_http")["components"]
        next(one for one in answers if one["component"] == MANAGER)["configz"]["leader_election"][
            "resourceName"
        ] = "own"
    lock(world, renew_time=STALE)
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
    lock(world, name="own")
    assert judged(world, "KM511")[0] == {"KM511": "present"}


@pytest.mark.parametrize(
    ("key", "effect", "added", "since", "verdict"),
    [
        ("unreachable", "NoExecute", LONG, LONG, "present"),
        ("unreachable", "NoSchedule", LONG, LONG, "present"),
        ("not-ready", "NoExecute", LONG, LONG, "present"),
        # the controller has a few seconds
        ("unreachable", "NoExecute", LONG, "2027-01-15T07:59:30Z", "clear"),
        ("unreachable", "NoExecute", "2027-01-15T07:59:30Z", LONG, "clear"),
        ("unreachable", "NoExecute", None, LONG, "clear"),
        ("unreachable", "PreferNoSchedule", LONG, LONG, "clear"),
        ("disk-pressure", "NoSchedule", LONG, LONG, "clear"),
        ("unreachable", "NoExecute", LONG, None, "clear"),
    ],
)
def test_taints_that_stay_although_the_kubelet_is_well(world, key, effect, added, since, verdict):
    node(world, "w1")["taints"] = [{"key": NODE + key, "effect": effect, "added": added}]
    node(world, "w1")["conditions"][0]["since"] = since
    verdicts, found = judged(world, "KM511")
    assert verdicts == {"KM511": verdict}
    assert [one.summary for one in found] == [
        "taints of the node lifecycle controller stay on w1 although the kubelet posts Ready: "
        "that controller is not at work"
    ] * (verdict == "present")
    node(world, "w1")["ready"] = "Unknown"
    assert judged(world, "KM511")[0] == {"KM511": "clear"}


@pytest.mark.parametrize(
    ("since", "verdict"), [(LONG, "present"), ("2027-01-15T07:58:40Z", "clear")]
)
def test_taints_that_stay_on_a_node_without_a_lease(world, since, verdict):
    """By our clock, which may be another than the node's: with a larger margin."""
    node(world, "w1").update(
        lease=None, taints=[{"key": NODE + "unreachable", "effect": "NoExecute", "added": since}]
    )
    node(world, "w1")["conditions"][0]["since"] = LONG
    assert judged(world, "KM511")[0] == {"KM511": verdict}
    world.api["collected_at"] = None  # then nobody knows how old the lock is either
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}


# KM512


@pytest.mark.parametrize(
    ("ready", "status", "verdict"),
    [
        ("Unknown", "unreachable", "present"),
        ("False", "unreachable", "present"),
        ("True", "unreachable", "clear"),
        ("Unknown", None, "clear"),
        ("Unknown", "error", "unknown"),
        ("Unknown", "not_asked", "not judged"),
    ],
)
def test_a_node_is_down_when_nobody_hears_of_it(world, ready, status, verdict):
    silent(world, "w1", ready)
    if status:
        world.silence("w1", status)
    verdicts, found = judged(world, "KM512")
    assert verdicts == {"KM512": verdict}
    assert len(found) == (verdict == "present")
    for one in found:
        assert (one.host, one.node, one.severity) == ("w1", "w1", "critical")
        says = "posts nothing" if ready == "Unknown" else "said that it is not ready"
        assert (
            one.summary
            == f"w1 is down since 2027-01-15T07:55:00Z: its kubelet {says}, and its host does not"
            " answer"
        )


def test_a_node_that_is_no_host_of_the_inventory_is_not_judged_by_guess(world):
    silent(world, "w1")
    node(world, "w1")["name"] = "stranger"
    assert judged(world, "KM512") == ({"KM512": "unknown"}, [])
    node(world, "stranger")["addresses"] = [{"type": "InternalIP", "address": "w1"}]
    world.silence("w1")
    assert judged(world, "KM512")[0] == {"KM512": "present"}


def test_an_older_release_does_not_say_since_when(world):
    silent(world, "w1")
    for name in ("conditions", "taints", "lease"):
        del node(world, "w1")[name]
    world.silence("w1")
    assert (
        judged(world, "KM512")[1][0].summary
        == "w1 is down: its kubelet posts nothing, and its host does not answer"
    )


@pytest.mark.parametrize(
    ("zone", "change", "said"),
    [
        (
            None,
            None,
            "every worker (3: w1, w2, w3) is NotReady at once although their kubelets run",
        ),
        (None, "one is well", None),
        (None, "one kubelet is dead", None),
        (
            "b",
            "one is well",
            "every node of zone b (2: w2, w3) is NotReady at once although their kubelets run",
        ),
    ],
)
def test_all_at_once_is_the_way_to_the_api(world, zone, change, said):
    for number in (2, 3):
        world.documents[f"w{number}"] = world._host(f"w{number}", f"10.0.0.10{number}", ["node"])
        world.data("api", "nodes")["items"].append(
            {
                "name": f"w{number}",
                "control_plane": False,
                "devices": {},
                "addresses": [],
                "labels": {"topology.kubernetes.io/zone": zone} if zone else {},
            }
        )
    for name in ("w1", "w2", "w3"):
        world.data(name, "kubelet")["process"]["started_at"] = 1_799_990_000.0
        silent(world, name)
    if change == "one is well":
        node(world, "w1")["ready"] = "True"
    elif change:
        world.data("w1", "kubelet")["process"] = None
    verdicts, found = judged(world, "KM512")
    assert ([one.summary for one in found], verdicts) == (
        [said] if said else [],
        {"KM512": "present" if said else "clear"},
    )
    assert all(one.host is None and "load balancer" in one.remedy for one in found)


# KM513


def waiting(world, message, tolerations=(), **more):
    world.data("api", "pending")["items"].append(
        {
            "namespace": "shop",
            "names": ["cart-1", "cart-2"],
            "pods": 2,
            "since": NOW,
            "owner": "ReplicaSet/cart",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": list(tolerations),
            **more,
        }
    )


OLD = (
    "0/4 nodes are available: 1 node(s) had taint {caf: log}, that the pod didn't tolerate, 3"
    " node(s) didn't match node selector."
)
NAMED = (
    "0/4 nodes are available: 1 node(s) had untolerated taint {caf: log}, 3 node(s) had untolerated"
    " taint {node-role.kubernetes.io/control-plane: }. preemption: 0/4 nodes are available: 4"
    " Preemption is not helpful for scheduling."
)
UNNAMED = "0/4 nodes are available: 4 node(s) had untolerated taint(s). no new claims to deallocate"
SHORT = (
    "0/4 nodes are available: 1 node(s) had untolerated taint {caf: log}, 3 Insufficient cpu."
    " preemption: 0/4 nodes are available."
)


@pytest.mark.parametrize(
    ("message", "severity"),
    [(OLD, "warning"), (NAMED, "warning"), (UNNAMED, "warning"), (SHORT, "info")],
)
def test_a_taint_that_somebody_set(world, message, severity):
    node(world, "w1")["taints"] = [dict(CAF)]
    # a dedicated node that keeps nobody waiting is normal
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])
    waiting(world, message)
    verdicts, (found,) = judged(world, "KM513")
    assert verdicts == {"KM513": "present"}
    assert (
        found.host,
        found.node,
        found.severity,
        found.risk,
    ) == ("w1", "w1", severity, 0)
    assert found.summary.startswith(
        "the taint caf=log:NoExecute of w1 keeps ReplicaSet/cart (namespace shop) away: 2 pods"
        " wait; set by a user"
    )
    assert "toleration" in found.remedy
    assert "What must not: any repair" in found.remedy
    assert found.command is None
    assert any(proof.object == "Pod shop/cart-1, cart-2" for proof in found.evidence)


def test_pods_that_tolerate_it_are_kept_away_by_something_else(world):
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(
        world,
        "0/4 nodes are available: 3 node(s) had untolerated taint(s), 1 Insufficient cpu.",
        [{"key": "caf", "operator": "Exists"}],
    )
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


def test_the_taint_of_the_control_plane_counts_where_there_is_nothing_else(single):
    items = single.data("api", "nodes")["items"]
    items[:] = [one for one in items if one["name"] == "m1"]
    waiting(single, "0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    _dummy, (found,) = judged(single, "KM513")
    assert "node-role.kubernetes.io/control-plane:NoSchedule of m1" in found.summary
    assert found.severity == "warning"


@pytest.mark.parametrize(
    "message",
    [
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint"
            " {node.kubernetes.io/unreachable: }, 3 node(s) didn't match."
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't match"
            " Pod's node affinity/selector."
        ),
    ],
)
def test_a_taint_of_the_lifecycle_controller_is_explained(world, message):
    silent(world, "w1")
    waiting(world, message)
    _dummy, (found,) = judged(world, "KM513")
    assert found.remedy.startswith("its owner decides")
    assert found.severity == "info"
    assert "node lifecycle controller" in found.summary
    assert "once the kubelet posts Ready" in found.remedy


@pytest.mark.parametrize(
    "message",
    [
        "",
        "0/4 nodes are available: 4 Insufficient cpu.",
        (
            "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match node"
            " selector."
        ),
        "running PreBind plugin: binding volumes",
        None,
    ],
)
def test_pods_that_wait_for_something_else(world, message):
    node(world, "w1")["taints"] = [
        dict(CAF),
        {"key": NODE + "unschedulable", "effect": "NoSchedule"},
    ]
    waiting(world, message)
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


@pytest.mark.parametrize("effect", ["PreferNoSchedule", "Nonsense"])
def test_a_taint_that_keeps_nobody_away(world, effect):
    node(world, "w1")["taints"] = [{**CAF, "effect": effect}]
    waiting(world, UNNAMED)
    assert judged(world, "KM513") == ({"KM513": "clear"}, [])


def test_nodes_of_an_older_release_say_nothing_of_taints(world):
    del node(world, "w1")["taints"]
    assert judged(world, "KM513", "KM514")[0] == {"KM513": "not judged", "KM514": "not judged"}


@pytest.mark.parametrize("order", [(NAMED, SHORT), (SHORT, NAMED), (SHORT, SHORT)])
def test_pods_that_nothing_else_keeps_waiting_count(world, order):
    """Resources that are short as well may be what others wait for.

    Then, and only then, a taint is information.
    """
    node(world, "w1")["taints"] = [dict(CAF)]
    for number, message in enumerate(order):
        waiting(world, message, owner=f"ReplicaSet/r{number}")
    _dummy, (found,) = judged(world, "KM513")
    assert found.severity == ("warning" if NAMED in order else "info")


def test_of_two_effects_the_one_that_is_not_tolerated(world):
    node(world, "w1")["taints"] = [dict(CAF), {**CAF, "effect": "NoSchedule"}]
    waiting(world, NAMED, [{"key": "caf", "operator": "Exists", "effect": "NoExecute"}])
    _dummy, (found,) = judged(world, "KM513")
    assert found.summary.startswith("the taint caf=log:NoSchedule of w1 keeps")


def test_one_finding_for_a_taint_of_many_nodes_and_owners(world):
    for name in ("m2", "w1"):
        node(world, name)["taints"] = [dict(CAF)]
    for number in range(8):
        waiting(world, NAMED, owner=f"ReplicaSet/r{number}")
    _dummy, (found,) = judged(world, "KM513")
    assert (found.host, found.node) == (None, None)
    assert "of m2, w1 keeps" in found.summary
    assert "and 3 more away: 16 pods wait" in found.summary


def test_a_list_that_was_cut_is_never_clear(world):
    world.api["collectors"]["pending"]["truncated"] = True
    assert judged(world, "KM513")[0] == {"KM513": "unknown"}
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(world, NAMED)
    assert judged(world, "KM513")[0] == {"KM513": "present"}


# KM514


@pytest.mark.parametrize(
    ("cordon", "severity", "said"),
    [
        (
            None,
            "warning",
            "w1 is cordoned by a person since 2027-01-15T07:40:00Z: it takes no new pods",
        ),
        (
            {"run": "r1", "reason": "kernel", "held": True},
            "info",
            (
                "w1 is cordoned by a node_drain (run r1: kernel) that a person comes back for since"
                " 2027-01-15T07:40:00Z: it takes no new pods"
            ),
        ),
        ({"run": "r1", "reason": "kernel", "held": False}, None, None),
    ],
)
def test_a_cordon_of_somebody_else(world, cordon, severity, said):
    node(world, "w1").update(
        unschedulable=True,
        cordon=cordon,
        taints=[{"key": NODE + "unschedulable", "effect": "NoSchedule", "added": LONG}],
    )
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if said else "clear"}
    assert [(one.summary, one.severity, one.host, one.command) for one in found] == (
        [(said, severity, "w1", None)] if said else []
    )


@pytest.mark.parametrize(
    ("taint", "severity", "said"),
    [
        (
            {
                "key": NODE + "out-of-service",
                "value": "nodeshutdown",
                "effect": "NoExecute",
                "added": LONG,
            },
            "warning",
            (
                "w1 is fenced by the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
                " since 2027-01-15T07:40:00Z: the node is declared dead"
            ),
        ),
        (
            {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"},
            "info",
            (
                "w1 is fenced by the taint node.cloudprovider.kubernetes.io/shutdown:NoSchedule:"
                " the cloud says"
            ),
        ),
        (CAF, None, None),
        (MASTER, None, None),
        ({"key": NODE + "unreachable", "effect": "NoExecute"}, None, None),
    ],
)
def test_fences(world, taint, severity, said):
    node(world, "w1")["taints"] = [dict(taint)]
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if said else "clear"}
    assert [one.severity for one in found] == ([severity] if said else [])
    assert all(
        one.summary.startswith(said) and "nothing here removes it" in one.remedy for one in found
    )


def test_values_of_another_type_are_unknown(world):
    node(world, "w1")["taints"] = [{"key": 7}]
    assert judged(world, "KM514") == ({"KM514": "unknown"}, [])
    node(world, "w1")["taints"] = [dict(CAF)]
    waiting(world, 7)
    assert judged(world, "KM513") == ({"KM513": "unknown"}, [])


def test_a_name_that_is_hostile_is_not_printed_as_a_command(world):
    item = node(world, "w1")
    item.update(name="w1; reboot\x1b[31m", unschedulable=True)
    _dummy, (found,) = judged(world, "KM514")
    assert "kubectl uncordon NODE" in found.remedy
    assert "\x1b" not in found.summary


def test_no_control_plane_among_the_hosts(world):
    """A hosted one has left a lock of another time: nobody can tell."""
    lock(world, renew_time=STALE)
    for item in world.data("api", "nodes")["items"]:
        item["control_plane"] = False
    world.data("api", "endpoints")["addresses"] = []
    for name in ("m1", "m2", "m3"):
        del world.documents[name]
    assert judged(world, "KM511")[0] == {"KM511": "unknown"}
