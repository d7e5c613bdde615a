# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a run's report.

Claimed for one run at a time, and free of what an earlier run left there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import cluster_lock as locking
from .settings import Settings, SettingsError

COMPARED = "compared.json"  # the earlier report, as it was when the run began
WRITTEN = ".kubemend.json"  # the patches of a run beside it, each with its digest
# How these reports of ours begin: a file of the same name that somebody else put there does not.
FACES = {
    "html": ("report.html", re.compile(rb"\s*<!DOCTYPE html>(?s:.*)<title>kubemend: ")),
    "junit": ("junit.xml", re.compile(rb"<\?xml [^>]*\?>\s*<testsuites name=\"kubemend\"")),
}
HEAD = 2048


class ReportFolder:
    """The folder of a run's report, as its operator asked for it."""

    def __init__(self, settings: Settings, earlier: bytes | None = None) -> None:
        now = datetime.now(timezone.utc)
        self.started = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.run_id = f"{now.strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"
        self.path = absolute(settings.report_dir or f"~/.kubemend/runs/{self.run_id}")
        # Read by the caller before anything is created: this run may replace that very report.
        self._earlier = earlier

    def make(self, collects: bool) -> dict[str, Any]:
        """Create what is missing, for nobody else's eyes.

        Remove the evidence of an earlier run in the same folder.
        """
        _make_private(Path(self.path))
        where, after = Path(self.path) / "evidence", Path(self.path) / "evidence-after"
        if collects:
            self._claim()
            for folder in (where, after):
                _make_private(folder)
                folder.chmod(0o700)
            for name in (
                "plan.json",
                "steps.jsonl",
                "looks.jsonl",
                "step.begun",
                "api.answered",
                "locks/*.json",
                "evidence/*.json",
                "evidence-after/*.json",
                "revert/*",
                "capture/*.*",
                "capture/logs/*",
            ):
                for stale in sorted(Path(self.path).glob(name)):
                    stale.unlink()
            remove_patches(Path(self.path) / "patches")
        compared = Path(self.path) / COMPARED
        compared.unlink(missing_ok=True)
        if self._earlier is not None:
            _write(compared, self._earlier)
        kept = None if self._earlier is None else str(compared)
        return {
            "compare_to": kept,
            "run_id": self.run_id,
            "started": self.started,
            "report_dir": self.path,
            "evidence_dir": str(where),
            "evidence": [str(where)],
            "evidence_after_dir": str(after),
        }

    def _claim(self) -> None:
        """One run at a time in one folder.

        What another is about to read must not be removed under it.
        """
        path, me = Path(self.path) / "run.json", locking.controller(os.getppid())
        try:
            owner = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            owner = {}
        mine = all(owner.get(name) == me[name] for name in ("boot_id", "pid", "started"))
        if owner.get("boot_id") == me["boot_id"] and not mine and not locking.gone(owner, me):
            raise SettingsError(
                f"{self.path} is in use by run {owner.get('run_id')} (process {owner.get('pid')});"
                " let it end, or give this run another folder with kubemend_report_dir."
            )
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump({**me, "run_id": self.run_id}, file)


def remove_face(folder: str | Path, name: str) -> None:
    """A report of that format that an earlier run wrote into this folder.

    It tells of another judgement.
    """
    file, ours = FACES[name]
    if ours.match(_head(Path(folder) / file)):
        (Path(folder) / file).unlink(missing_ok=True)


def _head(path: Path) -> bytes:
    """How a file begins; nothing of what is no plain file or cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(handle, HEAD) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)


def write_patches(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """The patches of this judgement in place of those of a former one.

    What could not be written, because a file of somebody's has its name.
    """
    remove_patches(folder)
    if not texts:
        return []
    _make_private(folder)
    free = {
        name: text.encode("utf-8", "backslashreplace")
        for name, text in texts.items()
        if not os.path.lexists(folder / name)
    }
    # First what they are, so that whatever is written of them is known as ours.
    _write(
        folder / WRITTEN,
        json.dumps(
            {name: hashlib.sha256(data).hexdigest() for name, data in free.items()}, indent=1
        ).encode(),
    )
    for name, data in free.items():
        _write(folder / name, data)
    return sorted(texts.keys() - free.keys())


def remove_patches(folder: Path) -> None:
    """Those that a former run wrote into this folder and nobody has changed since."""
    written = folder / WRITTEN
    try:
        known = json.loads(written.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        known = {}
    for name, digest in known.items() if isinstance(known, dict) else ():
        path = folder / name
        if (
            os.path.basename(name) == name != WRITTEN
            and path.is_file()
            and not path.is_symlink()
            and hashlib.sha256(path.read_bytes()).hexdigest() == digest
        ):
            path.unlink()
    written.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _make_private(path: Path) -> None:
    for folder in reversed((path, *path.parents)):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise SettingsError(f"{folder} is needed as a folder but is a file.") from None


def absolute(path: str) -> str:
    """Relative paths are relative to the folder in which ansible-playbook was started."""
    return os.path.abspath(os.path.expanduser(path))
