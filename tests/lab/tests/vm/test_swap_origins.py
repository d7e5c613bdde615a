# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that a boot brings, of each origin, and a kubelet that refuses it.

The repair takes the origin away and switches the swap off; a real reboot shows that it stays off.
"""

from __future__ import annotations

import pytest

from tests.lab.support import machines, pinning
from tests.lab.support.repairing import ended

CONSENT = ("-e", "kubemend_max_risk=3", "-e", "kubemend_faults=KM504")
SWAP_FILE = "/var/lib/lab.swap"
DISK = "/dev/vdb"
# The second disk of the machine has nothing on it; its first partition has 128 MiB.
PARTITION = f"echo ',128M,S' | sfdisk -q {DISK} && mkswap -q {DISK}1"
# A package's unit can be masked; one in /etc lies where the mask would.
UNIT_FILE = "/usr/lib/systemd/system/var-lib-lab.swap.swap"
UNIT = """[Unit]
Description=swap of another tool
[Swap]
What=/var/lib/lab.swap
[Install]
WantedBy=swap.target
"""
ZRAM, ZRAM_TEXT = "/etc/systemd/zram-generator.conf", r"[zram0]\nzram-size = 64\n"
MAKE_FILE = f"fallocate -l 64M {SWAP_FILE} && chmod 600 {SWAP_FILE} && mkswap -q {SWAP_FILE}"
ORIGINS = {
    "a partition": (f"{PARTITION} && echo '{DISK}1 none swap sw 0 0' >> /etc/fstab", DISK),
    "a file": (f"{MAKE_FILE} && echo '{SWAP_FILE} none swap sw 0 0' >> /etc/fstab", SWAP_FILE),
    "a unit": (
        f"{MAKE_FILE} && cat > {UNIT_FILE} && systemctl enable -q var-lib-lab.swap.swap",
        SWAP_FILE,
    ),
    # as a vendor configures it: what stands in /etc is the operator's, and changed by hand
    "zram": (
        f"rm -f {ZRAM} && printf '{ZRAM_TEXT}' > /usr/lib/systemd/zram-generator.conf",
        "zram0",
    ),
}


def swap_is_on(cluster, node: str) -> bool:
    return len(cluster.read(node, "/proc/swaps").splitlines()) > 1


def start_with_swap(cluster, node: str, device: str) -> None:
    """Boot a kubelet that refuses swap, and the swap with it."""
    pinning.configure(cluster, node, {"failSwapOn": True})
    cluster.restart_node(node, healthy=False)
    assert device in cluster.read(node, "/proc/swaps").decode()
    machines.wait_not_ready(cluster, node)


@pytest.mark.parametrize("origin", ORIGINS)
def test_swap_is_off_and_stays_off_after_a_reboot(cluster, play, node, origin):
    script, device = ORIGINS[origin]
    cluster.exec(node, script, input=UNIT if origin == "a unit" else None)
    start_with_swap(cluster, node, device)

    done, report = play(*CONSENT)
    assert done.returncode == 0, done.stdout[-4000:]
    assert {step["host"] for step in report["plan"]} == {node}
    assert set(ended(report)) == {"done"}, done.stdout[-4000:]
    assert not swap_is_on(cluster, node)
    machines.wait_ready(cluster, node)

    cluster.restart_node(node)
    assert not swap_is_on(cluster, node)
    done, report = play(*CONSENT)
    assert (done.returncode, report["plan"], report["findings"]) == (0, [], []), done.stdout[-4000:]


def test_what_an_operator_configured_is_undone_by_hand(cluster, play, node):
    """The file of /etc stays; the command that the plan names is followed."""
    cluster.exec(node, f"printf '{ZRAM_TEXT}' > {ZRAM}")
    start_with_swap(cluster, node, "zram0")
    done, report = play(*CONSENT)
    assert done.returncode == 2, done.stdout[-4000:]
    (blocked,) = {step["blocked_by"] for step in report["plan"]}
    command = blocked.removeprefix("by hand, so that no boot brings it back: ")
    assert command != blocked, blocked
    assert swap_is_on(cluster, node)

    cluster.exec(node, command)
    done, report = play(*CONSENT)
    assert (done.returncode, set(ended(report))) == (0, {"done"}), done.stdout[-4000:]
    assert not swap_is_on(cluster, node)
    cluster.restart_node(node)
    assert not swap_is_on(cluster, node)
    done, report = play(*CONSENT)
    assert (done.returncode, report["plan"], report["findings"]) == (0, [], []), done.stdout[-4000:]
