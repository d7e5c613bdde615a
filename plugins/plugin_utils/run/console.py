# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of kubemend next to that of Ansible."""

from __future__ import annotations

import textwrap

from ansible import constants
from ansible.utils.display import Display

WIDEST = 160


def show(text: str) -> None:
    """Print on stdout, or on stderr where a callback writes JSON to stdout for a program."""
    callback = str(constants.config.get_config_value("DEFAULT_STDOUT_CALLBACK"))
    Display().display(text.rstrip("\n"), stderr="json" in callback.rsplit(".", 1)[-1])


def width() -> int:
    """Return the columns of a report: as Ansible has them, and no wider than can be read."""
    columns: int = Display().columns
    return min(columns, WIDEST)


def tell(sentence: str) -> None:
    """Print one sentence in the width that Ansible has.

    If Ansible does not write to a terminal, the width is 79 columns.
    """
    lines = textwrap.wrap(
        sentence,
        width(),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    show("\n".join(lines))
