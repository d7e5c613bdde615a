# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command costs that has many processes.

Seconds, seconds of the processor, and the memory of them all, looked at ten times a second.
"""

from __future__ import annotations

import re
import resource
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.1


@dataclass(frozen=True)
class Cost:
    """What a command cost.

    seconds: how long it took
    cpu: seconds of CPU time of the processes
    largest: the most MB that one process held
    together: the most MB that all processes held at once, by their share of each page
    """

    seconds: float
    cpu: float
    largest: float
    together: float


def measured(
    command: list[str], env: Mapping[str, str], folder: Path, timeout: float
) -> tuple[int, str, Cost]:
    """(exit code, output, what it cost)."""
    used, begin, peak = (
        resource.getrusage(resource.RUSAGE_CHILDREN),
        time.perf_counter(),
        [0.0, 0.0],
    )
    with (folder / "output").open("w+", encoding="utf-8", errors="replace") as output:
        with subprocess.Popen(
            command,
            env=dict(env),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process:
            watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
            watcher.start()
            try:
                code = process.wait(timeout)
            finally:
                process.kill()
            watcher.join()
        output.seek(0)
        said, seconds, now = (
            output.read(),
            time.perf_counter() - begin,
            resource.getrusage(resource.RUSAGE_CHILDREN),
        )
    return (
        code,
        said,
        Cost(seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, *peak),
    )


def _watch(process: subprocess.Popen, peak: list[float]) -> None:
    while process.poll() is None:
        held = [_held(pid) for pid in _family(process.pid)]
        peak[0] = max([peak[0], *(resident for resident, dummy in held)])
        peak[1] = max(peak[1], sum(share for dummy, share in held))
        time.sleep(EVERY)


def _family(first: int) -> list[int]:
    found, waiting = [], [first]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for path in Path(f"/proc/{pid}/task").glob("*/children"):
                waiting += [int(word) for word in path.read_text(encoding="ascii").split()]
        except OSError:
            pass  # it has ended
    return found


def _held(pid: int) -> tuple[float, float]:
    """MB that are resident, and its share of them; nothing of a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0, 0.0
    found = dict(re.findall(r"(?m)^(Rss|Pss): +(\d+) kB$", text))
    return int(found.get("Rss", 0)) / 1000, int(found.get("Pss", 0)) / 1000
