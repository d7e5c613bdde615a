# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one host's evidence says of the control plane, extracted to a small value."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.collectors.node.kubelet import SWITCHED_OFF
from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..parsers import pflag as flags
from ..parsers import pod_manifest as manifest
from ..safe_io import yaml_nodes

ELECTED = ("kube-scheduler", "kube-controller-manager")


@dataclass(frozen=True)
class ConfigFile:
    """A scheduler's --config file. elect: what it says, None when silent; said: in its words.

    Locks: the fields of leaderElection.
    """

    path: str
    elect: bool | None
    line: int | None
    locks: dict[str, str]
    scheduler_names: tuple[str, ...]
    problem: str = ""
    said: str = ""


@dataclass(frozen=True)
class FileUse:
    """One container of a component in a static pod manifest, with its arguments."""

    path: str
    pod: str
    component: str
    words: tuple[str, ...]
    flag: flags.BoolFlag | None
    line: int | None
    mtime: float
    version: tuple[int, int] | None
    usual: bool
    tag: str | None = None


@dataclass(frozen=True)
class BrokenFile:
    """A file in the static pod folder that the kubelet drops. component.

    The one it is named after, if any.
    """

    path: str
    component: str | None
    problem: str
    line: int | None
    text: str


@dataclass(frozen=True)
class Process:
    """A running instance. ours: True, False, or None where its cluster cannot be proven; elect.

    Effective election.
    """

    component: str
    pid: int
    argv: tuple[str, ...]
    started_at: float
    pod_uid: str | None
    static: bool
    unit: str | None
    ours: bool | None
    config: ConfigFile | None
    elect: bool | None
    source: str
    answer: str
    version: tuple[int, int] | None
    locks: dict[str, str]
    # the version as a whole, as the process or the tag of its image tells it
    release: str | None = None


@dataclass(frozen=True)
class ControlPlane:
    """One host's part of the control plane; statuses are those of the evidence's collectors."""

    files: tuple[FileUse, ...] = ()
    broken: tuple[BrokenFile, ...] = ()
    unread: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()
    kubelet_problem: str = ""
    clock: float = 0.0
    kubelet_unproven: str = ""
    # (path, namespace/name) of static pods that hold no component
    others: tuple[tuple[str, str], ...] = ()

    def of(self, component: str) -> list[Process]:
        """Return this host's instances of a component that belong to the cluster."""
        return [
            process for process in self.processes if process.component == component and process.ours
        ]


def data(document: Mapping[str, Any], collector: str) -> dict[str, Any]:
    """Return a collector's data when it answered, else an empty mapping."""
    record = document.get("collectors", {}).get(collector, {})
    if record.get("status") == "ok":
        found = record.get("data")
    else:
        found = None
    if isinstance(found, dict):
        return found
    return {}


def lines(value: Any) -> list[str]:
    """Return the texts in a list of log lines; [] where it is no list."""
    if isinstance(value, (list, tuple)):
        return [one for one in value if isinstance(one, str)]
    return []


def status(document: Mapping[str, Any], collector: str) -> str:
    """Return a collector's status; not_asked when the document does not contain it."""
    return document.get("collectors", {}).get(collector, {}).get("status", "not_asked")


def extract(document: Mapping[str, Any]) -> ControlPlane | None:
    """Return the host's part of the control plane; None for a worker."""
    records = data(document, "manifests").get("files") or []
    running = data(document, "instances").get("processes") or []
    if not records and not running:
        return None
    files, broken, unread, others = _read_manifests(records)
    trusted = authority_digests(
        (data(document, "kubelet").get("kubeconfig") or {}).get("text"),
        (data(document, "kubelet").get("ca") or {}).get("pem"),
    )
    answers = {
        item.get("pid"): item for item in data(document, "component_http").get("components") or []
    }
    processes = tuple(
        _process(raw, answers.get(raw.get("pid")) or {}, trusted, files) for raw in running
    )
    return ControlPlane(
        files,
        broken,
        unread,
        processes,
        _kubelet_problem(document),
        float(data(document, "system").get("clock") or 0.0),
        _kubelet_unproven(document),
        others,
    )


def authority_digests(kubeconfig: str | None, pem: str | None) -> frozenset[str]:
    """Return the SHA-256 digests of the CA certificates in a kubeconfig or a PEM text."""
    embedded = re.findall(
        r"certificate-authority-data[\"']?:\s*[\"']?([A-Za-z0-9+/=]+)", kubeconfig or ""
    )
    texts = [pem or ""]
    for item in embedded:
        try:
            texts.append(base64.b64decode(item, validate=True).decode("ascii", "replace"))
        except (binascii.Error, ValueError):
            continue
    blocks = re.findall(
        r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", "\n".join(texts), re.S
    )
    return frozenset(
        hashlib.sha256("".join(block.split()).encode()).hexdigest() for block in blocks
    )


def _read_manifests(
    records: list[dict[str, Any]],
) -> tuple[
    tuple[FileUse, ...], tuple[BrokenFile, ...], tuple[str, ...], tuple[tuple[str, str], ...]
]:
    files: list[FileUse] = []
    others: list[tuple[str, str]] = []
    broken: list[BrokenFile] = []
    unread: list[str] = []
    for record in records:
        path, text = record["path"], record.get("text")
        if record.get("kind") not in ("file", "symlink"):
            continue
        if record.get("binary"):
            broken.append(BrokenFile(path, _named_after(path), "not text", None, ""))
        elif text is None or record.get("truncated"):
            unread.append(path)
        else:
            try:
                parsed = manifest.parse(manifest.parseable(text, spans(record)))
                uses = _uses(parsed, path, float(record.get("mtime") or 0))
                files.extend(uses)
                others += [] if uses else [(path, f"{parsed.namespace}/{parsed.name}")]
            except manifest.ManifestError as exc:
                lines = text.splitlines()
                if exc.line and exc.line <= len(lines):
                    shown = lines[exc.line - 1].strip()
                else:
                    shown = ""
                broken.append(BrokenFile(path, _named_after(path), exc.problem, exc.line, shown))
    return tuple(files), tuple(broken), tuple(unread), tuple(others)


def spans(record: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the masked byte spans of a file record, as far as they are two numbers each."""
    found = record.get("masked")
    if isinstance(found, list):
        return [
            (one[0], one[1])
            for one in found
            if isinstance(one, (list, tuple))
            and len(one) == 2
            and all(isinstance(place, int) for place in one)
        ]
    return []


def _named_after(path: str) -> str | None:
    return next(
        (name for name in flags.COMPONENTS if path.rsplit("/", 1)[-1].startswith(name)), None
    )


def _uses(parsed: manifest.Manifest, path: str, mtime: float) -> list[FileUse]:
    uses = []
    for container in parsed.containers:
        component = container.component
        if component is None:
            continue
        words, places = container.words
        if component in ELECTED:
            flag = flags.bool_flag(words, "leader-elect")
        else:
            flag = None
        uses.append(
            FileUse(
                path,
                f"{parsed.namespace}/{parsed.name}",
                component,
                tuple(words),
                flag,
                places[flag.index].line if flag else None,
                mtime,
                container.version,
                re.fullmatch(
                    re.escape(component) + r"\.(yaml|yml|manifest|json)", path.rsplit("/", 1)[-1]
                )
                is not None,
                container.tag,
            )
        )
    return uses


def _config(record: Mapping[str, Any] | None) -> ConfigFile | None:
    if not record:
        return None
    path = record.get("host_path") or record.get("path") or "?"
    if record.get("text") is None:
        return ConfigFile(path, None, None, {}, (), record.get("error") or "not readable")
    elect, line, said, problem, locks, names = None, None, "", "", {}, []
    try:
        for where, value, number in manifest.scalars(
            manifest.parseable(record["text"], spans(record))
        ):
            keys = tuple(str(key).lower() for key in where)
            if keys == ("leaderelection", "leaderelect"):
                elect, line, said = yaml_nodes.boolean(value), number, value[:40]
                if elect is None and value not in yaml_nodes.NULL:
                    problem = f"leaderElect is no boolean: {said!r}"
                else:
                    problem = ""
            elif len(keys) == 2 and keys[0] == "leaderelection":
                locks[keys[1]] = value
            elif keys[-1] == "schedulername" and (len(keys) == 1 or keys[0] == "profiles"):
                names.append(value)
    except manifest.ManifestError as exc:
        return ConfigFile(path, None, exc.line, {}, (), exc.problem)
    return ConfigFile(path, elect, line, locks, tuple(names), problem, said)


def _process(
    raw: Mapping[str, Any],
    answer: Mapping[str, Any],
    trusted: frozenset[str],
    files: tuple[FileUse, ...],
) -> Process:
    argv = tuple(raw.get("argv") or ())
    config = _config(raw.get("config"))
    metrics, configz = answer.get("metrics") or {}, answer.get("configz") or {}
    release = metrics.get("git_version")
    version = flags.parse_version(release)
    if version is None and raw.get("static"):
        version, release = next(
            (
                (use.version, use.tag)
                for use in files
                if use.component == raw["component"] and use.usual
            ),
            (None, None),
        )
    spoken = configz.get("leader_election")
    if isinstance(spoken, Mapping):
        told = {key.lower(): value for key, value in spoken.items()}
    else:
        told = {}
    elect, source, text = _elect(argv, config, version, told, answer)
    locks = {key: str(value) for key, value in told.items() if key.startswith("resource")}
    return Process(
        raw["component"],
        int(raw["pid"]),
        argv,
        float(raw.get("started_at") or 0),
        raw.get("pod_uid"),
        bool(raw.get("static")),
        raw.get("unit"),
        _ours(raw, trusted),
        config,
        elect,
        source,
        text,
        version,
        locks,
        release if version else None,
    )


def _elect(
    argv: tuple[str, ...],
    config: ConfigFile | None,
    version: tuple[int, int] | None,
    told: Mapping[str, Any],
    answer: Mapping[str, Any],
) -> tuple[bool | None, str, str]:
    """(effective election, what says so, its words).

    The process's own answer beats every reading of its flags.
    """
    url = f"127.0.0.1:{answer.get('port')}"
    if isinstance(told.get("leaderelect"), bool):
        return (
            told["leaderelect"],
            "configz",
            f"{url}/configz: leaderElect={str(told['leaderelect']).lower()}",
        )
    if isinstance(answer.get("leader_election_check"), bool):
        seen = answer["leader_election_check"]
        return (
            seen,
            "healthz",
            f"{url}/healthz: leaderElection check {'listed' if seen else 'absent'}",
        )
    flag = flags.bool_flag(argv, "leader-elect")
    if flags.string_flag(argv, "config") is None:
        return (
            (flag.value if flag else True),
            "argv",
            flag.raw if flag else "no --leader-elect: on by default",
        )
    if config is None or config.problem:
        return None, "config", config.problem if config else "its --config file was not read"
    if config.elect is None:
        filed = True
    else:
        filed = config.elect
    if flag is None or flag.value == filed:
        return filed, "config", f"{config.path}: leaderElect {str(filed).lower()}"
    # With --config, <= 1.22 takes election from the file alone; from 1.23 on an explicit flag
    # overrides it.
    if version is None:
        return (
            None,
            "config",
            "flag and file differ, and which of them wins depends on a version that is not known",
        )
    if version < (1, 23):
        return (filed, "config", f"{config.path}: leaderElect")
    return (flag.value, "argv", flag.raw)


def _ours(raw: Mapping[str, Any], trusted: frozenset[str]) -> bool | None:
    """Whether an instance serves the cluster of this host's kubelet.

    By the CA that it trusts, else by what runs it.

    Nested clusters run kube-controller-manager as ordinary pods, often with election off: they are
    not ours.
    """
    in_ordinary_pod = bool(raw.get("pod_uid")) and not raw.get("static")
    if raw["component"] in ("kube-apiserver", "etcd"):
        return not in_ordinary_pod
    theirs = authority_digests(
        (raw.get("kubeconfig") or {}).get("text"), (raw.get("authority") or {}).get("pem")
    )
    if theirs and trusted:
        return bool(theirs & trusted)
    if in_ordinary_pod:
        return None
    return True


def _kubelet_unproven(document: Mapping[str, Any]) -> str:
    """Return why it is not known whether this host's running kubelet is well.

    No restart relies on it then.
    """
    healthz = contract.answer(document, Kubelet).healthz
    if healthz is None or healthz.error != SWITCHED_OFF:
        return ""
    return (
        "the kubelet's healthz is switched off (healthzPort: 0), so nothing shows that it is well"
    )


def _kubelet_problem(document: Mapping[str, Any]) -> str:
    """Why this host's kubelet would not act on a changed manifest.

    Empty when nothing is known to stop it.
    """
    if status(document, "kubelet") == "absent":
        return "no kubelet on this host"
    kubelet = data(document, "kubelet")
    if not kubelet:
        return ""
    unit = kubelet.get("unit") or {}
    if not kubelet.get("process"):
        return f"the kubelet does not run (unit {unit.get('active_state') or 'unknown'})"
    health = kubelet.get("healthz") or {}
    if health.get("error") == SWITCHED_OFF:
        return ""  # set on purpose, and no sign of illness
    if health.get("error") or (health.get("status") or 200) != 200:
        return (
            "the kubelet's healthz does not answer well"
            f" ({health.get('error') or health.get('status')})"
        )
    return ""
