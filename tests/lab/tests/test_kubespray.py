# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as kubespray leaves it.

Its faults are found and repaired by its own paths, and the report has the line for kubespray's
inventory.

The cluster is removed at the end: the other tests share another one.
"""

from __future__ import annotations

import json

import pytest

from tests.lab.cluster import bringup, kubespray
from tests.lab.cluster.clusters import Cluster
from tests.lab.incidents.runtime_stopped import ready
from tests.lab.support import interrupt, kubelet_verbosity, playbook
from tests.lab.support.renewal import LOAD, RENEW, all_renewed, expired, is_shown
from tests.lab.support.repairing import (
    CONSENT,
    OLD,
    RELEASES,
    UNDRAWN,
    broken,
    codes,
    ended,
    own,
    possible,
    state,
    untouched,
)
from tests.lab.support.report import OF_MACHINE, findings
from tests.lab.support.static_pod import (
    MANAGER,
    SCHEDULER,
    election_off,
    manifest,
    processes,
    restart,
)
from tests.lab.tests.test_capture import WAITING, levels, raised
from tests.lab.tests.test_node_back import ENABLE, START


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 3, 0, "short", layout="kubespray")) as found:
        yield found


def doubts(report):
    """Return what is not clear, except history.

    That is Jobs whose surplus pods the incident made, and components that the lab restarted.
    """
    return {
        item["code"] for item in report["verdicts"] if item["verdict"] in ("present", "unknown")
    } - {"KM113", *OF_MACHINE}


def test_a_sound_cluster_is_clear_and_left_alone(cluster, play):
    before = state(cluster)
    done, report = play(*CONSENT)
    assert (done.returncode, report["plan"], doubts(report)) == (0, [], set()), done.stdout[-3000:]
    untouched(cluster, before)


def test_controller_manager_by_its_manifest(cluster, play):
    with broken(cluster, "two-leaders-kcm-only"):
        done, planned = play("--check", "--diff", *CONSENT)
        assert [(step["code"], step["allowed"]) for step in planned["plan"]] == [("KM101", True)], (
            done.stdout[-3000:]
        )
        assert (
            'leader-elect: "true" there in kube_kubeadm_controller_extra_args'
            in planned["plan"][0]["note"]
        )

        done, report = play(*CONSENT)
        assert (done.returncode, codes(report), doubts(report)) == (0, set(), set()), done.stdout[
            -3000:
        ]
        assert report["plan"] == planned["plan"]
        assert [step["state"] for step in report["steps"]] == ["done"]
        assert "kube_kubeadm_controller_extra_args" in " ".join(done.stdout.split())
        assert b"--leader-elect=true" in cluster.read("m2", manifest(MANAGER))
        assert not election_off(cluster, "m2", MANAGER)


def test_a_kubelets_level_by_the_file_of_its_unit(cluster, tmp_path):
    """The number behind --v changes in that file, which then gets the same bytes back.

    They come back at the end of the run, and by the host itself after it was started again.
    """
    arguments = (
        "-e",
        "kubemend_capture_components=kubelet",
        "-e",
        "kubemend_allow=capture_restart",
        "--limit",
        "m2",
    )
    with kubelet_verbosity.deaf(cluster, "m2", kubespray.KUBELET_CONFIG):
        before, former = (
            cluster.read("m2", kubespray.ENVIRONMENT),
            kubelet_verbosity.argv(cluster, "m2"),
        )
        with interrupt.Controller(
            cluster,
            tmp_path / "capture",
            *arguments,
            "-e",
            "kubemend_capture_seconds=3",
            name="capture_logs",
        ) as controller:
            cluster.wait(lambda: WAITING in controller.output, 300, "the restart")
            assert kubelet_verbosity.v_flags(cluster, "m2") == ["--v=4"]
            assert cluster.read("m2", kubespray.ENVIRONMENT) == before.replace(
                b'KUBE_LOG_LEVEL="--v=2"', b'KUBE_LOG_LEVEL="--v=4"'
            )
            code, report = controller.wait(600)
        assert (code, levels(report)) == (0, {("m2", "kubelet"): (True, True)}), controller.output[
            -4000:
        ]
        assert cluster.read("m2", kubespray.ENVIRONMENT) == before
        assert kubelet_verbosity.argv(cluster, "m2") == former
        assert kubelet_verbosity.momentary(cluster, "m2") == []
        assert interrupt.left_over(cluster) == []

        with interrupt.Controller(
            cluster,
            tmp_path / "killed",
            *arguments,
            "-e",
            "kubemend_capture_seconds=3600",
            name="capture_logs",
        ) as controller:
            cluster.wait(lambda: WAITING in controller.output, 300, "the restart")
            controller.kill()
        bringup.start_again(cluster.node("m2"))
        cluster.wait(lambda: not raised(cluster, "m2"), 240, "m2 to take it back after its start")
        assert cluster.read("m2", kubespray.ENVIRONMENT) == before
        assert kubelet_verbosity.argv(cluster, "m2") == former
        cluster.wait_healthy()


def test_a_disabled_kubelet_whose_node_was_restarted_comes_back(cluster, play, tmp_path):
    """The unit that kubespray writes lies in /etc/systemd/system, where a mask would lie too.

    It is enabled and started, and not a byte of it changes.
    """

    def unit():
        return tuple(
            cluster.exec("m2", ["systemctl", word, "kubelet"], check=False).stdout.decode().strip()
            for word in ("is-enabled", "is-active")
        )

    def taints():
        return {
            one["key"]
            for one in (
                json.loads(cluster.kubectl("get", "node", "m2", "-o", "json").stdout)["spec"].get(
                    "taints"
                )
                or ()
            )
            if one["key"].startswith("node.kubernetes.io/")
        }

    files = f"sha256sum {kubespray.UNIT} {kubespray.ENVIRONMENT} {kubespray.KUBELET_CONFIG}"
    with broken(cluster, "kubelet-disabled", target="m2"):
        before = cluster.exec("m2", files).stdout
        bringup.start_again(cluster.node("m2"))
        cluster.wait(lambda: not ready(cluster, "m2"), 240, "m2 to be not ready")
        cluster.wait(taints, 120, "the controller's taints")
        done, report = play(name="node_unreachable")
        assert done.returncode == 0, done.stdout[-4000:]
        assert ("KM501", "m2") in codes(report), done.stdout[-4000:]
        assert unit() == ("disabled", "inactive"), done.stdout[-4000:]
        assert [(step["host"], step["remedy"], step["allowed"]) for step in report["plan"]] == [
            ("m2", ENABLE, False),
            ("m2", START, False),
        ]
        done, report = play(*CONSENT, name="node_unreachable")
        assert (done.returncode, ended(report), codes(report)) == (
            0,
            ["done"] * 2,
            set(),
        ), done.stdout[-4000:]
        assert (unit(), ready(cluster, "m2"), taints()) == (
            ("enabled", "active"),
            True,
            set(),
        )
        assert cluster.exec("m2", files).stdout == before
        run_id = report["run_id"]
        cluster.wait_healthy()
        done, report = play(*CONSENT, name="node_unreachable")
        assert (done.returncode, report["plan"], report["steps"]) == (0, [], []), done.stdout[
            -4000:
        ]
        bringup.start_again(cluster.node("m2"))
        cluster.wait(lambda: unit() == ("enabled", "active"), 180, "its kubelet to start by itself")
        cluster.wait_healthy()
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={run_id}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert unit() == ("disabled", "active"), done.stdout[-4000:]


@pytest.fixture
def without_endpoint(cluster):
    """Yield the static pod of m2 whose level only a restart raises.

    Before 1.23 that is every controller manager, later a scheduler whose file says so. The older
    scheduler is left alone: it may have lost a node, and is never restarted for a look.
    """
    if cluster.k8s == OLD:
        yield MANAGER
        return
    text = cluster.read("m2", kubespray.SCHEDULER_CONFIG).decode()
    cluster.write("m2", kubespray.SCHEDULER_CONFIG, text + "enableProfiling: false\n")
    restart(cluster, "m2", SCHEDULER)
    cluster.wait_healthy()
    yield SCHEDULER
    cluster.write("m2", kubespray.SCHEDULER_CONFIG, text)
    restart(cluster, "m2", SCHEDULER)
    cluster.wait_healthy()


def test_a_static_pods_level_by_its_argument(cluster, without_endpoint, tmp_path):
    component, files = without_endpoint, (manifest(without_endpoint), kubespray.SCHEDULER_CONFIG)

    def flags():
        return [
            word
            for _pid, words in processes(cluster, "m2", component)
            for word in words
            if word.startswith("--v=")
        ]

    before = [cluster.read("m2", path) for path in files]
    arguments = ("-e", f"kubemend_capture_components={component}", "--limit", "m2")
    done = playbook.run(
        "capture_logs", cluster.inventory, *arguments, report=str(tmp_path / "refused")
    )
    assert done.returncode == 2, done.stdout[-3000:]
    assert "-e kubemend_allow=capture_restart" in done.stdout, done.stdout[-3000:]
    assert flags() == [], done.stdout[-3000:]
    with interrupt.Controller(
        cluster,
        tmp_path / "capture",
        *arguments,
        "-e",
        "kubemend_allow=capture_restart",
        "-e",
        "kubemend_capture_seconds=5",
        name="capture_logs",
    ) as controller:
        cluster.wait(lambda: WAITING in controller.output, 500, "the restart")
        assert flags() == ["--v=4"]
        assert b"    - --v=4\n" in cluster.read("m2", files[0])
        code, report = controller.wait(900)
    assert (code, levels(report)) == (0, {("m2", component): (True, True)}), controller.output[
        -4000:
    ]
    lines = (
        (tmp_path / "capture" / "report" / "capture" / "lines.txt")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert any(f" m2 {component} " in line for line in lines), "the logs went with the pod"
    assert [cluster.read("m2", path) for path in files] == before
    assert flags() == []
    assert interrupt.left_over(cluster) == []


def test_scheduler_by_the_file_that_its_pod_does_not_watch(cluster, play):
    with broken(cluster, "scheduler-config-file"):
        text = cluster.read("m2", kubespray.SCHEDULER_CONFIG).decode()
        process = processes(cluster, "m2", SCHEDULER)
        done, planned = play("--check", "--diff", *CONSENT)
        assert [(step["code"], step["remedy"], step["target"]) for step in planned["plan"]] == [
            ("KM104", "edit_config", kubespray.SCHEDULER_CONFIG)
        ], done.stdout[-3000:]
        assert (
            "leaderElect: true there in kube_scheduler_leader_elect_extra_opts"
            in planned["plan"][0]["note"]
        )
        assert processes(cluster, "m2", SCHEDULER) == process

        done, report = play(*CONSENT)
        assert (done.returncode, codes(report), doubts(report)) == (0, set(), set()), done.stdout[
            -3000:
        ]
        assert report["plan"] == planned["plan"]
        assert [step["state"] for step in report["steps"]] == ["done"]
        assert "kube_scheduler_leader_elect_extra_opts" in " ".join(done.stdout.split())
        assert cluster.read("m2", kubespray.SCHEDULER_CONFIG).decode() == text.replace(
            "leaderElect: False", "leaderElect: true"
        )
        assert processes(cluster, "m2", SCHEDULER)[0][0] != process[0][0]
        assert not election_off(cluster, "m2", SCHEDULER)
        done, again = play(*CONSENT)
        assert (done.returncode, again["plan"]) == (0, [])


@UNDRAWN
def test_certificates_in_a_folder_of_its_own(cluster, play):
    with expired(cluster, "certificates-expired", "m2"):
        _done, report = play(name="certificates")
        assert {"KM120", "KM126"} <= {code for code, _host in codes(report)}, findings(report)
        done, report = play(*CONSENT, name="certificates")
        assert [(step["host"], step["remedy"], step["target"]) for step in report["plan"]] == [
            ("m2", RENEW, kubespray.CERTIFICATES),
            ("m2", LOAD, kubespray.CERTIFICATES),
        ], report["plan"]
        assert ended(report) == ["done"] * 2, done.stdout[-4000:]
        cluster.wait_healthy()
        assert all_renewed(cluster)
        assert is_shown(cluster, "m2")

        before = state(cluster)
        done, report = play(*CONSENT, name="certificates")
        assert report["plan"] == [], done.stdout[-4000:]
        untouched(cluster, before)
