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
UNIT = """[Unit]
Description=swap of another tool
[Swap]
What=/var/lib/lab.swap
[Install]
WantedBy=swap.target
"""
MAKE_FILE = f"fallocate -l 64M {SWAP_FILE} && chmod 600 {SWAP_FILE} && mkswap -q {SWAP_FILE}"
ORIGINS = {
    "a partition": (f"{PARTITION} && echo '{DISK}1 none swap sw 0 0' >> /etc/fstab", DISK),
    "a file": (f"{MAKE_FILE} && echo '{SWAP_FILE} none swap sw 0 0' >> /etc/fstab", SWAP_FILE),
    "a unit": (
        f"{MAKE_FILE} && cat > /etc/systemd/system/var-lib-lab.swap.swap"
        " && systemctl enable -q var-lib-lab.swap.swap",
        SWAP_FILE,
    ),
    "zram": ("printf '[zram0]\\nzram-size = 64\\n' > /etc/systemd/zram-generator.conf", "zram0"),
}


def swap_is_on(cluster, node: str) -> bool:
    return len(cluster.read(node, "/proc/swaps").splitlines()) > 1


@pytest.mark.parametrize("origin", ORIGINS)
def test_swap_is_off_and_stays_off_after_a_reboot(cluster, play, node, origin):
    script, device = ORIGINS[origin]
    cluster.exec(node, script, input=UNIT if origin == "a unit" else None)
    pinning.configure(cluster, node, {"failSwapOn": True})
    cluster.restart_node(node, healthy=False)
    assert device in cluster.read(node, "/proc/swaps").decode()
    machines.wait_not_ready(cluster, node)

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
