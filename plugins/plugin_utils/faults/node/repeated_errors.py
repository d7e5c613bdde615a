# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what components that run repeat: KM529 of the node, KM118 of the control plane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....module_utils.shared.text import times
from ...evidence import contract
from ...evidence.answers.node.boot import Boot
from ...evidence.answers.node.component_end import ComponentEnd
from ...evidence.answers.node.instances import Instances
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.kubelet_log import KubeletLog
from ...evidence.answers.node.repeated_errors import ComponentErrors
from ...evidence.answers.node.system import System
from ...evidence.document import ends, one_line, shell_name
from ...models import denied_file, file_policies, repeated_errors
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.kubelet import status as kubelet_status
from ...models.repeated_errors import RUNTIMES, SUPERVISORS, Repeated
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, error_answer, error_origin, known_message
from ...parsers.known_message import Known
from ..base import CheckResult, Detection, causes, node_check, not_applicable, unknown
from ..known_causes import with_cause, with_denial

OF_NODE = ("kubelet", *SUPERVISORS, *RUNTIMES)
# A leader that lost its lease so lately lost it to what the API server says now.
LOST_SECONDS = 900
CONFIGURATION = "configuration"  # of message_class
UNCLEAR = "look at what the line names; where the component works, nothing has to be done"
# Known causes that a kubelet, K3s or RKE2 tells so rarely that no error repeats, and how many
# seconds what it said counts. None: since its start, after which it runs on without what it lacks.
RARELY_SAID = {
    "device-registry-socket-not-made": None,
    "flexvolume-folder-not-made": None,
    "k3s-cpu-controller-missing": None,
    "k3s-cpu-limits-off": None,
    "k3s-images-not-imported": None,
    "k3s-network-policies-off": None,
    "k3s-process-limits-off": None,
    "kubelet-hugetlb-missing": None,
    "logind-not-answering": None,
    "shutdown-delay-not-granted": None,
    "shutdown-delay-not-written": None,
    "shutdown-inhibitor-refused": None,
    "k3s-compaction-too-slow": 900,  # K3s compacts each five minutes
    "k3s-mariadb-isolation": 900,
    "k3s-own-certificate-expired": 900,
}
# What keeps components of a machine from their work, on the machine itself.
_OF_MACHINE = causes(
    "KM401",
    "KM402",
    "KM403",
    "KM404",
    "KM405",
    "KM411",
    "KM518",
    "KM520",
    "KM521",
    "KM523",
    "KM526",
    "KM527",
    "KM528",
    "KM601",
)
# RKE2 says before the start of its kubelet what it gives it; a journal has whole seconds.
BEFORE_SECONDS = {"rke2": 180}
SECOND = 1
_OF_CONTROL_PLANE = causes("KM115") | causes("KM107", "KM114", component="kube-apiserver")


@node_check(
    "KM529",
    "Kubelet or runtime repeats an error",
    severity="warning",
    applies="nodes whose kubelet and runtime run and write to journald",
    needs=(
        "system",
        "kubelet",
        "kubelet_log",
        "runtime",
        "boot",
        "instances",
        "repeated_errors",
    ),
    # KM525 names itself what a kubelet repeats of its Node.
    explained_by=_OF_MACHINE
    | _OF_CONTROL_PLANE
    | causes("KM507", "KM508", "KM509", "KM519", "KM524", "KM525", "KM600", "KM605", "KM608"),
    same_node=True,
)
def of_node(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM529: report an error that keeps a kubelet or a runtime from its work and goes on."""
    nothing = "neither its kubelet nor its runtime runs as a unit of its own"
    rare = tuple(_rare_errors(host, document))
    for result in _results(host, document, OF_NODE, ("kubelet", "runtime"), nothing):
        # An error whose meaning is not known does not hide one whose cause is.
        if rare and all(hit.severity == "info" for hit in result.hits):
            yield result._replace(hits=(*rare, *result.hits), applies=True)
        else:
            yield result


def _rare_errors(host: Host, document: Mapping[str, Any]) -> Iterator[Detection]:
    """Yield what the kubelet or K3s that runs told rarely, where its cause is known, once each."""
    kubelet = contract.answer(document, Kubelet)
    if kubelet.process is None or kubelet.process.started_at is None:
        return
    unit = one_line(kubelet.unit.name or "", 300) if kubelet.unit is not None else ""
    component = next((word for word in SUPERVISORS if unit.startswith(word)), "kubelet")
    read_at = _read_at(document)
    detections: dict[str, Detection] = {}
    began_at = kubelet.process.started_at - BEFORE_SECONDS.get(component, SECOND)
    log = contract.answer(document, KubeletLog)
    for line in (*log.at_start, *log.lines):
        release = host.releases.version(component)
        row = known_message.find((component,), line, release, host.releases.of_node)
        if row and _is_of_now(row, line, began_at, read_at):
            detections[row.id] = _told(host, component, unit, line, row)
    yield from detections.values()


def _read_at(document: Mapping[str, Any]) -> float:
    """Return when the logs of a node were read; 0 where that is not known."""
    read_at, _rows = repeated_errors.rows(document)
    return read_at or contract.answer(document, System).clock or 0.0


def _is_of_now(row: Known, line: str, began_at: float, read_at: float) -> bool:
    """Tell whether a row is told rarely, and its line is of this process and not too old."""
    if row.id not in RARELY_SAID:
        return False
    age = RARELY_SAID[row.id]
    if age and not read_at:
        return False  # how old the line is, is not known
    begin = max(began_at, read_at - age if age else 0)
    return (kubelet_status.moment(line) or 0) >= begin


def _told(host: Host, component: str, unit: str, line: str, row: Known) -> Detection:
    hit = Detection(
        f"{component} logged: {ends(component_log.text(line), repeated_errors.QUOTED)}",
        (EvidenceRef("log", host.host, object=unit, text=ends(line, 600)),),
        f"the log: journalctl -u {shell_name(unit, 'UNIT')}",
        host=host.host,
        node=host.node,
        component=component,
    )
    return with_cause(hit, row)


@node_check(
    "KM118",
    "Control-plane component repeats an error",
    severity="warning",
    applies="components of the control plane that run as static pods or as units",
    needs=("kubelet", "instances", "boot", "repeated_errors", "component_end"),
    # Of these, those without a component are looked for on the same node.
    explained_by=_OF_CONTROL_PLANE
    | causes("KM107", "KM114", "KM145", "KM146", "KM147", component="etcd")
    | causes(
        "KM111", "KM120", "KM124", "KM125", "KM126", "KM127", "KM177", "KM512", "KM523", "KM526"
    ),
)
def of_control_plane(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM118: report an error that keeps a component from its work and goes on."""
    components = repeated_errors.CONTROL_PLANE
    nothing = "no component of the control plane runs here as a static pod or a unit of its own"
    yield from _results(host, document, components, ("kubelet", "instances"), nothing)


def _results(
    host: Host,
    document: Mapping[str, Any],
    components: tuple[str, ...],
    finders: tuple[str, ...],
    nothing: str,
) -> Iterator[CheckResult]:
    """Yield the result of some components.

    finders: the collectors that tell which of them run, without which the log of one is not known
    """
    missing = host.missing("repeated_errors")
    if missing:
        yield unknown(*missing)
        return
    missing = tuple(item for finder in finders for item in host.missing(finder))
    read_at, rows = repeated_errors.rows(document)
    own_rows = [row for row in rows if row.component in components]
    if not own_rows and not missing:
        yield not_applicable(nothing)
        return
    errors = [repeated_errors.worst(row, read_at, host.releases) for row in own_rows]
    hits = tuple(
        _with_denial(
            _with_elections(_hit(host, error, read_at), error, document, read_at), error, document
        )
        for error in errors
        if error is not None
    )
    yield CheckResult(
        hits, (*missing, *_missing(host, own_rows, read_at)), note=_note(own_rows, read_at)
    )


def _missing(host: Host, rows: list[ComponentErrors], read_at: float) -> tuple[Missing, ...]:
    """Return the evidence that logs lack: all of one, or a part."""
    statuses = [
        "error" if row.error else "timeout" for row in rows if repeated_errors.gap(row, read_at)
    ]
    return tuple(Missing(host.host, "repeated_errors", status) for status in sorted(set(statuses)))


def _note(rows: list[ComponentErrors], read_at: float) -> str:
    """Return what is missing of which logs, or ""."""
    gaps = ((row.component, repeated_errors.gap(row, read_at)) for row in rows)
    return "; ".join(f"log of {component}: {gap}" for component, gap in gaps if gap)


def _hit(host: Host, error: Repeated, read_at: float) -> Detection:
    row = error.row
    advice, severity, meaning = UNCLEAR, None, ""
    if not error.is_obstacle:
        severity = "info"
    if error.answer is not None:
        meaning, advice = _meaning(error), error.answer.advice
    remedy = f"{advice}. The log: {_command(row)}"
    if error.known is not None:
        # The advice of a cause is enough: what holds for any such answer only adds to it.
        remedy = f"the log: {_command(row)}"
    waiting = ""
    if error.waiting:
        waiting = f"; because of that {and_others(error.waiting)}"
    hit = Detection(
        f"{row.component} repeats an error: {_count(error, read_at)}: {meaning}{error.message}"
        f"{waiting}",
        (_proof(host, row, error.entry.line),),
        remedy,
        host=host.host,
        node=host.node,
        component=row.component,
        severity=severity,
    )
    trouble = host.runtime_proxy.trouble(component_log.text(error.entry.line))
    if trouble is None:
        return with_cause(hit, error.known)
    return replace(
        hit,
        summary=f"{hit.summary}: {trouble.what}",
        evidence=(*hit.evidence, *host.runtime_proxy.proof(host.host)),
        remedy=f"{trouble.cure}; the log: {_command(row)}",
    )


def _meaning(error: Repeated) -> str:
    """Return what an error means by its answer, as a prefix, or "".

    What runs has taken its configuration: where a cause is known, it is not the one.
    """
    if error.answer is None or (error.known is not None and error.answer.kind == CONFIGURATION):
        return ""
    return f"{one_line(error.answer.clause, 300)}: "


def _with_denial(hit: Detection, error: Repeated, document: Mapping[str, Any]) -> Detection:
    """Add who denies a file to a component that runs as root."""
    boot, instances = contract.answer(document, Boot), contract.answer(document, Instances)
    line, component = error.entry.line, error.row.component
    denial = denied_file.of_component(line, component, boot, instances)
    if not denial.sentence and error.known is None:
        origin = error_origin.read(component_log.text(line))
        denial = file_policies.read(origin, file_policies.extract(document))
    return with_denial(hit, denial)


def _with_elections(
    hit: Detection, error: Repeated, document: Mapping[str, Any], read_at: float
) -> Detection:
    """Add the leaders that lost their leases, where writes wait for a webhook."""
    if error.answer is None or error.answer.kind != error_answer.SLOW_WEBHOOK:
        return hit
    lost = [
        log
        for log in contract.answer(document, ComponentEnd).components
        if read_at - (log.last or 0) < LOST_SECONDS
        and any(map(component_log.says_lock_lost, log.lines))
    ]
    if not lost:
        return hit
    names = and_others([one_line(log.component, 80) for log in lost])
    proofs = [
        EvidenceRef(
            "log",
            hit.host,
            path=one_line(log.path or "", 300),
            text=ends(component_log.last_word(log.lines), 600),
        )
        for log in lost
    ]
    return replace(
        hit,
        summary=f"{hit.summary}. It costs leaders their leases: {names} ended without them",
        evidence=(*hit.evidence, *proofs),
        severity="critical",
    )


def _count(error: Repeated, read_at: float) -> str:
    """Return how often which log has an error, of how long it was read, and when it was last."""
    row = error.row
    minutes = max(1, round((read_at - (row.since or read_at)) / 60))
    text = f"{one_line(row.source, 300)} has it {times(error.entry.count)} in {minutes} minutes"
    if error.last is None:
        return text
    return f"{text}, last at {error.last:%Y-%m-%dT%H:%M:%SZ}"


def _proof(host: Host, row: ComponentErrors, line: str) -> EvidenceRef:
    source = one_line(row.source, 300)
    if source.startswith("/"):
        return EvidenceRef("log", host.host, path=source, text=ends(line, 600))
    return EvidenceRef("log", host.host, object=source, text=ends(line, 600))


def _command(row: ComponentErrors) -> str:
    if row.source.startswith("/"):
        return f"crictl logs --since 10m $(crictl ps -q --name {row.component})"
    return f"journalctl -u {one_line(row.source, 80)} --since -10min"
