# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of errors that a component which runs says again and again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    repeated_errors,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import repeated_lines

from . import clock, quiet
from .cluster import BuildError, Evidence

PROGRAM = re.compile(r"^[\w.-]+\[\d+\]: ")
UNITS = {component: unit for unit, component in repeated_errors.RUNTIMES.items()}
LOGS = "/var/log/pods/kube-system_{component}-{host}/{component}/0.log"


def repeats(
    evidence: Evidence, host: str, component: str, lines: Iterable[str], every: float = 5
) -> None:
    """Let a component have said these lines so often, in seconds, in the last ten minutes.

    lines: "program[pid]: text" of a unit's journal, or the text alone of a static pod's log. A line
    that the collector does not take for an error cannot be one of them.
    """
    counter, texts = repeated_lines.Counter(), [_text(host, line) for line in lines]
    for number in range(int(repeated_errors.WINDOW // every)):
        for text in texts:
            counter.add(evidence.now - 1 - every * number, text.encode())
    unit = "kubelet.service" if component == "kubelet" else UNITS.get(component)
    row = {
        "component": component,
        "source": unit or LOGS.format(component=component, host=host),
        "error": None,
        "started": _started(evidence, host, component),
        "since": evidence.now - repeated_errors.WINDOW,
        "lines": counter.lines,
        "errors": counter.lines,
        "cut": counter.cut,
        "entries": counter.most_frequent(),
    }
    answer = evidence.data(host, "repeated_errors")
    answer["read_at"] = evidence.now
    answer.setdefault("components", []).append(row)


def _started(evidence: Evidence, host: str, component: str) -> float:
    """Return when a component was started: the kubelet's own time, a day ago for others."""
    if component == "kubelet":
        started: float = evidence.data(host, "kubelet")["process"]["started_at"]
        return started
    return evidence.now - quiet.DAY


def _text(host: str, line: str) -> str:
    """Return the text of a line, of which the collector reads that it is an error."""
    program = PROGRAM.match(line)
    if program:
        whole = f"{clock.journal(0)} {host} {line}"
        found = repeated_lines.IN_JOURNAL.match(whole.encode())
    else:
        whole = f"{clock.iso(0)[:-1]}.000000000Z stderr F {line}"
        found = repeated_lines.IN_FILE.match(whole.encode())
    if not found:
        raise BuildError(f"the collector does not take this for an error: {line[:60]}")
    return line[program.end() :] if program else line
