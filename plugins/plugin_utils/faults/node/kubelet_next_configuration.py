# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM707: check that the kubelet can read its configuration again, while it still runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.document import one_line
from ...models import installer
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.kubelet.config import KubeletConfig
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, node_check, not_applicable, unknown

KIND, GROUP = "KubeletConfiguration", "kubelet.config.k8s.io/"
# Keys whose value is a whole number in every release; the kubelet ends of a word there.
NUMBERS = (
    "containerLogMaxFiles",
    "eventBurst",
    "healthzPort",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "kubeAPIBurst",
    "maxOpenFiles",
    "maxPods",
    "oomScoreAdj",
    "podPidsLimit",
    "podsPerCore",
    "port",
    "readOnlyPort",
    "registryBurst",
)


@node_check(
    "KM707",
    "Running kubelet cannot read its configuration again",
    severity="critical",
    applies="nodes whose kubelet runs with a configuration file",
    needs=("kubelet",),
)
def unreadable(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM707: report files of a running kubelet that its next start cannot decode."""
    missing = host.missing("kubelet")
    kubelet = contract.answer(document, Kubelet)
    records = [record for record in (kubelet.config, *kubelet.config_dropins) if record]
    if missing:
        yield unknown(*missing, host=host.host)
    elif kubelet.process is None or not records:
        yield not_applicable("no kubelet that runs with a configuration file", host=host.host)
    else:
        yield _of_files(host, document, records)


def _of_files(host: Host, document: Mapping[str, Any], records: list[FileRecord]) -> CheckResult:
    """Return what the next start makes of these files, and which of them are not known."""
    main_file = contract.answer(document, Kubelet).config
    faults, of_kind = [], []
    for record in records:
        settings = kubelet_config.read(Kubelet(argv=("kubelet",), config=record))
        faults += [(record, *fault) for fault in _faults(record, settings)]
        if record is main_file:
            of_kind = [(record, *fault) for fault in _faults_of_kind(record, settings)]
    faults += of_kind
    hits = [_hit(host, _writer(document, fault[0]), *fault) for fault in faults]
    unread = [record for record in records if record.text is None and record.error != "missing"]
    reasons = tuple(Missing(host.host, "kubelet", _status(record)) for record in unread)
    return CheckResult(tuple(hits), reasons[:1], host=host.host)


def _status(record: FileRecord) -> str:
    if record.error == "denied":
        return "denied"
    return "error"


def _faults(record: FileRecord, settings: KubeletConfig) -> Iterator[tuple[int | None, str]]:
    """Yield (line, reason) of what the kubelet refuses of a file."""
    if record.error == "missing":
        yield None, "is not there any more"
    elif record.error is None and record.text is not None:
        yield from _faults_of_settings(settings)


def _faults_of_settings(settings: KubeletConfig) -> Iterator[tuple[int | None, str]]:
    if settings.problem:
        yield None, f"is no YAML: {one_line(settings.problem.partition(': ')[2], 200)}"
        return
    for name in NUMBERS:
        setting = settings.values.get((name,))
        if setting is not None and not _is_number(setting.value):
            yield setting.line, f"has {one_line(setting.text, 80)}, which is no number"


def _faults_of_kind(
    record: FileRecord, settings: KubeletConfig
) -> Iterator[tuple[int | None, str]]:
    """Yield (line, reason) where the main file is not of the kubelet's kind."""
    if settings.problem or record.text is None:
        return
    kind, version = settings.values.get(("kind",)), settings.values.get(("apiVersion",))
    if kind is None or version is None:
        yield None, "has no kind or no apiVersion"
    elif kind.value != KIND or not version.value.startswith(GROUP):
        text = one_line(f"{version.value} {kind.value}", 80)
        yield kind.line, f"is of {text}, and not a {KIND}"


def _is_number(text: str) -> bool:
    """Tell whether YAML reads a whole number."""
    digits = text.strip().lstrip("+-").replace("_", "")
    try:
        return digits.isdecimal() or int(digits, 0) >= 0
    except ValueError:
        return False


def _writer(document: Mapping[str, Any], record: FileRecord) -> str:
    """Return what writes the former file again."""
    if installer.is_config_of_kubeadm(document, record.path):
        return (
            "kubeadm upgrade node phase kubelet-config writes it from the ConfigMap kubelet-config"
        )
    return "with the installer that wrote it"


def _hit(host: Host, writer: str, record: FileRecord, line: int | None, reason: str) -> Detection:
    path = one_line(record.path, 200)
    return Detection(
        f"the kubelet runs, and will not start again: {path} {reason}",
        (EvidenceRef("file", host.host, path=path, line=line, text=reason),),
        f"correct {path}, or restore the former file ({writer}); the kubelet reads it at its"
        " next start",
        host=host.host,
        node=host.node,
        component="kubelet",
    )
