# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what components that run repeat: KM529 of the node, KM118 of the control plane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence.answers.node.repeated_errors import ComponentErrors
from ...evidence.document import ends, one_line
from ...models import repeated_errors
from ...models.cluster import Host, moment
from ...models.repeated_errors import RUNTIMES, Repeated
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, causes, node_check, not_applicable, unknown

OF_NODE = ("kubelet", *RUNTIMES)
SHOWN = 3  # lines that are quoted
UNCLEAR = (
    "see what the line names; where the component works, it is for the operator to know, and"
    " nothing has to be done"
)
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
_OF_CONTROL_PLANE = causes("KM115") | causes("KM107", "KM114", component="kube-apiserver")


@node_check(
    "KM529",
    "Kubelet or runtime repeats an error",
    severity="warning",
    applies="nodes whose kubelet and runtime run and write to journald",
    needs=("kubelet", "runtime", "repeated_errors"),
    explained_by=_OF_MACHINE
    | _OF_CONTROL_PLANE
    | causes("KM507", "KM508", "KM509", "KM519", "KM524", "KM605", "KM608"),
    same_node=True,
)
def of_node(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM529: report an error that keeps a kubelet or a runtime from its work and goes on."""
    yield from _results(host, document, OF_NODE, "neither its kubelet nor its runtime has a log")


@node_check(
    "KM118",
    "Control-plane component repeats an error",
    severity="warning",
    applies="components of the control plane that run as static pods or as units",
    needs=("kubelet", "instances", "repeated_errors"),
    # Of these, those without a component are looked for on the same node.
    explained_by=_OF_CONTROL_PLANE
    | causes("KM107", "KM114", component="etcd")
    | causes("KM111", "KM512", "KM523", "KM526"),
)
def of_control_plane(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM118: report an error that keeps a component from its work and goes on."""
    components = repeated_errors.CONTROL_PLANE
    yield from _results(host, document, components, "no component of the control plane runs here")


def _results(
    host: Host, document: Mapping[str, Any], components: tuple[str, ...], nothing: str
) -> Iterator[CheckResult]:
    missing = host.missing("repeated_errors")
    if missing:
        yield unknown(*missing)
        return
    read_at, rows = repeated_errors.rows(document)
    own_rows = [row for row in rows if row.component in components]
    if not own_rows:
        yield not_applicable(nothing)
        return
    hits = []
    for row in own_rows:
        error = repeated_errors.worst(row, read_at)
        if error is not None:
            hits.append(_hit(host, error))
    unread = [row.component for row in own_rows if repeated_errors.is_unread(row, read_at)]
    if not unread:
        yield CheckResult(tuple(hits))
        return
    missing = (Missing(host.host, "repeated_errors", "timeout"),)
    note = f"too little of the log was read: {', '.join(unread)}"
    yield CheckResult(tuple(hits), missing, note=note)


def _hit(host: Host, error: Repeated) -> Detection:
    row, entry = error.row, error.entry
    count = f"{entry.count} times in {entry.minutes} minutes"
    last = moment(entry.last)
    if last is not None:
        count += f", last at {last:%Y-%m-%dT%H:%M:%SZ}"
    meaning, advice, severity = "an error", UNCLEAR, None
    if not error.is_obstacle:
        severity = "info"
    if error.answer is not None:
        meaning, advice = one_line(error.answer.clause, 300), error.answer.advice
    return Detection(
        f"{row.component} runs and repeats ({count}): {meaning}: {error.message}",
        tuple(_proof(host, row, line) for line in _lines(error)),
        f"{advice}. The log: {_command(row)}",
        host=host.host,
        node=host.node,
        component=row.component,
        severity=severity,
    )


def _lines(error: Repeated) -> list[str]:
    """Return the line itself, and others that the component says most often."""
    lines = [error.entry.line, *(entry.line for entry in error.row.entries)]
    if not error.is_obstacle:
        lines = lines[:1]
    return list(dict.fromkeys(lines))[:SHOWN]


def _proof(host: Host, row: ComponentErrors, line: str) -> EvidenceRef:
    source = one_line(row.source, 300)
    if source.startswith("/"):
        return EvidenceRef("log", host.host, path=source, text=ends(line, 600))
    return EvidenceRef("log", host.host, object=source, text=ends(line, 600))


def _command(row: ComponentErrors) -> str:
    if row.source.startswith("/"):
        return f"crictl logs --since 10m of the container {row.component}"
    return f"journalctl -u {one_line(row.source, 80)} --since -10min"
