# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle of what was recorded.

Whole, private, without secrets, and of the same verdicts, with names or without.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tarfile
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle import writer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    evidence as anonymize_evidence,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    archive,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Finding
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    diff as report_diff,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run

FOLDER = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
CASES = sorted(path.name for path in FOLDER.iterdir())
SECRET = "Zx9QmplantedT7w2"


def case_of(folder, *, stream=None, part=False, **more):
    def read():
        return evidence_sources.stream([folder])

    judged = fault_engine.evaluate(read(), deep=True, part=part)
    run = Run(
        run_id="20261121T090000Z-1a2b3c",
        started="2026-11-21T09:00:00Z",
        finished="2026-11-21T09:00:09Z",
        mode="observe",
        report_dir="/home/ops/r",
        tool_version=evidence_document.TOOL_VERSION,
        notices=("m1 says hello",),
        **more,
    )
    return writer.Case(stream or read, judged, run, None, True, part, "2.20.0", (0, "ok"))


def rows(paths):
    judged = fault_engine.evaluate(evidence_sources.stream(paths), deep=True)
    return [
        [
            item.code,
            item.cluster,
            item.component,
            item.verdict,
            [(lack.collector, lack.status) for lack in item.missing],
        ]
        for item in judged.verdicts
    ] + [[item.code, item.severity, item.component, len(item.evidence)] for item in judged.findings]


def contents(path):
    with tarfile.open(path) as held:
        return {name: json.loads(held.extractfile(name).read()) for name in held.getnames()}


# Each takes a second or two: every fourth incident, half of them with names and half without; three
# that stand for the rest both ways.
BOTH = [
    case
    for case in CASES
    if case.endswith(("1.36.3-two-leaders", "hostname-changed", "kubelet-swap"))
]


@pytest.mark.parametrize(
    ("case", "without"),
    [(case, number % 2 == 0) for number, case in enumerate(CASES[::4])]
    + [(case, without) for case in BOTH for without in (True, False)],
)
def test_a_replay_of_the_bundle_gives_the_same_verdicts(case, without, tmp_path):
    folder, target = str(FOLDER / case / "evidence"), str(tmp_path / "case.tar.gz")
    writer.write(target, case_of(folder), without)
    assert rows([target]) == rows([folder])
    held = contents(target)
    assert (held["bundle.json"]["schema"], held["bundle.json"]["anonymous"]) == (
        "kubemend.bundle/1",
        without,
    )
    assert held["report.json"]["schema"] == "kubemend.report/1"
    assert [item["code"] for item in held["report.json"]["findings"]] == [
        item.code for item in case_of(folder).judged.findings
    ]


def test_it_is_for_its_owner_only_and_the_same_each_time_and_replaces_nothing(tmp_path):
    case = case_of(str(FOLDER / "v1.36.3-two-leaders" / "evidence"))
    first, second = tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"
    writer.write(str(first), case, False)
    writer.write(str(second), case, False)
    assert first.read_bytes() == second.read_bytes()
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    with tarfile.open(first) as held:
        assert held.getnames() == ["bundle.json", "report.json", *sorted(held.getnames()[2:])]
        assert {
            (one.mode, one.uid, one.gid, one.uname, one.mtime, one.isreg()) for one in held
        } == {(0o600, 0, 0, "", 0, True)}
    with pytest.raises(writer.BundleError, match="came to be while the run was going on"):
        writer.write(str(first), case, False)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "b.tar.gz"]


def test_two_bundles_do_not_tell_that_they_are_of_the_same_hosts(tmp_path):
    case = case_of(str(FOLDER / "v1.36.3-two-leaders" / "evidence"))
    found = []
    for name in ("a", "b"):
        writer.write(str(tmp_path / name), case, True)
        document = next(evidence_sources.stream([tmp_path / name]))
        found.append(
            document["collectors"]["system"]["data"]["addresses"]
            if "system" in document["collectors"]
            else document["collectors"]["nodes"]["data"]["items"][0]["addresses"][0]["address"]
        )
    assert found[0] != found[1]


def test_planted_secrets_and_names_are_in_no_member(tmp_path):
    folder = tmp_path / "evidence"
    for document in evidence_sources.stream([str(FOLDER / "v1.36.3-two-leaders" / "evidence")]):
        kubelet = document["collectors"].get("kubelet", {}).get("data")
        if kubelet:
            kubelet["argv"] += [
                f"--token={SECRET}",
                "--password",
                SECRET,
                f"--proxy=https://bob:{SECRET}@proxy.acme.com",
                "--kubeconfig=/home/alice/.kube/config",
            ]
            document["reason"] = (
                f"Authorization: Bearer {SECRET}, for user alice from 10.89.0.11, host"
                f" {document['host']}.acme.com"
            )
            for file in (
                document["collectors"]["manifests"]["data"]["files"]
                if document["collectors"]["manifests"].get("data")
                else ()
            ):
                file["text"] += f"\n# token: {SECRET}\n# env: [{{name: DB, value: {SECRET}}}]\n"
        evidence_document.write(
            document, folder, ".cluster.json" if document.get("kind") == "cluster" else ".json"
        )
    for name, without in (("plain", False), ("anonymous", True)):
        writer.write(str(tmp_path / name), case_of(str(folder)), without)
        told = json.dumps(contents(tmp_path / name))
        assert SECRET not in told
        assert "ops/r" not in told
        assert ("alice" in told, "acme" in told, "10.89.0.1" in told, "m1 says hello" in told) == (
            not without,
        ) * 4


@pytest.mark.parametrize("without", [False, True])
def test_what_a_run_captured_and_what_it_is_compared_with_stay_with_the_operator(without, tmp_path):
    """A capture has a log's own words and paths of the operator; both name hosts."""
    folder = str(FOLDER / "v1.36.3-two-leaders" / "evidence")
    earlier = Finding(
        "KM101", "critical", None, "m2", None, f"leads on m2.acme.com, password={SECRET}"
    )
    compared = report_diff.Comparison(
        "r",
        "f",
        gone=(earlier,),
        not_judged=((earlier, "m2.acme.com was not asked"),),
        counts={"critical": 0, "warning": 0, "unknown": 0},
    )
    captured = {
        "host": "m1",
        "node": "m1.acme.com",
        "message": f"0/4 nodes are available: --token={SECRET}",
        "files": {"dump": "/home/ops/r/capture/m1.txt"},
    }
    case = case_of(folder, captures=(captured,), compared=compared, fail_on="critical")
    writer.write(str(tmp_path / "a"), case, without)
    held = contents(tmp_path / "a")
    told = json.dumps(held)
    assert SECRET not in told
    assert "acme" not in told
    assert "/home/ops" not in told
    assert held["report.json"]["compared"] is None
    assert "scheduler_captures" not in held["report.json"]
    # as the run ended, by what is new
    assert (held["report.json"]["exit_code"], held["report.json"]["exit_reason"]) == (0, "ok")
    if without:
        assert re.search(r"\bm[0-9]\b", told) is None


def test_replacements_that_change_a_verdict_are_made_again(tmp_path, monkeypatch):
    replaced, anonymizers = anonymize_evidence.Anonymizer.document, []

    def first_one_fails(self, given):
        if self not in anonymizers:
            anonymizers.append(self)
        if len(anonymizers) == 1:
            return {**given, "collectors": {}}
        return replaced(self, given)

    monkeypatch.setattr(anonymize_evidence.Anonymizer, "document", first_one_fails)
    folder, target = str(FOLDER / "v1.36.3-node-down" / "evidence"), str(tmp_path / "case.tar.gz")
    writer.write(target, case_of(folder), True)
    assert rows([target]) == rows([folder])
    assert len(anonymizers) > 1


def test_evidence_that_would_say_something_else_makes_no_bundle(tmp_path, monkeypatch):
    folder = str(FOLDER / "v1.36.3-two-leaders" / "evidence")
    monkeypatch.setattr(
        anonymize_evidence.Anonymizer, "document", lambda self, given: {**given, "collectors": {}}
    )
    with pytest.raises(
        writer.BundleError,
        match=r"would not give the same verdicts \(KM101.*without kubemend_bundle_anonymous",
    ) as caught:
        writer.write(str(tmp_path / "a"), case_of(folder), True)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(members, file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "packed", full)
    with pytest.raises(OSError, match="No space"):
        writer.write(
            str(tmp_path / "a"), case_of(str(FOLDER / "v1.36.3-healthy" / "evidence")), False
        )
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def none(*_args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    writer.write(str(tmp_path / "a"), case_of(str(FOLDER / "v1.36.3-healthy" / "evidence")), False)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_objections(tmp_path):
    (tmp_path / "there").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert "exists already; it is not overwritten" in writer.objection(str(tmp_path / "there"))
    assert "exists already" in writer.objection(str(tmp_path / "dangling"))
    assert "exists already" in writer.objection(str(tmp_path))
    assert "is no folder" in writer.objection(str(tmp_path / "there" / "a"))
    assert "is no folder" in writer.objection(str(tmp_path / "none" / "a"))
    assert writer.objection(str(tmp_path / "a")) is None


def test_the_command_that_reads_it():
    case = case_of(str(FOLDER / "v1.36.3-healthy" / "evidence"))
    assert (
        writer.command("/a b", case)
        == "ansible-playbook kubemend.remediation.replay -e kubemend_evidence='/a b' -e"
        " kubemend_deep=true"
    )


def test_a_slice_is_read_again_as_a_slice(tmp_path):
    case = case_of(str(FOLDER / "v1.36.3-healthy" / "evidence"), part=True)
    assert writer.command("/a", case).endswith(" -e kubemend_deep=true -e kubemend_slice=true")
    writer.write(str(tmp_path / "a"), case, False)
    first = contents(tmp_path / "a")["bundle.json"]
    assert first["part"] is True
    assert "-e kubemend_slice=true" in first["replay"]
