# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of faults for programs: docs/catalogue.json and the lookup plugin faults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..faults import CATALOGUE, graph, symptoms
from ..faults.base import Fault
from ..models.result import DOCS
from ..planning.remedies import REMEDIES

SCHEMA = "kubemend.catalogue/1"


def document() -> dict[str, Any]:
    """Return the catalogue as docs/catalogue.json has it."""
    return {"schema": SCHEMA, "faults": rows()}


def rows(codes: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return plain data of these faults in their order, or of all."""
    if codes is None:
        codes = CATALOGUE
    return [_row(CATALOGUE[code]) for code in codes]


def _row(fault: Fault) -> dict[str, Any]:
    return {
        "code": fault.code,
        "title": fault.title,
        "severity": fault.severity,
        "scope": fault.scope,
        "applies": fault.applies,
        "tier": fault.tier,
        "component": fault.component,
        "symptoms": [
            symptom.name
            for symptom in symptoms.SYMPTOMS.values()
            if fault.code in symptom.causes + symptom.signs
        ],
        "needs": {"host": list(fault.needs), "api": list(fault.cluster_needs)},
        "max_risk": max_risk(fault),
        "causes": sorted({code for code, _component in fault.explained_by}),
        "consequences": list(graph.effects().get(fault.code, ())),
        "page": f"{DOCS}/{fault.code}.md",
    }


def max_risk(fault: Fault) -> int | None:
    """Return the highest risk of a plan's step for a fault; None where no plan has one.

    A step that changes anything has risk 1 or more, even if the fault itself has 0 (KM320).
    """
    if fault.code not in REMEDIES:
        return None
    return max(fault.risk, 1)
