# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a start that failed, against what the collection knows of it."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import systemd_results
from tests.messages import tables

TABLE = tables.HERE / "systemd.tsv"


def main() -> None:
    """Print what is missing, or differs."""
    for line in differences():
        print(line)


def differences() -> Iterator[str]:
    """Yield one sentence per difference between systemd and the collection."""
    yield from _statuses()
    yield from _results()


def _statuses() -> Iterator[str]:
    rows = {int(row["number"]): row for row in _rows("status")}
    for number, row in rows.items():
        known = systemd_results.STEPS.get(number)
        if known is None:
            yield f"status {number}/{row['name']} is not known ({row['setting'] or 'no setting'})"
        elif known[0] != row["name"]:
            yield f"status {number} is {row['name']}, not {known[0]}"
    for number in sorted(set(systemd_results.STEPS) - set(rows)):
        yield f"status {number}/{systemd_results.STEPS[number][0]} is not in use"


def _results() -> Iterator[str]:
    names = {row["name"] for row in _rows("result")}
    for name in sorted(names - set(systemd_results.RESULTS)):
        yield f"result {name} is not known"
    for name in sorted(set(systemd_results.RESULTS) - names):
        yield f"result {name} is not one of systemd's"


def _rows(kind: str) -> list[dict[str, str]]:
    return [row for row in tables.lines(TABLE) if row["kind"] == kind]
