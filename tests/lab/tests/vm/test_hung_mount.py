# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that hang: an audit ends in its time, names them, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from tests.lab.support import interrupt, machines
from tests.lab.support.mapped_disk import FOLDER, MAKE, MOVE, NAME
from tests.lab.support.report import findings

DEEP = ("-e", "kubemend_deep=true", "-e", "kubemend_timeout=30")
# A host has 30 seconds; the rest is ansible's and that of a busy machine.
AUDIT_SECONDS = 240
DEAD_SERVER = "/root/server.py"
# A file system whose program takes the first request, and answers no other.
SERVER = """
import ctypes, os, struct, time
fuse = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
if ctypes.CDLL(None).mount(b"lab", b"/mnt", b"fuse", 0, options):
    raise SystemExit("no mount")
unique = struct.unpack_from("=IIQ", os.read(fuse, 1 << 18))[2]
said = struct.pack("=IIIIHHIIHHI28x", 7, 31, 4096, 0, 12, 9, 4096, 1, 1, 0, 0)
os.write(fuse, struct.pack("=IiQ", 16 + len(said), 0, unique) + said)
time.sleep(3600)
"""


def waiting(path: str) -> str:
    """Return the command of a process that writes to a path and waits until it is on the disk."""
    return (
        f"nohup dd if=/dev/zero of={path}/lab.wait bs=4096 count=1 conv=fsync"
        " >/dev/null 2>&1 </dev/null &\n"
    )


@dataclass(frozen=True)
class Case:
    """How a mount hangs, what an audit names, and how it goes on."""

    hang: str
    names: tuple[str, ...]
    resume: str
    has_task: bool = True


DROP = "sync; echo 3 >/proc/sys/vm/drop_caches"
RESUME = f"dmsetup resume {NAME}"
CASES = {
    # The kernel freezes the file system of a device that is suspended in the usual way.
    "a frozen file system": Case(
        f"{MAKE}\ndmsetup suspend {NAME}\n{waiting('/mnt')}",
        (NAME, "suspended", "/mnt", "dd (pid "),
        RESUME,
    ),
    # The file system goes on by itself, like one whose disk is away; the kubelet's files are on it.
    "the disk of the kubelet": Case(
        f"{MOVE}\nsleep 20\n{DROP}\ndmsetup suspend --noflush --nolockfs {NAME}\n{waiting(FOLDER)}",
        (NAME, "suspended", FOLDER, "dd (pid "),
        RESUME,
    ),
    "a dead server": Case(
        f"modprobe fuse\nnohup python3 {DEAD_SERVER} >/dev/null 2>&1 </dev/null &\nsleep 5\n",
        ("lab (fuse at /mnt)",),
        "umount -l /mnt; pkill -f '[s]erver.py'",
        has_task=False,
    ),
}


def programs(cluster, node: str) -> list[str]:
    """Return the processes of an audit on a node."""
    said = cluster.exec(node, ["pgrep", "-f", "^[^ ]*python3 -I -S -$"], check=False)
    return said.stdout.decode().split()


def has_waiter(cluster, node: str) -> bool:
    said = cluster.exec(node, "ps -eo stat,comm | grep -q '^D.* dd$'", check=False)
    return said.returncode == 0


@pytest.mark.parametrize("name", CASES)
def test_a_mount_that_hangs(cluster, play, node, tmp_path, name):
    case = CASES[name]
    cluster.write(node, DEAD_SERVER, SERVER)
    cluster.exec(node, case.hang, timeout=300)
    try:
        if case.has_task:
            cluster.wait(lambda: has_waiter(cluster, node), 60, "a process in state D")
        begin = time.monotonic()
        done, report = play(*DEEP, name="audit")
        assert time.monotonic() - begin < AUDIT_SECONDS
        assert done.returncode == 0, done.stdout[-4000:]
        told = [one for one in findings(report) if (one["code"], one["host"]) == ("KM607", node)]
        assert told, done.stdout[-4000:]
        assert [word for word in case.names if word not in told[0]["summary"]] == [], told
        assert [row for row in report["verdicts"] if is_without_reason(row)] == []
        assert {host["host"]: host["status"] for host in report["hosts"]}[node] == "ok"

        with interrupt.Controller(cluster, tmp_path / "run", *DEEP, name="audit") as controller:
            cluster.wait(
                lambda: programs(cluster, node), 120, "the audit to begin on the node", 0.2
            )
            assert controller.interrupt(), controller.output[-3000:]
    finally:
        cluster.exec(node, case.resume, check=False)
    cluster.wait(lambda: not programs(cluster, node), 60, "no process to be left on the node")
    machines.wait_ready(cluster, node)


def is_without_reason(row: dict) -> bool:
    return row["verdict"] == "unknown" and not (row["missing"] or row["note"])
