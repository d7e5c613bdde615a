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
    """Return whether a string needs no quotes."""
    if _PLAIN.fullmatch(text) is None or text.lower() in _RESERVED:
        return False
    return not flow or (":" not in text and "," not in text)


def render(text: str, quote: str | None, flow: bool) -> str:
    """Return a string as a scalar, quoted as asked where that is possible.

    quote: ' or ", or None for none.
    """
    if quote is None and plain(text, flow):
        return text
    if quote == '"' or (quote is None and not ('"' in text or "\\" in text)):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "'" + text.replace("'", "''") + "'"


def quote_of(draft: Draft, node: Node) -> str | None:
    """Return the quote of a scalar, or None."""
    first = draft.body[node.start_mark.index : node.start_mark.index + 1]
    if first and first in "'\"":
        return first
    return None


def refuse_control(draft: Draft, *texts: str) -> None:
    """Refuse control characters in a new value."""
    if any(_CONTROL.search(text) for text in texts):
        draft.refuse(
            None, "the new value holds a control character", "give a value of one line of text"
        )


def string_node(text: str, like: Node | None = None) -> ScalarNode:
    """Return the node that must be read afterwards.

    like: the node whose place it takes
    """
    if like is None:
        return ScalarNode("tag:yaml.org,2002:str", text)
    return ScalarNode("tag:yaml.org,2002:str", text, like.start_mark, like.end_mark)


def replace_item(draft: Draft, items: SequenceNode, index: int, text: str) -> None:
    """Replace an item of a list."""
    node = items.value[index]
    written = render(text, quote_of(draft, node), bool(items.flow_style))
    draft.change(node.start_mark.index, node.end_mark.index, written)
    items.value[index] = string_node(text, node)


def append_item(draft: Draft, items: SequenceNode, text: str) -> None:
    """Append an item after the last one, written like it."""
    last = items.value[-1]
    written = render(text, quote_of(draft, last), bool(items.flow_style))
    if items.flow_style:
        append_flow(draft, items, [_span(item) for item in items.value], written)
    else:
        append_block(draft, last, last.end_mark.index, [written])
    items.value.append(string_node(text))


def append_block(draft: Draft, last: Node, end: int, lines: Sequence[str]) -> None:
    """Append an item of one or more lines to a block list.

    last: its last item, which ends at end.
    """
    head = dash_of(draft, last)
    indent = head.group(1) + " " * len(head.group(2))
    append_lines(
        draft, last, end, [head.group(0) + lines[0], *(indent + line for line in lines[1:])]
    )


def dash_of(draft: Draft, item: Node) -> re.Match[str]:
    """Return the blanks and the dash before an item."""
    start = item.start_mark.index
    match = _DASH.fullmatch(draft.body[draft.line_start(start) : start])
    if match is None:
        draft.refuse(
            item,
            "this item does not begin on a line of its own, behind its dash",
            "write it as `- item` and run again",
        )
    return match


def append_lines(draft: Draft, node: Node, end: int, lines: Sequence[str]) -> None:
    """Append lines behind the one on which node ends."""
    tail = _TAIL.match(draft.body, end)
    if tail is None:
        draft.refuse(node, "more stands on the line of the last entry")
    eol = tail.group(1)
    if eol:
        draft.change(tail.end(), tail.end(), "".join(line + eol for line in lines))
    else:
        draft.change(tail.end(), tail.end(), "".join(draft.eol + line for line in lines))


def append_flow(draft: Draft, node: Node, spans: Sequence[tuple[int, int]], text: str) -> None:
    """Append an entry to a flow list or mapping with entries at spans.

    It gets a line of its own where the last one has one.
    """
    if not spans:
        draft.change(node.start_mark.index + 1, node.start_mark.index + 1, text)
        return
    start, end = spans[-1]
    begin = draft.line_start(start)
    prefix = draft.body[begin:start]
    if not prefix.strip() and begin > node.start_mark.index:
        _append_flow_line(draft, node, end, prefix, text)
    else:
        draft.change(end, end, f",{_gap(draft, spans)}{text}")


def remove_items(draft: Draft, key: Node, items: SequenceNode, indexes: set[int]) -> None:
    """Remove the items with these indexes from a list."""
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


def _append_flow_line(draft: Draft, node: Node, end: int, prefix: str, text: str) -> None:
    """Append an entry on a line of its own behind the entry that ends at end."""
    body, close = draft.body, node.end_mark.index - 1
    comma = _comma(body, end, close)
    behind, trailing = end, ""
    if comma is not None:
        behind, trailing = comma + 1, ","
    tail = _TAIL.match(body, behind)
    if tail is None or not tail.group(1) or tail.end() > close:
        draft.change(end, end, f",{draft.eol}{prefix}{text}")
        return
    if comma is None:
        draft.change(end, end, ",")
    draft.change(tail.end(), tail.end(), prefix + text + trailing + tail.group(1))


def _gap(draft: Draft, spans: Sequence[tuple[int, int]]) -> str:
    """Return the blanks between the last two entries of a line; one by default."""
    if len(spans) < 2:
        return " "
    start = spans[-1][0]
    comma = _comma(draft.body, spans[-2][1], start)
    if comma is None:
        return " "
    between = draft.body[comma + 1 : start]
    if between.strip(" \t"):
        return " "
    return between


def _remove_flow(draft: Draft, items: SequenceNode, indexes: set[int]) -> None:
    body, spans, close = draft.body, [_span(item) for item in items.value], items.end_mark.index - 1
    limits = [start for start, _end in spans[1:]] + [close]
    commas = [_comma(body, end, limit) for (_start, end), limit in zip(spans, limits, strict=False)]
    for index in indexes:
        _cut(draft, items, spans[index], commas[index])
    kept = [index for index in range(len(spans)) if index not in indexes]
    is_last_cut = bool(kept) and kept[-1] != len(spans) - 1
    # The last item goes and has no comma of its own: the comma before it goes with it, for JSON
    # allows none there.
    if is_last_cut and commas[-1] is None:
        _cut_comma(draft, commas[kept[-1]], spans[kept[-1] + 1][0])


def _cut_comma(draft: Draft, comma: int | None, following: int) -> None:
    """Cut the comma behind the last item that is kept, up to the item that followed it."""
    if comma is None:
        raise AssertionError("items of a flow list are parted by commas")
    if draft.body[comma + 1 : following].strip(" \t"):
        following = comma + 1
    draft.change(comma, following)


def _cut(draft: Draft, items: SequenceNode, span: tuple[int, int], comma: int | None) -> None:
    """Cut an item with its comma.

    It is the whole line where the item has one of its own, with the comment on it.
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
    if tail is None or not tail.group(1) or tail.end() > close:
        _cut_inside(draft, start, end, body[end:close], comma)
    elif begin > items.start_mark.index and not body[begin:start].strip():
        draft.change(begin, tail.end())
    else:
        draft.change(len(body[:start].rstrip(" \t")), end)


def _cut_inside(draft: Draft, start: int, end: int, rest: str, comma: int | None) -> None:
    """Cut an item with other items behind it on its line, and the blanks behind its comma."""
    if comma is not None:
        end += len(rest) - len(rest.lstrip(" \t"))
    draft.change(start, end)


def _comma(body: str, start: int, end: int) -> int | None:
    """Return the place of the comma between two entries of a flow collection.

    Only blanks and comments stand next to it.
    """
    place = start
    while place < end:
        if body[place] == ",":
            return place
        if body[place] == "#":
            place = body.find("\n", place, end)
            if place < 0:
                return None
        else:
            place += 1
    return None


def _span(node: Node) -> tuple[int, int]:
    return node.start_mark.index, node.end_mark.index


def entry_spans(mapping: MappingNode) -> list[tuple[int, int]]:
    """Return (start, end) of each entry of a mapping."""
    return [(key.start_mark.index, value.end_mark.index) for key, value in mapping.value]
