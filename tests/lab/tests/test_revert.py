# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A repair reverted on a real cluster: the former bytes, the former processes, the fault again.

Some changes are not reverted, and the report says so.
"""

from __future__ import annotations

import os

import pytest

from tests.lab.support import playbook
from tests.lab.support.repairing import CONSENT, broken, codes, state, untouched
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    manifest,
    processes,
    set_flag,
    wait_election_off,
)

NOBODYS = "20250101T000000Z-000000"
COMPONENTS = (SCHEDULER, MANAGER)


@pytest.fixture
def revert(cluster, tmp_path):
    """Run revert.yml; its exit code and its report."""

    def run(run_id=None, *arguments):
        wanted = ["-e", f"kubemend_run_id={run_id}"] if run_id else []
        done = playbook.run(
            "revert", cluster.inventory, *wanted, *arguments, report=str(tmp_path / "revert")
        )
        text = tmp_path / "revert" / "report.txt"
        assert text.exists(), done.stdout[-3000:]
        # however it is wrapped
        return done.returncode, " ".join(text.read_text(encoding="utf-8").split())

    return run


def held(cluster, node="m2"):
    return {component: cluster.read(node, manifest(component)) for component in COMPONENTS}


def running(cluster, node="m2"):
    return {
        component: [argv for _pid, argv in processes(cluster, node, component)]
        for component in COMPONENTS
    }


def newest(cluster, node="m2"):
    return cluster.exec(node, "ls /var/lib/kubemend/journal").stdout.decode().split()[-1]


def test_a_repair_is_taken_back_and_that_too(cluster, play, revert):
    with broken(cluster, "two-leaders", symptom=False):
        for component in COMPONENTS:
            wait_election_off(cluster, "m2", component)
        former, argv = held(cluster), running(cluster)
        done, report = play(*CONSENT)
        assert done.returncode == 0, done.stdout[-3000:]
        repaired, run_id = held(cluster), report["run_id"]

        before = state(cluster)
        code, text = revert()
        assert code == 0
        assert f"run {run_id} (" in text
        assert f"kubemend_run_id={run_id}" in text
        code, text = revert(run_id, "--check")
        assert code == 0
        assert "kubemend: 2 files would be restored" in text
        code, text = revert(NOBODYS)
        assert code == 2
        assert f"no journal of these hosts knows run {NOBODYS}" in text.rpartition("kubemend: ")[2]
        untouched(cluster, before)

        code, text = revert("last")
        assert code == 0, text
        assert f"run {run_id}: 2 restored" in text, text
        assert (held(cluster), running(cluster)) == (former, argv)
        _done, report = play(name="audit")
        assert {
            (item["code"], item["host"], item["component"])
            for item in report["findings"]
            if item["code"] == "KM101"
        } == {("KM101", "m2", component) for component in COMPONENTS}
        undo = newest(cluster)
        code, text = revert(run_id)
        assert code == 0
        assert f"run {run_id}: 2 already" in text
        assert held(cluster) == former

        code, text = revert(undo)
        assert code == 0, text
        assert f"run {undo}: 2 restored" in text, text
        assert held(cluster) == repaired
        theirs = repaired[SCHEDULER] + b"# somebody was here\n"
        cluster.write("m2", manifest(SCHEDULER), theirs)
        code, text = revert(run_id)
        assert code == 2, text
        assert "1 restored, 1 refused" in text, text
        assert "it is neither what the run left" in text.rpartition("kubemend: ")[2], text
        assert held(cluster) == {SCHEDULER: theirs, MANAGER: former[MANAGER]}
        done, report = play(*CONSENT)
        assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]


@pytest.mark.skipif(
    os.environ.get("KUBEMEND_TEST_FULL") != "1",
    reason="the kubelet's own back-off makes it slow: KUBEMEND_TEST_FULL=1",
)
def test_a_stray_backup_comes_back(cluster, play, revert):
    """The one case in which a revert makes a file.

    The scheduler goes away and comes back until the kubelet has settled.
    """
    # sorts before the usual name, which the kubelet therefore follows
    path = "/etc/kubernetes/manifests/kube-scheduler.bak"
    backup = set_flag(cluster.read("m2", manifest(SCHEDULER)).decode(), "v", "2")
    try:
        cluster.write("m2", path, backup, mode="600")
        settled(cluster)
        done, report = play(*CONSENT)
        assert (done.returncode, [step["state"] for step in report["steps"]]) == (
            0,
            ["done"],
        ), done.stdout[-3000:]
        code, text = revert(report["run_id"])
        assert code == 0, text
        assert f"{path} (kube-scheduler): restored" in text, text
        assert "kube-scheduler runs again as before" in text, text
        assert cluster.read("m2", path).decode() == backup
        _done, report = play(name="audit")
        assert ("KM109", "m2") in codes(report)
    finally:
        cluster.exec("m2", ["rm", "-f", path])
        cluster.exec("m2", ["systemctl", "restart", "kubelet"])
        cluster.wait_healthy()


def settled(cluster):
    """Return whether the scheduler has run longer than the kubelet's listing of manifests takes."""
    seen = []

    def same():
        seen.append(processes(cluster, "m2", SCHEDULER))
        return len(seen) > 25 and len(seen[-1]) == 1 and all(one == seen[-1] for one in seen[-25:])

    cluster.wait(same, 240, "one scheduler on m2 that stays")
