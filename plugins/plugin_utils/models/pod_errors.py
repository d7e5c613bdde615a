# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that the cluster's own pods repeat while they run, and what device plugins miss. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.shared import own_pods
from ..evidence import contract
from ..evidence.answers.node.repeated_errors import ComponentErrors
from ..evidence.answers.node.system import System
from ..evidence.answers.node.system_pods import RunningPod, SystemPods
from ..evidence.document import ends, one_line
from ..parsers import message_table
from ..parsers.known_message import Known
from . import pod_roles, releases, repeated_errors, system_pods
from .releases import Releases
from .repeated_errors import Repeated
from .system_pods import UnreadPods

SHOWN, TOLD = 300, 3  # characters of a line, lines
# A part of the cluster that says the same all the time does not do its work, whatever it says.
MINUTES, COUNT = 8, 10


@dataclass(frozen=True)
class PodError:
    """What one container of the cluster's own pods repeats, or what a device plugin told last.

    message: without what its logger adds
    count, minutes: how often, within how many minutes
    kind, clause, advice: of the answer that it got; empty where its meaning is not known
    is_constant: whether it is said all the time
    told: the last lines in which a device plugin says what it misses
    known: the cause of the message, where it is known
    """

    namespace: str
    pod: str
    container: str
    path: str
    message: str = ""
    count: int = 0
    minutes: int = 0
    last: float | None = None
    kind: str = ""
    clause: str = ""
    advice: str = ""
    is_constant: bool = False
    told: tuple[str, ...] = ()
    known: Known | None = None


@dataclass(frozen=True)
class PodErrors:
    """What the cluster's own pods of one host say.

    is_known: whether their logs were read; an older release did not
    gaps: containers whose log could not be read
    unread: the logs that were left out
    """

    is_known: bool = False
    rows: tuple[PodError, ...] = ()
    gaps: tuple[str, ...] = ()
    unread: UnreadPods = field(default_factory=UnreadPods)


def extract(document: Mapping[str, Any]) -> PodErrors:
    """Return what the cluster's own pods of one host repeat, and add-ons of a known cause."""
    answer = contract.answer(document, SystemPods)
    running = answer.running
    if running is None:
        return PodErrors()
    clock = contract.answer(document, System).clock or 0.0
    of_node = Releases(of_node=releases.of_node(document))
    gaps = tuple(
        one_line(f"{row.namespace}/{row.pod}", 320)
        for row in running
        if row.error and not own_pods.is_add_on(row.namespace, row.pod, row.container)
    )
    unread = UnreadPods(answer.unread, answer.read, system_pods.named(answer.unread_pods))
    pods = (_read(row, clock, of_node) for row in running)
    counted = (
        pod
        for pod in pods
        if pod.known is not None
        or pod.told
        or not own_pods.is_add_on(pod.namespace, pod.pod, pod.container)
    )
    return PodErrors(True, tuple(counted), gaps, unread)


def _read(row: RunningPod, clock: float, of_node: Releases) -> PodError:
    misses = tuple(ends(one_line(line, 2000), SHOWN) for line in row.told[-TOLD:])
    names = one_line(row.namespace, 63), one_line(row.pod, 253), one_line(row.container, 63)
    error = _worst(row, clock, of_node)
    path = one_line(row.path, 500)
    if error is None:
        return PodError(*names, path, told=misses)
    entry, answer = error.entry, error.answer
    is_constant = entry.minutes >= MINUTES and entry.count >= COUNT
    counts = entry.count, max(1, round((clock - (row.since or clock)) / 60)), entry.last
    message = ends(one_line(error.message, 2000), SHOWN)
    meaning = "", "", ""
    if answer is not None:
        meaning = answer.kind, one_line(answer.clause, 300), answer.advice
    return PodError(*names, path, message, *counts, *meaning, is_constant, misses, error.known)


def _worst(row: RunningPod, clock: float, of_node: Releases) -> Repeated | None:
    """Return the error that goes on and weighs most: of a known cause, else the frequent one."""
    component = message_table.LIBRARY
    if row.container in message_table.COMPONENTS:
        component = row.container
    errors = ComponentErrors(component, row.path, since=row.since, entries=row.entries)
    names = PodError(row.namespace, row.pod, row.container, row.path)
    going = repeated_errors.current(errors, clock, of_node, places=pod_roles.places(names))
    return max(going, key=repeated_errors.weight, default=None)
