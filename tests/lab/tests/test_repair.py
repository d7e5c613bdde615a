# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repair on a real cluster: the plan changes nothing, the run does the plan, risks are refused.

`make test` takes the release that the commit draws, KUBEMEND_TEST_FULL=1 both.
"""

from __future__ import annotations

import json

from tests.lab.support import jobs, runner
from tests.lab.support.incident import by_name
from tests.lab.support.repairing import CONSENT, broken, codes, listing, state, untouched
from tests.lab.support.static_pod import MANAGER, manifest, set_flag, wait_election_off, wait_flag

SECRET = "    env:\n    - name: LAB_API_TOKEN\n      value: planted-secret-0815\n"


def test_two_leaders(cluster, play):
    """The default and the check run change nothing; the run does what they printed.

    20 Jobs get one pod each.
    """
    path = manifest(MANAGER)
    with broken(cluster, "two-leaders"):
        text = cluster.read("m2", path).decode().replace("    image:", SECRET + "    image:", 1)
        cluster.write("m2", path, text)
        wait_election_off(cluster, "m2", MANAGER)
        wait_flag(cluster, "m2", MANAGER, "--leader-elect=false")
        before = state(cluster)
        done, observed = play(name="duplicate_pods")
        assert done.returncode == 0
        assert observed["mode"] == "observe"
        done, planned = play("--check", "--diff", *CONSENT, name="duplicate_pods")
        assert done.returncode == 0
        assert planned["mode"] == "plan"
        untouched(cluster, before)
        assert [step["allowed"] for step in observed["plan"]] == [False, False]
        assert [step["allowed"] for step in planned["plan"]] == [True, True]

        done, report = play(*CONSENT, name="duplicate_pods")
        assert (done.returncode, report["exit_reason"], codes(report)) == (
            0,
            "ok",
            set(),
        ), done.stdout[-3000:]
        assert report["plan"] == planned["plan"]
        assert [(step["id"], step["state"]) for step in report["steps"]] == [
            (step["id"], "done") for step in planned["plan"]
        ]
        assert "planted-secret" not in done.stdout + json.dumps(report)
        assert cluster.read("m2", path).decode() == set_flag(text, "leader-elect", "true")
        assert not [name for name in listing(cluster, "m2") if name.startswith(".")]

        namespace = jobs.new_namespace()
        try:
            jobs.create_namespace(cluster, namespace)
            jobs.create(cluster, namespace, 20, 0)
            cluster.wait(
                lambda: len(jobs.pods_created(cluster, namespace)) == 20, 60, "pods of 20 Jobs"
            )
            assert {len(pods) for pods in jobs.pods_created(cluster, namespace).values()} == {1}
        finally:
            jobs.remove(cluster, namespace)

        after = state(cluster)
        done, again = play(*CONSENT)
        assert done.returncode == 0
        assert again["steps"] == []
        untouched(cluster, after)


def test_two_masters_in_order_the_first_is_not_rolled_back(cluster, play):
    with (
        broken(cluster, "two-leaders-kcm-only", target="m2", symptom=False),
        broken(cluster, "two-leaders-kcm-only", target="m3", symptom=False),
    ):
        for node in ("m2", "m3"):
            wait_election_off(cluster, node, MANAGER)
        done, report = play(*CONSENT)
        assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]
        assert [step["id"][3:5] for step in report["steps"]] == ["m2", "m3"]


def test_configuration_file(cluster, play):
    with broken(cluster, "scheduler-config-file"):
        done, report = play(*CONSENT)
        assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]
        assert b"leaderElect: true" in cluster.read("m2", "/etc/kubernetes/scheduler-config.yaml")


def test_stray_backup_is_moved_out_and_kept(cluster, play):
    with broken(cluster, "backup-manifest"):
        done, report = play(*CONSENT)
        plan = {step["remedy"]: step for step in report["plan"]}
        if plan["move_out"]["allowed"]:
            assert (done.returncode, codes(report)) == (0, set()), done.stdout[-3000:]
            assert not [name for name in listing(cluster, "m2") if name.endswith(".bak")]
        # the running process follows the backup: which of the two is right is the operator's to say
        else:
            assert "compare" in plan["move_out"]["blocked_by"]


def test_a_dead_kubelet_comes_first_and_nothing_is_edited(cluster, play):
    with broken(cluster, "edited-while-kubelet-stopped"):
        before = state(cluster)
        done, report = play(*CONSENT)
        assert "repair the kubelet of m2 first" in report["plan"][0]["blocked_by"]
        assert (done.returncode, report["exit_reason"], report["steps"]) == (
            2,
            "refused",
            [],
        ), done.stdout[-3000:]
        untouched(cluster, before)


def test_broken_yaml_is_left_to_its_author(cluster, play):
    with broken(cluster, "broken-yaml"):
        before = state(cluster)
        _done, report = play(*CONSENT)
        assert report["plan"] == []
        untouched(cluster, before)


def test_an_image_that_is_gone_is_refused_before_the_write(cluster, play):
    with broken(cluster, "two-leaders-kcm-only", symptom=False):
        wait_election_off(cluster, "m2", MANAGER)
        images = cluster.exec("m2", "ctr -n k8s.io images ls -q").stdout.decode().split()
        image = next(name for name in images if f"/{MANAGER}:" in name)
        cluster.exec(
            "m2",
            f"ctr -n k8s.io images export /root/lab-image.tar {image} && ctr -n k8s.io images rm"
            f" {image}",
            timeout=120,
        )
        try:
            before = state(cluster)
            done, planned = play("--check", *CONSENT)
            assert (done.returncode, planned["exit_reason"], planned["mode"]) == (
                2,
                "refused",
                "plan",
            ), done.stdout[-3000:]
            assert "would be refused: the image" in " ".join(done.stdout.split()), done.stdout[
                -3000:
            ]
            untouched(cluster, before)
            done, report = play(*CONSENT)
            assert (done.returncode, report["exit_reason"]) == (2, "refused"), done.stdout[-3000:]
            assert [step["state"] for step in report["steps"]] == ["refused"]
            assert "image" in report["steps"][0]["reason"]
            # what check mode said
            assert (report["steps"], report["plan"]) == (planned["steps"], planned["plan"])
            untouched(cluster, before, journal=False)
        finally:
            cluster.exec(
                "m2",
                "ctr -n k8s.io images import /root/lab-image.tar && rm /root/lab-image.tar",
                timeout=120,
            )


def test_without_an_api_server_nothing_is_edited(cluster, play):
    with broken(cluster, "api-down"):
        before = {name: entry[0] for name, entry in state(cluster).items()}
        done, report = play(*CONSENT)
        one = by_name("api-down")
        wrong = runner.differences(
            report, one.expect(cluster, "m2"), set(), consequences=one.consequences(cluster, "m2")
        )
        assert wrong == [], done.stdout[-3000:]
        assert {step["allowed"] for step in report["plan"]} == {False}
        done, report = play(*CONSENT, name="pods_stay_pending")
        text = " ".join(done.stdout.split())
        assert (done.returncode, report["exit_reason"], report["plan"]) == (0, "ok", []), text[
            -3000:
        ]
        assert text.count("the API does not answer (") == 1, text[-3000:]
        assert "which pods stay Pending is not known before it does" in text, text[-3000:]
        assert {name: entry[0] for name, entry in state(cluster).items()} == before
