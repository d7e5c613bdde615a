# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""prepare_run: bad input is one sentence and exit 2 before any host is touched.

Folders and stubs.
"""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

PLAY = """
- hosts: "{{ 'all' if groups['all'] else 'localhost' }}"
  gather_facts: false
  strategy: ansible.builtin.linear
  tasks:
    - kubemend.remediation.prepare_run:
      run_once: true
      register: run
    - keep_result:
        value: "{{ run }}"
        path: "{{ lookup('env', 'RESULT') }}"
      run_once: true
"""


@pytest.fixture
def journal(operator):
    """Run the action alone; return the finished run and, after success, the action's result."""
    operator.write("play.yml", PLAY)

    def run(*args, **more):
        path = operator.folder / "result.json"
        done = operator.run(
            str(operator.folder / "play.yml"), *args, env={"RESULT": str(path)}, **more
        )
        return done, json.loads(path.read_text()) if path.exists() else None

    return run


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_stubs_and_result(journal, operator):
    stale = operator.write("report/evidence/gone.json", "{}")
    kept = operator.write("report/evidence/notes.txt", "mine")
    done, result = journal("--limit", "w1,b1")
    assert done.rc == 0, done.output
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", result["run_id"])
    assert result["report_dir"] == str(operator.folder / "report")
    assert result["control_plane_hosts"] == ["m1", "m2"]
    assert result["pattern"] == "kube_control_plane:kube_node"
    assert result["groups"] == {"m1": ["control_plane"], "m2": ["control_plane"], "w1": ["node"]}
    assert result["changed"] is False
    evidence = operator.folder / "report" / "evidence"
    assert result["evidence_dir"] == str(evidence)
    assert mode(evidence) == 0o700
    assert not stale.exists()
    assert kept.exists()
    assert sorted(path.name for path in evidence.glob("*.json")) == ["m1.json", "m2.json"]
    stub = json.loads((evidence / "m1.json").read_text())
    assert (stub["host"], stub["status"], stub["groups"]) == ("m1", "not_asked", ["control_plane"])
    assert stub["collectors"] == {}
    assert mode(evidence / "m1.json") == 0o600


def test_the_default_folder_is_private_and_named_after_the_run(journal, operator):
    done, result = journal(report_dir=None)
    assert done.rc == 0, done.output
    runs = operator.folder / "home" / ".kubemend" / "runs"
    assert result["report_dir"] == str(runs / result["run_id"])
    assert [mode(path) for path in (runs.parent, runs, runs / result["run_id"])] == [0o700] * 3


def test_relative_folders_are_relative_to_where_ansible_was_started(journal, operator):
    operator.cwd = operator.folder / "home"
    done, result = journal("-e", "kubemend_report_dir=sub/here", report_dir=None)
    assert done.rc == 0, done.output
    assert result["report_dir"] == str(operator.folder / "home" / "sub" / "here")


def test_without_the_groups_all_hosts_count(journal, operator):
    operator.write("flat.ini", "m1\nm2\n")
    done, result = journal(inventory="flat.ini")
    assert done.rc == 0, done.output
    assert result["pattern"] == "all"
    assert result["control_plane_hosts"] == ["m1", "m2"]
    assert result["groups"] == {"m1": [], "m2": []}


def test_groups_named_in_the_inventory_are_used(journal, operator):
    operator.write(
        "own.ini",
        "[masters]\nm1\n[workers]\nw1\n[db]\nd1\n[all:vars]\n"
        "kubemend_control_plane_group=masters\nkubemend_node_group=workers\n",
    )
    done, result = journal(inventory="own.ini")
    assert done.rc == 0, done.output
    assert result["pattern"] == "masters:workers"
    assert result["groups"] == {"m1": ["control_plane"], "w1": ["node"]}


def test_kubemend_hosts_narrows_and_the_rest_is_expected_all_the_same(journal):
    done, result = journal("-e", "kubemend_hosts=m*")
    assert done.rc == 0, done.output
    assert (result["pattern"], list(result["groups"])) == ("m*", ["m1", "m2", "w1"])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ["-e", "kubemend_fail_an=critical"],
            "kubemend_fail_an is not a variable of kubemend; the nearest one is kubemend_fail_on.",
        ),
        (
            ["-e", "kubemend_fail_on=error"],
            "kubemend_fail_on is 'error'; it must be one of never, unknown, warning, critical.",
        ),
        (
            ["-e", "kubemend_faults=KM999"],
            "kubemend_faults names KM999, which this version does not judge",
        ),
        (
            ["-e", "kubemend_hosts=nobody"],
            "There is no host to ask: nobody names no host of the inventory.",
        ),
        (
            ["--limit", "b1"],
            (
                "There is no host to ask: --limit leaves none of the 3 hosts of"
                " kube_control_plane:kube_node."
            ),
        ),
        (
            ["-e", "kubemend_timeout={{ nothing }}"],
            "kubemend_timeout (host m1) cannot be evaluated",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(journal, operator, args, sentence):
    done, result = journal(*args)
    assert done.rc == 2, done.output
    assert sentence in done.words
    assert result is None
    assert "Traceback" not in done.output
    assert not (operator.folder / "report").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[all:vars]\nkubemend_becom=1\n",
            (
                "kubemend_becom (host m1) is not a variable of kubemend; the nearest one is"
                " kubemend_become."
            ),
        ),
        (
            "[kube_node:vars]\nkubemend_timeout=soon\n",
            "kubemend_timeout (host w1) is 'soon'; it must be a whole number from 1 to 3600.",
        ),
        (
            "[kube_node:vars]\nkubemend_fail_on=critical\n",
            "kubemend_fail_on differs between m1 and w1",
        ),
    ],
)
def test_the_inventorys_variables_are_checked_for_every_host(journal, operator, text, sentence):
    operator.write("vars.ini", (operator.folder / "inventory.ini").read_text() + text)
    done, result = journal(inventory="vars.ini")
    assert done.rc == 2, done.output
    assert sentence.replace(" (host m1)", "") in done.words.replace(" (host m1)", "")
    assert result is None


def test_variables_of_hosts_outside_the_run_do_not_matter(journal, operator):
    operator.write(
        "vars.ini", (operator.folder / "inventory.ini").read_text() + "[other:vars]\nkubemend_x=1\n"
    )
    assert journal(inventory="vars.ini")[0].rc == 0


def test_hosts_may_differ_where_it_concerns_each_alone(journal, operator):
    operator.write(
        "vars.ini",
        (operator.folder / "inventory.ini").read_text()
        + "[kube_node:vars]\nkubemend_become=false\n",
    )
    assert journal(inventory="vars.ini")[0].rc == 0


def test_an_extra_variable_wins_over_what_hosts_disagree_about(journal, operator):
    operator.write(
        "vars.ini",
        (operator.folder / "inventory.ini").read_text()
        + "[kube_node:vars]\nkubemend_fail_on=critical\n",
    )
    done, result = journal("-e", "kubemend_fail_on=warning", inventory="vars.ini")
    assert done.rc == 0, done.output
    assert result["settings"]["fail_on"] == "warning"


def test_an_inventory_without_hosts_is_an_error(journal, operator):
    operator.write("empty.ini", "[kube_node]\n")
    done = journal(inventory="empty.ini")[0]
    assert done.rc == 2, done.output
    assert "The inventory has no hosts; name one with -i." in done.words


def test_an_inventory_that_does_not_exist_is_named(journal):
    done = journal(inventory="nosuch.yml")[0]
    assert done.rc == 2, done.output
    assert "nosuch.yml does not exist; correct the path after -i." in done.words


def test_a_folder_that_cannot_be_made_is_named(journal, operator):
    blocked = operator.write("file", "")
    done = journal("-e", f"kubemend_report_dir={blocked}/sub", report_dir=None)[0]
    assert done.rc == 2, done.output
    assert f"{blocked} is needed as a folder but is a file." in done.output.replace(
        "\n", " "
    ).replace("  ", " ")


def test_check_mode_does_the_same(journal, operator):
    done, result = journal("--check", "--diff")
    assert done.rc == 0, done.output
    assert result is None  # of the copy that records it; the folder is made all the same
    assert (operator.folder / "report" / "evidence").is_dir()


def test_a_refusal_is_lifted_for_the_whole_run_or_not_at_all(journal, operator):
    operator.write("host_vars/m2.yml", "kubemend_allow: [pending_changes]\n")
    done, _result = journal()
    assert done.rc == 2, done.output
    assert "kubemend_allow differs between" in done.words, done.output


def test_a_play_in_batches_is_refused(operator):
    operator.write("serial.yml", PLAY.replace("  gather_facts", "  serial: 1\n  gather_facts"))
    done = operator.run(str(operator.folder / "serial.yml"))
    assert done.rc == 2, done.output
    assert "Take serial out of the play" in done.words, done.output


def test_a_repairing_run_always_asks_for_what_a_former_one_left_open(operator):
    operator.write(
        "play.yml",
        PLAY.replace(
            "kubemend.remediation.prepare_run:",
            "kubemend.remediation.prepare_run:\n        mode: repair",
        ),
    )
    path = operator.folder / "result.json"
    for risk, faults in ((2, ["KM101", "KM902"]), (0, ["KM101"])):
        operator.run(
            str(operator.folder / "play.yml"),
            "-e",
            f"kubemend_max_risk={risk}",
            "-e",
            "kubemend_faults=KM101",
            env={"RESULT": str(path)},
        )
        assert json.loads(path.read_text())["settings"]["faults"] == faults


@pytest.mark.parametrize(
    ("symptom", "args", "pod"),
    [
        (None, (), None),
        ("duplicate_pods", (), None),
        ("admission_errors", (), "rejected"),
        ("admission_errors", ("-e", "kubemend_pod=n/a"), "n/a"),
        (None, ("-e", "kubemend_pod=n/a"), "n/a"),
    ],
)
def test_which_pod_the_collector_is_to_look_at(operator, symptom, args, pod):
    said = (
        f"kubemend.remediation.prepare_run:\n        symptom: {symptom}"
        if symptom
        else "kubemend.remediation.prepare_run:"
    )
    operator.write("play.yml", PLAY.replace("kubemend.remediation.prepare_run:", said))
    path = operator.folder / "result.json"
    operator.run(str(operator.folder / "play.yml"), *args, env={"RESULT": str(path)})
    settings = json.loads(path.read_text())["settings"]
    assert settings["pod"] == pod
    assert not any("kubemend_pod" in line for line in settings["notices"])


@pytest.mark.parametrize(
    ("args", "limits"),
    [
        ((), {}),
        (
            ("-e", "kubemend_inotify_instances=16384", "-e", "kubemend_file_max=4000000"),
            {"fs.inotify.max_user_instances": 16384, "fs.file-max": 4000000},
        ),
    ],
)
def test_kernel_settings_that_are_asked_for_go_by_their_own_names(operator, args, limits):
    operator.write("play.yml", PLAY)
    path = operator.folder / "result.json"
    operator.run(str(operator.folder / "play.yml"), *args, env={"RESULT": str(path)})
    assert json.loads(path.read_text())["settings"]["limits"] == limits


@pytest.mark.parametrize(
    ("symptom", "args", "deep", "selector"),
    [
        (None, (), False, None),
        ("admission_errors", (), False, None),
        ("cpu_pinning", (), True, None),
        ("node_unreachable", (), True, None),
        (
            None,
            ("-e", "kubemend_deep=true", "-e", "kubemend_expect_pinning=app=db"),
            True,
            "app=db",
        ),
    ],
)
def test_a_symptom_asks_for_what_its_causes_need(operator, symptom, args, deep, selector):
    said = (
        f"kubemend.remediation.prepare_run:\n        symptom: {symptom}"
        if symptom
        else "kubemend.remediation.prepare_run:"
    )
    operator.write("play.yml", PLAY.replace("kubemend.remediation.prepare_run:", said))
    path = operator.folder / "result.json"
    operator.run(str(operator.folder / "play.yml"), *args, env={"RESULT": str(path)})
    settings = json.loads(path.read_text())["settings"]
    assert (settings["deep"], settings["expect_pinning"]) == (deep, selector)
    assert not any("no effect" in line for line in settings["notices"])
    # Every pod of the cluster in full is asked of an API that may be in trouble: only for a cause
    # that is told by them.
    assert settings["api_deep"] is (deep and symptom != "node_unreachable")


def test_what_each_kubelet_is_to_be_told(operator):
    """Each host's own variables decide, for a playbook that asks for them.

    A playbook that was not asked to leaves kubelets as they are.
    """
    operator.write(
        "vars.ini",
        (operator.folder / "inventory.ini").read_text()
        + "[kube_node:vars]\nkubemend_cpu_manager_policy=static\n",
    )
    path = operator.folder / "result.json"
    for said, wanted in (
        (
            ":\n        mode: repair\n        cpu_manager: true",
            {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1"},
        ),
        (":", None),
    ):
        operator.write(
            "play.yml",
            PLAY.replace(
                "kubemend.remediation.prepare_run:", "kubemend.remediation.prepare_run" + said
            ),
        )
        done = operator.run(
            str(operator.folder / "play.yml"),
            "-e",
            "kubemend_reserved_cpus=0-1",
            inventory="vars.ini",
            env={"RESULT": str(path)},
        )
        found = json.loads(path.read_text())["cpu_manager"]
        assert done.rc == 0, done.output
        assert (found["w1"] if wanted else found) == wanted, done.output
        if wanted:
            assert found["m1"] == {"reservedSystemCPUs": "0-1"}
    done = operator.run(
        str(operator.folder / "play.yml"),
        "-e",
        "kubemend_reserved_cpus=2-1",
        inventory="vars.ini",
        env={"RESULT": str(path)},
    )
    assert done.rc == 2, done.output
    assert "kubemend_reserved_cpus" in done.words, done.output
    assert "a list of CPUs such as 0-1,4" in done.words, done.output


def test_a_folder_that_another_run_uses_is_left_alone(journal, operator):
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
        cluster_lock as run_cluster_lock,
    )

    kept = operator.write("report/plan.json", "{}")
    owner = {**run_cluster_lock.controller(os.getpid()), "run_id": "20261121T090000Z-1a2b3c"}
    operator.write("report/run.json", json.dumps(owner))
    done, result = journal()
    assert done.rc == 2
    assert result is None
    assert kept.exists()
    assert f"in use by run 20261121T090000Z-1a2b3c (process {os.getpid()})" in done.words, (
        done.output
    )
    # that process is gone: another has its number
    operator.write("report/run.json", json.dumps({**owner, "started": 1}))
    assert journal()[0].rc == 0
    assert not kept.exists()


def test_a_play_whose_hosts_do_not_wait_for_each_other_is_refused(operator):
    operator.write("free.yml", PLAY.replace("ansible.builtin.linear", "ansible.builtin.free"))
    done = operator.run(str(operator.folder / "free.yml"))
    assert done.rc == 2, done.output
    assert "give it strategy linear" in done.words, done.output


def test_hosts_of_the_inventory_that_no_used_group_has_are_told(journal, operator):
    done, result = journal("-e", "kubemend_node_group=kube_nodes")
    assert done.rc == 0, done.output
    assert result["outside"]["b1"] == {"reason": "group", "address": "127.0.0.1"}
    assert "m1" not in result["outside"]
    notices = result["settings"]["notices"]
    assert any("kubemend_node_group is kube_nodes" in line for line in notices)
    assert any("b1" in line for line in notices)
    _done, result = journal("-e", "kubemend_hosts=m1", "-e", "kubemend_max_risk=2")
    assert result["outside"]["b1"]["reason"] == "pattern"
    assert any(
        line.startswith("kubemend_max_risk has no effect in audit")
        for line in result["settings"]["notices"]
    )
