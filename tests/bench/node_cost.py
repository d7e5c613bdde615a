# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collector costs a node.

Processor time, memory and processes, of both tiers, on a quiet node and on a crowded one.

The program goes in on standard input as in an audit; its parent on the node says what the kernel
counted for it and for what it started.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
from collections.abc import Iterator

from tests.gate import venvs
from tests.lab.cluster.clusters import Cluster

ROUNDS, PROCESSES, FILES = 5, 300, 100
PARENT = r"""
import json, os, resource, subprocess, sys, time
program = sys.stdin.buffer.read()
subprocess.run(["/usr/bin/python3", "-I", "-S", "-"], input=b"import os; os._exit(0)", check=True)
empty = resource.getrusage(resource.RUSAGE_CHILDREN)
def last():
    with open("/proc/sys/kernel/ns_last_pid") as file:
        return int(file.read())
before, begin = last(), time.monotonic()
answer = subprocess.run(
    ["/usr/bin/python3", "-I", "-S", "-"], input=program, stdout=subprocess.PIPE, check=True
).stdout
seconds, after, used = (
    time.monotonic() - begin, last(), resource.getrusage(resource.RUSAGE_CHILDREN)
)
time.sleep(max(0.5, seconds))
print(json.dumps({
    "ms": 1000 * seconds,
    "cpu_ms": 1000 * (used.ru_utime + used.ru_stime - empty.ru_utime - empty.ru_stime),
    "mb": used.ru_maxrss / 1000, "processes": after - before - 1, "bytes": len(answer),
}))
"""
CROWD = r"""
import os, sys, time
for number in range(int(sys.argv[1])):
    if os.fork() == 0:
        held = [os.open("/dev/null", os.O_RDONLY) for dummy in range(int(sys.argv[2]))]
        time.sleep(3600)
        os._exit(0)
print("ready", flush=True)
time.sleep(3600)
"""


def main(k8s: str) -> None:
    if k8s not in Cluster.known():
        print(
            f"cost of the collector on a node: skipped, no lab cluster {k8s} is up (make lab-up"
            f" K8S={k8s})"
        )
        return
    cluster = Cluster.find(k8s)
    print(
        f"cost of the collector on a worker ({k8s}; median of {ROUNDS}; processor time and memory"
        " of it and of all that it starts)"
    )
    for title, crowd in (
        ("quiet", contextlib.nullcontext()),
        (f"{PROCESSES} more processes, {PROCESSES * FILES} more open files", _crowd(cluster)),
    ):
        with crowd:
            for tier, deep in (("core", False), ("deep", True)):
                program = _program(deep)
                rounds = [
                    json.loads(
                        cluster.exec(
                            "w1", ["python3", "-c", PARENT], timeout=120, input=program
                        ).stdout
                    )
                    for dummy in range(ROUNDS)
                ]
                middle = {
                    name: statistics.median(one[name] for one in rounds) for name in rounds[0]
                }
                print(
                    f"  {title}, {tier}: {middle['ms']:.0f} ms, {middle['cpu_ms']:.0f} ms of the"
                    f" processor, {middle['mb']:.0f} MB, {middle['processes']:.0f} processes,"
                    f" {middle['bytes'] / 1000:.0f} kB of evidence, {len(program) / 1000:.0f} kB of"
                    " program"
                )


def _program(deep: bool) -> bytes:
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.action.node_evidence_info import (
        ActionModule,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

    return node_program.build(
        ActionModule.ENTRY,
        ActionModule.SHIP,
        {"deep": deep, "groups": ["node"], "timeout": 30},
        "BENCH",
    )


@contextlib.contextmanager
def _crowd(cluster: Cluster) -> Iterator[None]:
    """Run processes with open files on the worker inside the block."""
    cluster.exec(
        "w1",
        [
            "systemd-run",
            "--unit=bench-crowd",
            "--collect",
            "--property=TasksMax=infinity",
            "python3",
            "-c",
            CROWD,
            str(PROCESSES),
            str(FILES),
        ],
    )
    try:
        cluster.wait(
            lambda: (
                int(cluster.exec("w1", "systemctl show -P TasksCurrent bench-crowd.service").stdout)
                > PROCESSES
            ),
            60,
            "the crowd",
        )
        yield
    finally:
        cluster.exec("w1", "systemctl stop bench-crowd.service", check=False)
