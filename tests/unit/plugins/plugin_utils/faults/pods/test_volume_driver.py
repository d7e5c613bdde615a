# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver on a node that repeats why it cannot mount the volume of pods, in KM600."""

from __future__ import annotations

import pytest

from tests.unit.support.saying_pods import say
from tests.unit.support.waiting_pods import judged, wait

TIMED_OUT = (
    'volume(x) mount "nfs.a.svc:/exports/pvc-1" on "/var/lib/kubelet/pods/1/volumes/'
    'kubernetes.io~csi/pvc-1/mount" failed with timeout after 110s'
)
OF_OTHER_SERVER = TIMED_OUT.replace("nfs.a.svc", "nfs.b.svc")
LINE = (
    "E0910 15:22:39.454827       1 utils.go:114] GRPC error: rpc error: code = Internal desc = {}"
)
DRIVER = "csi-nfs-node-pzs7j"


def waiting(world, text):
    event = ("FailedMount", f'MountVolume.SetUp failed for volume "pvc-4fca47f1" : {text}')
    for owner in ("ReplicaSet/a", "ReplicaSet/b"):
        wait(world, owner=owner, event=event)
    (finding,) = judged(world, "KM600")[1]
    return finding


@pytest.mark.parametrize(
    ("pod", "text", "is_named"),
    [
        (DRIVER, TIMED_OUT, True),
        (DRIVER, OF_OTHER_SERVER, False),
        ("calico-node-pzs7j", TIMED_OUT, False),
    ],
)
def test_the_driver_that_gave_up_the_same_mount_is_named(world, pod, text, is_named):
    say(world, LINE.format(text), pod=pod, container="nfs" if pod == DRIVER else "calico-node")
    finding = waiting(world, TIMED_OUT)
    assert (f"kube-system/{pod}" in finding.summary) is is_named
    assert (f"delete pod {pod}" in finding.remedy) is is_named
    assert "mount.nfs" in finding.remedy


@pytest.mark.parametrize(
    ("text", "is_named"),
    [("cannot stage pvc-4fca47f1: exit 5", True), ("cannot stage pvc-0977: exit 5", False)],
)
def test_a_driver_that_names_the_volume_is_named(world, text, is_named):
    say(world, LINE.format(text), pod=DRIVER, container="nfs")
    finding = waiting(world, "staging failed")
    assert (f"kube-system/{DRIVER}" in finding.summary) is is_named
    assert "delete pod" not in finding.remedy


def test_without_a_driver_that_repeats_it_none_is_named(world):
    assert DRIVER not in waiting(world, TIMED_OUT).summary
