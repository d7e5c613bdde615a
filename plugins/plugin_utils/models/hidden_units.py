# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that do not run and whose file hides another one of the same name. Pure.

A package and an installer that brings programs by itself write a unit of one name in two folders,
and systemd reads that of /etc alone. Drop-ins of both count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..evidence import contract
from ..evidence.answers.node.unit_start import UnitStart


class HiddenUnit(NamedTuple):
    """The file of a unit, and those that it hides."""

    unit: str
    path: str
    hidden: tuple[str, ...]


def extract(document: Mapping[str, Any]) -> Mapping[str, HiddenUnit]:
    """Return the units of a host whose file hides another one, by their names without a suffix."""
    return {
        row.name.removesuffix(".service"): HiddenUnit(row.name, row.fragment_path, row.hidden)
        for row in contract.answer(document, UnitStart).units
        if row.hidden and row.fragment_path
    }
