# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collector costs a node.

Processor time, memory and processes, of both tiers, on a quiet node and on a crowded one.

The program goes in on standard input as in an audit; its parent on the node says what the kernel
counted for it and for all that it started, also for what outlived it. Without a lab cluster, and
with trees to compare, this machine is the node.

    python -m tests.bench.node_cost [TREE ...]

runs the program of this checkout and of other ones in turn, such as of an unpacked `git archive`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.gate import machine
from tests.lab.cluster.clusters import Cluster

ROUNDS, PROCESSES, FILES = 5, 300, 100
ROUNDS_HERE = 15
ROOT = Path(__file__).resolve().parents[2]
ENTRY = "plugins.module_utils.collectors.runner:collect"
SHIP = ("plugins.module_utils.collectors.node",)
PARENT = r"""
import ctypes, json, os, resource, subprocess, sys, time
for name in [name for name in os.environ if name.startswith("PYTHON")]:
    del os.environ[name]
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
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
seconds, after = time.monotonic() - begin, last()
try:
    while True:
        os.waitpid(-1, 0)
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
time.sleep(max(0.5, seconds))
print(json.dumps({
    "ms": 1000 * seconds,
    "cpu_ms": 1000 * (used.ru_utime + used.ru_stime - empty.ru_utime - empty.ru_stime),
    "faults": used.ru_minflt - empty.ru_minflt,
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
            f"cost of the collector on a node: no lab cluster {k8s} is up (make lab-up K8S={k8s}),"
            " so this machine is the node"
        )
        compare([ROOT])
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
                program = _program(ROOT, deep)
                rounds = [
                    json.loads(
                        cluster.exec(
                            "w1", ["python3", "-c", PARENT], timeout=120, input=program
                        ).stdout
                    )
                    for dummy in range(ROUNDS)
                ]
                print(f"  {title}, {tier}: {_figures(rounds, program)}")


def compare(trees: list[Path]) -> None:
    """Print what the programs of these checkouts cost on this machine, run in turn."""
    print(f"cost of the collector on this machine (median and minimum of {ROUNDS_HERE})")
    for tier, deep in (("core", False), ("deep", True)):
        programs = [_program(tree, deep) for tree in trees]
        rounds: list[list[dict[str, float]]] = [[] for tree in trees]
        for _round in range(ROUNDS_HERE):
            for program, so_far in zip(programs, rounds, strict=True):
                so_far.append(_here(program))
        for tree, program, so_far in zip(trees, programs, rounds, strict=True):
            print(f"  {tier}, {tree}: {_figures(so_far, program)}")


def _here(program: bytes) -> dict[str, float]:
    run = subprocess.run(
        [sys.executable, "-c", PARENT],
        input=program,
        stdout=subprocess.PIPE,
        env=machine.environment(),
        timeout=120,
        check=True,
    )
    return dict(json.loads(run.stdout))


def _figures(rounds: list[dict[str, float]], program: bytes) -> str:
    middle = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    least = {name: min(one[name] for one in rounds) for name in rounds[0]}
    return (
        f"{middle['ms']:.0f} ms (minimum {least['ms']:.0f}), {middle['cpu_ms']:.0f} ms of the"
        f" processor (minimum {least['cpu_ms']:.0f}), {middle['faults']:.0f} page faults,"
        f" {middle['mb']:.0f} MB, {middle['processes']:.0f} processes,"
        f" {middle['bytes'] / 1000:.0f} kB of evidence, {len(program) / 1000:.0f} kB of program"
    )


def _program(tree: Path, deep: bool) -> bytes:
    """Return the program of a checkout, by its own builder."""
    path = tree / "plugins" / "plugin_utils" / "transport" / "node_program.py"
    spec = importlib.util.spec_from_file_location("node_program_of_a_tree", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported")
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    params = {"deep": deep, "groups": ["node"], "timeout": 30}
    return bytes(builder.build(ENTRY, SHIP, params, "BENCH"))


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


if __name__ == "__main__":
    compare([ROOT, *map(Path, sys.argv[1:])])
