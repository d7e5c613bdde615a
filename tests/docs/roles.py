# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The READMEs of roles: their tables of variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.docs import between, variables


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the README of each role with its table."""
    for path, text in variables.role_specs():
        readme = path.parents[1] / "README.md"
        yield readme, between(readme, "variables", _table(text))


def _table(specs: str) -> str:
    """Return the table of a role's variables, as its argument specs have them."""
    options = yaml.safe_load(specs)["argument_specs"]["main"]["options"]
    rows = [
        f"| `{name}` | {variables.default(option.get('default'))} |"
        f" {_meaning(option['description'])} |"
        for name, option in options.items()
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def _meaning(description: str) -> str:
    """Return a description with its markup as code."""
    return re.sub(r"[A-Z]+[(]([^)]*)[)]", r"`\1`", description)
