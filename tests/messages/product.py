# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the collection, which have of each form only what reading a text needs."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import message_table
from tests.messages import tables

# runc's errors stand within those of others, and no unit's log ends with them.
COMPONENTS = tuple(name for name in tables.COMPONENTS if name in message_table.COMPONENTS)
FOLDER = tables.HERE.parents[1] / "plugins" / "plugin_utils" / "parsers" / "messages"


def text(component: str) -> str:
    """Return the table of a component as the collection has it."""
    rows = ["\t".join(message_table.COLUMNS)]
    for row in tables.forms(component):
        nested = "yes" if row.nested else "no"
        rows.append("\t".join((row.form, nested, row.key, row.meaning)))
    return "\n".join(rows) + "\n"


def write() -> None:
    """Write the tables of the collection."""
    FOLDER.mkdir(exist_ok=True)
    for component in COMPONENTS:
        (FOLDER / f"{component}.tsv").write_text(text(component), encoding="utf-8")
