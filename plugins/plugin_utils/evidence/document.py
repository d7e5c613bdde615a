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

from ...module_utils.shared import text as shared_text
from ...module_utils.shared.cluster_key import CERTIFICATE, cluster_key
from ...module_utils.shared.version import TOOL_VERSION
from ..safe_io import atomic_file
from ..safe_io.bounded_json import decoded
from ..safe_io.yaml_nodes import BROKEN, first_document, get, items, text_of
from . import contract
from .answers.file_record import CertificateFile, FileRecord
from .answers.node.instances import ComponentProcess, Instances
from .answers.node.kubelet import Kubelet
from .answers.node.manifests import Manifests

SCHEMA = "kubemend.evidence/1"
STATUSES = ("ok", "unreachable", "error", "not_asked", "skipped")
COLLECTOR_STATUSES = ("ok", "absent", "denied", "error", "timeout", "not_asked")
# how the reason of a host begins whose task ended before ours did
NEVER_BEGAN = "Ansible could not begin with it"
NOT_NAMED = "kubemend_hosts does not name it"  # the reason of a host that was not asked for that
MAX_SIZE, MAX_DEPTH = 64 * 1024 * 1024, 40
NODE_PREFIX = "system:node:"
COMPONENTS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
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
# what the controller adds, which stays where a node's answer cannot be used
OF_CONTROLLER = ("groups", "address", "asked_at", "received_at")
COLLECTOR, MOMENT = (
    re.compile(r"[a-z][a-z0-9_]{0,60}"),
    re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"),
)


# What evidence of an unexpected shape raises: it costs that host or that fault, and the others are
# evaluated.
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def one_line(value: object, limit: int = 300) -> str:
    """Return the value as one printable line of at most `limit` characters."""
    line: str = shared_text.one_line(value, limit)
    return line


def ends(value: object, limit: int = 300) -> str:
    """Return the value as one printable line; of a longer one its beginning and its end."""
    line: str = shared_text.ends(value, limit)
    return line


class EvidenceError(Exception):
    """A file that is no evidence; the text names the file and the reason."""


def unforeseen(error: Exception) -> str:
    """Return why a host's evidence was not evaluated."""
    return (
        f"its evidence has an unexpected shape ({type(error).__name__}:"
        f" {one_line(error, 200)}); collect it again, or report it"
    )


MAX_REASON = 800  # a sentence of Ansible's, and the end of a connection's standard error


def envelope(
    host: str, status: str, reason: str, answer: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the document of one host: its answer, and what only the controller knows."""
    answer = answer or {}
    if status == "ok":
        status = answer.get("status", "ok")
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
        "status": status,
        "reason": one_line(reason or answer.get("reason") or "", MAX_REASON),
    }


def finalise(document: dict[str, Any], groups: Iterable[str] = ()) -> dict[str, Any]:
    """Add what follows from a node's evidence.

    Its cluster follows from the kubelet's CA, and its Node from the kubelet's certificate.
    """
    kubelet = contract.partial_answer(document, Kubelet)
    document["groups"] = list(groups)
    document["cluster_key"] = cluster_key(_authority(kubelet))
    document["node"] = _node_name(_pem(kubelet.client_certificate))
    return document


def accepted(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as it may be written.

    An answer that is not of the schema's shape becomes an error of that host alone.
    """
    try:
        _require_answer(document)
    except EvidenceError as error:
        return {
            **envelope(document["host"], "error", f"its answer is no evidence: {error}"),
            **{name: document[name] for name in OF_CONTROLLER if name in document},
        }
    document["collectors"] = {
        name: _of_shape(record) for name, record in document["collectors"].items()
    }
    if not MOMENT.fullmatch(document["collected_at"]):
        document["collected_at"] = now()
    document["duration_ms"] = _duration(document["duration_ms"])
    return document


def _require_answer(document: dict[str, Any]) -> None:
    """Refuse what is no answer of a node; raises EvidenceError."""
    validate(document)
    for name in document["collectors"]:
        if not COLLECTOR.fullmatch(name):
            raise EvidenceError(f"collector {one_line(name, 40)!r} is none.")
    if document["status"] == "not_asked":
        raise EvidenceError("it says that it was not asked.")


def _of_shape(record: dict[str, Any]) -> dict[str, Any]:
    values = {name: default for name, (_kinds, default) in RECORD.items()}
    for name, (kinds, _default) in RECORD.items():
        if isinstance(record.get(name), kinds):
            values[name] = record[name]
    values["duration_ms"] = _duration(values["duration_ms"])
    return {"status": record["status"], **values}


def _duration(value: Any) -> float:
    """Return a duration that is not negative."""
    if not value or isinstance(value, bool) or value < 0:
        return 0
    duration: float = value
    return duration


def role_of(document: dict[str, Any]) -> str:
    """Return control_plane where a component of the control plane runs or has a manifest.

    The result is unknown where that could not be read, else worker.
    """
    instances = contract.partial_answer(document, Instances)
    manifests = contract.partial_answer(document, Manifests)
    if any(map(_runs_here, instances.processes)) or any(map(_names_component, manifests.files)):
        return "control_plane"
    states = [
        contract.record(document, name).get("status")
        for name in ("kubelet", "manifests", "instances")
    ]
    if states[0] == "ok" and all(state in ("ok", "absent") for state in states):
        return "worker"
    return "unknown"


def _names_component(file: FileRecord) -> bool:
    """Tell whether a manifest names a component."""
    text = file.text or file.name
    return any(component in text for component in COMPONENTS)


def _runs_here(process: ComponentProcess) -> bool:
    """Tell whether a process is of the control plane, and of no cluster inside a container."""
    if process.host_network is False or process.component not in COMPONENTS:
        return False
    return bool(process.static or process.unit)


def stub(
    host: str,
    groups: Iterable[str],
    status: str = "not_asked",
    reason: str = "not asked in this run",
) -> dict[str, Any]:
    """Return the document of a host that was not asked."""
    return {**envelope(host, status, reason), "groups": list(groups)}


def write_stub(
    folder: str | os.PathLike[str],
    host: str,
    groups: Iterable[str],
    address: str | None = None,
    named: bool = True,
) -> None:
    """Note that a host was not asked.

    address: where it is
    named: whether kubemend_hosts has it
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
    atomic_file.replace(target, [text])
    return {
        "path": str(target),
        "sha256": hashlib.sha256(text.encode("ascii")).hexdigest(),
        "size": len(text),
    }


def read(path: Path) -> dict[str, Any]:
    """Return the document of one file, checked. Raises EvidenceError."""
    try:
        if path.stat().st_size > MAX_SIZE:
            raise EvidenceError(f"{path}: more than {MAX_SIZE} bytes.")
        data = path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None
    return parsed(str(path), data)


def parsed(location: str, data: bytes) -> dict[str, Any]:
    """Return the document in these bytes, checked; an EvidenceError names the location."""
    try:
        document = decoded(data)
    except OverflowError as error:
        raise EvidenceError(f"{location}: {error}.") from None
    except (ValueError, RecursionError):
        raise EvidenceError(f"{location}: no JSON, or cut.") from None
    try:
        return validate(document)
    except EvidenceError as error:
        raise EvidenceError(f"{location}: {error}") from None


def validate(document: Any) -> dict[str, Any]:
    """Return the document, if it is one of this schema; raises EvidenceError."""
    if not isinstance(document, dict):
        raise EvidenceError("no JSON object.")
    schema = document.get("schema")
    if schema != SCHEMA:
        raise EvidenceError(f"schema is {one_line(schema, 40)!r}, not {SCHEMA!r}.")
    if _depth(document) > MAX_DEPTH:
        raise EvidenceError(f"nested more than {MAX_DEPTH} deep.")
    for name, kinds in ENVELOPE.items():
        if not _is_allowed(document.get(name), name, kinds):
            raise EvidenceError(f"{name} is missing or of the wrong type.")
    _require_statuses(document)
    return {
        "node": None,
        "cluster_key": None,
        "groups": [],
        "duration_ms": 0,
        **document,
        "reason": document.get("reason") or "",
    }


def _is_allowed(value: Any, name: str, kinds: tuple[type, ...]) -> bool:
    if value is None:
        return name not in REQUIRED
    return isinstance(value, kinds)


def _require_statuses(document: dict[str, Any]) -> None:
    """Refuse a status that this version does not know; raises EvidenceError."""
    if not document["host"] or document["status"] not in STATUSES:
        raise EvidenceError("host or status has no known value.")
    for name, record in document["collectors"].items():
        if not isinstance(record, dict) or record.get("status") not in COLLECTOR_STATUSES:
            raise EvidenceError(f"collector {one_line(name, 40)} has no known status.")


def shell_name(name: str | None, instead: str) -> str:
    """Return a name that an operator may copy into a shell, or the other word."""
    if name and all(_is_plain(char) for char in name):
        return name
    return instead


def _is_plain(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in "@_.:-"


def now() -> str:
    """Return the time of the controller, as documents write it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        inner: list[Any] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item
        level = [child for child in inner if type(child) in NESTED]
    return depth


def _authority(kubelet: Kubelet) -> str | None:
    """Return the CA that the kubelet trusts: of its kubeconfig, or of the file named there."""
    embedded = _embedded_authority(kubelet.kubeconfig)
    if embedded in ("", "~", "null"):
        return _pem(kubelet.ca)
    try:
        return base64.b64decode(embedded).decode("utf-8", "replace")
    except ValueError:
        return None


def _embedded_authority(kubeconfig: FileRecord | None) -> str:
    if kubeconfig is None:
        return ""
    try:
        config = first_document(kubeconfig.text or "")
    except BROKEN:
        return ""
    cluster = next(items(get(config, "clusters")), None)
    return text_of(get(cluster, "cluster", "certificate-authority-data"))


def _pem(file: CertificateFile | None) -> str | None:
    if file is None:
        return None
    return file.pem


def _node_name(pem: str | None) -> str | None:
    block = CERTIFICATE.search(pem or "")
    if not block:
        return None
    try:
        subject = x509.load_pem_x509_certificate(block.group().encode("ascii")).subject
        names = [str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except (ValueError, TypeError, x509.InvalidVersion, UnsupportedAlgorithm):
        return None
    if not names or not names[0].startswith(NODE_PREFIX):
        return None
    return names[0][len(NODE_PREFIX) :]
