# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query the API of a control-plane host's cluster, unless another host answered for it already.

The action runs in a loop over the control-plane hosts, of one cluster or of several. The evidence
folder alone decides which host is the first that answers. The evidence that earlier hosts of the
loop wrote shows which clusters are done. The evidence of the hosts themselves shows, without a
request, which cluster a host belongs to and whether it can be reached.

After a run that made changes it waits first, if that is asked for, until the API reports the
recovered nodes as Ready.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

from ..module_utils.shared import argument_specs
from ..module_utils.shared.cluster_key import cluster_key
from ..plugin_utils.evidence import contract
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.evidence.answers.cluster.nodes import Node, Nodes
from ..plugin_utils.evidence.answers.node.api_server import ApiServerAnswers, ServerAnswer
from ..plugin_utils.planning import node_ready_wait
from ..plugin_utils.run import console, run_files
from ..plugin_utils.transport.node_action import NodeAction

PAUSE = 2.0
# Where the API server of a host is not ready: the seconds for each request, and those that the
# hosts of a loop may use up together before the others are not asked.
IMPATIENCE, USED_UP = 4, 5.0
ENVELOPE = ("kind", "host", "status", "cluster_key", "reason", "duration_ms")
# Options that only the controller uses.
CONTROLLER_OPTIONS = ("settle", "patient", "terminal")


class ActionModule(NodeAction):
    """One question to the API through one control-plane host."""

    ENTRY = "plugins.module_utils.collectors.cluster.runner:collect"
    MODULE = "kubemend.remediation.cluster_evidence_info"
    SUFFIX = ".cluster.json"
    SAID = ("status", "reason", "collected_at", "duration_ms", "collectors", "ca")
    SPEC = argument_specs.CLUSTER_EVIDENCE_INFO

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        node_params = {
            name: value for name, value in params.items() if name not in CONTROLLER_OPTIONS
        }
        if params.get("settle"):
            return self._settled(host, params, node_params, task_vars)
        answered = dict.fromkeys(params["skip_clusters"], "another host")
        folder = self._task.args.get("evidence_dir")
        if folder:
            folder = Path(str(folder)).expanduser()
            answered.update(_answered(folder))
            record = _known(folder / evidence_document.file_name(host))
            if record["status"] == "unreachable":
                return "unreachable", record["reason"], {}
            if record["without_etcd"]:
                return "error", "its API server does not reach etcd: its own checks say so", {}
            if record["cluster_key"] in answered:
                return "skipped", f"{answered[record['cluster_key']]} answered for this cluster", {}
            if record["unready"]:
                if _spent_in_vain(folder, record["cluster_key"]) > USED_UP:
                    return "error", "its API server is not ready, and others gave no answer", {}
                node_params["request_timeout"] = min(node_params["request_timeout"], IMPATIENCE)
        node_params["skip_clusters"] = sorted(answered)
        return super()._ask(host, node_params, task_vars)

    def _settled(
        self,
        host: str,
        params: dict[str, Any],
        node_params: dict[str, Any],
        task_vars: dict[str, Any],
    ) -> tuple[str, str, dict[str, Any]]:
        """Ask until the API reports the recovered nodes as Ready, or until the time limit.

        The API is not asked if the run recovered no node.
        """
        names, patience = _recovered(params["settle"])
        if not names:
            return "skipped", "no kubelet was recovered", {}
        wait = _Wait(names, patience, params)
        while True:
            status, reason, answer = super()._ask(host, node_params, task_vars)
            if wait.is_over(status, answer):
                break
            time.sleep(PAUSE)
        wait.report_end()
        return status, reason, answer

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        """Add the key of the cluster, and write nothing of a host that was skipped."""
        authority = document.pop("ca", None)
        document["cluster_key"] = cluster_key(_pem(authority))
        document = {**evidence_document.accepted(document), "kind": "cluster"}
        if document["status"] == "skipped":
            args["evidence_dir"] = None  # nothing was asked: there is nothing to write
        return document


class _Wait:
    """Waits for the nodes that a run recovered, and reports on the console what is missing."""

    def __init__(self, names: frozenset[str], patience: float, params: dict[str, Any]) -> None:
        self.names = names
        self.start = time.monotonic()
        self.end = self.start + patience
        self.has_console = bool(params.get("terminal"))
        self.answered = Path(params["settle"]) / run_files.ANSWERED
        # An API server that stays away is not waited for where another one answered an earlier
        # host of the loop.
        self.is_patient = bool(params.get("patient")) and not self.answered.exists()
        self.missing: dict[str, str] | None = None
        self.message: str | None = None

    def is_over(self, status: str, answer: Any) -> bool:
        """Return whether all nodes are back, or there is no use in another question."""
        nodes = _nodes(answer)
        self.missing = None
        if nodes is not None:
            self.missing = node_ready_wait.waiting(nodes, self.names)
            if node_ready_wait.listed(nodes, self.names):
                self.answered.touch(mode=0o600)
        if self.missing == {} or status != "ok":
            return True
        if nodes is None and not self.is_patient:
            return True
        remaining = self.end - time.monotonic()
        if remaining <= 0:
            return True
        self._report_missing(remaining)
        return False

    def _report_missing(self, remaining: float) -> None:
        message = "the API does not answer yet"
        if self.missing is not None:
            message = node_ready_wait.clause(self.missing)
        if message != self.message:
            self._tell(
                f"kubemend: waiting for the API to have recovered nodes Ready, for"
                f" {remaining:.0f} s at most: {message}"
            )
            self.message = message

    def report_end(self) -> None:
        """Report that the nodes are Ready again, if it was reported that they were missing."""
        if self.missing == {} and self.message is not None:
            self._tell(
                f"kubemend: Ready again after {time.monotonic() - self.start:.0f} s, without the"
                f" node lifecycle controller's taints: {', '.join(sorted(self.names))}"
            )

    def _tell(self, sentence: str) -> None:
        if self.has_console:
            console.tell(sentence)


def _pem(authority: Any) -> str | None:
    if isinstance(authority, dict) and isinstance(authority.get("pem"), str):
        return str(authority["pem"])
    return None


def _recovered(folder: str) -> tuple[frozenset[str], float]:
    """Return (the Nodes that a run recovered, for how many seconds they are waited for).

    The seconds never exceed the normal limit, even if clocks differ.
    """
    ended = run_files.last_end(folder)
    if ended is None:
        return frozenset(), 0.0
    try:
        plan = run_files.read_plan(folder)
    except (OSError, ValueError, TypeError):
        return frozenset(), 0.0
    seconds = node_ready_wait.SECONDS
    remaining = min(max(ended + seconds - time.time(), 0.0), seconds)
    return node_ready_wait.nodes(plan, run_files.read_steps(folder)), remaining


def _nodes(answer: dict[str, Any]) -> tuple[Node, ...] | None:
    """Return the API's list of Nodes; None where it does not answer."""
    data = contract.record(answer, "nodes").get("data")
    if not data:
        return None
    decoding = contract.decoded(data, Nodes)
    if decoding.malformed:
        return None
    return decoding.answer.items


def _answered(folder: Path) -> dict[str, str]:
    """Return {cluster key: the host that answered for it}, by the evidence in the folder."""
    hosts = {}
    for path in sorted(folder.glob("*.cluster.json")):
        document = _known(path)
        if document["kind"] == "cluster" and document["status"] == "ok" and document["cluster_key"]:
            hosts[document["cluster_key"]] = document["host"]
    return hosts


def _known(path: Path) -> dict[str, Any]:
    try:
        return _envelope(path, path.stat().st_mtime_ns)
    except (OSError, evidence_document.EvidenceError):
        return dict.fromkeys((*ENVELOPE, "without_etcd", "unready"))


@functools.lru_cache(maxsize=4096)  # one worker asks all hosts of a loop
def _envelope(path: Path, _changed: int) -> dict[str, Any]:
    document = evidence_document.read(path)
    # A host may be called "m1.cluster": only the document itself says what it is.
    envelope = {name: document.get(name) for name in ENVELOPE}
    servers: tuple[ServerAnswer, ...] = ()
    if document.get("kind") != "cluster":
        servers = contract.answer(contract.checked(document), ApiServerAnswers).servers
    return {
        **envelope,
        "without_etcd": bool(servers) and all(map(_has_no_etcd, servers)),
        "unready": bool(servers) and not any(map(_may_be_ready, servers)),
    }


def _has_no_etcd(server: ServerAnswer) -> bool:
    """Tell whether an API server says that it does not reach etcd.

    What needs etcd is then answered after half a minute, with an error.
    """
    return "etcd" in (*server.readyz.failed, *server.livez.failed)


def _may_be_ready(server: ServerAnswer) -> bool:
    """Tell whether an API server is ready, or does not say it to this node."""
    return server.readyz.status in (200, 401, 403)


def _spent_in_vain(folder: Path, key: str | None) -> float:
    """Return the seconds for which hosts of a cluster asked their API without an answer.

    An API that gives no answer tells no key: the evidence of the host itself has it.
    """
    records = [_known(path) for path in sorted(folder.glob("*.cluster.json"))]
    spent = [
        row["duration_ms"]
        for row in records
        if row["status"] == "error" and _key_of(folder, row["host"]) == key
    ]
    return sum(number for number in spent if isinstance(number, (int, float))) / 1000


def _key_of(folder: Path, host: str) -> str | None:
    """Return the key of the cluster that a host belongs to, by its own evidence."""
    key = _known(folder / evidence_document.file_name(host))["cluster_key"]
    return None if key is None else str(key)
