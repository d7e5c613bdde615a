# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that kubelets rejected, the holders of their devices, and plugins at work."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    devices as devices_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.devices import Node, Pod
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import admission_message

GPU = "nvidia.com/gpu"
AT = datetime(2027, 1, 15, 8, tzinfo=timezone.utc)


def minutes(count):
    return AT + timedelta(minutes=count)


POD = Pod("n/a", "u1", "Job/j", "o", "default-scheduler", False, {GPU: 1}, AT, None, None, None)


def node(release=(1, 35), entries=(), registered=(GPU,), mtime=None, pods=(), **seen):
    checkpoint = {
        "entries": [
            {"pod_uid": uid, "container": "app", "resource": GPU, "devices": [device]}
            for uid, device in entries
        ],
        "registered": {resource: ["d0"] for resource in registered},
        "mtime": mtime,
    }
    answer = decode(devices_answer.Devices, {"checkpoint": checkpoint, **seen}).answer
    host = SimpleNamespace(host="h1", devices=answer, kubelet_started=AT)
    return Node("w1", host, {GPU: (4, 4)}, pods=list(pods), release=release)


@pytest.mark.parametrize(
    ("changes", "when", "alive"),
    [
        ({}, None, True),
        ({}, minutes(1), True),
        ({}, minutes(-1), False),
        ({"ended": minutes(5)}, minutes(1), True),
        ({"ended": minutes(5)}, minutes(6), False),
        ({"deleted": minutes(2), "ended": minutes(5)}, minutes(3), False),
        ({"ended": minutes(5)}, None, False),
    ],
)
def test_a_pod_holds_from_its_creation_to_its_end_or_deletion(changes, when, alive):
    assert replace(POD, **changes).alive_at(when) is alive


@pytest.mark.parametrize(
    ("placed", "scheduler", "words"),
    [(True, None, "nodeName"), (False, "own", "placed by own"), (None, "own", "schedulerName")],
)
def test_how_a_pod_came_to_its_node(placed, scheduler, words):
    assert words in replace(POD, placed=placed, scheduler=scheduler).way()


def test_the_states_of_those_who_hold_devices():
    pods = [
        POD,
        replace(POD, uid="u2", deleted=AT),
        replace(POD, uid="u3", ended=AT),
        replace(POD, uid="u4", alias="mirror"),
    ]
    entries = [("u1", "a"), ("u2", "b"), ("u3", "c"), ("mirror", "d"), ("u9", "e")]
    states = [one.state for one in node(entries=entries, pods=pods).holdings()]
    assert states == ["alive", "terminating", "ended", "alive", "gone"]


@pytest.mark.parametrize(
    ("release", "entries", "started", "rejected_at", "again"),
    [
        ((1, 35), [("u1", "a")], None, None, True),
        ((1, 25), [("u1", "a")], -5, 5, True),
        ((1, 25), [], -5, 5, None),
        ((1, 35), [], -5, 5, True),
        ((1, 35), [], 5, 6, False),
        ((1, 35), [], -9, -5, False),
        ((1, 35), [], None, 5, None),
    ],
)
def test_a_pod_that_an_earlier_kubelet_had_accepted(release, entries, started, rejected_at, again):
    pod = replace(
        POD,
        refusal=admission_message.Refusal("devices", resource=GPU),
        started=None if started is None else minutes(started),
        rejected_at=None if rejected_at is None else minutes(rejected_at),
    )
    assert node(release, entries).admitted_again(pod) is again


@pytest.mark.parametrize(
    ("changes", "registered", "forgotten"),
    [
        ({}, (GPU,), ["u1"]),
        ({"runs": False}, (GPU,), []),
        ({"deleted": AT}, (GPU,), []),
        ({}, (), []),
        ({"started": minutes(30)}, (GPU,), []),
    ],
)
def test_devices_of_running_pods_that_the_newer_checkpoint_lacks(changes, registered, forgotten):
    pod = replace(POD, **{"runs": True, "started": minutes(1), **changes})
    found = node(registered=registered, mtime=minutes(10).timestamp(), pods=[pod]).forgotten()
    assert [pod.uid for pod, _resource in found] == forgotten


@pytest.mark.parametrize(
    ("sockets", "unserved"),
    [
        ([], True),
        ([{"answers": True, "made": 200}], False),
        ([{"answers": False, "made": 200}], True),
        ([{"answers": True, "made": 10}], True),
    ],
)
def test_a_resource_is_served_by_a_socket_that_is_not_older_than_the_kubelets(sockets, unserved):
    assert node(sockets=sockets, kubelet_socket={"made": 100}).unserved(GPU) is unserved


def test_of_a_node_that_was_not_asked_nothing_is_known():
    stranger = Node("w1", None, {GPU: (4, 4)})
    assert stranger.unserved(GPU) is None
    assert stranger.inventory_host is None
    assert [one.status for one in stranger.missing()] == ["not_asked"]
