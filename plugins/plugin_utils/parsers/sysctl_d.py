# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel settings that a machine will have, from its sysctl.d files. Pure.

Two programs read the same files and differ: systemd-sysctl at boot, `sysctl --system` of procps by
hand. This follows systemd 246 and procps 3.3.17, in which globs came. Older ones know none (RHEL 7
and 8) and write the other lines alike, except that procps before 3.3.17 let a file in /run mask its
namesake in /etc. systemd has not read /etc/sysctl.conf since 207: distributions link to it from
/etc/sysctl.d/99-sysctl.conf.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...module_utils.shared import sysctl
from ..evidence import memoize
from ..evidence.answers.file_record import FileRecord
from . import conf_lines

FOLDERS = sysctl.SYSCTL
CONF = "/etc/sysctl.conf"
BLANKS = " \t\r\n\v\f"
# that are kept once taken apart: nodes of one cluster mostly have the same files
FILES, KINDS = 128, 64
MAX_KEY = 512  # a longer one is no key: a hostile glob costs time
_SWAPPED = str.maketrans("./", "/.")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\Z")

Place = tuple[str, int, str]
_Content = tuple[str, str | None, str]  # path, where a link leads, text


@dataclass(frozen=True)
class Setting:
    """Value of a key and the line that decides it.

    path: the file as it lies in its directory; real: where it leads when it is a link, and so what
    to edit. overrides: (path, line, value) of the assignments that lose to it, as they are read. An
    explicit one beats every glob, so one of them may stand further down. who: what sets it after
    the files of sysctl.d are read (plugin_utils/parsers/sysctl_overrides.py).
    """

    key: str
    value: str
    path: str
    line: int
    real: str | None = None
    overrides: tuple[Place, ...] = ()
    who: str = ""


@dataclass(frozen=True)
class _Line:
    """A line of a file of sysctl.d.

    key: its key as a path below /proc/sys
    value: its value, None for a line that only keeps globs off its key
    """

    key: str
    value: str | None
    path: str
    number: int
    real: str | None

    @property
    def place(self) -> tuple[str, int]:
        """Return (path to edit, number)."""
        return self.real or self.path, self.number


def canonical(key: str) -> str:
    """Return a key with dots: net.ipv4.conf.a/1.forwarding for net/ipv4/conf/a.1/forwarding."""
    return _proc_path(key).translate(_SWAPPED)


def at_boot(files: Iterable[FileRecord], keys: Iterable[str]) -> dict[str, Setting]:
    """Return what systemd-sysctl sets of these keys, by their canonical names."""
    return dict(_settings(_contents(_booted(files)), tuple(keys), _systemd))


def by_hand(files: Iterable[FileRecord], keys: Iterable[str]) -> dict[str, Setting]:
    """Return what `sysctl --system` sets of these keys, by their canonical names."""
    return dict(_settings(_contents(_by_hand(files)), tuple(keys), _procps))


def of_file(file: FileRecord, keys: Iterable[str]) -> dict[str, Setting]:
    """Return what `sysctl -p` sets of these keys by this file alone, by their canonical names."""
    return dict(_settings(_contents([file]), tuple(keys), _procps))


def excluding(files: Iterable[FileRecord], key: str) -> str | None:
    """Return path:line of the last line that keeps systemd-sysctl from setting this key, or None.

    The path is the one that an operator edits.
    """
    path = _proc_path(key)
    lines = [line for content in _contents(_booted(files)) for line in _parsed(*content)]
    exclusions = [line for line in lines if line.key == path and line.value is None]
    if not exclusions:
        return None
    return "{}:{}".format(*exclusions[-1].place)


def unreadable(files: Iterable[FileRecord]) -> list[tuple[str, str]]:
    """Return (path, reason) of each file that counts and is not wholly known.

    What such a file sets is unknown. A masked file does not count.
    """
    rows = ((file.path, conf_lines.why_unread(file)) for file in _by_hand(files))
    return [(path, reason) for path, reason in rows if reason is not None]


def number(text: str | None) -> int | None:
    """Parse a value of one whole number as the kernel does (proc_dointvec); return None otherwise.

    The kernel takes base 0, at most 20 characters and 64 bits. 08 and 0x are nothing to it, nor are
    +1 and 1e6; 010 is eight.
    """
    if text is None or len(text) >= 200:
        return None
    digits = text.strip(BLANKS)
    if len(digits) > 20 or not _NUMBER.match(digits):
        return None
    plain = digits.removeprefix("-")
    value = int(plain, _base(plain))
    if value >= 1 << 64:
        return None
    if plain != digits:
        return -value
    return value


def _base(digits: str) -> int:
    if digits[:2] in ("0x", "0X"):
        return 16
    if digits[0] == "0":
        return 8
    return 10


def _proc_path(key: str) -> str:
    """Return a key as a path below /proc/sys.

    The first separator decides: after a dot, dots and slashes change places.
    """
    path = key.strip(BLANKS)
    first = re.search("[./]", path)
    if first and first.group() == ".":
        path = path.translate(_SWAPPED)
    return "/".join(part for part in path.split("/") if part)


@memoize.last
def _booted(files: Iterable[FileRecord]) -> list[FileRecord]:
    return _chosen(files, hidden=False)


@memoize.last
def _by_hand(files: Iterable[FileRecord]) -> list[FileRecord]:
    return _chosen(files, hidden=True) + [
        file for file in conf_lines.usable(files) if file.path == CONF
    ]


def _chosen(files: Iterable[FileRecord], hidden: bool) -> list[FileRecord]:
    """Return the files that are read, in that order.

    The first directory that has a name decides, whatever it is there. systemd skips names that
    begin with a dot, procps does not.
    """
    named: dict[str, tuple[int, FileRecord]] = {}
    for file in conf_lines.usable(files):
        folder, name = posixpath.split(file.path)
        if folder not in FOLDERS or not _is_conf(name, hidden):
            continue
        rank = FOLDERS.index(folder)
        if name not in named or rank < named[name][0]:
            named[name] = rank, file
    return [named[name][1] for name in sorted(named)]


def _contents(files: Iterable[FileRecord]) -> tuple[_Content, ...]:
    """Return what decides of these files, without the times and sizes that differ between nodes."""
    return tuple(
        (file.path, conf_lines.target(file), file.text) for file in files if file.text is not None
    )


def _is_conf(name: str, hidden: bool) -> bool:
    return name.endswith(".conf") and (hidden or not name.startswith("."))


@functools.lru_cache(FILES)
def _parsed(path: str, real: str | None, content: str) -> tuple[_Line, ...]:
    """Return the assignments of a file and the keys that it excludes.

    Other lines are skipped, as both programs do.
    """
    lines = (
        _line(text.strip(BLANKS), path, position, real)
        for position, text in conf_lines.numbered(content)
    )
    return tuple(line for line in lines if line is not None)


_Program = Callable[[list[_Line]], Callable[[str], _Line | None]]


def _is_glob(path: str) -> bool:
    return any(char in path for char in "*?[")


def _line(text: str, path: str, position: int, real: str | None) -> _Line | None:
    if not text or text[0] in "#;":
        return None
    key, equals, value = text.partition("=")
    if len(key) > MAX_KEY or not (equals or key.startswith("-")):
        return None
    name = _proc_path(key.removeprefix("-"))
    if not name:
        return None
    if not equals:
        return _Line(name, None, path, position, real)
    return _Line(name, value.strip(BLANKS), path, position, real)


def _fits(path: str, glob: str) -> bool:
    """Return whether fnmatch() with C's [^…] as well matches.

    A range such as [z-a], which is an error to Python 3.10, matches nothing.
    """
    try:
        return fnmatchcase(path, glob.replace("[^", "[!"))
    except re.error:
        return False


def _touches(line: _Line, path: str) -> bool:
    """Return whether the line names the path, itself or by a glob.

    As in glob(), no wildcard takes a slash.
    """
    if line.key == path or not _is_glob(line.key):
        return line.key == path
    parts, globs = path.split("/"), line.key.split("/")
    return len(parts) == len(globs) and all(map(_fits, parts, globs))


def _systemd(lines: list[_Line]) -> Callable[[str], _Line | None]:
    """Return the function that finds the line which decides or excludes a path.

    A key that is assigned another value moves to the end, one that is given the same again stays
    where it was.
    """
    options: dict[str, _Line] = {}
    for line in lines:
        if line.key in options and options[line.key].value != line.value:
            del options[line.key]
        options[line.key] = line
    globs = [line for line in options.values() if _is_glob(line.key) and line.value is not None]

    def deciding(path: str) -> _Line | None:
        if path in options:
            return options[path]
        return next((line for line in reversed(globs) if _touches(line, path)), None)

    return deciding


def _procps(lines: list[_Line]) -> Callable[[str], _Line | None]:
    """Return the function that finds the line which decides a path.

    An exclusion keeps only globs off its key. One with wildcards keeps off nothing (4.0.2, later
    ones heed them).
    """
    latest: dict[str, _Line] = {line.key: line for line in lines if line.value is not None}
    globs = [line for line in lines if _is_glob(line.key) and line.value is not None]
    excluded = {line.key for line in lines if line.value is None}

    def deciding(path: str) -> _Line | None:
        if path in latest or path in excluded:
            return latest.get(path)
        return next((line for line in reversed(globs) if _touches(line, path)), None)

    return deciding


@functools.lru_cache(KINDS)
def _settings(
    files: tuple[_Content, ...], keys: tuple[str, ...], program: _Program
) -> Mapping[str, Setting]:
    lines = [line for file in files for line in _parsed(*file)]
    deciding = program(lines)
    settings: dict[str, Setting] = {}
    for key in keys:
        path, name = _proc_path(key), canonical(key)
        best = deciding(path)
        if best is None or best.value is None:
            continue
        beaten = _beaten(lines, best, path)
        settings[name] = Setting(name, best.value, best.path, best.number, best.real, beaten)
    return settings


def _beaten(lines: Iterable[_Line], best: _Line, path: str) -> tuple[Place, ...]:
    """Return the assignments that lose to a line.

    By hand, /etc/sysctl.conf is read twice if a link leads to it. A line does not beat itself.
    """
    return tuple(
        (line.path, line.number, line.value)
        for line in lines
        if line.value is not None and line.place != best.place and _touches(line, path)
    )
