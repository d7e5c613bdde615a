# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts of remote file systems: which are dead, and whose volume each is."""

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    hangs,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import remote_mounts

POINT = "/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~csi/pvc-1/mount"


@pytest.mark.parametrize(
    ("text", "is_quoted"),
    [
        (f"creating mount source path '{POINT}': mkdir", True),
        (f"mkdir {POINT}: file exists", True),
        (f"stat {POINT}", True),
        (f"stat {POINT}2: no such file", False),
        ("stat /var/lib", False),
        ("", False),
    ],
)
def test_the_mount_that_a_message_names(text, is_quoted):
    mount = hangs.RemoteMount(POINT, "fuse.ceph-fuse", "ceph-fuse", True)
    assert remote_mounts.quoted([hangs.RemoteMount("/"), mount], text) == (
        mount if is_quoted else None
    )


@pytest.mark.parametrize(
    ("point", "clause", "path"),
    [
        (POINT, "the volume pvc-1 of the pod with UID 1-2", POINT),
        ("/mnt/data", "", "/mnt/data"),
        ("/mnt/$(data)", "", "PATH"),
        ("", "", "PATH"),
    ],
)
def test_whose_volume_it_is(point, clause, path):
    mount = hangs.RemoteMount(point)
    assert (remote_mounts.volume(mount), remote_mounts.in_shell(mount)) == (clause, path)


@pytest.mark.parametrize(
    ("mount", "is_silent", "is_unserved", "reason"),
    [
        (hangs.RemoteMount(answers=False), True, False, ""),
        (
            hangs.RemoteMount(answers=True, error="ENOTCONN"),
            False,
            True,
            "transport endpoint is not",
        ),
        (hangs.RemoteMount(answers=True, error="ESTALE"), False, False, "stale"),
        (hangs.RemoteMount(answers=True, error="EACCES"), False, False, ""),
        (hangs.RemoteMount(), False, False, ""),
    ],
)
def test_which_are_dead(mount, is_silent, is_unserved, reason):
    assert remote_mounts.is_silent(mount) is is_silent
    assert remote_mounts.is_unserved(mount) is is_unserved
    assert bool(remote_mounts.reason(mount)) is bool(reason)
    assert reason in remote_mounts.reason(mount)
