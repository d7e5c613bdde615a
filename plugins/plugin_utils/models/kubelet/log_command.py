# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which command shows the log of a node's kubelet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.document import shell_name
from ...parsers import systemd_unit

USUAL = "journalctl -u kubelet"
# RKE2 lets the kubelet write to a file.
OF_RKE2 = "cat /var/lib/rancher/rke2/agent/logs/kubelet.log"


def read(document: Mapping[str, Any]) -> str:
    """Return the command for this host; the usual one where its kubelet has no unit."""
    unit = contract.answer(document, Kubelet).unit
    if unit is None or not unit.name:
        return USUAL
    if systemd_unit.unit(unit).family == "rke2":
        return OF_RKE2
    return f"journalctl -u {shell_name(unit.name.removesuffix('.service'), 'UNIT')}"
