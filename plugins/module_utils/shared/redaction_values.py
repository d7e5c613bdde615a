# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the value of a secret key in YAML, JSON, TOML, ini and flags, however it is written.

The module is pure. It masks what is under a secret key unless that is a mapping, whose keys are
checked themselves: scalars behind tags and anchors, items of sequences, the target of an alias. In
a text that is no YAML after all, it masks too much rather than too little.
"""

from .redaction_names import PUBLIC
from .redaction_spans import (
    AT_ONCE,
    BLANK,
    FAR,
    LINE,
    NAME,
    QUOTES,
    add,
    after,
    blanks,
    closing,
    every,
    line_end_of,
    lines,
    quoted,
)

NUMBER = frozenset("0123456789.+-eE")
FLOW = ",[]{}"
NESTING = {"[": 1, "{": 1, "]": -1, "}": -1}
DEEPEST = 50


def value(text, start, mark, spans):
    """Add the places of the value of the key that starts here.

    Nothing is added for an empty value, a mapping or a public word.
    """
    offset = blanks(text, mark + 1)
    if text[mark] == "=":
        _assigned(text, start, offset, spans)
    else:
        spans.spend((start - text.rfind("\n", 0, start)) // AT_ONCE)
        column = _head(text, start)
        spans.spend(column)
        node(text, offset, column, spans, _flow(text, start), False)


def node(text, offset, column, spans, flow="", alone=True):
    """Mask the scalars of the node that begins here.

    column: the column of its parent; lines that are indented deeper belong to the node.
    flow: the result of _flow().
    alone: no key precedes the node, so that it may be a mapping or a sequence of lines.
    """
    begin, offset = offset, properties(text, offset, flow)
    spans.spend(offset - begin)
    first, line_end = text[offset : offset + 1], line_end_of(text, offset)
    inside = quoted(text, offset)
    if inside:
        spans.spend(inside[2] - offset)
        if not alone or text[blanks(text, inside[2]) :][:1] != ":":
            add(text, inside[0], inside[1], spans)
        return
    if _is_line_over(text, offset):
        _empty(text, begin, offset, column, spans, flow)
        return
    if flow == "line" and first in ",}]":
        return
    if _collection(text, offset, line_end, spans) or (first == "*" and _alias(text, offset, spans)):
        return
    _plain(text, offset, column, spans, flow, alone)


def _is_line_over(text, offset):
    """Return whether nothing but a comment stands on the rest of the line."""
    first = text[offset : offset + 1]
    return first in ("", "\r", "\n") or (first == "#" and text[offset - 1] in BLANK)


def _empty(text, begin, offset, column, spans, flow):
    """Mask what belongs to a key or dash with no value behind it on its line."""
    line_end = line_end_of(text, offset)
    if _below(text, line_end, column, spans, flow):
        return
    is_used = text[begin : begin + 1] == "&" and "*" + text[begin + 1 : offset].strip() in text
    if not is_used:
        add(text, begin, line_end, spans)  # neither a tag nor a comment, as it seems


def properties(text, offset, flow=""):
    """Return where what stands behind tags and anchors begins."""
    while offset < len(text) and text[offset] in "&!":
        if text.startswith("!<", offset):
            verbatim = text.find(">", offset)
        else:
            verbatim = -1
        offset = max(offset, verbatim)
        while (
            offset < len(text)
            and text[offset] not in BLANK
            and not (flow == "line" and text[offset] in FLOW)
        ):
            offset += 1
        offset = blanks(text, offset)
    return offset


def anchored(text, name, spans):
    """Mask what the anchor of this name marks."""
    spans.spend(len(text) // AT_ONCE)
    for at in every(text, "&" + name):
        if text[at + len(name) + 1 : at + len(name) + 2] not in NAME and text[at - 1 : at] in (
            *tuple(BLANK + "[{,"),
            "",
        ):
            line = text.rfind("\n", 0, at) + 1
            head, dash = line, line
            while text[head] in " -":
                if text[head] == "-":
                    dash = head
                head += 1
            column = (dash if head == at else head) - line
            node(
                text,
                at,
                column,
                spans,
                "line" if "{" in text[line:at] or "[" in text[line:at] else "",
                head == at,
            )


def _head(text, start):
    """Return the column in which the line's first key begins.

    Lines that are indented deeper may belong to that key.
    """
    line = text.rfind("\n", 0, start) + 1
    head = line
    while head < start and (text[head] == " " or text[head : head + 2] in ("- ", "? ")):
        head += 1
    return head - line


def _flow(text, start):
    """Return how the key stands in a flow mapping: "line", "lines" or "".

    "line": a bracket precedes the key on its line.
    "lines": a bracket may precede it on a line above.
    "": the key is in no flow mapping.
    """
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start].rstrip(" \t\"'\\?")
    if before[-1:] in tuple("{[,") and ("{" in before or "[" in before):
        return "line"
    above = line
    while not before and above > 0 and text[above - 1] in BLANK:
        above -= 1
    if text[start - 1 : start] == '"' or (not before and text[above - 1 : above] in tuple("{[,")):
        return "lines"
    return ""


def _assigned(text, start, offset, spans):
    """Mask the value after a =, of ini, TOML, an environment file or a flag."""
    line_end, inside = line_end_of(text, offset), quoted(text, offset)
    spans.spend((line_end - start) // AT_ONCE)
    if inside:
        add(text, inside[0], inside[1], spans)
        return
    if _collection(text, offset, line_end, spans):
        return
    if not text[offset:line_end].strip("* \t\r"):
        return  # masked already
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start].strip("\"' \t")
    begins_line = before in ("", "export", "-")
    end = _end_of_quotes(text, start, line_end, begins_line)
    if end < 0 and not begins_line:
        end = _word_end(text, offset, line_end)
    elif end < 0 and before == "-":
        end = _plain_end(text, offset, line_end)
        _deeper(text, line_end, text.rfind("-", line, start) - line, spans)
    elif end < 0:
        end = _continued_end(text, line_end)
    add(text, offset, end, spans)


def _word_end(text, offset, line_end):
    """Return the end of a value that is one word."""
    return min(line_end, after(text, offset, lambda char: char not in " \t\r\n\"',]}\\"))


def _end_of_quotes(text, start, line_end, begins_line):
    """Return where the quotes around the key and its value end, or -1.

    They may end on a later line if the key begins its line.
    """
    name, quote = start, start - 1
    while text[name] in NAME:
        name += 1
    if text[quote:start] not in QUOTES or text[name] not in " \t=":
        return -1
    while text[quote - 1 : quote] == "\\":
        quote -= 1
    end = quoted(text, quote)[1]
    if end > line_end and not (begins_line and end < len(text)):
        return -1
    return end


def _continued_end(text, end):
    """Return the end of the line, or of the last one that continues it."""
    while text[end - 1 : end] == "\\" and end < len(text):
        end = line_end_of(text, end + 1)
    return end


def _plain(text, offset, column, spans, flow, alone):
    line_end = line_end_of(text, offset)
    if flow == "line":
        add(text, offset, _string_end(text, offset, _flow_end(text, offset, line_end)), spans)
        return
    end = _string_end(text, offset, _plain_end(text, offset, line_end))
    word = text[offset:end]
    if word[:1] in ("|", ">") and NUMBER.issuperset(word[1:]):
        _deeper(text, line_end, column, spans)
        return
    if alone and _block_collection(text, offset, word, spans):
        return
    if flow == "lines":
        bare = _bare(word)
        if bare and bare != word:
            add(text, offset, offset + len(bare), spans)
            return
    if add(text, offset, end, spans):
        _deeper(text, line_end, column, spans)


def _block_collection(text, offset, word, spans):
    """Mask the items of the sequence of lines that begins here, and leave a mapping alone.

    The result is False for a scalar.
    """
    if (word + " ").startswith("- "):
        _sequence(text, offset, spans)
        return True
    return ": " in word or word.endswith(":") or word.startswith("? ")


def _bare(word):
    """Return a scalar without the brackets that may end the collection around it."""
    first = word.replace("}", ",").replace("]", ",").partition(",")[0].rstrip()
    if NUMBER.issuperset(first) or first in PUBLIC:
        return first
    return word.rstrip(",}] \t\r")


def _plain_end(text, offset, line_end):
    comment = text.find(" #", offset, line_end)
    if comment >= 0:
        end = comment
    else:
        end = line_end
    while end > offset and text[end - 1] in BLANK:
        end -= 1
    return end


def _string_end(text, offset, end):
    """Return the end of a plain value, before the quotes that are around its key too."""
    before = text[text.rfind("\n", 0, offset) + 1 : offset].replace('\\"', "")
    if text[end - 1 : end] == "'" and text.count("'", offset, end) == 1 and before.count("'") % 2:
        return end - 1
    if before.count('"') % 2:
        position = text.find('"', offset, end)
    else:
        position = -1
    while position >= 0:
        if text[position - 1] != "\\" and text[position + 1 : position + 2] in (
            *tuple(BLANK + ",]}:'"),
            "",
        ):
            return position
        position = text.find('"', position + 1, end)
    return end


def _flow_end(text, offset, line_end):
    """Return where a plain scalar of a flow collection ends.

    The scalar may continue on the next lines if these contain neither ":" nor "=".
    """
    while True:
        stops = [
            at
            for at in (text.find(mark, offset, line_end) for mark in (",", "}", "]", " #"))
            if at >= 0
        ]
        if stops or line_end >= len(text):
            return min(stops or [line_end])
        further = (
            text[line_end + 1 : line_end_of(text, line_end + 1)]
            .replace("}", ",")
            .replace("]", ",")
            .partition(",")[0]
        )
        if not further.strip() or ":" in further or "=" in further:
            return line_end
        offset, line_end = line_end + 1, line_end_of(text, line_end + 1)


def _deeper(text, line_end, column, spans):
    """Mask the lines below that are indented further than the key: the rest of its scalar."""
    position = line_end + 1
    while position < len(text):
        end = line_end_of(text, position)
        line = text[position:end]
        spans.spend(end - position + LINE)
        if line.strip():
            if len(line) - len(line.lstrip(" ")) <= column:
                return
            lines(text, position, end, spans)
        position = end + 1


def _below(text, line_end, column, spans, flow):
    """Mask the lines below a key or dash without a value; return whether there are any."""
    line = _next_line(text, line_end)
    spans.spend(line - line_end)
    if line >= len(text):
        return False
    position = line
    while text[position] in BLANK:
        position += 1
    if position - line >= column and _dashed(text, position):
        _sequence(text, position, spans)
    elif position - line > column or flow == "line":
        _nested(text, position, column, spans, flow)
    elif quoted(text, position):  # JSON, which is not indented
        node(text, position, column, spans)
    else:
        return False
    return True


def _next_line(text, line_end):
    """Return where the next line begins that is neither empty nor a comment."""
    line = line_end + 1
    while line < len(text) and (text[line : line_end_of(text, line)].strip() or "#").startswith(
        "#"
    ):
        line = line_end_of(text, line) + 1
    return line


def _dashed(text, position):
    return text[position : position + 1] == "-" and text[position + 1 : position + 2] in (
        *tuple(BLANK),
        "",
    )


def _sequence(text, dash, spans):
    """Mask the scalar items of the sequence that begins with this dash."""
    line = text.rfind("\n", 0, dash) + 1
    indent = here = dash - line
    bare = text[dash : line_end_of(text, dash)]
    while True:
        if here == indent and bare.strip():
            if not _dashed(text, line + indent):
                return
            _nested(text, blanks(text, line + indent + 1), indent, spans, "")
        line = line_end_of(text, line) + 1
        if line >= len(text):
            return
        spans.spend(line_end_of(text, line) - line + LINE)
        bare = text[line : line_end_of(text, line)].lstrip(" ")
        here = line_end_of(text, line) - line - len(bare)
        if bare.startswith("#"):
            bare = ""
        if bare.strip() and here < indent:
            return


def _nested(text, offset, column, spans, flow):
    if spans.depth >= DEEPEST:  # deeper than any real text
        add(text, offset, line_end_of(text, offset), spans)
        _deeper(text, line_end_of(text, offset), column, spans)
        return
    spans.depth += 1
    node(text, offset, column, spans, flow)
    spans.depth -= 1


def _collection(text, offset, line_end, spans):
    """Mask the items of the flow sequence that begins here, and leave a mapping alone.

    The result is False for a word that only begins with the same bracket.
    """
    if text[offset : offset + 1] == "{":
        inner = text[offset + 1 : line_end].partition("}")[0].strip()
        if not inner or inner.startswith("#"):
            return True
        return ":" in inner or "=" in inner
    if text[offset : offset + 1] == "[":
        end = _closed(text, offset, line_end, spans)
    else:
        end = -1
    if end >= 0:
        _items(text, offset + 1, end, spans)
    return end >= 0


def _closed(text, offset, line_end, spans):
    """Return where the sequence that begins here ends, the line's end where it has no end.

    The result is -1 if the closing bracket does not end the value.
    """
    depth, position, end = 0, offset, min(len(text), offset + FAR)
    while position < end:
        char = text[position]
        if char in QUOTES and text[position - 1] in BLANK + "[{,:":
            position = closing(text, position)
        elif char == "#" and text[position - 1] in BLANK:
            position = line_end_of(text, position)
        depth += NESTING.get(char, 0)
        if depth == 0:
            spans.spend(position - offset)
            return position if _ends_value(text, position) else -1
        position += 1
    spans.spend(end - offset)
    if end == len(text):
        return line_end
    return end


def _ends_value(text, position):
    """Return whether the value may end with this bracket, by what stands behind it."""
    return text[position + 1 : position + 2] in (*tuple(BLANK + ",]}\"'\\#;:)"), "")


def _items(text, offset, end, spans):
    """Mask the scalars of a flow sequence, of those within it too."""
    while offset < end:
        if text[offset] in BLANK + "[],":
            offset += 1
        elif text[offset] == "#":
            offset = line_end_of(text, offset)
        else:
            offset = _flow_item(text, properties(text, offset, "line"), end, spans)


def _flow_item(text, offset, end, spans):
    """Mask one item of a flow sequence; return where the next one may begin."""
    inside = quoted(text, offset)
    if inside:
        if text[blanks(text, inside[2]) :][:1] != ":":
            add(text, inside[0], min(inside[1], end), spans)
        return max(offset + 1, inside[2])
    if text[offset : offset + 1] == "{":
        return max(offset + 1, _closed(text, offset, end, spans))
    stop = _item_end(text, offset, end)
    word = text[offset:stop].strip()
    is_key = ": " in word or word.endswith(":")
    if not is_key and not (word.startswith("*") and _alias(text, offset, spans)):
        add(text, offset, stop, spans)
    return max(offset + 1, stop)


def _item_end(text, offset, end):
    """Return where a plain item of a flow sequence ends."""
    stop = offset
    while stop < end and text[stop] not in FLOW:
        if text[stop : stop + 2] in (" #", "\n#"):
            break
        stop += 1
    return stop


def _alias(text, offset, spans):
    """Return whether this is an alias (its anchor is masked then), or is masked already."""
    end = offset + 1
    while end < len(text) and text[end] in NAME:
        end += 1
    name = text[offset + 1 : end]
    if name and "&" + name in text:
        if name not in spans.names:
            spans.names.append(name)
        return True
    while end < len(text) and text[end] not in BLANK + ",]}\"'":
        end += 1
    return not text[offset:end].strip("*")
