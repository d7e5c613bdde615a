# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks secrets in YAML, JSON, ini and argv with as many asterisks.

The module is pure. Every byte keeps its position, so that an edit can be planned on masked text.
What only looks like a secret is masked too. Text is decoded as Latin-1: one character is one byte.
The module does not use `re`, whose import costs more than the module itself.
"""

from . import redaction_spans, redaction_values
from .redaction_names import PUBLIC, secret_env, secret_key

NAME, BLANK, FAR = redaction_spans.NAME, redaction_spans.BLANK, redaction_spans.FAR
TAGS = ("!", "!!str", "!!binary")
JWT = NAME | frozenset("=")


def data(raw):
    """Return (the bytes with every secret masked, [[start, end]] of what was masked)."""
    text = raw.decode("latin-1")
    lower = text.lower()
    spans = redaction_spans.Spans()
    _key_blocks(text, spans)
    _pairs(text, spans)
    _flags(text, spans)
    for name in spans.names:  # which may name others
        redaction_values.anchored(text, name, spans)
    _words(text, lower, spans)
    spans = _merged(text, spans)
    parts, position = [], 0
    for start, end in spans:
        parts += [text[position:start], "*" * (end - start)]
        position = end
    return "".join([*parts, text[position:]]).encode("latin-1"), spans


def argv(items):
    """Return the arguments with their secrets masked, `--token=x` and `--token x` alike."""
    masked, before = [], ""
    for item in items:
        raw = item.encode("utf-8", "surrogateescape")
        is_value = not item.startswith("-") and item not in PUBLIC
        if is_value and _names_secret(before):
            masked.append("*" * len(raw))
        else:
            masked.append(data(raw)[0].decode("utf-8", "backslashreplace"))
        before = item
    return masked


def _names_secret(argument):
    return argument.startswith("-") and "=" not in argument and secret_key(argument)


def _key_blocks(text, spans):
    position = text.find("PRIVATE KEY-----")
    while position >= 0:
        begin = position + len("PRIVATE KEY-----")
        if text.rfind("-----BEGIN", max(0, position - 40), position) < 0:
            position = text.find("PRIVATE KEY-----", begin)
            continue
        end = text.find("-----END", begin)
        if end < 0:
            end = len(text)
        redaction_spans.lines(text, begin, end, spans)
        position = text.find("PRIVATE KEY-----", end + 40)


def _pairs(text, spans):
    """Mask the secrets of `key: value` and `key=value` anywhere in a text.

    The text is YAML in block or flow style, JSON, ini, or a string with flags.
    """
    for key, start, mark in _keys(text, 0, len(text)):
        if secret_key(key):
            redaction_values.value(text, start, mark, spans)
        elif key == "name" and text[mark] == ":":
            named = redaction_spans.Spans()
            redaction_values.value(text, start, mark, named)
            if named:
                name = text[named[0][0] : named[0][1]].strip("\"'")
            else:
                name = ""
            # Whatever a container's environment variable is called, nothing here needs its value;
            # extraArgs of kubeadm are lower case.
            if named.names or secret_env(name) or (name.upper() == name and name[:1].isalpha()):
                _siblings(text, start, spans)


def _flags(text, spans):
    """Mask `--token` and its value as two words, two items of a list, or two lines."""
    for start in redaction_spans.every(text, "--"):
        end = start + 2
        while end < len(text) and text[end] in NAME:
            end += 1
        if text[start - 1 : start] == "-" or text[end : end + 1] in ("=", ":", ""):
            continue
        if secret_key(text[start:end]):
            _value_of_flag(text, end, spans)


def _value_of_flag(text, end, spans):
    left = end
    while left < len(text) and text[left] in "\"'\\":
        left += 1
    while left < len(text) and (text[left] in "," + BLANK or text[left : left + 2] == "- "):
        left += 1
        if text[left : left + 1] == "#" and text[left - 1] == "\n":
            left = redaction_spans.line_end_of(text, left)
    line = text.rfind("\n", end, left) + 1
    if line and text[line:left].strip() == "-":
        _item(text, left, text.find("-", line) - line, spans)
    else:
        _word(text, left, spans)


def _item(text, left, column, spans):
    """Mask the value of a flag in the next item of a list, unless that is a flag itself."""
    inside = redaction_spans.quoted(text, redaction_values.properties(text, left))
    if not text.startswith("-", inside[0] if inside else left):
        redaction_values.node(text, left, column, spans)


def _word(text, left, spans):
    """Mask the value of a flag in the next word, unless that is a flag or a key."""
    first, left = left, redaction_values.properties(text, left, "line")
    for word in text[first:left].split():
        first = text.find(word, first)
        # it only begins as a tag or an anchor does
        if word not in TAGS and "*" + word[1:] not in text:
            redaction_spans.add(text, first, first + len(word), spans)
    inside = redaction_spans.quoted(text, left)
    left, right, after = inside or (left, left, left)
    if not inside:
        right = after = _word_end(text, right)
    if (
        not text.startswith("-", left)
        and not text[left:right].endswith(":")
        and text[after : after + 1] != ":"
    ):
        redaction_spans.add(text, left, right, spans)


def _word_end(text, right):
    while right < len(text) and text[right] not in "\"',]" + BLANK:
        if text[right : right + 2] in ("\\'", '\\"'):
            break
        right += 1
    return right


def _keys(text, position, end):
    """Yield (key, where it begins, where its : or = stands)."""
    while True:
        mark = _next_mark(text, position, end)
        if mark < 0:
            return
        position = mark + 1
        right = _before(text, mark, " \t")
        is_asked = False
        # the key stands above: `? key`, or JSON's "key"
        if text[mark] == ":" and text[right - 1 : right] == "\n":
            right = _before(text, right, BLANK)
            above = text[text.rfind("\n", 0, right) + 1 : right]
            is_asked = above.lstrip(" -").startswith("? ")
            if not is_asked and text[right - 1 : right] != '"':
                continue
        right = _before(text, right, "\"'\\")
        left = _before(text, right, NAME)
        if left == right:
            continue
        if is_asked:
            yield text[left:right], mark, mark
        else:
            yield text[left:right], left, mark


def _next_mark(text, position, end):
    """Return where the next : or = stands, or -1."""
    places = [text.find(mark, position, end) for mark in ":="]
    return min([place for place in places if place >= 0], default=-1)


def _before(text, right, letters):
    """Return the place before the letters that end here."""
    while right > 0 and text[right - 1] in letters:
        right -= 1
    return right


def _siblings(text, start, spans):
    """Mask the `value` of the same object as a `name` that looks secret.

    The two are within the same braces, or in the same block of lines.
    """
    left, right = _braces(text, start)
    if left >= 0:
        for key, place, mark in _keys(text, left, right):
            if key == "value" and _braces(text, place) == (left, right):
                redaction_values.value(text, place, mark, spans)
    column = redaction_spans.column_of(text, start)
    line = text.rfind("\n", 0, start) + 1
    _siblings_above(text, line, column, spans)
    _siblings_below(text, line, column, spans)


def _siblings_above(text, line, column, spans):
    # The dash is in the entry's first line.
    while line > 0 and not text[line : line + column].strip().endswith("-"):
        line = text.rfind("\n", 0, line - 1) + 1
        end = redaction_spans.line_end_of(text, line)
        has_dash = text[line:end][:column].strip() == "-"
        if _is_outside(text[line:end], column) and not has_dash:
            return
        _value_in(text, line, end, column, spans)


def _siblings_below(text, line, column, spans):
    while True:
        line = text.find("\n", line) + 1
        if line == 0:
            return
        end = redaction_spans.line_end_of(text, line)
        if _is_outside(text[line:end], column):
            return
        _value_in(text, line, end, column, spans)


def _is_outside(content, column):
    """Return whether a line is indented less than the entry."""
    return bool(content.strip()) and len(content) - len(content.lstrip(" ")) < column


def _value_in(text, line, end, column, spans):
    for key, place, mark in _keys(text, line, end):
        if key == "value" and redaction_spans.column_of(text, place) == column:
            redaction_values.value(text, place, mark, spans)


def _braces(text, start):
    """Return the innermost { } around a place, or (-1, -1)."""
    depth, left = 0, start
    while left > max(0, start - FAR):
        left -= 1
        if text[left] == "}":
            depth += 1
        elif text[left] == "{":
            if depth == 0:
                break
            depth -= 1
    else:
        return -1, -1
    depth, right = 0, start
    while right < min(len(text), start + FAR):
        if text[right] == "{":
            depth += 1
        elif text[right] == "}":
            if depth == 0:
                return left, right
            depth -= 1
        right += 1
    return -1, -1


def _words(text, lower, spans):
    """Mask secrets that have a known form.

    These are https://user:password@host, Authorization headers and JSON web tokens.
    """
    for start in redaction_spans.every(text, "://"):
        end = _after(text, start + 3, lambda char: char not in "/?#\"'" + BLANK)
        at, colon = text.rfind("@", start, end), text.find(":", start + 3, end)
        if 0 <= colon < at:
            spans.append([colon + 1, at])
    for start in redaction_spans.every(lower, "bearer "):
        _credential(text, start + len("bearer "), spans)
    for start in redaction_spans.every(lower, "basic "):
        if "authorization" in lower[max(0, start - 24) : start]:
            _credential(text, start + len("basic "), spans)
    for start in redaction_spans.every(text, "eyJ"):
        end = _after(text, start, lambda char: char in JWT)
        if end - start > 40 and text.count(".", start, end) >= 2:
            spans.append([start, end])


def _credential(text, start, spans):
    end = _after(text, start, lambda char: char not in "\"'\\," + BLANK)
    if end - start >= 12:
        spans.append([start, end])


def _after(text, position, belongs):
    """Return the place after the letters that belong to the word that begins here."""
    while position < len(text) and belongs(text[position]):
        position += 1
    return position


def _merged(text, spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return merged
