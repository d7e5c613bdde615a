# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of the CPU and memory managers, and the CPUs of containers."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    pinning,
)
from tests.unit.support import answers

FROZEN = answers.recorded("v1.36.3-pinning-frozen", "w1", "pinning")
RESERVED = answers.recorded("v1.36.3-kubelet-reserved-cgroup", "w1", "pinning")
POD = "37696432-0aca-4a22-9292-1fe1b8a8dd22"


def test_the_state_files_of_the_managers():
    answer = answers.typed(pinning.Pinning, FROZEN)
    assert answer.root_dir == "/var/lib/kubelet"
    assert answer.cpu_state.path == "/var/lib/kubelet/cpu_manager_state"
    assert '"policyName":"static"' in answer.cpu_state.text
    assert answer.memory_state.name == "memory_manager_state"
    assert (answer.pods, answer.kubelet_version) == ((POD,), "Kubernetes v1.36.3")
    assert answer.runc == "runc version 1.1.5+ds1"


def test_the_cpus_of_a_host():
    cpus = answers.typed(pinning.Pinning, FROZEN).cpus
    assert (cpus.online, cpus.possible, cpus.isolated) == ("0-1", "0-1", "")
    assert cpus.topology == ((0, 0, 0, 0), (1, 1, 0, 0))


def test_a_cpu_may_be_of_no_socket_or_numa_node_but_is_of_a_core():
    topology = [[0, 0, None, None], [1, None, 0, 0], [2, 2, 0]]
    decoded = answers.changed(pinning.Pinning, FROZEN, "cpus", "topology", value=topology)
    assert decoded.malformed == ("cpus.topology[1][1]", "cpus.topology[2]")
    assert decoded.answer.cpus.topology == ((0, 0, None, None),)


def test_a_container_that_is_frozen():
    answer = answers.typed(pinning.Pinning, FROZEN)
    container = answer.containers[1]
    assert (container.pod_uid, container.name, container.static) == (POD, "work", False)
    assert (container.cpus, container.allowed, container.pod) == ("1", "1", None)
    (frozen,) = answer.frozen
    assert (frozen.pod_uid, frozen.container_id) == (POD, container.container_id)
    assert (frozen.state, frozen.tasks) == ("FROZEN", ((container.pid, "sleep", "D"),))
    assert frozen.path.startswith("/sys/fs/cgroup/freezer/kubepods/")


def test_a_container_whose_tasks_wait_for_a_device():
    stuck = {"pod_uid": POD, "pod": "a/b", "name": "work", "tasks": [[11857, "dd", "D"]]}
    answer = answers.typed(pinning.Pinning, {**FROZEN, "stuck": [stuck], "logged": ["E1125"]})
    assert (answer.stuck[0].pod, answer.stuck[0].tasks) == ("a/b", ((11857, "dd", "D"),))
    assert (answer.stuck[0].name, answer.logged) == ("work", ("E1125",))


def test_a_reserved_cgroup_that_is_missing():
    answer = answers.typed(pinning.Pinning, RESERVED)
    cgroupfs, systemd = answer.cgroups
    assert (cgroupfs.name, cgroupfs.driver, systemd.driver) == (
        "/kubelet.slice",
        "cgroupfs",
        "systemd",
    )
    assert cgroupfs.missing[0] == "/sys/fs/cgroup/cpu/kubelet.slice"
    assert (answer.numa, answer.memory_total) == ((0,), 25276502016)


def test_what_an_older_release_did_not_collect_is_unknown():
    answer = answers.typed(pinning.Pinning, FROZEN)
    assert (answer.cgroups, answer.numa, answer.memory_total) == (None, None, None)
    assert (answer.stuck, answer.logged) == (None, None)


@pytest.mark.parametrize("field", ["containers", "frozen", "pods"])
def test_a_part_of_another_type_is_unknown_and_not_empty(field):
    decoded = answers.changed(pinning.Pinning, FROZEN, field, value=POD)
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)
    assert decoded.answer.cpus.online == "0-1"


def test_the_cpus_of_a_container_are_a_text_as_the_cgroup_has_it():
    decoded = answers.changed(pinning.Pinning, FROZEN, "containers", 1, "cpus", value=1)
    assert decoded.malformed == ("containers[1].cpus",)
    assert (decoded.answer.containers[1].cpus, decoded.answer.containers[1].allowed) == (None, "1")
