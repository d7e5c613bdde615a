# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods whose containers end again and again, and the end of their logs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils.shared import own_pods
from ..evidence import contract, memoize
from ..evidence.answers.node.system import System
from ..evidence.answers.node.system_pods import OwnFile, SystemPod, SystemPods
from ..evidence.document import ends, one_line
from ..parsers import component_log, go_panic, known_message, message_table
from ..parsers.known_age import Versions
from ..parsers.known_message import Known
from ..parsers.message_form import Reading
from . import pod_roles, releases

# A kubelet waits five minutes at most before it starts a container again. Three ends within an hour
# are one each 20 minutes. After a boot, what waits for what is not up yet ends a few times.
CURRENT_SECONDS, PAUSE_SECONDS, BOOT_SECONDS = 700.0, 1200.0, 600.0
LIBRARY = message_table.LIBRARY
SHOWN = 400  # characters of a line
_MESSAGE = re.compile(r'"msg":"((?:[^"\\]|\\.)*)')  # of zap's JSON


@dataclass(frozen=True)
class EndedPod:
    """One container of the cluster's own pods, with the line that tells why it ended.

    current: whether by its logs alone it ends again and again at the time of the audit
    reading: what the line means, None where no table has it
    told, told_in: the last error of the program's own file on the node, and its path
    known: the known cause of that line, or of another one of its end
    panicked: in which functions a program of Go panicked, as a clause
    """

    namespace: str
    pod: str
    container: str
    restarts: int
    current: bool
    path: str
    line: str
    reading: Reading | None
    error: str = ""
    told: str = ""
    told_in: str = ""
    known: Known | None = None
    panicked: str = ""


@dataclass(frozen=True)
class UnreadPods:
    """Logs of the cluster's own pods that were not read, because there are many.

    count, read: how many were not, and were; pods: some of those that were not
    """

    count: int = 0
    read: int = 0
    pods: tuple[str, ...] = ()


def extract(document: Mapping[str, Any]) -> tuple[EndedPod, ...]:
    """Return the containers of one host that were started often, and of late.

    Those of add-ons are there only where the cause of their end is known.
    """
    return tuple(pod for pod in _all(document) if not _is_unclear(pod))


def unclear(document: Mapping[str, Any]) -> tuple[EndedPod, ...]:
    """Return the containers of add-ons of one host that end, whose cause is not known."""
    return tuple(pod for pod in _all(document) if _is_unclear(pod))


@memoize.last
def _all(document: Mapping[str, Any]) -> tuple[EndedPod, ...]:
    system, booted = contract.answer(document, System), _is_booted(document)
    versions = releases.of_node(document)
    rows = contract.answer(document, SystemPods).pods
    return tuple(_ended(row, system.clock, booted, versions) for row in rows)


def _is_unclear(pod: EndedPod) -> bool:
    """Tell whether a container of an add-on ends for a reason that may be an object of users."""
    return pod.known is None and own_pods.is_add_on(pod.namespace, pod.pod, pod.container)


def unread(document: Mapping[str, Any]) -> UnreadPods:
    """Return which containers that may end again and again were left out; none after a boot."""
    if _is_booted(document):
        return UnreadPods()
    answer = contract.answer(document, SystemPods)
    return UnreadPods(answer.more, len(answer.pods), named(answer.more_pods))


def named(pods: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of pods, as a report may have them."""
    return tuple(one_line(pod, 320) for pod in pods)


def _is_booted(document: Mapping[str, Any]) -> bool:
    uptime = contract.answer(document, System).uptime_s
    return uptime is not None and uptime < BOOT_SECONDS


def _ended(row: SystemPod, clock: float | None, booted: bool, versions: Versions) -> EndedPod:
    lines = [one_line(line, 2000) for line in component_log.entries(row.lines)]
    component = _table(row)
    telling = component_log.telling(lines, component_log.last_word(lines), component)
    telling = component_log.decisive(lines, telling, component)
    pod = EndedPod(
        one_line(row.namespace, 63),
        one_line(row.pod, 253),
        one_line(row.container, 63),
        row.restart,
        not booted and clock is not None and _is_current(row, clock),
        one_line(row.path or "", 500),
        ends(component_log.text(telling.line), SHOWN),
        telling.reading,
        one_line(row.error or "", 200),
        *_told(row.own),
        panicked=go_panic.clause(telling.line, lines),
    )
    texts = (telling.line, pod.told, *telling.before(lines))
    line, cause = _known(pod, texts, versions)
    pod = replace(pod, known=cause)
    if _is_unclear(pod):
        line = component_log.worded(lines, telling.line)
    elif cause is None or pod.told:
        return pod
    if line == telling.line:
        return pod
    meaning = component_log.reading(line, component)
    return replace(pod, line=ends(component_log.text(line), SHOWN), reading=meaning)


def _table(row: SystemPod) -> str:
    """Return the table of messages of a container.

    Programs of the cluster share libraries; what is their own is in no table.
    """
    return row.container if row.container in message_table.COMPONENTS else LIBRARY


def _known(pod: EndedPod, texts: Sequence[str], versions: Versions) -> tuple[str, Known | None]:
    """Return the line that has the known cause of an end, and that cause."""
    places = pod_roles.places(pod)
    causes = {text: known_message.find(places, text, None, versions) for text in texts if text}
    cause = next((cause for cause in causes.values() if cause is not None), None)
    if cause is None or causes.get(texts[0]) is not None:
        return texts[0], cause
    # What ended it stands first, and what came of it afterwards.
    return next(text for text in reversed(texts) if causes.get(text) == cause), cause


def _told(file: OwnFile | None) -> tuple[str, str]:
    """Return the message of the last error of a program's own file, and the file."""
    if file is None or not file.lines:
        return "", ""
    line = one_line(file.lines[-1], 2000)
    message = _MESSAGE.search(line)
    if message:
        line = message.group(1).replace('\\"', '"').replace("\\n", " ").replace("\\t", " ")
    return ends(" ".join(line.split()), SHOWN), one_line(file.path, 200)


def _is_current(row: SystemPod, clock: float) -> bool:
    """Tell whether the newest start is young, and followed the one before it closely.

    A container that stays up is older than that after a few minutes.
    """
    began = row.begun if row.begun is not None else row.written
    if began is None or row.written is None:
        return False
    if row.first is None or row.first == row.begun:  # only the newest log is left, or it is empty
        return clock - row.written <= CURRENT_SECONDS and row.written - began <= PAUSE_SECONDS
    return clock - began <= CURRENT_SECONDS and began - row.first <= PAUSE_SECONDS
