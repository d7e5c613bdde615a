# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Limits of files and inotify, reached for real.

The limits of inotify are the kernel's, which all nodes of the lab and the machine share.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.lab.cluster import kernel
from tests.lab.support.incident import Incident

DEFAULT = 128  # of the kernel, for inotify instances of one user
INSTANCES, WATCHES = "fs.inotify.max_user_instances", "fs.inotify.max_user_watches"
MAX_WATCHES = "fs/inotify/max_user_watches"
FILE = "/etc/sysctl.d/99-zz-kubemend.conf"
UNIT = "/etc/systemd/system/holder.service"
HELD = "/tmp/kubemend-lab-held"  # the files that are watched
FILLER, MOST = "kubemend-lab-fill", 200
CEILING = 1073741817  # more than any kernel lets a process have open
# Holds files until it has as many as it may, or, up to that many, every inotify instance or watch
# that others leave or give back: the machine's other
# programs count among them, and begin and end as they like.
HOLD = """
import ctypes, os, resource, sys, time
kind, count = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
if kind == "watches":
    folder, taken = sys.argv[3], 0
    os.makedirs(folder)
    one = libc.inotify_init1(0)
    while taken < count:
        path = os.path.join(folder, str(taken))
        open(path, "w").close()
        if libc.inotify_add_watch(one, path.encode(), 0x400) >= 0:
            taken += 1
        else:
            assert ctypes.get_errno() == 28, os.strerror(ctypes.get_errno())
            print("holds", taken, flush=True)
            time.sleep(0.2)
    time.sleep(86400)
if kind == "files":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
held = []
while len(held) < (count if kind == "inotify" else count - 5):
    one = libc.inotify_init1(0) if kind == "inotify" else os.open("/dev/null", os.O_RDONLY)
    if one >= 0:
        held.append(one)
    else:
        assert ctypes.get_errno() == 24, os.strerror(ctypes.get_errno())
        print("holds", len(held), flush=True)
        time.sleep(0.2)
print("holds", len(held), flush=True)
time.sleep(86400)
"""
TRIED = (
    "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); print({} >= 0 or"
    " os.strerror(ctypes.get_errno()))'"
)
TRY, TRY_WATCH = (
    TRIED.format("c.inotify_init1(0)"),
    TRIED.format('c.inotify_add_watch(c.inotify_init1(0), b"/", 0x400)'),
)


def instances() -> int:
    """Inotify instances that root's processes hold on the whole machine, the nodes' too."""
    found = 0
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and process.stat().st_uid == 0:
                found += sum(
                    str(one.readlink()).startswith(("anon_inode:inotify", "anon_inode:[inotify"))
                    for one in (process / "fd").iterdir()
                )
        except OSError:
            continue
    return found


def watches() -> int:
    """Inotify watches that root's processes hold on the whole machine.

    What a process inherited is counted twice.
    """
    found = 0
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and process.stat().st_uid == 0:
                found += sum(
                    (process / "fdinfo" / one.name).read_text().count("inotify wd:")
                    for one in (process / "fd").iterdir()
                    if str(one.readlink()) == "anon_inode:inotify"
                )
        except OSError:
            continue
    return found


def may(limit: int) -> None:
    """Set the kernel's limit for a user from now on; what is open stays open."""
    kernel.lower(kernel.INOTIFY, limit)


def may_watch(limit: int) -> None:
    """Likewise of watches."""
    kernel.lower(MAX_WATCHES, limit)


def restored() -> None:
    kernel.lift(kernel.INOTIFY, kernel.WANTED[kernel.INOTIFY])


def restored_watches() -> None:
    """Set the watches as the lab has them while a cluster is up: what the machine had, or more."""
    kernel.lift(MAX_WATCHES, max(kernel.before(MAX_WATCHES), kernel.WANTED[MAX_WATCHES]))


def hold(cluster, target: str, kind: str, count: int) -> None:
    """Run a service of the node that holds them, with a unit file of its own.

    A transient one is given no limit for its next start.
    """
    cluster.write(target, "/usr/local/bin/kubemend-lab-hold", HOLD)
    cluster.write(
        target,
        UNIT,
        "[Service]\nLimitNOFILE=15000\nExecStart=/usr/bin/env python3"
        f" /usr/local/bin/kubemend-lab-hold {kind} {count} {HELD}\n",
    )
    cluster.exec(target, "systemctl daemon-reload && systemctl start holder")
    # What it says itself: the journal has the words of those before it too.
    said = (
        "journalctl -q _SYSTEMD_INVOCATION_ID=$(systemctl show -p InvocationID --value holder) -o"
        " cat; true"
    )
    cluster.wait(
        lambda: b"holds" in cluster.exec(target, said).stdout,
        120,
        f"a process that holds {count} of {kind}",
    )


def fill() -> int:
    """Start a process of the machine that no node sees.

    It takes the inotify instances that others on the machine give back, up to MOST.
    """
    words = [sys.executable, "-c", HOLD, "inotify", str(MOST), FILLER]
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ).pid


def emptied(pid: int | None) -> None:
    """End that process, if it is still the same."""
    with contextlib.suppress(OSError):
        if pid and FILLER.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
            # of another process than the one that began it there is nothing to wait for
            os.waitpid(pid, 0)


def let_go(cluster, target: str) -> None:
    cluster.exec(
        target,
        "systemctl stop holder 2>/dev/null; systemctl reset-failed holder 2>/dev/null; "
        f"rm -rf {HELD}; rm -f /usr/local/bin/kubemend-lab-hold {UNIT}; systemctl daemon-reload",
    )


def tried(cluster, target: str, what: str = TRY) -> str:
    """Return what a program gets that requests an instance, or a watch."""
    return cluster.exec(target, what).stdout.decode().strip()


def unlimited(cluster) -> set:
    """Return the findings of a deep audit about runtimes that came with LimitNOFILE=infinity."""
    return {
        ("KM410", node.name, None)
        for node in cluster.nodes
        if node.joined
        and b"infinity"
        in cluster.exec(node, ["systemctl", "show", "-p", "LimitNOFILE", "containerd"]).stdout
    }


class Limits(Incident):
    """Incidents of limits: {code: component} on the target, and `elsewhere` on every other host."""

    occupies = "worker"
    target = "w1"
    faults: tuple = ()
    elsewhere: tuple = ()

    def audit(self, cluster, target):
        return {"args": ["-e", "kubemend_deep=true"], "inventory": None}

    def expect(self, cluster, target):
        others = [node.name for node in cluster.nodes if node.joined and node.name != target]
        return (
            unlimited(cluster)
            | {(code, target, component) for code, component in self.faults}
            | {(code, name, component) for code, component in self.elsewhere for name in others}
        )
