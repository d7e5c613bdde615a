# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page of a fault as HTML: what the pages use of Markdown, and nothing else.

Every text is escaped before a tag is added, so that a page cannot bring markup of its own. A link
to another file of the collection is text: the report is sent without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"(?:-|[0-9]+\.) ")
_FENCE = "```"
# Applied to escaped text.
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_ADDRESS = re.compile(r"&lt;(https://[^\s&]+)&gt;")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_KEPT = re.compile("\0([0-9]+)\0")
_EMPHASIS = re.compile(r"\*([^*\s][^*]*)\*")


def render(text: str) -> Markup:
    """Return the HTML of a page, without its title."""
    lines = _COMMENT.sub("", text).splitlines()
    blocks = (_block(block) for block in _blocks(lines) if not block[0].startswith("# "))
    return Markup("\n").join(blocks)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each block, which an empty line ends; a fence holds its empty lines."""
    block: list[str] = []
    fenced = False
    for line in lines:
        if line.startswith(_FENCE):
            fenced = not fenced
        if not line.strip() and not fenced:
            if block:
                yield block
            block = []
            continue
        block.append(line)
    if block:
        yield block


def _block(block: Sequence[str]) -> Markup:
    first = block[0]
    if first.startswith(_FENCE):
        return Markup("<pre>{}</pre>").format("\n".join(block[1:-1]))
    if first.startswith("#"):
        return Markup("<h5>{}</h5>").format(_inline(first.lstrip("# ")))
    if first.startswith("|"):
        return _table(block)
    if _ITEM.match(first):
        return _list(block)
    return Markup("<p>{}</p>").format(_inline(" ".join(block)))


def _list(block: Sequence[str]) -> Markup:
    items: list[str] = []
    for line in block:
        match = _ITEM.match(line)
        if match:
            items.append(line[match.end() :])
        else:
            items[-1] += f" {line.strip()}"
    rows = Markup("").join(Markup("<li>{}</li>").format(_inline(item)) for item in items)
    tag = "ul" if block[0].startswith("-") else "ol"
    return Markup(f"<{tag}>{{}}</{tag}>").format(rows)


def _table(block: Sequence[str]) -> Markup:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block]
    head = _row(rows[0], "th")
    body = Markup("").join(_row(row, "td") for row in rows[2:])
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, body)


def _row(cells: Sequence[str], tag: str) -> Markup:
    row = Markup("").join(Markup(f"<{tag}>{{}}</{tag}>").format(_inline(cell)) for cell in cells)
    return Markup("<tr>{}</tr>").format(row)


def _inline(text: str) -> Markup:
    codes: list[str] = []

    def kept(match: re.Match[str]) -> str:
        codes.append(match[1])
        return f"\0{len(codes) - 1}\0"

    html = _CODE.sub(kept, str(escape(text.replace("\0", ""))))
    html = _ADDRESS.sub(r'<a rel="noreferrer" href="\1">\1</a>', html)
    html = _LINK.sub(_link, html)
    html = _STRONG.sub(r"<b>\1</b>", html)
    html = _EMPHASIS.sub(r"<em>\1</em>", html)
    # An asterisk in code is a character of it.
    return Markup(_KEPT.sub(lambda match: f"<code>{codes[int(match[1])]}</code>", html))


def _link(match: re.Match[str]) -> str:
    if match[2].startswith("https://"):
        return f'<a rel="noreferrer" href="{match[2]}">{match[1]}</a>'
    return match[1]
