# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the public cases of tests/cases well formed, and their answers without harm."""

from __future__ import annotations

import copy
from functools import cache

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import boot_firewall
from tests.cases import build, case_file, clock, first_try, judge, paths
from tests.cases.cluster import BuildError, Evidence
from tests.unit.support.causes_first import causes_left

NAMES = case_file.names()
SWAP = "020-swap-is-on"


# Three tests ask for the answer to each case: as many answers as cases are kept.
@cache
def answer(name: str) -> judge.Answer:
    return judge.answer(case_file.read(name))


def with_changes(name: str, **changes: object) -> dict:
    return {**copy.deepcopy(case_file.read(name)), **changes}


def test_there_are_cases():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_well_formed(name):
    assert case_file.problems(case_file.read(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_step_does_harm_even_with_consent_to_everything(name):
    found = answer(name)
    assert [step.remedy for step in judge.forbidden(case_file.read(name), found)] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_step_treats_a_consequence_while_its_cause_stays(name):
    found = answer(name)
    assert causes_left(found.findings, found.steps) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_solved_case_finds_exactly_what_is_expected(name):
    case = case_file.read(name)
    if case.get("solved"):
        found = answer(name)
        assert judge.missing(case, found) == []
        assert judge.others(case, found) == []


def test_every_case_is_a_thread_that_a_batch_took_once():
    taken = case_file.taken()
    cases = {case_file.read(name)["links"][0]: name for name in NAMES}
    assert cases == taken
    links = [link for name in NAMES for link in case_file.read(name)["links"]]
    assert case_file.doubles(links) == []


@pytest.mark.parametrize("batch", list(case_file.batches()), ids=lambda batch: batch["batch"])
def test_a_batch_tells_what_became_of_every_thread(batch):
    reasons = [thread.get("left") for thread in batch["threads"] if "taken" not in thread]
    assert set(reasons) <= set(batch["reasons"])
    texts = [query["text"] for query in [*batch["queries"], *batch.get("added", ())]]
    assert case_file.doubles(texts) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"release": "1.30"}, "release 1.30 is none such as v1.30.4"),
        ({"links": ["github.com/a/b"]}, "links are addresses that begin with https://"),
        ({"what": "One sentence."}, "what has two to five sentences"),
        ({"colour": "red"}, "colour is no key of a case"),
        ({"first_try": {"codes": []}}, "first_try is written by the tool"),
        ({"evidence": [{"set": {"w1.a": "8.8.8.8"}}]}, "8.8.8.8 is an address of others"),
    ],
)
def test_a_wrong_form_is_named(change, problem):
    assert problem in case_file.problems(with_changes(SWAP, **change))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"codes": ["KM999"]}, "there is no fault KM999"),
        ({"not_planned": ["explode"]}, "no step is explode"),
        ({"codes": []}, "without a code, cause_in_text has the words that name the cause"),
    ],
)
def test_a_wrong_expectation_is_named(change, problem):
    expected = {**case_file.read(SWAP)["expected"], **change}
    assert problem in case_file.problems(with_changes(SWAP, expected=expected))


def test_a_missing_key_is_named():
    case = with_changes(SWAP)
    del case["cause"]
    assert case_file.problems(case) == ["cause is missing"]


@pytest.mark.parametrize(
    "step",
    [
        {"explode": {}},
        {"set": {"w9.kubelet.argv": []}},
        {"kubelet_down": {"host": "w1", "colour": "red"}},
        {"replace": {"w1.kubelet.config.text": ["no such text", ""]}},
        {"set": {}, "drop": []},
    ],
)
def test_a_step_that_does_not_fit_is_refused(step):
    with pytest.raises((BuildError, paths.PathError)):
        build.build(with_changes(SWAP, evidence=[step]))


@pytest.mark.parametrize("name", NAMES)
def test_a_case_builds_and_is_decoded(name):
    assert list(build.build(case_file.read(name)).documents())


def built(*steps: dict) -> Evidence:
    evidence = build.build(with_changes(SWAP, evidence=list(steps)))
    assert list(evidence.documents())
    return evidence


@pytest.mark.parametrize(
    ("step", "short"),
    [
        ({"free": 5}, ["nodefs.available", "imagefs.available"]),
        ({"inodes_free": 900}, ["nodefs.inodesFree", "imagefs.inodesFree"]),
        ({"free": 50, "pressed": None}, []),
    ],
)
def test_a_built_disk_is_short_as_the_collector_finds_it(step, short):
    evidence = built({"disk": {"host": "w1", **step}})
    assert evidence.data("w1", "pressure")["used_up"] == short
    pressed = [row["type"] for row in evidence.node("w1")["conditions"]]
    assert ("DiskPressure" in pressed) is ("pressed" not in step)


def test_a_build_of_k3s_has_no_process_but_its_own():
    evidence = built({"k3s": {"servers": ["m1"]}})
    assert evidence.data("m1", "instances")["processes"] == []
    assert evidence.data("m1", "kubelet")["unit"]["name"] == "k3s.service"
    assert evidence.data("w1", "kubelet")["unit"]["name"] == "k3s-agent.service"
    assert evidence.record("m1", "etcd")["status"] == "absent"


@pytest.mark.parametrize(
    ("kind", "told"), [("crio", "crio.sock"), ("cri-docker", "cri-dockerd.sock"), ("docker", None)]
)
def test_a_build_with_another_runtime_tells_the_kubelet(kind, told):
    evidence = built({"runtime": {"kind": kind}})
    argv = evidence.data("w1", "kubelet")["argv"]
    assert told is None or any(told in word for word in argv)
    assert not any("containerd.sock" in word for word in argv)


def test_a_build_keeps_the_journal_of_the_unit_that_runs_the_kubelet():
    line = "k3s[7]: Node password rejected"
    down = {"kubelet_down": {"host": "w1"}}
    evidence = built({"k3s": {}}, down, {"journal": {"host": "w1", "lines": [line]}})
    assert evidence.data("w1", "kubelet_end")["lines"][0].endswith(line)


def test_a_build_without_an_installation_has_no_kubelet_and_no_api():
    evidence = built({"not_installed": {}}, {"no_api": {}}, {"firewalld": {"hosts": ["m1"]}})
    assert evidence.record("m1", "kubelet")["status"] == "absent"
    assert {document["status"] for document in evidence.api} == {"error"}
    assert evidence.data("m1", "boot")["firewall"]["firewalld"]["active"] is True


def test_a_build_with_selinux_has_what_it_denied():
    denied = ["avc:  denied  { read } for  pid=1"] * 30
    evidence = built({"selinux": {"hosts": ["w1"], "denied": denied}})
    found = evidence.data("w1", "boot")
    assert found["selinux"]["enforce"] == "1"
    assert found["denials"]["count"] == 30
    assert found["denials"]["lines"][-1].startswith("type=AVC msg=audit(")
    assert len(found["denials"]["lines"]) == boot_firewall.MAX_LINES


def test_a_build_with_a_full_etcd_has_its_alarm_and_old_leases():
    evidence = built({"etcd_size": {"size": 2058, "in_use": 19, "full": ["m1"], "stopped": 600}})
    found = evidence.data("m2", "etcd")
    alarmed = {row["id"]: row["name"] for row in found["members"]}
    assert [alarmed[row["member_id"]] for row in found["alarms"]] == ["m1"]
    old = clock.iso(evidence.now - 600)
    assert {item["lease"] for item in evidence.data("api", "nodes")["items"]} == {old}
    locks = evidence.data("api", "locks")["servers"]
    assert {row["renew_time"] for server in locks for row in server["objects"]} == {old}


@pytest.mark.parametrize(("error", "status"), [(None, "ok"), ("No route to host", "error")])
def test_a_build_with_a_load_balancer_names_its_address(error, status):
    evidence = built({"load_balancer": {"address": "192.0.2.10", "error": error}})
    kubelet, way = evidence.data("w1", "kubelet"), evidence.data("w1", "api_way")
    assert "server: https://192.0.2.10:6443" in kubelet["kubeconfig"]["text"]
    assert (way["address"], way["error"]) == ("192.0.2.10", error)
    assert evidence.api[0]["status"] == status


@pytest.mark.parametrize("running", [True, False])
def test_a_build_gives_a_component_other_flags(running):
    evidence = built(
        {"manifest_copy": {"host": "m1", "component": "kube-apiserver", "name": "old.yaml"}},
        {
            "flags": {
                "host": "m1",
                "component": "kube-apiserver",
                "add": ["--audit-log-path=-"],
                "remove": ["--authorization-mode="],
                "running": running,
            }
        },
    )
    texts = {row["name"]: row["text"] for row in evidence.data("m1", "manifests")["files"]}
    assert "- --audit-log-path=-\n" in texts["kube-apiserver.yaml"]
    assert "--authorization-mode" not in texts["kube-apiserver.yaml"]
    assert "--authorization-mode" in texts["old.yaml"]
    processes = evidence.data("m1", "instances")["processes"]
    argv = next(row["argv"] for row in processes if row["component"] == "kube-apiserver")
    assert ("--audit-log-path=-" in argv) is running


def test_a_build_without_a_runtime_has_what_systemd_said_of_it():
    said = "systemd[1]: crio.service: Failed with result 'exit-code'."
    evidence = built(
        {"runtime": {"kind": "crio", "hosts": ["w1"]}},
        {"runtime_down": {"host": "w1"}},
        {"journal": {"host": "w1", "unit": "crio.service", "lines": ["crio[7]: no", said]}},
    )
    found = evidence.data("w1", "runtime")
    assert (found["socket"], found["units"][0]["active_state"]) == ("missing", "failed")
    assert found["units"][0]["said"][0].endswith("no")
    assert evidence.data("w1", "unit_start")["units"][0]["said"][0].endswith(said)


def test_a_build_of_a_boot_starts_everything_after_it():
    evidence = built({"rebooted": {"hosts": ["m1"], "ago": 300}})
    system = evidence.data("m1", "system")
    started = [row["started_at"] for row in evidence.data("m1", "instances")["processes"]]
    assert system["uptime_s"] == 300
    assert all(evidence.now - 300 < at < evidence.now for at in started)
    assert evidence.node("m1")["boot_id"] == system["boot_id"]


def test_a_base_of_another_release_is_refused():
    with pytest.raises(BuildError, match="does not fit"):
        build.build(with_changes(SWAP, base="v1.36"))


def test_evidence_of_another_type_is_refused():
    evidence = build.build(with_changes(SWAP, evidence=[{"set": {"w1.kubelet.argv": "text"}}]))
    with pytest.raises(BuildError, match=r"w1\.kubelet: .*argv"):
        list(evidence.documents())


def test_an_unknown_recording_is_refused():
    with pytest.raises(BuildError, match="there is no recording"):
        Evidence("v1.0.0-none")


@pytest.mark.parametrize("name", ["v1.36", "v1.18"])
def test_a_base_is_quiet(name):
    release = f"{name}.1"
    result = judge.answer(with_changes(SWAP, base=name, release=release, evidence=[]))
    assert {item.severity for item in result.findings} <= {"info"}
    assert result.planned == []


def test_what_is_planned_and_forbidden_is_harmful():
    case = case_file.read(SWAP)
    case["expected"]["not_planned"] = [step.remedy for step in answer(SWAP).planned]
    assert judge.forbidden(case, answer(SWAP))
    assert judge.grade(case, answer(SWAP)) == "harmful"


def test_a_finding_that_nobody_expects_is_blamed():
    case = case_file.read(SWAP)
    case["expected"].update(codes=["KM101"], consequences=[])
    assert judge.missing(case, answer(SWAP)) == ["KM101"]
    assert judge.others(case, answer(SWAP))
    assert judge.grade(case, answer(SWAP)) == "wrong"


def test_words_that_no_finding_quotes_are_missing():
    case = case_file.read(SWAP)
    case["expected"]["cause_in_text"] = ["zram0"]
    assert judge.missing(case, answer(SWAP)) == ["'zram0'"]


def test_a_quiet_cluster_is_silent():
    case = with_changes(SWAP, evidence=[])
    assert judge.grade(case, judge.answer(case)) == "silent"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    text = case_file.path_of(SWAP).read_text(encoding="utf-8").partition(first_try.HEADER)[0]
    (tmp_path / f"{SWAP}.yml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(case_file, "FOLDER", tmp_path)
    return tmp_path


def test_a_first_try_is_recorded_once(folder):
    first_try.record(1)
    found = case_file.read(SWAP)["first_try"]
    assert [line.split()[0] for line in found["found"]] == [i.code for i in answer(SWAP).new]
    with pytest.raises(first_try.RecordError, match="is recorded"):
        first_try.record(1)


def test_a_grade_is_given_once_and_is_not_better_than_the_answer(folder):
    path = folder / f"{SWAP}.yml"
    worse = path.read_text(encoding="utf-8").replace("codes: [KM504]", "codes: [KM101]")
    path.write_text(worse, encoding="utf-8")
    with pytest.raises(first_try.RecordError, match="not recorded"):
        first_try.grade(1, {SWAP: ["wrong", "It blames another fault."]})
    first_try.record(1)
    with pytest.raises(first_try.RecordError, match="not what the program tells"):
        first_try.grade(1, {SWAP: ["right", "It is."]})
    first_try.grade(1, {SWAP: ["wrong", "It blames another fault."]})
    assert case_file.read(SWAP)["first_try"]["grade"] == "wrong"
    with pytest.raises(first_try.RecordError, match="is graded"):
        first_try.grade(1, {SWAP: ["wrong", "It blames another fault."]})
