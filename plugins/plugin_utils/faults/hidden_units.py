# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding about a unit that its file hides one of another installation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..evidence.document import one_line, shell_name
from ..models.hidden_units import HiddenUnit
from ..models.result import EvidenceRef
from .base import Detection

# Faults of a unit that does not run.
CODES = frozenset(("KM116", "KM502", "KM505", "KM506", "KM507", "KM508", "KM510"))
LONGEST, MOST = 200, 3


def with_file(hit: Detection, code: str, units: Mapping[str, HiddenUnit]) -> Detection:
    """Return a hit of this fault with the unit files of its component, where one hides another."""
    row = units.get(hit.component or "")
    if row is None or code not in CODES:
        return hit
    paths = " and ".join(one_line(path, LONGEST) for path in row.hidden[:MOST])
    file, name = one_line(row.path, LONGEST), shell_name(row.unit, "UNIT")
    return replace(
        hit,
        summary=f"{hit.summary}. The file of its unit, {file}, hides {paths}: two installations"
        f" may have brought {one_line(row.unit, 80)}",
        evidence=(
            *hit.evidence,
            EvidenceRef("file", hit.host, path=row.path, text=f"hides {paths}"),
        ),
        remedy=f"{hit.remedy}; compare both files (systemctl cat {name} shows the one that counts,"
        " with the drop-ins of both): where one is of a former installation, disable the unit, move"
        " that file and its drop-ins away, systemctl daemon-reload, and enable the other one",
    )
