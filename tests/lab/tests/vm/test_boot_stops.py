# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line of fstab whose device does not exist: foretold, and the next boot stops there."""

from __future__ import annotations

from tests.lab.cluster import bringup
from tests.lab.support import machines
from tests.lab.support.report import findings

LINE = "/dev/disk/by-uuid/00000000-0000-0000-0000-00000000dead /srv ext4 defaults 0 2"
EMERGENCY = b"emergency mode"
BOOT_SECONDS = 600


def named(play, node: str) -> list[str]:
    done, report = play(name="before_reboot")
    assert done.returncode == 0, done.stdout[-4000:]
    return [found["code"] for found in findings(report) if found["host"] == node]


def test_a_line_of_fstab_that_stops_the_boot_is_foretold(cluster, play, node):
    healthy = named(play, node)
    cluster.exec(node, f"echo '{LINE}' >> /etc/fstab && sync")
    assert sorted(named(play, node)) == sorted([*healthy, "KM704"])

    machine = cluster.machine(node)
    machine.cut_power()
    seen = len(machine.console.read_bytes())
    bringup.power_on(cluster, cluster.node(node))
    cluster.wait(
        lambda: EMERGENCY in machine.console.read_bytes()[seen:].lower(),
        BOOT_SECONDS,
        "the boot to stop in emergency mode",
    )
    machines.wait_not_ready(cluster, node)
