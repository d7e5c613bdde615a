# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle as an archive: packed reproducibly, and read again without trusting it.

Nothing is extracted: members are read in memory, and only what a bundle holds is taken. The module
tarfile would also understand links, sparse files and extended headers of any size. A hostile
archive needs them, and a bundle does not. Therefore only the plain header of ustar is read here,
and everything else is refused by name.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"\x1f\x8b"
SCHEMA = "kubemend.bundle/1"
FIRST, REPORT, FOLDER = "bundle.json", "report.json", "evidence/"
BLOCK, CHUNK = 512, 1024 * 1024
MAX_MEMBER, MAX_TOTAL, MAX_MEMBERS = 64 * 1024 * 1024, 4 * 1024 * 1024 * 1024, 50000
MAX_RATIO, FREE = 200, 64 * 1024 * 1024  # a small archive of many alike hosts is no bomb
LONGEST = 100  # characters of a name in ustar's own field
MEMBER = re.compile(r"evidence/[A-Za-z0-9%_~-][A-Za-z0-9%_.~-]*\.json")
OTHERS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a FIFO",
    b"5": "a folder",
}


class ArchiveError(ValueError):
    """A file that is no bundle; the text says why, without the file's name."""


def packed(members: Iterable[tuple[str, bytes]], file: BinaryIO) -> None:
    """Write the members in the order given.

    The same members give the same bytes, on any controller at any time.
    """
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))


def member_name(file_name: str) -> str:
    """Return the name of an evidence file in an archive.

    Its own, or its digest where ustar has no room for it.
    """
    if len(FOLDER + file_name) <= LONGEST:
        return FOLDER + file_name
    suffix = ".cluster.json" if file_name.endswith(".cluster.json") else ".json"
    return f"{FOLDER}long-{hashlib.sha256(file_name.encode('utf-8')).hexdigest()}{suffix}"


def is_archive(path: Path) -> bool:
    """Tell whether this file begins as one that gzip wrote."""
    with path.open("rb") as file:
        return file.read(2) == MAGIC


def documents(path: Path) -> dict[str, bytes]:
    """Return {member: its bytes, compressed} of a bundle's evidence, checked as a whole.

    Raises ArchiveError or OSError.
    """
    members: dict[str, bytes] = {}
    seen_names: set[str] = set()
    with path.open("rb") as file:
        for name, data in _members(_Bounded(file)):
            if name in seen_names:
                raise ArchiveError(f"{_shown(name)} is in it twice.")
            seen_names.add(name)
            if len(seen_names) > MAX_MEMBERS:
                raise ArchiveError(f"it has more than {MAX_MEMBERS} members.")
            if name == FIRST:
                _check_first(data)
            elif name.startswith(FOLDER):
                members[name[len(FOLDER) :]] = zlib.compress(data, 1)
    if FIRST not in seen_names:
        raise ArchiveError(f"it is no bundle of kubemend: {FIRST} is missing.")
    if not members:
        raise ArchiveError("it holds no evidence.")
    return members


def _check_first(data: bytes) -> None:
    try:
        content: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise ArchiveError(f"{FIRST} is no JSON, or cut.") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ArchiveError(
            f"its schema is {_shown(str(schema))}, which this version does not read; it reads"
            f" '{SCHEMA}'."
        )


def _members(stream: _Bounded) -> Iterator[tuple[str, bytes]]:
    while True:
        header = stream.read(BLOCK)
        if len(header) < BLOCK:
            raise ArchiveError("it is cut.")
        if header == bytes(BLOCK):
            stream.drain()  # a bomb behind the end is one too, and a checksum that is wrong is told
            return
        name, size = _named(header), _size(header)
        kind = header[156:157]
        if kind == b"5" and name.rstrip("/") == FOLDER.rstrip("/") and size == 0:
            continue  # as tar packs a folder that was unpacked before
        _check_member(name, kind, size)
        data = stream.read(size)
        padding = -size % BLOCK
        if len(data) < size or len(stream.read(padding)) < padding:
            raise ArchiveError("it is cut.")
        yield name, data


def _check_member(name: str, kind: bytes, size: int) -> None:
    if kind not in (b"0", b"\0"):
        raise ArchiveError(
            f"{_shown(name)} is {OTHERS.get(kind, 'of a kind that bundles do not have')}, and only"
            " plain files are read."
        )
    if name.startswith("/"):
        raise ArchiveError(f"{_shown(name)} has an absolute name.")
    if ".." in name.split("/"):
        raise ArchiveError(f"{_shown(name)} leads out of the archive.")
    if name not in (FIRST, REPORT) and not MEMBER.fullmatch(name):
        raise ArchiveError(f"{_shown(name)} is no file of a bundle.")
    if size > MAX_MEMBER:
        raise ArchiveError(f"{_shown(name)} is larger than {MAX_MEMBER} bytes.")


def _named(header: bytes) -> str:
    """Return the name of a member, if its header is valid."""
    try:
        checksum = int(header[148:156].split(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        checksum = -1
    if checksum != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise ArchiveError("it is no tar archive, or damaged.")
    name, prefix = (
        part.split(b"\0")[0].decode("ascii", "backslashreplace")
        for part in (header[:100], header[345:500])
    )
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _size(header: bytes) -> int:
    text = header[124:136].split(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]{1,12}", text):
        raise ArchiveError("it is no tar archive, or damaged.")
    return int(text, 8)


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:77] + "...")


class _Bounded:
    """What gzip holds, up to what a bundle may be."""

    def __init__(self, file: BinaryIO) -> None:
        self._stream = gzip.GzipFile(fileobj=file, mode="rb")
        self._most = min(MAX_TOTAL, max(FREE, os.fstat(file.fileno()).st_size * MAX_RATIO))
        self._given = 0

    def read(self, size: int) -> bytes:
        """Return up to size bytes; they are counted before they are read."""
        self._count(size)
        parts, remaining = [], size
        try:
            while remaining > 0:
                part = self._stream.read(min(remaining, CHUNK))
                if not part:
                    break
                parts.append(part)
                remaining -= len(part)
        except (EOFError, zlib.error, OSError):
            raise ArchiveError("it is cut or damaged.") from None
        return b"".join(parts)

    def drain(self) -> None:
        """Read to the end. Nothing may be left behind the archive."""
        while part := self.read(CHUNK):
            if part.strip(b"\0"):
                raise ArchiveError("something stands behind its end.")

    def _count(self, size: int) -> None:
        self._given += size
        if self._given > self._most + CHUNK:
            raise ArchiveError(
                f"it grows to more than {self._most} bytes when it is unpacked, which no bundle of"
                " its size does."
            )
