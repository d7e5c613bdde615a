# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a node does not start, KM600, and those whose own workload is the reason, KM610."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message
from tests.unit.support import cni_evidence, ended_pods, known_rows, waiting_pods
from tests.unit.support.waiting_pods import judged, wait

SANDBOX = "FailedCreatePodSandBox"
NO_ADDRESS = "failed to allocate for range 0: no IP addresses available in range set: a-b"
HOST_PATH = 'MountVolume.SetUp failed for volume "a" : hostPath type check failed'
DEADLINE = "error determining status: context deadline exceeded"
LOW_LIMIT = "container init was OOM-killed (memory limit too low?)"
SINCE = waiting_pods.SINCE
LATE = "2027-01-15T07:58:00Z"
NOT_FOUND = 'secret "tls" not found'
DNS = 'Failed to pull image "reg.example/app:1": dial tcp: lookup reg.example: no such host'


@pytest.mark.parametrize("code", ["KM600", "KM610"])
def test_nothing_to_say(world, code):
    assert judged(world, code) == (["clear"], [])
    world.api["collectors"]["pod_start"]["truncated"] = True
    assert judged(world, code) == (["unknown"], [])
    del world.api["collectors"]["pod_start"]
    assert judged(world, code) == (["not judged"], [])
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world, code) == (["unknown"], [])
    world.leave_kubernetes()
    assert set(judged(world, code)[0]) <= {"not_applicable"}


def test_a_sandbox_that_cannot_be_made_is_the_nodes(world):
    wait(world, event=(SANDBOX, NO_ADDRESS))
    verdicts, (finding,) = judged(world, "KM600")
    assert verdicts == ["present"]
    assert (finding.host, finding.node, finding.severity) == ("w1", "w1", "warning")
    assert finding.summary.startswith(f"1 pod does not start since {waiting_pods.SINCE}")
    assert f"(45 times: {NO_ADDRESS})" in finding.summary
    assert "those of other nodes do" in finding.summary
    assert "spec.nodeName=w1" in finding.remedy
    assert [proof.object for proof in finding.evidence] == [
        "Event of Pod default/pod-0",
        "ReplicaSet default/app-1",
    ]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        # one workload's image may be its own; several workloads are the node's
        ([{"event": ("Failed", DNS)}], "clear"),
        ([{"event": ("Failed", DNS)}, {"event": ("Failed", DNS), "owner": "Job/b"}], "present"),
        ([{"event": ("Failed", DNS), "pods": 9}], "clear"),
        ([{"event": ("FailedSync", DEADLINE), "pods": 3}], "present"),
        ([{"event": ("FailedSync", DEADLINE), "pods": 2}], "clear"),
        # two workloads, each with another one's mistake
        (
            [{"event": ("Failed", DNS)}, {"event": ("FailedMount", HOST_PATH), "owner": "b"}],
            "clear",
        ),
        ([{"event": ("FailedSync", DEADLINE)}, {"owner": "Job/b"}], "present"),
        # it was reported, and is over: then nothing is reported
        ([{"event": (SANDBOX, NO_ADDRESS), "last": "2027-01-15T07:50:00Z"}], "clear"),
        ([{"event": (SANDBOX, LOW_LIMIT), "pods": 9}], "clear"),
        # one of many pods is late
        ([{"event": ("FailedSync", DEADLINE), "pods": 9, "times": (SINCE, LATE, LATE)}], "clear"),
        ([{"event": ("FailedSync", DEADLINE), "pods": 9, "times": (SINCE, SINCE)}], "present"),
        # nothing is reported: images may be large
        ([{}, {"owner": "Job/b", "pods": 2}], "present"),
        ([{}, {"owner": "Job/b"}], "clear"),
        ([{"pods": 2}, {"pods": 2, "state": "Init:ContainerCreating"}], "clear"),
        ([{"pods": 9}], "clear"),
        ([{"since": "2027-01-15T07:50:00Z"}, {"owner": "Job/b", "pods": 2}], "clear"),
        # young
        ([{"event": (SANDBOX, NO_ADDRESS), "since": LATE}], "clear"),
        # the workload's own
        ([{"state": "CreateContainerConfigError", "message": NOT_FOUND, "pods": 9}], "clear"),
        ([{"state": "Init:CrashLoopBackOff", "message": "back-off", "pods": 9}], "clear"),
        # an init container works
        ([{"state": "Init:Running", "pods": 9}], "clear"),
        # no age
        ([{"event": (SANDBOX, NO_ADDRESS), "since": None}], "unknown"),
    ],
)
def test_which_pods_are_the_nodes(world, rows, verdict):
    for row in rows:
        wait(world, **row)
    assert judged(world, "KM600")[0] == [verdict]


def test_the_end_of_a_long_message_is_quoted(world):
    begin = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed for sandbox "
    wait(world, event=(SANDBOX, f'{begin}"{"4f1d" * 16}": {NO_ADDRESS}'))
    (finding,) = judged(world, "KM600")[1]
    assert f'(45 times: failed for sandbox "4f1d4f1d4f1d": {NO_ADDRESS})' in finding.summary
    assert begin in finding.evidence[0].text


REFUSED = (
    "failed to mount container a: error creating overlay mount to"
    " /var/lib/containers/storage/overlay/f9b1/merged: {}"
)


@pytest.mark.parametrize(
    ("kernel", "kind", "reason", "word"),
    [
        ("4.15.0-147-generic", "ext4", "invalid argument", "metacopy=on"),
        ("5.10.0-20-amd64", "nfs4", "invalid argument", "is on nfs4"),
        ("4.15.0-147-generic", "overlay", "invalid argument", "is on an overlay itself"),
        ("4.15.0-147-generic", "ext4", "no such device", None),
        ("5.10.0-20-amd64", "ext4", "invalid argument", None),
    ],
)
def test_the_machine_tells_why_its_kernel_refuses_an_overlay(world, kernel, kind, reason, word):
    world.data("w1", "system")["kernel"] = kernel
    mount = {"point": "/", "source": "/dev/vda1", "type": kind, "options": "rw"}
    world.data("w1", "boot")["mounts"] = [mount]
    wait(world, event=(SANDBOX, REFUSED.format(reason)))
    (finding,) = judged(world, "KM600")[1]
    if word is None:
        assert "docs.kernel.org" in finding.remedy  # what is known of the message alone
    else:
        assert word in finding.summary
        assert "Known cause" not in finding.summary


def test_another_node_with_the_same_is_named(world):
    wait(world, event=(SANDBOX, NO_ADDRESS))
    wait(world, node="m1", event=(SANDBOX, NO_ADDRESS))
    _verdicts, findings = judged(world, "KM600")
    assert [finding.node for finding in findings] == ["m1", "w1"]
    assert all("pods wait on 1 other node too" in finding.summary for finding in findings)


@pytest.mark.parametrize(
    ("pods", "states", "severity"),
    [
        (3, {"Running": 3, "ContainerCreating": 3}, "critical"),
        (3, {"Running": 4, "ContainerCreating": 3}, "warning"),
        (3, {"Running": 3, "ContainerCreating": 3, "Completed": 9}, "critical"),
        (2, {"ContainerCreating": 2}, "warning"),
        (10, {"Running": 100}, "critical"),
    ],
)
def test_most_pods_of_a_node_are_critical(world, pods, states, severity):
    wait(world, pods=pods, event=(SANDBOX, NO_ADDRESS))
    waiting_pods.states(world, "w1", **states)
    _verdicts, (finding,) = judged(world, "KM600")
    assert finding.severity == severity
    assert finding.evidence[-1].object == "Node w1"


def test_the_cause_of_most_pods_is_told(world):
    wait(world, pods=2, event=("Failed", DNS))
    wait(world, owner="Job/b", pods=5, event=(SANDBOX, NO_ADDRESS))
    wait(world, owner="Job/c", pods=1, event=("BackOff", "Back-off pulling image"))
    _verdicts, (finding,) = judged(world, "KM600")
    assert "its network plugin has no address left" in finding.summary
    assert "KM602" in finding.remedy


def test_pods_of_which_nothing_is_reported(world):
    wait(world, pods=2)
    wait(world, owner="Job/b")
    _verdicts, (finding,) = judged(world, "KM600")
    assert "and nothing is reported of them" in finding.summary


def test_a_finding_of_the_node_explains_it_and_none_of_another_node(world):
    wait(world, event=(SANDBOX, "failed to get sandbox image"))
    for node in ("w1", "m1"):
        waiting_pods.node_of(world, node).update(
            ready="False",
            conditions=[
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "KubeletNotReady",
                    "since": waiting_pods.SINCE,
                    "message": "cni plugin not initialized" if node == "m1" else "x",
                }
            ],
        )
    codes = frozenset(("KM600", "KM519"))
    (finding,) = [row for row in world.judge(faults=codes).findings if row.code == "KM600"]
    assert finding.because == ()
    waiting_pods.node_of(world, "w1")["conditions"][0]["message"] = "cni plugin not initialized"
    (finding,) = [row for row in world.judge(faults=codes).findings if row.code == "KM600"]
    assert finding.because == ("KM519",)


def test_what_one_workload_alone_waits_for_is_told_with_its_own_mistakes(world):
    wait(world, event=("Failed", DNS), pods=9)
    verdicts, (finding,) = judged(world, "KM610")
    assert (verdicts, finding.severity) == (["present"], "info")
    assert "cannot resolve the registry's name" in finding.summary
    wait(world, event=("Failed", DNS), owner="Job/b")
    assert judged(world, "KM610") == (["clear"], [])


def test_a_pod_that_started_and_ends_again_and_again_is_its_workloads(world):
    crash = ("BackOff", "Back-off restarting failed container app in pod app_default(1)")
    wait(world, event=crash)
    data = world.data("api", "pod_start")
    data["pods"].clear()
    event = data["events"][0]
    event["waiting"] = 0
    (finding,) = judged(world, "KM610")[1]
    assert finding.summary.startswith("1 pod of default/pod-0")
    assert finding.evidence[0].object == "default/pod-0"
    for more in ({"last": waiting_pods.SINCE}, {"first": LATE}):
        data["events"] = [{**event, **more}]
        assert judged(world, "KM610") == (["clear"], [])
    data["events"] = [event] * 3  # of three workloads
    assert judged(world, "KM610") == (["clear"], [])


SYSCTL = (
    "failed to create containerd task: OCI runtime create failed: open /proc/sys/net/core/xyz:"
    " no such file or directory"
)
SUB_PATH = (
    'error mounting "/var/lib/kubelet/pods/1/volume-subpaths/cfg/app/0" to rootfs at "/a":'
    " no such file or directory"
)
MASTER = 'plugin type="macvlan" failed (add): Failed to lookup master "eth7": Link not found'


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([(SANDBOX, SYSCTL)], "clear"),
        ([(SANDBOX, SYSCTL), ("Failed", SUB_PATH)], "clear"),
        ([(SANDBOX, MASTER)], "clear"),
        ([(SANDBOX, MASTER), (SANDBOX, MASTER)], "present"),
        ([("Failed", DNS), (SANDBOX, MASTER)], "clear"),
    ],
)
def test_known_messages_about_workloads_accuse_no_node(world, rows, verdict):
    for number, event in enumerate(rows):
        wait(world, event=event, owner=f"Job/{number}")
    assert judged(world, "KM600")[0] == [verdict]
    assert judged(world, "KM610")[0] == ["clear" if verdict == "present" else "present"]


OF_WORKLOADS = known_rows.of_workloads()


@pytest.mark.parametrize("owners", [("Job/a",), ("Job/a", "Job/b")])
@pytest.mark.parametrize(
    ("name", "place", "text"), OF_WORKLOADS, ids=[line[0] for line in OF_WORKLOADS]
)
def test_what_workloads_themselves_bring_about_accuses_no_node(world, name, place, text, owners):
    reason = "FailedMount" if "MountVolume" in text else "Failed"
    for owner in owners:
        wait(world, event=(reason, text), owner=owner, pods=9)
    assert judged(world, "KM600")[0] == ["clear"]
    (finding,) = judged(world, "KM610")[1]
    assert "which is no fault of a node" in finding.summary
    assert finding.severity == "info"


NO_FOLDER = "MountVolume.SetUp failed: hostPath type check failed: /data is not a directory"
CIFS = 'MountVolume.SetUp failed for volume "b" : mount failed: mount error(13): Permission denied'


def test_two_known_causes_are_not_taken_for_one(world):
    wait(world, event=("FailedMount", NO_FOLDER), owner="Job/a")
    wait(world, event=("FailedMount", CIFS), owner="Job/b")
    assert judged(world, "KM600")[0] == ["clear"]
    (finding,) = judged(world, "KM610")[1]
    assert "/data" in finding.summary
    assert "Known cause" not in finding.summary


def test_a_workloads_own_mistake_is_no_fault_of_a_node(world):
    wait(world, state="CreateContainerConfigError", message=NOT_FOUND, pods=2)
    wait(world, owner="Job/b", state="CrashLoopBackOff", message="back-off 5m0s")
    wait(world, owner="Job/c", state="ErrImagePull", message="manifest unknown", since=LATE)
    verdicts, (finding,) = judged(world, "KM610")
    assert verdicts == ["present"]
    assert (finding.severity, finding.node) == ("info", None)
    assert finding.summary.startswith("3 pods of ReplicaSet default/app-1, Job default/b")
    assert "does not exist" in finding.summary
    assert "kubectl logs --previous" in finding.remedy


@pytest.mark.parametrize(
    ("namespace", "line", "is_quoted"),
    [
        ("gpu-operator", "Failed to allocate device vector A (error code unknown error)!", True),
        ("default", "Failed to allocate device vector A (error code unknown error)!", False),
        ("gpu-operator", "", False),
    ],
)
def test_what_an_add_on_says_at_its_end_is_quoted(world, namespace, line, is_quoted):
    names = {"namespace": "gpu-operator", "pod": "nvidia-cuda-validator-rr9qz"}
    ended_pods.end(world, container="cuda-validation", lines=[line], **names)
    wait(world, owner="DaemonSet/v", state="Init:CrashLoopBackOff", message="back-off 5m0s")
    row = world.data("api", "pod_start")["pods"][0]
    row.update(namespace=namespace, names=[names["pod"]])
    (finding,) = judged(world, "KM610")[1]
    assert finding.severity == "info"
    assert ("unknown error" in finding.summary) is is_quoted
    assert [ref.text for ref in finding.evidence if ref.kind == "log"] == [line] * is_quoted
    assert ("which is no fault of a node" in finding.summary) is not is_quoted


@pytest.mark.parametrize(
    ("namespace", "name", "codes"),
    [
        ("kube-system", "kube-scheduler-w1", []),
        ("kube-system", "etcd-w1", []),
        ("kube-system", "cloud-controller-manager-w1", []),
        ("kube-system", "kube-vip-w1", ["KM550"]),
        ("kube-system", "kube-scheduler-w2", ["KM550"]),
        ("default", "kube-scheduler-w1", ["KM610"]),
    ],
)
def test_a_component_of_the_control_plane_is_no_workload(world, namespace, name, codes):
    """KM114 and KM117 judge it by its container, its log and its manifest."""
    wait(
        world, event=("BackOff", f"Back-off restarting failed container {name[:-3]} in pod {name}")
    )
    data = world.data("api", "pod_start")
    data["pods"].clear()
    data["events"][0].update(waiting=0, pod=f"{namespace}/{name}")
    found = world.judge(faults={"KM550", "KM610"}, deep=True).findings
    assert [item.code for item in found] == codes
    data["events"].clear()
    wait(world, state="CrashLoopBackOff", message="back-off 5m0s")
    data["pods"][0].update(namespace=namespace, names=[name])
    found = world.judge(faults={"KM550", "KM610"}, deep=True).findings
    assert [item.code for item in found] == codes


NOT_SHARED = (
    'Error: failed to start container "smb": Error response from daemon: path /var/lib/kubelet is'
    " mounted on {} but it is not a shared mount"
)


@pytest.mark.parametrize(
    ("mount", "codes"), [("/", ["KM600"]), ("/data", ["KM610"])], ids=["the root", "a mount"]
)
def test_a_container_that_the_machine_keeps_from_its_start_does_not_end(world, mount, codes):
    """The next try of docker to start a container waits as after a crash."""
    wait(world, state="CrashLoopBackOff", event=("Failed", NOT_SHARED.format(mount)))
    found = world.judge(faults={"KM600", "KM610"}, deep=True).findings
    assert [item.code for item in found] == codes


VOLUME = "/var/lib/kubelet/pods/656f7d40-7c02/volumes/kubernetes.io~csi/pvc-d899/mount"
NOT_MADE = (
    "Error: failed to start container: Error response from daemon: error while creating mount"
    " source path '{0}': mkdir {0}: file exists"
)
UNCONNECTED = 'Error: failed to stat "{0}": stat {0}: transport endpoint is not connected'


@pytest.mark.parametrize(
    ("state", "text", "path", "codes"),
    [
        ("CrashLoopBackOff", NOT_MADE, VOLUME, ["KM600"]),
        ("CreateContainerError", UNCONNECTED, VOLUME, ["KM600"]),
        # a folder that the workload names, which may be a file
        ("CrashLoopBackOff", NOT_MADE, "/mnt/data", ["KM610"]),
    ],
)
def test_a_dead_mount_of_a_volume_is_of_the_node(world, state, text, path, codes):
    mount = {"point": VOLUME, "type": "fuse.ceph-fuse", "source": "ceph-fuse", "answers": True}
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": {"mounts": [mount]}}
    wait(world, state=state, event=("Failed", text.format(path)))
    found = world.judge(faults={"KM600", "KM610"}, deep=True).findings
    assert [item.code for item in found] == codes
    assert ["fuse.ceph-fuse" in item.summary for item in found] == [codes == ["KM600"]]


def test_the_answer_of_the_registry_is_quoted(world):
    answer = "unexpected status from HEAD request to https://reg.example/v2/a: 403 Forbidden"
    text = f'Failed to pull image "reg.example/a:1": {"wrapped: " * 30}{answer}'
    wait(world, event=("Failed", text))
    (finding,) = judged(world, "KM610")[1]
    assert "the registry refuses them their image" in finding.summary
    assert f"{answer})" in finding.summary


def test_both_ends_of_a_message_with_paths_are_quoted(world):
    path = "/var/lib/k0s/kubelet/pods/5ac83c3f/volume-subpaths/config/app/0"
    text = f'failed to mkdir "{path * 4}": mkdir {path}: file exists'
    wait(world, event=("FailedSync", text), pods=3)
    wait(world, event=("FailedSync", text), owner="Job/b")
    (finding,) = judged(world, "KM600")[1]
    assert f"mkdir {path}: file exists)" in finding.summary


REMOVED = (
    "2027-01-15T07:10:00+0000 w1 kubelet[8836]: I0115 07:10:00.110869 8836"
    ' image_gc_manager.go:400] "Removing image to free bytes" imageID="sha256:a96c" size=1'
)
BACK_OFF = 'Back-off pulling image "reg.example/app:1"'


def test_an_older_answer_of_the_registry_comes_before_a_removed_image(world):
    record = {"status": "ok", "data": {"lines": [REMOVED]}}
    world.documents["w1"]["collectors"]["kubelet_log"] = record
    event = ("Failed", 'Failed to pull image "reg.example/app:typo": manifest unknown')
    ago = "2027-01-15T07:20:00Z"
    wait(world, event=event, state="ImagePullBackOff", message=BACK_OFF, last=ago, pods=2)
    assert judged(world, "KM600")[0] == ["clear"]
    assert judged(world, "KM610")[0] == ["present"]


@pytest.mark.parametrize(
    ("line", "event", "verdict"),
    [
        (REMOVED, ("BackOff", BACK_OFF), "present"),
        ("", ("BackOff", BACK_OFF), "clear"),
        # the registry says why
        (REMOVED, ("Failed", f"{DNS}"), "clear"),
        (REMOVED, ("Failed", 'Failed to pull image "a": manifest unknown'), "clear"),
        (REMOVED.replace("2027-01-15", "2026-10-01"), ("BackOff", BACK_OFF), "clear"),
    ],
)
def test_an_image_that_the_kubelet_may_have_removed(world, line, event, verdict):
    lines = [line] if line else []
    world.documents["w1"]["collectors"]["kubelet_log"] = {"status": "ok", "data": {"lines": lines}}
    wait(world, event=event, state="ImagePullBackOff", message=BACK_OFF, pods=2)
    verdicts, findings = judged(world, "KM600")
    assert verdicts == [verdict]
    for found in findings:
        assert (found.host, found.node, found.severity) == ("w1", "w1", "warning")
        assert "has removed images" in found.summary
        assert "Removing image to free bytes" in found.evidence[0].text


def test_the_releases_of_both_sides_stand_beside_services_that_are_not_read(world):
    text = "services have not yet been read at least once, cannot construct envvars"
    for owner in ("ReplicaSet/a", "ReplicaSet/b"):
        wait(world, owner=owner, pods=2, state="CreateContainerConfigError", message=text)
    waiting_pods.node_of(world, "w1")["kubelet_version"] = "v1.31.1"
    world.data("api", "server")["git_version"] = "v1.30.4"
    (finding,) = judged(world, "KM600")[1]
    assert "kubelet v1.31.1, API server v1.30.4" in [proof.text for proof in finding.evidence]


SHIM = (
    'Error: failed to start shim: exec: "containerd-shim": executable file not found in $PATH:'
    " unknown"
)


@pytest.mark.parametrize(
    ("event", "last", "code"),
    [
        (("Failed", SHIM), waiting_pods.LAST, "KM600"),
        # what an event of hours ago reports is over, and a container's own end is not the node's
        (("Failed", SHIM), "2027-01-15T06:00:00Z", "KM610"),
        (("BackOff", "Back-off restarting failed container app"), waiting_pods.LAST, "KM610"),
        (("Failed", 'Error: exec: "app": executable file not found'), waiting_pods.LAST, "KM610"),
    ],
)
def test_a_container_that_its_node_cannot_create_waits_as_after_a_crash(world, event, last, code):
    for number in range(2):
        wait(world, "w1", f"ReplicaSet/a{number}", 3, "CrashLoopBackOff", event=event, last=last)
    for asked in ("KM600", "KM610"):
        assert judged(world, asked)[0] == ["present" if asked == code else "clear"]


@pytest.mark.parametrize(("mount", "said"), [("/", False), ("/var/lib/containerd", True)])
def test_a_runtime_that_may_have_started_before_its_disk(world, mount, said):
    room = {"free": 60, "total": 100, "inodes": None, "error": None, "type": "xfs"}
    row = {"name": "imagefs", "path": "/var/lib/containerd", "mount": mount, **room}
    pressed = {"filesystems": [row], "memory": None, "pids": None, "used_up": []}
    world.documents["w1"]["collectors"]["pressure"] = {"status": "ok", "data": pressed}
    missing = 'failed to create snapshot: missing parent "k8s.io/9/sha256:e171" bucket: not found'
    wait(world, event=(SANDBOX, missing))
    _verdicts, (finding,) = judged(world, "KM600")
    assert ("is a mount of its own" in finding.summary) is said


BRIDGE = (
    'rpc error: code = Unknown desc = failed to setup network for sandbox "a": plugin'
    ' type="flannel" failed (add): failed to set bridge addr: "cni0" already has an IP address'
    " different from 10.244.1.1/24"
)
HELPER = (
    'MountVolume.SetUp failed for volume "a" : mount failed: exit status 32 Output: mount: bad'
    " option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper"
    " program."
)
AUTHORITY = 'MountVolume.SetUp failed for volume "a" : configmap "kube-root-ca.crt" not found'


def test_the_cause_of_a_known_message_is_told_instead_of_a_general_one(world):
    wait(world, event=(SANDBOX, BRIDGE))
    (finding,) = judged(world, "KM600")[1]
    assert "the bridge cni0 of that node still has the address of a former range" in finding.summary
    assert "its network plugin fails" not in finding.summary
    assert finding.summary.count("the bridge cni0 of that node") == 1
    assert finding.remedy.startswith("drain the node, then ip link set cni0 down")
    assert "(see https://github.com/" in finding.remedy


@pytest.mark.parametrize(
    ("message", "words"),
    [(HELPER, "no program that mounts"), (AUTHORITY, "no ConfigMap kube-root-ca.crt, which kube")],
)
def test_one_workload_may_wait_for_what_its_node_lacks(world, message, words):
    wait(world, event=("FailedMount", message), pods=9)
    assert judged(world, "KM600")[0] == ["clear"]
    (finding,) = judged(world, "KM610")[1]
    assert words in finding.summary
    assert "which is no fault of a node" not in finding.summary
    assert finding.severity == "warning"


CONTROLLERS = (
    "failed to create containerd task: cgroup [kubepods] has some missing controllers: pids"
)
SERIAL = 'Failed to pull image "reg.example/app:1": x509: negative serial number'
UNPUBLISHED = "The namespace has no ConfigMap kube-root-ca.crt"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        # a kubelet writes it, so that it is no message of events alone
        ((SANDBOX, CONTROLLERS), "The cgroup kubepods of that node"),
        # the answer of the registry has a meaning of its own
        (("Failed", SERIAL), "A certificate has a negative serial number"),
    ],
)
def test_the_cause_of_a_known_message_is_told(world, event, words):
    for number in range(2):
        wait(world, event=event, owner=f"Job/{number}")
    (finding,) = judged(world, "KM600")[1]
    assert f"Known cause: {words}" in finding.summary


@pytest.mark.parametrize(("release", "is_told"), [("v1.20.0", True), ("v1.19.9", False)])
def test_the_known_cause_of_what_is_reported_of_pods_that_say_nothing(world, release, is_told):
    waiting_pods.node_of(world, "w1")["kubelet_version"] = release
    for number in range(3):
        wait(world, event=("FailedMount", AUTHORITY), owner=f"Job/{number}")
    for row in world.data("api", "pod_start")["pods"]:
        row["event"] = None
    (finding,) = judged(world, "KM600")[1]
    assert AUTHORITY in finding.summary
    assert (f"Known cause: {UNPUBLISHED}" in finding.summary) is is_told


MAP = "MountVolume.SetUp failed for volume {}: rpc error: rbd: map failed: (110) timed out"
MISMATCH = "libceph: mon0 192.0.2.9:6789 feature set mismatch, my 10 < server's 40, missing 4"


def kernel(world, line, count, kind="client"):
    row = {"kind": kind, "count": count, "first": 1.0, "last": 2.0, "line": line}
    world.documents["w1"]["collectors"]["kernel_log"] = {
        "status": "ok",
        "data": {"since": 0.0, "cut": False, "rows": [row]},
    }


@pytest.mark.parametrize(
    ("message", "line", "count", "is_of_node"),
    [
        (MAP, MISMATCH, 60, True),
        ("MountVolume.SetUp failed for volume {}: mount.nfs: timed out", MISMATCH, 60, False),
        ("MountVolume.SetUp failed for volume {}: mount.nfs: x", "nfs: server a not", 3, True),
        (MAP, MISMATCH, 2, False),
        (MAP, "cni0: port 4(veth1) entered forwarding state", 60, False),
    ],
)
def test_a_volume_of_which_the_kernel_tells_is_the_node_s(world, message, line, count, is_of_node):
    wait(world, event=("FailedMount", message.format("a")))
    assert judged(world, "KM600") == (["clear"], [])
    kernel(world, line, count)
    verdicts, found = judged(world, "KM600")
    assert verdicts == ["present" if is_of_node else "clear"]
    assert bool(judged(world, "KM610")[1]) == (not is_of_node)
    for finding in found:
        assert f"the kernel of the node says: {line}" in finding.summary
        assert finding.severity == "warning"


def test_what_the_kernel_tells_of_a_volume_leads_to_it(world):
    wait(world, event=("FailedMount", MAP.format("a")))
    kernel(world, MISMATCH, 60)
    found = {row.code: row for row in world.judge(faults={"KM600", "KM562"}).findings}
    assert found["KM600"].because == ("KM562",)
    assert "boot a newer kernel" in found["KM562"].remedy


NO_NETWORK = 'failed to setup network for sandbox "1": plugin type="calico" failed (add): x'


@pytest.mark.parametrize(
    ("message", "pod", "host", "because"),
    [
        (NO_NETWORK, "calico-node", "w1", ("KM550",)),
        (NO_NETWORK, "calico-node", "m1", ()),
        (NO_NETWORK, "coredns", "w1", ()),
        ("runc create failed: x", "calico-node", "w1", ()),
    ],
    ids=["of its network", "of another node", "of another part", "not of the network"],
)
def test_a_network_plugin_that_ends_leads_to_pods_without_a_network(
    world, message, pod, host, because
):
    wait(world, event=(SANDBOX, message))
    ended_pods.end(world, host, pod=f"{pod}-abcde", container=pod)
    _verdicts, (finding,) = judged(world, "KM600")
    assert finding.because == because


ROOT = "/data/kubelet"
UNKNOWN_DRIVER = "driver name csi.example.com not found in the list of registered CSI drivers"
NO_REGISTRY = "hostPath type check failed: /var/lib/kubelet/plugins_registry/ is not a directory"


@pytest.mark.parametrize("message", [UNKNOWN_DRIVER, NO_REGISTRY])
def test_a_kubelet_with_another_folder_is_named_where_a_driver_is_not_found(world, message):
    wait(world, event=("FailedMount", f'MountVolume.SetUp failed for volume "a" : {message}'))
    assert judged(world, "KM600")[0] == ["clear"]
    world.data("w1", "kubelet")["argv"] = ["/usr/bin/kubelet", f"--root-dir={ROOT}/"]
    (finding,) = judged(world, "KM600")[1]
    assert f"its folder at {ROOT} (--root-dir)" in finding.summary
    assert finding.remedy.startswith(f"give the driver the folder {ROOT}")
    assert judged(world, "KM610")[0] == ["clear"]


def test_the_folder_of_a_kubelet_is_not_blamed_for_other_paths(world):
    world.data("w1", "kubelet")["argv"] = ["/usr/bin/kubelet", f"--root-dir={ROOT}"]
    wait(world, event=("FailedMount", "hostPath type check failed: /opt/a is not a directory"))
    assert judged(world, "KM600")[0] == ["clear"]


def test_a_node_without_the_program_for_nfs_is_named_for_one_pod(world):
    message = HELPER.replace("Output:", "Mounting arguments: -t nfs 192.0.2.1:/a /b Output:")
    wait(world, event=("FailedMount", message))
    (finding,) = judged(world, "KM600")[1]
    assert "nfs-common" in finding.summary
    assert judged(world, "KM610")[0] == ["clear"]


def test_a_plugin_that_looks_into_the_usual_folder(world):
    message = (
        'plugin type="multus" failed (add): stat /etc/cni/net.d/multus.d/multus.kubeconfig: no such'
        " file or directory"
    )
    cni_evidence.cni(world, folder="/var/lib/rancher/k3s/agent/etc/cni/net.d")
    wait(world, event=("FailedCreatePodSandBox", message))
    (found,) = judged(world, "KM600")[1]
    assert "/var/lib/rancher/k3s/agent/etc/cni/net.d" in found.summary
    assert "/var/lib/rancher/k3s/agent/etc/cni/net.d" in found.remedy


def proxied(world, exceptions):
    """Let the runtime of w1 have a proxy."""
    proxy = {"HTTPS_PROXY": "http://proxy.example.org:3128", "NO_PROXY": exceptions}
    answer = {"status": "ok", "data": {"kind": "containerd", "proxy": proxy}}
    world.documents["w1"]["collectors"]["runtime"] = answer


def test_a_plugin_that_asks_the_api_through_the_proxy_of_the_runtime(world):
    message = (
        'failed to setup network for sandbox "1": plugin type="calico" failed (add): error getting'
        ' ClusterInformation: Get "https://10.43.0.1:443/apis/x": x509: certificate is valid for'
        " 10.0.0.1, not 10.43.0.1"
    )
    wait(world, event=(SANDBOX, message))
    proxied(world, "example.org")
    (found,) = judged(world, "KM600")[1]
    for words in ("http://proxy.example.org:3128", "not 10.43.0.1", "NO_PROXY"):
        assert words in found.summary
    assert "certSANs" not in found.remedy
    assert "container runtime" in [proof.object for proof in found.evidence]
    proxied(world, "10.43.0.0/16")
    (found,) = judged(world, "KM600")[1]
    assert "NO_PROXY" not in found.summary


def test_an_old_program_is_named_with_the_folder_of_the_runtime(world):
    message = (
        'failed to setup network for sandbox "1": plugin type="bridge" failed (add): incompatible'
        ' CNI versions; config is "1.0.0", plugin supports ["0.4.0"]'
    )
    cni_evidence.cni(world, bin_dirs=["/usr/lib/cni"])
    wait(world, event=(SANDBOX, message))
    (found,) = judged(world, "KM600")[1]
    assert "/usr/lib/cni" in found.summary
    assert "/opt/cni/bin" not in found.summary


def test_what_only_a_machine_brings_about_accuses_a_node_by_one_pod(world):
    message = (
        'MountVolume.MountDevice failed for volume "a" : rpc error: code = Internal desc ='
        " findDiskByLun(0) failed within timeout"
    )
    wait(world, event=("FailedMount", message))
    (finding,) = judged(world, "KM600")[1]
    assert (finding.node, finding.severity) == ("w1", "warning")
    assert "66-azure-storage.rules" in finding.summary
    assert judged(world, "KM610")[0] == ["clear"]


def test_each_row_about_machines_is_of_events_and_of_no_workload():
    rows = {row.id: row for file in known_message.files().values() for row in file}
    assert set(rows) >= known_message.OF_NODES
    places = {name: {*rows[name].places} for name in known_message.OF_NODES}
    assert [name for name in places if not places[name] & {"event", known_message.ANY}] == []
    assert known_message.OF_NODES.isdisjoint(known_message.OF_WORKLOADS)


STORE = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/453/fs/opt/a.js"
REFUSED_LAYER = (
    'Failed to pull image "reg.example/app:1": rpc error: code = Unknown desc = failed to pull and'
    f' unpack image "reg.example/app:1": failed to extract layer sha256:1234: open {STORE}: '
)
REPAIR = (
    'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc ='
    " 'xfs_repair' found errors on device /dev/rbd1 but could not correct them: Phase 1 - find and"
    " verify superblock... ERROR: The filesystem has valuable metadata changes in a log which needs"
    " to be replayed."
)
LATE_ATTACH = (
    'AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = DeadlineExceeded desc ='
    " volume pvc-1 failed to attach to node w1"
)
OF_CGROUP = (
    "Error: failed to create containerd task: failed to create shim task: OCI runtime create"
    " failed: runc create failed: unable to start container process: error setting cgroup config:"
    " write /sys/fs/cgroup/kubepods/a/io.weight: operation not supported: unknown"
)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (("Failed", REFUSED_LAYER + "operation not permitted"), ["a.js", "not permitted"]),
        (("FailedMount", REPAIR), ["xfs_repair fails on /dev/rbd1", "needs to be replayed"]),
        (("FailedAttachVolume", LATE_ATTACH), ["driver", "failed to attach to node w1"]),
        (("Failed", OF_CGROUP), ["runc fails", "io.weight: operation not supported"]),
    ],
)
def test_one_pod_is_enough_where_no_workload_brings_its_error_about(world, event, words):
    wait(world, event=event)
    (finding,) = judged(world, "KM600")[1]
    assert (finding.node, finding.severity) == ("w1", "warning")
    assert [word for word in words if word not in finding.summary] == []
    assert judged(world, "KM610") == (["clear"], [])


@pytest.mark.parametrize(
    ("event", "quoted"),
    [
        # a large image fills a disk, a file that is not there is of the layer
        (("Failed", REFUSED_LAYER + "no space left on device"), None),
        (("Failed", REFUSED_LAYER + "no such file or directory"), "no such file or directory"),
        (("FailedMount", f'MountVolume.SetUp failed for volume "a" : {"x" * 400}: b: c'), "b: c"),
        (("FailedMount", HOST_PATH), "hostPath type check failed"),
    ],
)
def test_what_may_be_of_the_workload_stays_its_own(world, event, quoted):
    wait(world, event=event)
    assert judged(world, "KM600") == (["clear"], [])
    findings = judged(world, "KM610")[1]
    assert len(findings) == (quoted is not None)
    assert all(finding.severity == "info" for finding in findings)
    assert all(str(quoted) in finding.summary for finding in findings)


def test_a_message_that_repeats_the_pods_own_is_quoted_once(world):
    wait(world, event=("FailedMount", REPAIR))
    (finding,) = judged(world, "KM600")[1]
    assert finding.summary.count("needs to be replayed") == 1
    assert "(45 times)" in finding.summary
    assert REPAIR in (finding.evidence[0].text or "")


@pytest.mark.parametrize(
    ("errno", "fapolicyd", "enforce", "active", "silent"),
    [
        ("operation not permitted", True, "1", ["fapolicyd"], ["SELinux"]),
        ("operation not permitted", False, "1", ["does not show which"], ["SELinux", "Active"]),
        ("permission denied", True, "1", ["SELinux"], ["fapolicyd"]),
        ("permission denied", True, "0", ["does not show which"], ["SELinux", "Active"]),
    ],
)
def test_a_policy_that_refuses_root_is_named(world, errno, fapolicyd, enforce, active, silent):
    boot = world.data("w1", "boot")
    boot["fapolicyd"], boot["selinux"] = fapolicyd, {"enforce": enforce, "config": None}
    wait(world, event=("Failed", REFUSED_LAYER + errno))
    (finding,) = judged(world, "KM600")[1]
    assert [word for word in active if word not in finding.summary] == []
    assert [word for word in silent if word in finding.summary] == []


def test_an_attachment_that_failed_long_ago_accuses_no_driver(world):
    wait(world, event=("FailedAttachVolume", LATE_ATTACH), last="2027-01-15T07:40:00Z")
    assert judged(world, "KM600") == (["clear"], [])
    (finding,) = judged(world, "KM610")[1]
    assert finding.severity == "info"


CPUSET = (
    "failed to create containerd task: {}starting container process caused: process_linux.go:385:"
    ' applying cgroup configuration for process caused: failed to write "0-3": write'
    " /sys/fs/cgroup/cpuset/kubepods/{}pod1/app/cpuset.cpus: permission denied: unknown"
)


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (CPUSET.format("OCI runtime create failed: ", "besteffort/"), "koordlet"),
        (CPUSET.format("OCI runtime create failed: ", ""), "parent cgroup"),
        (CPUSET.format("Could not run process: ", "besteffort/"), "Kata"),
    ],
)
def test_no_workload_chooses_the_cpuset_of_its_cgroups(world, message, word):
    wait(world, "w1", "ReplicaSet/a", 1, "RunContainerError", message)
    (found,) = judged(world, "KM600")[1]
    assert found.node == "w1"
    assert [name for name in ("koordlet", "parent cgroup", "Kata") if name in found.summary] == [
        word
    ]
    assert judged(world, "KM610")[1] == []


@pytest.mark.parametrize(("verb", "severity"), [("prepare", "warning"), ("create", "info")])
def test_the_mount_of_a_subpath_may_be_the_nodes(world, verb, severity):
    name = {"prepare": "prepare subPath", "create": "create subPath directory"}[verb]
    message = f'failed to {name} for volumeMount "config" of container "app"'
    wait(world, "w1", "ReplicaSet/a", 1, "CreateContainerConfigError", message)
    (found,) = judged(world, "KM610")[1]
    assert found.severity == severity
    assert ("no fault of a node" in found.summary) == (severity == "info")


@pytest.mark.parametrize(
    ("ready", "words"),
    [
        (("w1", "m1"), "those of other nodes do"),
        (("m1",), "those of other nodes do"),
        (("w1",), "it is the only Ready node"),
        ((), "no node is Ready"),
    ],
)
def test_what_other_nodes_do(world, ready, words):
    wait(world, event=("FailedCreatePodSandBox", "no IPs available"))
    for node in world.data("api", "nodes")["items"]:
        node["ready"] = "True" if node["name"] in ready else "False"
    (finding,) = judged(world, "KM600")[1]
    assert words in finding.summary
