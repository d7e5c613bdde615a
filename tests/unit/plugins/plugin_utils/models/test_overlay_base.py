# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kernel refuses an overlay mount, by the file system below it and the kernel's release."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import overlay_base
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.overlay_base import Base

K3S = (
    '"overlayfs" snapshotter cannot be enabled for "/var/lib/rancher/k3s/agent/containerd", try'
    ' using "fuse-overlayfs" or "native": failed to mount overlay: invalid argument'
)
ROOTFS = "failed to mount rootfs component: invalid argument"
CRIO = "error creating overlay mount to /var/lib/containers/storage/o/merged: invalid argument"
NFS, EXT4 = ("/", "nfs", "192.0.2.20:/srv"), ("/", "ext4", "/dev/vda1")


@pytest.mark.parametrize(
    ("mounts", "kernel", "text", "word"),
    [
        ((NFS,), "5.10.17-v8+", K3S, "192.0.2.20:/srv"),
        ((NFS,), "5.10.17-v8+", ROOTFS, "192.0.2.20:/srv"),
        # a disk of its own below the folder
        ((NFS, ("/var/lib/rancher", "ext4", "/dev/sda")), "5.10.17-v8+", K3S, None),
        ((("/var", "fuse.mergerfs", "m"), EXT4), "5.10", K3S, "fuse.mergerfs"),
        ((("/var/lib/rancher/k3s/agent2", "nfs", "s"), EXT4), "5.10", K3S, None),
        # of two at one place the first counts
        ((EXT4, NFS), "5.10", K3S, None),
        ((), "5.10", K3S, None),
        ((EXT4,), "4.18.0-553.el8", CRIO, "metacopy=on"),
        ((EXT4,), "4.19.0-1", CRIO, None),
        ((EXT4,), "", CRIO, None),
        # containerd has no storage.conf
        ((EXT4,), "4.15.0", ROOTFS, None),
        ((NFS,), "5.10", ROOTFS.replace("invalid argument", "no such device"), None),
        ((NFS,), "5.10", "mount failed: invalid argument", None),
    ],
)
def test_the_reason_of_a_refused_mount(mounts, kernel, text, word):
    found = overlay_base.reason(Base(mounts, kernel), text)
    assert (found is None) is (word is None)
    if found is not None:
        assert word in found.clause
        assert found.advice
