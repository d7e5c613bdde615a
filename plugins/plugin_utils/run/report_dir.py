# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report directory of a run.

It is claimed for one run at a time, and free of the files of earlier runs.
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

from . import cluster_lock, console
from .settings import Settings, SettingsError

COMPARED = "compared.json"  # the earlier report, as it was when the run began
WAIVERS = "used-waivers.yml"  # the file of kubemend_waivers, likewise
WRITTEN = ".kubemend.json"  # the patches of a run next to it, each with its digest
# How reports of these formats begin: a foreign file of the same name does not.
FACES = {
    "html": ("report.html", re.compile(rb"\s*<!DOCTYPE html>(?s:.*)<title>kubemend: ")),
    "junit": ("junit.xml", re.compile(rb"<\?xml [^>]*\?>\s*<testsuites name=\"kubemend\"")),
    "sarif": (
        "report.sarif",
        re.compile(rb"\{\s*\"\$schema\": \"[^\"]*sarif(?s:.*)\"name\": \"kubemend\""),
    ),
    "prometheus": ("kubemend.prom", re.compile(rb"# HELP kubemend_findings ")),
}
HEAD = 2048
# The files of an earlier run that a new one in the same directory removes.
STALE = (
    "plan.json",
    "steps.jsonl",
    "looks.jsonl",
    "step.begun",
    "api.answered",
    console.HELD,
    "locks/*.json",
    "evidence/*.json",
    "evidence/.progress*",
    "evidence-after/*.json",
    "evidence-after/.progress*",
    "revert/*",
    "capture/*.*",
    "capture/logs/*",
)


class ReportFolder:
    """The report directory of a run, as its operator asked for it."""

    def __init__(
        self, settings: Settings, earlier: bytes | None = None, waivers: bytes | None = None
    ) -> None:
        now = datetime.now(timezone.utc)
        self.started = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.run_id = f"{now.strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"
        self.path = absolute(settings.report_dir or f"~/.kubemend/runs/{self.run_id}")
        # Read by the caller before anything is created: this run may replace that very report.
        self._earlier, self._waivers = earlier, waivers

    def make(self, collects: bool) -> dict[str, Any]:
        """Create what is missing, readable for its owner only.

        Remove the evidence of an earlier run in the same directory.
        """
        directory = Path(self.path)
        _make_private(directory)
        evidence, evidence_after = directory / "evidence", directory / "evidence-after"
        if collects:
            self._claim()
            for folder in (evidence, evidence_after):
                _make_private(folder)
                folder.chmod(0o700)
            _remove_stale(directory)
        return {
            "compare_to": _keep(directory / COMPARED, self._earlier),
            "waivers": _keep(directory / WAIVERS, self._waivers),
            "run_id": self.run_id,
            "started": self.started,
            "report_dir": self.path,
            "evidence_dir": str(evidence),
            "evidence": [str(evidence)],
            "evidence_after_dir": str(evidence_after),
        }

    def _claim(self) -> None:
        """Claim the directory for this run alone.

        Files that another run still needs must not be removed.
        """
        path, me = Path(self.path) / "run.json", cluster_lock.controller(os.getppid())
        owner = read_json(path)
        is_own = all(owner.get(name) == me[name] for name in ("boot_id", "pid", "started"))
        if (
            not is_own
            and owner.get("boot_id") == me["boot_id"]
            and not cluster_lock.gone(owner, me)
        ):
            raise SettingsError(
                f"{self.path} is in use by run {owner.get('run_id')} (process {owner.get('pid')});"
                " let it end, or give this run another folder with kubemend_report_dir."
            )
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({**me, "run_id": self.run_id}, file)


def _keep(path: Path, data: bytes | None) -> str | None:
    """Keep what a variable names as it was when the run began; return its path, if any."""
    path.unlink(missing_ok=True)
    if data is None:
        return None
    _write(path, data)
    return str(path)


def _remove_stale(directory: Path) -> None:
    """Remove the files of an earlier run."""
    for pattern in STALE:
        for path in sorted(directory.glob(pattern)):
            path.unlink()
    remove_patches(directory / "patches")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file; empty where there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return document


def remove_face(folder: str | Path, name: str) -> None:
    """Remove a report of this format that an earlier run wrote into this directory.

    It shows another evaluation.
    """
    file, beginning = FACES[name]
    if beginning.match(_head(Path(folder) / file)):
        (Path(folder) / file).unlink(missing_ok=True)


def _head(path: Path) -> bytes:
    """Return how a file begins; nothing where it is no plain file or cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        return os.read(handle, HEAD)
    finally:
        os.close(handle)


def write_patches(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Write the patches of this evaluation in place of those of an earlier one.

    Return what could not be written, because a foreign file has its name.
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
    # The digests are written first, so that every patch is known as one of this collection.
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in free.items()}
    _write(folder / WRITTEN, json.dumps(digests, indent=1).encode())
    for name, data in free.items():
        _write(folder / name, data)
    return sorted(texts.keys() - free.keys())


def remove_patches(folder: Path) -> None:
    """Remove the patches that an earlier run wrote into this directory and that are unchanged."""
    for path in own_patches(folder):
        path.unlink(missing_ok=True)


def own_patches(folder: Path) -> list[Path]:
    """Return the patches that a run wrote and that are unchanged, and last the list of them."""
    written = folder / WRITTEN
    paths = [
        folder / name
        for name, digest in read_json(written).items()
        if Path(name).name == name != WRITTEN and _is_unchanged(folder / name, digest)
    ]
    return [*paths, written]


def _is_unchanged(path: Path, digest: str) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _make_private(path: Path) -> None:
    for folder in reversed((path, *path.parents)):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise SettingsError(f"{folder} is needed as a folder but is a file.") from None


def absolute(path: str) -> str:
    """Return an absolute path; relative ones begin where ansible-playbook was started."""
    # Path.resolve() would follow links, Path.absolute() would keep "..", and Path.expanduser()
    # raises for an unknown user.
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111  (see above)
