# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who denies a file to a program that owner and mode do not keep out."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    boot as boot_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    instances as instances_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import denied_file

Boot, Selinux = boot_answer.Boot, boot_answer.Selinux
ComponentProcess, Instances = instances_answer.ComponentProcess, instances_answer.Instances
# rancher/rke2#692
AUDIT = (
    "E0209 15:16:59.030066       1 metrics.go:109] Error in audit plugin 'log' affecting 1 audit"
    " events: can't open new logfile: open /var/lib/rancher/rke2/server/logs/audit.log: permission"
    " denied"
)
ENFORCING = Boot(selinux=Selinux("1", "enforcing"), container=False)
API = "kube-apiserver"
NOTHING = denied_file.Denial()


def processes(**facts: Any) -> Instances:
    return Instances((ComponentProcess(component=API, pid=7, started_at=5.0, **facts),))


@pytest.mark.parametrize(
    ("path", "policy"),
    [
        ("/var/lib/rancher/rke2/server/logs/audit.log", "rke2-selinux"),
        ("/var/lib/rancher/k3s/server/cred/x", "k3s-selinux"),
        ("/var/log/kubernetes/audit.log", "container-selinux"),
    ],
)
def test_a_file_that_selinux_denies(path: str, policy: str) -> None:
    found = denied_file.read(f"open {path}: permission denied", ENFORCING)
    assert "SELinux" in found.sentence
    assert path in found.sentence
    assert policy in found.advice


@pytest.mark.parametrize(
    ("facts", "is_denied"),
    [
        ({"ignores_modes": True}, True),
        ({"ignores_modes": False}, False),  # owner and mode may keep it out
        ({}, True),  # an older release collected: the API server runs as root
    ],
)
def test_the_rights_of_the_process_count(facts: dict[str, Any], is_denied: bool) -> None:
    found = denied_file.of_component(AUDIT, API, ENFORCING, processes(**facts))
    assert bool(found.sentence) is is_denied


def test_the_label_of_the_process_is_told() -> None:
    label = "system_u:system_r:container_t:s0:c1,c2"
    rows = processes(ignores_modes=True, label=label)
    assert label in denied_file.of_component(AUDIT, API, ENFORCING, rows).sentence


def test_etcd_may_have_a_user_of_its_own() -> None:
    assert denied_file.of_component(AUDIT, "etcd", ENFORCING, Instances()) == NOTHING


@pytest.mark.parametrize(
    ("line", "boot"),
    [
        (AUDIT, Boot(selinux=Selinux("0", "permissive"))),
        (AUDIT, Boot()),
        (AUDIT, Boot(selinux=Selinux("1"), container=True)),
        ("open /var/log/audit.log: no space left on device", ENFORCING),
        ("open /proc/sys/net/ipv4/ip_forward: permission denied", ENFORCING),
    ],
)
def test_what_selinux_does_not_deny(line: str, boot: Boot) -> None:
    assert denied_file.read(line, boot) == NOTHING


@pytest.mark.parametrize(
    ("point", "kind", "is_denied"),
    [
        ("/var/lib/rancher", "nfs4", False),  # its server may take root's rights away
        ("/var/lib/rancher", "xfs", True),
        ("/var/lib/ran", "nfs4", True),  # another folder
        ("/", "nfs", False),
    ],
)
def test_a_share_has_rights_of_its_own(point: str, kind: str, is_denied: bool) -> None:
    mounts = (boot_answer.Mount("/boot", "/dev/vda1", "nfs"), boot_answer.Mount(point, "x", kind))
    boot = Boot(selinux=Selinux("1", "enforcing"), container=False, mounts=mounts)
    assert bool(denied_file.read(AUDIT, boot).sentence) is is_denied
