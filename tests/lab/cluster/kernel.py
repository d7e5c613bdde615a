# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Settings of the one kernel that all nodes and the machine itself share."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.lab.cluster import podman
from tests.lab.cluster.host import note
from tests.lab.cluster.store import locked

# Under /run: the values return to the machine's own at a boot, and this record must vanish with
# them.
RECORD = Path("/run/kubemend-lab/kernel.json")
# names the process that has made one of WANTED less for a while
LOWERED = Path("/run/kubemend-lab/lowered")
LONGEST = 900  # seconds that a lab which comes up beside such a test waits for its end
INOTIFY = "fs/inotify/max_user_instances"
# 128 instances, the kernel's default, serve six nodes: all root processes of all nodes count as one
# user.
WANTED = {INOTIFY: 8192, "fs/inotify/max_user_watches": 524288}
# A kubelet sets these itself at its start, on what it takes for its own machine.
TOUCHED_BY_KUBELET = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def read(name: str) -> str | None:
    try:
        return (Path("/proc/sys") / name).read_text().strip()
    except OSError:
        return None


def write(name: str, value) -> None:
    (Path("/proc/sys") / name).write_text(f"{value}\n")


def before(name: str) -> int:
    """Return the machine's own value; 0 if the lab never touched it."""
    with _locked():
        return int(json.loads(RECORD.read_text()).get(name, 0)) if RECORD.exists() else 0


def _locked():
    return locked(
        RECORD.with_suffix(".lock"), "another lab run that changes kernel settings", timeout=60
    )


def lower(name: str, value) -> None:
    """Lower a limit for as long as this process lives, or until lift().

    A lab that comes up meanwhile does not undo it in the middle of a test.
    """
    LOWERED.parent.mkdir(parents=True, exist_ok=True)
    LOWERED.write_text(f"{os.getpid()}\n")
    write(name, value)


def lift(name: str, value) -> None:
    write(name, value)
    LOWERED.unlink(missing_ok=True)


def lowered_by_another() -> bool:
    """Return whether a process that lives, and is not this one, has made a limit less."""
    try:
        process = int(LOWERED.read_text())
    except (OSError, ValueError):
        return False
    return process != os.getpid() and Path(f"/proc/{process}").exists()


def _wait_for_others() -> None:
    end = time.monotonic() + LONGEST
    if lowered_by_another():
        note("another lab's test has made a limit of the kernel less: waiting for its end")
    while lowered_by_another() and time.monotonic() < end:
        time.sleep(1)


def raise_limits() -> None:
    _wait_for_others()
    with _locked():
        if not RECORD.exists():
            before = {name: read(name) for name in (*WANTED, *TOUCHED_BY_KUBELET)}
            RECORD.write_text(
                json.dumps({name: value for name, value in before.items() if value is not None})
            )
        for name, wanted in WANTED.items():
            present = read(name)
            if present is not None and int(present) < wanted:
                write(name, wanted)


def restore_if_last() -> None:
    """Restore the machine's own values once no checkout has a node here any more."""
    with _locked():
        if not RECORD.exists() or podman.containers(root=None):
            return
        for name, value in json.loads(RECORD.read_text()).items():
            if read(name) != value:
                write(name, value)
        RECORD.unlink()
