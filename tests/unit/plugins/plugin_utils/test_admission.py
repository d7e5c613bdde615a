# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet rejected, situation by situation: which cause is named, and which is not."""

from __future__ import annotations

import pytest
from ansible_collections.kubemend.remediation.plugins.plugin_utils import judge, plan, remedies

GPU = "nvidia.com/gpu"
FOLDER = "/var/lib/kubelet/device-plugins"
CODES = frozenset(f"KM{number}" for number in (205, *range(320, 332)))


def stamp(second):
    return f"2027-01-15T08:00:{second:02}Z"


def pod(name, count=2, second=0, owner="Job/j", placed=False, scheduler="default-scheduler", phase="Running", **more):
    return {"namespace": "n", "name": name, "uid": f"u-{name}", "node": "w1", "created": stamp(second), "deletion_requested": None,
            "finished_at": None, "phase": phase, "owner": owner, "owner_uid": f"u-{owner}" if owner else None, "placed": placed,
            "scheduler": scheduler, "requests": {GPU: count}, "hash": None, **more}


def refused(name="late", count=2, available=0, second=30, **more):
    message = f"Pod Allocate failed due to requested number of devices unavailable for {GPU}. Requested: {count}, Available: {available}, which is unexpected"
    return pod(name, count, second, **{"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message, "owner": "Job/late", **more})


def entry(name, *ids):
    return {"pod_uid": f"u-{name}", "container": "c", "resource": GPU, "devices": list(ids)}


@pytest.fixture
def gpus(world):
    """w1 with two devices and a plugin at work."""
    def made(rejected=(), pods=(), devices=(2, 2), sockets=(("plugin.sock", True),), entries=(), registered=("gpu-0", "gpu-1"), plugins=(), **checkpoint):
        next(node for node in world.data("api", "nodes")["items"] if node["name"] == "w1")["devices"] = {GPU: list(devices)}
        world.data("api", "rejected").update(items=list(rejected), total=len(rejected),
                                             nodes={"w1": {"pods": list(pods), "plugins": list(plugins)}} if rejected else {})
        world.documents["w1"]["collectors"]["devices"] = {"status": "ok", "data": {
            "folder": FOLDER, "kubelet_socket": {"name": "kubelet.sock", "made": 1.0, "answers": True},
            "sockets": [{"name": name, "made": 2.0, "answers": answers} for name, answers in sockets],
            "checkpoint": {"path": f"{FOLDER}/kubelet_internal_checkpoint", "mtime": 3.0, "size": 1, "error": None, "format": "numa", "checksum": "right",
                           "entries": list(entries), "registered": {GPU: list(registered)}, **checkpoint}}}
        return world

    return made


def found(world):
    return {item.code for item in world.judge().findings}


def finding(world, code):
    return next(item for item in world.judge().findings if item.code == code)


def test_a_node_with_devices_and_nothing_wrong(gpus):
    result = gpus(pods=[pod("a")], entries=[entry("a", "gpu-0", "gpu-1")]).judge()
    assert not result.findings and {item.verdict for item in result.verdicts if item.code in CODES} == {"clear"}


def test_pods_with_node_name_of_different_owners(gpus):
    world = gpus([refused(placed=True)], [pod("a", placed=True)], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320", "KM321"}
    texts = [proof.text for proof in finding(world, "KM320").evidence]
    assert "nodeName set by Job/late" in texts[0] and "gpu-0, gpu-1 of nvidia.com/gpu held by n/a, container c, which runs" in texts[1]
    assert finding(world, "KM320").because == ("KM321",) and finding(world, "KM320").host == "w1"


def test_the_second_pod_of_one_job_is_not_too_much_asked_for(gpus):
    """Two controller managers made it: that is another fault."""
    assert found(gpus([refused(placed=True, owner="Job/j")], [pod("a", placed=True)], entries=[entry("a", "gpu-0", "gpu-1")])) == {"KM320"}


def test_two_leaders_are_named_as_the_cause(gpus):
    world = gpus([refused(placed=True, owner="Job/j")], [pod("a", placed=True)])
    world.manifest("m2", "kube-controller-manager", "--leader-elect=false")
    world.run("m2", "kube-controller-manager", "--leader-elect=false", elect=False)
    assert finding(world, "KM320").because == ("KM101",)


def test_what_is_wrong_with_another_node_explains_nothing(gpus):
    world = gpus([refused(placed=True, owner="Job/j")], [pod("a", placed=True)])
    next(node for node in world.data("api", "nodes")["items"] if node["name"] == "m3")["devices"] = {GPU: [2, 1]}
    assert found(world) == {"KM320", "KM323"} and finding(world, "KM320").because == ()


def test_two_schedulers(gpus):
    world = gpus([refused(scheduler="volcano")], [pod("a")])
    assert found(world) == {"KM205", "KM320"} and "default-scheduler and volcano" in finding(world, "KM205").summary


def test_two_schedulers_of_a_pod_that_had_waited(gpus):
    """What counts is who was there when it came to the kubelet, not when it was made."""
    late = refused(scheduler="volcano", second=0, started=stamp(40), rejected_at=stamp(40))
    assert found(gpus([late], [pod("a", second=20)])) == {"KM205", "KM320"}
    assert found(gpus([late], [pod("a", second=41)])) == {"KM320"}


def test_devices_that_are_not_given_back_to_a_pod_that_had_waited(gpus):
    late = refused(second=0, started=stamp(40), rejected_at=stamp(40))
    ended = pod("a", second=1, phase="Succeeded", finished_at=stamp(10))
    assert found(gpus([late], [ended], entries=[entry("a", "gpu-0", "gpu-1")])) == {"KM320", "KM322"}


def test_one_scheduler_that_counted_right_is_no_second_one(gpus):
    assert found(gpus([refused(scheduler="volcano", count=1, available=0)], [pod("a", 1)])) == {"KM320"}


@pytest.mark.parametrize("state", [{"deletion_requested": stamp(10)}, {"phase": "Succeeded", "finished_at": stamp(10)}])
def test_devices_that_a_pod_did_not_give_back(gpus, state):
    world = gpus([refused()], [pod("a", second=1, **state)], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320", "KM322"}


@pytest.mark.parametrize(("asked", "codes"), [(25, {"KM320"}), (1, {"KM320", "KM322"})])
def test_a_pod_that_comes_in_place_of_another_is_given_the_usual_time(gpus, asked, codes):
    """Two controller managers make and delete pods of one Job all the time."""
    world = gpus([refused(second=40, owner="Job/j")], [pod("a", second=0, deletion_requested=stamp(asked))], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == codes


def test_a_pod_that_is_no_more_may_have_held_its_devices_rightly(gpus):
    """Two controller managers make and delete pods so quickly that the holder is often gone when somebody looks."""
    world = gpus([refused()], [pod("b", 0)], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320"} and "held by pod u-a, container c, which is no more" in finding(world, "KM320").evidence[1].text


def test_a_pod_that_ended_after_the_rejection_held_its_devices_rightly(gpus):
    world = gpus([refused()], [pod("a", phase="Succeeded", finished_at=stamp(50))], entries=[entry("a", "gpu-0", "gpu-1")])
    assert found(world) == {"KM320"}


def test_a_static_pod_is_known_by_its_hash(gpus):
    assert found(gpus([refused()], [pod("mirror", hash="u-static")], entries=[entry("static", "gpu-0", "gpu-1")])) == {"KM320"}


def test_unhealthy_devices(gpus):
    world = gpus(devices=(2, 1), registered=("gpu-0",))
    assert found(world) == {"KM323"} and "1 of 2 nvidia.com/gpu on w1 is unhealthy" in finding(world, "KM323").summary


@pytest.mark.parametrize(("rejected", "devices", "entries", "sockets", "code", "severity"), [
    ([], (2, 0), [], [("plugin.sock", False)], "KM324", "warning"),            # it ended, its socket remains
    ([], (0, 0), [entry("a", "gpu-0")], [], "KM324", "warning"),               # the kubelet was restarted, a pod runs on
    ([], (0, 0), [], [], "KM324", "info"),                                     # taken away, perhaps on purpose
    ([refused(available=0)], (0, 0), [], [], "KM324", "critical"),
    ([], (2, 0), [], [("plugin.sock", True)], "KM323", "warning"),             # it serves, and says that none is healthy
])
def test_a_plugin_that_is_gone_is_told_from_sick_devices(gpus, rejected, devices, entries, sockets, code, severity):
    world = gpus(rejected, devices=devices, entries=entries, sockets=sockets)
    assert found(world) - {"KM320"} == {code} and finding(world, code).severity == severity


def test_without_the_nodes_own_evidence_it_is_unknown_which(gpus):
    world = gpus(devices=(2, 0))
    world.silence("w1")
    verdicts = {item.code: item.verdict for item in world.judge().verdicts}
    assert verdicts["KM323"] == verdicts["KM324"] == "unknown"


def test_a_plugin_that_does_not_stay_up(gpus):
    container = {"name": "c", "ready": False, "restarts": 7, "waiting": "CrashLoopBackOff", "exit_code": 1, "message": "too many open files"}
    world = gpus([refused()], plugins=[{"namespace": "gpu", "name": "plugin-x", "containers": [container]}])
    assert "KM325" in found(world) and "too many open files" in finding(world, "KM325").evidence[0].text
    container.update(ready=True, waiting=None)
    assert "KM325" not in found(world)


def test_names_that_changed_under_running_pods(gpus):
    world = gpus([refused()], [pod("a")], entries=[entry("a", "old-0", "old-1")])
    assert found(world) == {"KM320", "KM326"}


def test_a_corrupt_checkpoint(gpus):
    assert found(gpus(checksum="wrong")) == {"KM327"}
    assert found(gpus(checksum=None, error="it is not what a kubelet writes (ValueError: it is empty)")) == {"KM327"}


@pytest.mark.parametrize(("message", "code"), [
    ("Pod Allocate failed due to not enough cpus available to satisfy request, which is unexpected", "KM329"),
    ("Pod SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2", "KM329"),
    ("Allocate failed due to [memorymanager] failed to get the default NUMA affinity, which is unexpected", "KM330"),
    ("Pod Resources cannot be allocated with Topology locality", "KM331"),
])
def test_rejections_of_the_managers(gpus, message, code):
    world = gpus([refused(message=message)])
    assert found(world) == {"KM320", code} and finding(world, "KM320").because == (code,)


def test_a_list_that_was_cut_proves_no_absence(gpus):
    world = gpus()
    world.api["collectors"]["rejected"]["truncated"] = True
    assert {item.verdict for item in world.judge().verdicts if item.code == "KM320"} == {"unknown"}


def test_evidence_of_an_older_release_is_not_judged(world):
    del world.api["collectors"]["rejected"]
    assert {item.reason for item in world.judge().not_judged if item.code == "KM320"} == {"tier"}


def test_a_node_that_is_no_host_of_the_inventory_is_not_judged(gpus):
    world = gpus(devices=(2, 0))
    del world.documents["w1"]
    assert {item.reason for item in world.judge().not_judged if item.code in ("KM323", "KM324")} == {"limit"}


@pytest.mark.parametrize(("wished", "risk", "steps"), [(False, 1, []), (True, 0, [False]), (True, 1, [True])])
def test_rejected_pods_are_deleted_on_request_only(gpus, wished, risk, steps):
    world = gpus([refused(), refused("later", second=40)])
    result, clusters = judge.examine([*world.documents.values(), world.api])
    consent = plan.Consent(risk, frozenset(), frozenset([plan.CLEAN_UP] if wished else []))
    found = plan.plan(result.findings, clusters, world.documents.__getitem__, consent, remedies.REMEDIES, judge.KEY_DIGITS)
    assert [step.allowed for step in found] == steps
    for step in found:
        assert (step.host, step.risk, step.id) == ("m1", 1, "01-m1-clean-up-w1") and "n/late" in step.diff
        assert [one["uid"] for one in step.change["pods"]] == ["u-late", "u-later"]


# What follows are pods that were admitted again: the kubelet of w1 runs since 08:00:00.
START, BEFORE, AFTER = 1_800_000_000.0, "2027-01-15T07:00:00Z", stamp(4)
UNHEALTHY = f"Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {GPU}, which is unexpected"


def again(name="training", **more):
    """Accepted an hour before the kubelet started, and rejected by it."""
    return refused(name, **{"created": BEFORE, "started": BEFORE, "rejected_at": AFTER, "message": UNHEALTHY, **more})


@pytest.fixture
def rebooted(gpus):
    def made(*rejected, started_at=START, version="v1.36.3", **more):
        world = gpus(rejected, **more)
        world.data("w1", "kubelet")["process"] = {"pid": 7, "argv": ["kubelet"], "started_at": started_at}
        next(node for node in world.data("api", "nodes")["items"] if node["name"] == "w1")["kubelet_version"] = version
        return world

    return made


def verdict(world, code="KM328"):
    return {item.verdict for item in world.judge().verdicts if item.code == code}


def test_a_pod_that_was_admitted_again(rebooted):
    world = rebooted(again(), sockets=(), devices=(2, 0))
    assert found(world) == {"KM320", "KM324", "KM328"}
    seen = finding(world, "KM328")
    assert (seen.host, seen.node, seen.because) == ("w1", "w1", ("KM324",)) and finding(world, "KM320").because == ("KM324", "KM328")
    assert seen.summary == "the kubelet of w1 rejected n/training when it had started and admitted again what was accepted before"
    assert seen.evidence[0].text == "the kubelet runs since 2027-01-15T08:00:00Z"
    assert "(first seen by a kubelet 2027-01-15T07:00:00Z, rejected 2027-01-15T08:00:04Z)" in seen.evidence[1].text


def test_the_plugin_has_come_back_since(rebooted):
    assert found(rebooted(again(), again("other"))) == {"KM320", "KM328"}


@pytest.mark.parametrize("message", [
    f"Pod was rejected: Allocate failed due to cannot allocate unregistered device {GPU}, which is unexpected",
    f"Pod was rejected: Node didn't have enough resource: {GPU}, requested: 2, used: 0, capacity: 0",
])
def test_other_words_for_it(rebooted, message):
    assert found(rebooted(again(message=message))) == {"KM320", "KM328"}


@pytest.mark.parametrize(("pods", "held"), [
    ([pod("a", created=BEFORE, placed=True)], [entry("a", "gpu-0", "gpu-1")]),                                        # KM321 otherwise
    ([pod("a", created=BEFORE, scheduler="volcano")], [entry("a", "gpu-0", "gpu-1")]),                                # KM205
    ([pod("a", created="2027-01-15T06:00:00Z", deletion_requested="2027-01-15T06:30:00Z")], [entry("a", "gpu-0", "gpu-1")]),  # KM322
])
def test_nobody_else_is_blamed_for_it(rebooted, pods, held):
    """The kubelet's words may be those of too few devices: of a checkpoint that was lost, or before 1.25."""
    told = refused()["message"]
    world = rebooted(again(message=told), pods=pods, entries=held)
    assert found(world) == {"KM320", "KM328"}
    assert "KM328" not in found(rebooted(refused(second=30, started=stamp(30), rejected_at=stamp(30)), pods=pods, entries=held))
    assert found(rebooted(again(message=told, rejected_at=BEFORE), pods=pods, entries=held)) & {"KM205", "KM321", "KM322"}


@pytest.mark.parametrize("times", [
    {"started": AFTER},                                               # the first time that a kubelet saw it
    {"started": AFTER, "rejected_at": None},
    {"rejected_at": "2027-01-15T07:00:01Z"},                          # it was rejected before the kubelet started
    {"started": None, "rejected_at": "2027-01-15T07:00:01Z"},
    {"started": "2027-01-15T07:59:56Z"},                              # clocks may differ as much
    {"message": "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request, which is unexpected"},
    {"message": "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000"},
])
def test_a_pod_that_was_not(rebooted, times):
    assert verdict(rebooted(again(**times))) == {"clear"}


def test_nothing_was_rejected(rebooted):
    world = rebooted()
    world.silence("w1")
    assert verdict(world) == {"clear"}


@pytest.mark.parametrize("times", [{"started": None}, {"rejected_at": None}, {"started": "soon"}, {"rejected_at": 7}, {"started": ["x"]}])
def test_without_its_times_it_is_unknown(rebooted, times):
    world = rebooted(again(**times))
    assert verdict(world) == {"unknown"} and "KM328" not in finding(world, "KM320").because


@pytest.mark.parametrize("started_at", [None, "x", True, -1, 0, float("nan"), float("inf"), 1e300, [], {}])
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
    lacks = {(lack.host, lack.collector) for item in world.judge().verdicts if item.code == "KM328" for lack in item.missing}
    assert verdict(world) == {"unknown"} and lacks == {("w1", "host")}


@pytest.mark.parametrize(("version", "entries", "expected"), [
    ("v1.27.2", [], "unknown"), ("v1.27.2", [entry("training", "gpu-0", "gpu-1")], "present"), ("v1.31.0", [entry("other", "gpu-0", "gpu-1")], "unknown"),
    ("v1.27.2", [entry("training", "gpu-0")], "unknown"),
    ("v1.32.0", [], "present"), ("v1.21.14", [], "present"), ("", [], "unknown"), (None, [], "unknown"), (9, [], "unknown"),
])
def test_kubelets_that_admit_again_what_was_rejected_before(rebooted, version, entries, expected):
    assert verdict(rebooted(again(), version=version, entries=entries)) == {expected}


def test_evidence_without_the_time_of_a_rejection_is_of_an_older_release(rebooted):
    pod_ = again()
    del pod_["rejected_at"]
    assert {item.reason for item in rebooted(pod_).judge().not_judged if item.code == "KM328"} == {"tier"}


UNTIMED = {"rejected_at": None, "started": BEFORE}
OLD_TIMES = {"rejected_at": "2027-01-15T07:00:30Z", "started": BEFORE}  # the kubelet was started once more since


@pytest.mark.parametrize("times", [UNTIMED, OLD_TIMES])
@pytest.mark.parametrize(("had", "entries", "version", "there"), [
    (None, [entry("training", "gpu-0", "gpu-1")], "v1.36.3", True),
    ({GPU: 2}, [], "v1.36.3", True),
    ({GPU: 1}, [entry("training", "gpu-0")], "v1.36.3", False),         # a first admission may fail half-way
    ({"x.example/d": 2}, [entry("other", "gpu-0", "gpu-1")], "v1.36.3", False),
    ({GPU: "2"}, [], "v1.36.3", False), ([GPU], [], "v1.36.3", False),
    ({GPU: 2}, [], "v1.31.0", False),                                   # it may have got them after its rejection
])
def test_devices_that_it_was_given_prove_it_without_times(rebooted, times, had, entries, version, there):
    world = rebooted(again(had=had, **times), entries=entries, version=version)
    assert ("KM328" in found(world)) is there
    if there:
        assert "it had been given its nvidia.com/gpu" in finding(world, "KM328").evidence[1].text
