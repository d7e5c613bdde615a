# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one host's evidence says of the control plane, extracted to a small value."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.shared.kubelet_health import SWITCHED_OFF
from ..evidence import contract
from ..evidence.answers.file_record import CertificateFile, FileRecord
from ..evidence.answers.http_answer import HttpAnswer
from ..evidence.answers.node import instances
from ..evidence.answers.node.component_http import (
    ComponentAnswer,
    ComponentHttp,
    Configz,
    Metrics,
)
from ..evidence.answers.node.instances import ComponentProcess, Instances
from ..evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ..evidence.answers.node.manifests import Manifests
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import pflag, pod_manifest
from ..safe_io import yaml_nodes
from . import component_proxy, release_refusal
from .component_proxy import Proxy
from .release_refusal import Refusal

BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
ELECTED = ("kube-scheduler", "kube-controller-manager")

MAX_REFUSALS = 100  # of one container


@dataclass(frozen=True)
class ConfigFile:
    """A scheduler's --config file.

    elect: its leaderElect, None when it has none
    said: the same in its own words
    locks: the fields of leaderElection
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
    flag: pflag.BoolFlag | None
    line: int | None
    mtime: float
    version: tuple[int, int] | None
    usual: bool
    tag: str | None = None
    probes: tuple[tuple[str, str], ...] = ()
    memory_limit: str = ""
    # when the file was written, moved in or given other rights; 0 where that is not known
    ctime: float = 0.0
    mounts: tuple[pod_manifest.Mount, ...] = ()
    # what a later release refuses of its arguments
    refused: tuple[Refusal, ...] = ()
    proxy: Proxy | None = None  # that its environment names for https

    @property
    def changed(self) -> float:
        """Return when its folder got it as it is: a file that is moved in keeps its mtime."""
        return max(self.mtime, self.ctime)


@dataclass(frozen=True)
class BrokenFile:
    """A file in the static pod folder that the kubelet drops.

    component: the one it is named after, if any.
    """

    path: str
    component: str | None
    problem: str
    line: int | None
    text: str


@dataclass(frozen=True)
class Process:
    """A running instance.

    ours: whether it serves the cluster of its host's kubelet, None where that cannot be proven
    elect: whether it elects, by its effective configuration
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

    def processes_of(self, component: str) -> list[Process]:
        """Return this host's instances of a component that belong to the cluster."""
        return [
            process for process in self.processes if process.component == component and process.ours
        ]


def status(document: Mapping[str, Any], collector: str) -> str:
    """Return a collector's status; not_asked when the document does not contain it."""
    record = document.get("collectors", {}).get(collector, {})
    reported: str = record.get("status", "not_asked")
    return reported


def extract(document: Mapping[str, Any]) -> ControlPlane | None:
    """Return the host's part of the control plane; None for a worker."""
    manifests = contract.answer(document, Manifests).files
    running = contract.answer(document, Instances).processes
    if not manifests and not running:
        return None
    kubelet = contract.answer(document, Kubelet)
    read = _read_manifests(manifests)
    trusted = authority_digests(_text_of(kubelet.kubeconfig), _pem_of(kubelet.ca))
    answers = {answer.pid: answer for answer in contract.answer(document, ComponentHttp).components}
    processes = tuple(
        _process(process, answers.get(process.pid, ComponentAnswer()), trusted, read.files)
        for process in running
    )
    return ControlPlane(
        tuple(read.files),
        tuple(read.broken),
        tuple(read.unread),
        processes,
        _kubelet_problem(document),
        float(contract.answer(document, System).clock or 0),
        _kubelet_unproven(document),
        tuple(read.others),
    )


def _text_of(file: FileRecord | None) -> str | None:
    if file is None:
        return None
    return file.text


def _pem_of(file: CertificateFile | None) -> str | None:
    if file is None:
        return None
    return file.pem


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
    # Of the text, not of the decoded bytes: a block that does not decode still tells CAs apart.
    blocks = BLOCK.findall("\n".join(texts))
    return frozenset(
        hashlib.sha256("".join(block.split()).encode()).hexdigest() for block in blocks
    )


@dataclass
class _StaticPods:
    """What the files of the static pod directory contain."""

    files: list[FileUse] = field(default_factory=list)
    broken: list[BrokenFile] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)

    def add(self, file: FileRecord) -> None:
        """Sort one file in."""
        if file.binary:
            self.broken.append(BrokenFile(file.path, _named_after(file.path), "not text", None, ""))
        elif file.text is None or file.truncated:
            self.unread.append(file.path)
        else:
            self._parse(file, file.text)

    def _parse(self, file: FileRecord, text: str) -> None:
        try:
            parsed = pod_manifest.parse(pod_manifest.parseable(text, file.masked))
            uses = _uses(parsed, file)
        except pod_manifest.ManifestError as error:
            self.broken.append(
                BrokenFile(
                    file.path,
                    _named_after(file.path),
                    error.problem,
                    error.line,
                    _line_at(text, error.line),
                )
            )
            return
        self.files.extend(uses)
        if not uses:
            self.others.append((file.path, f"{parsed.namespace}/{parsed.name}"))


def _line_at(text: str, number: int | None) -> str:
    """Return a line of a text, empty where there is none of that number."""
    lines = text.splitlines()
    if not number or number > len(lines):
        return ""
    return lines[number - 1].strip()


def _read_manifests(files: Iterable[FileRecord]) -> _StaticPods:
    static_pods = _StaticPods()
    for file in files:
        if file.kind in ("file", "symlink"):
            static_pods.add(file)
    return static_pods


def _named_after(path: str) -> str | None:
    name = path.rsplit("/", 1)[-1]
    return next((component for component in pflag.COMPONENTS if name.startswith(component)), None)


def _uses(parsed: pod_manifest.Manifest, file: FileRecord) -> list[FileUse]:
    uses = []
    for container in parsed.containers:
        if container.component is not None:
            pod = f"{parsed.namespace}/{parsed.name}"
            uses.append(_use(container, container.component, pod, file))
    return uses


def _use(container: pod_manifest.Container, component: str, pod: str, file: FileRecord) -> FileUse:
    words, places = container.words
    flag = line = None
    if component in ELECTED:
        flag = pflag.bool_flag(words, "leader-elect")
    if flag:
        line = places[flag.index].line
    name = file.path.rsplit("/", 1)[-1]
    usual = re.fullmatch(re.escape(component) + r"\.(yaml|yml|manifest|json)", name) is not None
    return FileUse(
        file.path,
        pod,
        component,
        tuple(words),
        flag,
        line,
        float(file.mtime or 0),
        container.version,
        usual,
        container.tag,
        tuple(container.probes.items()),
        container.memory_limit,
        float(file.ctime or 0),
        container.mounts,
        tuple(release_refusal.of_words(component, words, _places(file, places)))[:MAX_REFUSALS],
        component_proxy.of_container(container),
    )


def _places(file: FileRecord, places: Iterable[pod_manifest.Argument]) -> list[tuple[str, int]]:
    return [(one_line(file.path, 300), place.line) for place in places]


def _config(file: instances.ConfigFile | None) -> ConfigFile | None:
    if file is None:
        return None
    path = file.host_path or file.path or "?"
    if file.text is None:
        return ConfigFile(path, None, None, {}, (), file.error or "not readable")
    election = _Election()
    try:
        for keys, value, number in pod_manifest.scalars(
            pod_manifest.parseable(file.text, file.masked)
        ):
            election.add(tuple(str(key).lower() for key in keys), value, number)
    except pod_manifest.ManifestError as error:
        return ConfigFile(path, None, error.line, {}, (), error.problem)
    return ConfigFile(
        path,
        election.elect,
        election.line,
        election.locks,
        tuple(election.names),
        election.problem,
        election.said,
    )


@dataclass
class _Election:
    """The leader election of a scheduler's configuration file."""

    elect: bool | None = None
    line: int | None = None
    said: str = ""
    problem: str = ""
    locks: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def add(self, keys: tuple[str, ...], value: str, line: int) -> None:
        """Take one scalar of the file."""
        if keys == ("leaderelection", "leaderelect"):
            self.elect, self.line, self.said = yaml_nodes.boolean(value), line, value[:40]
            self.problem = ""
            if self.elect is None and value not in yaml_nodes.NULL:
                self.problem = f"leaderElect is no boolean: {self.said!r}"
        elif len(keys) == 2 and keys[0] == "leaderelection":
            self.locks[keys[1]] = value
        elif keys[-1] == "schedulername" and (len(keys) == 1 or keys[0] == "profiles"):
            self.names.append(value)


def _process(
    process: ComponentProcess,
    answer: ComponentAnswer,
    trusted: frozenset[str],
    files: list[FileUse],
) -> Process:
    config = _config(process.config)
    version, release = _version(process, answer, files)
    leader_election = (answer.configz or Configz()).leader_election or {}
    configz = {key.lower(): value for key, value in leader_election.items()}
    elect, source, text = _elect(process.argv, config, version, configz, answer)
    locks = {key: str(value) for key, value in configz.items() if key.startswith("resource")}
    return Process(
        process.component,
        process.pid or 0,
        process.argv,
        float(process.started_at or 0),
        process.pod_uid,
        bool(process.static),
        process.unit,
        _ours(process, trusted),
        config,
        elect,
        source,
        text,
        version,
        locks,
        release,
    )


def _version(
    process: ComponentProcess, answer: ComponentAnswer, files: list[FileUse]
) -> tuple[tuple[int, int] | None, str | None]:
    """Return a component's version, short and as a whole: of the process, else of its image."""
    release = (answer.metrics or Metrics()).git_version
    version = pflag.parse_version(release)
    if version is not None:
        return version, release
    if process.static:
        for use in files:
            if use.component == process.component and use.usual:
                return use.version, _whole(use)
    return None, None


def _whole(use: FileUse) -> str | None:
    """Return the tag of an image that is a version."""
    if use.version is None:
        return None
    return use.tag


def _elect(
    argv: tuple[str, ...],
    config: ConfigFile | None,
    version: tuple[int, int] | None,
    configz: Mapping[str, Any],
    answer: ComponentAnswer,
) -> tuple[bool | None, str, str]:
    """Return the effective election, what shows it, and the text of that.

    The process's own answer beats every reading of its flags.
    """
    answered = _answered_election(configz, answer)
    if answered is not None:
        return answered
    flag = pflag.bool_flag(argv, "leader-elect")
    if pflag.string_flag(argv, "config") is None:
        if flag is None:
            return True, "argv", "no --leader-elect: on by default"
        return flag.value, "argv", flag.raw
    if config is None:
        return None, "config", "its --config file was not read"
    if config.problem:
        return None, "config", config.problem
    return _configured_election(config, flag, version)


def _answered_election(
    configz: Mapping[str, Any], answer: ComponentAnswer
) -> tuple[bool, str, str] | None:
    """Return the election that the process itself reports, or None."""
    url = f"127.0.0.1:{answer.port}"
    elect = configz.get("leaderelect")
    if elect is True or elect is False:
        return elect, "configz", f"{url}/configz: leaderElect={str(elect).lower()}"
    if answer.leader_election_check is None:
        return None
    state = "absent"
    if answer.leader_election_check:
        state = "listed"
    return answer.leader_election_check, "healthz", f"{url}/healthz: leaderElection check {state}"


def _configured_election(
    config: ConfigFile, flag: pflag.BoolFlag | None, version: tuple[int, int] | None
) -> tuple[bool | None, str, str]:
    """Return the election of a configuration file and a flag.

    Up to 1.22 --config takes election from the file alone; from 1.23 on an explicit flag
    overrides it.
    """
    filed = config.elect is not False
    if flag is None or flag.value == filed:
        return filed, "config", f"{config.path}: leaderElect {str(filed).lower()}"
    if version is None:
        return (
            None,
            "config",
            "flag and file differ, and which of them wins depends on a version that is not known",
        )
    if version < (1, 23):
        return filed, "config", f"{config.path}: leaderElect"
    return flag.value, "argv", flag.raw


def _ours(process: ComponentProcess, trusted: frozenset[str]) -> bool | None:
    """Tell whether an instance serves the cluster of this host's kubelet; None if it is unknown.

    The CA that the instance trusts decides, else what runs it. Nested clusters run
    kube-controller-manager as ordinary pods, often without leader election. Those are of another
    cluster.
    """
    in_ordinary_pod = bool(process.pod_uid) and not process.static
    if process.component in ("kube-apiserver", "etcd"):
        return not in_ordinary_pod
    digests = authority_digests(_text_of(process.kubeconfig), _pem_of(process.authority))
    if digests and trusted:
        return bool(digests & trusted)
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
    """Return why this host's kubelet would not act on a changed manifest.

    The result is empty when nothing is known to stop it.
    """
    if status(document, "kubelet") == "absent":
        return "no kubelet on this host"
    kubelet = contract.optional_answer(document, Kubelet)
    if kubelet is None:
        return ""
    if kubelet.process is None:
        state = (kubelet.unit or KubeletUnit()).active_state or "unknown"
        return f"the kubelet does not run (unit {state})"
    return _health_problem(kubelet.healthz or HttpAnswer())


def _health_problem(healthz: HttpAnswer) -> str:
    """Return why a running kubelet is not well."""
    if healthz.error == SWITCHED_OFF:
        return ""  # set on purpose, and no sign of illness
    if healthz.error or (healthz.status or 200) != 200:
        return f"the kubelet's healthz does not answer well ({healthz.error or healthz.status})"
    return ""
