# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd refuses of a unit, by the evidence of its node. Pure.

The judgement is that of module_utils/shared/start_refusal.py, which the node asks once more before
a start.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...module_utils.shared import start_refusal, systemd_output
from ...module_utils.shared.start_refusal import Refusal
from ..evidence import contract, decode
from ..evidence.answers.node.unit_start import UnitStart
from ..evidence.answers.systemd_unit import Unit
from ..evidence.document import one_line
from .result import EvidenceRef

WOULD_NOT = "a start now would not succeed: "


def find_refusals(
    document: Mapping[str, Any],
    record: Unit,
    lines: Iterable[str] = (),
    without: Container[str] = (),
) -> list[Refusal]:
    """Return what systemd refuses of a unit that its record describes.

    lines: its journal, where the collector has none
    without: units that it needs and that the same plan starts before it
    """
    facts = _facts(document, record.name, without)
    if not facts.get("said"):
        own_lines = [line for line in lines if systemd_output.of_systemd(line)]
        facts["said"] = own_lines[-systemd_output.KEPT :]
    refusals: list[Refusal] = start_refusal.refusals(decode.encode(record), facts)
    return refusals


def now(
    document: Mapping[str, Any],
    record: Unit,
    lines: Iterable[str] = (),
    without: Container[str] = (),
) -> str | None:
    """Return why a start is not planned: systemd would refuse it. None means that it would not."""
    refusal = next(
        (
            candidate
            for candidate in find_refusals(document, record, lines, without)
            if candidate.now
        ),
        None,
    )
    if refusal:
        return f"{refusal.what}; {refusal.cure}, then run again"
    return None


def past(refusals: Iterable[Refusal]) -> Refusal | None:
    """Return what refused the last start."""
    return next((refusal for refusal in refusals if refusal.past), None)


def future(refusals: Iterable[Refusal]) -> Refusal | None:
    """Return what would refuse a start now, and did not refuse the last one."""
    return next((refusal for refusal in refusals if refusal.now and not refusal.past), None)


def proofs(host: str, unit: str, refusals: Iterable[Refusal]) -> list[EvidenceRef]:
    """Return the lines of its files and of its journal that show it."""
    references = []
    for refusal in refusals:
        if refusal.place is not None:
            path, line, text = refusal.place
            references.append(EvidenceRef("file", host, path=path, line=line, text=text))
        if refusal.line:
            references.append(
                EvidenceRef("log", host, object=one_line(unit, 80), text=refusal.line)
            )
    return list(dict.fromkeys(references))[:4]


def _facts(document: Mapping[str, Any], name: str, without: Container[str]) -> dict[str, Any]:
    """Return what was collected of the unit's start, as its node judges it too.

    The result is empty where the unit runs, or where its node did not answer.
    """
    units = contract.answer(document, UnitStart).units
    unit = next((unit for unit in units if unit.name == name), None)
    if unit is None:
        return {}
    needs = tuple(need for need in unit.needs if need.name not in without)
    facts: dict[str, Any] = decode.encode(replace(unit, needs=needs))
    return facts
