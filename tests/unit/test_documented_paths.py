# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages for contributors name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A page names a file from one of these directories on.
BASES = ("", "plugins", "plugins/module_utils", "plugins/plugin_utils")
PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
# What a contributor replaces by the name of the new file.
PLACEHOLDER = "NAME"
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|md|yml|toml|json|ini|txt|j2|js))`")


def paths_of(page: str) -> list[str]:
    return FILE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_named_file_exists(page: str) -> None:
    paths = [path for path in paths_of(page) if PLACEHOLDER not in path]
    missing = [path for path in paths if not any((ROOT / base / path).exists() for base in BASES)]
    assert paths
    assert missing == []
