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
    """A line of /proc/swaps. kind: partition, file, or what stands there.

    Numbers None where they are none. A deleted file still holds pages.
    """

    path: str
    kind: str
    size_kib: int | None
    used_kib: int | None
    priority: int | None
    deleted: bool = False

    @property
    def zram(self) -> bool:
        """Is it memory itself, compressed?"""
        return bool(_ZRAM.match(posixpath.basename(self.path))) and self.path.startswith("/dev/")


@dataclass(frozen=True)
class Line:
    """A swap line of fstab. what: as written, unescaped; device.

    The path that systemd makes of it.
    """

    path: str
    line: int
    what: str
    device: str
    options: tuple[str, ...]
    text: str

    @property
    def noauto(self) -> bool:
        """Nobody switches it on at boot; of auto and noauto the last counts."""
        told = [option for option in self.options if option in ("auto", "noauto")]
        return bool(told) and told[-1] == "noauto"

    @property
    def nofail(self) -> bool:
        """Does a boot without the device go on?"""
        told = [option for option in self.options if option in ("fail", "nofail")]
        return bool(told) and told[-1] == "nofail"


@dataclass(frozen=True)
class Unit:
    """What systemd says of a unit. wanted: None where nobody asked who pulls it in."""

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
        """Whether it is masked for good.

        A mask under /run is gone with the next boot, whatever systemd calls it now.
        """
        return (
            "masked" in (self.load, self.state)
            and self.state != "masked-runtime"
            and not self.fragment.startswith("/run/")
        )


@dataclass(frozen=True)
class Zram:
    """A section of zram-generator's configuration. swap.

    None where the file does not tell, as with a limit of the host's memory.
    """

    name: str
    path: str
    line: int
    swap: bool | None


def active(text: Any) -> list[Active] | None:
    """The lines of /proc/swaps below its headline.

    The kubelet counts lines, so that one that is no swap's counts too.
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return None
    lines = text.strip().split("\n")
    if not lines[0].startswith("Filename"):
        return [] if lines == [""] else None
    return [_active(line) for line in lines[1:]]


def _active(line: str) -> Active:
    words = re.split(r"[ \t]+", line.strip(" \t\r"))
    path = unescaped(words[0])
    deleted = path.endswith(" (deleted)")
    numbers = [_number(word) for word in (words[2:5] + [""] * 3)[:3]]
    size, used = (number if number is None or number >= 0 else None for number in numbers[:2])
    return Active(
        path[:-10] if deleted else path,
        words[1] if len(words) > 1 else "",
        size,
        used,
        numbers[2],
        deleted,
    )


def _number(word: str) -> int | None:
    return int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else None


def unescaped(text: str) -> str:
    """A blank is \\040 in /proc and in fstab, and getmntent() knows no more than blanks and the
    backslash.
    """
    return _ESCAPE.sub(
        lambda match: "\\" if match.group(1) == "\\" else chr(int(match.group(1), 8)), text
    )


def fstab(record: Any) -> tuple[list[Line], list[tuple[int, str]], str | None]:
    """(swap lines, (line, why) of what systemd cannot read, why not all of it is known).

    Getmntent() wants three fields and knows no more comments.
    """
    usable = conf_lines.usable([record])
    if not usable:
        return [], [], "it was not read"
    found: list[Line] = []
    bad: list[tuple[int, str]] = []
    record = usable[0]
    for number, text in conf_lines.lines(record):
        fields = [unescaped(field) for field in re.split(r"[ \t]+", text.strip(" \t")) if field]
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) < 3:
            if fields[0] != "\r":
                bad.append((number, "fewer than three fields"))
        elif fields[2] == "swap" and node(fields[0]):
            options = tuple(fields[3].rstrip("\r").split(",")) if len(fields) > 3 else ()
            found.append(
                Line(record["path"], number, fields[0], node(fields[0]), options, text.strip())
            )
        elif fields[2].rstrip("\r") == "swap":
            bad.append(
                (
                    number,
                    (
                        "a carriage return ends its type"
                        if fields[2] != "swap"
                        else "it names no device"
                    ),
                )
            )
    return found, bad, _fstab_problem(record)


def _fstab_problem(record: Mapping[str, Any]) -> str | None:
    """A machine without the file is known to have no line.

    Everything else that has no text is not known.
    """
    why = conf_lines.why_unread(record)
    return why or (
        None
        if isinstance(record.get("text"), str) or record.get("error") == "missing"
        else "it is no regular file"
    )


def node(what: str) -> str:
    """The path of a device or file, also of UUID=… and LABEL=…, as udev spells it.

    Empty for what is none.
    """
    tag, equals, value = what.partition("=")
    if equals and tag in TAGS:
        value = (
            value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
        )
        plain = "".join(
            char if char.isalnum() or char in "#+-.:=@_" else _hexed(char) for char in value
        )
        return f"/dev/disk/{TAGS[tag]}/{plain}" if plain else ""
    return (
        posixpath.normpath(what.replace("//", "/"))
        if what.startswith("/") and what.strip("/")
        else ""
    )


def unit_name(path: str) -> str:
    """The unit of a swap path, as `systemd-escape --path --suffix=swap` has it."""
    plain = posixpath.normpath(path).strip("/")
    parts = [
        (
            char
            if (char.isascii() and char.isalnum()) or char in ":_" or (char == "." and at)
            else "-"
            if char == "/"
            else _hexed(char)
        )
        for at, char in enumerate(plain)
    ]
    return "".join(parts) + ".swap"


def _hexed(char: str) -> str:
    return "".join(
        f"\\x{byte:02x}"
        for byte in char.encode(
            "utf-8", "surrogateescape" if "\udc80" <= char <= "\udcff" else "replace"
        )
    )


def units(shown: Any) -> list[Unit] | None:
    """The units of `systemctl show`: its text, or its blocks as mappings.

    The first block of a name stands.
    """
    if isinstance(shown, str):
        shown = systemd_output.parse(shown) if len(shown) <= 4 * MAX_TEXT else None
    if not isinstance(shown, Sequence) or isinstance(shown, bytes) or len(shown) > MAX_UNITS:
        return None
    found: dict[str, Unit] = {}
    for block in shown:
        name = _value(block, "Id") if isinstance(block, Mapping) else ""
        if name:
            names = [
                _value(block, key)
                for key in (
                    "What",
                    "LoadState",
                    "UnitFileState",
                    "ActiveState",
                    "FragmentPath",
                    "SourcePath",
                    "Following",
                )
            ]
            asked = [_value(block, key) for key in ("WantedBy", "RequiredBy") if key in block]
            found.setdefault(
                name,
                Unit(
                    name,
                    *names,
                    tuple(word for words in asked for word in words.split()) if asked else None,
                ),
            )
    return list(found.values())


def _value(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    if isinstance(value, (list, tuple)):
        value = value[-1] if value else ""
    return value if isinstance(value, str) and len(value) <= conf_lines.MAX_PATH else ""


def words(cmdline: Any) -> list[tuple[str, str | None]] | None:
    """(key, value) of each word of the kernel's command line, - and _ alike in keys as systemd
    has it; None where the line is not known.
    """
    if not isinstance(cmdline, str) or not cmdline.strip() or len(cmdline) > MAX_TEXT:
        return None
    split = (word.replace('"', "").partition("=") for word in _WORD.findall(cmdline))
    return [(key.replace("-", "_"), value if equals else None) for key, equals, value in split]


def switch(line: Iterable[tuple[str, str | None]], key: str) -> bool | None:
    """What a yes-or-no of the command line says, the last one that is one.

    Alone it is yes, None where nothing is said.
    """
    told = None
    for name, value in line:
        if name == key:
            text = "1" if value is None else value.lower()
            told = True if text in conf_lines.YES else False if text in conf_lines.NO else told
    return told


def zram(records: Iterable[Mapping[str, Any]]) -> tuple[list[Zram], list[tuple[str, str]]]:
    """(devices that zram-generator will make after a boot, (path, why) of files that are not
    wholly known). What lies in /run is gone by then.
    """
    named: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for record in records:
        for rank, folder in enumerate(("/etc", "/usr/local/lib", "/usr/lib", "/lib")):
            main = f"{folder}/systemd/zram-generator.conf"
            place, name = posixpath.split(record["path"])
            key = (
                ""
                if record["path"] == main
                else name
                if place == main + ".d" and name.endswith(".conf")
                else None
            )
            if (
                key is not None
                and record.get("error") != "missing"
                and (key not in named or rank < named[key][0])
            ):
                named[key] = rank, record
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(named):
        _sections(named[name][1], found)
    chosen = [record for _rank, record in named.values()]
    return (
        [Zram(name, own["path"], own["line"], _is_swap(own)) for name, own in found.items()],
        [
            (record["path"], why)
            for record in chosen
            for why in [conf_lines.why_unread(record)]
            if why
        ],
    )


def _sections(record: Mapping[str, Any], found: dict[str, dict[str, Any]]) -> None:
    """Add what a file says to the sections found so far.

    The place is that of the first that names the device.
    """
    current: dict[str, Any] | None = None
    for number, text in conf_lines.lines(record):
        text = text.strip()
        if text.startswith("[") and text.endswith("]"):
            name = text[1:-1].strip()
            current = (
                found.setdefault(name, {"path": record["path"], "line": number})
                if _ZRAM.match(name)
                else None
            )
        elif current is not None and "=" in text and text[0] not in "#;":
            key, _equals, value = text.partition("=")
            if key.strip() not in ("path", "line"):
                current[key.strip()] = value.strip()


def _is_swap(own: Mapping[str, Any]) -> bool | None:
    if own.get(
        "fs-type", "swap" if not own.get("mount-point") else "ext2"
    ) != "swap" or _ZERO.match(own.get("zram-size", "")):
        return False
    limit = own.get("host-memory-limit", own.get("memory-limit", "none"))
    return None if limit != "none" or "zram-fraction" in own or "max-zram-size" in own else True
