# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What evaluating a cluster keeps of a machine. Tables."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import machine

ID, OTHER = "f" * 32, "e" * 32
BOOT, LATER = "b" * 8 + "-0000-0000-0000-" + "b" * 12, "c" * 8 + "-0000-0000-0000-" + "c" * 12


def read(**answers):
    return machine.extract(
        {
            "host": "w1",
            "collectors": {name: {"status": "ok", "data": data} for name, data in answers.items()},
        }
    )


def test_of_a_host_without_evidence_nothing_is_known():
    assert read() == machine.Machine()


@pytest.mark.parametrize(
    ("online", "cpus"),
    [("0-7", 8), ("0,2-3", 3), ("", None), (None, None), ("all", None), ("3-1", None)],
)
def test_cpus_that_are_online(online, cpus):
    assert read(pinning={"cpus": {"online": online}}).cpus == cpus


@pytest.mark.parametrize(
    ("answers", "memory"),
    [
        ({"pressure": {"memory": {"total": 5}}, "pinning": {"memory_total": 4}}, 5),
        ({"pinning": {"memory_total": 4}}, 4),
        ({"pressure": {"memory": {"total": None}}}, None),
        ({"pinning": {"memory_total": 0}}, None),
    ],
)
def test_memory_as_either_collector_read_it(answers, memory):
    assert read(**answers).memory == memory


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.36.3", "v1.36.3"),
        ("Kubernetes v1.36.3-eks-1\n", "v1.36.3-eks-1"),
        ("k3s version v1.30.4+k3s1 (98262b5d)", None),
        ("Kubernetes ", None),
        (None, None),
    ],
)
def test_the_version_that_a_program_says(text, version):
    assert read(pinning={"kubelet_version": text}).version == version


@pytest.mark.parametrize("word", ["uninitialized", "", None])
def test_an_image_that_was_never_booted_has_no_machine_id(word):
    assert read(system={"machine_id": word, "boot_id": BOOT}) == machine.Machine(boot_id=BOOT)


@pytest.mark.parametrize(
    ("machine_id", "boot_id", "another"),
    [
        (OTHER, LATER, True),
        (ID, LATER, False),  # the same machine before its last boot
        (OTHER, BOOT, False),  # containers of one kernel, or a new machine id of this boot
        (ID.upper(), BOOT, False),
        (None, LATER, False),
        (OTHER, None, False),
    ],
)
def test_ids_of_another_machine(machine_id, boot_id, another):
    assert machine.Machine(ID, BOOT).is_another(machine_id, boot_id) is another


@pytest.mark.parametrize(
    ("machine_id", "boot_id", "differs"),
    [
        (ID, LATER, True),  # a clone
        (OTHER, BOOT, True),  # containers of one kernel
        (ID, BOOT, False),  # twice in the inventory
        (None, None, False),
    ],
)
def test_machines_that_are_two(machine_id, boot_id, differs):
    assert machine.Machine(ID, BOOT).differs(machine.Machine(machine_id, boot_id)) is differs
