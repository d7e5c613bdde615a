# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary arguments with which a kubelet starts over its state, or why none are known."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import cpu_manager
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import start_state
from tests.unit.support.managed_node import CLOCK, MEMORY, NONE_STATE, POD, Node, record, state

STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
STRICT = STATIC + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n"


@pytest.fixture(autouse=True)
def a_healthy_worker(world):
    Node.healthy = world.documents["w1"]


def lend(node):
    return start_state.lend(cpu_manager.read(node.document))


@pytest.mark.parametrize(
    ("text", "config", "arguments"),
    [
        (None, STATIC, ()),
        (state(default="0-3"), STATIC, ()),
        (NONE_STATE, "cpuManagerPolicy: none\n", ()),
        (NONE_STATE, STATIC, ("--cpu-manager-policy=none",)),
        (
            state(default="0-3"),
            "cpuManagerPolicy: none\n",
            ("--cpu-manager-policy=static", "--reserved-cpus=0"),
        ),
        (
            state(default="0,2-3", entries={POD: {"app": "1"}}),
            "cpuManagerPolicy: static\nreservedSystemCPUs: '1'\n",
            ("--reserved-cpus=0",),
        ),
        (
            state(default="0-3"),
            STRICT,
            (start_state.STRICT + "false", "--reserved-cpus=0"),
        ),
    ],
)
def test_arguments_for_a_state(text, config, arguments):
    assert lend(Node(text, config))[0] == arguments


def test_a_state_that_fits_is_no_reason():
    assert lend(Node(state(default="0-3"), STATIC)) == ((), start_state.FITS)


@pytest.mark.parametrize(
    ("text", "config", "online"),
    [
        ("", STATIC, "0-3"),
        (state(default="0-3", checksum=5), STATIC, "0-3"),
        (state(default="0-7"), STATIC, "0-3"),
        (state(default="0-3", entries={POD: {"app": "1"}}), STATIC, "0-3"),
        (NONE_STATE, STRICT, "0-3"),
        ('{"policyName":"dynamic","defaultCpuSet":""}', STATIC, "0-3"),
    ],
)
def test_no_arguments_are_known_for_a_state_that_no_kubelet_takes(text, config, online):
    arguments, why_not = lend(Node(text, config, online))
    assert arguments == ()
    assert why_not not in ("", start_state.FITS)


def test_cpus_that_were_added_need_a_release_with_strict_reservation():
    arguments = []
    for release in ("v1.36.0", "v1.25.0"):
        node = Node(state(default="1-3"), STATIC)
        node.seen["kubelet_version"] = f"Kubernetes {release}"
        arguments.append(lend(node)[0])
    assert arguments == [(start_state.STRICT + "true", "--reserved-cpus=0"), ()]


def test_the_policy_of_the_memory_manager_is_lent_too():
    node = Node(None, STATIC + "memoryManagerPolicy: Static\n")
    node.seen["memory_state"] = record("memory_manager_state", MEMORY)
    assert lend(node)[0] == ("--memory-manager-policy=None",)


@pytest.mark.parametrize(
    ("healthz", "age", "text", "stands"),
    [
        (200, 3600, NONE_STATE, True),
        (200, 1, NONE_STATE, False),
        (200, 1, state(default="0-3"), True),
        (500, 3600, state(default="0-3"), False),
    ],
)
def test_a_young_kubelet_whose_state_ends_it_does_not_stand(healthz, age, text, stands):
    node = Node(text, STATIC)
    node.kubelet["healthz"] = {"status": healthz}
    node.kubelet["process"] = {"pid": 1, "argv": ["kubelet"], "started_at": CLOCK - age}
    assert start_state.stands(node.document, cpu_manager.read(node.document)) is stands


@pytest.mark.parametrize(
    ("running", "text", "back"),
    [(False, None, True), (True, None, False), (False, NONE_STATE, False)],
)
def test_an_interrupted_reset_comes_back_without_a_state(running, text, back):
    node = Node(text, STATIC)
    step = {"component": "kubelet", "running": running}
    node.document["collectors"]["journal"] = {"status": "ok", "data": {"unproven": [step]}}
    assert start_state.comes_back(node.document, cpu_manager.read(node.document)) is back
