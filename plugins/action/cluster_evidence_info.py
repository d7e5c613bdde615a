# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the API of a control-plane host's cluster, unless another host answered for that cluster already.

Called in a loop over the control-plane hosts, of one cluster or of several: "first that answers" is decided here, by
the evidence folder alone. What an earlier host of the loop wrote there tells which clusters are done; what the hosts'
own evidence says tells, without asking, which cluster a host belongs to and whether it can be reached.
"""

from __future__ import annotations

import functools

from pathlib import Path
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collect_cluster import COLLECTORS
from ansible_collections.kubemend.remediation.plugins.plugin_utils import evidence
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_action import NodeAction


class ActionModule(NodeAction):
    """One question to the API through one control-plane host."""

    ENTRY = "plugins.module_utils.collect_cluster:collect"
    MODULE = "kubemend.remediation.cluster_evidence_info"
    SUFFIX = ".cluster.json"
    SPEC = {
        "collectors": {"type": "list", "elements": "str", "choices": list(COLLECTORS)},
        "deep": {"type": "bool", "default": False},
        "expect_pinning": {"type": "str"},
        "pod": {"type": "str"},
        "kubeconfig": {"type": "str"},
        "kubectl": {"type": "str"},
        "skip_clusters": {"type": "list", "elements": "str", "default": []},
    }

    def _ask(self, host: str, params: dict[str, Any], task_vars: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        answered = dict.fromkeys(params["skip_clusters"], "another host")
        folder = self._task.args.get("evidence_dir")
        if folder:
            folder = Path(str(folder)).expanduser()
            answered.update(_answered(folder))
            known = _known(folder / evidence.file_name(host))
            if known["status"] == "unreachable":
                return "unreachable", known["reason"], {}
            if known["cluster_key"] in answered:
                return "skipped", f"{answered[known['cluster_key']]} answered for this cluster", {}
        return super()._ask(host, {**params, "skip_clusters": sorted(answered)}, task_vars)

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        authority = document.pop("ca", None)
        pem = authority.get("pem") if isinstance(authority, dict) else None
        document.update(kind="cluster", cluster_key=evidence.cluster_key(pem if isinstance(pem, str) else None))
        if document["status"] == "skipped":
            args["evidence_dir"] = None  # nothing was asked: there is nothing to write
        return document


def _answered(folder: Path) -> dict[str, str]:
    """Cluster key → the host that answered for it, of the cluster evidence in the folder."""
    found = {}
    for path in sorted(folder.glob("*.cluster.json")):
        document = _known(path)
        if document["kind"] == "cluster" and document["status"] == "ok" and document["cluster_key"]:
            found[document["cluster_key"]] = document["host"]
    return found


def _known(path: Path) -> dict[str, Any]:
    try:
        return _envelope(path, path.stat().st_mtime_ns)
    except (OSError, evidence.EvidenceError):
        return dict.fromkeys(("kind", "host", "status", "cluster_key", "reason"))


@functools.lru_cache(maxsize=4096)  # one worker asks all hosts of a loop
def _envelope(path: Path, _changed: int) -> dict[str, Any]:
    document = evidence.read(path)
    # A host may be called "m1.cluster": only the document itself says what it is.
    return {name: document.get(name) for name in ("kind", "host", "status", "cluster_key", "reason")}
