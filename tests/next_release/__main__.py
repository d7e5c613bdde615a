# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python3 -m tests.next_release`: what each release of Kubernetes no longer takes.

mine reads the sources that sources.tsv names and writes the table of the collection; compare prints
the flags of a real program that the sources seem not to have, and what it does not list itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import release_table
from tests.next_release import compare, mine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tests.next_release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    mining = commands.add_parser("mine", help="read the sources and write the table")
    comparing = commands.add_parser("compare", help="ask programs for their flags")
    for command in (mining, comparing):
        command.add_argument("--sources", type=Path, required=True, help="folder of Go modules")
    comparing.add_argument("--release", required=True, help="such as 1.36")
    comparing.add_argument("--programs", type=Path, required=True, help="folder of its programs")
    chosen = parser.parse_args()
    if chosen.command == "mine":
        lines = ["\t".join(row) for row in (release_table.COLUMNS, *mine.rows(chosen.sources))]
        release_table.PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    found = compare.differences(chosen.sources, chosen.release, chosen.programs)
    for component, (missed, unlisted) in found.items():
        print(f"{component}: {', '.join(sorted(missed)) or 'none is missed'}")
        print(f"  not listed: {', '.join(sorted(unlisted)) or 'none'}")
    sys.exit(any(row.missed for row in found.values()))


if __name__ == "__main__":
    main()
