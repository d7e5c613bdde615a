# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend_bundle from playbook to playbook.

An audit writes one, replay reads it and may write another.
"""

from __future__ import annotations

import gzip
import json
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "recorded"


def told(report, *, names=True):
    found = [
        [
            item["code"],
            item["component"],
            item["verdict"],
            [lack["collector"] for lack in item["missing"]],
        ]
        for item in report["verdicts"]
    ]
    found += [[item["code"], item["severity"], item["component"]] for item in report["findings"]]
    return (
        found,
        [item["host"] for item in report["hosts"]] if names else len(report["hosts"]),
        [len(item["diff"]) > 0 for item in report["plan"]],
    )


def members(path):
    with tarfile.open(path) as held:
        return {name: held.extractfile(name).read().decode() for name in held.getnames()}


@pytest.mark.parametrize("playbook", ["audit", "duplicate_pods"])
def test_an_audit_is_bundled_and_replayed(operator, playbook):
    bundle = operator.folder / "case.tar.gz"
    done = operator.run(playbook, "-e", "kubemend_bundle=case.tar.gz")
    assert done.rc == 0, done.output
    assert f"kubemend: bundle: {bundle} (with the names and addresses of your hosts)" in done.words
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    faults = json.loads(members(bundle)["bundle.json"])["faults"]
    chosen = ("-e", f"kubemend_faults={','.join(faults)}") if faults else ()
    again = operator.run(
        "replay", "-e", f"kubemend_evidence={bundle}", *chosen, inventory=None, report_dir="again"
    )
    assert again.rc == 0, again.output
    assert told(json.loads((operator.folder / "again" / "report.json").read_text())) == told(
        done.report()
    )
    assert {path.name for path in (operator.folder / "again").iterdir()} == {
        "report.json",
        "report.txt",
        "report.html",
    }


def test_one_judgement_in_every_format_and_its_bundle_say_the_same(operator):
    """The same of a real cluster: tests/lab/tests/test_modes.py."""
    from tests import report_formats  # not before the collection can be imported

    wanted = {
        "kubemend_evidence": str(RECORDED / "v1.36.3-two-leaders"),
        "kubemend_report_formats": list(report_formats.FORMATS),
        "kubemend_bundle": "case.tar.gz",
    }
    done = operator.run("replay", "-e", json.dumps(wanted), inventory=None)
    assert done.rc == 0, done.output
    said = report_formats.faces(operator.folder / "report", done.stdout)
    assert len(said) == len(report_formats.FORMATS)
    assert ("KM101", "m2") in said["json"]
    assert said == dict.fromkeys(said, said["json"])
    again = operator.run(
        "replay", "-e", "kubemend_evidence=case.tar.gz", inventory=None, report_dir="again"
    )
    assert again.rc == 0, again.output
    assert told(json.loads((operator.folder / "again" / "report.json").read_text())) == told(
        done.report()
    )


def test_the_bundle_of_a_slice_is_replayed_as_a_slice(operator):
    first = operator.run("audit", "-e", "kubemend_slice=true", "-e", "kubemend_bundle=case.tar.gz")
    assert first.rc == 0, first.output
    assert "-e kubemend_slice=true" in first.words, first.output
    again = operator.run(
        "replay",
        "-e",
        "kubemend_evidence=case.tar.gz",
        "-e",
        "kubemend_slice=true",
        inventory=None,
        report_dir="again",
    )
    assert again.rc == 0, again.output
    report = json.loads((operator.folder / "again" / "report.json").read_text())
    assert told(report) == told(first.report())
    assert (
        {item["code"] for item in report["not_judged"] if item["reason"] == "slice"}
        == {item["code"] for item in first.report()["not_judged"] if item["reason"] == "slice"}
        != set()
    )


def test_without_names_and_addresses_and_on_from_bundle_to_bundle(operator):
    shutil.copytree(RECORDED / "v1.36.3-two-leaders" / "evidence", operator.folder / "evidence")
    plain, without = operator.folder / "plain.tar.gz", operator.folder / "without.tar.gz"
    first = operator.run(
        "replay",
        "-e",
        "kubemend_evidence=evidence",
        "-e",
        f"kubemend_bundle={plain}",
        inventory=None,
    )
    assert first.rc == 0, first.output
    second = operator.run(
        "replay",
        "-e",
        f"kubemend_evidence={plain}",
        "-e",
        f"kubemend_bundle={without}",
        "-e",
        "kubemend_bundle_anonymous=true",
        inventory=None,
        report_dir="second",
    )
    assert second.rc == 0, second.output
    assert "without names of hosts and people and without addresses" in second.words
    third = operator.run(
        "replay", "-e", f"kubemend_evidence={without}", inventory=None, report_dir="third"
    )
    reports = [
        json.loads((operator.folder / name / "report.json").read_text())
        for name in ("report", "second", "third")
    ]
    assert told(reports[0]) == told(reports[1]), third.output
    assert told(reports[0], names=False) == told(reports[2], names=False), third.output
    held = members(without)
    assert not any(
        "10.89." in text or '"m2"' in text or "etcd-m2" in text for text in held.values()
    )
    assert sorted(held) == sorted(
        ["bundle.json", "report.json"]
        + [f"evidence/host-{n}.json" for n in range(1, 5)]
        + ["evidence/host-1.cluster.json"]
    )


def test_nothing_is_asked_when_the_bundle_cannot_be_written(operator):
    operator.write("case.tar.gz", "mine")
    for path, sentence in (
        ("case.tar.gz", "exists already; it is not overwritten"),
        ("none/case.tar.gz", "is no folder; make it"),
    ):
        done = operator.run("audit", "-e", f"kubemend_bundle={path}")
        assert done.rc == 2, done.output
        assert sentence in done.words, done.output
        assert "Collect evidence" not in done.stdout
        assert not (operator.folder / "report").exists()
    assert (operator.folder / "case.tar.gz").read_text() == "mine"


def test_a_bundle_that_somebody_made_is_refused_by_one_sentence(operator):
    (operator.folder / "case.tar.gz").write_bytes(gzip.compress(b"x" * 4096))
    done = operator.run("replay", "-e", "kubemend_evidence=case.tar.gz", inventory=None)
    assert done.rc == 2, done.output
    assert "case.tar.gz: it is no tar archive, or damaged." in done.words
    assert '"exit_reason": "input"' in done.words
    assert list((operator.folder / "report").iterdir()) == []


def test_where_nothing_is_judged_a_bundle_is_none(operator):
    done = operator.run("revert", "-e", "kubemend_bundle=case.tar.gz")
    assert "kubemend_bundle has no effect here" in done.words, done.output
    assert not (operator.folder / "case.tar.gz").exists()
