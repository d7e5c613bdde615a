# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of faults as files: what report.html shows below a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

MAX_BYTES = 100_000
# A report has a finding of its own there.
_EXAMPLE = re.compile(r"^## Example\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def texts(folder: str, codes: Iterable[str]) -> dict[str, str]:
    """Return the page of each fault in Markdown, without those that cannot be read."""
    pages = {}
    for code in sorted(set(codes)):
        try:
            with (Path(folder) / f"{code}.md").open(encoding="utf-8") as file:
                pages[code] = _EXAMPLE.sub("", file.read(MAX_BYTES))
        except (OSError, ValueError):
            continue
    return pages
