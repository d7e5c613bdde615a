# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An etcd that ends at its start because its data cannot be read, by its own last lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.component_end import ComponentEnd
from ..evidence.answers.node.component_units import ComponentUnits
from ..evidence.document import ends, one_line
from ..parsers import component_log, unit_journal

# Of etcd, its log (wal, walpb), its snapshots (snap) and its database (bbolt). A line about a key,
# a peer or a request is none of them.
_DAMAGED = re.compile(
    r"snapshot file doesn't exist|failed to recover v3 backend from snapshot"
    r"|recovering backend from snapshot error|failed to get all reachable pages"
    r"|page \d+ already freed|invalid freelist page|multiple references\)|unreachable unfreed"
    r"|\b(?:wal|walpb|snap): crc mismatch|wal: (?:file not found|snapshot (?:not found|mismatch)"
    r"|slice bounds out of range|conflicting metadata|max entry size limit exceeded)"
    r"|WAL error \(.{0,200}\) cannot be repaired|snap: (?:empty snapshot|no available snapshot)"
    r"|tocommit\(\d+\) is out of range|cannot open database at|failed to open database"
    r"|bolt\.DB\.meta\(\): invalid|\b(?:invalid database|checksum error|version mismatch)$"
    # SIGBUS is of a page that is not there; the stack of other faults names no function of bbolt
    r"|\[signal SIGBUS: bus error|\bbbolt\.\(\*(?:Bucket|Cursor|DB|Tx|freelist|node)\)\."
    r"|(?:structure needs cleaning|input/output error)",
    re.IGNORECASE,
)
# What is no damage, though it names a file of the data.
_OTHERS = re.compile(
    r"permission denied|no space left|read-only file system|file is locked|timeout"
)
_PROGRAMS = frozenset(("etcd", "k3s", "rke2"))
MAX_LINE, MAX_SOURCE = 400, 200


@dataclass(frozen=True)
class Damage:
    """The line by which etcd says that it cannot read its data. source: unit, or file of a log."""

    line: str
    source: str

    @property
    def message(self) -> str:
        """Return the text of the line, without what its logger adds."""
        return ends(component_log.text(self.line) or self.line, MAX_LINE)


def extract(document: Mapping[str, Any]) -> Damage | None:
    """Return the damage that the etcd of a host tells of, None where it tells of none."""
    for source, lines in _starts(document):
        line = damaged(lines)
        if line:
            return Damage(ends(line, MAX_LINE), one_line(source, MAX_SOURCE))
    return None


def damaged(lines: Iterable[str]) -> str:
    """Return the line that tells of damaged data, "" without one.

    The first one counts: what follows it, such as a panic, often has less.
    """
    for line in lines:
        if component_log.is_information(line):
            continue
        if _DAMAGED.search(line.rstrip()) and not _OTHERS.search(line):
            return line
    return ""


def _starts(document: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield (source, lines) of the last start of each etcd of a host that does not run."""
    for row in contract.answer(document, ComponentEnd).components:
        if row.component == "etcd" and not row.running:
            yield row.path or "etcd", list(row.lines)
    for unit in contract.answer(document, ComponentUnits).units:
        if unit.component in _PROGRAMS and unit.active_state != "active":
            yield unit.name, _last_lines(unit.lines)


def _last_lines(lines: Iterable[str]) -> list[str]:
    """Return what the program wrote in its last start that ended, else in its last one."""
    starts = [start for start in unit_journal.starts(list(lines)) if start.lines]
    ended = [start for start in starts if start.exit or start.result]
    return [line.text for start in (ended or starts)[-1:] for line in start.lines]
