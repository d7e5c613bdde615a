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


def _blocks(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of each block: a fence, a list with all that its items hold, or a text."""
    start = 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        end = _end(lines, start)
        yield lines[start:end]
        start = end


def _end(lines: Sequence[str], start: int) -> int:
    """Return the place after the last line of the block that begins there."""
    if _ITEM.match(lines[start]):
        return _end_of_list(lines, start)
    fenced = lines[start].startswith(_FENCE)
    for place in range(start + 1, len(lines)):
        begins_fence = lines[place].startswith(_FENCE)
        if fenced and begins_fence:
            return place + 1
        if not fenced and (begins_fence or not lines[place].strip() or _ITEM.match(lines[place])):
            return place
    return len(lines)


def _end_of_list(lines: Sequence[str], start: int) -> int:
    """Return the place after a list: items of one kind, and lines that belong to an item."""
    end = start + 1
    for place in range(start + 1, len(lines)):
        line = lines[place]
        if not line.strip():
            continue
        continues = end == place and not line.startswith(_FENCE)
        if _ITEM.match(line):
            continues = _is_numbered(line) == _is_numbered(lines[start])
        if not continues and not line.startswith(" "):
            break
        end = place + 1
    return end


def _is_numbered(line: str) -> bool:
    return line[0].isdigit()


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
    items: list[list[str]] = []
    width = 0
    for line in block:
        match = _ITEM.match(line)
        if match:
            width = match.end()
            items.append([line[width:]])
        else:
            items[-1].append(line[min(width, len(line) - len(line.lstrip(" "))) :])
    rows = Markup("").join(Markup("<li>{}</li>").format(_item(lines)) for lines in items)
    tag = "ol" if _is_numbered(block[0]) else "ul"
    return Markup(f"<{tag}>{{}}</{tag}>").format(rows)


def _item(lines: Sequence[str]) -> Markup:
    """Return an item: its text, and the commands, lists and texts that are indented below it."""
    text: list[str] = []
    blocks = list(_blocks(lines))
    if blocks and not blocks[0][0].startswith((_FENCE, "|")) and not _ITEM.match(blocks[0][0]):
        text = [line.strip() for line in blocks.pop(0)]
    return Markup("\n").join([_inline(" ".join(text)), *map(_block, blocks)])


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
