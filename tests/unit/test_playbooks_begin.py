# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with which Ansible cannot begin.

Rows of every report, whoever is first, and no failure of the run.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible import release as ansible_release

from ansible_collections.kubemend.remediation.plugins.action import cluster_lock
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    inventory as run_inventory,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    revert as run_revert,
)
from tests.unit.conftest import SILENT
from tests.unit.support.facts import facts

PLAYBOOKS = Path(run_inventory.__file__).parents[3] / "playbooks"
BEGAN = "Ansible could not begin with it: "
NO_PLUGIN = f"{BEGAN}the connection plugin 'nosuch' was not found"
# m1 is the host that every run_once task of the play is for.
INVENTORY = f"""
[kube_control_plane]
m1 ansible_connection=ssh ansible_port="{{{{ nowhere }}}}"
m2 {SILENT}
[kube_node]
w1 ansible_connection=nosuch
w2 {SILENT}
"""
ALL = ("-e", "kubemend_report_formats=terminal,json,html,junit")


def test_they_are_rows_of_every_report_and_the_run_goes_on(operator):
    operator.write("broken.ini", INVENTORY)
    done = operator.run("audit", *ALL, inventory="broken.ini")
    assert done.rc == 0, done.output
    report = done.report()
    rows = {row["host"]: (row["status"], row["role"]) for row in report["hosts"]}
    assert {name: status for name, (status, _role) in rows.items()} == {
        "m1": "error",
        "m2": "unreachable",
        "w1": "error",
        "w2": "unreachable",
    }
    reasons = {row["host"]: row["reason"] for row in report["hosts"]}
    assert reasons["m1"].startswith(BEGAN)
    assert "'nowhere' is undefined" in reasons["m1"]
    assert "\n" not in reasons["m1"]
    assert reasons["w1"] == NO_PLUGIN
    found = {item["host"]: item for item in report["findings"] if item["code"] == "KM901"}
    assert found.keys() == rows.keys()
    assert found["w1"]["summary"] == f"the host gave no evidence: {NO_PLUGIN}"
    assert found["w1"]["remedy"].startswith("correct the inventory")
    assert "KM101" not in {
        item["code"] for item in report["verdicts"] if item["verdict"] in ("clear", "present")
    }
    assert (
        f"WARNING KM901 w1: Host gave no evidence the host gave no evidence: {NO_PLUGIN}"
        in done.words
    )
    assert "kubemend: 4 hosts, 0 critical, 4 warning" in done.stdout
    folder = operator.folder / "report"
    assert "the connection plugin &#39;nosuch&#39; was not found" in (
        folder / "report.html"
    ).read_text(encoding="utf-8")
    suite = ElementTree.parse(folder / "junit.xml").find("./testsuite[@name='w1']")
    assert suite.get("errors") == "1"
    assert suite.find("testcase/error").get("message") == NO_PLUGIN
    # What is known of them is evidence like any other: a replay of the folder says the same, and
    # makes up nobody.
    for name in ("m1.json", "m1.cluster.json", "w1.json"):
        assert evidence_document.read(folder / "evidence" / name)["status"] == "error"
    (folder / "evidence" / "w2.json").unlink()
    again = operator.run(
        "replay", "-e", f"kubemend_evidence={folder}", inventory=None, report_dir="again"
    )
    assert again.rc == 0, again.output
    second = json.loads((operator.folder / "again" / "report.json").read_text(encoding="utf-8"))
    assert second["hosts"] == [row for row in report["hosts"] if row["host"] != "w2"]


def test_where_it_is_the_only_one_there_is_a_report_too_and_the_threshold_counts(operator):
    operator.write("broken.ini", "m1 ansible_connection=nosuch\n")
    done = operator.run(
        "remediate",
        "-e",
        "kubemend_fail_on=warning",
        "-e",
        "kubemend_max_risk=2",
        inventory="broken.ini",
    )
    assert done.rc == 2, done.output
    report = done.report()
    assert (report["exit_code"], report["exit_reason"], report["mode"]) == (
        2,
        "threshold",
        "repair",
    )
    assert [(row["host"], row["status"], row["reason"]) for row in report["hosts"]] == [
        ("m1", "error", NO_PLUGIN)
    ]
    assert "Lock the cluster" not in done.stdout


def test_under_limit_only_those_that_were_asked(operator):
    operator.write("broken.ini", INVENTORY)
    done = operator.run(
        "audit", "-e", "kubemend_slice=true", "--limit", "w1,w2", inventory="broken.ini"
    )
    assert done.rc == 0, done.output
    assert {row["host"]: row["status"] for row in done.report()["hosts"]} == {
        "w1": "error",
        "w2": "unreachable",
    }
    assert (
        evidence_document.read(operator.folder / "report" / "evidence" / "m1.json")["status"]
        == "not_asked"
    )


def test_a_role_says_whom_its_play_has_lost(operator):
    """Ansible's own look at a role's options is a task of each host."""
    play = operator.write(
        "role.yml",
        "- {hosts: all, gather_facts: false, roles: [kubemend.remediation.leader_election]}\n",
    )
    operator.write("broken.ini", INVENTORY)
    done = operator.run(str(play), "-e", "kubemend_max_risk=0", inventory="broken.ini")
    assert done.rc == 2, done.output
    assert "The play has lost m1, w1 already, as Ansible says above" in done.words
    assert "or leave them out with --limit" in done.words
    assert "Collect evidence" not in done.stdout


def test_a_variable_of_ours_that_cannot_be_evaluated_names_its_host(operator):
    operator.write("broken.ini", INVENTORY)
    operator.write("host_vars/w2.yml", "kubemend_timeout: '{{ nowhere }}'\n")
    done = operator.run("audit", inventory="broken.ini")
    assert done.rc == 2, done.output
    assert "kubemend_timeout (host w2) cannot be evaluated: " in done.words
    assert "Collect evidence" not in done.stdout


# Plays ssh for a node whose lock is ours; whatever else is asked there is well.
HELD = """#!/bin/bash
case "${@: -1}" in *"-I -S"*) ;; *) exit 0 ;; esac
program=$(cat); mark=$(grep -ao 'KUBEMEND-[0-9a-f]*' <<< "$program" | tail -1)
for word in "$@"; do case $word in h-*) host=${word#h-} ;; esac; done
grep -ao "'state': '[a-z]*'" <<< "$program" | sed "s/.*: '\\(.*\\)'/\\1 $host/" >> %(folder)s/asked
printf '\\n%%s %%s\\n' "$mark" '{"held": true, "changed": true, "message": "", \
"lock": {"run_id": "%(run)s", "remaining": 60, "controller": {}}}'
"""
RUN = "20261121T090000Z-1a2b3c"
# the floor: a loop ends at an item with which it cannot begin
CORE_2_16 = ansible_release.__version__.startswith("2.16.")
LOCKED = """
- hosts: all
  gather_facts: false
  vars:
    _kubemend_run: {report_dir: "{{ folder }}", run_id: %(run)s, control_plane_hosts: [m1, m2, m3]}
    _kubemend_lock_hosts: [w1]
  tasks:
    - block:
        - ansible.builtin.raw: "true"
          register: _kubemend_asked
      rescue:
        - ansible.builtin.meta: clear_host_errors
      when: asked
    - import_tasks: %(tasks)s/lock.yml
    - kubemend.remediation.cluster_lock:
        report_dir: "{{ folder }}"
        run_id: %(run)s
        state: decided
      delegate_to: localhost
      run_once: true
      register: decided
    - import_tasks: %(tasks)s/unlock.yml
    - debug:
        msg: >-
          held={{ decided.held }} of
          {{ _kubemend_locks.results | default([]) | length or 'no answers' }}
      delegate_to: localhost
      run_once: true
"""


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("broken", ["m1", "m3"])
def test_the_cluster_is_locked_without_them(operator, asked, broken):
    """Hosts that are known to be unreachable are left out of the loop.

    If --limit left them out before, they fail in the loop, and the other hosts decide.
    """
    ssh = operator.write("ssh", HELD % {"run": RUN, "folder": operator.folder})
    ssh.chmod(0o755)
    here = f"ansible_connection=ssh ansible_ssh_executable={ssh} ansible_host=h-"
    operator.write(
        "broken.ini",
        "".join(
            f"{name} {'ansible_connection=nosuch' if name == broken else here + name}\n"
            for name in ("m1", "m2", "m3", "w1")
        ),
    )
    play = operator.write("lock.yml", LOCKED % {"tasks": PLAYBOOKS / "tasks", "run": RUN})
    given = json.dumps({"folder": str(operator.folder), "asked": asked, "kubemend_become": False})
    done = operator.run(
        str(play),
        "-e",
        given,
        inventory="broken.ini",
        report_dir=None,
        env={"ANSIBLE_PIPELINING": "1"},
    )
    asked_of = (
        [line.split() for line in (operator.folder / "asked").read_text().splitlines()]
        if (operator.folder / "asked").exists()
        else []
    )
    # Whoever was locked is unlocked, however the loop ended.
    assert {host for state, host in asked_of if state == "acquired"} == {
        host for state, host in asked_of if state == "released"
    }, done.output
    if not asked and CORE_2_16:  # the loop ends there
        if broken == "m1":
            assert not asked_of
            assert "no control-plane node was asked" in done.words
        else:
            assert {host for dummy, host in asked_of} == {
                "m1",
                "m2",
            }
            assert "held=True of no answers" in done.words
        return
    noted = {one.host: one for one in run_cluster_lock.noted(str(operator.folder))}
    assert noted[broken].reason.startswith(
        "Ansible could not begin with it" if asked else cluster_lock.NOT_ASKED
    )
    assert noted[broken].status == ("unreachable" if asked else "error")
    assert all(noted[name].held for name in noted if name != broken)
    assert noted.keys() == {
        "m1",
        "m2",
        "m3",
        "w1",
    }
    assert f"held=True of {3 if asked else 4}" in done.words, done.output


def test_a_revert_names_them_and_the_newest_run_may_be_theirs(operator):
    operator.write("broken.ini", INVENTORY)
    done = operator.run("revert", *ALL, "-e", "kubemend_run_id=last", inventory="broken.ini")
    assert done.rc == 2, done.output
    report = done.report()
    assert (report["exit_code"], report["exit_reason"]) == (2, "input")
    said = {one["host"]: (one["status"], one["reason"]) for one in report["revert"]["hosts"]}
    assert said["w1"] == ("error", NO_PLUGIN)
    assert said["m1"][1].startswith(BEGAN)
    assert said["w2"][0] == "unreachable"
    assert "m1, m2, w1, w2 could not be asked" in done.words
    # With the evidence of the others a run could be chosen: never `last`, while a host is silent
    # where the newest may be.
    runs = [{"run_id": RUN, "reverts": [], "paths": [{"path": "/x", "state": "restore"}]}]
    run_revert.write(
        str(operator.folder / "report"),
        "m2",
        run_revert.LISTED,
        {"host": "m2", "status": "ok", "reason": "", "answer": {"runs": runs}},
    )
    listings, missing = run_revert.listings(
        str(operator.folder / "report"), ["m1", "m2", "w1", "w2"]
    )
    assert not missing
    assert run_revert.choose(listings, RUN).hosts == ("m2",)
    assert (
        "m1, w1, w2 could not be asked, where the newest run may have been"
        in run_revert.choose(listings, "last").problem
    )


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "Task failed: the connection plugin 'nosuch' was not found",
            "the connection plugin 'nosuch' was not found",
        ),
        ("Task failed: Action failed: a", "a"),
        (
            (
                "Error processing keyword 'port': 'nope' is undefined\n\nTask failed.\nOrigin:"
                " /x.yml:3:3\n\n1 ---"
            ),
            "Error processing keyword 'port': 'nope' is undefined",
        ),
        (
            (
                "The field 'port' has an invalid value. The error was: 'a' is undefined. 'a' is"
                " undefined. 'a' is undefined"
            ),
            (
                "The field 'port' has an invalid value. The error was: 'a' is undefined. 'a' is"
                " undefined"
            ),
        ),
        (
            (
                "Invalid become method specified, could not find matching plugin: 'su'. Use"
                " `ansible-doc -t become -l` to list available plugins."
            ),
            "Invalid become method specified, could not find matching plugin: 'su'",
        ),
        ("a\x1b[31m b\x07", "a [31m b"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_what_ansible_said_becomes_one_sentence(said, cause):
    assert run_inventory.never_began(said) == BEGAN + cause


@pytest.mark.parametrize(
    "hostvars",
    [
        None,
        {},
        type("Gone", (), {"raw_get": lambda self, host: {"_kubemend_asked": "no mapping"}})(),
    ],
)
def test_without_a_word_of_ansible_there_is_a_row_all_the_same(tmp_path, hostvars):
    run_inventory.note_unheard(tmp_path, {"w1": ["node"]}, ["m9"], hostvars)
    document = evidence_document.read(tmp_path / "w1.json")
    assert (document["status"], document["groups"]) == ("error", ["node"])
    facts(document["reason"], "Ansible", "not begin", "not say why")
    assert [path.name for path in tmp_path.iterdir()] == ["w1.json"]


def test_what_is_there_stays(tmp_path):
    evidence_document.write(evidence_document.stub("m1", [], "unreachable", "refused"), tmp_path)
    run_inventory.note_unheard(tmp_path, {"m1": []}, ["m1"], None)
    assert [path.name for path in tmp_path.iterdir()] == ["m1.json"]
    assert evidence_document.read(tmp_path / "m1.json")["reason"] == "refused"


@pytest.mark.parametrize("playbook", ["audit", "capture_logs"])
def test_the_api_is_asked_through_the_others(operator, playbook):
    """The API is asked whatever becomes of the first and the last host.

    With ansible-core 2.16 such a host ends a loop, from either end of it.
    """
    here, broken = (
        (
            f"ansible_connection=local ansible_python_interpreter={sys.executable}"
            " kubemend_become=false"
        ),
        "ansible_connection=nosuch",
    )
    operator.write(
        "broken.ini", f"[kube_control_plane]\nm1 {broken}\nm2 {here}\nm3 {here}\nm4 {broken}\n"
    )
    done = operator.run(
        playbook,
        *(("--check", "-e", "kubemend_capture_level=0") if playbook == "capture_logs" else ()),
        inventory="broken.ini",
    )
    assert done.rc == 0, done.output
    told = {
        name: evidence_document.read(
            operator.folder / "report" / "evidence" / f"{name}.cluster.json"
        )
        for name in ("m1", "m2", "m3", "m4")
    }
    assert {told["m1"]["reason"], told["m4"]["reason"]} == {NO_PLUGIN}
    assert not any(BEGAN in (told[name]["reason"] or "") for name in ("m2", "m3"))
    assert "server" in told["m2"]["collectors"]
    assert "server" in told["m3"]["collectors"]


def test_a_capture_goes_on_without_them_and_says_so(operator):
    """m1, which every run_once task is for, and w1.

    Lines of the others are captured, and each format names the two.
    """
    here = (
        f"ansible_connection=local ansible_python_interpreter={sys.executable}"
        " kubemend_become=false"
    )
    operator.write("broken.ini", INVENTORY.replace(f"m2 {SILENT}", f"m2 {here}"))
    done = operator.run(
        "capture_logs",
        *ALL,
        "-e",
        "kubemend_capture_seconds=1",
        "-e",
        "kubemend_capture_level=0",
        inventory="broken.ini",
    )
    report = done.report()
    assert report["mode"] == "capture"
    assert f"w1: {NO_PLUGIN}" in report["notices"]
    assert any(one.startswith(f"m1: {BEGAN}") for one in report["notices"])
    folder = operator.folder / "report"
    for name in ("report.txt", "report.html", "junit.xml"):
        assert "the connection plugin" in (folder / name).read_text(encoding="utf-8"), name
    assert done.rc == report["exit_code"]
    assert "Traceback" not in done.output


def test_the_api_is_asked_in_the_inventorys_order(operator):
    """Ansible's set filters (union, difference) would ask and lock in another order each time."""
    names = [f"m{number}" for number in range(1, 9)]
    operator.write(
        "many.ini", "[kube_control_plane]\n" + "".join(f"{name} {SILENT}\n" for name in names)
    )
    for seed in ("1", "2", "3"):
        done = operator.run(
            "audit",
            inventory="many.ini",
            env={"PYTHONHASHSEED": seed, "ANSIBLE_DISPLAY_OK_HOSTS": "true"},
        )
        assert done.rc == 0, done.output
        asked = done.stdout.partition("TASK [Collect evidence of the cluster's API")[2].partition(
            "TASK ["
        )[0]
        assert re.findall(r"item=(m\d)", asked) == names, done.output


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.rglob("*.yml")), ids=lambda path: path.name)
def test_no_list_in_arbitrary_order(path):
    assert not re.search(
        r"\|\s*(union|difference|intersect|symmetric_difference)\b",
        path.read_text(encoding="utf-8"),
    )
