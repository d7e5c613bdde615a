# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which etcd of a host is told to begin a cluster: by its process, its unit, its manifest. Pure.

etcd reads --initial-cluster-state only where its data folder is empty, and its default is `new`.
Only the flag itself is judged: a first member is without it, and so is etcd with a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.component_units import ComponentUnit, ComponentUnits
from ..evidence.answers.node.instances import Instances
from ..evidence.document import one_line
from ..parsers import pflag
from .control_plane import ControlPlane

ETCD, FLAG, NEW = "etcd", "initial-cluster-state", "new"
ALIVE = frozenset(("active", "activating", "reloading"))


@dataclass(frozen=True)
class InitialState:
    """What starts an etcd with --initial-cluster-state=new.

    place: a unit, a manifest or a process, for a sentence. unit: its unit that runs, or "".
    """

    place: str = ""
    unit: str = ""

    @property
    def clause(self) -> str:
        """Return that this etcd begins a cluster of its own, as a clause, or ""."""
        if not self.place:
            return ""
        return (
            f"; {self.place} starts it with --{FLAG}={NEW}, with which an etcd that has no data"
            " begins a cluster of its own, and the other members ignore it (cluster ID mismatch)"
        )


def extract(document: Mapping[str, Any], plane: ControlPlane | None) -> InitialState:
    """Return what starts an etcd of a host as the first of a cluster, and its unit that runs."""
    units = [row for row in contract.answer(document, ComponentUnits).units if _is_alive(row)]
    place = next((place for place, argv in _commands(document, plane, units) if _is_new(argv)), "")
    return InitialState(place, next((one_line(row.name, 80) for row in units), ""))


def _is_alive(row: ComponentUnit) -> bool:
    return row.component == ETCD and row.active_state in ALIVE


def _commands(
    document: Mapping[str, Any], plane: ControlPlane | None, units: Sequence[ComponentUnit]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each command line of an etcd with its place."""
    for process in contract.answer(document, Instances).processes:
        if process.component == ETCD:
            yield f"its process {process.pid}", process.argv
    for row in units:
        yield one_line(row.name, 80), row.argv
    for use in plane.files if plane is not None else ():
        if use.component == ETCD:
            yield one_line(use.path, 200), use.words


def _is_new(argv: Sequence[str]) -> bool:
    return (pflag.string_flag(argv, FLAG) or "").strip("\"'") == NEW
