# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove old runs from ~/.kubemend/runs, as kubemend_keep_runs says.

Only whole folders of runs go, and only those in which every file is one that a run writes.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import cluster_lock, report_dir
from .variable_kinds import is_run_id

RUNS = "~/.kubemend/runs"
ALL = "all"
MOST = 1000  # folders that one run removes
# A run of another machine, or before a boot, may still be at work for this long.
IN_USE_SECONDS = 86400
FILES = frozenset(
    (
        "report.json",
        "report.txt",
        "run.json",
        report_dir.COMPARED,
        report_dir.WAIVERS,
        *(file for file, _beginning in report_dir.FACES.values()),
        *(pattern for pattern in report_dir.STALE if "/" not in pattern),
    )
)
FOLDERS = frozenset(
    ("evidence", "evidence-after", "locks", "revert", "capture", "capture/logs", "patches")
)
# The files in them, as narrow as their names are; patches have digests of their own.
PATTERNS = (
    "evidence/*.json",
    "evidence-after/*.json",
    "locks/*.json",
    "revert/*.json",
    "revert/*.begun",
    "capture/*.json",
    "capture/*.scheduler-*.txt",
    "capture/lines.txt",
    "capture/timeline.txt",
    "capture/logs/*.json",
)
# What a killed run may leave of a file that it was writing (safe_io/atomic_file.py).
UNFINISHED = ".writing-"


def clean(keep: int | str, present: str, used: Iterable[str] = ()) -> list[str]:
    """Remove all but the newest runs; return the folders that stay because of foreign files.

    present: the folder of this run, which stays. used: paths that this run read.
    """
    if keep == ALL:
        return []
    root = Path(report_dir.absolute(RUNS))
    runs = sorted(names(root), reverse=True)
    protected = {_real(present), *map(_real, used)}
    me = cluster_lock.controller(os.getppid())
    foreign = []
    for name in runs[int(keep) :][:MOST]:
        folder = root / name
        if _is_protected(folder, protected) or _is_in_use(folder, me):
            continue
        if not remove(folder):
            foreign.append(str(folder))
    return foreign


def names(root: Path) -> Iterator[str]:
    """Yield the names of the folders of runs; a link is none."""
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if is_run_id(entry.name) and entry.is_dir(follow_symlinks=False):
                    yield entry.name
    except OSError:
        return


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(report_dir.absolute(str(path))))


def _is_protected(folder: Path, protected: Collection[Path]) -> bool:
    real = _real(folder)
    return any(path == real or real in path.parents for path in protected)


def _is_in_use(folder: Path, me: Mapping[str, Any]) -> bool:
    """Return whether the run may still be at work."""
    owner = report_dir.read_json(folder / "run.json")
    if not owner or cluster_lock.gone(owner, me):
        return False
    if owner.get("boot_id") == me["boot_id"]:
        return True
    return time.time() - folder.stat().st_mtime < IN_USE_SECONDS


def remove(folder: Path) -> bool:
    """Remove the folder of a run; return whether it is gone. A foreign file keeps all of it.

    Each file is removed by its name, so that one that comes meanwhile stays too.
    """
    contents = _contents(folder)
    if contents is None:
        return False
    files, folders = contents
    try:
        for path in files:
            path.unlink(missing_ok=True)
        for path in (*sorted(folders, reverse=True), folder):
            path.rmdir()
    except OSError:
        return False
    return True


def _contents(folder: Path) -> tuple[list[Path], list[Path]] | None:
    """Return the files and folders of a run; None where one of them is foreign."""
    own_files: set[Path] = set()
    for pattern in PATTERNS:
        own_files.update(folder.glob(pattern))
    own_files.update(report_dir.own_patches(folder / "patches"))
    own_files.update(folder / name for name in FILES)
    files, folders = [], []
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            folders.append(path)
        elif stat.S_ISREG(mode) and (path in own_files or path.name.startswith(UNFINISHED)):
            files.append(path)
        else:
            return None
    names = {path.relative_to(folder).as_posix() for path in folders}
    return (files, folders) if names <= FOLDERS else None
