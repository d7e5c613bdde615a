# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where documents of evidence come from: files, folders of them, runs and bundles, put together.

Slices of a fleet are merged here: of each host the best that any source has. One document is in
memory at a time. A file that cannot be read costs its host: it counts as one that gave no evidence.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from . import archive, contract
from .document import EvidenceError, file_name, one_line, parsed, read, stub

BROKEN = "its evidence cannot be read"
CLUSTER = ".cluster.json"
# the name of a host's file, and what reads its document
Source = tuple[str, Callable[[], dict[str, Any]]]


def stream(
    paths: Iterable[str | os.PathLike[str]], notices: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the documents of these directories (or of a run's) and bundles, one at a time.

    If several folders have the same host, a real answer beats an unreachable one, which beats one
    that was not asked. Among equals the later counts. If no file can be read, this raises
    EvidenceError.

    notices: takes a sentence for each file that cannot be read
    """
    chosen = [_best(candidates) for candidates in _by_name(paths).values()]
    broken: list[EvidenceError] = []
    for name, load in chosen:
        try:
            document = load()
        except EvidenceError as error:
            broken.append(error)
            if len(broken) == len(chosen):
                raise broken[0] from None
            document = _unread(name, error)
            if notices is not None:
                notices.append(
                    f"{error} {document['host']} counts as a host that gave no evidence."
                )
        yield document


def _unread(name: str, error: EvidenceError) -> dict[str, Any]:
    """Return what stands for a file that cannot be read."""
    suffix = CLUSTER if name.endswith(CLUSTER) else ".json"
    host = unquote(name.removesuffix(suffix)) or name
    reason = str(error).rpartition(": ")[2].removesuffix(".")
    document = stub(host, (), "error", f"{BROKEN}: {name}: {reason}")
    return {**document, "kind": "cluster"} if suffix == CLUSTER else document


def finder(paths: Iterable[str | os.PathLike[str]]) -> Callable[[str], dict[str, Any]]:
    """Return a function that finds the document of a host, the one that stream() would yield.

    An empty one where there is none. The directories are listed once.
    """
    several = _by_name(paths)

    def find(host: str) -> dict[str, Any]:
        candidates = several.get(file_name(host))
        name, load = _best(candidates) if candidates else ("", dict)
        try:
            return dict(contract.checked(load()))
        except EvidenceError as error:
            return _unread(name, error)

    return find


def _by_name(paths: Iterable[str | os.PathLike[str]]) -> dict[str, list[Source]]:
    several: dict[str, list[Source]] = {}
    for source in _sources(paths):
        several.setdefault(source[0], []).append(source)
    return several


def _best(candidates: list[Source]) -> Source:
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=_worth)


def _sources(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Source]:
    for raw_path in paths:
        path = Path(raw_path).expanduser()
        if path.is_dir() and (path / "evidence").is_dir():
            path = path / "evidence"
        if path.is_file():
            yield from _packed(path) if _is_archive(path) else [(path.name, partial(read, path))]
        elif path.is_dir():
            files = sorted(file for file in path.glob("*.json") if not file.name.startswith("."))
            if not files:
                raise EvidenceError(f"{path}: no evidence (*.json) in it.")
            yield from ((file.name, partial(read, file)) for file in files)
        else:
            raise EvidenceError(f"{path}: no such folder or bundle.")


def _is_archive(path: Path) -> bool:
    try:
        return archive.is_archive(path)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None


def _packed(path: Path) -> list[Source]:
    """Return the documents of a bundle. It is opened once, however often a plan needs a host."""
    try:
        state = path.stat()
        key = (str(path), state.st_mtime_ns, state.st_size, state.st_ino)
        if key not in _OPENED:
            _OPENED[key] = _of_bundle(path, archive.documents(path))
    except archive.ArchiveError as error:
        raise EvidenceError(f"{path}: {error}") from None
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}.") from None
    return _OPENED[key]


_OPENED: dict[tuple[str, int, int, int], list[Source]] = {}


def _of_bundle(path: Path, members: dict[str, bytes]) -> list[Source]:
    sources: dict[str, Source] = {}
    for member, data in members.items():
        location = f"{path}: evidence/{member}"
        try:
            document = parsed(location, zlib.decompress(data))
        except EvidenceError:
            sources[member] = (member, partial(_unpacked, location, data))
            continue
        name = file_name(
            document["host"], ".cluster.json" if document.get("kind") == "cluster" else ".json"
        )
        if archive.member_name(name) != archive.FOLDER + member:
            raise EvidenceError(
                f"{location}: it is of another host, {one_line(document['host'], 80)!r}."
            )
        sources[name] = (name, partial(_unpacked, location, data))
    return list(sources.values())


def _unpacked(location: str, data: bytes) -> dict[str, Any]:
    return parsed(location, zlib.decompress(data))


def _worth(source: Source) -> tuple[int, str]:
    order = {"ok": 4, "error": 3, "unreachable": 2}
    try:
        document = source[1]()
    except EvidenceError:
        return 1, ""
    return order.get(document["status"], 0), document["collected_at"]
