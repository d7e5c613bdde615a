# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One document of evidence: made, checked, written, read again.

What a node wrote is untrusted: it is bounded, checked against the schema and never becomes an
Ansible variable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

# Here, not where it is used: Ansible's workers are forked after this import, and it is slow.
# ansible-core needs it itself;
# only ansible-test imports plugins where it is not.
try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = NameOID = UnsupportedAlgorithm = None

from ...module_utils.shared.cluster_key import CERTIFICATE, cluster_key
from ...module_utils.shared.text import one_line
from ...module_utils.shared.version import TOOL_VERSION
from ..safe_io import atomic_file as private_files
from ..safe_io.bounded_json import decoded
from ..safe_io.yaml_nodes import BROKEN, first_document, get, items, text_of

SCHEMA = "kubemend.evidence/1"
STATUSES = ("ok", "unreachable", "error", "not_asked", "skipped")
COLLECTOR_STATUSES = ("ok", "absent", "denied", "error", "timeout", "not_asked")
# how the reason of a host begins whose task ended before ours did
NEVER_BEGAN = "Ansible could not begin with it"
NOT_NAMED = "kubemend_hosts does not name it"  # the reason of a host that was not asked for that
MAX_SIZE, MAX_DEPTH = 64 * 1024 * 1024, 40
NODE_PREFIX = "system:node:"
ENVELOPE = {
    "host": (str,),
    "node": (str, type(None)),
    "cluster_key": (str, type(None)),
    "status": (str,),
    "reason": (str,),
    "groups": (list,),
    "collected_at": (str,),
    "tool_version": (str,),
    "duration_ms": (int, float),
    "collectors": (dict,),
}
# JSON has no others, and asking for a type is twice as fast as isinstance
NESTED = frozenset((dict, list))
REQUIRED = ("host", "status", "collected_at", "collectors")
# What a collector's record holds, and what stands there when a node wrote something of another
# type.
RECORD: dict[str, tuple[tuple[type, ...], Any]] = {
    "truncated": ((bool,), False),
    "data": ((dict,), None),
    "source": ((str,), None),
    "duration_ms": ((int, float), 0),
    "error": ((str,), None),
}
COLLECTOR, MOMENT = (
    re.compile(r"[a-z][a-z0-9_]{0,60}"),
    re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"),
)


# What evidence of a shape that nobody foresaw raises: it costs that host or that fault, not the
# judgement of all the others.
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class EvidenceError(Exception):
    """A file that is no evidence; the text names the file and the reason."""


def unforeseen(error: Exception) -> str:
    """Why a host's evidence was not judged."""
    return (
        f"its evidence has a shape that nobody foresaw ({type(error).__name__}:"
        f" {one_line(error, 200)}); collect it again, or report it"
    )


MAX_REASON = 800  # a sentence of Ansible's, and the end of a connection's standard error


def envelope(
    host: str, status: str, reason: str, answer: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The document of one host: the node's answer, with what only the controller can say about
    it.
    """
    answer = answer or {}
    return {
        "collected_at": now(),
        "duration_ms": 0,
        **answer,
        "schema": SCHEMA,
        "tool_version": TOOL_VERSION,
        "host": host,
        "node": None,
        "cluster_key": None,
        "groups": [],
        "collectors": answer.get("collectors") or {},
        "status": status if status != "ok" else answer.get("status", "ok"),
        "reason": one_line(reason or answer.get("reason") or "", MAX_REASON),
    }


def finalise(document: dict[str, Any], groups: Iterable[str] = ()) -> dict[str, Any]:
    """Add what follows from a node's evidence.

    Its cluster, by the kubelet's CA, and its Node, by the kubelet's certificate.
    """
    kubelet = _data(document, "kubelet")
    document["groups"] = list(groups)
    document["cluster_key"] = cluster_key(_authority(kubelet))
    document["node"] = _node_name(_text(kubelet.get("client_certificate"), "pem"))
    return document


def accepted(document: dict[str, Any]) -> dict[str, Any]:
    """The document as it may be written.

    What a node said is of the schema's shape, or the node's answer is an error of that host alone.
    """
    try:
        validate(document)
        strange = next(
            (name for name in document["collectors"] if not COLLECTOR.fullmatch(name)), None
        )
        if strange is not None:
            raise EvidenceError(f"collector {one_line(strange, 40)!r} is none.")
        if document["status"] == "not_asked":
            raise EvidenceError("it says that it was not asked.")
    except EvidenceError as error:
        kept = {
            name: document[name]
            for name in ("groups", "address", "asked_at", "received_at")
            if name in document
        }
        return {
            **envelope(document["host"], "error", f"its answer is no evidence: {error}"),
            **kept,
        }
    document["collectors"] = {
        name: _of_shape(record) for name, record in document["collectors"].items()
    }
    if not MOMENT.fullmatch(document["collected_at"]):
        document["collected_at"] = now()
    if (
        not document["duration_ms"]
        or isinstance(document["duration_ms"], bool)
        or document["duration_ms"] < 0
    ):
        document["duration_ms"] = 0
    return document


def _of_shape(record: dict[str, Any]) -> dict[str, Any]:
    found = {
        name: record.get(name) if isinstance(record.get(name), kinds) else default
        for name, (kinds, default) in RECORD.items()
    }
    return {
        "status": record["status"],
        **found,
        "duration_ms": (
            0 if isinstance(found["duration_ms"], bool) else max(0, found["duration_ms"])
        ),
    }


def role_of(document: dict[str, Any]) -> str:
    """control_plane where one of its components runs or has a manifest.

    Unknown where nobody could look.
    """
    components = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
    instances, manifests = _data(document, "instances"), _data(document, "manifests")
    for process in _list(instances.get("processes")):
        # else it belongs to a cluster inside a container
        here = process.get("host_network") is not False
        if (
            here
            and process.get("component") in components
            and (process.get("static") or process.get("unit"))
        ):
            return "control_plane"
    for file in _list(manifests.get("files")):
        if any(component in str(file.get("text") or file.get("name")) for component in components):
            return "control_plane"
    states = [
        _record(document, name).get("status") for name in ("kubelet", "manifests", "instances")
    ]
    return (
        "worker"
        if all(state in ("ok", "absent") for state in states) and states[0] == "ok"
        else "unknown"
    )


def stub(
    host: str,
    groups: Iterable[str],
    status: str = "not_asked",
    reason: str = "not asked in this run",
) -> dict[str, Any]:
    """A document of a host that nobody asked."""
    return {**envelope(host, status, reason), "groups": list(groups)}


def write_stub(
    folder: str | os.PathLike[str],
    host: str,
    groups: Iterable[str],
    address: str | None = None,
    named: bool = True,
) -> None:
    """Note that a host was not asked. address: where it is; named.

    Whether kubemend_hosts has it.
    """
    reason = {} if named else {"reason": NOT_NAMED}
    write({**stub(host, groups), "address": address, **reason}, folder)


def file_name(host: str, suffix: str = ".json") -> str:
    """Percent-encoded: any inventory name is one file name, never a path."""
    return quote(host, safe="").replace(".", "%2E", 1 if host.startswith(".") else 0) + suffix


def write(
    document: dict[str, Any], folder: str | os.PathLike[str], suffix: str = ".json"
) -> dict[str, Any]:
    """Replace the host's file in one step, readable by its owner only.

    Returns path, sha256 and size; raises EvidenceError.
    """
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except ValueError:  # 1e999 is JSON, and no number
        raise EvidenceError("a number without a value.") from None
    target = Path(folder) / file_name(document["host"], suffix)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.replace(target, [text])
    return {
        "path": str(target),
        "sha256": hashlib.sha256(text.encode("ascii")).hexdigest(),
        "size": len(text),
    }


def read(path: Path) -> dict[str, Any]:
    """One file's document, checked; raises EvidenceError."""
    try:
        if path.stat().st_size > MAX_SIZE:
            raise EvidenceError(f"{path}: more than {MAX_SIZE} bytes.")
        data = path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None
    return parsed(str(path), data)


def parsed(where: str, data: bytes) -> dict[str, Any]:
    """The document in these bytes, checked; where: what an EvidenceError names."""
    try:
        document = decoded(data)
    except OverflowError as error:
        raise EvidenceError(f"{where}: {error}.") from None
    except (ValueError, RecursionError):
        raise EvidenceError(f"{where}: no JSON, or cut.") from None
    try:
        return validate(document)
    except EvidenceError as error:
        raise EvidenceError(f"{where}: {error}") from None


def validate(document: Any) -> dict[str, Any]:
    """The document, if it is one of this schema; raises EvidenceError with the reason."""
    if not isinstance(document, dict):
        raise EvidenceError("no JSON object.")
    schema = document.get("schema")
    if schema != SCHEMA:
        raise EvidenceError(f"schema is {one_line(schema, 40)!r}, not {SCHEMA!r}.")
    if _depth(document) > MAX_DEPTH:
        raise EvidenceError(f"nested more than {MAX_DEPTH} deep.")
    for name, kinds in ENVELOPE.items():
        value = document.get(name)
        if (value is None and name in REQUIRED) or (
            value is not None and not isinstance(value, kinds)
        ):
            raise EvidenceError(f"{name} is missing or of the wrong type.")
    if not document["host"] or document["status"] not in STATUSES:
        raise EvidenceError("host or status has no known value.")
    for name, record in document["collectors"].items():
        if not isinstance(record, dict) or record.get("status") not in COLLECTOR_STATUSES:
            raise EvidenceError(f"collector {one_line(name, 40)} has no known status.")
    return {
        "node": None,
        "cluster_key": None,
        "groups": [],
        "duration_ms": 0,
        **document,
        "reason": document.get("reason") or "",
    }


def shell_name(name: str | None, instead: str) -> str:
    """A unit's or node's name as an operator may copy it into a shell.

    Instead, where it has other characters.
    """
    return (
        name
        if name and all((char.isascii() and char.isalnum()) or char in "@_.:-" for char in name)
        else instead
    )


def now() -> str:
    """The time of the controller, as documents write it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if type(child) in NESTED
        ]
    return depth


def _record(document: dict[str, Any], name: str) -> dict[str, Any]:
    record = (
        document["collectors"].get(name) if isinstance(document.get("collectors"), dict) else None
    )
    return record if isinstance(record, dict) else {}


def _data(document: dict[str, Any], name: str) -> dict[str, Any]:
    data = _record(document, name).get("data")
    return data if isinstance(data, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any, key: str) -> str | None:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _authority(kubelet: dict[str, Any]) -> str | None:
    """The CA that the kubelet trusts: embedded in its kubeconfig, or the file which that names."""
    try:
        config = first_document(_text(kubelet.get("kubeconfig"), "text") or "")
        embedded = text_of(
            get(next(items(get(config, "clusters")), None), "cluster", "certificate-authority-data")
        )
    except BROKEN:
        embedded = ""
    if embedded in ("", "~", "null"):
        return _text(kubelet.get("ca"), "pem")
    try:
        return base64.b64decode(embedded).decode("utf-8", "replace")
    except ValueError:
        return None


def _node_name(pem: str | None) -> str | None:
    block = CERTIFICATE.search(pem or "")
    if not block:
        return None
    try:
        subject = x509.load_pem_x509_certificate(block.group().encode("ascii")).subject
        names = [str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except (ValueError, TypeError, x509.InvalidVersion, UnsupportedAlgorithm):
        return None
    return names[0][len(NODE_PREFIX) :] if names and names[0].startswith(NODE_PREFIX) else None
