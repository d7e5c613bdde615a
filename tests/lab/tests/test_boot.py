# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker that forwards nothing, as after a boot without its file of sysctl.d.

The repair is planned, written where it lasts, set in the kernel, and reverted.
"""

from __future__ import annotations

from tests.lab.incidents.ip_forward_off import KEY, value
from tests.lab.support import limits, playbook
from tests.lab.support.repairing import broken

ASKED = ("-e", "kubemend_max_risk=1", "-e", "kubemend_faults=KM520")


def ours(cluster) -> list[str]:
    """Return the lines of the managed file on w1 below its headline."""
    return (
        cluster.exec("w1", f"cat {limits.FILE} 2>/dev/null; true").stdout.decode().splitlines()[1:]
    )


def test_forwarding_comes_back_and_lasts(cluster, play, tmp_path):
    with broken(cluster, "ip-forward-off", target="w1"):
        done, report = play("--check", "--diff", *ASKED)
        assert (done.returncode, value(cluster, "w1"), ours(cluster)) == (0, "0", []), done.stdout[
            -3000:
        ]
        assert [
            (one["code"], one["host"], one["component"], one["severity"])
            for one in report["findings"]
        ] == [("KM520", "w1", KEY, "critical")]
        assert [(step["remedy"], step["risk"], step["allowed"]) for step in report["plan"]] == [
            ("kernel_setting", 1, True)
        ]
        assert f"+{KEY} = 1" in done.stdout
        done, report = play(*ASKED)
        assert (
            done.returncode,
            [step["state"] for step in report["steps"]],
            report["findings"],
        ) == (0, ["done"], []), done.stdout[-4000:]
        assert (value(cluster, "w1"), ours(cluster)) == ("1", [f"{KEY} = 1"])
        again, second = play(*ASKED)
        assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
            -3000:
        ]
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={report['run_id']}",
            report=str(tmp_path / "revert"),
        )
        assert (done.returncode, value(cluster, "w1"), ours(cluster)) == (0, "1", []), done.stdout[
            -3000:
        ]
