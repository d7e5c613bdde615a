# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An audit in slices, as AWX makes them.

Ansible-runner with inventories that know a part of the hosts, judged together as if it had been
one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.gate import machine, venvs
from tests.lab.cluster import inventory
from tests.lab.support import playbook
from tests.lab.support.repairing import broken
from tests.lab.support.report import findings

# Hosts that a slice has, and a fault of the cluster that it must not speak of.
SLICES, OF_CLUSTER = (("m1", "w1"), ("m2", "m3")), "KM112"


def sliced(cluster, folder: Path, mine) -> dict:
    """Return one slice's report; its evidence is in folder/report."""
    names = [node.name for node in cluster.nodes]
    path = inventory.write(
        folder / "hosts.yml",
        cluster.inventory_data(leave_out=[name for name in names if name not in mine]),
    )
    variables = {"kubemend_slice": True, "kubemend_report_dir": str(folder / "report")}
    env = machine.environment(ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()))
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    done = subprocess.run(
        [
            str(venvs.ensure("rulebook") / "bin" / "ansible-runner"),
            "run",
            str(folder),
            "-p",
            "kubemend.remediation.audit",
            "--inventory",
            str(path),
            "--cmdline",
            f"-e '{json.dumps(variables)}'",
        ],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))


def verdicts(report: dict) -> set:
    return {
        (one["code"], one["host"], one["component"], one["verdict"]) for one in report["verdicts"]
    }


def test_slices_say_together_what_one_run_says(cluster, play, tmp_path):
    with broken(cluster, "kubelet-stopped", target="w1"):
        _done, whole = play(name="audit")
        slices = [
            sliced(cluster, tmp_path / f"slice{number}", mine) for number, mine in enumerate(SLICES)
        ]
        for report, mine in zip(slices, SLICES, strict=True):
            assert {row["host"] for row in report["hosts"]} == set(mine)
            assert (OF_CLUSTER, "slice") in {
                (one["code"], one["reason"]) for one in report["not_judged"]
            }
            assert OF_CLUSTER not in {
                one["code"] for one in [*report["verdicts"], *report["findings"]]
            }
        paths = json.dumps(
            {
                "kubemend_evidence": [
                    str(tmp_path / f"slice{number}" / "report") for number in range(len(SLICES))
                ]
            }
        )
        done = playbook.run(
            "replay", cluster.inventory, "-e", paths, report=str(tmp_path / "merged")
        )
        assert done.returncode == 0, done.stdout[-3000:]
        merged = json.loads((tmp_path / "merged" / "report.json").read_text(encoding="utf-8"))
        assert verdicts(merged) == verdicts(whole)
        assert (
            {(one["code"], one["host"]) for one in findings(merged)}
            == {(one["code"], one["host"]) for one in findings(whole)}
            >= {("KM502", "w1")}
        )
