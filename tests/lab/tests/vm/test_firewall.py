# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A firewall that is off now and comes with the next boot, which shuts the kubelet's port."""

from __future__ import annotations

from tests.lab.support.report import findings

FAULT = ("-e", "kubemend_faults=KM527")
# Another program would open a shut port: ufw alone is enabled, and lets in nothing but ssh.
ENABLE = """
ufw allow 22/tcp
sed -i s/^ENABLED=.*/ENABLED=yes/ /etc/ufw/ufw.conf
systemctl enable -q ufw
"""


def blocked(play, node: str) -> list[str]:
    """Return the components that KM527 names on this node."""
    done, report = play(*FAULT, name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    return [found["component"] for found in findings(report) if found["host"] == node]


def is_reached(cluster, node: str) -> bool:
    """Return whether a control-plane node reaches the kubelet's port."""
    address = cluster.node(node).ip
    connect = f"timeout 5 bash -c '</dev/tcp/{address}/10250'"
    return cluster.exec("m1", connect, check=False).returncode == 0


def test_a_firewall_that_the_next_boot_starts_is_foretold(cluster, play, node):
    assert blocked(play, node) == []
    cluster.exec(node, ENABLE)
    assert is_reached(cluster, node)
    assert blocked(play, node) == ["ufw"]

    cluster.restart_node(node)
    assert not is_reached(cluster, node)
    assert blocked(play, node) == ["ufw"]

    cluster.exec(node, "ufw allow 10250/tcp")  # as the page of the fault says
    assert is_reached(cluster, node)
    assert blocked(play, node) == []
