# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query the API of a control-plane host's cluster, unless another host answered for it already.

Called in a loop over the control-plane hosts, of one cluster or of several: "first that answers" is
decided here, by the evidence folder alone. What an earlier host of the loop wrote there tells which
clusters are done; what the hosts' own evidence says tells, without asking, which cluster a host
belongs to and whether it can be reached.

After a repair it waits first, where that is asked for: until the API has those nodes Ready again
whose kubelets were brought back.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

from ..module_utils.shared import collector_names
from ..plugin_utils.evidence import document as evidence
from ..plugin_utils.planning import node_ready_wait as brought_back
from ..plugin_utils.run import console as terminal
from ..plugin_utils.run import run_files as run_folder
from ..plugin_utils.transport.node_action import NodeAction

PAUSE = 2.0
# What is this side's alone.
OURS = ("settle", "patient", "terminal")


class ActionModule(NodeAction):
    """One question to the API through one control-plane host."""

    ENTRY = "plugins.module_utils.collectors.cluster.runner:collect"
    MODULE = "kubemend.remediation.cluster_evidence_info"
    SUFFIX = ".cluster.json"
    SAID = ("status", "reason", "collected_at", "duration_ms", "collectors", "ca")
    SPEC = {
        "collectors": {"type": "list", "elements": "str", "choices": list(collector_names.CLUSTER)},
        "deep": {"type": "bool", "default": False},
        "expect_pinning": {"type": "str"},
        "pod": {"type": "str"},
        "kubeconfig": {"type": "str"},
        "kubectl": {"type": "str"},
        "skip_clusters": {"type": "list", "elements": "str", "default": []},
        "settle": {"type": "path"},
        "patient": {"type": "bool", "default": False},
        "terminal": {"type": "bool", "default": True},
    }

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        wanted, params = params, {name: value for name, value in params.items() if name not in OURS}
        if wanted.get("settle"):
            return self._settled(host, wanted, params, task_vars)
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

    def _settled(
        self, host: str, wanted: dict[str, Any], params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        """Ask until what the run brought back is back for the API too, or its time is over.

        Of a run that brought nothing back nobody is asked.
        """
        names, patience = _brought_back(wanted["settle"])
        if not names:
            return "skipped", "no kubelet was brought back", {}
        tell, begun, left = (
            terminal.tell if wanted.get("terminal") else _silent,
            time.monotonic(),
            None,
        )
        until = begun + patience
        answered = Path(wanted["settle"]) / run_folder.ANSWERED
        # One API server that stays away is nobody's to wait for where another answered an earlier
        # host of the loop.
        patient = bool(wanted.get("patient")) and not answered.exists()
        while True:
            status, reason, answer = super()._ask(host, params, task_vars)
            nodes = _nodes(answer)
            if nodes is None:
                now = None
            else:
                now = brought_back.waiting(nodes, names)
            if brought_back.listed(nodes, names):
                answered.touch(mode=0o600)
            if (
                now == {}
                or status != "ok"
                or (nodes is None and not patient)
                or time.monotonic() >= until
            ):
                break
            if now is None:
                what = "the API does not answer yet"
            else:
                what = brought_back.told(now)
            if what != left:
                tell(
                    "kubemend: waiting for the API to have what was brought back Ready, for"
                    f" {max(0, until - time.monotonic()):.0f} s at most: {what}"
                )
                left = what
            time.sleep(PAUSE)
        if now == {} and left is not None:
            tell(
                f"kubemend: Ready again after {time.monotonic() - begun:.0f} s, without the node"
                f" lifecycle controller's taints: {', '.join(sorted(names))}"
            )
        return status, reason, answer

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        authority = document.pop("ca", None)
        if isinstance(authority, dict):
            pem = authority.get("pem")
        else:
            pem = None
        document["cluster_key"] = evidence.cluster_key(pem if isinstance(pem, str) else None)
        document = {**evidence.accepted(document), "kind": "cluster"}
        if document["status"] == "skipped":
            args["evidence_dir"] = None  # nothing was asked: there is nothing to write
        return document


def _silent(_sentence: str) -> None:
    """For an operator who wants nothing on the terminal."""


def _brought_back(folder: str) -> tuple[frozenset[str], float]:
    """Return (the Nodes that a run brought back, for how many seconds they are waited for).

    Never longer than that, whatever clocks say.
    """
    ended = run_folder.last_end(folder)
    try:
        if ended is not None:
            plan = run_folder.read_plan(folder)
        else:
            plan = ()
    except (OSError, ValueError, TypeError):
        return frozenset(), 0.0
    return brought_back.nodes(plan, run_folder.read_steps(folder)), min(
        max((ended or 0.0) + brought_back.SECONDS - time.time(), 0.0), brought_back.SECONDS
    )


def _nodes(answer: Any) -> list[Any] | None:
    """Return the API's list of Nodes; None where it does not answer."""
    found: Any = answer
    for name in ("collectors", "nodes", "data", "items"):
        if isinstance(found, dict):
            found = found.get(name)
        else:
            found = None
    if isinstance(found, list):
        return found
    return None


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
    return {
        name: document.get(name) for name in ("kind", "host", "status", "cluster_key", "reason")
    }
