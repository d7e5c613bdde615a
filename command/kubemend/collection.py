# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection that the package carries: its folders, and its code without Ansible."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from .wrong_input import WrongInput

ROOT = Path(__file__).resolve().parent / "collections"
NAME = "ansible_collections.kubemend.remediation"


def folder() -> Path:
    """Return the folder of the collection; raise WrongInput where the package has none."""
    path = ROOT.joinpath(*NAME.split("."))
    if not (path / "plugins").is_dir():
        raise WrongInput(
            "this kubemend carries no collection: install it with pipx, or build its wheel"
        )
    return path


def module(name: str) -> ModuleType:
    """Import a module of the collection's plugins, such as plugin_utils.run.variables."""
    folder()
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"{NAME}.plugins.{name}")


def faults() -> dict[str, Mapping[str, Any]]:
    """Return the catalogue of faults by their codes, in its order."""
    text = (folder() / "docs" / "catalogue.json").read_text(encoding="utf-8")
    return {row["code"]: row for row in json.loads(text)["faults"]}


def symptoms() -> dict[str, str]:
    """Return the titles of the symptoms by the names of their playbooks."""
    home = folder()
    return {
        page.stem: page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for page in sorted((home / "docs" / "symptoms").glob("*.md"))
        if (home / "playbooks" / f"{page.stem}.yml").is_file()
    }


def formats() -> tuple[str, ...]:
    """Return the formats of reports."""
    names: tuple[str, ...] = module("plugin_utils.run.variables").FORMATS
    return names


def variables() -> tuple[str, ...]:
    """Return the names of the variables."""
    return tuple(module("plugin_utils.run.variables").VARIABLES)
