# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of a kernel that are full, and processes that its file system holds up."""

from __future__ import annotations

import pytest

from tests.lab.support.repairing import OLD, RELEASES
from tests.lab.support.report import findings

DEEP = ("-e", "kubemend_deep=true")
SEND = """
import contextlib, socket
for port in range(20000, 20600):
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", port))
"""
# Without a rule that asks for it the kernel tracks no connection.
CONNECTIONS = f"""
modprobe nf_conntrack
iptables -I OUTPUT -m conntrack --ctstate NEW -j ACCEPT
sysctl -q -w net.netfilter.nf_conntrack_max=400 net.netfilter.nf_conntrack_udp_timeout=900
python3 -c '{SEND}'
"""
NEIGHBOURS = """
sysctl -q -w net.ipv4.neigh.default.gc_thresh3=64
for number in $(seq 1 80); do
  ip neigh add 10.99.0.$number lladdr 02:00:00:00:00:01 dev eth0 nud stale 2>/dev/null
done
true
"""
FREEZE = """
mkfs.ext4 -q /dev/vdb
mount /dev/vdb /mnt
fsfreeze -f /mnt
nohup touch /mnt/file >/dev/null 2>&1 </dev/null &
"""
# A memory cgroup takes 26 KiB of the kernel's memory.
CGROUPS = """
import os
base = "/sys/fs/cgroup/lab"
os.mkdir(base)
for folder in ("/sys/fs/cgroup", base):
    with open(folder + "/cgroup.subtree_control", "w") as control:
        control.write("+memory")
try:
    for number in range(70000):
        os.mkdir("%s/%d" % (base, number))
except OSError as error:
    print(error.errno)
"""
ENOSPC = b"28"


def on(report: dict, node: str) -> set[str]:
    return {finding["code"] for finding in findings(report) if finding["host"] == node}


@pytest.mark.parametrize("table", [CONNECTIONS, NEIGHBOURS], ids=["connections", "neighbours"])
def test_a_table_of_connections_or_neighbours_is_full(cluster, play, node, table):
    cluster.exec(node, table)

    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM535" in on(report, node), report["findings"]


def test_a_frozen_file_system_holds_a_process_up(cluster, play, node):
    cluster.exec(node, FREEZE)

    done, report = play(*DEEP, name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM607" in on(report, node), report["findings"]


@pytest.mark.skipif(RELEASES == [OLD], reason="its machine has cgroup v1")
def test_memory_cgroups_are_used_up(cluster, play, node):
    """The limit is not one of cgroup v1 alone."""
    cluster.machine(node).cut_power()
    cluster.power_on(node, memory_mib=3072)
    said = cluster.exec(node, ["python3", "-c", CGROUPS], timeout=900).stdout
    assert said.strip() == ENOSPC

    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM601" in on(report, node), report["findings"]
    cluster.machine(node).cut_power()  # its memory is another than that of the kept state
