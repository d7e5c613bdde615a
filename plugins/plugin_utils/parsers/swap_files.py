# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names swap on a node, taken apart.

/proc/swaps, fstab, systemd's units, the kernel's command line, zram's files. Pure.

Nothing that is read is trusted: a line that is no line of its kind is kept as what it is, and
nothing raises. What is not known is None, never empty.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import systemd_output
from ..evidence.answers.file_record import FileRecord
from . import conf_lines

FSTAB = "/etc/fstab"
MAX_TEXT = 256 * 1024  # a command line has 4 KiB, /proc/swaps about 30 lines
MAX_UNITS = 1000
TAGS = {
    "UUID": "by-uuid",
    "LABEL": "by-label",
    "PARTUUID": "by-partuuid",
    "PARTLABEL": "by-partlabel",
}
_ESCAPE = re.compile(r"\\(040|011|012|134|\\)")
_WORD = re.compile(r'(?:"[^"]*(?:"|\Z)|[^\s"])+')
_ZRAM = re.compile(r"zram[0-9]{1,9}\Z")
_ZERO = re.compile(r"\+?0+(?:\.0*)?\Z")


@dataclass(frozen=True)
class Active:
    """Line of /proc/swaps.

    kind: partition, file, or the word in its place

    Sizes are None where they are no numbers. A deleted file still holds pages.
    """

    path: str
    kind: str
    size_kib: int | None
    used_kib: int | None
    deleted: bool = False

    @property
    def zram(self) -> bool:
        """Return whether it is memory itself, compressed."""
        return bool(_ZRAM.match(posixpath.basename(self.path))) and self.path.startswith("/dev/")


@dataclass(frozen=True)
class Line:
    """Swap line of fstab.

    what: as written, unescaped
    device: the path that systemd derives
    """

    path: str
    line: int
    what: str
    device: str
    options: tuple[str, ...]
    text: str

    @property
    def noauto(self) -> bool:
        """Return whether no boot activates it; the last of auto and noauto counts."""
        options = [option for option in self.options if option in ("auto", "noauto")]
        return options[-1:] == ["noauto"]


@dataclass(frozen=True)
class Unit:
    """Properties of a systemd unit.

    wanted: the units that want it, None where they were not queried
    """

    name: str
    what: str = ""
    load: str = ""
    state: str = ""
    active: str = ""
    fragment: str = ""
    source: str = ""
    following: str = ""
    wanted: tuple[str, ...] | None = None

    @property
    def masked(self) -> bool:
        """Return whether it is masked on the disk; a mask under /run is gone with the next boot."""
        return (
            "masked" in (self.load, self.state)
            and self.state != "masked-runtime"
            and not self.fragment.startswith("/run/")
        )


@dataclass(frozen=True)
class Zram:
    """Section of zram-generator's configuration.

    swap: None where the file does not decide, as with a limit of the host's memory.
    """

    name: str
    path: str
    line: int
    swap: bool | None


def active(text: str | None) -> list[Active] | None:
    """Return the lines of /proc/swaps below its headline, None if they are not known.

    The kubelet counts lines, so that one that is no swap's counts too.
    """
    if text is None or len(text) > MAX_TEXT:
        return None
    lines = text.strip().split("\n")
    if lines == [""]:
        return []
    if not lines[0].startswith("Filename"):
        return None
    return [_active(line) for line in lines[1:]]


def _active(line: str) -> Active:
    words = [*re.split(r"[ \t]+", line.strip(" \t\r")), "", "", ""]
    path = unescaped(words[0])
    return Active(
        path.removesuffix(" (deleted)"),
        words[1],
        _number(words[2]),
        _number(words[3]),
        path.endswith(" (deleted)"),
    )


def _number(word: str) -> int | None:
    if re.fullmatch(r"[0-9]{1,18}|-0{1,18}", word):
        return int(word)
    return None


def unescaped(text: str) -> str:
    r"""Return a field of /proc or fstab without its escapes: \040 is a blank.

    getmntent() knows no other escapes than blanks and the backslash.
    """
    return _ESCAPE.sub(_unescaped_char, text)


def _unescaped_char(match: re.Match[str]) -> str:
    if match.group(1) == "\\":
        return "\\"
    return chr(int(match.group(1), 8))


def fstab(file: FileRecord | None) -> tuple[list[Line], list[tuple[int, str]], str | None]:
    """Return (swap lines, (line, why) of what systemd cannot read, why not all of it is known).

    getmntent() wants three fields and knows no comments behind them.
    """
    if file is None or not conf_lines.usable([file]):
        return [], [], "it was not read"
    swaps: list[Line] = []
    bad: list[tuple[int, str]] = []
    for number, text in conf_lines.lines(file):
        fields = [unescaped(field) for field in re.split(r"[ \t]+", text.strip(" \t")) if field]
        if not fields or fields[0].startswith("#"):
            continue
        problem = _line_problem(fields)
        if problem:
            bad.append((number, problem))
        elif fields[2:3] == ["swap"]:
            swaps.append(_swap_line(file.path, number, fields, text))
    return swaps, bad, _fstab_problem(file)


def _line_problem(fields: Sequence[str]) -> str:
    """Return why systemd cannot read a line of fstab, empty where it can or no swap is meant."""
    if fields[0] == "\r" and len(fields) < 3:
        return ""
    if len(fields) < 3:
        return "fewer than three fields"
    if fields[2] == "swap":
        if node(fields[0]):
            return ""
        return "it names no device"
    if fields[2].rstrip("\r") == "swap":
        return "a carriage return ends its type"
    return ""


def _swap_line(path: str, number: int, fields: Sequence[str], text: str) -> Line:
    options: tuple[str, ...] = ()
    if len(fields) > 3:
        options = tuple(fields[3].rstrip("\r").split(","))
    return Line(path, number, fields[0], node(fields[0]), options, text.strip())


def _fstab_problem(file: FileRecord) -> str | None:
    """Return why not all of fstab is known. A host without the file is known to have no line."""
    reason = conf_lines.why_unread(file)
    if reason or file.text is not None or file.error == "missing":
        return reason
    return "it is no regular file"


def node(spec: str) -> str:
    """Return the path of a device or file, also of UUID=… and LABEL=…, as udev spells it.

    It is empty for what is none.
    """
    tag, equals, value = spec.partition("=")
    if equals and tag in TAGS:
        return _tagged(TAGS[tag], _without_quotes(value))
    if spec.startswith("/") and spec.strip("/"):
        return posixpath.normpath(spec.replace("//", "/"))
    return ""


def _tagged(directory: str, value: str) -> str:
    if not value:
        return ""
    return f"/dev/disk/{directory}/{''.join(map(_udev_char, value))}"


def _without_quotes(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _udev_char(char: str) -> str:
    if char.isalnum() or char in "#+-.:=@_":
        return char
    return _hexed(char)


def unit_name(path: str) -> str:
    """Return the unit of a swap path, as `systemd-escape --path --suffix=swap` does."""
    plain = posixpath.normpath(path).strip("/")
    return "".join(_unit_char(char, not at) for at, char in enumerate(plain)) + ".swap"


def _unit_char(char: str, is_first: bool) -> str:
    if char == "/":
        return "-"
    if char == "." and is_first:
        return _hexed(char)
    if (char.isascii() and char.isalnum()) or char in ":_.":
        return char
    return _hexed(char)


def _hexed(char: str) -> str:
    errors = "replace"
    if "\udc80" <= char <= "\udcff":
        errors = "surrogateescape"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", errors))


def units(shown: Any) -> list[Unit] | None:
    """Return the units of `systemctl show`: of its text, or of its blocks as mappings.

    The first block of a name counts.
    """
    if isinstance(shown, str):
        if len(shown) > 4 * MAX_TEXT:
            return None
        shown = systemd_output.parse(shown)
    if not isinstance(shown, Sequence) or isinstance(shown, bytes) or len(shown) > MAX_UNITS:
        return None
    by_name: dict[str, Unit] = {}
    for block in shown:
        unit = _unit(block)
        if unit is not None:
            by_name.setdefault(unit.name, unit)
    return list(by_name.values())


def _unit(block: Any) -> Unit | None:
    if not isinstance(block, Mapping):
        return None
    name = _value(block, "Id")
    if not name:
        return None
    return Unit(
        name,
        _value(block, "What"),
        _value(block, "LoadState"),
        _value(block, "UnitFileState"),
        _value(block, "ActiveState"),
        _value(block, "FragmentPath"),
        _value(block, "SourcePath"),
        _value(block, "Following"),
        _wanted(block),
    )


def _wanted(block: Mapping[str, Any]) -> tuple[str, ...] | None:
    keys = [key for key in ("WantedBy", "RequiredBy") if key in block]
    if not keys:
        return None
    return tuple(word for key in keys for word in _value(block, key).split())


def _value(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    if isinstance(value, (list, tuple)):
        value = next(reversed(value), "")
    if isinstance(value, str) and len(value) <= conf_lines.MAX_PATH:
        return value
    return ""


def words(cmdline: str | None) -> list[tuple[str, str | None]] | None:
    """Return (key, value) of each word of the kernel's command line, None if it is not known.

    - and _ are alike in keys, as systemd has it.
    """
    if cmdline is None or not cmdline.strip() or len(cmdline) > MAX_TEXT:
        return None
    return [_word(word.replace('"', "")) for word in _WORD.findall(cmdline)]


def _word(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    key = key.replace("-", "_")
    if not equals:
        return key, None
    return key, value


def switch(line: Iterable[tuple[str, str | None]], key: str) -> bool | None:
    """Return the last boolean that the command line gives to a key, or None.

    The key alone is a yes.
    """
    switches = {**dict.fromkeys(conf_lines.YES, True), **dict.fromkeys(conf_lines.NO, False)}
    last = None
    for name, value in line:
        if name == key and value is None:
            last = True
        elif name == key:
            last = switches.get(str(value).lower(), last)
    return last


def zram(records: Iterable[FileRecord]) -> tuple[list[Zram], list[tuple[str, str]]]:
    """Return (devices that zram-generator will make after a boot, (path, why) of unread files).

    Files in /run are gone by then.
    """
    files = _zram_files(records)
    sections: dict[str, dict[str, Any]] = {}
    for name in sorted(files):
        _sections(files[name], sections)
    devices = [
        Zram(name, section["path"], section["line"], _is_swap(section))
        for name, section in sections.items()
    ]
    reasons = [(file.path, conf_lines.why_unread(file)) for file in files.values()]
    return devices, [(path, reason) for path, reason in reasons if reason]


def _zram_files(records: Iterable[FileRecord]) -> dict[str, FileRecord]:
    """Return the files that count by their names; the main file has an empty one."""
    ranked: dict[str, tuple[int, FileRecord]] = {}
    for file in records:
        place = _zram_place(file.path)
        if place is None or file.error == "missing":
            continue
        rank, name = place
        if name not in ranked or rank < ranked[name][0]:
            ranked[name] = rank, file
    return {name: file for name, (_rank, file) in ranked.items()}


def _zram_place(path: str) -> tuple[int, str] | None:
    directory, name = posixpath.split(path)
    for rank, root in enumerate(("/etc", "/usr/local/lib", "/usr/lib", "/lib")):
        main = f"{root}/systemd/zram-generator.conf"
        if path == main:
            return rank, ""
        if directory == f"{main}.d" and name.endswith(".conf"):
            return rank, name
    return None


def _sections(file: FileRecord, sections: dict[str, dict[str, Any]]) -> None:
    """Add what a file says to the sections found so far.

    The place is that of the first file that names the device.
    """
    current: dict[str, Any] | None = None
    for number, line in conf_lines.lines(file):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            name, current = text[1:-1].strip(), None
            if _ZRAM.match(name):
                current = sections.setdefault(name, {"path": file.path, "line": number})
        elif current is not None and "=" in text and text[0] not in "#;":
            key, _equals, value = text.partition("=")
            if key.strip() not in ("path", "line"):
                current[key.strip()] = value.strip()


def _is_swap(section: Mapping[str, Any]) -> bool | None:
    kind = "swap"
    if section.get("mount-point"):
        kind = "ext2"
    if section.get("fs-type", kind) != "swap" or _ZERO.match(section.get("zram-size", "")):
        return False
    limit = section.get("host-memory-limit", section.get("memory-limit", "none"))
    if limit != "none" or "zram-fraction" in section or "max-zram-size" in section:
        return None
    return True
