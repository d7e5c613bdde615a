# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks by FQCN against hosts that do not answer.

Flow, --limit, strategy, check mode, exit codes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    symptoms,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings, variables
from tests import schemas
from tests.unit.plugins.plugin_utils.faults.test_recorded import FOLDER as RECORDED
from tests.unit.support.alone import interpreter

PLAYBOOKS = Path(settings.__file__).parents[3] / "playbooks"


def documents(operator):
    return {
        path.name: json.loads(path.read_text())
        for path in (operator.folder / "report" / "evidence").glob("*.json")
    }


def test_audit_of_hosts_that_do_not_answer_is_a_finding_and_not_a_failure(operator):
    done = operator.run("audit")
    assert done.rc == 0, done.output
    report = done.report()
    assert (report["mode"], report["exit_reason"], report["symptom"]) == ("observe", "ok", None)
    assert {item["host"]: item["status"] for item in report["hosts"]} == dict.fromkeys(
        ("m1", "m2", "w1"), "unreachable"
    )
    assert {item["host"] for item in report["findings"] if item["code"] == "KM901"} == {
        "m1",
        "m2",
        "w1",
    }
    assert "kubemend: 3 hosts, 0 critical, 3 warning" in done.stdout
    assert "unreachable=1" not in done.stdout
    # It is in a group that is not audited, which a notice says, and nothing asked it.
    before = done.stdout.partition("PLAY RECAP")[0]
    assert "b1" not in {item["host"] for item in report["hosts"]}
    assert "[b1" not in before
    assert ("b1", "group") in {(item["host"], item["reason"]) for item in report["outside"]}


def test_the_same_in_check_mode_with_strategy_free_and_any_callback(operator):
    plain = operator.run("audit").report()
    odd = operator.run(
        "audit",
        "--check",
        "--diff",
        env={"ANSIBLE_STRATEGY": "free", "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal"},
    )
    assert odd.rc == 0, odd.output
    for name in ("verdicts", "findings", "not_judged", "summary", "hosts"):
        assert odd.report()[name] == plain[name]
    assert odd.stdout.count("kubemend: 3 hosts") == 1


def test_under_limit_the_others_are_not_asked_and_the_api_is_asked_anyway(operator):
    done = operator.run("audit", "--limit", "w1")
    assert done.rc == 0, done.output
    found = documents(operator)
    assert {
        name: item["status"] for name, item in found.items() if not name.endswith(".cluster.json")
    } == {"m1.json": "not_asked", "m2.json": "not_asked", "w1.json": "unreachable"}
    assert any(name.endswith(".cluster.json") for name in found) or "item=m1" in done.stdout
    report = done.report()
    assert "KM101" in {item["code"] for item in report["not_judged"]}
    assert "KM101" not in {item["code"] for item in report["verdicts"]}
    assert "kubemend: 1 host" in done.stdout


def test_a_symptoms_playbook_shows_its_differential(operator):
    done = operator.run("duplicate_pods")
    assert done.rc == 0, done.output
    symptom = symptoms.SYMPTOMS["duplicate_pods"]
    report = done.report()
    assert report["symptom"]["name"] == "duplicate_pods"
    assert report["symptom"]["causes"] == list(symptom.causes)
    assert {item["code"] for item in report["verdicts"]} <= symptom.codes
    # All of them for the same reason: a number, and every one by name with -v.
    assert " faults: missing m1" in done.words
    verbose = operator.run("duplicate_pods", "-v")
    for code in symptom.causes:
        assert f" {code} " in verbose.stdout


@pytest.mark.parametrize(
    ("playbook", "args", "mode"),
    [
        ("audit", ("-e", "kubemend_max_risk=2"), "observe"),
        ("before_reboot", ("-e", "kubemend_max_risk=2"), "observe"),
        ("duplicate_pods", (), "observe"),
        ("duplicate_pods", ("-e", "kubemend_max_risk=2", "--check"), "plan"),
        ("remediate", ("-e", "kubemend_max_risk=2"), "repair"),
    ],
)
def test_consent_counts_where_a_playbook_may_repair(operator, playbook, args, mode):
    done = operator.run(playbook, *args)
    assert done.rc == 0, done.output
    assert (done.report()["mode"], done.report()["steps"]) == (mode, [])


@pytest.mark.parametrize(
    ("playbook", "args", "word", "is_started"),
    [
        ("before_reboot", (), "", False),
        ("before_reboot", ("-e", "kubemend_max_risk=1"), "no effect in audit", False),
        ("before_reboot", ("-e", "kubemend_probe=true"), "kubemend_max_risk=1", False),
        (
            "before_reboot",
            ("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=1", "--check"),
            "check mode",
            False,
        ),
        (
            "before_reboot",
            ("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=1"),
            "",
            True,
        ),
        (
            "audit",
            ("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=1"),
            "no effect in audit",
            False,
        ),
    ],
)
def test_a_trial_start_of_containerd_needs_its_switch_and_the_risk(
    operator, playbook, args, word, is_started
):
    done = operator.run(playbook, *args)
    assert done.rc == 0, done.output
    assert (done.report()["mode"], done.report()["steps"]) == ("observe", [])
    assert ("Start containerd in a trial, apart" in done.stdout) == is_started
    assert word in done.words
    assert word or "no effect" not in done.words


def test_chosen_faults_only(operator):
    done = operator.run("audit", "-e", "kubemend_faults=KM107,KM901")
    assert {item["code"] for item in done.report()["verdicts"]} == {"KM107", "KM901"}
    wrong = operator.run(
        "duplicate_pods", "-e", "kubemend_faults=KM901", "-e", "kubemend_fail_on=warning"
    )
    assert wrong.rc == 2
    assert wrong.report()["exit_reason"] == "threshold"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("-e", "kubemend_fail_an=never"), "the nearest one is kubemend_fail_on."),
        (("--limit", "b1"), "There is no host to ask"),
        (
            ("-e", "kubemend_compare_to=/nowhere"),
            "kubemend_compare_to is '/nowhere': there is no such file or folder.",
        ),
    ],
)
def test_bad_input_touches_no_host(operator, args, sentence):
    done = operator.run("audit", *args)
    assert done.rc == 2, done.output
    assert sentence in done.words
    assert "Collect evidence" not in done.stdout


def test_an_inventory_without_hosts_is_an_input_error(operator):
    operator.write("empty.ini", "")
    done = operator.run("audit", inventory="empty.ini")
    assert done.rc == 2, done.output
    assert "The inventory has no hosts" in done.words


def test_a_limit_that_matches_nothing_is_ansibles_own_error(operator):
    assert operator.run("audit", "--limit", "nobody").rc == 1


def test_groups_of_another_name(operator):
    text = (operator.folder / "inventory.ini").read_text().replace("kube_control_plane", "masters")
    operator.write("own.ini", f"{text}[all:vars]\nkubemend_control_plane_group=masters\n")
    done = operator.run("audit", inventory="own.ini")
    assert done.rc == 0, done.output
    assert {item["host"]: item["role"] for item in done.report()["hosts"]}.keys() == {
        "m1",
        "m2",
        "w1",
    }


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("nowhere", None, "no such folder or bundle."),
        ("cut/w1.json", "{", "w1.json: no JSON, or cut."),
        ("old/w1.json", '{"schema": "kubemend.evidence/9"}', "schema is 'kubemend.evidence/9'"),
    ],
)
def test_evidence_that_cannot_be_read_is_named_with_the_way_out(operator, name, text, why):
    if text is not None:
        operator.write(name, text)
    done = operator.run(
        "replay",
        "-e",
        f"kubemend_evidence={operator.folder / name.partition('/')[0]}",
        inventory=None,
    )
    assert done.rc == 2, done.output
    assert why in done.words, done.output
    assert "a bundle, or a list of them." in done.words, done.output


def test_one_broken_file_of_several_costs_its_host(operator):
    shutil.copytree(RECORDED / "v1.36.3-two-leaders" / "evidence", operator.folder / "some")
    cut = operator.folder / "some" / "w1.json"
    cut.write_bytes(cut.read_bytes()[:5000])
    done = operator.run("replay", "-e", "kubemend_evidence=some", inventory=None)
    report = done.report()
    assert done.rc == 0, done.output
    assert any("w1.json: no JSON, or cut." in line for line in report["notices"]), done.output
    assert [item["host"] for item in report["findings"] if item["code"] == "KM901"] == ["w1"]
    assert any(item["code"] == "KM101" for item in report["findings"])


def test_a_replay_of_one_fault_calls_no_host_healthy_and_says_what_consent_does_there(operator):
    args = (
        "-e",
        f"kubemend_evidence={RECORDED / 'v1.36.3-two-leaders' / 'evidence'}",
        "-e",
        "kubemend_max_risk=2",
    )
    done = operator.run("replay", *args, "-e", "kubemend_faults=KM101", inventory=None)
    assert done.rc == 0
    assert "healthy" not in done.output
    assert "no finding (1 of" in done.words
    assert "kubemend_max_risk has no effect in replay" in done.words
    assert "needs -e kubemend_max_risk=2" not in done.words
    assert all(step["allowed"] for step in done.report()["plan"])
    assert done.report()["steps"] == []


def test_a_group_with_a_letter_too_many_is_told(operator):
    text = (operator.folder / "inventory.ini").read_text().replace("kube_node", "kube_nodes")
    operator.write("own.ini", text)
    done = operator.run("audit", inventory="own.ini")
    assert done.rc == 0, done.output
    assert any("kube_nodes (w1)" in line for line in done.report()["notices"]), done.output
    assert {"host": "w1", "reason": "group"} in done.report()["outside"]


def test_a_machine_that_is_no_node_gets_one_verdict_and_no_plan(operator):
    if any(os.path.lexists(path) for path in installer.TRACES):
        pytest.skip("this machine has something of Kubernetes")
    operator.write(
        "own.ini",
        "localhost ansible_connection=local"
        f" ansible_python_interpreter={interpreter(operator.folder)} kubemend_become=false\n",
    )
    done = operator.run("audit", inventory="own.ini")
    report = done.report()
    assert done.rc == 0, done.output
    assert report["plan"] == [], done.output
    assert [(item["code"], item["verdict"]) for item in report["verdicts"]] == [
        ("KM905", "present")
    ]


def test_replay_of_an_audit_gives_the_same_verdicts_from_any_folder(operator):
    first = operator.run("audit").report()
    operator.cwd = operator.folder / "report"
    done = operator.run(
        "replay", "-e", "kubemend_evidence=evidence", inventory=None, report_dir="again"
    )
    assert done.rc == 0, done.output
    second = json.loads((operator.folder / "again" / "report.json").read_text())
    assert second["mode"] == "replay"
    # Since when a finding is there is of the time of its run: a replay does not say it.
    times = [item.pop("since") for item in first["findings"]]
    assert times == [first["started"]] * len(times)
    for name in ("verdicts", "findings", "not_judged", "summary", "hosts"):
        assert second[name] == first[name]


def test_replay_under_limit_is_not_skipped(operator):
    operator.record("kept", "m1")
    done = operator.run("replay", "-e", "kubemend_evidence=kept", "--limit", "w1")
    assert done.rc == 0, done.output
    assert done.report()["mode"] == "replay"
    assert done.stdout.count("kubemend: 1 host") == 1


@pytest.mark.parametrize(
    "path", [*PLAYBOOKS.glob("*.yml"), *PLAYBOOKS.glob("plays/*.yml")], ids=lambda path: path.stem
)
def test_every_play_pins_its_strategy_and_gathers_nothing(path):
    plays = yaml.safe_load(path.read_text(encoding="utf-8"))
    for play in plays:
        if "hosts" not in play:
            continue
        assert play["strategy"] == "ansible.builtin.linear"
        assert play["gather_facts"] is False
        for task in flattened(play["tasks"], path.parent):
            once = task.get("run_once", False) or "ansible.builtin.meta" in task
            lists = (task.get("kubemend.remediation.revert_run") or {}).get("state") == "listed"
            reads = any(
                name.endswith((".node_evidence_info", ".pod_logs_info", ".containerd_trial"))
                for name in task
            )
            assert once or lists or reads, "a per-host task beside the collectors"
            asks_a_node = any(
                name.endswith(
                    (
                        ".node_evidence_info",
                        ".cluster_evidence_info",
                        ".pod_logs_info",
                        ".apply_step",
                        ".cluster_lock",
                        ".revert_run",
                        ".log_level",
                        ".scheduler_dump",
                        ".containerd_trial",
                    )
                )
                for name in task
            )
            assert ("become" in task) == asks_a_node


def flattened(tasks, folder):
    """Yield the tasks of all blocks, rescues included, and of all files that they load."""
    for task in tasks:
        path = task.get("ansible.builtin.import_tasks") or task.get("ansible.builtin.include_tasks")
        inner = [task.get(part) or [] for part in ("block", "rescue", "always")]
        if path:
            chosen = named_files(task) if "{{" in path else (path,)
            for file in chosen:
                yield from flattened(
                    yaml.safe_load((folder / file).read_text(encoding="utf-8")),
                    (folder / file).parent,
                )
        else:
            yield from (
                flattened([one for part in inner for one in part], folder)
                if "block" in task
                else [task]
            )


def named_files(task):
    """Return the files of which a task loads one, by the names that its templates quote."""
    if "kubemend_transport" in str(task):
        return ("task.yml", "fleet.yml")  # loading the playbook chooses one of two
    found = [
        path.name
        for path in sorted((PLAYBOOKS / "tasks").glob("*.yml"))
        if f"'{path.stem}'" in json.dumps(task)
    ]
    assert len(found) > 1, task
    return found


@pytest.mark.parametrize(
    "role", sorted((PLAYBOOKS.parent / "roles").iterdir()), ids=lambda path: path.name
)
def test_a_role_is_the_flow_of_the_playbooks_with_its_faults_and_risk_fixed(role):
    tasks = yaml.safe_load((role / "tasks" / "main.yml").read_text(encoding="utf-8"))
    first, *rest = tasks
    fixed = first["kubemend.remediation.prepare_run"]
    assert first["run_once"]
    if role.name == "log_capture":
        assert fixed == {"mode": "capture"}
    else:
        assert fixed["mode"] == "repair"
        assert fixed["max_risk"] in (1, 2, 3)
        assert set(fixed["faults"]) <= set(fault_engine.CATALOGUE)
    assert [task["ansible.builtin.import_tasks"] for task in rest] == [
        f"../../../playbooks/tasks/{name}.yml"
        for name in (("capture",) if role.name == "log_capture" else ("audit", "conclude"))
    ]
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]["main"]["options"]
    for name, option in options.items():
        default = variables.VARIABLES[name].default
        assert option.get("default") == (
            list(default) if isinstance(default, tuple) else default
        ), name
        assert not option.get("required")


def test_a_role_judges_and_says_what_it_would_do(operator):
    play = operator.folder / "role.yml"
    play.write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "kube_control_plane",
                    "gather_facts": False,
                    "roles": ["kubemend.remediation.leader_election"],
                }
            ]
        )
    )
    done = operator.run(str(play), "-e", "kubemend_max_risk=0")
    assert done.rc == 0, done.output
    report = done.report()
    assert report["mode"] == "repair"
    assert {item["code"] for item in report["verdicts"]} <= {
        "KM101",
        "KM102",
        "KM103",
        "KM104",
        "KM105",
        "KM110",
        "KM901",
        "KM902",
    }
    assert {item["host"]: item["status"] for item in report["hosts"]}["m1"] == "unreachable"
    assert "Lock the cluster" not in done.stdout
    assert "skipping" not in done.stdout
    assert done.stdout.count("\nkubemend: ") == 1
    refused = operator.run(str(play), "-e", "kubemend_faults=KM107")
    assert refused.rc == 2
    assert "kubemend_faults names no fault of this role" in refused.output


def test_revert_of_hosts_that_do_not_answer_lists_and_names_them(operator):
    done = operator.run("revert")
    assert done.rc == 0, done.output
    assert "No host answered" in done.stdout
    assert "m1: " in done.stdout
    assert "Lock the cluster" not in done.stdout
    assert (operator.folder / "report" / "report.txt").read_text() in done.stdout
    report = done.report()
    assert (
        report["mode"],
        report["exit_code"],
        report["exit_reason"],
        report["revert"]["run_id"],
    ) == ("revert", 0, "ok", None)
    assert {one["host"]: one["status"] for one in report["revert"]["hosts"]} == dict.fromkeys(
        ("m1", "m2", "w1"), "unreachable"
    )


WRITES = [
    line.split("|")[1:-1]
    for line in (
        (Path(__file__).resolve().parents[2] / "docs" / "reports.md")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    if line.startswith("| `") and line.count("|") == 8
]


def test_each_playbook_writes_the_formats_that_the_documentation_says(operator):
    rows = {
        re.findall("`([a-z_]+)`", row[0])[0]: [cell.strip().split(",")[0] for cell in row[1:]]
        for row in WRITES
    }
    formats = ["yes", "yes", "with `html`", "with `junit`"]
    findings = ["with `prometheus`", "with `sarif`"]  # what judges nothing has none
    assert rows == {
        "audit": [*formats, *findings],
        **{name: [*formats, "no", "no"] for name in ("capture_logs", "revert")},
    }
    for name in rows:
        theirs = operator.write("report/junit.xml", "<mine/>")
        ours = operator.write(
            "report/report.html",
            "<!DOCTYPE html>\n<html><head><title>kubemend: of another run</title>",
        )
        done = operator.run(
            name,
            "-e",
            "kubemend_report_formats=terminal,json,html,junit,prometheus,sarif",
        )
        assert done.report()["mode"] == {"audit": "observe", "capture_logs": "capture"}.get(
            name, name
        ), done.output
        assert (operator.folder / "report" / "report.txt").exists()
        assert schemas.junit_complaints(theirs.read_text(encoding="utf-8")) == []
        page = ours.read_text(encoding="utf-8")
        assert "of another run" not in page, done.output
        assert "w1" in page, done.output
        assert "has no effect here" not in done.words, done.output
        # what judges nothing counts no faults
        for file in ("kubemend.prom", "report.sarif"):
            assert (operator.folder / "report" / file).exists() == (name == "audit")
        assert ("critical</li>" in page) == (name == "audit")
        operator.run(name, "-e", "kubemend_report_formats=json")
        assert not ours.exists()
        assert not theirs.exists()
        assert not (operator.folder / "report" / "kubemend.prom").exists()
        assert not (operator.folder / "report" / "report.sarif").exists()


def test_revert_prints_nothing_where_the_terminal_is_no_format(operator):
    done = operator.run("revert", "-e", "kubemend_report_formats=json")
    assert done.rc == 0, done.output
    assert "No host answered" not in done.output
    assert "No host answered" in (operator.folder / "report" / "report.txt").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "20261121T090000Z-1a2b3c",
            (
                "no journal of these hosts knows run 20261121T090000Z-1a2b3c (none is known); m1,"
                " m2, w1 could not be asked"
            ),
        ),
        ("last", "it is not known which run is the last"),
        ("yesterday", "it must be a run id such as"),
    ],
)
def test_revert_of_an_unknown_run(operator, name, sentence):
    done = operator.run("revert", "-e", f"kubemend_run_id={name}")
    assert done.rc == 2, done.output
    assert sentence in done.words
    assert "Restore the former bytes" not in done.stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("-e", "kubemend_capture_level=99"), "a whole number from 0 to 10."),
        (
            ("-e", "kubemend_capture_components=kubelet,kube-proxy"),
            "a list of kubelet, kube-scheduler, kube-controller-manager, kube-apiserver",
        ),
        (("-e", "kubemend_capture_level=8"), "consent with -e kubemend_allow=body_logging."),
        (("-e", "kubemend_capture_level=7"), "above 6 kubelet may log the bodies of requests"),
        (("-e", "kubemend_capture_match=(a"), "kubemend_capture_match is '(a'"),
        (("-e", "kubemend_pod=a/b/c"), "namespace/name or the UID of a pod"),
    ],
)
def test_a_capture_of_bad_input_touches_no_host(operator, args, sentence):
    done = operator.run("capture_logs", *args)
    assert done.rc == 2, done.output
    assert sentence in done.words
    assert "Collect evidence" not in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--check",),
        ("-e", "kubemend_capture_level=8", "-e", "kubemend_allow=body_logging", "--limit", "w1"),
    ],
)
def test_a_capture_of_hosts_that_do_not_answer_raises_nothing(operator, args):
    done = operator.run("capture_logs", *args)
    assert done.rc == 2, done.output
    assert "No host gave evidence, so that nothing is captured (" in done.words
    assert "w1: " in done.words
    for name in (
        "Lock the cluster",
        "Raise the levels",
        "Put the levels back",
        "Traceback",
        "could not begin",
    ):
        assert name not in done.output
    left_out = "not_asked" if "--limit" in args else "unreachable"
    assert {
        name: found["status"]
        for name, found in documents(operator).items()
        if not name.endswith(".cluster.json")
    } == {"m1.json": left_out, "m2.json": left_out, "w1.json": "unreachable"}
