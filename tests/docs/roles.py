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
    """The variables of a role, as its argument_specs have them."""
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]["main"]["options"]
    rows = []
    for name, option in sorted(options.items()):
        default, said = option.get("default"), option["description"]
        shown = (
            "—"
            if default is None
            else f"`{json.dumps(default)}`"
            if not isinstance(default, str)
            else f"`{default}`"
        )
        told = re.sub(
            r"[A-Z]+[(]([^)]*)[)]", r"`\1`", " ".join(said if isinstance(said, list) else [said])
        )
        rows.append(f"| `{name}` | {shown} | {told} |")
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])
