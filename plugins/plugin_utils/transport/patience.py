# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step that takes long: its node is asked again until it has ended, and its answer is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ...module_utils.shared.step_kinds import FAILED, RUNNING, STATES
from ..evidence import document
from ..run import console

PATIENCE = 10  # seconds between two reports of progress
NODE_SECONDS = 30  # that the node may take in addition
BROKEN = 6  # connections in a row after which the node is given up
MAX_PROGRESS, MAX_REASON, MAX_JOURNAL = 200, 1000, 300  # characters
SEEN = ("pid", "started_at", "elect", "healthz", "configz", "proof_seconds")
NO_STATE = "the node's answer names no state; the next run finds out what became of the step"

Answer = tuple[str, str, dict[str, Any]]  # status, reason, the node's document


def patiently(
    ask: Callable[[dict[str, Any]], Answer],
    params: dict[str, Any],
    tell: Callable[[str], None] = console.tell,
) -> Answer:
    """Return the answer to a step; tell its progress every PATIENCE seconds where it takes long.

    A connection that breaks while the step runs costs nothing: the node goes on and is asked again,
    and the same step sent again waits for its end.
    """
    if not params["patience"]:
        return ask(params)
    end = time.monotonic() + params["timeout"] + NODE_SECONDS
    reported, started, broken = "", False, 0
    while True:
        status, reason, answer = ask({**params, "timeout": PATIENCE + NODE_SECONDS})
        is_over = time.monotonic() >= end
        broken = broken + 1 if status == "unreachable" else 0
        if started and 0 < broken < BROKEN and not is_over:
            time.sleep(PATIENCE)
            continue
        started = True
        if is_over or status != "ok" or answer.get("state") != RUNNING:
            return status, reason, answer
        reported = _report(answer, reported, tell)


def _report(answer: Mapping[str, Any], reported: str, tell: Callable[[str], None]) -> str:
    """Tell how far the step is, unless that was reported last; return what is reported now."""
    progress = document.one_line(answer.get("reason") or "", MAX_PROGRESS)
    if progress and progress != reported:
        tell(progress)
    return progress


def checked(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's answer with values of the expected types only."""
    state, seconds, journal = answer.get("state"), answer.get("seconds"), answer.get("journal")
    if state not in STATES:
        return {"state": FAILED, "reason": NO_STATE, "changed": True}
    return {
        "state": state,
        "reason": document.one_line(answer.get("reason") or "", MAX_REASON),
        "changed": bool(answer.get("changed")),
        "seconds": seconds if isinstance(seconds, (int, float)) else None,
        "seen": _seen(answer.get("seen")),
        "journal": _line(journal),
        "notes": [
            document.one_line(note) for note in answer.get("notes") or [] if isinstance(note, str)
        ],
    }


def _seen(record: object) -> dict[str, Any]:
    values = record if isinstance(record, dict) else {}
    return {
        name: values.get(name) for name in SEEN if isinstance(values.get(name), (int, float, bool))
    }


def _line(text: object) -> str | None:
    return document.one_line(text, MAX_JOURNAL) if isinstance(text, str) else None
