# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot changes: foretold before it where files show it, and found after it."""

from __future__ import annotations

from tests.lab.support import machines
from tests.lab.support.report import findings

KUBELET_PORT = 10250
# While ufw is disabled its rules are written, and nothing is filtered.
FIREWALL = "ufw allow 22/tcp >/dev/null && sed -i 's/^ENABLED=.*/ENABLED=yes/' /etc/ufw/ufw.conf"
FSTAB = "echo '/dev/vdz1 /var/lib/containerd ext4 defaults 0 2' >> /etc/fstab"
MODULES = """
mv /lib/modules/$(uname -r) /lib/modules/another
modprobe -r br_netfilter 2>/dev/null || rmmod br_netfilter
"""


def on(report: dict, node: str) -> set[str]:
    return {finding["code"] for finding in findings(report) if finding["host"] == node}


def answers(cluster, node: str) -> bool:
    """Return whether a master reaches the kubelet's port."""
    address = f"https://{cluster.node(node).ip}:{KUBELET_PORT}/healthz"
    done = cluster.exec(
        cluster.of_role("master")[0], ["curl", "-sk", "-m", "10", address], 30, False
    )
    return done.returncode == 0


def test_a_firewall_of_the_next_boot_shuts_the_kubelet_s_port(cluster, play, node):
    cluster.exec(node, FIREWALL)
    assert answers(cluster, node)
    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM527" in on(report, node), report["findings"]

    cluster.restart_node(node, healthy=False)
    machines.wait_ready(cluster, node)  # its kubelet reaches the API, and nobody the kubelet
    assert not answers(cluster, node)
    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM527" in on(report, node), report["findings"]


def test_a_line_of_fstab_that_stops_the_boot(cluster, play, node):
    cluster.exec(node, f"{FSTAB} && sync")
    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "KM521" in on(report, node), report["findings"]

    cluster.exec(node, ["systemctl", "reboot"], check=False)
    machines.wait_not_ready(cluster, node)
    _done, report = play(name="audit")
    assert "KM512" in on(report, node), report["findings"]


def test_modules_of_a_kernel_that_was_not_booted_yet(cluster, play, node):
    """An upgrade took the modules of the running kernel away: none can be loaded until a boot."""
    cluster.exec(node, MODULES)
    done, report = play("-e", "kubemend_max_risk=1", "-e", "kubemend_faults=KM520")
    assert done.returncode == 2, done.stdout[-4000:]
    assert "KM520" in on(report, node), report["findings"]
    assert {step["state"] for step in report["steps"]} == {"rolled_back"}, report["steps"]
    cluster.exec(node, ["test", "!", "-e", "/etc/modules-load.d/zz-kubemend.conf"])
