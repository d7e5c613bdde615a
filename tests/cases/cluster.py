# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of one cluster while a case is built: documents of hosts and of the API."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)

from . import paths

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "recorded"
CLUSTER = "cluster"


class BuildError(ValueError):
    """A case that cannot be built, with the reason."""


class Evidence:
    """The documents of a cluster, which macros change."""

    def __init__(self, recording: str) -> None:
        folder = RECORDED / recording / "evidence"
        if not folder.is_dir():
            raise BuildError(f"there is no recording {recording}")
        self.hosts: dict[str, dict[str, Any]] = {}
        self.api: list[dict[str, Any]] = []
        for path in sorted(folder.glob("*.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            if document.get("kind") == CLUSTER:
                self.api.append(document)
            else:
                self.hosts[document["host"]] = document

    @property
    def now(self) -> float:
        """Return the clock of the first host."""
        first: float = next(iter(self.hosts.values()))["collectors"]["system"]["data"]["clock"]
        return first

    def record(self, host: str, collector: str) -> dict[str, Any]:
        """Return the record of a collector of a host, an empty one where it is new."""
        if host == paths.API:
            documents = self.api
        else:
            documents = [self.hosts[host]] if host in self.hosts else []
        if not documents:
            raise BuildError(f"the base has no host {host}")
        kinds = paths.API if host == paths.API else "node"
        found: dict[str, Any] = documents[0]["collectors"].setdefault(collector, _new(kinds))
        return found

    def data(self, host: str, collector: str) -> Any:
        """Return what a collector answered; it becomes ok where it was not."""
        record = self.record(host, collector)
        if record["status"] != "ok":
            record.update(status="ok", error=None)
        if record["data"] is None:
            record["data"] = {}
        return record["data"]

    def answer(self, host: str, collector: str, status: str, error: str | None) -> None:
        """Let a collector answer without data."""
        self.record(host, collector).update(status=status, data=None, error=error)

    def node(self, name: str) -> dict[str, Any]:
        """Return the Node of a host."""
        for item in self.data(paths.API, "nodes")["items"]:
            if item["name"] == name:
                found: dict[str, Any] = item
                return found
        raise BuildError(f"the API has no Node {name}")

    def replaced(self, old: str, new: str) -> None:
        """Replace a text everywhere, such as the release of the recording."""
        for document in [*self.hosts.values(), *self.api]:
            text = json.dumps(document["collectors"]).replace(old, new)
            document["collectors"] = json.loads(text)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the documents as files of an audit would hold them; raises EvidenceError."""
        for document in [*self.hosts.values(), *self.api]:
            data = json.dumps(document, allow_nan=False).encode("ascii")
            parsed = evidence_document.parsed(document["host"], data)
            checked = contract.checked(parsed)
            if checked is not parsed:
                raise BuildError(_refused(checked))
            yield copy.deepcopy(parsed)


def _new(kind: str) -> dict[str, Any]:
    return {
        "status": "ok",
        "truncated": False,
        "data": {},
        "source": kind,
        "duration_ms": 1,
        "error": None,
    }


def _refused(document: Any) -> str:
    errors = [
        f"{document['host']}.{name}: {record['error']}"
        for name, record in document["collectors"].items()
        if "of another type than expected" in str(record.get("error"))
    ]
    return "; ".join(errors)
