# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits.conf and limits.d, read as pam_limits reads them. Pure.

Only sessions that PAM opens get these limits; services have theirs from systemd. Fields are those
that sscanf("%s%s%s%s") takes, as in the versions of RHEL 7 to 9, Debian 12 and Ubuntu 22.04: no
quoting, and what stands behind the value is passed over.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..evidence.answers.file_record import FileRecord
from . import conf_lines

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d"
LIMITS = frozenset(
    {
        "core",
        "data",
        "fsize",
        "memlock",
        "nofile",
        "rss",
        "stack",
        "cpu",
        "nproc",
        "as",
        "locks",
        "sigpending",
        "msgqueue",
        "rtprio",
    }
)
LOGINS = frozenset({"maxlogins", "maxsyslogins"})
SIGNED = frozenset({"priority", "nice"})
OTHERS = frozenset({"nonewprivs", "chroot"})  # chroot is Debian's
FILES = 64  # that are kept once taken apart: nodes of one cluster mostly have the same
UNLIMITED = ("-1", "-", "unlimited", "infinity")
MOST = (1 << 64) - 1  # RLIM_INFINITY
_WORD = re.compile(r"[^ \t\n\v\f\r]+")
_NUMBER = re.compile(r"([+-]?)0*([0-9]+)")
_RANGE = re.compile(r"([0-9]{0,10}):([0-9]{0,10})\Z")


@dataclass(frozen=True)
class Entry:
    """Line of limits.conf.

    kind: soft, hard or - for both
    number: the limit, -1 without one, None where the value is no number

    An entry without an item exempts its domain from all limits: `root -`.
    """

    domain: str
    kind: str
    item: str
    value: str
    number: int | None
    path: str
    line: int


def entries(files: Iterable[FileRecord]) -> list[Entry]:
    """Return every valid line in the order of pam_limits.

    The last entry of a domain's item counts.
    """
    valid: list[Entry] = []
    for file in _read(files):
        if file.text is not None:
            valid += _entries(file.path, file.text)
    return valid


@functools.lru_cache(FILES)
def _entries(path: str, content: str) -> tuple[Entry, ...]:
    rows = (
        (position, _WORD.findall(text.partition("#")[0]))
        for position, text in conf_lines.numbered(content)
    )
    return tuple(
        _entry(words, path, position) for position, words in rows if words and _is_valid(words)
    )


def unreadable(files: Iterable[FileRecord]) -> list[tuple[str, str]]:
    """Return (path, reason) of each file that counts and is not wholly known."""
    rows = ((file.path, conf_lines.why_unread(file)) for file in _read(files))
    return [(path, reason) for path, reason in rows if reason is not None]


def _bounds(text: str) -> tuple[int, int | None] | None:
    """Return the ids of min:max, min: and :max, which is that id alone; None for no range."""
    match = _RANGE.match(text)
    if not match or match.groups() == ("", ""):
        return None
    low, high = match.groups()
    if not high:
        return int(low), None
    return int(low or high), int(high)


def _read(files: Iterable[FileRecord]) -> list[FileRecord]:
    """Return limits.conf, then limits.d by name.

    glob("*.conf") skips names that begin with a dot.
    """
    first, drop_ins = [], []
    for file in conf_lines.usable(files):
        folder, name = posixpath.split(file.path)
        if file.path == CONF:
            first.append(file)
        elif folder == FOLDER and name.endswith(".conf") and not name.startswith("."):
            drop_ins.append(file)
    return first + sorted(drop_ins, key=lambda file: file.path)


def _entry(words: Sequence[str], path: str, position: int) -> Entry:
    if len(words) == 2:
        return Entry(words[0], "-", "", "", None, path, position)
    kind, item = words[1].lower(), words[2].lower()
    if kind not in ("soft", "hard"):
        kind = "-"
    number = _number(item, words[3].lower())
    return Entry(words[0], kind, item, words[3], number, path, position)


def _is_valid(words: Sequence[str]) -> bool:
    """Return whether pam_limits takes the line; it reports others in the journal only."""
    domain = words[0]
    if not _is_domain(domain):
        return False
    if len(words) == 2 and words[1].startswith("-"):
        return domain != "*" and domain[0] != "%"  # neither exempts any user
    if len(words) < 4:
        return False
    kind, item = words[1].lower(), words[2].lower()
    if not _is_kind(kind, item):
        return False
    if domain[0] == "%" and not _is_for_group_logins(domain, item):
        return False
    return item == "chroot" or _number(item, words[3].lower()) is not None


def _is_domain(domain: str) -> bool:
    return ":" not in domain or _domain_bounds(domain) is not None


def _is_for_group_logins(domain: str, item: str) -> bool:
    return item == "maxlogins" and (_domain_bounds(domain) is None or domain.startswith("%:"))


def _domain_bounds(domain: str) -> tuple[int, int | None] | None:
    if domain[0] in "@%":
        return _bounds(domain[1:])
    return _bounds(domain)


def _is_kind(kind: str, item: str) -> bool:
    if item not in LIMITS | LOGINS | SIGNED | OTHERS:
        return False
    return kind in ("soft", "hard", "-") or item in LOGINS or item == "nonewprivs"


def _number(item: str, value: str) -> int | None:
    """Parse a value as strtoull does, as strtol for signed items: text behind digits is ignored."""
    if item == "chroot":
        return None
    if item == "nonewprivs":
        return {"0": 0, "1": 1}.get(value)
    if item not in SIGNED and value in UNLIMITED:
        return -1
    match = _NUMBER.match(value)
    if not match:
        return None
    # int() refuses thousands of digits; 21 are beyond 64 bits already
    size, negative = int(match.group(2)[:21]), match.group(1) == "-"
    if item in SIGNED or item in LOGINS:
        return _signed(min(size, (1 << 31) - 1), negative)
    if size >= MOST:
        return -1
    return _signed(size, negative) % (MOST + 1)


def _signed(size: int, negative: bool) -> int:
    if negative:
        return -size
    return size
