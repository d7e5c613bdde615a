# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of a boot: everything that runs was started after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from .cluster import BuildError, Evidence

SERVICES, COMPONENTS = 20, 45  # seconds after the boot


def rebooted(evidence: Evidence, hosts: Iterable[str], ago: int, posted: bool = True) -> None:
    """Let hosts have booted so many seconds ago.

    posted: whether their kubelets have told the API of it.
    """
    for host in hosts:
        boot_id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{host} again"))
        evidence.data(host, "system").update(boot_id=boot_id, uptime_s=float(ago))
        kubelet = evidence.data(host, "kubelet")
        if kubelet["process"]:
            kubelet["process"]["started_at"] = evidence.now - ago + SERVICES
        socket = evidence.data(host, "devices").get("kubelet_socket")
        if socket:
            socket["made"] = evidence.now - ago + SERVICES
        for row in evidence.data(host, "instances")["processes"]:
            row["started_at"] = evidence.now - ago + COMPONENTS
        if posted:
            _post(evidence, host, boot_id)


def _post(evidence: Evidence, host: str, boot_id: str) -> None:
    try:
        evidence.node(host)["boot_id"] = boot_id
    except BuildError:
        return  # the case removed its Node
