# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that was meant to be pinned.

Found among healthy workloads, patched by the line that the report gives, and then really pinned.
"""

from __future__ import annotations

import json

from tests.lab.support import pinning, playbook
from tests.lab.support.incident import by_name
from tests.lab.support.repairing import broken, codes


def test_the_patch_that_the_report_gives_pins_the_pod(cluster, play):
    with broken(cluster, "pinning-init", target="w1"):
        done, report = play(name="cpu_pinning")
        assert (done.returncode, {item["code"] for item in report["findings"]}) == (
            0,
            {"KM312", "KM313"},
        ), done.stdout[-3000:]
        (found,) = [item for item in report["findings"] if item["code"] == "KM313"]
        namespace = by_name("pinning-init").record(cluster, "w1")["namespace"]
        assert found["component"] == f"Deployment {namespace}/meant"
        assert not pinning.state(cluster, "w1").get("entries")
        said = cluster.exec(
            "m1", f"KUBECONFIG=/etc/kubernetes/admin.conf {found['command']}"
        ).stdout.decode()
        assert "patched" in said, said
        pinning.wait_pinned(cluster, "w1")
        (pod,) = [
            one
            for one in json.loads(
                cluster.kubectl(
                    "-n", namespace, "get", "pods", "-l", "app=meant", "-o", "json"
                ).stdout
            )["items"]
            if not one["metadata"].get("deletionTimestamp")
        ]
        assert pod["status"]["qosClass"] == "Guaranteed"
        assert pod["metadata"]["uid"] in pinning.state(cluster, "w1")["entries"]
        done, report = play(name="cpu_pinning")
        # The init container has ended, and its CPU is the app container's as well.
        assert {item["code"] for item in report["findings"]} == {"KM312"}


def test_a_selected_workload_is_patched_where_that_is_asked_for_and_a_revert_takes_it_back(
    cluster, play, tmp_path
):
    with broken(cluster, "pinning-init", target="w1"):
        namespace = by_name("pinning-init").record(cluster, "w1")["namespace"]

        def resources() -> str:
            path = "jsonpath={.spec.template.spec.initContainers[0].resources}"
            return cluster.kubectl(
                "-n", namespace, "get", "deployment", "meant", "-o", path
            ).stdout.decode()

        before = resources()
        wish = (
            "-e",
            "kubemend_faults=KM313",
            "-e",
            "kubemend_patch_workloads=true",
            "-e",
            "kubemend_expect_pinning=app=meant",
        )
        done, report = play(*wish, name="cpu_pinning")
        assert done.returncode == 0, done.stdout[-3000:]
        assert resources() == before, done.stdout[-3000:]
        done, report = play(*wish, "-e", "kubemend_max_risk=3", name="cpu_pinning")
        assert (done.returncode, [step["state"] for step in report["steps"]], codes(report)) == (
            0,
            ["done"],
            set(),
        ), done.stdout[-4000:]
        pinning.wait_pinned(cluster, "w1")
        assert resources() != before
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={report['run_id']}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-3000:]
        assert resources() == before, done.stdout[-3000:]
