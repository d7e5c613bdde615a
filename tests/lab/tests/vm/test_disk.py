# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that fail or are full: found by an audit, nothing else blamed, and the repair by hand."""

from __future__ import annotations

import pytest

from tests.lab.support import machines
from tests.lab.support.mapped_disk import DISK, FOLDER, MOVE, NAME, SECTORS
from tests.lab.support.report import findings

# A disk that is gone, and one that can be read still and takes no writes.
FAILURES = {
    "error": f"0 {SECTORS} error",
    "flakey": f"0 {SECTORS} flakey {DISK} 0 0 3600 1 error_writes",
}
PRESSURE = "node.kubernetes.io/disk-pressure"
FILL = {
    "blocks": "fallocate -l $(($(stat -f -c '%a*%S' /) - 4194304)) /var/lab.fill",
    "inodes": "mkdir /var/lab.fill && cd /var/lab.fill && python3 -c 'import os, itertools\n"
    'free = os.statvfs("/").f_favail - 100\n'
    "for number in range(free): os.close(os.open(str(number), os.O_CREAT))'",
}


def on(report: dict, node: str) -> set[str]:
    return {finding["code"] for finding in findings(report) if finding["host"] == node}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_file_system_whose_disk_fails_refuses_writes(cluster, play, node, failure):
    cluster.exec(node, MOVE, timeout=300)
    machines.wait_ready(cluster, node)
    cluster.exec(
        node,
        f"dmsetup suspend --noflush --nolockfs {NAME} && dmsetup load {NAME} --table"
        f' "{FAILURES[failure]}" && dmsetup resume {NAME}',
    )
    # The kernel of Debian 12 says rw in /proc/mounts then, older ones ro.
    cluster.wait(
        lambda: cluster.exec(node, f"touch {FOLDER}/lab", check=False).returncode,
        120,
        "the kernel to refuse writes",
    )

    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM521" in on(report, node)


@pytest.mark.parametrize("kind", FILL)
def test_a_full_file_system_is_found(cluster, play, node, kind):
    cluster.exec(node, FILL[kind], timeout=600)
    cluster.wait(
        lambda: PRESSURE in machines.taints(cluster, node), 300, "the kubelet to say DiskPressure"
    )

    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM523" in on(report, node)
