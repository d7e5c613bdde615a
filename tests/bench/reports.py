# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of 5,000 hosts.

Seconds of the processor, memory and size of each format, of one result that was judged before.

A process of its own for each, forked from the one that judged: what it holds beyond what that one
held is the report's. One worker in fifty has a fault.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench import judging
from tests.gate import venvs

SIZE, FAULTY = 5000, 50


def main() -> None:
    print(
        f"reports of {SIZE} hosts, one in {FAULTY} of which has a fault (seconds of the processor,"
        " memory beyond what judging left, size)"
    )
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        fleet = Path(folder) / "fleet"
        judging.write_fleet(fleet, SIZE)
        for path in sorted(fleet.glob("worker-*.json"))[::FAULTY]:
            _break(path)
        run = subprocess.run(
            [sys.executable, "-m", "tests.bench.reports", str(fleet)],
            cwd=judging.ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=1800,
        )
    said = json.loads(run.stdout)
    print(
        f"  {said.pop('findings')} findings, {said.pop('verdicts')} verdicts;"
        f" {said.pop('before'):.0f} MB after judging"
    )
    for name, (seconds, held, size) in said.items():
        print(f"  {name:9} {seconds:6.2f} s, {held:4.0f} MB, {size / 1e6:5.1f} MB written")


def _break(path: Path) -> None:
    """Break a document: a kubelet that does not run has many verdicts and a finding."""
    document = json.loads(path.read_text(encoding="utf-8"))
    kubelet = document["collectors"]["kubelet"]["data"]
    kubelet["process"] = None
    kubelet["unit"].update(active_state="inactive", sub_state="dead", main_pid=0)
    path.write_text(json.dumps(document), encoding="utf-8")


def _render(folder: str) -> None:
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
        document as evidence_document,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
        sources as evidence_sources,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
        engine as fault_engine,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
        html,
        json_report,
        junit,
        prometheus,
        sarif,
        text,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run

    judged = fault_engine.evaluate(evidence_sources.stream([folder]))
    run = Run(
        run_id="bench",
        started=evidence_document.now(),
        finished=evidence_document.now(),
        mode="observe",
        report_dir="/nonexistent",
        tool_version=evidence_document.TOOL_VERSION,
        fail_on="never",
        titles={code: fault.title for code, fault in fault_engine.CATALOGUE.items()},
    )
    formats: dict[str, Callable[[], Iterable[str]]] = {
        "terminal": lambda: [text.render(judged, run, 160)],
        "json": lambda: json_report.pieces(judged, run),
        "html": lambda: [html.render(judged, run)],
        "junit": lambda: [junit.render(judged, run)],
        "prometheus": lambda: [prometheus.render(judged, run)],
        "sarif": lambda: [sarif.render(judged, run)],
    }
    said = {
        "findings": len(judged.findings),
        "verdicts": len(judged.verdicts),
        "before": _resident(),
    }
    print(json.dumps({**said, **{name: _apart(render) for name, render in formats.items()}}))


def _resident() -> float:
    """MB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1024 / 1000  # as ru_maxrss counts


def _apart(render: Callable[[], Iterable[str]]) -> list[float]:
    """Return [processor seconds, more MB than before, bytes] of a report that a child renders."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before, begin = _resident(), time.process_time()
        size = sum(len(piece.encode("utf-8", "backslashreplace")) for piece in render())
        seconds = time.process_time() - begin
        held = max(0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000 - before)
        os.write(writer, json.dumps([seconds, held, size]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said)


if __name__ == "__main__":
    _render(sys.argv[1])
