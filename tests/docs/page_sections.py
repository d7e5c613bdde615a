# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of a fault's page, and what of them is written by hand."""

from __future__ import annotations

import re

from tests.docs import ROOT

DIRECTORY = ROOT / "docs" / "faults"
BLOCK = re.compile(r"<!-- generated: begin (\w+) -->\n.*?\n<!-- generated: end -->", re.DOTALL)


def section(text: str, title: str) -> str:
    """Return what a page has below a heading."""
    _before, _heading, rest = f"\n{text}".partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0].strip()


def own(text: str, title: str) -> str:
    """Return the hand-written text below a heading of a page."""
    return BLOCK.sub("", section(text, title)).strip()
