# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gives a command less CPU than the others where both want it.

`nice` alone does nothing here: the kernel shares CPUs between sessions first (autogroup), and each
stage's command has a session of its own. A control group has a weight that counts.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pathlib
from collections.abc import Sequence

from tests.gate import machine

NICE = "5"  # where no control group can be made
# Half of what a session has. Less, and tests would starve while the lab compiles.
WEIGHTS = (
    (pathlib.Path("/sys/fs/cgroup/cpu"), "cpu.shares", "512"),
    (pathlib.Path("/sys/fs/cgroup"), "cpu.weight", "50"),
)
ENTER = 'echo $$ > "$0/cgroup.procs"; exec "$@"'


def gentle(command: Sequence[str]) -> list[str]:
    """Wrap a command so that it runs with the lower weight."""
    folder = _folder()
    if folder is None:
        return ["nice", "-n", NICE, *command]
    return ["sh", "-c", ENTER, str(folder), *command]


@functools.cache
def _folder() -> pathlib.Path | None:
    """Make the control group of this checkout, where this machine and its user can."""
    checkout = hashlib.sha256(str(machine.ROOT).encode()).hexdigest()[:6]
    for root, name, weight in WEIGHTS:
        folder = root / ("kubemend-gate-" + checkout)
        if not (root / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(weight, encoding="ascii")
            return folder
    return None


def remove() -> None:
    """Remove the control group; one that is still in use stays."""
    folder = _folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.rmdir()
    _folder.cache_clear()
