# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node shows of a runtime that does not make its pods in time, in KM600."""

from __future__ import annotations

import pytest

from tests.unit.support.waiting_pods import judged, wait

NAME = "app_app-0_default_1234_0"
RESERVED = f'Error: failed to reserve container name "{NAME}": name "{NAME}" is reserved for "5678"'
DEADLINE = "context deadline exceeded"
TASK = {"pid": 812, "name": "containerd", "wchan": "io_schedule", "pod_uid": None}


def hangs(world, **found):
    data = {"tasks": [], "mounts": [], "devices": [], "zombies": []} | found
    world.documents["w1"]["collectors"]["hangs"] = {"status": "ok", "data": data}


def late(world, event=RESERVED, message=DEADLINE):
    """Let three pods of two workloads wait, and return the finding."""
    for owner in ("ReplicaSet/a", "ReplicaSet/b", "ReplicaSet/c"):
        wait(world, "w1", owner, 1, "CreateContainerError", message, ("Failed", event))
    (found,) = judged(world, "KM600")[1]
    return found


def test_a_name_that_is_reserved_says_more_than_a_deadline(world):
    hangs(world)
    found = late(world)
    assert "is reserved for" in found.summary
    assert "disk is the first to look at" in found.summary
    assert "KM607" in found.remedy


@pytest.mark.parametrize("answers", [False, None])
def test_a_mount_that_may_hang_leaves_it_open(world, answers):
    point = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~nfs/data"
    hangs(world, mounts=[{"point": point, "type": "nfs4", "source": "x", "answers": answers}])
    assert "first to look at" not in late(world).summary


def test_without_a_look_at_mounts_nothing_is_ruled_out(world):
    world.documents["w1"]["collectors"].pop("hangs", None)
    assert "first to look at" not in late(world).summary


@pytest.mark.parametrize("event", [RESERVED, f"Error: {DEADLINE}"])
def test_a_runtime_that_waits_for_its_disk_is_shown(world, event):
    hangs(world, tasks=[TASK])
    found = late(world, event)
    assert "the node shows: containerd (pid 812, in io_schedule) is in state D" in found.summary
    assert 812 in [ref.pid for ref in found.evidence]


@pytest.mark.parametrize(("share", "is_shown"), [(63.2, True), (12.0, False), (None, False)])
def test_a_node_that_waits_for_its_disk_is_shown(world, share, is_shown):
    hangs(world)
    data = {"filesystems": [], "stalls": {"io": share, "cpu": 90.0}}
    world.documents["w1"]["collectors"]["pressure"] = {"status": "ok", "data": data}
    found = late(world)
    assert ("waited for a disk in 63 %" in found.summary) == is_shown
    assert ("/proc/pressure/io" in [ref.path for ref in found.evidence]) == is_shown


def test_another_cause_is_left_as_it_is(world):
    hangs(world, tasks=[TASK])
    cause = 'failed to find plugin "x" in path [/opt/cni/bin]'
    assert "the node shows" not in late(world, cause, cause).summary


def test_a_sandbox_whose_name_is_reserved_may_wait_for_its_network(world):
    hangs(world)
    event = RESERVED.replace("container name", "sandbox name")
    found = late(world, event)
    assert "is reserved for" in found.summary
    assert "first to look at" not in found.summary


OF_CRIO = "error reserving {} name k8s_a-1_default_cb2eb967_0 for id a8866e680f49: name is reserved"
LONG, SHORT = "2027-01-15T07:12:00Z", "2027-01-15T07:52:00Z"
SILENT = {"point": "/a", "type": "nfs4", "source": "x", "answers": False}
GONE = {**SILENT, "type": "fuse", "answers": True, "error": "ENOTCONN"}


@pytest.mark.parametrize(
    ("kind", "since", "found", "is_left"),
    [
        ("pod", LONG, {}, True),
        ("ctr", LONG, {}, True),
        # a slow disk takes minutes
        ("pod", SHORT, {}, False),
        ("pod", LONG, {"tasks": [TASK]}, False),
        ("pod", LONG, {"mounts": [SILENT]}, False),
        ("pod", LONG, {"mounts": [GONE]}, False),
    ],
)
def test_cri_o_may_keep_the_name_of_an_attempt_that_ended(world, kind, since, found, is_left):
    hangs(world, **found)
    event = ("FailedCreatePodSandBox", OF_CRIO.format(kind))
    wait(world, "w1", "DaemonSet/a", 1, "ContainerCreating", "", event, since)
    (finding,) = judged(world, "KM600")[1]
    assert ("most likely keeps the name" in finding.summary) is is_left
    assert ("restart crio" in finding.remedy) is is_left


def test_an_attempt_at_a_stage_is_not_given_up(world):
    hangs(world)
    text = (
        "kubelet may be retrying requests that are timing out in CRI-O due to system load."
        " Currently at stage container runtime creation: context deadline exceeded:"
        f" {OF_CRIO.format('ctr')}"
    )
    for owner in ("ReplicaSet/a", "ReplicaSet/b"):
        event = ("Failed", f"Error: {text}")
        wait(world, "w1", owner, 1, "CreateContainerError", "", event, LONG)
    (finding,) = judged(world, "KM600")[1]
    assert "restart crio" not in finding.remedy


def test_without_a_look_at_processes_no_restart_is_advised(world):
    world.documents["w1"]["collectors"].pop("hangs", None)
    event = ("FailedCreatePodSandBox", OF_CRIO.format("pod"))
    wait(world, "w1", "DaemonSet/a", 1, "ContainerCreating", "", event, LONG)
    (finding,) = judged(world, "KM600")[1]
    assert "restart" not in finding.remedy
