# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in YAML, JSON, ini and argv, replaced by as many asterisks.

Pure. Every byte keeps its place, so that an edit can be planned on masked text; what looks like a
secret without being one is masked too. Text is looked at as Latin-1: one character, one byte. No
`re`: its import costs more than this.
"""

from . import redaction_spans as mask_text
from . import redaction_values as mask_value
from .redaction_names import PUBLIC, secret_env, secret_key

NAME, BLANK, FAR = mask_text.NAME, mask_text.BLANK, mask_text.FAR
TAGS = ("!", "!!str", "!!binary")
JWT = NAME | frozenset("=")


def data(raw):
    """Return (the bytes with every secret masked, [[start, end]] of what was masked)."""
    text = raw.decode("latin-1")
    lower = text.lower()
    spans = mask_text.Spans()
    _key_blocks(text, spans)
    _pairs(text, spans)
    _flags(text, spans)
    for name in spans.names:  # which may name others
        mask_value.anchored(text, name, spans)
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
        mask_text.lines(text, begin, end, spans)
        position = text.find("PRIVATE KEY-----", end + 40)


def _pairs(text, spans):
    """`key: value` and `key=value` wherever they stand.

    YAML in block or flow style, JSON, ini, flags within a string.
    """
    for key, start, mark in _keys(text, 0, len(text)):
        if secret_key(key):
            mask_value.value(text, start, mark, spans)
        elif key == "name" and text[mark] == ":":
            named = mask_text.Spans()
            mask_value.value(text, start, mark, named)
            if named:
                name = text[named[0][0] : named[0][1]].strip("\"'")
            else:
                name = ""
            # Whatever a container's environment variable is called, nothing here needs its value;
            # extraArgs of kubeadm are lower case.
            if named.names or secret_env(name) or (name.upper() == name and name[:1].isalpha()):
                _siblings(text, start, spans)


def _flags(text, spans):
    """`--token` and its value as two words, two items of a list, or two lines."""
    for start in mask_text.every(text, "--"):
        end = start + 2
        while end < len(text) and text[end] in NAME:
            end += 1
        if (
            text[start - 1 : start] == "-"
            or text[end : end + 1] in ("=", ":", "")
            or not secret_key(text[start:end])
        ):
            continue
        left = end
        while left < len(text) and text[left] in "\"'\\":
            left += 1
        while left < len(text) and (text[left] in "," + BLANK or text[left : left + 2] == "- "):
            left += 1
            if text[left : left + 1] == "#" and text[left - 1] == "\n":
                left = mask_text.line_end_of(text, left)
        line = text.rfind("\n", end, left) + 1
        if line and text[line:left].strip() == "-":
            _item(text, left, text.find("-", line) - line, spans)
        else:
            _word(text, left, spans)


def _item(text, left, column, spans):
    """Mask the value of a flag in the next item of a list, unless that is a flag itself."""
    inside = mask_text.quoted(text, mask_value.properties(text, left))
    if not text.startswith("-", inside[0] if inside else left):
        mask_value.node(text, left, column, spans)


def _word(text, left, spans):
    """Mask the value of a flag in the next word, unless that is a flag or a key."""
    first, left = left, mask_value.properties(text, left, "line")
    for word in text[first:left].split():
        first = text.find(word, first)
        # it only begins as a tag or an anchor does
        if word not in TAGS and "*" + word[1:] not in text:
            mask_text.add(text, first, first + len(word), spans)
    inside = mask_text.quoted(text, left)
    left, right, after = inside or (left, left, left)
    if not inside:
        right = after = _word_end(text, right)
    if (
        not text.startswith("-", left)
        and not text[left:right].endswith(":")
        and text[after : after + 1] != ":"
    ):
        mask_text.add(text, left, right, spans)


def _word_end(text, right):
    while right < len(text) and text[right] not in "\"',]" + BLANK:
        if text[right : right + 2] in ("\\'", '\\"'):
            break
        right += 1
    return right


def _keys(text, position, end):
    """Return (key, where it begins, where its : or = stands)."""
    while True:
        colon, equal = text.find(":", position, end), text.find("=", position, end)
        if colon < 0 and equal < 0:
            return
        if equal < 0 or 0 <= colon < equal:
            mark = colon
        else:
            mark = equal
        position = mark + 1
        right = mark
        while right > 0 and text[right - 1] in " \t":
            right -= 1
        asked = False
        # the key stands above: `? key`, or JSON's "key"
        if text[mark] == ":" and text[right - 1 : right] == "\n":
            while right > 0 and text[right - 1] in BLANK:
                right -= 1
            asked = text[text.rfind("\n", 0, right) + 1 : right].lstrip(" -").startswith("? ")
            if not asked and text[right - 1 : right] != '"':
                continue
        while right > 0 and text[right - 1] in "\"'\\":
            right -= 1
        left = right
        while left > 0 and text[left - 1] in NAME:
            left -= 1
        if left < right:
            yield text[left:right], mark if asked else left, mark


def _siblings(text, start, spans):
    """Mask the `value` next to a `name` that looks secret.

    Within the same braces, or in the same block of lines.
    """
    left, right = _braces(text, start)
    if left >= 0:
        for key, where, mark in _keys(text, left, right):
            if key == "value" and _braces(text, where) == (left, right):
                mask_value.value(text, where, mark, spans)
    column = mask_text.column_of(text, start)
    for step in (-1, 1):
        line = text.rfind("\n", 0, start) + 1
        while True:
            if step < 0 and text[line : line + column].strip().endswith("-"):
                break  # the dash: the entry's first line
            if step < 0 and line > 0:
                line = text.rfind("\n", 0, line - 1) + 1
            elif step > 0:
                line = text.find("\n", line) + 1
            else:
                line = -1
            if line < 0 or (step > 0 and line == 0):
                break
            end = text.find("\n", line)
            if end < 0:
                end = len(text)
            content = text[line:end]
            indent = len(content) - len(content.lstrip(" "))
            if (
                content.strip()
                and indent < column
                and not (step < 0 and content[:column].strip() == "-")
            ):
                break
            for key, where, mark in _keys(text, line, end):
                if key == "value" and mask_text.column_of(text, where) == column:
                    mask_value.value(text, where, mark, spans)
            if line == 0 and step < 0:
                break


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
    """Secrets that give themselves away.

    Https://user:password@host, Authorization headers, JSON web tokens.
    """
    for start in mask_text.every(text, "://"):
        end = start + 3
        while end < len(text) and text[end] not in "/?#\"'" + BLANK:
            end += 1
        at, colon = text.rfind("@", start, end), text.find(":", start + 3, end)
        if 0 <= colon < at:
            spans.append([colon + 1, at])
    for word in ("bearer ", "basic "):
        for start in mask_text.every(lower, word):
            if word == "bearer " or "authorization" in lower[max(0, start - 24) : start]:
                end = start + len(word)
                while end < len(text) and text[end] not in "\"'\\," + BLANK:
                    end += 1
                if end - start - len(word) >= 12:
                    spans.append([start + len(word), end])
    for start in mask_text.every(text, "eyJ"):
        end = start
        while end < len(text) and text[end] in JWT:
            end += 1
        if end - start > 40 and text.count(".", start, end) >= 2:
            spans.append([start, end])


def _merged(text, spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return merged
