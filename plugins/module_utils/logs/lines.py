# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log lines of a runtime or of journald: their time, whether they are wanted, without secrets."""

import datetime
import re
import time

from ..shared.text import counted
from ..system import files, json_line

LONGEST = 65536  # bytes of one line that are matched; of what is longer only the length is known
BEYOND = files.BEYOND
RAW = 4 * 1024 * 1024  # one line of a file or of journalctl, before it is taken apart
MAX_KEY_LINES = 120
EPOCH = datetime.date(1970, 1, 1).toordinal()
RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt"
    r" ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?([Zz]|[+-][0-9]{2}:?[0-9]{2})\Z"
)
# A new message ends a key that was never closed: klog's head, or a JSON object.
HEADER = re.compile(rb"[IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}|\{\"")
KEY, BEGIN, END = b"PRIVATE KEY-----", b"-----BEGIN", b"-----END"
PEM_LINE = re.compile(rb"\A\s*([A-Za-z0-9+/]{40,}={0,2})\s*\Z")
AUTHORIZATION = re.compile(
    rb"authorization[\"'\\]*\s*[:=]\s*[\[{\"'\\ ]*(?:[a-z]+ +)?([^\s\"'\],\\}]+)", re.I
)
USERINFO = re.compile(rb"://([^\s/@:?#\"'\\]+)@")


def seconds(text):
    """Return seconds since the epoch, with microseconds, of a time of RFC 3339; else None.

    Nanoseconds are cut off.
    """
    match = RFC3339.match(text)
    if not match:
        return None
    year, month, day, hour, minute, second = [int(part) for part in match.groups()[:6]]
    try:
        days = datetime.date(year, month, day).toordinal() - EPOCH
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    whole = days * 86400 + hour * 3600 + minute * 60 + second
    zone = match.group(8)
    if len(zone) > 1:
        ahead = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        whole += ahead if zone[0] == "-" else -ahead
    return round(whole + int((match.group(7) or "0")[:6].ljust(6, "0")) / 1e6, 6)


def stamp(moment):
    """Return seconds since the epoch as 2026-11-21T20:01:02.123456Z."""
    whole, micro = divmod(round(moment * 1e6), 1000000)
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
    return f"{seconds}.{micro:06d}Z"


def split(read, limit=RAW):
    """Yield each line, without its end, of the blocks that read() gives.

    A line longer than the limit is cut to its beginning. An empty block ends the text.
    """
    rest = b""
    while True:
        block = read()
        if not block:
            break
        parts = block.split(b"\n")
        for part in parts[:-1]:
            yield rest + part[: limit - len(rest)]
            rest = b""
        rest += parts[-1][: limit - len(rest)]
    if rest:
        yield rest


def written(raw):
    """Return (seconds, stream, whether more of the line follows, its bytes) of a runtime's line.

    The line is CRI's or docker's; the result is None for any other.
    """
    return _docker(raw) if raw.startswith(b"{") else _cri(raw)


def _cri(raw):
    parts = raw.split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    moment = seconds(parts[0].decode("latin-1"))
    tag = parts[2].partition(b":")[0]
    if moment is None or tag not in (b"P", b"F"):
        return None
    return moment, parts[1].decode("ascii"), tag == b"P", parts[3] if len(parts) > 3 else b""


def _docker(raw):
    try:
        entry = json_line.loads(raw.decode("utf-8", "replace"))
        text, moment = entry["log"], seconds(entry["time"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if moment is None or not isinstance(text, str):
        return None
    ended = text.endswith("\n")
    text = text[:-1] if ended else text
    return moment, str(entry.get("stream")), not ended, text.encode("utf-8", "replace")


def entry(raw):
    """Return (seconds, bytes, fields) of one line of `journalctl --output=json`, or None."""
    try:
        fields = json_line.loads(raw.decode("utf-8", "replace"))
        moment = fields.get("_SOURCE_REALTIME_TIMESTAMP") or fields["__REALTIME_TIMESTAMP"]
        return int(moment) / 1e6, _message(fields.get("MESSAGE")), fields
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _message(value):
    """Return the bytes of a field.

    journalctl writes bytes that are no UTF-8 as numbers, and several fields of a name as a list.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return bytes(bytearray(value))
    if isinstance(value, list):
        return b"\n".join(_message(item) for item in value)
    return b""


class Joiner:
    """A joiner of the pieces into which a runtime cuts lines, each stream by itself."""

    def __init__(self):
        self.pending = {}

    def feed(self, piece):
        """Return (seconds, bytes, length) of the line that this piece of written() ends, or None.

        The time of the first piece counts.
        """
        moment, stream, more, data = piece
        begun = self.pending.pop(stream, None)
        if begun:
            # joined in place: a line of many pieces costs no more than its length
            moment, line, length = begun
            line += data[: max(0, LONGEST - len(line))]
            length += len(data)
        else:
            line, length = bytearray(data[:LONGEST]), len(data)
        if more:
            self.pending[stream] = (moment, line, length)
            return None
        return moment, bytes(line), length

    def rest(self):
        """Return the lines whose end was never written."""
        lines = [
            (moment, bytes(line), length)
            for dummy, (moment, line, length) in sorted(self.pending.items())
        ]
        self.pending = {}
        return lines


def unusable(pattern):
    """Return why a text is no regular expression, in one line; None when it is one."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return files.one_line(error)
    return None


class LineFilter:
    """A filter of lines: it keeps those that hold a needle or match the pattern.

    It keeps all lines where neither is given.
    """

    def __init__(self, needles=(), pattern=None):
        self.needles = [needle.encode("utf-8", "replace") for needle in needles or ()]
        self.pattern = re.compile(pattern) if pattern else None

    def __call__(self, raw):
        """Return whether a line is wanted."""
        if not self.needles and self.pattern is None:
            return True
        if any(needle in raw for needle in self.needles):
            return True
        return (
            self.pattern is not None
            and self.pattern.search(raw.decode("utf-8", "replace")) is not None
        )


class Cleaner:
    """A filter of secrets for the lines of one source, which it has to see all and in order.

    A private key may span many lines.
    """

    def __init__(self):
        self.left = 0

    def within_key(self, raw):
        """Return whether this line continues a private key that an earlier one began."""
        if self.left and HEADER.match(raw):
            self.left = 0
        within = self.left > 0
        begin, end = raw.rfind(BEGIN), raw.rfind(END)
        if begin > end and KEY in raw[begin:]:
            self.left = MAX_KEY_LINES
        elif within:
            self.left = 0 if end >= 0 else self.left - 1
        return within

    def clean(self, raw, within):
        """Return the same line, every secret in it replaced by as many asterisks."""
        if within:
            end = raw.find(END)
            end = len(raw) if end < 0 else end
            return b"*" * end + raw[end:]
        raw = files.masked(raw)[0]
        for pattern in (AUTHORIZATION, USERINFO, PEM_LINE):
            raw = pattern.sub(_starred, raw)
        return raw


def _starred(match):
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match.group()[:start] + b"*" * (end - start) + match.group()[end:]


def cut(raw, length, limit):
    """Return the text of a line of so many bytes, of which raw is the beginning.

    A line beyond the limit in bytes is cut, and its text ends in a note of that.
    """
    if length <= limit:
        return raw.decode("utf-8", "replace")
    end = min(limit, len(raw))
    while 0 < end < len(raw) and raw[end] & 0xC0 == 0x80:  # never within a character
        end -= 1
    text = raw[:end].decode("utf-8", "replace")
    return f"{text}\u2026 [{counted(length - end, 'more byte')}]"


def ends(raw, length, limit):
    """Return the text of a line of so many bytes; of one beyond the limit both of its ends.

    raw: the line, or its beginning where that is all there is: then its end is a note of that.
    """
    if length <= limit or length > len(raw):
        return cut(raw, length, limit)
    first, last = limit // 2, length - (limit - limit // 2)
    while first > 0 and raw[first] & 0xC0 == 0x80:  # never within a character
        first -= 1
    while last < length and raw[last] & 0xC0 == 0x80:
        last += 1
    begun, ended = [part.decode("utf-8", "replace") for part in (raw[:first], raw[last:])]
    return f"{begun}\u2026 [{counted(last - first, 'byte')}] \u2026{ended}"
