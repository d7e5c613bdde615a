# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks one host for the logs of its components and writes them into a file of the controller."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.logs import components as log_components
from ..module_utils.shared import argument_specs
from ..plugin_utils.capture import log_merge
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.transport.node_action import NodeAction

# What the node tells; everything else of the document is this side's.
TOLD = ("clock_begin", "clock", "seconds_back", "started", "sources", "lines")
OURS = ("tool_version", "host", "status", "reason", "address", "asked_at", "received_at")


class ActionModule(NodeAction):
    """Collect logs in one round trip for each host.

    The times of request and answer are kept with the node's own time, because they bound the
    difference of its clock.
    """

    ENTRY = "plugins.module_utils.logs.components:collect"
    MODULE = "kubemend.remediation.pod_logs_info"
    SAID = ("status", "reason", *TOLD)
    SPEC = argument_specs.POD_LOGS_INFO

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        sentence = log_components.refusal(params)
        if sentence:
            raise AnsibleActionFail(sentence)
        begin = time.time()
        status, reason, answer = super()._ask(host, params, task_vars)
        return status, reason, {**answer, "asked_at": begin, "received_at": time.time()}

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        """Return a document of its own schema, which cannot be taken for evidence."""
        empty: dict[str, Any] = {"started": {}, "sources": [], "lines": []}
        return {
            "schema": log_merge.SCHEMA,
            "collected_at": evidence_document.now(),
            **{name: document[name] for name in OURS},
            **{name: document.get(name, empty.get(name)) for name in TOLD},
        }

    def summary(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return how many lines there are, and how many sources of each status."""
        listed = document["sources"] if isinstance(document["sources"], list) else []
        sources = [item for item in listed if isinstance(item, dict)]
        statuses = Counter(
            item["status"] for item in sources if item.get("status") in log_merge.STATUSES
        )
        return {
            "lines": len(document["lines"]) if isinstance(document["lines"], list) else 0,
            "sources": dict(sorted(statuses.items())),
            "truncated": any(item.get("truncated") is True for item in sources),
        }
