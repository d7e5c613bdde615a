# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How generated pages say a text: English, as the catalogue has it."""

from __future__ import annotations

from tests.docs import faults


class Language:
    """English; a subclass translates."""

    comma = ", "
    semicolon = "; "

    def say(self, text: str) -> str:
        """Return a text of the catalogue or of a page in this language."""
        return text

    def within(self, title: str) -> str:
        """Return a title as it is written within a sentence."""
        return faults.lowered(title)


ENGLISH = Language()
