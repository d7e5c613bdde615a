# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How entries of lists and mappings are written, added and removed in a file's style."""

from __future__ import annotations

import re
from collections.abc import Sequence

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .draft import Draft

# Plain only where every YAML parser reads the same string; YAML 1.1 (the kubelet's) has more
# booleans than PyYAML.
_PLAIN = re.compile(
    r"--[A-Za-z][\w.-]*(?:=[\w./,:@%+=-]*[\w./@%+=-])?=?|/[\w./@%+=-]*|[A-Za-z][\w./,+-]*", re.ASCII
)
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
# The rest of a line behind a value, with the comment that belongs to it.
_TAIL = re.compile(r"[ \t]*(?:#[^\n]*?)?(\r?\n|\Z)")
_DASH = re.compile(r"([ \t]*)(-[ \t]+)")
_COLON = re.compile(r"[ \t]*:")


def plain(text: str, flow: bool) -> bool:
    return (
        _PLAIN.fullmatch(text) is not None
        and text.lower() not in _RESERVED
        and not (flow and (":" in text or "," in text))
    )


def render(text: str, quote: str | None, flow: bool) -> str:
    """A string as a scalar, quoted as asked where that is possible. quote.

    ' or " or None for none.
    """
    if quote == "'" or (quote != '"' and not plain(text, flow) and ('"' in text or "\\" in text)):
        return "'" + text.replace("'", "''") + "'"
    if quote == '"' or not plain(text, flow):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def quote_of(draft: Draft, node: Node) -> str | None:
    first = draft.body[node.start_mark.index : node.start_mark.index + 1]
    return first if first in ("'", '"') and first else None


def refuse_control(draft: Draft, *texts: str) -> None:
    if any(_CONTROL.search(text) for text in texts):
        draft.refuse(
            None, "the new value holds a control character", "give a value of one line of text"
        )


def string_node(text: str, like: Node | None = None) -> ScalarNode:
    """The node that must be read afterwards; like: the one whose place it takes."""
    return ScalarNode(
        "tag:yaml.org,2002:str", text, like and like.start_mark, like and like.end_mark
    )


def replace_item(draft: Draft, items: SequenceNode, index: int, text: str) -> None:
    node = items.value[index]
    written = render(text, quote_of(draft, node), bool(items.flow_style))
    draft.change(node.start_mark.index, node.end_mark.index, written)
    items.value[index] = string_node(text, node)


def append_item(draft: Draft, items: SequenceNode, text: str) -> None:
    """After the last item, written like it."""
    last = items.value[-1]
    written = render(text, quote_of(draft, last), bool(items.flow_style))
    if items.flow_style:
        append_flow(draft, items, [_span(item) for item in items.value], written)
    else:
        append_block(draft, last, last.end_mark.index, [written])
    items.value.append(string_node(text))


def append_block(draft: Draft, last: Node, end: int, lines: Sequence[str]) -> None:
    """A new item of a block list, of one or more lines, behind the last one, which ends at end."""
    head = dash_of(draft, last)
    indent = head.group(1) + " " * len(head.group(2))
    append_lines(
        draft, last, end, [head.group(0) + lines[0], *(indent + line for line in lines[1:])]
    )


def dash_of(draft: Draft, item: Node) -> re.Match[str]:
    start = item.start_mark.index
    found = _DASH.fullmatch(draft.body[draft.line_start(start) : start])
    if found is None:
        draft.refuse(
            item,
            "this item does not begin on a line of its own, behind its dash",
            "write it as `- item` and run again",
        )
    return found


def append_lines(draft: Draft, node: Node, end: int, lines: Sequence[str]) -> None:
    """Lines behind the one on which node ends."""
    tail = _TAIL.match(draft.body, end)
    if tail is None:
        draft.refuse(node, "more stands on the line of the last entry")
    eol = tail.group(1)
    if eol:
        draft.change(tail.end(), tail.end(), "".join(line + eol for line in lines))
    else:
        draft.change(tail.end(), tail.end(), "".join(draft.eol + line for line in lines))


def append_flow(draft: Draft, node: Node, spans: Sequence[tuple[int, int]], text: str) -> None:
    """A new entry of a flow list or mapping with entries at spans.

    On a line of its own where the last one is.
    """
    body, close = draft.body, node.end_mark.index - 1
    if not spans:
        draft.change(node.start_mark.index + 1, node.start_mark.index + 1, text)
        return
    start, end = spans[-1]
    comma = _comma(body, end, close)
    prefix = body[draft.line_start(start) : start]
    if not prefix.strip() and draft.line_start(start) > node.start_mark.index:
        tail = _TAIL.match(body, end if comma is None else comma + 1)
        if tail is not None and tail.group(1) and tail.end() <= close:
            if comma is None:
                draft.change(end, end, ",")
            draft.change(
                tail.end(),
                tail.end(),
                prefix + text + ("," if comma is not None else "") + tail.group(1),
            )
        else:
            draft.change(end, end, f",{draft.eol}{prefix}{text}")
        return
    gap = " "
    if len(spans) > 1:
        before = _comma(body, spans[-2][1], start)
        between = " " if before is None else body[before + 1 : start]
        gap = between if not between.strip(" \t") else " "
    draft.change(end, end, f",{gap}{text}")


def remove_items(draft: Draft, key: Node, items: SequenceNode, indexes: set[int]) -> None:
    if items.flow_style:
        _remove_flow(draft, items, indexes)
    else:
        _remove_block(draft, key, items, indexes)
    items.value[:] = [item for index, item in enumerate(items.value) if index not in indexes]


def _remove_block(draft: Draft, key: Node, items: SequenceNode, indexes: set[int]) -> None:
    for index in indexes:
        item = items.value[index]
        dash_of(draft, item)
        tail = _TAIL.match(draft.body, item.end_mark.index)
        if tail is None:
            draft.refuse(item, "more stands on the line of this item")
        draft.change(draft.line_start(item.start_mark.index), tail.end())
    if len(indexes) == len(items.value):
        # Without an item the key would hold null instead of a list.
        colon = _COLON.match(draft.body, key.end_mark.index)
        if colon is None:
            draft.refuse(key, "no colon stands behind this key")
        draft.change(colon.end(), colon.end(), " []")


def _remove_flow(draft: Draft, items: SequenceNode, indexes: set[int]) -> None:
    body, spans, close = draft.body, [_span(item) for item in items.value], items.end_mark.index - 1
    limits = [start for start, _end in spans[1:]] + [close]
    commas = [_comma(body, end, limit) for (_start, end), limit in zip(spans, limits)]
    kept = [index for index in range(len(spans)) if index not in indexes]
    for index in indexes:
        _cut(draft, items, spans[index], commas[index])
    if not kept or commas[-1] is not None or kept[-1] == len(spans) - 1:
        return
    # The last item goes and has no comma of its own: the comma before it goes with it, for JSON
    # allows none there.
    comma, following = commas[kept[-1]], spans[kept[-1] + 1][0]
    if comma is None:
        raise AssertionError("items of a flow list are parted by commas")
    blank = not body[comma + 1 : following].strip(" \t")
    draft.change(comma, following if blank else comma + 1)


def _cut(draft: Draft, items: SequenceNode, span: tuple[int, int], comma: int | None) -> None:
    """An item with its comma: the whole line where it has one of its own, with the comment on
    it.
    """
    body, (start, end) = draft.body, span
    close = items.end_mark.index - 1
    if comma is not None and body[end:comma].strip():
        # A comment stands between the item and its comma.
        draft.change(comma, comma + 1)
    elif comma is not None:
        end = comma + 1
    begin = draft.line_start(start)
    tail = _TAIL.match(body, end)
    ends_line = tail is not None and bool(tail.group(1)) and tail.end() <= close
    if (
        tail is not None
        and ends_line
        and begin > items.start_mark.index
        and not body[begin:start].strip()
    ):
        draft.change(begin, tail.end())
    elif ends_line:
        draft.change(len(body[:start].rstrip(" \t")), end)
    else:
        rest = body[end:close]
        draft.change(start, end + (len(rest) - len(rest.lstrip(" \t")) if comma is not None else 0))


def _comma(body: str, start: int, end: int) -> int | None:
    """The comma between two entries of a flow collection, where only blanks and comments stand
    beside it.
    """
    while start < end:
        if body[start] == ",":
            return start
        start = body.find("\n", start, end) if body[start] == "#" else start + 1
        if start < 0:
            return None
    return None


def _span(node: Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def entry_spans(mapping: MappingNode) -> list[tuple[int, int]]:
    return [(key.start_mark.index, value.end_mark.index) for key, value in mapping.value]
