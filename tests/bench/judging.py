# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging a recorded fleet: seconds, peak memory, and whether both grow in proportion to the hosts.

Workers are copies of a recorded worker under other names; each size runs in a process of its own on
one core, so that peak memory is that size's. Seconds are those of the processor: other work of the
machine does not count.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.gate import venvs

ROOT = Path(__file__).resolve().parents[2]
RECORDED, WORKER = ROOT / "tests" / "fixtures" / "recorded" / "v1.36.3-cordoned" / "evidence", "w1"
SIZES = (1250, 5000, 20000)


def main() -> None:
    print("judging recorded nodes (one core; copies of a recorded worker beside its master)")
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        base = None
        for size in SIZES:
            fleet = Path(folder) / str(size)
            bytes_each = write_fleet(fleet, size)
            run = subprocess.run(
                [sys.executable, "-m", "tests.bench.judging", str(fleet)],
                cwd=ROOT,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=1800,
            )
            seconds, peak, findings = json.loads(run.stdout)
            base = base or seconds / size
            print(
                f"  {size:6} nodes of {bytes_each / 1000:.0f} kB: {seconds:6.2f} s, peak"
                f" {peak:4.0f} MB, {findings} findings, time per node {seconds / size / base:.2f}x"
                f" that of {SIZES[0]}"
            )


def write_fleet(
    folder: Path, size: int, named: Callable[[int], str] = "worker-{:05}".format
) -> int:
    """Write the recorded masters and many copies of the recorded worker; return their bytes."""
    folder.mkdir()
    documents = {
        path.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RECORDED.glob("*.json"))
    }
    worker = documents.pop(f"{WORKER}.json")
    nodes = documents["m1.cluster.json"]["collectors"]["nodes"]["data"]["items"]
    node = next(item for item in nodes if item["name"] == WORKER)
    address = worker["address"]
    text, object_text = (
        json.dumps(worker),
        json.dumps({**node, "unschedulable": False, "taints": []}),
    )
    nodes.remove(node)
    for number in range(size):
        name, own = (
            named(number),
            f"10.{100 + number // 65536}.{number // 256 % 256}.{number % 256}",
        )
        (folder / f"{name}.json").write_text(_renamed(text, name, address, own), encoding="utf-8")
        nodes.append(json.loads(_renamed(object_text, name, address, own)))
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return len(text)


def _renamed(text: str, name: str, address: str, own: str) -> str:
    return text.replace(f'"{WORKER}"', f'"{name}"').replace(address, own)


def _judge(folder: str) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
        sources as evidence_sources,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
        engine as fault_engine,
    )

    begin = time.process_time()
    result = fault_engine.evaluate(evidence_sources.stream([folder]))
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([seconds, peak, len(result.findings)]))


if __name__ == "__main__":
    _judge(sys.argv[1])
