# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM117: say why a control-plane component was restarted within the last hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import times
from ...evidence.answers.node.component_end import ComponentLog
from ...evidence.document import ends, one_line
from ...models import component_restart
from ...models.cluster import Host
from ...models.component_restart import WINDOW_SECONDS, End, Restarts
from ...models.control_plane import ControlPlane, FileUse, Process
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, message_class
from ..base import CheckResult, Detection, causes, node_check
from ..known_causes import explained
from . import restart_wording, static_pods

REPEATED = 2
# The clocks of a process and of its container differ a little.
MARGIN_SECONDS = 120
# Ends whose reason the component's own log tells, or may tell.
_BY_LOG = frozenset(
    (
        component_restart.EXIT,
        component_restart.LOCK,
        component_restart.PROBE,
        component_restart.REMOVED,
        component_restart.UNKNOWN,
    )
)


@node_check(
    "KM117",
    "Control-plane component was restarted",
    severity="info",
    applies="manifests of control-plane components in the folder of a kubelet",
    needs=("system", "kubelet", "manifests", "instances", "component_end", "component_restart"),
    explained_by=causes("KM115", "KM120", "KM124", "KM126")
    | causes("KM114", "KM117", component="etcd")
    | causes("KM114", "KM117", component="kube-apiserver"),
)
def restarted(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM117: report each component that ended within the last hour and runs again, with why."""
    plane = host.control_plane
    missing = host.missing("manifests") + host.missing("instances")
    if plane is None or missing:
        yield CheckResult((), missing, bool(missing), host=host.host)
        return
    unsteady = static_pods.unsteady(host, document)
    logs = static_pods.logs(document)
    restarts_by_name = component_restart.of_host(document, plane)
    hits, down = [], []
    for use in static_pods.one_each(plane):
        restarts = restarts_by_name.get(use.component, Restarts())
        if not restarts.unintended or use.component in unsteady:
            continue
        if use.component in _running(plane):
            hits.append(_hit(host, use, restarts, logs.get(use.component, ComponentLog())))
        else:
            down.append(f"{use.component} does not run at the moment")
    owed = [*_owed(host, plane), *_unseen(host, plane, restarts_by_name)]
    if down:
        owed.append(Missing(host.host, "instances", "starting"))
    notes = down
    if not hits:
        notes = [*_ends(plane, restarts_by_name), *down]
    yield CheckResult(
        tuple(hits),
        tuple(dict.fromkeys(owed)),
        bool(plane.files),
        host=host.host,
        note="; ".join(notes),
    )


def _running(plane: ControlPlane) -> set[str]:
    """Return the components of which a static pod runs."""
    return {process.component for process in plane.processes if process.static}


def _ends(plane: ControlPlane, restarts_by_name: Mapping[str, Restarts]) -> Iterator[str]:
    """Yield each end in a few words."""
    for use in static_pods.one_each(plane):
        for end in restarts_by_name.get(use.component, Restarts()).ends:
            yield f"{use.component}: {restart_wording.short(end)}"


def _owed(host: Host, plane: ControlPlane) -> Iterator[Missing]:
    """Yield what is missing to say that no component was restarted."""
    running = _running(plane)
    recent = any(
        _is_younger(plane, process, WINDOW_SECONDS) for process in plane.processes if process.static
    )
    if recent or any(use.component not in running for use in plane.files):
        yield from host.missing("component_restart")


def _is_younger(plane: ControlPlane, process: Process, seconds: float) -> bool:
    """Tell whether a process is younger, or has a start that is not known."""
    return not process.started_at or plane.clock - process.started_at < seconds


def _unseen(
    host: Host, plane: ControlPlane, restarts_by_name: Mapping[str, Restarts]
) -> Iterator[Missing]:
    """Yield that nothing shows why a component was started within the hour.

    The containers of a runtime that is asked always show it.
    """
    if host.statuses.get("component_restart") != "ok":
        return
    names = {use.component for use in plane.files}
    young = {
        process.component
        for process in plane.processes
        if process.static and _is_younger(plane, process, WINDOW_SECONDS - MARGIN_SECONDS)
    }
    if any(not restarts_by_name.get(name, Restarts()).ends for name in names & young):
        yield Missing(host.host, "component_restart", "error")


def _hit(host: Host, use: FileUse, restarts: Restarts, log: ComponentLog) -> Detection:
    ends = restarts.unintended
    end = ends[-1]
    last, message, cure = _told_by_log(use, end, log)
    proofs = list(restart_wording.proofs(host, end))
    if last:
        proofs.append(EvidenceRef("log", host.host, path=one_line(log.path or "", 300), text=last))
    severity = "info"
    if len(ends) >= REPEATED:
        severity = "warning"
    hit = Detection(
        f"it was restarted {times(len(ends))} within the last hour:"
        f" {restart_wording.clause(end, use)}{message}{_former(ends)}",
        tuple(proofs),
        restart_wording.advice(end, use, host.node) or cure,
        host.host,
        host.node,
        use.component,
        severity=severity,
    )
    return explained(hit, (use.component,), (last,), host.releases.version(use.component))


def _former(ends: tuple[End, ...]) -> str:
    """Return the reasons of the ends before the last one, for a summary."""
    if len(ends) == 1:
        return ""
    reasons = ", ".join(restart_wording.short(end) for end in ends[-4:-1])
    return f"; before that: {reasons}"


def _told_by_log(use: FileUse, end: End, log: ComponentLog) -> tuple[str, str, str]:
    """Return the line of its log that tells why it ended, its message, and what is done."""
    cure = f"see the end of its log: crictl ps -a --name {use.component}, then crictl logs"
    if end.kind not in _BY_LOG or log.restart != end.attempt:
        return "", "", cure
    lines = [ends(line, 600) for line in log.lines]
    telling = component_log.telling(lines, component_log.last_word(lines), use.component)
    text = restart_wording.beside(end, telling)
    if not text:
        return "", "", cure
    if telling.reading is not None:
        cure = message_class.CLASSES[telling.reading.meaning].advice
    return telling.line, text, cure
