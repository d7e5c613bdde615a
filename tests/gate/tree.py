# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Copies of the checkout: what is tracked, and what is new and not ignored."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from tests.gate import machine

# What a copy for ansible-test needs not carry: recorded evidence is not code.
NO_CODE = ("tests/fixtures/",)


def files(skip: tuple[str, ...] = ()) -> list[str]:
    """Return relative paths.

    Without git (an unpacked archive) they are all but the checkout's own products.
    """
    asked = subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=machine.ROOT,
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == 0 and asked.stdout:
        names = [name for name in asked.stdout.split("\0") if name]
    else:
        names = [
            str(path.relative_to(machine.ROOT))
            for path in machine.ROOT.rglob("*")
            if not {".venv", ".git", ".lab", "output", "__pycache__"}.intersection(
                path.relative_to(machine.ROOT).parts
            )
        ]
    return [
        name
        for name in sorted(set(names))
        if not name.startswith(skip) and (machine.ROOT / name).is_file()
    ]


def copy(target: pathlib.Path, skip: tuple[str, ...] = ()) -> pathlib.Path:
    for name in files(skip):
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(machine.ROOT / name, destination, follow_symlinks=False)
    return target


@contextlib.contextmanager
def scratch(label: str) -> Iterator[pathlib.Path]:
    """Yield a directory outside the checkout.

    Below the checkout, git and ansible-test would take its .gitignore into account.
    """
    with tempfile.TemporaryDirectory(
        prefix=f"kubemend-{label}-", ignore_cleanup_errors=True
    ) as folder:
        yield pathlib.Path(folder)


def as_collection(base: pathlib.Path, skip: tuple[str, ...] = ()) -> pathlib.Path:
    """Copy the tree to where ansible-test wants it; a link is not enough for it."""
    return copy(base / "ansible_collections" / "kubemend" / "remediation", skip)
