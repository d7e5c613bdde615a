# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet rejected, situation by situation: which cause is named, and which is not."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    rejected_pods,
)
from tests.unit.support.facts import facts

GPU = "nvidia.com/gpu"
FOLDER = "/var/lib/kubelet/device-plugins"
CODES = frozenset(f"KM{number}" for number in (205, *range(320, 332)))


def stamp(second):
    return f"2027-01-15T08:00:{second:02}Z"


def pod(
    name,
    count=2,
    second=0,
    owner="Job/j",
    placed=False,
    scheduler="default-scheduler",
    phase="Running",
    **more,
):
    return {
        "namespace": "batch",
        "name": name,
        "uid": f"u-{name}",
        "node": "w1",
        "created": stamp(second),
        "deletion_requested": None,
        "finished_at": None,
        "phase": phase,
        "owner": owner,
        "owner_uid": f"u-{owner}" if owner else None,
        "placed": placed,
        "scheduler": scheduler,
        "requests": {GPU: count},
        "hash": None,
        **more,
    }


def refused(name="late", count=2, available=0, second=30, **more):
    message = (
        f"Pod Allocate failed due to requested number of devices unavailable for {GPU}. Requested:"
        f" {count}, Available: {available}, which is unexpected"
    )
    return pod(
        name,
        count,
        second,
        **{
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": message,
            "owner": "Job/late",
            **more,
        },
    )


def entry(name, *ids):
    return {"pod_uid": f"u-{name}", "container": "c", "resource": GPU, "devices": list(ids)}


@pytest.fixture
def gpus(world):
    """w1 with two devices and a plugin at work."""

    def made(
        rejected=(),
        pods=(),
        devices=(2, 2),
        sockets=(("plugin.sock", True),),
        entries=(),
        registered=("gpu-0", "gpu-1"),
        plugins=(),
        **checkpoint,
    ):
        next(node for node in world.data("api", "nodes")["items"] if node["name"] == "w1")[
            "devices"
        ] = {GPU: list(devices)}
        world.data("api", "rejected").update(
            items=list(rejected),
            total=len(rejected),
            nodes={"w1": {"pods": list(pods), "plugins": list(plugins)}} if rejected else {},
        )
        world.documents["w1"]["collectors"]["devices"] = {
            "status": "ok",
            "data": {
                "folder": FOLDER,
                "kubelet_socket": {"name": "kubelet.sock", "made": 1.0, "answers": True},
                "sockets": [
                    {"name": name, "made": 2.0, "answers": answers} for name, answers in sockets
                ],
                "checkpoint": {
                    "path": f"{FOLDER}/kubelet_internal_checkpoint",
                    "mtime": 3.0,
                    "size": 1,
                    "error": None,
                    "format": "numa",
                    "checksum": "right",
                    "entries": list(entries),
                    "registered": {GPU: list(registered)},
                    **checkpoint,
                },
            },
        }
        return world

    return made


def verdicts(world):
    """{code: (verdict, what is missing)}; what is not judged has none."""
    return {
        item.code: (item.verdict, [(one.host, one.collector, one.status) for one in item.missing])
        for item in world.judge().verdicts
    }


def found(world):
    return {item.code for item in world.judge().findings}


def finding(world, code):
    return next(item for item in world.judge().findings if item.code == code)


def test_a_node_with_devices_and_nothing_wrong(gpus):
    result = gpus(pods=[pod("a")], entries=[entry("a", "gpu-0", "gpu-1")]).judge()
    assert not result.findings
    assert {item.verdict for item in result.verdicts if item.code in CODES} == {"clear"}


def test_pods_with_node_name_of_different_owners(gpus):
    world = gpus(
        [refused(placed=True)], [pod("a", placed=True)], entries=[entry("a", "gpu-0", "gpu-1")]
    )
    assert found(world) == {"KM320", "KM321"}
    texts = [proof.text for proof in finding(world, "KM320").evidence]
    assert "nodeName set by Job/late" in texts[0]
    assert "gpu-0, gpu-1 of nvidia.com/gpu held by batch/a, container c, which runs" in texts[1]
    assert finding(world, "KM320").because == ("KM321",)
    assert finding(world, "KM320").host == "w1"


def test_the_second_pod_of_one_job_is_not_too_much_asked_for(gpus):
    """Two controller managers made it: that is another fault."""
    assert found(
        gpus(
            [refused(placed=True, owner="Job/j")],
            [pod("a", placed=True)],
            entries=[entry("a", "gpu-0", "gpu-1")],
        )
    ) == {"KM320"}


@pytest.mark.parametrize(
    ("wanted", "codes"), [(None, {"KM320"}), (1, {"KM320"}), (2, {"KM320", "KM321"})]
)
def test_a_job_that_wants_several_pods_may_ask_for_too_much_itself(gpus, wanted, codes):
    """Of as many as it wants at a time none is a second controller manager's."""
    assert (
        found(gpus([refused(placed=True, owner="Job/j", wanted=wanted)], [pod("a", placed=True)]))
        == codes
    )


def lacking(name="late", asked=800, used=1500, there=2000, resource="cpu", **more):
    message = (
        f"Pod was rejected: Node didn't have enough resource: {resource}, requested: {asked}, used:"
        f" {used}, capacity: {there}"
    )
    return pod(
        name,
        0,
        30,
        **{
            "phase": "Failed",
            "reason": f"OutOf{resource}",
            "message": message,
            "owner": "ReplicaSet/late",
            "requests": {},
            "compute": {resource: asked},
            **more,
        },
    )


def asking(name, count, resource="cpu", **more):
    return pod(
        name,
        0,
        **{"owner": f"ReplicaSet/{name}", "requests": {}, "compute": {resource: count}, **more},
    )


@pytest.mark.parametrize(
    ("resource", "unit", "words"),
    [
        ("cpu", 1, "ask for 2.3 CPUs were put on a node that has 2 CPUs, past"),
        (
            "memory",
            2**20,
            "ask for 2300 MiB of memory were put on a node that has 2000 MiB of memory, past",
        ),
        ("pods", 1, "ask for 2300 places for pods were"),
    ],
)
def test_pods_with_node_name_that_ask_for_too_much_cpu_or_memory(gpus, resource, unit, words):
    late = lacking(
        resource=resource, asked=800 * unit, used=1500 * unit, there=2000 * unit, placed=True
    )
    world = gpus([late], [asking("a", 1400 * unit, resource), asking("b", 100 * unit, resource)])
    assert found(world) == {"KM320", "KM321"}
    assert words in finding(world, "KM321").summary
    assert [proof.object for proof in finding(world, "KM321").evidence] == [
        "Pod batch/late",
        "Pod batch/a",
        "Pod batch/b",
    ]
    assert finding(world, "KM320").because == ("KM321",)


def test_evidence_of_a_release_that_counted_devices_alone(gpus):
    """What the others ask for decides, and is not in it: no verdict is clear."""
    late, other = lacking(placed=True), asking("a", 1400)
    del late["compute"], other["compute"]
    told = verdicts(gpus([late], [other]))
    assert told["KM205"] == told["KM321"] == ("unknown", [("m1", "rejected", "absent")])
    assert told["KM320"][0] == "present"
    assert (
        verdicts(gpus([lacking(asked=100, used=1950)], [asking("a", 1400)]))["KM321"][0] == "clear"
    )


def test_huge_pages_are_counted_and_told(gpus):
    huge = "hugepages-2Mi"
    world = gpus(
        [lacking(resource=huge, asked=2**26, used=2**26, there=2**26, placed=True)],
        [asking("a", 2**26, huge)],
    )
    assert found(world) == {"KM320", "KM321"}
    assert "ask for 128 MiB hugepages-2Mi were put on a node" in finding(world, "KM321").summary


@pytest.mark.parametrize(("mark", "codes"), [(None, {"KM320", "KM321"}), ("u-static", {"KM320"})])
def test_a_static_pod_that_was_rejected_was_not_put_there_by_its_template(gpus, mark, codes):
    """Its mirror has a nodeName as if its author had set it, and no template to take it out of.

    The pods that were scheduled filled the node.
    """
    assert (
        found(gpus([lacking(placed=True, hash=mark)], [asking("a", 1400), asking("b", 100)]))
        == codes
    )


def test_what_the_kubelet_lacked_is_told_in_peoples_units(gpus):
    assert "(cpu: 0.8 asked for, 0.5 available)" in finding(gpus([lacking()]), "KM320").summary
    late = lacking(resource="memory", asked=2**30, used=2**31, there=5 * 2**29)
    assert (
        "(memory: 1024 MiB asked for, 512 MiB available)" in finding(gpus([late]), "KM320").summary
    )


@pytest.mark.parametrize(
    ("past", "hash_", "codes"),
    [
        ([1400], None, {"KM320", "KM321"}),
        # without it the rejected one would have found no room either
        ([100], None, {"KM320"}),
        # a static pod's mirror: every kubelet names its node
        ([1400], "static", {"KM320"}),
        ([100] * 14, None, {"KM320", "KM321"}),
    ],
)
def test_a_pod_that_a_scheduler_placed_is_rejected_over_those_with_node_name(
    gpus, past, hash_, codes
):
    others = [
        asking(f"p{number}", count, placed=True, hash=hash_) for number, count in enumerate(past)
    ]
    world = gpus([lacking(placed=False)], [asking("a", 1900 - sum(past)), *others])
    assert found(world) == codes
    if len(past) > 10:
        assert finding(world, "KM321").evidence[-1].text == "and 6 more pods"
        assert len(finding(world, "KM321").evidence) == 11


@pytest.mark.parametrize(("count", "codes"), [(1400, {"KM205", "KM320"}), (50, {"KM320"})])
def test_two_schedulers_that_fill_a_nodes_cpus(gpus, count, codes):
    """The other scheduler's pods must be what was too much."""
    assert (
        found(
            gpus(
                [lacking(scheduler="volcano")],
                [asking("a", 1450 - count, scheduler="volcano"), asking("b", count)],
            )
        )
        == codes
    )


def test_a_replica_set_with_node_name_that_wants_too_many(gpus):
    """Each that fails is replaced at once, and fails as well."""
    pods = [asking(f"a{number}", 700, owner="ReplicaSet/late", placed=True) for number in range(2)]
    world = gpus([lacking(placed=True, wanted=3)], pods)
    assert found(world) == {"KM320", "KM321"}
    world.data("api", "rejected")["items"][0]["wanted"] = 2
    assert found(world) == {"KM320"}


def test_two_leaders_are_named_as_the_cause(gpus):
    world = gpus([refused(placed=True, owner="Job/j")], [pod("a", placed=True)])
    world.manifest("m2", "kube-controller-manager", "--leader-elect=false")
    world.run("m2", "kube-controller-manager", "--leader-elect=false", elect=False)
    assert finding(world, "KM320").because == ("KM101",)


def test_two_schedulers_at_work_by_a_configuration_file_are_named_too(gpus):
    world, config = (
        gpus([refused()], [pod("a")]),
        {
            "path": "/s.yaml",
            "host_path": "/s.yaml",
            "text": "leaderElection: {leaderElect: false}\n",
        },
    )
    world.manifest("m2", "kube-scheduler", "--config=/s.yaml")
    world.run("m2", "kube-scheduler", "--config=/s.yaml", elect=False, config=config)
    assert finding(world, "KM320").because == ("KM104",)


def test_what_is_wrong_with_another_node_explains_nothing(gpus):
    world = gpus([refused(placed=True, owner="Job/j")], [pod("a", placed=True)])
    next(node for node in world.data("api", "nodes")["items"] if node["name"] == "m3")[
        "devices"
    ] = {GPU: [2, 1]}
    assert found(world) == {"KM320", "KM323"}
    assert finding(world, "KM320").because == ()


@pytest.mark.parametrize(
    ("more", "way"),
    [
        ({"placed": False}, "(placed by default-scheduler, for Job/late)"),
        ({"placed": None, "owner": None}, "(schedulerName default-scheduler, without an owner)"),
        ({"placed": True}, "(nodeName set by Job/late)"),
        ({"placed": True, "owner": None}, "(nodeName set by its author)"),
    ],
)
def test_whose_a_rejected_pod_is_and_how_it_came(gpus, more, way):
    assert finding(gpus([refused(**more)]), "KM320").evidence[0].text.endswith(way)


def test_two_schedulers(gpus):
    world = gpus([refused(scheduler="volcano")], [pod("a")])
    assert found(world) == {"KM205", "KM320"}
    assert "default-scheduler and volcano" in finding(world, "KM205").summary


def test_two_schedulers_of_a_pod_that_had_waited(gpus):
    """What counts is who was there when it came to the kubelet, not when it was made."""
    late = refused(scheduler="volcano", second=0, started=stamp(40), rejected_at=stamp(40))
    assert found(gpus([late], [pod("a", second=20)])) == {"KM205", "KM320"}
    assert found(gpus([late], [pod("a", second=41)])) == {"KM320"}


def test_devices_that_are_not_given_back_to_a_pod_that_had_waited(gpus):
    late = refused(second=0, started=stamp(40), rejected_at=stamp(40))
    ended = pod("a", second=1, phase="Succeeded", finished_at=stamp(10))
    assert found(gpus([late], [ended], entries=[entry("a", "gpu-0", "gpu-1")])) == {
        "KM320",
        "KM322",
    }


def test_one_scheduler_that_counted_right_is_no_second_one(gpus):
    assert found(gpus([refused(scheduler="volcano", count=1, available=0)], [pod("a", 1)])) == {
        "KM320"
    }


@pytest.mark.parametrize(
    "state", [{"deletion_requested": stamp(10)}, {"phase": "Succeeded", "finished_at": stamp(10)}]
)
def test_devices_that_a_pod_did_not_give_back(gpus, state):
    world = gpus([refused()], [pod("a", second=1, **state)], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320", "KM322"}


@pytest.mark.parametrize(("asked", "codes"), [(25, {"KM320"}), (1, {"KM320", "KM322"})])
def test_a_pod_that_comes_in_place_of_another_is_given_the_usual_time(gpus, asked, codes):
    """Two controller managers make and delete pods of one Job all the time."""
    world = gpus(
        [refused(second=40, owner="Job/j")],
        [pod("a", second=0, deletion_requested=stamp(asked))],
        entries=[entry("a", "gpu-0", "gpu-1")],
    )
    assert found(world) == codes


def test_a_pod_that_is_no_more_may_have_held_its_devices_rightly(gpus):
    """Two controller managers create and delete pods so quickly that the holder is often gone."""
    world = gpus([refused()], [pod("b", 0)], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320"}
    assert (
        "held by pod u-a, container c, which is no more" in finding(world, "KM320").evidence[1].text
    )


def test_a_pod_that_is_no_more_but_has_processes_says_so(gpus):
    """It was deleted with --force.

    The kubelet may give its devices away, and they are in use.
    """
    world = gpus([refused()], [pod("b", 0)], entries=[entry("a", "gpu-0"), entry("c", "gpu-1")])
    world.documents["w1"]["collectors"]["devices"]["data"]["running"] = ["u-a"]
    texts = [proof.text for proof in finding(world, "KM320").evidence]
    assert "which is no more, but had processes when the node was asked" in texts[1]
    assert texts[2].endswith("which is no more")
    assert texts[3] == "nvidia.com/gpu: capacity 2, allocatable 2"


def test_a_pod_that_ended_after_the_rejection_held_its_devices_rightly(gpus):
    world = gpus(
        [refused()],
        [pod("a", phase="Succeeded", finished_at=stamp(50))],
        entries=[entry("a", "gpu-0", "gpu-1")],
    )
    assert found(world) == {"KM320"}


def test_a_static_pod_is_known_by_its_hash(gpus):
    assert found(
        gpus(
            [refused()],
            [pod("mirror", hash="u-static")],
            entries=[entry("static", "gpu-0", "gpu-1")],
        )
    ) == {"KM320"}


def test_unhealthy_devices(gpus):
    world = gpus(devices=(2, 1), registered=("gpu-0",))
    assert found(world) == {"KM323"}
    assert "1 of 2 nvidia.com/gpu is unhealthy" in finding(world, "KM323").summary


XID = "XidCriticalError: Xid=69 on Device=gpu-1, the device will go unhealthy."
MARKED = "'nvidia.com/gpu' device marked unhealthy: gpu-1"


@pytest.mark.parametrize(
    ("pod_name", "lines", "quoted", "advice"),
    [
        ("nvidia-device-plugin-x", [XID, MARKED], [XID, MARKED], "issues/234"),
        ("shared-device-plugin-x", [MARKED], [MARKED], ""),
        ("amd-device-plugin-x", [XID], [], ""),
        ("nvidia-device-plugin-x", ["error: no such device"], [], ""),
        ("web-nvidia-x", [XID], [], ""),
    ],
)
def test_the_plugin_tells_why_a_device_is_unhealthy(gpus, pod_name, lines, quoted, advice):
    world = gpus(devices=(2, 1), registered=("gpu-0",))
    row = {"namespace": "kube-system", "pod": pod_name, "container": "c", "path": "/l/0.log"}
    world.data("w1", "system_pods")["running"] = [{**row, "told": lines, "entries": []}]
    hit = finding(world, "KM323")
    assert [proof.text for proof in hit.evidence if proof.kind == "log"] == quoted
    assert advice in (hit.remedy or "")
    assert all(line.rstrip(".") in hit.summary for line in quoted[:1])


@pytest.mark.parametrize(
    ("rejected", "devices", "entries", "sockets", "code", "severity"),
    [
        # it ended, its socket remains
        ([], (2, 0), [], [("plugin.sock", False)], "KM324", "warning"),
        # the kubelet was restarted, a pod runs on
        ([], (0, 0), [entry("a", "gpu-0")], [], "KM324", "warning"),
        # taken away, perhaps on purpose
        ([], (0, 0), [], [], "KM324", "info"),
        ([refused(available=0)], (0, 0), [], [], "KM324", "critical"),
        # it serves, and says that none is healthy
        ([], (2, 0), [], [("plugin.sock", True)], "KM323", "warning"),
    ],
)
def test_a_plugin_that_is_gone_is_told_from_sick_devices(
    gpus, rejected, devices, entries, sockets, code, severity
):
    world = gpus(rejected, devices=devices, entries=entries, sockets=sockets)
    assert found(world) - {"KM320"} == {code}
    assert finding(world, code).severity == severity


def test_without_the_nodes_own_evidence_it_is_unknown_which(gpus):
    world = gpus(devices=(2, 0))
    world.silence("w1")
    verdicts = {item.code: item.verdict for item in world.judge().verdicts}
    assert verdicts["KM323"] == verdicts["KM324"] == "unknown"


def test_a_plugin_that_does_not_stay_up(gpus):
    container = {
        "name": "c",
        "ready": False,
        "restarts": 7,
        "waiting": "CrashLoopBackOff",
        "exit_code": 1,
        "message": "too many open files",
    }
    world = gpus(
        [refused()], plugins=[{"namespace": "gpu", "name": "plugin-x", "containers": [container]}]
    )
    assert "KM325" in found(world)
    assert "too many open files" in finding(world, "KM325").evidence[0].text
    assert finding(world, "KM325").summary.endswith("does not stay up: too many open files")
    assert "run kubemend.remediation.too_many_open_files" in finding(world, "KM325").remedy
    container.update(message="no driver")
    assert "too_many_open_files" not in finding(world, "KM325").remedy
    assert "logs plugin-x -c c --previous" in finding(world, "KM325").remedy
    container.update(ready=True, waiting=None)
    assert "KM325" not in found(world)


@pytest.mark.parametrize(
    ("made", "own", "codes"),
    [
        (5.0, 60.0, {"KM324"}),
        (59.5, 60.0, {"KM323"}),
        (61.0, 60.0, {"KM323"}),
        (None, 60.0, {"KM323"}),
    ],
)
def test_a_socket_older_than_the_kubelets_own(gpus, made, own, codes):
    """A program listens there, and the kubelet that runs has never heard of it."""
    world = gpus(devices=(2, 0))
    seen = world.data("w1", "devices")
    seen["sockets"][0]["made"], seen["kubelet_socket"]["made"] = made, own
    assert found(world) == codes
    if "KM324" in codes:
        assert (
            "0 plugin sockets answer; older than the kubelet's own, so not registered with it:"
            " plugin.sock" in finding(world, "KM324").evidence[1].text
        )


def test_a_socket_with_a_time_of_another_type_names_no_cause(gpus):
    world = gpus(devices=(2, 0))
    world.data("w1", "devices")["kubelet_socket"]["made"] = "x"
    assert found(world) == set()
    verdicts = {item.code: item.verdict for item in world.judge().verdicts}
    assert (verdicts["KM323"], verdicts["KM324"]) == ("unknown", "unknown")


def test_names_that_changed_under_running_pods(gpus):
    world = gpus([refused()], [pod("a")], entries=[entry("a", "old-0", "old-1")])
    assert found(world) == {"KM320", "KM326"}


def test_a_corrupt_checkpoint(gpus):
    assert found(gpus(checksum="wrong")) == {"KM327"}
    assert found(
        gpus(checksum=None, error="it is not what a kubelet writes (ValueError: it is empty)")
    ) == {"KM327"}


STARTED = datetime(2027, 1, 15, 8, 0, 5, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("written", "more", "codes"),
    [
        (60, {}, {"KM320", "KM327"}),
        # before it was taken up, as far as clocks can tell
        (3, {}, {"KM320"}),
        (60, {"phase": "Pending"}, {"KM320"}),
        (60, {"deletion_requested": stamp(50)}, {"KM320"}),
        (60, {"requests": {}}, {"KM320"}),
        # no plugin registered it: a DRA driver's
        (60, {"requests": {"x.example/d": 1}}, {"KM320"}),
        (60, {"started": None}, {"KM320"}),  # evidence of an older release
        (60, {"hash": "u-b"}, {"KM320"}),  # a static pod's mirror
    ],
)
def test_a_checkpoint_that_does_not_know_of_a_pod_that_runs(gpus, written, more, codes):
    world = gpus(
        [refused(count=3)],
        [pod("a", **{"started": stamp(5), **more})],
        entries=[entry("b", "gpu-0")],
        mtime=STARTED + written,
    )
    assert found(world) == codes
    if "KM327" in codes:
        assert "does not know that batch/a has nvidia.com/gpu" in finding(world, "KM327").summary


def test_a_checkpoint_is_not_said_to_be_right_where_pods_or_their_times_are_not_told(gpus):
    """It is read on the node; only the evidence of the pods shows whether it knows of every pod."""
    assert verdicts(gpus([refused(count=3)], [pod("a", started=None)], mtime=STARTED + 60))[
        "KM327"
    ] == ("unknown", [("m1", "rejected", "absent")])
    world = gpus(entries=[entry("a", "gpu-0")])
    world.api["collectors"]["rejected"] = {"status": "denied", "data": None}
    assert verdicts(world)["KM327"] == ("unknown", [("m1", "rejected", "denied")])
    world.data("w1", "devices")["checkpoint"]["checksum"] = "wrong"
    assert verdicts(world)["KM327"][0] == "present"


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"entries": [entry("a", "gpu-0", "gpu-1")]},
        {"entries": [entry("b", "gpu-0")] * 2000},
        {"mtime": None},
    ],
)
def test_what_the_checkpoint_knows_or_may_know_is_not_lost(gpus, checkpoint):
    assert "KM327" not in found(
        gpus(
            [refused(count=3)],
            [pod("a", started=stamp(5))],
            **{"mtime": STARTED + 60, **checkpoint},
        )
    )


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (
            (
                "Pod Allocate failed due to not enough cpus available to satisfy request, which is"
                " unexpected"
            ),
            "KM329",
        ),
        ("Pod SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", "KM329"),
        (
            (
                "Allocate failed due to [memorymanager] failed to get the default NUMA affinity,"
                " which is unexpected"
            ),
            "KM330",
        ),
        ("Pod Resources cannot be allocated with Topology locality", "KM331"),
    ],
)
def test_rejections_of_the_managers(gpus, message, code):
    world = gpus([refused(message=message)])
    assert found(world) == {"KM320", code}
    assert finding(world, "KM320").because == (code,)


@pytest.mark.parametrize(
    ("release", "qos", "requests", "is_defect"),
    [
        ("v1.16.1", "BestEffort", {}, True),
        ("v1.16.1", "BestEffort", {GPU: 1}, False),
        ("v1.16.1", "Burstable", {}, False),
        ("v1.17.0", "BestEffort", {}, False),
    ],
)
def test_a_kubelet_that_aligns_what_asks_for_nothing(gpus, release, qos, requests, is_defect):
    message = "Pod Resources cannot be allocated with Topology Locality"
    reason = "Topology Affinity Error"
    world = gpus([refused(reason=reason, message=message, qos=qos, requests=requests)])
    node = next(node for node in world.data("api", "nodes")["items"] if node["name"] == "w1")
    node["kubelet_version"] = release
    shown = finding(world, "KM331")
    assert ("asks for nothing" in shown.summary) is is_defect
    assert ("update the kubelet" in shown.remedy) is is_defect


def test_the_policy_of_the_topology_manager_is_named(gpus):
    message = "Pod Resources cannot be allocated with Topology locality"
    world = gpus([refused(reason="TopologyAffinityError", message=message)])
    assert "topologyManagerPolicy" not in finding(world, "KM331").summary
    world.data("w1", "kubelet")["argv"].append("--topology-manager-policy=single-numa-node")
    assert "(topologyManagerPolicy single-numa-node)" in finding(world, "KM331").summary


def test_a_list_that_was_cut_proves_no_absence(gpus):
    world = gpus()
    world.api["collectors"]["rejected"]["truncated"] = True
    assert {item.verdict for item in world.judge().verdicts if item.code == "KM320"} == {"unknown"}


def test_evidence_of_an_older_release_is_not_judged(world):
    del world.api["collectors"]["rejected"]
    assert {item.reason for item in world.judge().not_judged if item.code == "KM320"} == {"tier"}


@pytest.mark.parametrize(
    ("sockets", "registered", "codes"),
    [
        ([("plugin.sock", True)], None, {"KM324"}),
        ([("plugin.sock", False)], None, set()),
        ([], None, set()),
        # A plugin without devices is registered.
        ([("plugin.sock", True)], [], set()),
    ],
)
def test_a_plugin_answers_to_which_the_kubelet_has_no_connection(gpus, sockets, registered, codes):
    world = gpus(devices=(0, 0), sockets=sockets)
    table = {} if registered is None else {GPU: registered}
    world.data("w1", "devices")["checkpoint"]["registered"] = table
    assert found(world) == codes
    if codes:
        only = finding(world, "KM324")
        assert only.severity == "warning"
        assert "ListAndWatch" in only.remedy


@pytest.mark.parametrize(
    ("age", "error", "codes"),
    [
        (300, None, {"KM324"}),
        (355, None, {"KM324"}),
        (100, None, set()),
        (4000, None, set()),
        (None, None, set()),
        (300, "denied", set()),
    ],
)
def test_what_a_kubelet_dropped_when_its_plugins_had_not_registered(gpus, age, error, codes):
    started = 1_800_000_000.0
    world = gpus(
        devices=(0, 0), sockets=(), mtime=None if age is None else started + age, error=error
    )
    world.data("w1", "devices")["checkpoint"]["registered"] = {}
    world.data("w1", "kubelet")["process"] = {
        "pid": 7,
        "argv": ["kubelet"],
        "started_at": started,
    }
    assert found(world) - {"KM327"} == codes


def test_a_node_that_is_no_host_of_the_inventory_is_not_judged(gpus):
    world = gpus(devices=(2, 0))
    del world.documents["w1"]
    assert {
        item.reason for item in world.judge().not_judged if item.code in ("KM323", "KM324")
    } == {"limit"}


def test_more_pods_than_are_listed(gpus):
    """A ReplicaSet with nodeName makes thousands in an hour."""
    world = gpus([refused(), refused("later", second=40)], [accepted()])
    world.data("api", "rejected")["nodes"]["w1"]["rejected"] = 4812
    assert "rejected 4812 pods, the newest batch/late" in finding(world, "KM320").summary
    result, clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    consent = plan.Consent(1, frozenset(), frozenset([plan.CLEAN_UP]))
    made = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        consent,
        rejected_pods.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert next(step.note for step in made if step.remedy == plan.CLEAN_UP).startswith(
        "the newest 2 of 4812, run again for the rest; "
    )


def accepted(count=2, second=50, **more):
    """Return a pod that runs, and that its kubelet took later than those that it rejected."""
    return pod("next", count, second, **{"started": stamp(second), "owner": "Job/late", **more})


@pytest.mark.parametrize(
    ("wished", "risk", "steps"), [(False, 1, []), (True, 0, [False]), (True, 1, [True])]
)
def test_rejected_pods_are_deleted_on_request_only(gpus, wished, risk, steps):
    world = gpus([refused(), refused("later", second=40)], [accepted()])
    result, clusters = fault_engine.evaluate_clusters([*world.documents.values(), world.api])
    consent = plan.Consent(risk, frozenset(), frozenset([plan.CLEAN_UP] if wished else []))
    found = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        consent,
        rejected_pods.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert [step.allowed for step in found] == steps
    for step in found:
        assert (step.host, step.risk, step.id) == (
            "m1",
            1,
            "01-m1-clean-up-w1",
        )
        assert "batch/late" in step.diff
        assert [one["uid"] for one in step.change["pods"]] == ["u-late", "u-later"]


# What follows are pods that were admitted again: the kubelet of w1 runs since 08:00:00.
START, BEFORE, AFTER = 1_800_000_000.0, "2027-01-15T07:00:00Z", stamp(4)
UNHEALTHY = (
    "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate"
    f" unhealthy devices {GPU}, which is unexpected"
)


def again(name="training", **more):
    """Return a pod that was accepted an hour before the kubelet started, and rejected by it."""
    return refused(
        name,
        **{
            "created": BEFORE,
            "started": BEFORE,
            "rejected_at": AFTER,
            "message": UNHEALTHY,
            **more,
        },
    )


@pytest.fixture
def rebooted(gpus):
    def made(*rejected, started_at=START, version="v1.36.3", **more):
        world = gpus(rejected, **more)
        world.data("w1", "kubelet")["process"] = {
            "pid": 7,
            "argv": ["kubelet"],
            "started_at": started_at,
        }
        next(node for node in world.data("api", "nodes")["items"] if node["name"] == "w1")[
            "kubelet_version"
        ] = version
        world.data("api", "server")["git_version"] = "v1.36.3"
        return world

    return made


def verdict(world, code="KM328"):
    return {item.verdict for item in world.judge().verdicts if item.code == code}


def test_a_pod_that_was_admitted_again(rebooted):
    world = rebooted(again(), sockets=(), devices=(2, 0))
    assert found(world) == {"KM320", "KM324", "KM328"}
    seen = finding(world, "KM328")
    assert (seen.host, seen.node, seen.because) == ("w1", "w1", ("KM324",))
    assert finding(world, "KM320").because == ("KM324", "KM328")
    facts(seen.summary, "kubelet", "checked the pods of this node again", "batch/training")
    assert seen.evidence[0].text == "the kubelet runs since 2027-01-15T08:00:00Z"
    assert (
        "(first seen by a kubelet 2027-01-15T07:00:00Z, rejected 2027-01-15T08:00:04Z)"
        in seen.evidence[1].text
    )


def test_the_plugin_has_come_back_since(rebooted):
    assert found(rebooted(again(), again("other"))) == {"KM320", "KM328"}


@pytest.mark.parametrize(
    "message",
    [
        (
            f"Pod was rejected: Allocate failed due to cannot allocate unregistered device {GPU},"
            " which is unexpected"
        ),
        (
            f"Pod was rejected: Node didn't have enough resource: {GPU}, requested: 2, used: 0,"
            " capacity: 0"
        ),
    ],
)
def test_other_words_for_it(rebooted, message):
    assert found(rebooted(again(message=message))) == {"KM320", "KM328"}


@pytest.mark.parametrize(
    ("pods", "held"),
    [
        # KM321 otherwise
        ([pod("a", created=BEFORE, placed=True)], [entry("a", "gpu-0", "gpu-1")]),
        # KM205
        ([pod("a", created=BEFORE, scheduler="volcano")], [entry("a", "gpu-0", "gpu-1")]),
        # KM322
        (
            [pod("a", created="2027-01-15T06:00:00Z", deletion_requested="2027-01-15T06:30:00Z")],
            [entry("a", "gpu-0", "gpu-1")],
        ),
    ],
)
def test_nobody_else_is_blamed_for_it(rebooted, pods, held):
    """The kubelet's message may be the one for too few devices.

    It is so after a checkpoint was lost, or before 1.25.
    """
    told = refused()["message"]
    world = rebooted(again(message=told), pods=pods, entries=held)
    assert found(world) == {"KM320", "KM328"}
    assert "KM328" not in found(
        rebooted(
            refused(second=30, started=stamp(30), rejected_at=stamp(30)), pods=pods, entries=held
        )
    )
    assert found(rebooted(again(message=told, rejected_at=BEFORE), pods=pods, entries=held)) & {
        "KM205",
        "KM321",
        "KM322",
    }


@pytest.mark.parametrize(
    "times",
    [
        # the first time that a kubelet saw it
        {"started": AFTER},
        {"started": AFTER, "rejected_at": None},
        # it was rejected before the kubelet started
        {"rejected_at": "2027-01-15T07:00:01Z"},
        {"started": None, "rejected_at": "2027-01-15T07:00:01Z"},
        {"started": "2027-01-15T07:59:56Z"},  # clocks may differ as much
        {
            "message": (
                "Pod was rejected: Allocate failed due to not enough cpus available to satisfy"
                " request, which is unexpected"
            )
        },
        {
            "message": (
                "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 0,"
                " capacity: 1000"
            )
        },
    ],
)
def test_a_pod_that_was_not(rebooted, times):
    assert verdict(rebooted(again(**times))) == {"clear"}


def test_nothing_was_rejected(rebooted):
    world = rebooted()
    world.silence("w1")
    assert verdict(world) == {"clear"}


@pytest.mark.parametrize(
    "times",
    [
        {"started": None},
        {"rejected_at": None},
        {"started": "soon"},
    ],
)
def test_without_its_times_it_is_unknown(rebooted, times):
    world = rebooted(again(**times))
    assert verdict(world) == {"unknown"}
    assert "KM328" not in finding(world, "KM320").because


@pytest.mark.parametrize("times", [{"rejected_at": 7}, {"started": ["x"]}])
def test_a_time_of_another_type_makes_it_unknown(rebooted, times):
    world = rebooted(again(**times))
    assert verdict(world) == {"unknown"}
    assert "KM320" not in {item.code for item in world.judge().findings}


@pytest.mark.parametrize(
    "started_at", [None, "x", True, -1, 0, float("nan"), float("inf"), 1e300, [], {}]
)
def test_without_the_kubelets_start_it_is_unknown(rebooted, started_at):
    assert verdict(rebooted(again(), started_at=started_at)) == {"unknown"}


@pytest.mark.parametrize("process", [None, [], "x", 7])
def test_without_a_kubelet_it_is_unknown(rebooted, process):
    world = rebooted(again())
    world.data("w1", "kubelet")["process"] = process
    assert verdict(world) == {"unknown"}


def test_without_the_node_it_is_unknown(rebooted):
    world = rebooted(again())
    world.silence("w1")
    verdicts = [item for item in world.judge().verdicts if item.code == "KM328"]
    lacks = {(lack.host, lack.collector) for item in verdicts for lack in item.missing}
    assert verdict(world) == {"unknown"}
    assert lacks == {("w1", "host")}


@pytest.mark.parametrize(
    ("version", "entries", "expected"),
    [
        ("v1.27.2", [], "unknown"),
        ("v1.27.2", [entry("training", "gpu-0", "gpu-1")], "present"),
        ("v1.31.0", [entry("other", "gpu-0", "gpu-1")], "unknown"),
        ("v1.27.2", [entry("training", "gpu-0")], "unknown"),
        ("v1.32.0", [], "present"),
        ("v1.21.14", [], "present"),
        ("", [], "unknown"),
        (None, [], "unknown"),
        (9, [], "unknown"),
    ],
)
def test_kubelets_that_admit_again_what_was_rejected_before(rebooted, version, entries, expected):
    assert verdict(rebooted(again(), version=version, entries=entries)) == {expected}


def test_evidence_without_the_time_of_a_rejection_is_of_an_older_release(rebooted):
    pod_ = again()
    del pod_["rejected_at"]
    assert {item.reason for item in rebooted(pod_).judge().not_judged if item.code == "KM328"} == {
        "tier"
    }


UNTIMED = {"rejected_at": None, "started": BEFORE}
# the kubelet was started once more since
OLD_TIMES = {"rejected_at": "2027-01-15T07:00:30Z", "started": BEFORE}


@pytest.mark.parametrize("times", [UNTIMED, OLD_TIMES])
@pytest.mark.parametrize(
    ("had", "entries", "version", "there"),
    [
        (None, [entry("training", "gpu-0", "gpu-1")], "v1.36.3", True),
        ({GPU: 2}, [], "v1.36.3", True),
        # a first admission may fail half-way
        ({GPU: 1}, [entry("training", "gpu-0")], "v1.36.3", False),
        ({"x.example/d": 2}, [entry("other", "gpu-0", "gpu-1")], "v1.36.3", False),
        ({GPU: "2"}, [], "v1.36.3", False),
        ([GPU], [], "v1.36.3", False),
        # it may have got them after its rejection
        ({GPU: 2}, [], "v1.31.0", False),
    ],
)
def test_devices_that_it_was_given_prove_it_without_times(
    rebooted, times, had, entries, version, there
):
    world = rebooted(again(had=had, **times), entries=entries, version=version)
    assert ("KM328" in found(world)) is there
    if there:
        assert "it had been given its nvidia.com/gpu" in finding(world, "KM328").evidence[1].text


@pytest.mark.parametrize(
    ("rejected_after", "made_after", "healthy", "registered", "is_told"),
    [
        (20, [80], 2, ["gpu-0"], True),
        (20, [80, 85], 2, ["gpu-0"], True),
        # another plugin was there before, which may be that of these devices
        (20, [10, 80], 2, ["gpu-0"], False),
        (100, [80], 2, ["gpu-0"], False),
        (20, [80], 0, ["gpu-0"], False),
        (20, [80], 2, None, False),
        (2000, [2100], 2, ["gpu-0"], False),
        (-100, [80], 2, ["gpu-0"], False),
    ],
)
def test_pods_that_came_before_their_plugin_after_a_boot(
    gpus, rejected_after, made_after, healthy, registered, is_told
):
    world = gpus(devices=(2, healthy), sockets=[(f"{made}.sock", True) for made in made_after])
    begun = datetime(2027, 1, 15, 7, tzinfo=timezone.utc).timestamp()
    world.data("w1", "kubelet")["process"]["started_at"] = begun
    data = world.data("w1", "devices")
    for row, made in zip(data["sockets"], made_after, strict=True):
        row["made"] = begun + made
    data["checkpoint"]["registered"] = {GPU: registered} if registered else {}
    when = datetime.fromtimestamp(begun + rejected_after, tz=timezone.utc)
    item = refused(count=1, started=when.strftime("%Y-%m-%dT%H:%M:%SZ"))
    world.data("api", "rejected").update(
        items=[item], total=1, nodes={"w1": {"pods": [], "plugins": [], "rejected": 1}}
    )
    told = finding(world, "KM320")
    assert ("was not there before" in told.summary) == is_told
    assert ("uncordon it when its Node shows the devices" in told.remedy) == is_told
