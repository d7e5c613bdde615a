# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of faults and their list, for a terminal."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator

from . import collection
from .wrong_input import WrongInput, nearest, shown

WIDEST = 100
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_ITEM = re.compile(r"( *(?:[-*]|[0-9]+\.) )?")


def explain(code: str | None) -> str:
    """Return the page of a fault; without a code the list of all."""
    if code is None:
        return faults([])
    codes = collection.faults()
    if code.upper() not in codes:
        raise WrongInput(f"no fault has the code {shown(code)}; {_nearest(code, codes)}")
    page = collection.folder() / codes[code.upper()]["page"]
    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    return "\n".join([*_wrapped(text.splitlines()), "", f"the page: {page}"])


def _nearest(code: str, codes: Iterable[str]) -> str:
    """Return the end of a sentence that helps on: the codes that begin so, or the nearest one."""
    begins = code.upper()
    if len(begins) > len("KM") and any(other.startswith(begins) for other in codes):
        return f"kubemend faults '{begins}*' lists those that begin with it"
    near = nearest(code, codes)
    if not near.startswith("the nearest"):
        return "kubemend faults lists them"
    return near


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a page; prose is wrapped, code and tables are copied."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    is_code, before = False, ""
    for line in lines:
        if line.startswith(("```", "~~~")):
            is_code = not is_code
        if is_code or line.startswith(("|", "```", "~~~")):
            yield line
        elif line or before:
            match = _ITEM.match(line)
            indent = " " * (match.end() if match else 0)
            yield from textwrap.wrap(
                line,
                width,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            ) or [""]
        before = line


def faults(patterns: list[str], as_json: bool = False) -> str:
    """Return the faults that a code or a shell pattern of them names, or all."""
    rows = collection.faults()
    for pattern in patterns:
        if not fnmatch.filter(rows, pattern.upper()):
            raise WrongInput(f"no fault has the code {shown(pattern)}; {_nearest(pattern, rows)}")
    chosen = [
        row
        for code, row in rows.items()
        if not patterns or any(fnmatch.fnmatchcase(code, item.upper()) for item in patterns)
    ]
    if as_json:
        return json.dumps(chosen, indent=1)
    return "\n".join(f"{row['code']}  {row['severity']:<8}  {row['title']}" for row in chosen)


def symptoms() -> str:
    """Return the symptoms with their titles."""
    titles = collection.symptoms()
    width = max(map(len, titles), default=0)
    return "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
