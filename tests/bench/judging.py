# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging a recorded fleet: seconds, peak memory, and whether both grow in proportion to the hosts.

Workers are copies of the bundled example's worker under other names; each size runs in a process of its own on one core,
so that peak memory is that size's.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.gate import venvs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "two-leaders"
SIZES = (1250, 2500, 5000)


def main() -> None:
    print("judging recorded nodes (one core; copies of the example's worker beside its masters)")
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        base = None
        for size in SIZES:
            fleet = Path(folder) / str(size)
            bytes_each = _write_fleet(fleet, size)
            run = subprocess.run([sys.executable, "-m", "tests.bench.judging", str(fleet)], cwd=ROOT, check=True,
                                 stdout=subprocess.PIPE, text=True, timeout=600)
            seconds, peak, findings = json.loads(run.stdout)
            base = base or seconds / size
            print(f"  {size:6} nodes of {bytes_each / 1000:.0f} kB: {seconds:6.2f} s, peak {peak:4.0f} MB, "
                  f"{findings} findings, time per node {seconds / size / base:.2f}x that of {SIZES[0]}")


def _write_fleet(folder: Path, size: int) -> int:
    source = EXAMPLE / "evidence" if (EXAMPLE / "evidence").is_dir() else EXAMPLE
    folder.mkdir()
    template = None
    for path in sorted(source.glob("*.json")):
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_text(text, encoding="utf-8")
        document = json.loads(text)
        if document.get("kind") != "cluster" and "node" in document.get("groups", ()):
            template = document
    if template is None:
        raise SystemExit(f"{source} holds no worker's evidence to copy")
    for number in range(size):
        name = f"worker-{number:05}"
        (folder / f"{name}.json").write_text(json.dumps({**template, "host": name, "node": name}), encoding="utf-8")
    return len(json.dumps(template))


def _judge(folder: str) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils import evidence, judge

    begin = time.perf_counter()
    result = judge.judge(evidence.stream([folder]))
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([seconds, peak, len(result.findings)]))


if __name__ == "__main__":
    _judge(sys.argv[1])
