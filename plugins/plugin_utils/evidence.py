# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: documents of evidence: made, written, read again, merged.

What a node wrote is untrusted: it is bounded, checked against the schema and never becomes an Ansible variable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tempfile
import zlib

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

# Here, not where it is used: Ansible's workers are forked after this import, and it is slow. ansible-core needs it itself;
# only ansible-test imports plugins where it is not.
try:
    from cryptography import x509
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = NameOID = None

from ansible_collections.kubemend.remediation.plugins.module_utils.version import TOOL_VERSION
from ansible_collections.kubemend.remediation.plugins.plugin_utils import archive

SCHEMA = "kubemend.evidence/1"
STATUSES = ("ok", "unreachable", "error", "not_asked", "skipped")
COLLECTOR_STATUSES = ("ok", "absent", "denied", "error", "timeout", "not_asked")
MAX_SIZE, MAX_DEPTH = 64 * 1024 * 1024, 40
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----")
NODE_PREFIX = "system:node:"
ENVELOPE = {
    "host": (str,), "node": (str, type(None)), "cluster_key": (str, type(None)), "status": (str,), "reason": (str,),
    "groups": (list,), "collected_at": (str,), "tool_version": (str,), "duration_ms": (int, float), "collectors": (dict,),
}
REQUIRED = ("host", "status", "collected_at", "collectors")
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Source = tuple[str, Callable[[], dict[str, Any]]]  # the name of a host's file, and what reads its document


class EvidenceError(Exception):
    """A file that is no evidence; the text names the file and the reason."""


def envelope(host: str, status: str, reason: str, answer: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document of one host: the node's answer, with what only the controller can say about it."""
    answer = answer or {}
    return {
        "collected_at": now(), "duration_ms": 0, **answer, "schema": SCHEMA, "tool_version": TOOL_VERSION, "host": host,
        "node": None, "cluster_key": None, "groups": [], "collectors": answer.get("collectors") or {},
        "status": status if status != "ok" else answer.get("status", "ok"),
        "reason": one_line(reason or answer.get("reason") or ""),
    }


def finalise(document: dict[str, Any], groups: Iterable[str] = ()) -> dict[str, Any]:
    """Add what follows from a node's evidence: its cluster, by the kubelet's CA, and its Node, by the kubelet's certificate."""
    kubelet = _data(document, "kubelet")
    document["groups"] = list(groups)
    document["cluster_key"] = cluster_key(_authority(kubelet))
    document["node"] = _node_name(_text(kubelet.get("client_certificate"), "pem"))
    return document


def role_of(document: dict[str, Any]) -> str:
    """control_plane where one of its components runs or has a manifest; unknown where nobody could look."""
    components = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
    instances, manifests = _data(document, "instances"), _data(document, "manifests")
    for process in _list(instances.get("processes")):
        here = process.get("host_network") is not False  # else it belongs to a cluster inside a container
        if here and process.get("component") in components and (process.get("static") or process.get("unit")):
            return "control_plane"
    for file in _list(manifests.get("files")):
        if any(component in str(file.get("text") or file.get("name")) for component in components):
            return "control_plane"
    states = [_record(document, name).get("status") for name in ("kubelet", "manifests", "instances")]
    return "worker" if all(state in ("ok", "absent") for state in states) and states[0] == "ok" else "unknown"


def stub(host: str, groups: Iterable[str], status: str = "not_asked", reason: str = "not asked in this run") -> dict[str, Any]:
    """A document of a host that nobody asked."""
    return {**envelope(host, status, reason), "groups": list(groups)}


def write_stub(folder: str | os.PathLike[str], host: str, groups: Iterable[str], address: str | None = None) -> None:
    """Note that a host of the inventory was not asked in this run. address: where the inventory says that it is."""
    write({**stub(host, groups), "address": address}, folder)


def file_name(host: str, suffix: str = ".json") -> str:
    """Percent-encoded: any inventory name is one file name, never a path."""
    return quote(host, safe="").replace(".", "%2E", 1 if host.startswith(".") else 0) + suffix


def write(document: dict[str, Any], folder: str | os.PathLike[str], suffix: str = ".json") -> dict[str, Any]:
    """Replace the host's file in one step, readable by its owner only. Returns path, sha256 and size."""
    data = json.dumps(document, separators=(",", ":")).encode("ascii")
    target = Path(folder) / file_name(document["host"], suffix)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".writing-")  # 0600 by itself
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return {"path": str(target), "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def read(path: Path) -> dict[str, Any]:
    """One file's document, checked; raises EvidenceError."""
    try:
        if path.stat().st_size > MAX_SIZE:
            raise EvidenceError(f"{path}: more than {MAX_SIZE} bytes.")
        data = path.read_bytes()
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None
    return _parsed(str(path), data)


def _parsed(where: str, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
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
        if (value is None and name in REQUIRED) or (value is not None and not isinstance(value, kinds)):
            raise EvidenceError(f"{name} is missing or of the wrong type.")
    if not document["host"] or document["status"] not in STATUSES:
        raise EvidenceError("host or status has no known value.")
    for name, record in document["collectors"].items():
        if not isinstance(record, dict) or record.get("status") not in COLLECTOR_STATUSES:
            raise EvidenceError(f"collector {one_line(name, 40)} has no known status.")
    return {"node": None, "cluster_key": None, "groups": [], "duration_ms": 0, **document, "reason": document.get("reason") or ""}


def stream(paths: Iterable[str | os.PathLike[str]]) -> Iterator[dict[str, Any]]:
    """The documents of these folders (or of a run's folder with `evidence` in it) and bundles, one in memory at a time.

    For the same host of several folders a real answer beats an unreachable one, which beats one that was not asked;
    among equals the later counts.
    """
    several: dict[str, list[Source]] = {}
    for source in _sources(paths):
        several.setdefault(source[0], []).append(source)
    chosen = [candidates[0] if len(candidates) == 1 else max(candidates, key=_worth) for candidates in several.values()]
    for _name, load in chosen:
        yield load()


def find(paths: Iterable[str | os.PathLike[str]], host: str) -> dict[str, Any]:
    """The document of one host, the one that stream() would give; an empty one where there is none."""
    candidates = [source for source in _sources(paths) if source[0] == file_name(host)]
    return max(candidates, key=_worth)[1]() if candidates else {}


def one_line(value: object, limit: int = 300) -> str:
    """Printable, on one line, bounded."""
    text = " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())
    return text if len(text) <= limit else text[:limit - 1] + "…"


def shell_name(name: str | None, instead: str) -> str:
    """A unit's or node's name as an operator may copy it into a shell; instead, where it has other characters."""
    return name if name and all(char.isascii() and char.isalnum() or char in "@_.:-" for char in name) else instead


def now() -> str:
    """The time of the controller, as documents write it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def cluster_key(pem: str | None) -> str | None:
    """sha256 over the sorted digests of the CA certificates; None without any. The same as module_utils/cluster.py's."""
    digests = set()
    for block in CERTIFICATE.findall(pem or ""):
        try:
            der = base64.b64decode("".join(block.split("-----")[2].split()), validate=True)
        except ValueError:
            continue
        digests.add(hashlib.sha256(der).hexdigest())
    return hashlib.sha256("".join(sorted(digests)).encode("ascii")).hexdigest() if digests else None


def _sources(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Source]:
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir() and (path / "evidence").is_dir():
            path = path / "evidence"
        if path.is_file():
            yield from _packed(path) if _is_archive(path) else [(path.name, partial(read, path))]
        elif path.is_dir():
            found = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
            if not found:
                raise EvidenceError(f"{path}: no evidence (*.json) in it.")
            yield from ((file.name, partial(read, file)) for file in found)
        else:
            raise EvidenceError(f"{path}: no such folder or bundle.")


def _is_archive(path: Path) -> bool:
    try:
        return archive.is_archive(path)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None


def _packed(path: Path) -> list[Source]:
    """What a bundle holds. It is opened once, however often a plan looks a host up in it."""
    try:
        state = path.stat()
        key = (str(path), state.st_mtime_ns, state.st_size, state.st_ino)
        if key not in _OPENED:
            _OPENED[key] = _of_bundle(path, archive.documents(path))
    except archive.ArchiveError as error:
        raise EvidenceError(f"{path}: {error}") from None
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None
    return _OPENED[key]


_OPENED: dict[tuple[str, int, int, int], list[Source]] = {}


def _of_bundle(path: Path, members: dict[str, bytes]) -> list[Source]:
    found: dict[str, Source] = {}
    for member, data in members.items():
        where = f"{path}: evidence/{member}"
        document = _parsed(where, zlib.decompress(data))
        name = file_name(document["host"], ".cluster.json" if document.get("kind") == "cluster" else ".json")
        if archive.member_name(name) != archive.FOLDER + member:
            raise EvidenceError(f"{where}: it is of another host, {one_line(document['host'], 80)!r}.")
        found[name] = (name, partial(_unpacked, where, data))
    return list(found.values())


def _unpacked(where: str, data: bytes) -> dict[str, Any]:
    return _parsed(where, zlib.decompress(data))


def _worth(source: Source) -> tuple[int, str]:
    document = source[1]()
    order = {"ok": 3, "error": 2, "unreachable": 1}
    return order.get(document["status"], 0), document["collected_at"]


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > MAX_DEPTH:
            return depth
        if isinstance(item, (dict, list)):
            children = item.values() if isinstance(item, dict) else item
            waiting.extend((child, depth + 1) for child in children if isinstance(child, (dict, list)))
    return deepest


def _record(document: dict[str, Any], name: str) -> dict[str, Any]:
    record = document["collectors"].get(name) if isinstance(document.get("collectors"), dict) else None
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
    embedded = None
    try:
        config = yaml.load(_text(kubelet.get("kubeconfig"), "text") or "", Loader=Loader)
        embedded = config["clusters"][0]["cluster"].get("certificate-authority-data")
    except (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        pass
    if not embedded:
        return _text(kubelet.get("ca"), "pem")
    try:
        return base64.b64decode(embedded).decode("utf-8", "replace")
    except (ValueError, TypeError):
        return None


def _node_name(pem: str | None) -> str | None:
    block = CERTIFICATE.search(pem or "")
    if not block:
        return None
    try:
        subject = x509.load_pem_x509_certificate(block.group().encode("ascii")).subject
        names = [str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    except ValueError:
        return None
    return names[0][len(NODE_PREFIX):] if names and names[0].startswith(NODE_PREFIX) else None
