# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cache: one folder per artefact, named by a hash of what it is made from."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from pathlib import Path

from tests.lab.cluster import paths
from tests.lab.cluster.host import note


@contextlib.contextmanager
def locked(path: Path, wait_note: str, timeout: float = 3600):
    """Hold an exclusive lock that dies with its process: a killed run never blocks the next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline, told = time.monotonic() + timeout, False
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"{wait_note}: still held after {timeout:.0f} s ({path})"
                    ) from None
                if not told:
                    note(f"waiting for {wait_note}")
                    told = True
                time.sleep(0.5)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Tell whether a run has the lock now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def digest(*parts) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else str(part).encode()
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:16]


def artefact(name: str, inputs, make) -> Path:
    """Return the directory of `name` made from `inputs`; `make(folder)` fills a missing one."""
    folder = paths.cache() / f"{name}-{digest(*inputs)}"
    if folder.is_dir():
        return folder
    with locked(paths.cache() / "locks" / f"{name}.lock", f"another build of {name}"):
        if folder.is_dir():
            return folder
        started = time.monotonic()
        note(f"building {name} (once; cached in {folder})")
        # Under the lock nobody else can own such a folder: it is what an interrupted build left.
        for left in paths.cache().glob(f".tmp-{name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        temp = paths.cache() / f".tmp-{folder.name}"
        temp.mkdir(parents=True)
        make(temp)
        temp.rename(folder)
        note(f"built {name} in {time.monotonic() - started:.0f} s")
    return folder
