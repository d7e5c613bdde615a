# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend_keep_runs: only whole runs of kubemend go, never this run, never anything else."""

from __future__ import annotations

import hashlib
import json
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock,
    report_dir,
    retention,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import (
    Settings,
    SettingsError,
    check,
)

IDS = [f"2026112{day}T090000Z-1a2b3c" for day in range(1, 6)]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".kubemend" / "runs"


def make(root, name, **owner):
    """Make the folder of a run with every kind of file that a run writes."""
    folder = root / name
    for path in (
        *retention.FILES,
        "evidence/m1.json",
        "evidence/m1.cluster.json",
        "evidence-after/m1.json",
        "locks/m1.json",
        "revert/m1.json",
        "capture/scheduler.json",
        "capture/logs/m1.json",
        "capture/m1.scheduler-dump.txt",
        "capture/lines.txt",
        "revert/m1.begun",
        "patches/a.yaml",
        "evidence/.writing-x1",
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x", encoding="utf-8")
    digest = {"a.yaml": hashlib.sha256(b"x").hexdigest()}
    (folder / "patches" / report_dir.WRITTEN).write_text(json.dumps(digest), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps({"run_id": name, **owner}), encoding="utf-8")
    if not owner:
        (folder / "run.json").unlink()
    return folder


def names(root):
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize(
    ("keep", "stay"), [("all", IDS), (9, IDS), (5, IDS), (2, IDS[3:]), ("1", IDS[4:])]
)
def test_the_newest_runs_stay(runs, keep, stay):
    for name in IDS:
        make(runs, name)
    assert retention.clean(keep, str(runs / IDS[4])) == []
    assert names(runs) == stay


def test_this_run_and_what_it_reads_stay_however_old(runs, tmp_path):
    for name in IDS:
        make(runs, name)
    linked = tmp_path / "case"
    linked.symlink_to(runs / IDS[1])
    used = [str(runs / IDS[2] / "evidence"), str(linked), str(tmp_path / "none.tar.gz")]
    assert retention.clean(1, str(runs / IDS[0]), used) == []
    assert names(runs) == [IDS[0], IDS[1], IDS[2], IDS[4]]


def test_what_is_no_folder_of_a_run_is_never_looked_at(runs, tmp_path):
    for name in IDS:
        make(runs, name)
    others = ["notes", "20261121T090000Z", "20261121T090000Z-1a2b3c.old", "20261121T090000Z-XYZXYZ"]
    for name in others:
        make(runs, name)
    elsewhere = make(tmp_path, "elsewhere")
    (runs / "20200101T000000Z-aaaaaa").symlink_to(elsewhere)
    (runs / "20200101T000000Z-bbbbbb").write_text("a file", encoding="utf-8")
    retention.clean(1, str(runs / IDS[4]))
    links = ["20200101T000000Z-aaaaaa", "20200101T000000Z-bbbbbb"]
    assert names(runs) == sorted([*others, *links, IDS[4]])
    assert (elsewhere / "report.json").exists()


@pytest.mark.parametrize(
    "foreign",
    [
        "notes.txt",
        "evidence/notes.txt",
        "revert/notes.txt",
        "capture/notes.txt",
        "patches/mine.yaml",
        "capture/deep/er.json",
        "mine/report.json",
        ".ssh/key",
    ],
)
def test_a_foreign_file_keeps_the_whole_run_and_is_told(runs, foreign):
    folder = make(runs, IDS[0])
    (folder / foreign).parent.mkdir(parents=True, exist_ok=True)
    (folder / foreign).write_text("mine", encoding="utf-8")
    before = sorted(folder.rglob("*"))
    assert retention.clean(1, str(make(runs, IDS[1]))) == [str(folder)]
    assert sorted(folder.rglob("*")) == before


def test_an_empty_folder_of_another_name_is_foreign_too(runs):
    folder = make(runs, IDS[0])
    (folder / "mine").mkdir()
    assert retention.clean(1, str(make(runs, IDS[1]))) == [str(folder)]
    assert (folder / "report.json").exists()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder link", "changed patch"])
def test_links_pipes_and_changed_patches_are_foreign(runs, tmp_path, kind):
    folder, target = make(runs, IDS[0]), tmp_path / "target"
    target.mkdir()
    (target / "kept.json").write_text("mine", encoding="utf-8")
    if kind == "link":
        (folder / "report.html").unlink()
        (folder / "report.html").symlink_to(target / "kept.json")
    elif kind == "fifo":
        (folder / "report.html").unlink()
        os.mkfifo(folder / "report.html")
    elif kind == "folder link":
        (folder / "locks" / "m1.json").unlink()
        (folder / "locks").rmdir()
        (folder / "locks").symlink_to(target)
    else:
        (folder / "patches" / "a.yaml").write_text("changed", encoding="utf-8")
    assert retention.clean(1, str(make(runs, IDS[1]))) == [str(folder)]
    assert (folder / "report.json").exists()
    assert (target / "kept.json").read_text(encoding="utf-8") == "mine"


def test_a_run_that_is_still_at_work_stays(runs):
    me = cluster_lock.controller(os.getppid())
    active = make(runs, IDS[0], **me)
    make(runs, IDS[1], **{**me, "pid": me["pid"], "started": 1})  # its process has ended
    other = {"boot_id": "of another machine", "pid": 1, "started": 1}
    young, old = make(runs, IDS[2], **other), make(runs, IDS[3], **other)
    long_ago = time.time() - 2 * retention.IN_USE_SECONDS
    os.utime(old, (long_ago, long_ago))
    retention.clean(1, str(make(runs, IDS[4])))
    assert names(runs) == [active.name, young.name, IDS[4]]


def test_without_any_run_nothing_happens(runs):
    assert retention.clean(1, str(runs / IDS[0])) == []
    assert not runs.exists()


def test_every_file_of_an_earlier_run_that_a_new_one_removes_is_known():
    kinds = {pattern.partition("/")[0] for pattern in report_dir.STALE if "/" in pattern}
    assert kinds <= retention.FOLDERS


@pytest.mark.parametrize(("given", "expected"), [(None, "all"), ("all", "all"), ("30", 30), (1, 1)])
def test_the_number_is_read_as_any_other(given, expected):
    assert check({"kubemend_keep_runs": given}).keep_runs == expected


@pytest.mark.parametrize("given", [0, -1, "none", "", "ALL", True, 1.5, []])
def test_a_number_below_one_is_refused(given):
    with pytest.raises(SettingsError, match=r"kubemend_keep_runs is .*all, or a whole number"):
        check({"kubemend_keep_runs": given})


def test_a_new_run_is_a_run(runs):
    made = report_dir.ReportFolder(Settings(check({}).values)).make(collects=True)
    assert names(runs) == [made["run_id"]]
    assert retention.remove(runs / made["run_id"])
