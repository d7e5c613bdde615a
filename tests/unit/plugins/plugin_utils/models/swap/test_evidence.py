# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where evidence shows that swap comes from."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.evidence import (
    Undo,
)
from tests.unit.support.swap_evidence import (
    DPHYS,
    LINE,
    files,
    node,
    one,
    record,
    service,
    source,
)


def test_no_partition_is_taken_up_for_a_file():
    assert one(node(fstab="/swapfile none swap sw 0 0\n")).undo == (
        Undo("comment", "/etc/fstab:1"),
    )
    assert one(node(fstab=LINE, cmdline="systemd.gpt_auto=0")).undo == (
        Undo("comment", "/etc/fstab:2"),
    )


def test_running_swap_of_services():
    swap = "/var/swap file 102396 0 -2\n"
    found = source(node(service("dphys-swapfile.service"), files=files(DPHYS), swaps=swap))
    assert (found.origin, found.place, found.undo) == (
        "service",
        "dphys-swapfile.service",
        (Undo("disable", "dphys-swapfile.service"),),
    )
    assert (
        source(node(service("zramswap.service"), swaps="/dev/zram0 partition 5 0 5\n")).place
        == "zramswap.service"
    )
    assert (
        source(
            node(
                service("dphys-swapfile.service", ActiveState="inactive"),
                files=files(DPHYS),
                swaps=swap,
            )
        ).origin
        == "hand"
    )
    azure = node(
        service("waagent.service"),
        files=files(record("/etc/waagent.conf", "\nResourceDisk.EnableSwap=y\n")),
        swaps="/mnt/resource/swapfile file 5 0 5\n",
    )
    assert source(azure).undo == (Undo("edit", "/etc/waagent.conf:2", "ResourceDisk.EnableSwap=n"),)
    two = node(
        service("zramswap.service"),
        service("zram-config.service"),
        swaps="/dev/zram0 partition 5 0 5\n",
    )
    assert source(two).origin == "hand"
