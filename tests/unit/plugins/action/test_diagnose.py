# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action diagnose, run by replay.yml.

The tests check reports on disk, what is printed, exit codes, and that the result has no evidence.
"""

from __future__ import annotations

import json
import re
import stat
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.action import diagnose
from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle import writer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import (
    check_mode,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    console,
    run_files,
)
from tests import schemas
from tests.unit.support.facts import facts

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "recorded"


@pytest.fixture
def replay(operator):
    operator.record("evidence", "m1", reason="secret\x1b[31m words of a node")

    def run(*args, evidence="evidence", **more):
        return operator.run(
            "replay",
            "-e",
            json.dumps({"kubemend_evidence": evidence}),
            *args,
            inventory=None,
            **more,
        )

    return run


def test_reports_are_written_for_their_owner_only_and_printed(replay, operator):
    done = replay()
    assert done.rc == 0, done.output
    folder = operator.folder / "report"
    for name in ("report.json", "report.txt", "report.html"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert {path.name for path in folder.iterdir()} == {"report.json", "report.txt", "report.html"}
    text = (folder / "report.txt").read_text(encoding="utf-8")
    last = (
        f"kubemend: 1 host, 0 critical, 1 warning, {done.report()['summary']['unknown']} unknown;"
        f" report: {folder}"
    )
    assert text.endswith(f"\n{last}\n")
    assert last in done.stdout
    assert "KM901 m1" in text
    assert "KM901 m1" in done.stdout
    report = done.report()
    assert (report["mode"], report["exit_code"], report["exit_reason"]) == ("replay", 0, "ok")
    assert report["hosts"][0]["reason"] == "secret\x1b[31m words of a node"
    assert "\x1b" not in done.stdout + text
    pages = Path(diagnose.__file__).absolute().parents[2] / "docs" / "faults"
    assert f"\nexplained in {pages}/<code>.md, and in report.html\n" in text
    assert [item["docs"] for item in report["findings"]] == ["docs/faults/KM901.md"]
    assert (pages / "KM901.md").is_file()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<summary>About KM901</summary>") == 1
    assert "<h5>What you see</h5>" in page


def test_the_result_holds_codes_and_paths_but_no_evidence(replay):
    done = replay("-vvv", env={"ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal"})
    assert done.rc == 0, done.output
    result = done.stdout[done.stdout.index("kubemend: 1 host") :]
    assert '"KM901"' in result
    assert '"exit_reason": "ok"' in result
    assert "words of a node" not in result


@pytest.mark.parametrize(("level", "code"), [("critical", 0), ("warning", 2)])
def test_the_threshold_decides_the_exit_code(replay, level, code):
    done = replay("-e", f"kubemend_fail_on={level}")
    assert done.rc == code, done.output
    assert done.report()["exit_code"] == code
    assert done.report()["exit_reason"] == ("threshold" if code else "ok")
    if code:
        assert (
            f"kubemend_fail_on={level} is reached: kubemend: 1 host, 0 critical, 1 warning"
            in done.words
        )
    assert "kubemend: 1 host" in done.stdout


@pytest.mark.parametrize("callback", ["minimal", "oneline"])
def test_any_callback_shows_the_same_report(replay, operator, callback):
    done = replay(env={"ANSIBLE_STDOUT_CALLBACK": f"ansible.builtin.{callback}"})
    assert done.rc == 0, done.output
    text = (operator.folder / "report" / "report.txt").read_text(encoding="utf-8")
    assert text in done.stdout


JSON_CALLBACK = r"""
DOCUMENTATION = "name: own_json\ntype: stdout\nshort_description: x\ndescription: x"
from ansible.plugins.callback import CallbackBase
class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "stdout", "own_json"
    def v2_playbook_on_stats(self, stats):
        self._display.display('{"done": true}')
"""


def test_a_callback_that_writes_json_keeps_stdout_for_itself(replay, operator):
    operator.write("callbacks/own_json.py", JSON_CALLBACK)
    done = replay(
        env={
            "ANSIBLE_STDOUT_CALLBACK": "own_json",
            "ANSIBLE_CALLBACK_PLUGINS": str(operator.folder / "callbacks"),
        }
    )
    assert done.rc == 0, done.output
    assert json.loads(done.stdout) == {"done": True}
    assert "KM901 m1" in done.stderr


def test_without_terminal_among_the_formats_nothing_is_printed(replay, operator):
    done = replay("-e", "kubemend_report_formats=json")
    assert done.rc == 0, done.output
    assert "KM901 m1" not in done.stdout
    assert (operator.folder / "report" / "report.json").exists()
    assert not (operator.folder / "report" / "report.html").exists()


def test_junit_is_written_where_it_is_a_format(replay, operator):
    path = operator.folder / "report" / "junit.xml"
    done = replay("-e", "kubemend_report_formats=junit")
    assert done.rc == 0, done.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert schemas.junit_complaints(path.read_text(encoding="utf-8")) == []
    assert 'message="secret\\x1b[31m words of a node"' in path.read_text(encoding="utf-8")
    assert "KM901 m1" not in done.stdout
    assert done.report()["exit_code"] == 0
    assert not list(path.parent.glob(".*"))
    replay("-e", "kubemend_report_formats=json")
    assert not path.exists()  # it would tell of another run


def test_a_file_of_somebody_else_in_the_folder_stays(tmp_path):
    """Only a file that begins as kubemend's own reports do is one of an earlier run."""
    judge_into(tmp_path, formats=["html", "junit"])
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "junit.xml").exists()
    other = tmp_path / "other.xml"
    (tmp_path / "junit.xml").rename(other)
    (tmp_path / "junit.xml").symlink_to(other)
    judge_into(tmp_path, formats=["json"])
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "junit.xml").is_symlink()
    assert other.exists()
    (tmp_path / "junit.xml").unlink()
    (tmp_path / "junit.xml").write_text(
        '<?xml version="1.0"?>\n<testsuites name="pytest tests"><testsuite'
        ' name="kubemend"/></testsuites>\n'
    )
    (tmp_path / "report.html").write_text(
        "<!DOCTYPE html>\n<html><head><title>Coverage of kubemend: all</title></head></html>\n"
    )
    before = {path: path.read_text() for path in (tmp_path / "junit.xml", tmp_path / "report.html")}
    judge_into(tmp_path, formats=["json"])
    assert {path: path.read_text() for path in before} == before
    (tmp_path / "junit.xml").unlink()
    (tmp_path / "junit.xml").mkdir()
    judge_into(tmp_path, formats=["json"])
    assert (tmp_path / "junit.xml").is_dir()


def fails(*_args):
    raise writer.BundleError(
        "No bundle was written: two hosts would have the same name in it (m1)."
    )


def full(*_args):
    raise OSError(28, "No space left on device", "/b")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (fails, "two hosts would have the same name"),
        (full, "/b cannot be used: No space left on device."),
    ],
)
def test_a_bundle_that_fails_is_the_exit_code_of_the_reports_too(tmp_path, monkeypatch, write, why):
    monkeypatch.setattr(writer, "write", write)
    answer, report = judge_into(tmp_path, bundle=str(tmp_path / "case.tar.gz"), fail_on="critical")
    assert answer["failed"]
    assert why in answer["msg"]
    assert (answer["exit_reason"], answer["bundle"], answer["steps"]) == ("input", None, [])
    assert (report["exit_code"], report["exit_reason"]) == (2, "input")
    assert why in report["notices"][-1]


def test_a_repair_that_was_consented_to_goes_on_without_its_bundle(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "write", fails)
    wanted, _report = judge_into(tmp_path, mode="repair", max_risk=2)
    answer, report = judge_into(
        tmp_path, mode="repair", max_risk=2, bundle=str(tmp_path / "case.tar.gz")
    )
    assert answer["steps"] == wanted["steps"] != []
    assert "failed" not in answer
    assert answer["bundle"] is None
    assert answer["warnings"] == [answer["bundle_reason"]] == report["notices"][-1:]
    assert report["exit_code"] == 0


def test_a_repair_that_may_do_nothing_is_refused_and_says_what_became_of_its_bundle(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(writer, "write", fails)
    answer, report = judge_into(tmp_path, mode="repair", bundle=str(tmp_path / "case.tar.gz"))
    assert answer["failed"]
    assert answer["steps"] == []
    assert report["exit_code"] == 2
    assert report["exit_reason"] == answer["exit_reason"]
    assert "two hosts would have the same name" in report["notices"][-1]


@pytest.mark.parametrize(
    ("more", "is_held"),
    [
        ({"mode": "observe"}, True),
        ({"mode": "repair", "max_risk": 2}, False),  # steps follow, which begin below it
        ({"mode": "observe", "fail_on": "critical"}, False),  # nothing follows a run that fails
    ],
)
def test_a_report_is_held_where_the_last_task_of_the_run_shows_it(tmp_path, capsys, more, is_held):
    judge_into(tmp_path, formats=["terminal"], held=True, **more)
    before = capsys.readouterr().out
    console.show_held(str(tmp_path))
    after = capsys.readouterr().out
    assert ("kubemend: " in before, "kubemend: " in after) == (not is_held, is_held)


def judge_into(folder, mode="replay", formats=("json",), **more):
    """Run diagnose over two leaders; return its answer and report.json."""
    args = {name: option.get("default") for name, option in diagnose.SPEC.items()}
    args.update(
        {"evidence": [str(RECORDED / "v1.18.4-two-leaders" / "evidence")], **more},
        report_dir=str(folder),
        run_id="20261121T090000Z-1a2b3c",
        mode=mode,
        formats=list(formats),
        deep=True,
    )
    answer = diagnose._diagnose(args, False)
    return answer, json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("v1.18.4-two-leaders", ""),
        ("v1.18.4-corrected-while-kubelet-stopped", "repair the kubelet of m2 first"),
    ],
)
def test_check_mode_ends_as_the_repair_would_and_says_what_it_cannot_know(tmp_path, case, why):
    evidence = [str(RECORDED / case / "evidence")]
    answer, report = judge_into(tmp_path, "plan", evidence=evidence, max_risk=3)
    assert (report["exit_code"], report["exit_reason"]) == ((2, "refused") if why else (0, "ok"))
    assert bool(answer.get("failed")) == bool(why)
    predicted = check_mode.NOT_ASKED.format(which="the steps")
    assert any(step["allowed"] for step in report["plan"]) == (predicted in report["notices"])
    assert answer["steps"] == []
    assert not why or (why in answer["msg"] and "would not be done" in answer["msg"])
    repaired, same = judge_into(tmp_path, "repair", evidence=evidence, max_risk=3)
    assert same["plan"] == report["plan"]
    assert predicted not in same["notices"]
    assert bool(repaired["steps"]) == (not why)
    assert judge_into(tmp_path, "observe", evidence=evidence, max_risk=3)[1]["exit_code"] == 0


def test_check_mode_asks_before_it_reports_and_ends_by_what_the_hosts_say(tmp_path):
    """First the steps whose hosts are to be asked, and no report.

    Then the report, which a refusal fails as it would the repair.
    """
    args = {name: option.get("default") for name, option in diagnose.SPEC.items()}
    args.update(
        evidence=[str(RECORDED / "v1.18.4-two-leaders" / "evidence")],
        report_dir=str(tmp_path),
        run_id="20261121T090000Z-1a2b3c",
        mode="plan",
        deep=True,
        max_risk=3,
        formats=["html"],
        asked=False,
        bundle=str(tmp_path / "case.tar.gz"),
    )
    answer = diagnose._diagnose(args, False)
    first, second = answer["looks"]
    assert first == {"id": "01-m2-kube-controller-manager-edit-manifest", "host": "m2"}
    assert answer["steps"] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json"]
    run_files.note_look(str(tmp_path), {**first, "state": "skipped", "reason": ""})
    run_files.note_look(
        str(tmp_path), {**second, "state": "refused", "reason": "the kubelet of m2 is not healthy"}
    )
    answer = diagnose._diagnose({**args, "asked": True}, False)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (
        answer["failed"],
        answer["exit_reason"],
        report["exit_code"],
        report["exit_reason"],
    ) == (True, "refused", 2, "refused")
    facts(answer["msg"], second["id"], "m2", "the kubelet of m2 is not healthy")
    assert "looks" not in answer
    assert report["steps"] == [
        {"id": second["id"], "state": "refused", "reason": "the kubelet of m2 is not healthy"}
    ]
    assert "would be refused; the kubelet of m2" in " ".join(
        (tmp_path / "report.txt").read_text().split()
    )
    assert "would be refused" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "case.tar.gz").exists()


# a terminal of 80 is 79 to Ansible, and none is too
@pytest.mark.parametrize(("columns", "limit"), [(79, 79), (99, 99), (400, 160)])
def test_the_report_has_the_width_that_ansible_has_and_never_an_endless_one(
    monkeypatch, columns, limit
):
    monkeypatch.setattr(diagnose.console, "Display", lambda: SimpleNamespace(columns=columns))
    silent = model_result.HostRow("m2", None, None, "unknown", "unreachable", "words " * 60)
    printed = diagnose._terminal_text(
        model_result.Result(hosts=(silent,)), Run("r", "s", "f", "observe", "/r", "0.1.0")
    )
    assert limit - 12 < max(len(line) for line in printed.splitlines()) <= limit


def test_check_mode_and_diff_judge_the_same(replay):
    plain = replay().report()
    checked = replay("--check", "--diff")
    assert checked.rc == 0, checked.output
    for name in ("verdicts", "findings", "summary"):
        assert checked.report()[name] == plain[name]


def test_colour_only_where_it_is_wanted(replay, operator):
    done = replay(env={"ANSIBLE_NOCOLOR": "0", "ANSIBLE_FORCE_COLOR": "1"})
    assert "\x1b[" in done.stdout
    assert "\x1b[31m words" not in done.stdout
    assert "\x1b" not in (operator.folder / "report" / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        ("empty", "empty"),
        ("broken", "m1.json"),
        ("other", "m1.json"),
        (["evidence", "nowhere"], "nowhere"),
    ],
)
def test_evidence_that_cannot_be_read_is_an_input_error_that_names_it(
    replay, operator, evidence, sentence
):
    (operator.folder / "empty").mkdir()
    operator.write("broken/m1.json", "{")
    operator.write("other/m1.json", '{"some": "thing"}')
    done = replay(evidence=evidence)
    assert done.rc == 2, done.output
    assert sentence in done.output
    assert "Traceback" not in done.output
    assert not (operator.folder / "report" / "report.json").exists()


def test_replay_needs_evidence(operator):
    done = operator.run("replay", inventory=None)
    assert done.rc == 2, done.output
    assert (
        "kubemend_evidence is not set; replay needs the path of a folder of evidence or of a"
        " bundle." in done.words
    )


def test_folders_of_several_controllers_are_merged(replay, operator):
    operator.record("more", "m2")
    done = replay(evidence=["evidence", str(operator.folder / "more")])
    assert done.rc == 0, done.output
    assert [item["host"] for item in done.report()["hosts"]] == ["m1", "m2"]


def test_the_folder_of_a_report_can_be_replayed_into_itself(replay, operator):
    operator.record("report/evidence", "m1")
    done = replay(evidence="report")
    assert done.rc == 0, done.output
    assert (operator.folder / "report" / "evidence" / "m1.json").exists()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {
                "status": "ok",
                "data": {
                    "namespace": "n",
                    "name": "a",
                    "uid": "u",
                    "events": [
                        {
                            "kind": "Pod",
                            "name": "a",
                            "uid": "u",
                            "reason": "Killing",
                            "message": "words\x1b[2J",
                            "first": "2026-11-21T20:01:02Z",
                        }
                    ],
                },
            },
            "Timeline of n/a (uid u), a pod which is no more",
        ),
        (
            {"status": "absent", "data": None, "error": "the API knows no pod n/a"},
            "note: no timeline of a pod: the API knows no pod n/a",
        ),
    ],
)
def test_the_pod_in_question_gets_its_timeline_or_a_sentence(replay, operator, record, said):
    document = {
        "schema": "kubemend.evidence/1",
        "kind": "cluster",
        "host": "m1",
        "cluster_key": "c" * 64,
        "status": "ok",
        "reason": "",
        "collected_at": "2026-11-21T20:02:00Z",
        "collectors": {"pod": record},
    }
    operator.write("evidence/m1.cluster.json", json.dumps(document))
    done = replay()
    assert done.rc == 0, done.output
    assert said in done.words
    assert "\x1b" not in done.stdout
    told = done.report()["timelines"]
    assert [item["pod"] for item in told] == (["n/a"] if record["status"] == "ok" else [])
    assert (done.report()["notices"] != []) is (record["status"] == "absent")


def test_a_run_compared_with_the_one_before_in_the_same_folder(replay, operator):
    operator.record("evidence", "m2")
    first = replay("-e", "kubemend_fail_on=warning")
    before = first.report()
    assert first.rc == 2
    assert before["compared"] is None
    operator.record("evidence", "m3")
    (operator.folder / "evidence" / "m2.json").unlink()
    again = replay(
        "-e", "kubemend_fail_on=critical", "-e", f"kubemend_compare_to={operator.folder / 'report'}"
    )
    assert again.rc == 0, again.output
    told = again.report()["compared"]
    assert (told["run_id"], told["new"], told["unchanged"], told["gone"]) == (
        before["run_id"],
        *(
            [item["id"] for item in again.report()["findings"] if item["host"] == host]
            for host in ("m3", "m1")
        ),
        [],
    )
    assert [(item["host"], item["reason"]) for item in told["not_judged"]] == [
        ("m2", "KM901 was not judged")
    ]
    assert "new: KM901 m3" in again.stdout
    assert "not judged now: KM901 m2" in again.stdout
    kept = operator.folder / "report" / "compared.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    operator.cwd = operator.folder / "report"  # a relative path, and now nothing is new
    third = replay(
        "-e",
        "kubemend_fail_on=unknown",
        "-e",
        "kubemend_compare_to=report.json",
        evidence=str(operator.folder / "evidence"),
    )
    assert third.rc == 0, third.output
    assert third.report()["compared"]["new"] == [], third.output
    assert third.report()["exit_reason"] == "ok", third.output
    fourth = replay(
        "-e",
        "kubemend_fail_on=warning",
        "-e",
        f"kubemend_compare_to={operator.write('report/report.json', json.dumps(_without(third)))}",
        evidence=str(operator.folder / "evidence"),
    )
    assert fourth.rc == 2, fourth.output
    assert "is reached by what is new since run" in fourth.words, fourth.output
    plain = replay(evidence=str(operator.folder / "evidence"))
    assert plain.report()["compared"] is None
    assert not kept.exists()


def _without(done):
    return {**done.report(), "findings": []}


WAIVER = """- code: KM901
  hosts: m1
  reason: its disk is exchanged
  owner: platform
  expires: {}
"""


def test_a_waived_finding_does_not_reach_the_threshold_and_stays_in_every_report(replay, operator):
    operator.write("w.yml", WAIVER.format("2999-12-31"))
    done = replay(
        "-e", "kubemend_fail_on=warning", "-e", "kubemend_waivers=w.yml",
        "-e", "kubemend_report_formats=terminal,html,junit",
    )  # fmt: skip
    assert done.rc == 0, done.output
    report = done.report()
    assert [item["waived"]["reason"] for item in report["findings"]] == ["its disk is exchanged"]
    assert "WAIVED WARNING KM901 m1" in done.stdout
    folder = operator.folder / "report"
    assert "<skipped message=" in (folder / "junit.xml").read_text(encoding="utf-8")
    assert "waived until 2999-12-31" in (folder / "report.html").read_text(encoding="utf-8")
    kept = folder / "used-waivers.yml"
    assert kept.read_text(encoding="utf-8") == WAIVER.format("2999-12-31")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = replay("-e", "kubemend_fail_on=warning")
    assert again.rc == 2, again.output
    assert not kept.exists()


def test_an_expired_waiver_has_no_effect_and_is_named(replay, operator):
    operator.write("w.yml", WAIVER.format("2026-01-31"))
    done = replay("-e", "kubemend_fail_on=warning", "-e", "kubemend_waivers=w.yml")
    assert done.rc == 2, done.output
    assert done.report()["exit_reason"] == "threshold"
    assert [item["expires"] for item in done.report()["waivers_expired"]] == ["2026-01-31"]
    assert "line 1 of kubemend_waivers" in done.words
    assert "expired on 2026-01-31" in done.words


def test_a_mistake_in_the_waivers_ends_the_run_before_it_begins(replay, operator):
    operator.write("w.yml", WAIVER.format("2026-02-30"))
    done = replay("-e", "kubemend_waivers=w.yml")
    assert done.rc == 2, done.output
    assert f"kubemend_waivers is {operator.folder}/w.yml, line 5: expires is" in done.words
    assert not (operator.folder / "report" / "report.json").exists()


def test_nothing_is_planned_for_a_waived_finding(replay, operator):
    waiver = WAIVER.replace("KM901", "KM1*").replace("m1", '"*"').format("2999-12-31")
    operator.write("w.yml", waiver)
    evidence = str(RECORDED / "v1.36.3-two-leaders" / "evidence")
    plain = replay(evidence=evidence).report()
    codes = {step["code"] for step in plain["plan"]}
    assert any(code.startswith("KM1") for code in codes)
    waived = replay("-e", "kubemend_waivers=w.yml", evidence=evidence).report()
    assert {step["code"] for step in waived["plan"]} == {
        code for code in codes if not code.startswith("KM1")
    }
    found = [item for item in waived["findings"] if item["code"].startswith("KM1")]
    assert found
    assert all("waived" in item and item["command"] is None for item in found)
    assert len(waived["findings"]) == len(plain["findings"])


@pytest.mark.parametrize("severity", [{"KM901": "critical"}, "{KM901: critical}"])
def test_the_operators_severity_counts_and_is_told(replay, severity):
    variables = json.dumps({"kubemend_severity": severity})
    done = replay("-e", "kubemend_fail_on=critical", "-e", variables)
    assert done.rc == 2, done.output
    assert [item["severity"] for item in done.report()["findings"]] == ["critical"]
    assert "kubemend_severity makes KM901 critical." in done.words


def test_a_bundle_has_the_exit_code_of_the_run_but_no_waivers(replay, operator):
    operator.write("w.yml", WAIVER.format("2999-12-31") + WAIVER.format("2026-01-31"))
    done = replay(
        "-e", "kubemend_fail_on=warning", "-e", "kubemend_waivers=w.yml",
        "-e", "kubemend_bundle=case.tar.gz", "-e", "kubemend_bundle_anonymous=true",
    )  # fmt: skip
    assert done.rc == 0, done.output
    with tarfile.open(operator.folder / "case.tar.gz") as bundle:
        names = bundle.getnames()
        texts = {name: bundle.extractfile(name).read().decode() for name in names}
    report = json.loads(texts["report.json"])
    assert report["exit_code"] == 0
    assert not any("waived" in item for item in report["findings"])
    assert not any("platform" in content for content in texts.values())


@pytest.mark.parametrize("playbook", ["remediate", "node_unreachable"])
def test_waivers_count_in_check_mode_and_in_the_playbooks_of_symptoms(operator, playbook):
    operator.write("w.yml", WAIVER.replace("m1", '"*"').format("2999-12-31"))
    done = operator.run(
        playbook, "--check", "-e", "kubemend_max_risk=2", "-e", "kubemend_fail_on=warning",
        "-e", "kubemend_waivers=w.yml", "--limit", "m1",
    )  # fmt: skip
    assert done.rc == 0, done.output
    found = done.report()["findings"]
    assert [item["code"] for item in found if "waived" in item] == ["KM901"]


def test_github_prints_annotations_behind_a_fenced_report(replay, operator):
    operator.record("evidence", "m1", reason="::error::a node said this")
    done = replay("-e", "kubemend_report_formats=terminal,github,sarif")
    assert done.rc == 0, done.output
    lines = done.stdout.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("::stop-commands::"))
    word = lines[begin].removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", word)
    end = lines.index(f"::{word}::")
    assert any("KM901 m1" in line for line in lines[begin:end])
    outside = [line for line in (*lines[:begin], *lines[end + 1 :]) if "::" in line]
    assert [line.partition(" ")[0] for line in outside] == ["::warning"]
    document = json.loads((operator.folder / "report" / "report.sarif").read_text())
    assert [item["ruleId"] for item in document["runs"][0]["results"]] == ["KM901"]
    plain = replay()
    assert "::stop-commands" not in plain.stdout
    assert not (operator.folder / "report" / "report.sarif").exists()


def test_old_runs_go_and_one_with_a_foreign_file_is_told(replay, operator):
    runs = operator.folder / "home" / ".kubemend" / "runs"
    for second in range(4):
        operator.write(f"home/.kubemend/runs/2020010{second + 1}T000000Z-1a2b3c/report.json", "{}")
    foreign = operator.write("home/.kubemend/runs/20200101T000000Z-1a2b3c/notes.txt", "mine")
    done = replay("-e", "kubemend_keep_runs=2", report_dir=None)
    assert done.rc == 0, done.output
    names = sorted(path.name for path in runs.iterdir())
    assert names[:2] == ["20200101T000000Z-1a2b3c", "20200104T000000Z-1a2b3c"]
    assert len(names) == 3
    assert foreign.read_text(encoding="utf-8") == "mine"
    assert "kubemend_keep_runs leaves" in done.words


def test_an_audit_says_since_when_and_a_replay_does_not(operator, replay):
    first = operator.run("audit", "--limit", "m1").report()
    (item,) = (one for one in first["findings"] if one["host"] == "m1")
    assert item["since"] == first["started"]
    second = operator.run("audit", "--limit", "m1").report()  # in the same folder
    assert second["run_id"] != first["run_id"]
    (item,) = (one for one in second["findings"] if one["host"] == "m1")
    assert item["since"] == first["started"]
    assert not any("since" in one for one in replay().report()["findings"])
