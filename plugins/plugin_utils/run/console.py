# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of kubemend next to that of Ansible."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from ansible import constants
from ansible.utils.display import Display

from ..safe_io import atomic_file

WIDEST = 160
HELD = "report.held"  # in the folder of the run


def show(text: str) -> None:
    """Print a result on stdout, or on stderr where a callback writes JSON to stdout."""
    callback = str(constants.config.get_config_value("DEFAULT_STDOUT_CALLBACK"))
    Display().display(text.rstrip("\n"), stderr="json" in callback.rsplit(".", 1)[-1])


def show_all(texts: Iterable[str]) -> None:
    """Print results in their order."""
    for text in texts:
        show(text)


def hold(folder: str, texts: Iterable[str]) -> None:
    """Keep results for the last task of the run, which prints them (show_held).

    Ansible prints each task and play behind a report, also those that it skips.
    """
    atomic_file.replace(Path(folder) / HELD, (f"{text.rstrip()}\n" for text in texts))


def show_held(folder: str) -> None:
    """Print the results that were kept, if any, once."""
    path = Path(folder) / HELD
    if path.exists():
        text = path.read_text(encoding="utf-8", errors="replace")
        path.unlink()
        show(text)


def width() -> int:
    """Return the columns of a report: as Ansible has them, and no wider than can be read."""
    columns: int = Display().columns
    return min(columns, WIDEST)


def tell(sentence: str) -> None:
    """Print one sentence about a run that goes on, at once: on stderr, as wide as Ansible prints.

    Python keeps back what a pipe or a file gets on stdout, for minutes where Ansible prints little.
    If Ansible does not write to a terminal, the width is 79 columns.
    """
    lines = textwrap.wrap(
        sentence,
        width(),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    Display().display("\n".join(lines), stderr=True)
