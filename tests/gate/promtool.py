# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""promtool, by which the tests check metrics, rules and queries.

It is in Debian's package prometheus, which also has a server that starts by itself: the package is
unpacked below .venv/, and never installed.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

from tests.gate import machine

VARIABLE = "KUBEMEND_PROMTOOL"  # where the tests look for it, before PATH


def command() -> str | None:
    """Return promtool for a test, without getting it."""
    return os.environ.get(VARIABLE) or shutil.which("promtool")


def ensure() -> str | None:
    """Return promtool, from Debian's package where it is not installed; None where it cannot be."""
    kept = machine.VENV / "promtool"
    if not shutil.which("promtool") and not kept.is_file():
        _unpack(kept)
    return shutil.which("promtool") or (str(kept) if kept.is_file() else None)


def _unpack(target: pathlib.Path) -> None:
    """Download the package and take promtool out of it; a failure leaves nothing."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return
    machine.VENV.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=machine.VENV) as name:
        folder = pathlib.Path(name)
        if not _run(["apt-get", "download", "-q", "prometheus"], folder) and machine.is_root():
            _run(["apt-get", "update", "-q"], folder)
            _run(["apt-get", "download", "-q", "prometheus"], folder)
        for package in folder.glob("prometheus_*.deb"):
            _run(["dpkg-deb", "--extract", str(package), "files"], folder)
        unpacked = folder / "files" / "usr" / "bin" / "promtool"
        if unpacked.is_file():
            unpacked.replace(target)


def _run(words: list[str], folder: pathlib.Path) -> bool:
    done = subprocess.run(
        words,
        cwd=folder,
        env=machine.environment(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    return done.returncode == 0
