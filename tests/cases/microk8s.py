# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of MicroK8s: kubelet and components are parts of kubelite, a unit of a snap."""

from __future__ import annotations

from . import bare, k3s, paths
from .cluster import Evidence

PROGRAM = "/snap/microk8s/8612/kubelite"
UNIT = "snap.microk8s.daemon-kubelite.service"


def microk8s(evidence: Evidence) -> None:
    """Make each host of the evidence a server of MicroK8s."""
    k3s.k3s(evidence, list(evidence.hosts))
    for host in evidence.hosts:
        argv = [PROGRAM, "--start-control-plane=true"]
        kubelet = evidence.data(host, "kubelet")
        kubelet["argv"] = argv
        kubelet["process"].update(argv=argv, exe=PROGRAM)
        kubelet["unit"].update(
            name=UNIT, fragment_path=f"/etc/systemd/system/{UNIT}", start_words=argv
        )
        _limits(evidence, host)
        evidence.data(host, "installer").update(paths=["/var/snap/microk8s"], kubelet_exe=PROGRAM)
        bare.embedded_runtime(evidence, host, None)
    for item in evidence.data(paths.API, "nodes")["items"]:
        item["kubelet_version"] = item["kubelet_version"].replace("+k3s1", "")
    server = evidence.data(paths.API, "server")
    server["git_version"] = server["git_version"].replace("+k3s1", "")


def _limits(evidence: Evidence, host: str) -> None:
    limits = evidence.data(host, "limits")
    for row in limits["units"]:
        if row["name"] == "k3s.service":
            row.update(name=UNIT, fragment_path=f"/etc/systemd/system/{UNIT}")
    for row in limits["processes"]:
        if row["unit"] == "k3s.service":
            row.update(unit=UNIT)
        if row["role"] == "kubelet":
            row["comm"] = "kubelite"
