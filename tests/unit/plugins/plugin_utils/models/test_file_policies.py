# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policy of a node denies root a file of the runtime."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import file_policies
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.denied_file import Denial
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.file_policies import (
    Policies,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import error_origin

FOLDER = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"
NOT_PERMITTED = error_origin.read(f"open {FOLDER}/a: operation not permitted")
DENIED = error_origin.read(f"open {FOLDER}/a: permission denied")
KERNEL = 'apparmor="DENIED" operation="open" profile="runc" name="/a" comm="runc"'


@pytest.mark.parametrize(
    ("origin", "policies", "active"),
    [
        (NOT_PERMITTED, Policies(fapolicyd=True, selinux=True), ["fapolicyd"]),
        (NOT_PERMITTED, Policies(immutable=(FOLDER,)), [f"the attribute i of {FOLDER}"]),
        (NOT_PERMITTED, Policies(immutable=(f"{FOLDER}/a",)), [f"the attribute i of {FOLDER}/a"]),
        (NOT_PERMITTED, Policies(immutable=("/var/lib/container",)), []),
        (NOT_PERMITTED, Policies(immutable=("/var/lib/containerd",)), []),
        (NOT_PERMITTED, Policies(selinux=True, apparmor=KERNEL), []),
        (DENIED, Policies(fapolicyd=True, selinux=True), ["SELinux"]),
        (DENIED, Policies(apparmor=KERNEL), ["AppArmor", KERNEL]),
        (DENIED, Policies(selinux=True, apparmor=KERNEL), ["SELinux", "AppArmor"]),
        (DENIED, Policies(fapolicyd=False, selinux=False), []),
        (DENIED, Policies(profiles=("runc (complain)",)), ["AppArmor", "runc (complain)"]),
    ],
)
def test_what_is_active_and_answers_with_that_errno_is_named(origin, policies, active):
    denial = file_policies.read(origin, policies)
    assert denial.sentence
    assert bool(denial.advice) == bool(active)
    assert ("Active there" in denial.sentence) == bool(active)
    assert [word for word in active if word not in denial.sentence] == []


@pytest.mark.parametrize(
    "text",
    [
        "open /data/a: operation not permitted",
        f"open {FOLDER}/a: input/output error",
        "write /sys/fs/cgroup/a/cpuset.mems: permission denied",
    ],
)
def test_what_no_policy_of_files_denies_has_no_sentence(text):
    policies = Policies(fapolicyd=True, selinux=True)
    assert file_policies.read(error_origin.read(text), policies) == Denial()


@pytest.mark.parametrize(
    ("path", "profiles", "is_told"),
    [
        ("/proc/self/ns/net", ("runc (complain)",), True),
        ("/proc/2390/task/22986/ns/net", ("containerd (enforce)",), True),
        ("/proc/self/ns/net", (), False),
        ("/proc/sys/kernel/shmmax", ("runc (complain)",), False),
    ],
)
def test_a_profile_that_denies_a_program_its_namespaces(path, profiles, is_told):
    origin = error_origin.read(
        f"runc create failed: invalid netns path: stat {path}: permission denied"
    )
    denial = file_policies.read(origin, Policies(profiles=profiles))
    assert bool(denial.sentence) is is_told
    assert all(name in denial.sentence for name in profiles) or not is_told


def test_the_evidence_shows_what_is_active(world: Any) -> None:
    boot = world.data("w1", "boot")
    boot["fapolicyd"], boot["selinux"] = True, {"enforce": "1", "config": "enforcing"}
    boot["apparmor"] = {"runc": "complain", "crun": "unconfined"}
    collectors = world.documents["w1"]["collectors"]
    row = {"kind": "apparmor", "count": 3, "first": 1.0, "last": 2.0, "line": KERNEL}
    collectors["kernel_log"] = {"status": "ok", "data": {"since": 1.0, "cut": False, "rows": [row]}}
    states = [
        {"path": FOLDER, "kind": "directory", "immutable": True},
        {"path": f"{FOLDER}/new-1", "kind": "missing", "immutable": True, "above": FOLDER},
        {"path": "/etc"},
    ]
    collectors["path_states"] = {"status": "ok", "data": {"processor": "", "paths": states}}
    found = file_policies.extract(world.documents["w1"])
    assert found == Policies(True, True, KERNEL, (FOLDER,), ("runc (complain)",))


def test_a_node_that_is_a_container_has_no_policy_of_its_own(world: Any) -> None:
    world.data("w1", "boot").update(selinux={"enforce": "1", "config": None}, container=True)
    assert file_policies.extract(world.documents["w1"]).selinux is False


def test_nothing_is_known_without_evidence(world: Any) -> None:
    world.documents["w1"]["collectors"] = {}
    assert file_policies.extract(world.documents["w1"]) == Policies()
    unit = {"name": "fapolicyd.service", "n_restarts": 7}
    answer = {"status": "ok", "data": {"failed": 1, "units": [unit]}}
    world.documents["w1"]["collectors"] = {"failed_units": answer}
    assert file_policies.extract(world.documents["w1"]).fapolicyd is True
