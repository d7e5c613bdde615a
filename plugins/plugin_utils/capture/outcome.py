# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a capture in its report folder, and what became of it by them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..evidence import document as evidence
from ..safe_io import atomic_file as private_files
from . import plan as capture
from .plan import Plan, Target

FOLDER = "capture"
PLAN = "plan.json"
PROBED, RAISED, RESTORED = ".probed.json", ".raised.json", ".restored.json"


@dataclass(frozen=True)
class Answer:
    """What a host said of its targets. targets: real -> (state, reason); problem.

    Why it said nothing, or not all; times: of restarts.
    """

    host: str
    targets: Mapping[str, tuple[str, str]]
    problem: str = ""
    times: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Became:
    """What became of one target. raised: whether it surely was; restored.

    None where it was not raised; reason: of whichever failed.

    trying: whether its host goes on trying to put it back; restarted: when it had started with the
    level, and without it again.
    """

    target: Target
    raised: bool
    restored: bool | None
    reason: str = ""
    trying: bool = False
    restarted: tuple[str, ...] = ()


def write(folder: str, name: str, document: Mapping[str, Any]) -> None:
    """One file of the capture, for its owner's eyes."""
    private_files.replace(place(folder) / name, [json.dumps(document)])


def place(folder: str) -> Path:
    """The capture's folder, made if it is missing."""
    where = Path(folder) / FOLDER
    where.mkdir(mode=0o700, exist_ok=True)
    return where


def read_plan(folder: str) -> Plan:
    """The plan. Raises OSError, ValueError, KeyError or TypeError where there is none that can
    be read.
    """
    return capture.loaded(json.loads((Path(folder) / FOLDER / PLAN).read_text(encoding="utf-8")))


def note(
    folder: str, host: str, suffix: str, status: str, reason: str, answer: Mapping[str, Any]
) -> Answer:
    """Keep what a host said, and what it comes to."""
    write(
        folder,
        evidence.file_name(host, suffix),
        {"status": status, "reason": reason, "answer": answer},
    )
    return said(host, status, reason, answer)


def noted(folder: str, host: str, suffix: str) -> Answer | None:
    """What a host said before; None when it was not asked."""
    try:
        found = json.loads(
            (Path(folder) / FOLDER / evidence.file_name(host, suffix)).read_text(encoding="utf-8")
        )
        return said(host, str(found["status"]), str(found["reason"]), found["answer"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Answer(host, {}, f"its answer cannot be read ({evidence.one_line(error)})")


def said(host: str, status: str, reason: str, answer: Any) -> Answer:
    """A host's answer, whatever its shape."""
    answer = answer if isinstance(answer, Mapping) else {}
    targets, times = {}, {}
    for one in answer.get("targets") if isinstance(answer.get("targets"), list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("real"), str):
            targets[one["real"]] = (
                str(one.get("state")),
                evidence.one_line(one.get("reason") or "", 400),
            )
            times.update({one["real"]: evidence.one_line(one["at"], 20)} if one.get("at") else {})
    problem = (
        evidence.one_line(answer.get("error") or "", 400)
        if status == "ok"
        else evidence.one_line(reason or status, evidence.MAX_REASON)
    )
    return Answer(host, targets, problem, times)


def offered(
    folder: str, plan: Plan
) -> tuple[tuple[Target, ...], tuple[tuple[Target, str], ...], tuple[str, ...]]:
    """The targets whose level can be set while they run, those that offer no such way (with
    why), and a sentence for each other.
    """
    found, without, notes = [], [], []
    for target in plan.targets:
        answer = noted(folder, target.host, PROBED)
        state, reason = answer.targets.get(target.real, ("", "")) if answer else ("", "")
        if state == "offered":
            found.append(target)
        elif state == "absent":
            without.append((target, reason))
        else:
            why = reason or (answer.problem if answer else "") or "nobody asked it"
            notes.append(f"{target.component} of {target.on} stays at level {target.former}: {why}")
    return tuple(found), tuple(without), tuple(notes)


def became(folder: str, targets: Iterable[Target]) -> tuple[Became, ...]:
    """What became of each target, by what its host said when it was raised and when it was put
    back.
    """
    found = []
    for target in targets:
        raised, restored = noted(folder, target.host, RAISED), noted(folder, target.host, RESTORED)
        state, reason = (
            raised.targets.get(target.real, ("", raised.problem))
            if raised
            else ("", "it was not begun")
        )
        back = restored.targets.get(target.real) if restored else None
        # A host that puts back what it raised may find it put back already by its own service: it
        # names nothing then.
        quiet = restored is not None and not restored.problem and back is None
        # its file is somebody else's now: nobody but he can take it back
        if back is not None and back[0] == "by_hand":
            found.append(Became(target, state == "raised", False, back[1]))
            continue
        # its restart was not proven, and what is down now is nothing that was put back
        if target.step and state == "unsure":
            found.append(
                Became(
                    target,
                    False,
                    False,
                    reason or "what became of its restart is not known",
                    not quiet,
                )
            )
            continue
        well = quiet or (back is not None and back[0] == "restored")
        # One that was refused because its answer was lost may be raised all the same: then its host
        # says whether it could put it back.
        if (
            (state == "refused" and (back is None or well))
            or (raised is None and back is None)
            or (state not in ("raised", "unsure") and quiet)
        ):
            found.append(
                Became(target, False, None, reason or "its host does not say what became of it")
            )
            continue
        why = (
            ""
            if quiet
            else back[1]
            if back
            else restored.problem
            if restored
            else "nobody put it back"
        )
        found.append(Became(target, state == "raised", well, why, not well))
    return tuple(
        replace(one, restarted=_restarted(folder, one)) if one.target.step else one for one in found
    )


def _restarted(folder: str, one: Became) -> tuple[str, ...]:
    """When its host had started it again, as far as it says."""
    raised, restored = (
        noted(folder, one.target.host, RAISED),
        noted(folder, one.target.host, RESTORED),
    )
    told = [
        raised.times.get(one.target.real, "") if raised and one.raised else "",
        (
            restored.times.get(one.target.real, "")
            if restored and one.restored and not one.reason
            else ""
        ),
    ]
    return tuple(moment for moment in told if moment)
