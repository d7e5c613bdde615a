# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks secrets in YAML, JSON, ini and argv with as many asterisks.

The module is pure. Every byte keeps its position, so that an edit can be planned on masked text.
What only looks like a secret is masked too. Text is decoded as Latin-1: one character is one byte.
The module does not use `re`, whose import costs more than the module itself.
"""

from bisect import bisect_left

from . import redaction_errors, redaction_spans, redaction_values
from .redaction_names import PUBLIC, secret_env, secret_key

NAME, BLANK = redaction_spans.NAME, redaction_spans.BLANK
LINE, AT_ONCE = redaction_spans.LINE, redaction_spans.AT_ONCE
TAGS = ("!", "!!str", "!!binary")
JWT = NAME | frozenset("=")
WORK = 16  # visits of each letter that a search may take
LEAST_WORK = 1 << 18
# What a client says of the program that it runs for a credential, which is no value of a key.
PROGRAM = "credentials: exec: executable "
PROGRAM_ENDS = (" not found", " failed with exit code ")
ADDRESS_ENDS = "\"'" + BLANK
AUTHORITY_ENDS = "/?#" + ADDRESS_ENDS
URL_PARTS = ("invalid port ", "invalid URL escape ")  # net/url of Go
LONGEST_FLAG = 256  # letters; a longer one counts as a secret's


def data(raw):
    """Return (the bytes with every secret masked, [[start, end]] of what was masked)."""
    text = raw.decode("latin-1")
    spans = _merged(text, _secrets(text))
    parts, position = [], 0
    for start, end in spans:
        parts += [text[position:start], "*" * (end - start)]
        position = end
    return "".join([*parts, text[position:]]).encode("latin-1"), spans


def _secrets(text):
    """Return the places of the secrets: every line in a text that takes too much work."""
    spans = redaction_spans.Spans(LEAST_WORK + WORK * len(text))
    try:
        _key_blocks(text, spans)
        _pairs(text, spans)
        _flags(text, spans)
        for name in spans.names:  # which may name others
            redaction_values.anchored(text, name, spans)
        _words(text, spans)
    except redaction_spans.TooMuchWork:
        spans = redaction_spans.Spans(len(text))
        redaction_spans.lines(text, 0, len(text), spans)
    return spans


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
    braces, objects, values = _Braces(text), set(), []
    for key, start, mark in _keys(text, 0, len(text)):
        if secret_key(key):
            _value_of_key(text, start, mark, spans)
        elif key == "value":
            values.append((start, mark))
        elif key == "name" and text[mark] == ":" and _names_secret_value(text, start, mark, spans):
            objects.add(braces.around(start))
            _siblings(text, start, spans)
    objects.discard(None)
    for start, mark in values:
        if objects and braces.around(start) in objects:
            redaction_values.value(text, start, mark, spans)


def _value_of_key(text, start, mark, spans):
    """Mask the value of a key that names a secret, unless it is the words of an error."""
    if redaction_errors.follow(text, start, mark):
        redaction_errors.opaque_words(text, mark, spans)
    elif not _tells_of_program(text, start):
        redaction_values.value(text, start, mark, spans)


def _tells_of_program(text, start):
    """Return whether a line ends with what a client says of its credential program."""
    if not text.startswith(PROGRAM, start):
        return False
    begin = start + len(PROGRAM)
    end = redaction_spans.after(text, begin, lambda char: char in NAME or char == "/")
    words = next((words for words in PROGRAM_ENDS if text.startswith(words, end)), None)
    if words is None or not 0 < end - begin <= LONGEST_FLAG:
        return False
    end = redaction_spans.after(text, end + len(words), lambda char: char in "0123456789")
    return text[end : end + 1] in ("", "\n", '"', "'", "\\")


def _names_secret_value(text, start, mark, spans):
    """Return whether a `name` looks like that of a secret `value` beside it.

    Whatever a container's environment variable is called, nothing here needs its value; extraArgs
    of kubeadm are lower case.
    """
    named = redaction_spans.Spans(spans.work)
    redaction_values.value(text, start, mark, named)
    spans.work = named.work
    if named:
        name = text[named[0][0] : named[0][1]].strip("\"'")
    else:
        name = ""
    return bool(named.names or secret_env(name) or (name.upper() == name and name[:1].isalpha()))


def _flags(text, spans):
    """Mask `--token` and its value as two words, two items of a list, or two lines."""
    for start in redaction_spans.every(text, "--"):
        end = spans.run_end("name", start + 2, lambda at: _name_end(text, at))
        if text[start - 1 : start] == "-" or text[end : end + 1] in ("=", ":", ""):
            continue
        if end - start > LONGEST_FLAG or secret_key(text[start:end]):
            _value_of_flag(text, end, spans)


def _name_end(text, offset):
    return redaction_spans.after(text, offset, lambda char: char in NAME)


def _value_of_flag(text, end, spans):
    offset = end
    while offset < len(text) and text[offset] in "\"'\\":
        offset += 1
    while offset < len(text) and (text[offset] in "," + BLANK or text[offset : offset + 2] == "- "):
        offset += 1
        if text[offset : offset + 1] == "#" and text[offset - 1] == "\n":
            offset = redaction_spans.line_end_of(text, offset)
    spans.spend(offset - end)
    line = text.rfind("\n", end, offset) + 1
    if line and text[line:offset].strip() == "-":
        _item(text, offset, text.find("-", line) - line, spans)
    else:
        _word(text, offset, spans)


def _item(text, offset, column, spans):
    """Mask the value of a flag in the next item of a list, unless that is a flag itself."""
    inside = redaction_spans.quoted(text, redaction_values.properties(text, offset))
    if not text.startswith("-", inside[0] if inside else offset):
        redaction_values.node(text, offset, column, spans)


def _word(text, offset, spans):
    """Mask the value of a flag in the next word, unless that is a flag or a key."""
    first, offset = offset, redaction_values.properties(text, offset, "line")
    spans.spend(offset - first)
    for word in text[first:offset].split():
        spans.spend(len(text) // AT_ONCE)
        first = text.find(word, first)
        # it only begins as a tag or an anchor does
        if word not in TAGS and "*" + word[1:] not in text:
            redaction_spans.add(text, first, first + len(word), spans)
    inside = redaction_spans.quoted(text, offset)
    offset, right, after = inside or (offset, offset, offset)
    if not inside:
        right = after = _word_end(text, right)
        spans.spend(right - offset)
    if (
        not text.startswith("-", offset)
        and not text[offset:right].endswith(":")
        and text[after : after + 1] != ":"
    ):
        redaction_spans.add(text, offset, right, spans)


def _word_end(text, right):
    while right < len(text) and text[right] not in "\"',]" + BLANK:
        if text[right : right + 2] in ("\\'", '\\"'):
            break
        right += 1
    return right


def _keys(text, position, end):
    """Yield (key, where it begins, where its : or = stands)."""
    for mark in _places(text, ":", "=", position, end):
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
        begin = _before(text, right, NAME)
        if begin == right:
            continue
        if is_asked:
            yield text[begin:right], mark, mark
        else:
            yield text[begin:right], begin, mark


def _places(text, letter, other, position=0, end=None):
    """Yield where each of two letters stands."""
    first, second = text.find(letter, position, end), text.find(other, position, end)
    while first >= 0 or second >= 0:
        if second < 0 or 0 <= first < second:
            yield first
            first = text.find(letter, first + 1, end)
        else:
            yield second
            second = text.find(other, second + 1, end)


def _before(text, right, letters):
    """Return the place before the letters that end here."""
    while right > 0 and text[right - 1] in letters:
        right -= 1
    return right


def _siblings(text, start, spans):
    """Mask each `value` in the same block of lines as a `name` that looks secret."""
    column = redaction_spans.column_of(text, start)
    line = text.rfind("\n", 0, start) + 1
    begin, end = spans.blocks.get(column, (0, 0))
    if begin <= line < end:
        return  # masked for another name of the block
    begin = _siblings_above(text, line, column, spans)
    spans.blocks[column] = (begin, _siblings_below(text, line, column, spans))


def _siblings_above(text, line, column, spans):
    """Mask the values above; return where the block begins."""
    # The dash is in the entry's first line.
    while line > 0 and not text[line : line + column].strip().endswith("-"):
        above = text.rfind("\n", 0, line - 1) + 1
        end = redaction_spans.line_end_of(text, above)
        has_dash = text[above:end][:column].strip() == "-"
        if _is_outside(text[above:end], column) and not has_dash:
            break
        line = above
        spans.spend(end - line + LINE)
        _value_in(text, line, end, column, spans)
    return line


def _siblings_below(text, line, column, spans):
    """Mask the values below; return where the block ends."""
    while True:
        line = text.find("\n", line) + 1
        if line == 0:
            return len(text)
        end = redaction_spans.line_end_of(text, line)
        if _is_outside(text[line:end], column):
            return line
        spans.spend(end - line + LINE)
        _value_in(text, line, end, column, spans)


def _is_outside(content, column):
    """Return whether a line is indented less than the entry."""
    return bool(content.strip()) and len(content) - len(content.lstrip(" ")) < column


def _value_in(text, line, end, column, spans):
    for key, place, mark in _keys(text, line, end):
        if key == "value" and redaction_spans.column_of(text, place) == column:
            redaction_values.value(text, place, mark, spans)


class _Braces:
    """The pairs of { } of a text.

    begins: where each brace stands, in order.
    inner: the innermost open { after each brace, -1 for none.
    ends: { -> its }.
    """

    def __init__(self, text):
        self.begins, self.inner, self.ends = [], [], {}
        open_braces = []
        for mark in _places(text, "{", "}"):
            if text[mark] == "{":
                open_braces.append(mark)
            elif open_braces:
                self.ends[open_braces.pop()] = mark
            self.begins.append(mark)
            self.inner.append(open_braces[-1] if open_braces else -1)

    def around(self, place):
        """Return the innermost { that is closed after the place, or None."""
        count = bisect_left(self.begins, place)
        brace = self.inner[count - 1] if count else -1
        if brace in self.ends:
            return brace
        return None


def _words(text, spans):
    """Mask secrets that have a known form.

    These are https://user:password@host, Authorization headers and JSON web tokens.
    """
    lower = text.lower()
    for start in redaction_spans.every(text, "://"):
        _user(text, start + len("://"), spans)
    for words in URL_PARTS:
        for start in redaction_spans.every(text, words):
            _url_part(text, start + len(words), spans)
    for start in redaction_spans.every(lower, "bearer "):
        _credential(text, start + len("bearer "), spans)
    for start in redaction_spans.every(lower, "basic "):
        if "authorization" in lower[max(0, start - 24) : start]:
            _credential(text, start + len("basic "), spans)
    for start in redaction_spans.every(text, "eyJ"):
        end = spans.run_end("web token", start, lambda at: _web_token_end(text, at))
        spans.spend((end - start) // AT_ONCE)
        if end - start > 40 and text.count(".", start, end) >= 2:
            spans.append([start, end])


def _user(text, start, spans):
    """Mask the password of a URL, also one with letters that end an authority: / ? #."""
    end = redaction_spans.after(text, start, lambda char: char not in AUTHORITY_ENDS)
    at, colon = text.rfind("@", start, end), text.find(":", start, end)
    if colon < 0 or text.startswith("[", start):
        return
    if at < 0 and not text[colon + 1 : end].isdigit():
        end = spans.run_end("address", end, lambda offset: _address_end(text, offset))
        spans.spend((end - start) // AT_ONCE)
        at = text.rfind("@", start, end)
    if colon < at:
        spans.append([colon + 1, at])


def _address_end(text, offset):
    return redaction_spans.after(text, offset, lambda char: char not in ADDRESS_ENDS)


def _url_part(text, start, spans):
    """Mask what Go quotes as a part of a URL, which may be of a password, unless it is a number."""
    begin = redaction_spans.after(text, start, lambda char: char in '\\":')
    end = redaction_spans.after(text, begin, lambda char: char not in ADDRESS_ENDS + "\\")
    if begin > start and not text[begin:end].isdigit():
        spans.append([begin, end])


def _credential(text, start, spans):
    end = redaction_spans.after(text, start, lambda char: char not in "\"'\\," + BLANK)
    if end - start >= 12:
        spans.append([start, end])


def _web_token_end(text, offset):
    return redaction_spans.after(text, offset, lambda char: char in JWT)


def _merged(text, spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return merged
