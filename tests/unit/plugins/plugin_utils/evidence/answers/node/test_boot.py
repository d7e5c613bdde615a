# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's modules and settings, and what sets them at the next boot."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import boot
from tests.unit.support import answers

BOOT = answers.recorded("v1.36.3-address-gone", "m1", "boot")
FIREWALLD = {
    "active": True,
    "enabled": True,
    "masked": False,
    "files": [{"path": "/etc/firewalld/firewalld.conf", "text": "DefaultZone=public\n"}],
    "zones": ["public"],
    "unread": [{"path": "/etc/firewalld/zones", "error": "denied"}],
}


def test_what_runs_and_what_a_boot_loads():
    answer = answers.typed(boot.Boot, BOOT)
    assert answer.running["net.ipv4.ip_forward"] == "1"
    assert answer.modules == {"br_netfilter": "builtin", "overlay": "builtin"}
    assert (answer.tree, answer.container, answer.cmdline) == (False, True, ())
    assert [(item.path, item.kind) for item in answer.modules_files] == [
        ("/etc/modules-load.d/modules.conf", "symlink"),
        ("/etc/modules", "file"),
    ]


def test_folders_and_the_mounts_below_them():
    answer = answers.typed(boot.Boot, BOOT)
    assert answer.folders["/var/lib/containerd"] == "/var/lib/containerd"
    assert answer.folders["/var/lib/docker"] is None
    mount = answer.mounts[1]
    assert (mount.point, mount.source, mount.type) == ("/var/lib/containerd", "/dev/vda", "ext4")
    assert mount.options.startswith("rw,nosuid,nodev")


def test_a_host_without_selinux_and_firewall():
    answer = answers.typed(boot.Boot, BOOT)
    assert answer.selinux == boot.Selinux(enforce=None, config=None)
    assert (answer.firewall, answer.denials) == ({}, None)


def test_a_host_with_selinux_and_firewalld():
    raw = {
        **BOOT,
        "selinux": {"enforce": "1", "config": "enforcing"},
        "firewall": {"firewalld": FIREWALLD},
        "denials": {"count": 2, "lines": ["avc: denied"], "cut": True, "since": True},
        "cmdline": [["selinux", "1"]],
    }
    answer = answers.typed(boot.Boot, raw)
    assert (answer.selinux.enforce, answer.selinux.config) == ("1", "enforcing")
    assert answer.cmdline == (("selinux", "1"),)
    firewall = answer.firewall["firewalld"]
    assert (firewall.active, firewall.enabled, firewall.masked) == (True, True, False)
    assert (firewall.zones, firewall.unread[0].error) == (("public",), "denied")
    (file,) = firewall.files
    assert (file.text, file.truncated, file.executable) == ("DefaultZone=public\n", False, None)
    assert (answer.denials.count, answer.denials.cut, answer.denials.since) == (2, True, True)


def test_a_module_whose_state_is_no_text_is_dropped():
    decoded = answers.changed(boot.Boot, BOOT, "modules", "overlay", value=True)
    assert decoded.malformed == ("modules.overlay",)
    assert decoded.answer.modules == {"br_netfilter": "builtin"}


@pytest.mark.parametrize("field", ["mounts", "modules_files", "firewall", "cmdline"])
def test_a_part_of_another_type_is_unknown_and_not_empty(field):
    decoded = answers.changed(boot.Boot, BOOT, field, value="none")
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)
