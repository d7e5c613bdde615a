# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that keeps a real kubelet down: planned, taken out of fstab, switched off, proven.

A revert gives fstab back and leaves swap off.
"""

from __future__ import annotations

import yaml

from tests.lab.incidents.kubelet_swap import FILE
from tests.lab.support import playbook
from tests.lab.support.repairing import broken

LINE = f"{FILE} none swap sw 0 0"


def seen(cluster) -> tuple[bool, list[str]]:
    """Return whether w1's swap is on, and its lines in fstab."""
    on = FILE in cluster.exec("w1", ["cat", "/proc/swaps"]).stdout.decode()
    return on, [
        line for line in cluster.read("w1", "/etc/fstab").decode().splitlines() if FILE in line
    ]


def healthy(cluster) -> bool:
    return (
        cluster.exec("w1", "curl -sf http://127.0.0.1:10248/healthz", check=False).stdout == b"ok"
    )


def test_swap_goes_at_its_source_and_then_itself(cluster, play, tmp_path):
    with broken(cluster, "kubelet-swap", target="w1"):
        done, report = play(
            "--check", "--diff", "-e", "kubemend_max_risk=3", "-e", "kubemend_faults=KM504"
        )
        assert (done.returncode, seen(cluster)) == (0, (True, [LINE])), done.stdout[-3000:]
        assert [
            (step["host"], step["remedy"], step["risk"], step["allowed"]) for step in report["plan"]
        ] == [
            ("w1", "swap_persistence", 1, True),
            ("w1", "swap_off", 3, True),
        ]
        assert f"+# kubemend: {LINE}" in done.stdout
        done, report = play("-e", "kubemend_max_risk=1", "-e", "kubemend_faults=KM504")
        assert [step["state"] for step in report["steps"]] == ["done"], done.stdout[-3000:]
        assert seen(cluster) == (
            True,
            [f"# kubemend: {LINE}"],
        ), done.stdout[-3000:]
        first = report["run_id"]
        name = tmp_path / "role.yml"
        name.write_text(
            yaml.safe_dump(
                [
                    {
                        "hosts": "all",
                        "gather_facts": False,
                        "roles": ["kubemend.remediation.swap_off"],
                    }
                ]
            )
        )
        done, report = play(name=str(name))
        assert (
            done.returncode,
            [step["state"] for step in report["steps"]],
            report["findings"],
        ) == (0, ["done"], []), done.stdout[-4000:]
        assert seen(cluster)[0] is False
        # Nobody started the kubelet: its unit tries again, and now it can.
        cluster.wait(lambda: healthy(cluster), 180, "the kubelet of w1")
        again, second = play(name=str(name))
        assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
            -3000:
        ]
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={first}",
            report=str(tmp_path / "revert"),
        )
        assert (done.returncode, seen(cluster)) == (0, (False, [LINE])), done.stdout[-3000:]
