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

from ..evidence import document as evidence_document
from ..safe_io import atomic_file
from . import plan as capture_plan
from .plan import Plan, Target

FOLDER = "capture"
PLAN = "plan.json"
PROBED, RAISED, RESTORED = ".probed.json", ".raised.json", ".restored.json"


@dataclass(frozen=True)
class Answer:
    """What a host reported of its targets.

    targets: real -> (state, reason); problem: why it reported nothing, or not all; times: of
    restarts.
    """

    host: str
    targets: Mapping[str, tuple[str, str]]
    problem: str = ""
    times: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Became:
    """What became of one target.

    raised: whether it surely was; restored: None where it was not raised; reason: of what failed;
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
    """Write one file of the capture that only its owner may read."""
    atomic_file.replace(place(folder) / name, [json.dumps(document)])


def place(folder: str) -> Path:
    """Return the capture's directory, made if it is missing."""
    directory = Path(folder) / FOLDER
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def read_plan(folder: str) -> Plan:
    """Return the plan.

    Raises OSError, ValueError, KeyError or TypeError where none can be read.
    """
    return capture_plan.loaded(
        json.loads((Path(folder) / FOLDER / PLAN).read_text(encoding="utf-8"))
    )


def note(
    folder: str, host: str, suffix: str, status: str, reason: str, answer: Mapping[str, Any]
) -> Answer:
    """Keep what a host answered, and return what that means."""
    write(
        folder,
        evidence_document.file_name(host, suffix),
        {"status": status, "reason": reason, "answer": answer},
    )
    return parse_answer(host, status, reason, answer)


def noted(folder: str, host: str, suffix: str) -> Answer | None:
    """Return what a host answered before; None when it was not asked."""
    try:
        record = json.loads(
            (Path(folder) / FOLDER / evidence_document.file_name(host, suffix)).read_text(
                encoding="utf-8"
            )
        )
        return parse_answer(host, str(record["status"]), str(record["reason"]), record["answer"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Answer(host, {}, f"its answer cannot be read ({evidence_document.one_line(error)})")


def parse_answer(host: str, status: str, reason: str, answer: Any) -> Answer:
    """Return a host's answer with values of the expected types only."""
    answer = answer if isinstance(answer, Mapping) else {}
    reported = _targets(answer)
    targets = {target["real"]: _state_and_reason(target) for target in reported}
    times = {
        target["real"]: evidence_document.one_line(target["at"], 20)
        for target in reported
        if target.get("at")
    }
    problem = evidence_document.one_line(answer.get("error") or "", 400)
    if status != "ok":
        problem = evidence_document.one_line(reason or status, evidence_document.MAX_REASON)
    return Answer(host, targets, problem, times)


def _targets(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what an answer says of each target that it names."""
    reported = answer.get("targets")
    if not isinstance(reported, list):
        return []
    targets = [target for target in reported if isinstance(target, Mapping)]
    return [target for target in targets if isinstance(target.get("real"), str)]


def _state_and_reason(target: Mapping[str, Any]) -> tuple[str, str]:
    reason = evidence_document.one_line(target.get("reason") or "", 400)
    return str(target.get("state")), reason


def offered(
    folder: str, plan: Plan
) -> tuple[tuple[Target, ...], tuple[tuple[Target, str], ...], tuple[str, ...]]:
    """Return targets whose level can be set while they run, those without, and sentences.

    A target that offers no such way comes with the reason. Every other target that cannot be set
    has a sentence.
    """
    targets, without, notes = [], [], []
    for target in plan.targets:
        answer = noted(folder, target.host, PROBED) or Answer(target.host, {})
        state, reason = answer.targets.get(target.real, ("", ""))
        if state == "offered":
            targets.append(target)
        elif state == "absent":
            without.append((target, reason))
        else:
            problem = reason or answer.problem or "it was not asked"
            notes.append(
                f"{target.component} of {target.on} stays at level {target.former}: {problem}"
            )
    return tuple(targets), tuple(without), tuple(notes)


def became(folder: str, targets: Iterable[Target]) -> tuple[Became, ...]:
    """Return what became of each target, by what its host answered when it raised and restored."""
    outcomes = []
    for target in targets:
        ends = _Ends(
            target, noted(folder, target.host, RAISED), noted(folder, target.host, RESTORED)
        )
        end = ends.became()
        if target.step:
            end = replace(end, restarted=ends.restarted(end))
        outcomes.append(end)
    return tuple(outcomes)


class _Ends:
    """The answers of a target's host: when it raised the level, and when it restored it."""

    def __init__(self, target: Target, raised: Answer | None, restored: Answer | None) -> None:
        self.target = target
        self.raised = raised
        self.restored = restored
        self.state, self.reason = "", "it was not begun"
        if raised:
            self.state, self.reason = raised.targets.get(target.real, ("", raised.problem))
        self.back = restored.targets.get(target.real) if restored else None

    @property
    def is_quiet(self) -> bool:
        """Return whether the host names nothing to restore.

        Its own service may have restored the level.
        """
        return self.restored is not None and not self.restored.problem and self.back is None

    @property
    def is_restored(self) -> bool:
        """Return whether the level is back."""
        return self.is_quiet or (self.back is not None and self.back[0] == "restored")

    def became(self) -> Became:
        """Return what became of the target."""
        was_raised = self.state == "raised"
        # its file has a foreign edit: only its editor can take the level back
        if self.back is not None and self.back[0] == "by_hand":
            return Became(self.target, was_raised, False, self.back[1])
        # its restart was not verified, and what is down now is nothing that was restored
        if self.target.step and self.state == "unsure":
            reason = self.reason or "what became of its restart is not known"
            return Became(self.target, False, False, reason, not self.is_quiet)
        if self._was_not_raised():
            reason = self.reason or "its host does not say what became of it"
            return Became(self.target, False, None, reason)
        is_restored = self.is_restored
        return Became(self.target, was_raised, is_restored, self._problem(), not is_restored)

    def _was_not_raised(self) -> bool:
        # One that was refused because its answer was lost may be raised all the same: then its host
        # says whether it could restore it.
        if self.state == "refused" and (self.back is None or self.is_restored):
            return True
        if self.raised is None and self.back is None:
            return True
        return self.state not in ("raised", "unsure") and self.is_quiet

    def _problem(self) -> str:
        """Return why it is not restored, as far as its host says."""
        if self.is_quiet:
            return ""
        if self.back:
            return self.back[1]
        return self.restored.problem if self.restored else "it was not put back"

    def restarted(self, end: Became) -> tuple[str, ...]:
        """Return when its host had started it again, as far as it says."""
        times = []
        if self.raised and end.raised:
            times.append(self.raised.times.get(self.target.real, ""))
        if self.restored and end.restored and not end.reason:
            times.append(self.restored.times.get(self.target.real, ""))
        return tuple(time for time in times if time)
