# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: limits.conf and limits.d, read as pam_limits reads them. Pure.

Only sessions that PAM opens get these limits; services have theirs from systemd. Fields are those that sscanf("%s%s%s%s") takes, as in the
versions of RHEL 7 to 9, Debian 12 and Ubuntu 22.04: no quoting, and what stands behind the value is passed over.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils import conf_lines

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d"
LIMITS = frozenset({"core", "data", "fsize", "memlock", "nofile", "rss", "stack", "cpu", "nproc", "as", "locks", "sigpending", "msgqueue", "rtprio"})
LOGINS = frozenset({"maxlogins", "maxsyslogins"})
SIGNED = frozenset({"priority", "nice"})
OTHERS = frozenset({"nonewprivs", "chroot"})  # chroot is Debian's
UNLIMITED = ("-1", "-", "unlimited", "infinity")
MOST = (1 << 64) - 1  # RLIM_INFINITY
_WORD = re.compile(r"[^ \t\n\v\f\r]+")
_NUMBER = re.compile(r"([+-]?)0*([0-9]+)")
_RANGE = re.compile(r"([0-9]{0,10}):([0-9]{0,10})\Z")
USER, GROUP, LOGIN_GROUP, EVERYBODY = 0, 1, 2, 3  # what is lower beats what is higher


@dataclass(frozen=True)
class Entry:
    """One line. kind: soft, hard or - for both. number: -1 without a limit, None where the value is none.

    An entry without an item exempts its domain from all limits: `root -`.
    """

    domain: str
    kind: str
    item: str
    value: str
    number: int | None
    path: str
    line: int


def entries(records: Any) -> list[Entry]:
    """Every valid line, in the order in which pam_limits reads them."""
    return [found for found, _why in _scanned(records) if isinstance(found, Entry)]


def malformed(records: Any) -> list[tuple[str, int, str]]:
    """(path, line, why) of each line that pam_limits passes over."""
    return [(*found, why) for found, why in _scanned(records) if isinstance(found, tuple)]


def unreadable(records: Any) -> list[tuple[str, str]]:
    """(path, why) of each file that counts and is not wholly known."""
    found = ((record["path"], conf_lines.why_unread(record)) for record in _files(records))
    return [(path, why) for path, why in found if why is not None]


def for_user(found: Sequence[Entry], item: str, user: str, root: bool, wildcard_root: bool, *, uid: int | None = None,
             groups: Collection[str] = (), gids: Sequence[int] = ()) -> tuple[Entry | None, Entry | None]:
    """The entries that give a user the soft and the hard limit; None where none does.

    wildcard_root: `*` and groups hold for root as well, as upstream and on Red Hat; Debian and Ubuntu leave root out of them, though not out of
    ranges of uids, nor out of what exempts a group. Groups and ids that are not given match nothing. gids: the primary one first.
    """
    who = _User(user, 0 if root and uid is None else uid, frozenset(groups), tuple(gids))
    if any(not entry.item and who.rank(entry.domain) is not None for entry in found):
        return None, None
    unaffected = (GROUP, LOGIN_GROUP, EVERYBODY) if root and not wildcard_root else ()
    best: dict[str, tuple[int, Entry]] = {}
    for entry in found:
        rank = who.rank(entry.domain) if entry.item == item else None
        for kind in ("soft", "hard") if rank is not None and rank not in unaffected else ():
            if entry.kind in (kind, "-") and (kind not in best or rank <= best[kind][0]):
                best[kind] = rank, entry
    return best["soft"][1] if "soft" in best else None, best["hard"][1] if "hard" in best else None


def above(found: Iterable[Entry], item: str, ceiling: int) -> list[Entry]:
    """The entries of an item with a number above the ceiling. For nofile, no limit is above every ceiling: the kernel has none such.

    (pam_limits since 1.5.2 puts fs.nr_open in its place; number == -1 tells these apart.)
    """
    return [entry for entry in found if entry.item == item and entry.number is not None
            and (entry.number > ceiling or item == "nofile" and entry.number == -1)]


@dataclass(frozen=True)
class _User:
    name: str
    uid: int | None
    groups: frozenset[str]
    gids: tuple[int, ...]

    def rank(self, domain: str) -> int | None:
        """How near a domain is to the user; None when it is another's."""
        if domain == self.name:
            return USER
        if domain[0] in "@%" and domain != "%":
            return (GROUP if domain[0] == "@" else LOGIN_GROUP) if self._member(domain[1:]) else None
        if domain in ("*", "%"):
            return EVERYBODY
        bounds = _bounds(domain)
        return USER if bounds and self.uid is not None and _within(self.uid, bounds) else None

    def _member(self, group: str) -> bool:
        """One gid is looked for in all groups of the user, a range holds for the primary group only."""
        bounds = _bounds(group)
        if bounds is None:
            return group in self.groups
        return any(_within(gid, bounds) for gid in (self.gids if group.startswith(":") else self.gids[:1]))


def _bounds(text: str) -> tuple[int, int | None] | None:
    """min:max, min: and :max, which is that id alone; None for what is no range."""
    match = _RANGE.match(text)
    if not match or match.groups() == ("", ""):
        return None
    low, high = match.groups()
    return int(low or high), int(high) if high else None


def _within(number: int, bounds: tuple[int, int | None]) -> bool:
    return bounds[0] <= number and (bounds[1] is None or number <= bounds[1])


def _files(records: Any) -> list[Any]:
    """limits.conf, then limits.d by name; glob("*.conf") passes over names that begin with a dot."""
    first, others = [], []
    for record in conf_lines.usable(records):
        folder, name = posixpath.split(record["path"])
        if record["path"] == CONF:
            first.append(record)
        elif folder == FOLDER and name.endswith(".conf") and not name.startswith("."):
            others.append(record)
    return first + sorted(others, key=lambda record: record["path"])


def _scanned(records: Any) -> Iterator[tuple[Entry | tuple[str, int], str]]:
    """(entry, "") or (its place, why it is none) for each line with anything on it."""
    for record in _files(records):
        for position, text in conf_lines.lines(record):
            words = _WORD.findall(text.partition("#")[0])
            if not words:
                continue
            why = _fault(words)
            if why:
                yield (record["path"], position), why
            else:
                yield _entry(words, record["path"], position), ""


def _entry(words: Sequence[str], path: str, position: int) -> Entry:
    if len(words) == 2:
        return Entry(words[0], "-", "", "", None, path, position)
    kind, item = words[1].lower(), words[2].lower()
    return Entry(words[0], kind if kind in ("soft", "hard") else "-", item, words[3], _number(item, words[3].lower()), path, position)


def _fault(words: Sequence[str]) -> str:
    """Why pam_limits passes over a line; empty for a valid one."""
    domain = words[0]
    group = domain[0] in "@%"
    bounds = _bounds(domain[1:] if group else domain)
    if ":" in domain and bounds is None:
        return "no range of ids"
    if len(words) == 2 and words[1].startswith("-"):
        return "exempts nobody: not a user, a group or a range" if domain == "*" or domain[0] == "%" else ""
    if len(words) < 4:
        return "fewer than four fields"
    kind, item = words[1].lower(), words[2].lower()
    if item not in LIMITS | LOGINS | SIGNED | OTHERS:
        return "unknown item"
    if kind not in ("soft", "hard", "-") and item not in LOGINS and item != "nonewprivs":
        return "unknown type"
    if domain[0] == "%" and (item != "maxlogins" or bounds is not None and not domain.startswith("%:")):
        return "% is for maxlogins, of everybody, a group or one gid"
    return "" if item == "chroot" or _number(item, words[3].lower()) is not None else "no number"


def _number(item: str, value: str) -> int | None:
    """strtoull, strtol for what may be negative: digits in front count, whatever follows them."""
    if item == "chroot":
        return None
    if item == "nonewprivs":
        return {"0": 0, "1": 1}.get(value)
    if item not in SIGNED and value in UNLIMITED:
        return -1
    match = _NUMBER.match(value)
    if not match:
        return None
    size = int(match.group(2)[:21])  # int() refuses thousands of digits; 21 are beyond 64 bits already
    if item in SIGNED or item in LOGINS:
        size = min(size, (1 << 31) - 1)
        return -size if match.group(1) == "-" else size
    if size >= MOST:
        return -1
    return (MOST + 1 - size) % (MOST + 1) if match.group(1) == "-" else size
