# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 -m tests.messages`: the texts with which components end, from their sources.

mine reads the sources and writes forms/; classify gives the forms their classes again, after a
change of rules.tsv, keys.tsv or by_hand.tsv; product writes the tables of the collection; counts,
judge and systemd print.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tests.messages import classify, judge, mine, product, systemd, tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tests.messages", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    mining = commands.add_parser("mine", help="read the sources and write the tables")
    mining.add_argument("--sources", type=Path, required=True, help="folder of Go modules")
    mining.add_argument("--component", choices=tables.COMPONENTS, help="one instead of all")
    for name in ("classify", "product", "counts", "judge", "systemd"):
        commands.add_parser(name)
    chosen = parser.parse_args()
    if chosen.command == "mine":
        mined = [name for name in tables.COMPONENTS if name not in tables.BY_HAND]
        for component in [chosen.component] if chosen.component else mined:
            _mine(component, chosen.sources)
    else:
        printed = {"counts": _counts, "judge": judge.main, "systemd": systemd.main}
        {"classify": _classify, "product": product.write, **printed}[chosen.command]()


def _mine(component: str, sources: Path) -> None:
    scanned = mine.scan(component, sources)
    tables.write(component, classify.classified(mine.rows(component, scanned)))


def _classify() -> None:
    for component in tables.COMPONENTS:
        tables.write(component, classify.classified(tables.forms(component)))


def _counts() -> None:
    for component in tables.COMPONENTS:
        rows = tables.forms(component)
        found = list(tables.releases(component))
        by_release = " ".join(
            f"{release}:{sum(_has(row, release, found) for row in rows)}" for release in found
        )
        classes = Counter(row.meaning for row in rows)
        by_class = " ".join(f"{name}:{number}" for name, number in sorted(classes.items()))
        print(f"{component}: {len(rows)} forms\n  by release: {by_release}\n  by class: {by_class}")


def _has(row: tables.Row, release: str, order: list[str]) -> bool:
    """Return whether a release lies between the first and the last that have a form."""
    return order.index(row.first) <= order.index(release) <= order.index(row.last)


if __name__ == "__main__":
    main()
