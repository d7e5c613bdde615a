# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker whose kubelet or runtime is disabled and stopped comes back, also after a power cut."""

from __future__ import annotations

import contextlib
import json

from tests.lab.cluster import bringup
from tests.lab.support import interrupt, playbook
from tests.lab.support.repairing import CONSENT, broken, codes, ended

ENABLE, START, UNMASK = "enable_kubelet", "start_kubelet", "unmask_kubelet"
RUNTIME = ["enable_runtime", "start_runtime"]
MASK = "/etc/systemd/system/kubelet.service"
RISK = ("-e", "kubemend_max_risk=3")
ALLOWED = (*RISK, "-e", "kubemend_allow=fenced")


def said(cluster, word: str, name: str) -> str:
    return cluster.exec("w1", ["systemctl", word, name], check=False).stdout.decode().strip()


def unit(cluster, name: str = "kubelet") -> tuple[str, str]:
    return said(cluster, "is-enabled", name), said(cluster, "is-active", name)


def ready(cluster) -> bool:
    node = json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"]
    )


def taints(cluster) -> set[str]:
    return {
        one["key"]
        for one in (
            json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)["spec"].get(
                "taints"
            )
            or ()
        )
    }


@contextlib.contextmanager
def dedicated(cluster):
    """Set an operator's own taint, which only its owner removes."""
    cluster.kubectl("taint", "node", "w1", "caf=log:NoExecute")
    try:
        yield
    finally:
        cluster.kubectl("taint", "node", "w1", "caf-", check=False)


def test_a_disabled_kubelet_that_is_stopped_comes_back(cluster, play, tmp_path):
    with dedicated(cluster), broken(cluster, "kubelet-disabled", target="w1"):
        cluster.exec("w1", ["systemctl", "stop", "kubelet"])
        cluster.wait(lambda: not ready(cluster), 240, "w1 to be not ready")
        done, report = play("--check", "--diff", *CONSENT)
        assert done.returncode == 0, done.stdout[-4000:]
        assert "systemctl is-enabled kubelet.service: disabled -> enabled" in done.stdout, (
            done.stdout[-4000:]
        )
        assert [step["remedy"] for step in report["plan"]] == [ENABLE, START]
        assert unit(cluster) == (
            "disabled",
            "inactive",
        )
        done, report = play(*CONSENT)
        assert (done.returncode, ended(report), codes(report)) == (
            0,
            ["done"] * 2,
            set(),
        ), done.stdout[-4000:]
        assert unit(cluster) == ("enabled", "active")
        # The run ends once the API has it so: the controller took its own taints away, and nobody
        # the other.
        assert ready(cluster), done.stdout[-4000:]
        assert taints(cluster) == {"caf"}, done.stdout[-4000:]
        run_id = report["run_id"]
        done, report = play(*CONSENT)
        assert done.returncode == 0, done.stdout[-4000:]
        assert not report["plan"], done.stdout[-4000:]
        assert not report["steps"], done.stdout[-4000:]
        assert interrupt.left_over(cluster) == []
        bringup.start_again(cluster.node("w1"))
        cluster.wait(
            lambda: unit(cluster) == ("enabled", "active"), 180, "its kubelet to start by itself"
        )
        cluster.wait(lambda: ready(cluster), 240, "w1 to be ready again")
        # And back: the unit is as it was, and its kubelet runs on.
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={run_id}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert unit(cluster) == ("disabled", "active")


def test_a_node_that_somebody_cordoned_is_left_alone(cluster, play):
    with broken(cluster, "kubelet-disabled", target="w1"):
        cluster.kubectl("cordon", "w1")
        try:
            done, report = play(*CONSENT)
            assert done.returncode == 2, done.stdout[-4000:]
            assert "kubemend_allow=fenced" in report["plan"][0]["blocked_by"], done.stdout[-4000:]
            assert unit(cluster)[0] == "disabled", done.stdout[-4000:]
        finally:
            cluster.kubectl("uncordon", "w1")


def test_a_masked_kubelet_is_untouched_until_that_is_allowed(cluster, play, tmp_path):
    with broken(cluster, "kubelet-masked", target="w1"):
        cluster.exec("w1", ["systemctl", "stop", "kubelet"])
        cluster.wait(lambda: not ready(cluster), 240, "w1 to be not ready")
        done, report = play(*RISK)
        assert done.returncode == 2, done.stdout[-4000:]
        assert {
            step["blocked_by"].endswith("kubemend_allow=fenced") for step in report["plan"]
        } == {True}, done.stdout[-4000:]
        done, report = play("--check", "--diff", *ALLOWED)
        assert done.returncode == 0, done.stdout[-4000:]
        assert f"--- {MASK} -> /dev/null" in done.stdout, done.stdout[-4000:]
        assert unit(cluster) == ("masked", "inactive"), done.stdout[-4000:]
        assert [(step["remedy"], step["risk"]) for step in report["plan"]] == [
            (UNMASK, 3),
            (START, 3),
        ]
        done, report = play(*ALLOWED)
        assert (done.returncode, ended(report), codes(report)) == (
            0,
            ["done"] * 2,
            set(),
        ), done.stdout[-4000:]
        assert unit(cluster) == ("enabled", "active")
        cluster.wait(lambda: ready(cluster), 180, "w1 to be ready")
        run_id = report["run_id"]
        done, report = play(*ALLOWED)
        assert done.returncode == 0, done.stdout[-4000:]
        assert not report["plan"], done.stdout[-4000:]
        assert not report["steps"], done.stdout[-4000:]
        # And back: masked by the same link, and its kubelet runs on.
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={run_id}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert cluster.exec("w1", ["readlink", MASK]).stdout == b"/dev/null\n", done.stdout[-4000:]
        assert unit(cluster) == ("masked", "active")


def test_a_runtime_that_is_disabled_and_stopped_comes_back(cluster, play, tmp_path):
    with broken(cluster, "runtime-stopped", target="w1"):
        kubelet = unit(cluster)
        done, report = play("--check", "--diff", *CONSENT)
        assert done.returncode == 0, done.stdout[-4000:]
        assert [step["remedy"] for step in report["plan"]] == RUNTIME, done.stdout[-4000:]
        assert "systemctl is-active containerd.service: inactive -> active" in done.stdout
        assert unit(cluster, "containerd") == ("disabled", "inactive")
        done, report = play(*CONSENT)
        assert (done.returncode, ended(report), codes(report)) == (
            0,
            ["done"] * 2,
            set(),
        ), done.stdout[-4000:]
        assert unit(cluster, "containerd") == ("enabled", "active")
        assert unit(cluster) == kubelet
        cluster.wait(lambda: ready(cluster), 180, "w1 to be ready again")
        run_id = report["run_id"]
        done, report = play(*CONSENT)
        assert done.returncode == 0, done.stdout[-4000:]
        assert not report["plan"], done.stdout[-4000:]
        assert not report["steps"], done.stdout[-4000:]
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={run_id}",
            report=str(tmp_path / "revert"),
        )
        assert (done.returncode, unit(cluster, "containerd")) == (
            0,
            ("disabled", "active"),
        ), done.stdout[-4000:]
