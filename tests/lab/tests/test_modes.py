# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same verdicts however the operator runs the audit.

Check mode, --limit, callbacks, strategy, another user's hands.
"""

from __future__ import annotations

import json

import pytest

from tests import report_formats
from tests.gate import machine
from tests.lab.cluster import host
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import incident, playbook
from tests.lab.support.repairing import RELEASES
from tests.lab.support.report import OF_THE_MOMENT, findings

CONFIG = "[defaults]\nstrategy = free\nforks = 2\ngathering = implicit\n"


@pytest.fixture(scope="module")
def broken():
    """Yield a cluster with two leaders, and heal it afterwards in any case."""
    reason = host.unavailable_reason()
    if reason:
        if machine.in_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    cluster, one = Cluster(RELEASES[0], 3, 1, "short").up(), incident.by_name("two-leaders")
    with cluster.locked():
        try:
            incident.made(cluster, one, one.target)
            yield cluster
        finally:
            one.finish(cluster, one.target)
            cluster.wait_healthy()


@pytest.fixture
def play(broken, tmp_path):
    """Run a playbook; its process and its report."""

    def run(*arguments, name="audit", hosts=None, **env):
        folder = tmp_path / "report"
        done = playbook.run(
            name, hosts or broken.inventory, *arguments, report=str(folder), env=env
        )
        return done, json.loads((folder / "report.json").read_text(encoding="utf-8"))

    return run


def verdicts(report):
    return {
        (item["code"], item["host"], item["component"]): item["verdict"]
        for item in report["verdicts"]
        if item["code"] not in OF_THE_MOMENT
    }


def test_check_mode_strategy_free_and_a_json_callback_change_no_verdict(play, tmp_path):
    plain, expected = play()
    assert plain.returncode == 0
    config = tmp_path / "ansible.cfg"
    config.write_text(CONFIG, encoding="utf-8")
    for arguments, env in (
        (("--check", "--diff"), {}),
        ((), {"ANSIBLE_CONFIG": str(config)}),
        ((), {"ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.oneline"}),
    ):
        done, report = play(*arguments, **env)
        assert done.returncode == 0, done.stdout[-2000:]
        assert verdicts(report) == verdicts(expected)


@pytest.mark.parametrize("transport", ["ssh", "auto"])
def test_one_task_for_all_hosts_changes_no_verdict(play, transport):
    _done, expected = play()
    done, report = play("-e", f"kubemend_transport={transport}", "-vvv")
    assert done.returncode == 0, done.stdout[-2000:]
    assert verdicts(report) == verdicts(expected)
    assert ("ASYNCSSH: EXEC" in done.stdout) == (transport == "auto")


def test_fail_on_decides_the_exit_code(play):
    done, report = play("-e", "kubemend_fail_on=critical")
    assert (done.returncode, report["exit_code"], report["exit_reason"]) == (2, 2, "threshold")


def test_limit_to_a_worker_does_not_judge_the_masters_but_reads_the_api(play):
    done, report = play("--limit", "w1")
    assert done.returncode == 0, done.stdout[-2000:]
    assert {"KM101", "KM102", "KM103"} <= {
        item["code"] for item in report["not_judged"] if item["reason"] == "limit"
    }
    assert {item["code"] for item in findings(report)} == {"KM113"}


def test_limit_to_the_wrong_master_proves_it(play):
    _done, report = play("--limit", "m2")
    assert {(item["code"], item["host"]) for item in findings(report)} == {
        ("KM101", "m2"),
        ("KM113", None),
    }


def test_the_symptoms_playbook_gives_a_differential(play):
    done, report = play(name="duplicate_pods")
    assert report["symptom"]["name"] == "duplicate_pods"
    assert "possible causes" in done.stdout
    assert "leader election is off" in done.stdout
    assert {item["code"] for item in report["verdicts"]} <= set(report["symptom"]["causes"]) | {
        "KM113",
        "KM901",
        "KM902",
        "KM903",
    }


def test_one_audit_in_every_format_and_its_bundle_say_the_same(play, broken, tmp_path):
    archive = tmp_path / "case.tar.gz"
    wanted = {
        "kubemend_report_formats": list(report_formats.FORMATS),
        "kubemend_bundle": str(archive),
    }
    done, report = play("-e", json.dumps(wanted))
    assert done.returncode == 0, done.stdout[-2000:]
    shown = report_formats.faces(tmp_path / "report", done.stdout)
    assert len(shown) == len(report_formats.FORMATS)
    (same,) = {frozenset(face) for face in shown.values()}
    expected = {(item["code"], item["host"] or "") for item in findings(report)}
    assert expected == {("KM101", "m2"), ("KM113", "")}
    assert expected <= same
    again = playbook.run(
        "replay",
        broken.inventory,
        "-e",
        json.dumps({"kubemend_evidence": str(archive)}),
        report=str(tmp_path / "again"),
    )
    assert again.returncode == 0, again.stdout[-2000:]
    replayed = json.loads((tmp_path / "again" / "report.json").read_text(encoding="utf-8"))
    assert verdicts(replayed) == verdicts(report)
    assert [one["id"] for one in replayed["findings"]] == [one["id"] for one in report["findings"]]


def test_hosts_without_groups_are_placed_by_their_evidence(play, broken, tmp_path):
    children = broken.inventory_data()["all"]["children"]
    # The worker first: what its kubelet may read of the API is not all that there is.
    all_of_them = {
        name: values for group in children.values() for name, values in group["hosts"].items()
    }
    flat = {"all": {"hosts": dict(sorted(all_of_them.items(), reverse=True))}}
    hosts = tmp_path / "flat.json"
    hosts.write_text(json.dumps(flat), encoding="utf-8")
    _done, report = play(hosts=hosts)
    assert {item["host"]: item["role"] for item in report["hosts"]} == {
        "m1": "control_plane",
        "m2": "control_plane",
        "m3": "control_plane",
        "w1": "worker",
    }
    assert {(item["code"], item["host"]) for item in findings(report)} == {
        ("KM101", "m2"),
        ("KM113", None),
    }


def test_without_root_the_rest_is_judged(play, broken):
    """An ordinary user reads no manifest, but every command line.

    The second leader is still proven.
    """
    for node in broken.nodes:
        broken.exec(
            node,
            "id -u auditor >/dev/null 2>&1 || useradd -m auditor; install -d -m 700 -o auditor"
            " /home/auditor/.ssh; install -m 600 -o auditor /root/.ssh/authorized_keys"
            " /home/auditor/.ssh/",
        )
    done, report = play("-e", "ansible_user=auditor", "-e", "kubemend_become=false")
    assert done.returncode == 0, done.stdout[-2000:]
    assert ("KM101", "m2") in {(item["code"], item["host"]) for item in findings(report)}
    assert verdicts(report)["KM107", "m1", None] == "unknown"


def test_nothing_is_left_on_the_nodes(play, broken):
    def listing(node):
        return broken.exec(
            node,
            "find /etc/kubernetes /var/lib/kubemend /run/kubemend* /tmp /root -newer /tmp/.before "
            "-not -name '*.log' -not -path '*/.ansible_async*' 2>/dev/null; true",
        ).stdout

    for node in broken.nodes:
        broken.exec(
            node, "touch /tmp/.before && sleep 0.05 && touch -d '1 second' /tmp/.before; sleep 1"
        )
    play()
    left = {
        node.name: [
            line
            for line in listing(node).decode().splitlines()
            if line not in ("/tmp", "/root", "/tmp/.before")
        ]
        for node in broken.nodes
    }
    assert not any(left.values()), left
