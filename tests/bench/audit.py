# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit of a host against `ansible.builtin.ping` and fact gathering over ssh, in wall time.

Marginal: a playbook with many copies of one task against the same with one, so that Ansible's start
and the connection's setup, which every playbook pays once, cancel out. pipelining is on for all, as
in the collection's own playbooks.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from tests.gate import machine, venvs

ROOT = Path(__file__).resolve().parents[2]
COPIES, ROUNDS = 11, 3
TASKS = {
    "ping": {"ansible.builtin.ping": {}},
    "gather_facts": {"ansible.builtin.setup": {}},
    "node_evidence_info": {
        "kubemend.remediation.node_evidence_info": {"evidence_dir": "{{ folder }}"}
    },
}


def main(k8s: str) -> None:
    inventory = ROOT / ".lab" / k8s / "inventory.yml"
    if not inventory.exists():
        print(f"audit against ping: skipped, no lab cluster {k8s} is up (make lab-up K8S={k8s})")
        return
    print(
        f"audit of one host over ssh against ping ({k8s}; marginal wall time, median of {ROUNDS})"
    )
    for title, pattern in (("worker", "kube_node[0]"), ("control plane", "kube_control_plane[0]")):
        cost = {name: _marginal(inventory, pattern, task) for name, task in TASKS.items()}
        print(
            f"  {title}: ping {cost['ping']:.0f} ms, gather_facts {cost['gather_facts']:.0f} ms,"
            f" audit {cost['node_evidence_info']:.0f} ms ="
            f" {cost['node_evidence_info'] / cost['ping']:.2f}x ping,"
            f" {cost['node_evidence_info'] / cost['gather_facts']:.2f}x gather_facts"
        )
        _breakdown(inventory, pattern)


def _marginal(inventory: Path, pattern: str, task: dict) -> float:
    """Return the milliseconds of one more such task on one host."""

    def once(copies: int) -> float:
        return _play(
            inventory, pattern, [dict(task, name=f"copy {number}") for number in range(copies)]
        )

    once(1)
    return statistics.median(
        (once(COPIES) - once(1)) / (COPIES - 1) * 1000 for _round in range(ROUNDS)
    )


def _play(inventory: Path, pattern: str, tasks: list[dict], folder: str | None = None) -> float:
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as temporary:
        book = Path(temporary) / "play.yml"
        play = {
            "hosts": pattern,
            "gather_facts": False,
            "vars": {"folder": folder or temporary, "ansible_pipelining": True},
            "tasks": tasks,
        }
        book.write_text(yaml.safe_dump([play]), encoding="utf-8")
        begin = time.perf_counter()
        run = subprocess.run(
            [
                str(Path(sys.executable).with_name("ansible-playbook")),
                "-i",
                str(inventory),
                str(book),
            ],
            env=machine.environment(ANSIBLE_COLLECTIONS_PATH=str(venvs.collections())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        seconds = time.perf_counter() - begin
    if run.returncode:
        raise SystemExit(f"the playbook failed on {pattern}:\n{run.stdout[-2000:]}")
    return seconds


def _breakdown(inventory: Path, pattern: str) -> None:
    """Print where the node's time goes.

    The figures are each collector's own milliseconds, as the evidence records them.
    """
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        _play(inventory, pattern, [TASKS["node_evidence_info"]], folder)
        document = json.loads(next(Path(folder).glob("*.json")).read_text(encoding="utf-8"))
    parts = sorted(
        ((record.get("duration_ms", 0), name) for name, record in document["collectors"].items()),
        reverse=True,
    )
    print(
        f"    on the node {document['duration_ms']} ms (collectors run side by side): "
        + ", ".join(f"{name} {spent}" for spent, name in parts)
    )
