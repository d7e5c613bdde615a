# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks one host for its evidence and writes it into a file of the controller."""

from __future__ import annotations

from typing import Any

from ..module_utils.shared import argument_specs
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.transport.node_action import NodeAction


class ActionModule(NodeAction):
    """Collect evidence in one round trip for each host; the collector travels on standard input."""

    ENTRY = "plugins.module_utils.collectors.runner:collect"
    SHIP = ("plugins.module_utils.collectors.node",)
    MODULE = "kubemend.remediation.node_evidence_info"
    SAID = ("collected_at", "duration_ms", "python", "euid", "collectors")
    SHOWS_PROGRESS = True
    SPEC = argument_specs.NODE_EVIDENCE_INFO

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        """Add what the controller knows of the host, within bounds."""
        return evidence_document.accepted(evidence_document.finalise(document, args["groups"]))

    def summary(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the role of the host for the task's result."""
        return {"role": evidence_document.role_of(document)}
