# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of a machine means, and where to look."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    error_origin,
    origin_wording,
)

STORE = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/453/fs/a"
REPAIR = (
    "'xfs_repair' found errors on device /dev/rbd1 but could not correct them: Phase 1 ERROR: The"
    " filesystem has valuable metadata changes in a log which needs to be replayed."
)


@pytest.mark.parametrize(
    ("text", "clause", "advice"),
    [
        (f"open {STORE}: operation not permitted", ["node itself", STORE[:19]], "fapolicyd"),
        (f"open {STORE}: permission denied", ["permission denied"], "getenforce"),
        (f"open {STORE}: input/output error", ["input/output error"], "smartctl"),
        (f"mkdir {STORE}: read-only file system", ["read-only"], "findmnt"),
        (f"create container: stat {STORE}: no such file or directory", ["runtime"], "journalctl"),
        (
            "OCI runtime exec failed: open /sys/fs/cgroup/a: no such file or directory",
            ["the OCI runtime (runc or crun)", "/sys/fs/cgroup/a"],
            "runc --version",
        ),
        (REPAIR, ["xfs_repair fails on /dev/rbd1", "needs to be replayed"], "xfs_repair -L"),
        (REPAIR.partition(": ")[0] + ": clean", ["xfs_repair", "clean"], "fsck -y"),
        ("iscsiadm: can not connect to iSCSI daemon (111)!", ["iscsiadm fails"], "iscsi_tcp"),
        (
            "modprobe: FATAL: Module ceph not found in directory /lib/modules/6",
            ["ceph"],
            "uname -r",
        ),
        ("nvidia-container-cli: initialization error: nvml error: x", ["nvml error"], "nvidia-smi"),
    ],
)
def test_what_fails_and_where_to_look(text, clause, advice):
    origin = error_origin.read(text)
    said = origin_wording.clause(origin)
    assert said.endswith(origin.reason)
    assert said.startswith(origin_wording.party(origin))
    assert [word for word in clause if word not in said] == []
    assert advice in origin_wording.advice(origin)


def test_an_error_of_the_network_plugin_leads_to_its_pod():
    origin = error_origin.read('plugin type="bridge" failed (add): something new')
    assert "network plugin" in origin_wording.clause(origin)
    assert "network plugin" in origin_wording.advice(origin)
