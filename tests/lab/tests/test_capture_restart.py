# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels that only a restart raises.

They are raised where that is allowed by name, and proven. Every way that puts them back restores
the same bytes.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster import bringup
from tests.lab.support import interrupt, jobs, playbook
from tests.lab.support.kubelet_verbosity import argv, deaf, momentary, v_flags
from tests.lab.support.repairing import OLD, codes
from tests.lab.support.static_pod import API_SERVER, MANAGER, manifest, processes, wait_flag
from tests.lab.tests.test_capture import FULL, WAITING, levels, raised

MANAGERS = ("-e", f"kubemend_capture_components={MANAGER}", "--limit", "m2")
KUBELETS = ("-e", "kubemend_capture_components=kubelet")
CONSENT = ("-e", "kubemend_allow=capture_restart")


@pytest.fixture
def without_endpoint(cluster):
    """Yield a controller manager whose level only a restart raises.

    Before 1.23 every controller manager is one, later one without profiling.
    """
    text = cluster.read("m2", manifest(MANAGER)).decode()
    if cluster.k8s != OLD:
        cluster.write(
            "m2",
            manifest(MANAGER),
            text.replace(
                "    - --leader-elect", "    - --profiling=false\n    - --leader-elect", 1
            ),
        )
        wait_flag(cluster, "m2", MANAGER, "--profiling=false")
        cluster.wait_healthy()
    yield cluster.read("m2", manifest(MANAGER))
    if cluster.k8s != OLD:
        cluster.write("m2", manifest(MANAGER), text)
        wait_flag(cluster, "m2", MANAGER, "--profiling=false", gone=True)
    cluster.wait_healthy()


def left_over(cluster):
    """Return what a killed run left, but for its locks on hosts from which it raised nothing.

    Those locks have their own time.
    """
    return [line for line in interrupt.left_over(cluster) if "/var/lib/kubemend/lock" not in line]


def level_of_manager(cluster):
    return [
        word
        for _pid, words in processes(cluster, "m2", MANAGER)
        for word in words
        if word.startswith("--v=")
    ]


def test_a_manifest_is_edited_and_its_bytes_come_back(cluster, without_endpoint, tmp_path):
    before = without_endpoint
    done = playbook.run(
        "capture_logs", cluster.inventory, *MANAGERS, report=str(tmp_path / "refused")
    )
    assert done.returncode == 2, done.stdout[-3000:]
    assert "offers no /debug/flags/v" in done.stdout, done.stdout[-3000:]
    assert "-e kubemend_allow=capture_restart" in done.stdout, done.stdout[-3000:]
    done = playbook.run(
        "capture_logs",
        cluster.inventory,
        *MANAGERS,
        *CONSENT,
        "--check",
        report=str(tmp_path / "check"),
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "+    - --v=4" in done.stdout, done.stdout[-3000:]
    assert level_of_manager(cluster) == [], done.stdout[-3000:]
    with interrupt.Controller(
        cluster,
        tmp_path / "capture",
        *MANAGERS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=5",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        assert level_of_manager(cluster) == ["--v=4"]
        code, report = controller.wait(900)
    assert (code, levels(report)) == (0, {("m2", MANAGER): (True, True)}), controller.output[-4000:]
    lines = (
        (tmp_path / "capture" / "report" / "capture" / "lines.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert any(f" m2 {MANAGER} " in line for line in lines), "the logs went with the pod"
    assert cluster.read("m2", manifest(MANAGER)) == before
    assert level_of_manager(cluster) == []
    assert interrupt.left_over(cluster) == []
    assert (
        cluster.exec(
            "m2", f"ls /var/lib/kubemend/journal/{report['run_id']} | grep -c log-{MANAGER}"
        ).stdout.strip()
        != b"0"
    )


def test_a_manifest_that_is_edited_meanwhile_is_not_said_to_be_back(
    cluster, without_endpoint, play, tmp_path
):
    """The edit keeps kubemend's argument, and the level with it.

    None of kubemend's bytes come back, the run fails, and an audit names the level until it is
    gone.
    """
    with interrupt.Controller(
        cluster,
        tmp_path / "capture",
        *MANAGERS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=40",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        text = cluster.read("m2", manifest(MANAGER)).decode()
        cluster.write(
            "m2",
            manifest(MANAGER),
            text.replace(
                "    - --leader-elect", "    - --concurrent-gc-syncs=19\n    - --leader-elect", 1
            ),
        )
        code, report = controller.wait(900)
    assert (code, levels(report)) == (
        2,
        {("m2", MANAGER): (True, False)},
    ), controller.output[-4000:]
    assert "take --v=4 out by hand" in controller.output, controller.output[-4000:]
    wait_flag(cluster, "m2", MANAGER, "--concurrent-gc-syncs=19")
    assert level_of_manager(cluster) == ["--v=4"]
    assert "goes on trying" not in controller.output
    assert not raised(cluster, "m2")
    _done, report = play(name="audit")
    assert codes(report) == {("KM903", "m2")}
    assert any("take --v=4 out by hand" in item["remedy"] for item in report["findings"])
    cluster.write("m2", manifest(MANAGER), without_endpoint)
    wait_flag(cluster, "m2", MANAGER, "--v=4", gone=True)
    cluster.wait_healthy()
    _done, report = play(name="audit")
    assert codes(report) == set()
    assert interrupt.left_over(cluster) == []


@pytest.mark.skipif(not FULL, reason="a minute: the kubelet's of the same is tried always")
def test_the_controller_is_killed_and_the_host_takes_a_manifest_back(
    cluster, without_endpoint, tmp_path
):
    before = without_endpoint
    with interrupt.Controller(
        cluster,
        tmp_path / "killed",
        *MANAGERS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=10",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        controller.kill()
    cluster.wait(lambda: not raised(cluster, "m2"), 600, "the host to take it back by itself")
    assert cluster.read("m2", manifest(MANAGER)) == before
    assert level_of_manager(cluster) == []
    assert left_over(cluster) == []


@pytest.fixture
def deaf_worker(cluster):
    """w1's kubelet serves no /debug/flags/v; its command line."""
    with deaf(cluster, "w1"):
        yield argv(cluster, "w1")


@pytest.fixture
def pod(cluster):
    """Yield a pod on w1 with its first process, which a kubelet's restart must leave alone."""
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    jobs.create(cluster, namespace, 1, 0)
    cluster.wait(
        lambda: jobs.running(cluster, namespace) and running(cluster, "w1"),
        180,
        "the Job's pod to run",
    )
    yield
    jobs.remove(cluster, namespace)


def running(cluster, node):
    return set(cluster.exec(node, "pgrep -f '[s]leep 100000'; true").stdout.split())


def test_a_kubelet_gets_a_drop_in_that_goes_again(cluster, deaf_worker, pod, tmp_path):
    done = playbook.run(
        "capture_logs",
        cluster.inventory,
        *KUBELETS,
        "-e",
        "kubemend_capture_seconds=2",
        report=str(tmp_path / "without"),
    )
    said = " ".join(done.stdout.split())  # the report is broken into lines
    assert done.returncode == 0, done.stdout[-3000:]
    assert "kubelet of w1 stays at level 0" in said, done.stdout[-3000:]
    assert "-e kubemend_allow=capture_restart" in said, done.stdout[-3000:]
    assert argv(cluster, "w1") == deaf_worker
    pods = running(cluster, "w1")
    with interrupt.Controller(
        cluster,
        tmp_path / "capture",
        *KUBELETS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=8",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        assert v_flags(cluster, "w1") == ["--v=4"]
        assert len(momentary(cluster, "w1")) == 2
        code, report = controller.wait(900)
    assert (code, levels(report)[("w1", "kubelet")]) == (0, (True, True)), controller.output[-4000:]
    assert all(became == (True, True) for became in levels(report).values())
    assert len(levels(report)) == 4
    lines = (
        (tmp_path / "capture" / "report" / "capture" / "lines.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert any(" w1 kubelet " in line for line in lines)
    assert argv(cluster, "w1") == deaf_worker
    assert momentary(cluster, "w1") == []
    assert interrupt.left_over(cluster) == []
    assert not raised(cluster, "w1")
    assert pods
    assert pods <= running(cluster, "w1")
    assert (
        cluster.exec("w1", "systemctl show -p NeedDaemonReload kubelet").stdout.strip()
        == b"NeedDaemonReload=no"
    )


@pytest.mark.skipif(not FULL, reason="a minute and more: only in the whole matrix")
def test_what_a_kubelet_was_given_is_found_and_taken_back(cluster, deaf_worker, play, tmp_path):
    """The controller and the service are gone.

    An audit names w1, remediate of risk 2 takes it back.
    """
    with interrupt.Controller(
        cluster,
        tmp_path / "killed",
        *KUBELETS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=30",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        controller.kill()
    cluster.exec(
        "w1",
        "systemctl kill -s KILL 'kubemend-levels-*'; systemctl stop 'kubemend-levels-*'; rm -rf"
        " /var/lib/kubemend/levels /etc/systemd/system/kubemend-levels-*"
        " /etc/systemd/system/multi-user.target.wants/kubemend-levels-*",
    )
    cluster.wait(
        lambda: not any(raised(cluster, node) for node in cluster.of_role("master")),
        300,
        "the masters to put back theirs",
    )
    _done, report = play(name="audit")
    assert codes(report) == {("KM903", "w1")}
    done, report = play("-e", "kubemend_max_risk=1")
    assert v_flags(cluster, "w1") == ["--v=4"], done.stdout[-3000:]
    done, report = play("-e", "kubemend_max_risk=2")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]
    assert argv(cluster, "w1") == deaf_worker
    assert momentary(cluster, "w1") == []


def test_a_node_that_is_started_again_has_its_own_level(cluster, deaf_worker, tmp_path):
    with interrupt.Controller(
        cluster,
        tmp_path / "killed",
        *KUBELETS,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=60",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        controller.kill()
    bringup.start_again(cluster.node("w1"))
    cluster.wait(lambda: not raised(cluster, "w1"), 300, "w1 to see that nothing is left to do")
    cluster.wait(lambda: argv(cluster, "w1"), 180, "its kubelet to run")
    assert argv(cluster, "w1") == deaf_worker
    assert momentary(cluster, "w1") == []
    cluster.wait(
        lambda: not any(raised(cluster, one) for one in cluster.of_role("master")),
        400,
        "the masters to put back theirs",
    )
    cluster.wait_healthy()
    assert left_over(cluster) == []


@pytest.fixture
def server_without_endpoint(cluster):
    """Run m2's API server as hardening guides have it, and yield its manifest.

    It has no profiling, and so no /debug/flags/v.
    """
    text = cluster.read("m2", manifest(API_SERVER)).decode()
    cluster.write(
        "m2",
        manifest(API_SERVER),
        text.replace(
            "    - --advertise-address", "    - --profiling=false\n    - --advertise-address", 1
        ),
    )
    wait_flag(cluster, "m2", API_SERVER, "--profiling=false")
    cluster.wait_healthy()
    yield cluster.read("m2", manifest(API_SERVER))
    cluster.write("m2", manifest(API_SERVER), text)
    wait_flag(cluster, "m2", API_SERVER, "--profiling=false", gone=True)
    cluster.wait_healthy()


def test_an_api_server_is_raised_beside_two_that_are_well(
    cluster, server_without_endpoint, tmp_path
):
    before, only = (
        server_without_endpoint,
        (
            "-e",
            f"kubemend_capture_components={API_SERVER}",
            "--limit",
            "m2",
        ),
    )
    done = playbook.run("capture_logs", cluster.inventory, *only, report=str(tmp_path / "refused"))
    assert done.returncode == 2, done.stdout[-3000:]
    assert "-e kubemend_allow=capture_restart" in done.stdout, done.stdout[-3000:]
    # --limit leaves the other masters out, and with them the evidence that they are whole.
    done = playbook.run(
        "capture_logs", cluster.inventory, *only, *CONSENT, report=str(tmp_path / "limited")
    )
    assert done.returncode == 2, done.stdout[-3000:]
    assert "m1, m3 was not looked at: run without --limit" in done.stdout, done.stdout[-3000:]
    everywhere = ("-e", f"kubemend_capture_components={API_SERVER}")
    with interrupt.Controller(
        cluster,
        tmp_path / "capture",
        *everywhere,
        *CONSENT,
        "-e",
        "kubemend_capture_seconds=5",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 600, "the restart")
        assert [
            word
            for _pid, words in processes(cluster, "m2", API_SERVER)
            for word in words
            if word.startswith("--v=")
        ] == ["--v=4"]
        code, report = controller.wait(900)
    assert (code, levels(report)[("m2", API_SERVER)]) == (0, (True, True)), controller.output[
        -4000:
    ]
    assert cluster.read("m2", manifest(API_SERVER)) == before
    assert interrupt.left_over(cluster) == []
