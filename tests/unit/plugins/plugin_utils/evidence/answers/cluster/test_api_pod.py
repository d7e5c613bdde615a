# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and events as several collectors have them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    api_pod,
)
from tests.unit.support import answers

OVERSUBSCRIBED = answers.recorded("v1.36.3-cpu-oversubscribed", "m1.cluster", "rejected")
POD = OVERSUBSCRIBED["items"][0]
EVENT = answers.recorded("v1.18.4-gpu-plugin-gone", "m1.cluster", "jobs")["items"][0]["events"][0]


def test_a_pod_that_the_kubelet_rejected():
    pod = answers.typed(api_pod.OwnedPod, POD)
    assert (pod.namespace, pod.name, pod.node) == ("lab-jobs-2a4528", "wide-ds6kl", "w1")
    assert (pod.phase, pod.reason, pod.rejected_at) == ("Failed", "OutOfcpu", pod.finished_at)
    assert (pod.owner, pod.owner_uid) == ("Job/wide", "200a3194-be24-4f5d-9735-49d9f9e167b6")
    assert (pod.scheduler, pod.placed, pod.qos) == ("default-scheduler", True, "Burstable")
    assert "Node didn't have enough resource: cpu" in pod.message
    assert (pod.started, pod.had) == (pod.created, {})
    assert (pod.requests, pod.compute, pod.wanted) == ({}, {"cpu": 800, "pods": 1}, 3)
    assert (pod.deleted, pod.deletion_requested, pod.hash) == (None, None, None)


def test_the_life_of_a_pod_is_part_of_an_owned_pod():
    life = answers.typed(api_pod.PodLife, POD)
    pod = answers.typed(api_pod.OwnedPod, POD)
    assert isinstance(pod, api_pod.PodLife)
    for name in ("uid", "created", "phase", "node", "finished_at"):
        assert getattr(life, name) == getattr(pod, name) == POD[name]


def test_a_quantity_that_is_no_number_is_dropped():
    decoded = answers.changed(api_pod.OwnedPod, POD, "compute", "cpu", value="800m")
    assert decoded.malformed == ("compute.cpu",)
    assert decoded.answer.compute == {"pods": 1}


def test_whether_a_pod_is_placed_is_no_text():
    decoded = answers.changed(api_pod.OwnedPod, POD, "placed", value="yes")
    assert (decoded.malformed, decoded.answer.placed) == (("placed",), None)


def test_an_event_of_a_job():
    event = answers.typed(api_pod.Event, EVENT)
    assert (event.reason, event.pod, event.count) == ("SuccessfulCreate", "work-xwdlh", 1)
    assert event.message == "Created pod: work-xwdlh"
    assert event.first == event.last == "2026-11-21T17:32:04Z"
    decoded = answers.changed(api_pod.Event, EVENT, "count", value="1")
    assert (decoded.malformed, decoded.answer.count) == (("count",), None)


def test_a_toleration_without_a_key_tolerates_every_taint():
    toleration = answers.typed(api_pod.Toleration, {"operator": "Exists"})
    assert (toleration.key, toleration.value, toleration.effect) == (None, None, None)
    decoded = decode.decode(api_pod.Toleration, {"key": "gpu", "value": True})
    assert (decoded.malformed, decoded.answer.key) == (("value",), "gpu")
