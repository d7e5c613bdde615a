# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel of a node says of the remote storage whose volumes pods wait for."""

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import storage_clients

CEPH = "libceph: mon0 192.0.2.9:6789 feature set mismatch"
NFS = "nfs: server 192.0.2.9 not responding, still trying"
CIFS = "CIFS: VFS: Send error in SessSetup = -13"


def lines(*rows):
    data = {
        "rows": [dict(zip(("kind", "count", "last", "line"), row, strict=True)) for row in rows]
    }
    return storage_clients.lines({"collectors": {"kernel_log": {"status": "ok", "data": data}}})


def test_lines_of_storage_that_came_often_the_newest_first():
    rows = lines(
        ("client", 3, 1.0, CEPH),
        ("storage", 9, 5.0, NFS),
        ("client", 2, 9.0, CIFS),
        ("disk", 9, 9.0, "I/O error, dev sda"),
    )
    assert [row.line for row in rows] == [NFS, CEPH]
    assert storage_clients.lines({"collectors": {}}) == ()


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("rpc error: rbd: map failed", CEPH),
        ("mount failed: driver rook-ceph.cephfs.csi.ceph.com", CEPH),
        ("mount.nfs: Connection timed out", NFS),
        ("mount.cifs: bad UNC", CIFS),
        ("driver name ebs.csi.aws.com not found", None),
    ],
)
def test_a_message_is_about_one_storage(message, line):
    rows = lines(*((kind, 9, 1.0, text) for kind, text in (("client", CEPH), ("storage", NFS))))
    rows += lines(("client", 9, 1.0, CIFS))
    found = storage_clients.about(rows, message)
    assert (found.line if found else None) == line
