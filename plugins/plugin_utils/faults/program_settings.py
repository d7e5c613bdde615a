# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where programs have their settings, by the unit or container that runs them."""

from __future__ import annotations

import re

_SNAP = re.compile(r"snap\.microk8s\.daemon-(?P<name>[a-z0-9-]{1,40})\.service")
_ARGS = "/var/snap/microk8s/current/args"
# By a unit, or by a container: where the program has its settings.
SETTINGS = {
    "containerd.service": "/etc/containerd/config.toml and the files of its imports",
    "docker.service": "/etc/docker/daemon.json and ExecStart= of docker.service",
    "crio.service": "/etc/crio/crio.conf and /etc/crio/crio.conf.d",
    "cri-docker.service": "ExecStart= of cri-docker.service and its drop-ins",
    "cri-dockerd.service": "ExecStart= of cri-dockerd.service and its drop-ins",
    "kube-proxy": "config.conf of the ConfigMap kube-system/kube-proxy, and the arguments of its"
    " DaemonSet",
    "coredns": "the Corefile of the ConfigMap kube-system/coredns",
    "kube-flannel": "net-conf.json and cni-conf.json of the ConfigMap kube-flannel-cfg",
    "cilium-agent": "the ConfigMap kube-system/cilium-config",
    "calico-node": "the environment of the DaemonSet calico-node, else the resource Installation",
}


def place(name: str) -> str:
    """Return where the program of a unit or container has its settings, "" where not known."""
    snap = _SNAP.fullmatch(name)
    if snap is None:
        return SETTINGS.get(name, "")
    if snap.group("name") == "containerd":
        return f"{_ARGS}/containerd-template.toml, of which each start makes containerd.toml"
    return f"{_ARGS}/{snap.group('name')}"
