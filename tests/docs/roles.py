# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The READMEs of roles: their tables of variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.docs import ROOT, between


def pages() -> Iterator[tuple[Path, str]]:
    for role in sorted((ROOT / "roles").iterdir()):
        yield role / "README.md", between(role / "README.md", "variables", _variables(role))


def _variables(role: Path) -> str:
    """Return the table of a role's variables, as its argument_specs have them."""
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]["main"]["options"]
    rows = []
    for name, option in sorted(options.items()):
        meaning = _meaning(option["description"])
        rows.append(f"| `{name}` | {_default(option.get('default'))} | {meaning} |")
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])


def _default(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, str):
        return f"`{value}`"
    return f"`{json.dumps(value)}`"


def _meaning(description: str | list[str]) -> str:
    """Return a description with its markup as code."""
    if isinstance(description, list):
        description = " ".join(description)
    return re.sub(r"[A-Z]+[(]([^)]*)[)]", r"`\1`", description)
