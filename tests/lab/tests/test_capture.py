# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels raised at run time, lines captured, levels put back.

The levels go back at the end of the run, by the hosts themselves if the controller is gone, by
revert, or by the next repairing run. What cannot be raised says why.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from tests.gate import machine
from tests.lab.cluster import bringup
from tests.lab.support import interrupt, jobs
from tests.lab.support.repairing import OLD, codes
from tests.lab.support.static_pod import MANAGER, SCHEDULER, manifest, processes, wait_flag

ALL = "kubelet,kube-scheduler,kube-controller-manager,kube-apiserver"
WAITING = "Wait while they log"

SPAN = 6
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"


def chatter(cluster):
    """Return how many lines two logs get in SPAN seconds.

    The first number is of m1's scheduler and API server, the second of w1's kubelet.
    """

    def count():
        pods = cluster.exec(
            "m1",
            "cat /var/log/pods/kube-system_kube-scheduler-*/*/*.log"
            " /var/log/pods/kube-system_kube-apiserver-*/*/*.log | wc -l",
        ).stdout
        return int(pods), int(cluster.exec("w1", "journalctl -u kubelet -o cat | wc -l").stdout)

    before = count()
    time.sleep(SPAN)
    after = count()
    return after[0] - before[0], after[1] - before[1]


def assert_quiet(cluster, was):
    """Require that as few lines as before are written soon.

    A component that was started again, or heals, logs more than usual for a while. A level that
    stays raised goes on for ever.
    """

    def quiet():
        pods, kubelet = chatter(cluster)
        if pods > was[0] * 3 + 20 or kubelet > was[1] * 3 + 20:
            raise ValueError(f"{pods} and {kubelet} lines, before {was}")
        return True

    cluster.wait(quiet, 240, "as few lines as before")


def pids(cluster):
    found = {
        (node.name, component): processes(cluster, node, component)
        for node in cluster.of_role("master")
        for component in (SCHEDULER, MANAGER)
    }
    for node in (*cluster.of_role("master"), *cluster.of_role("worker")):
        found[node.name] = cluster.exec(node, "pgrep -x kubelet").stdout
    return found


def levels(report):
    return {
        (one["host"], one["component"]): (one["raised"], one["restored"])
        for one in report["capture"]["levels"]
    }


@pytest.fixture
def quiet(cluster):
    """Return how much is logged without a capture.

    What an earlier test started again calms down first.
    """
    before, now = None, chatter(cluster)
    while before is None or now[0] * 2 < before[0] or now[1] * 2 < before[1]:
        before, now = now, chatter(cluster)
    return now


def test_levels_rise_without_a_restart_and_lines_of_one_pod_come_from_all_hosts(
    cluster, play, quiet, tmp_path
):
    namespace, before = jobs.new_namespace(), pids(cluster)
    jobs.create_namespace(cluster, namespace)
    try:
        jobs.create(cluster, namespace, 1, 0)
        cluster.wait(lambda: jobs.running(cluster, namespace), 180, "the Job's pod to run")
        (name,) = jobs.running(cluster, namespace)
        with interrupt.Controller(
            cluster,
            tmp_path / "capture",
            "-e",
            f"kubemend_capture_components={ALL}",
            "-e",
            "kubemend_capture_level=6",
            "-e",
            "kubemend_capture_seconds=40",
            "-e",
            f"kubemend_pod={namespace}/{name}",
            name="capture_logs",
        ) as controller:
            cluster.wait(lambda: WAITING in controller.output, 240, "the levels to be raised")
            loud = chatter(cluster)
            cluster.kubectl("-n", namespace, "delete", "pod", name, "--wait=false")
            code, report = controller.wait(600)
        assert (code, report["exit_reason"], report["mode"]) == (
            0,
            "ok",
            "capture",
        ), controller.output[-4000:]
        assert loud[0] > quiet[0] * 3, (quiet, loud)
        assert loud[1] > quiet[1] * 3, (quiet, loud)
        wanted = {
            (f"m{number}", component)
            for number in (1, 2, 3)
            for component in (SCHEDULER, MANAGER, "kube-apiserver")
        } | {("w1", "kubelet")}
        if cluster.k8s == OLD:  # before 1.23 it has no endpoint for it
            wanted -= {(f"m{number}", MANAGER) for number in (1, 2, 3)}
            assert (
                sum(
                    "offers no /debug/flags/v" in note and MANAGER in note
                    for note in report["notices"]
                )
                == 3
            ), report["notices"]
        assert levels(report) == dict.fromkeys(wanted, (True, True))
        lines = (
            (tmp_path / "capture" / "report" / "capture" / "lines.txt")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        assert {line.split()[1] for line in lines} == {"m1", "m2", "m3", "w1"}
        assert lines == sorted(lines, key=lambda line: line.split()[0])
        assert any(
            " w1 kubelet " in line and "SyncLoop" in line and "DELETE" in line and name in line
            for line in lines
        )
        told = [entry["what"] for timeline in report["timelines"] for entry in timeline["entries"]]
        assert any("DELETE" in what for what in told), told
        assert any("created by" in what for what in told), told
    finally:
        jobs.remove(cluster, namespace)
    assert pids(cluster) == before
    assert interrupt.left_over(cluster) == []
    assert_quiet(cluster, quiet)


def held(cluster, folder, *arguments):
    """Return a controller that has raised the levels and waits."""
    controller = interrupt.Controller(
        cluster,
        folder,
        "-e",
        "kubemend_capture_components=kubelet,kube-scheduler,kube-apiserver",
        "-e",
        "kubemend_capture_level=6",
        *arguments,
        name="capture_logs",
    )
    try:
        cluster.wait(lambda: WAITING in controller.output, 240, "the levels to be raised")
    except BaseException:
        controller.kill()
        raise
    return controller


def raised(cluster, node="m1"):
    return int(cluster.exec(node, "ls -d /var/lib/kubemend/levels/*.py 2>/dev/null | wc -l").stdout)


def test_the_controller_is_killed(cluster, play, quiet, tmp_path):
    with held(cluster, tmp_path / "killed", "-e", "kubemend_capture_seconds=30") as controller:
        controller.kill()
    assert raised(cluster)
    cluster.wait(
        lambda: not any(raised(cluster, node) for node in cluster.of_role("master")),
        240,
        "the hosts to put the levels back by themselves",
    )
    assert_quiet(cluster, quiet)
    _done, report = play(name="audit")
    assert codes(report) == set()
    assert interrupt.left_over(cluster) == []


def test_the_host_that_raised_them_is_started_again(cluster, quiet, tmp_path):
    """The kubelet of w1 was raised through m1.

    It is put back long before its time, as soon as m1's API server answers.
    """
    with held(cluster, tmp_path / "killed", "-e", "kubemend_capture_seconds=3600") as controller:
        controller.kill()
    bringup.start_again(cluster.node("m1"))
    cluster.wait_healthy()
    cluster.wait(lambda: not raised(cluster), 300, "m1 to put the levels back after its start")
    revert(cluster, tmp_path, "m2", "m3")
    assert_quiet(cluster, quiet)


def test_after_ctrl_c_one_command_takes_back_levels_and_locks(cluster, quiet, tmp_path):
    """Masters that raised nothing hold the cluster's lock, and no service frees it."""
    with held(
        cluster,
        tmp_path / "interrupted",
        "-e",
        "kubemend_capture_components=kubelet",
        "-e",
        "kubemend_capture_seconds=3600",
    ) as controller:
        assert controller.interrupt(), controller.output[-3000:]
    still = [node.name for node in cluster.of_role("master") if raised(cluster, node.name)]
    assert len(still) == 1
    assert len([line for line in interrupt.left_over(cluster) if line.endswith("lock")]) == 3
    revert(cluster, tmp_path, *still)
    assert_quiet(cluster, quiet)
    assert interrupt.left_over(cluster) == []


def revert(cluster, folder, *still):
    """Revert by revert.yml what other hosts raised, and their services with it."""
    from tests.lab.support import playbook

    run_id = (
        cluster.exec(still[0], "ls /var/lib/kubemend/levels | sed -n s/.py$//p")
        .stdout.decode()
        .strip()
    )
    done = playbook.run(
        "revert",
        cluster.inventory,
        "-e",
        f"kubemend_run_id={run_id}",
        report=str(folder / "revert"),
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "restored" in done.stdout, done.stdout[-3000:]
    cluster.wait(
        lambda: not any(raised(cluster, node) for node in still),
        120,
        "the services to see that nothing is left to do",
    )


def test_what_is_left_behind_is_found_and_put_back(cluster, play, quiet, tmp_path):
    with held(cluster, tmp_path / "killed", "-e", "kubemend_capture_seconds=3600") as controller:
        controller.kill()
    for node in cluster.of_role("master"):
        cluster.exec(
            node,
            "systemctl kill -s KILL 'kubemend-levels-*'; systemctl stop 'kubemend-levels-*'; rm -rf"
            " /var/lib/kubemend/levels /etc/systemd/system/kubemend-levels-*"
            " /etc/systemd/system/multi-user.target.wants/kubemend-levels-*",
        )
        entries = (
            cluster.exec(node, "ls /var/lib/kubemend/journal/*/*-raise.json")
            .stdout.decode()
            .split()
        )
        for entry in entries:
            interrupt.rewrite(cluster, node.name, entry, "d['clock'][1] -= 7200")
    _done, report = play(name="audit")
    assert {code for code, _host in codes(report)} == {"KM903"}
    assert ("KM903", "m2") in codes(report)
    done, report = play("-e", "kubemend_max_risk=1")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]
    assert {step["remedy"] for step in report["plan"]} == {"restore_levels"}
    assert {step["state"] for step in report["steps"]} == {"done"}
    assert_quiet(cluster, quiet)


def test_one_kubelet_is_put_back_by_hand(cluster, quiet):
    """The level goes back by the command of docs/capture.md for a host that never comes back."""
    command = re.search(
        r"`(echo -n 2 \| kubectl replace --raw \S+NODE\S+ -f -)`",
        (machine.ROOT / "docs" / "capture.md").read_text(encoding="utf-8"),
    )[1]

    def put(level):
        return cluster.exec(
            "m1",
            "export KUBECONFIG=/etc/kubernetes/admin.conf; "
            + command.replace("NODE", "w1").replace("-n 2", f"-n {level}"),
        ).stdout

    try:
        assert put(6) == b"successfully set klog.logging.verbosity to 6\n"
        assert chatter(cluster)[1] > quiet[1] * 3
    finally:
        assert put(0) == b"successfully set klog.logging.verbosity to 0\n"
    assert_quiet(cluster, quiet)


def test_wrong_wishes_change_nothing(cluster, tmp_path):
    """One sentence each, and nothing stays raised.

    A pod that is not there, a full disk, a scheduler without profiling.
    """
    from tests.lab.support import playbook

    def refused(name, *arguments):
        done = playbook.run(
            "capture_logs",
            cluster.inventory,
            "-e",
            "kubemend_capture_seconds=2",
            *arguments,
            report=str(tmp_path / name),
        )
        assert interrupt.left_over(cluster) == []
        return done

    done = refused("pod", "-e", "kubemend_pod=default/not-there")
    assert done.returncode == 2, done.stdout[-3000:]
    assert "no API of these hosts knows such a pod" in done.stdout, done.stdout[-3000:]
    cluster.exec(
        "m2", "mkdir -p /var/lib/kubemend && mount -t tmpfs -o size=64k tmpfs /var/lib/kubemend"
    )
    try:
        done = refused("full", "-e", "kubemend_capture_components=kube-scheduler", "--limit", "m2")
        assert done.returncode == 2, done.stdout[-3000:]
        assert "/var/lib/kubemend has 0 MiB free" in done.stdout, done.stdout[-3000:]
    finally:
        cluster.exec("m2", "umount /var/lib/kubemend")


@pytest.mark.skipif(not FULL, reason="a restart of its own: only in the whole matrix")
def test_a_scheduler_without_profiling_says_so(cluster, tmp_path):
    from tests.lab.support import playbook

    text = cluster.read("m2", manifest(SCHEDULER)).decode()
    cluster.write(
        "m2",
        manifest(SCHEDULER),
        text.replace("    - --leader-elect", "    - --profiling=false\n    - --leader-elect", 1),
    )
    try:
        wait_flag(cluster, "m2", SCHEDULER, "--profiling=false")
        cluster.wait_healthy()
        done = playbook.run(
            "capture_logs",
            cluster.inventory,
            "-e",
            "kubemend_capture_components=kube-scheduler",
            "--limit",
            "m2",
            report=str(tmp_path / "report"),
        )
        assert done.returncode == 2, done.stdout[-3000:]
        assert "without profiling" in done.stdout, done.stdout[-3000:]
    finally:
        cluster.write("m2", manifest(SCHEDULER), text)
        wait_flag(cluster, "m2", SCHEDULER, "--profiling=false", gone=True)
        cluster.wait_healthy()
