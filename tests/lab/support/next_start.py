# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the next start of a worker that runs well, and what shows each of them to be true."""

from __future__ import annotations

import yaml

from tests.lab.cluster.clusters import Cluster

KUBELET_CONFIG, CONTAINERD_CONFIG = "/var/lib/kubelet/config.yaml", "/etc/containerd/config.toml"
DROP_IN = "/etc/systemd/system/containerd.service.d/90-proxy.conf"
SYSCTL = "/etc/sysctl.d/99-zz-hardening.conf"
MARK = "KUBEMEND_LAB_PROXY=1"
# What containerd 1.6 and 2.2 say of a group that is no number.
NO_NUMBER = ("many", "config.GRPCConfig.GID of type int")
# (code, component): the next start of the worker breaks by them.
PLANTED = {
    ("KM301", None),
    ("KM501", "kubelet"),
    ("KM520", "net.ipv4.ip_forward"),
    ("KM700", "containerd"),
    ("KM700", "kubelet"),
    ("KM701", "kubelet"),
    ("KM703", "containerd"),
    ("KM508", "containerd"),
    ("KM707", "kubelet"),
}
# An emulated processor needs minutes where a container needs seconds.
PATIENCE_SECONDS = 300


def said(cluster: Cluster, node: str, command: str) -> str:
    """Return what a shell line prints on a node."""
    return cluster.exec(node, command, check=False).stdout.decode(errors="replace").strip()


def plant(cluster: Cluster, node: str) -> None:
    """Change what only the next start of the node reads; nothing that runs is touched."""
    settings = yaml.safe_load(cluster.read(node, KUBELET_CONFIG))
    settings.update(maxPods="many", cpuManagerPolicy="static", systemReserved={"cpu": "500m"})
    cluster.write(node, KUBELET_CONFIG, yaml.safe_dump(settings))
    former = cluster.read(node, CONTAINERD_CONFIG).decode()
    cluster.write(node, CONTAINERD_CONFIG, former + '[grpc]\n  gid = "many"\n')
    cluster.exec(node, ["mkdir", "-p", DROP_IN.rpartition("/")[0]])
    cluster.write(node, DROP_IN, f"[Service]\nEnvironment={MARK}\n")
    cluster.write(node, SYSCTL, "net.ipv4.ip_forward = 0\n")
    # The same release as another file, as an upgrade leaves it.
    cluster.exec(
        node,
        "path=$(readlink /proc/$(pidof kubelet)/exe) && cp $path $path.new && printf x >> $path.new"
        " && mv $path.new $path",
    )
    cluster.exec(node, ["systemctl", "disable", "--no-reload", "kubelet", "containerd"])


def see(cluster: Cluster, node: str) -> None:
    """Require of a node that has started again that each planted fault has come true.

    What stops a service is corrected once it is seen, so that the service shows the next one.
    """
    assert said(cluster, node, "systemctl is-active kubelet") == "inactive"  # KM501
    assert said(cluster, node, "systemctl is-active containerd") == "inactive"  # KM508
    cluster.exec(node, ["systemctl", "start", "containerd"], check=False)
    assert said(cluster, node, "cat /proc/sys/net/ipv4/ip_forward") == "0"  # KM520
    assert MARK in said(cluster, node, "systemctl show -p Environment containerd")  # KM700
    # KM703
    cluster.wait(
        lambda: said(cluster, node, "systemctl show -p Result containerd") != "Result=success",
        PATIENCE_SECONDS,
        "containerd to fail",
    )
    _wait_for_words(cluster, node, *NO_NUMBER, unit="containerd")

    cluster.exec(node, ["systemctl", "start", "kubelet"], check=False)
    _wait_for_words(cluster, node, "maxPods")  # KM707
    settings = yaml.safe_load(cluster.read(node, KUBELET_CONFIG))
    settings.pop("maxPods")
    cluster.write(node, KUBELET_CONFIG, yaml.safe_dump(settings))
    cluster.exec(
        node,
        f"sed -i '/^\\[grpc\\]/,$d' {CONTAINERD_CONFIG} && sysctl -w net.ipv4.ip_forward=1 &&"
        " systemctl reset-failed; systemctl restart containerd",
    )
    _wait_for_words(cluster, node, "configured policy")  # KM301
    cluster.exec(node, "rm -f /var/lib/kubelet/cpu_manager_state; systemctl restart kubelet")
    cluster.wait(
        lambda: said(cluster, node, "curl -s http://127.0.0.1:10248/healthz") == "ok",
        PATIENCE_SECONDS,
        "the kubelet",
    )
    # KM700 of the kubelet: it runs with the settings that it had not read before.
    assert '"policyName":"static"' in said(cluster, node, "cat /var/lib/kubelet/cpu_manager_state")
    # KM701: what runs now is the file that was put there.
    assert said(cluster, node, "tail -c 1 /proc/$(pidof kubelet)/exe") == "x"


def _wait_for_words(cluster: Cluster, node: str, *words: str, unit: str = "kubelet") -> None:
    """Wait until the journal of a unit has one of these."""

    def is_said() -> bool:
        # The journal of a container has the lines of all its boots under one id.
        lines = said(cluster, node, f"journalctl -a -u {unit} --no-pager | tail -n 200")
        return any(part in lines for part in words)

    cluster.wait(is_said, PATIENCE_SECONDS, f"{unit} to say {' or '.join(words)}")
