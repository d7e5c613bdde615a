# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An interrupted run goes on where it stopped, on the same bytes only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.gate import counts, machine, progress, runner, usage

KEY = {"commit": "c1", "dirty": False, "tree": "", "full": False, "stages": ["a", "b"]}
LINE = counts.Line("a", counts.Counts(passed=3, skipped=["why"]), 1.5)


@pytest.fixture(autouse=True)
def output(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "OUTPUT", tmp_path)


def test_the_next_run_has_what_passed(tmp_path):
    progress.Progress(KEY, tmp_path / "p").passed(LINE)
    again = progress.Progress(dict(KEY), tmp_path / "p")
    assert again.resumed
    assert again.lines["a"] == LINE


@pytest.mark.parametrize(
    "change",
    [
        {"commit": "c2"},
        {"tree": "x", "dirty": True},
        {"full": True},
        {"stages": ["a"]},
        {"commit": "none"},
    ],
)
def test_other_bytes_or_another_wish_begin_anew(tmp_path, change):
    first = {**KEY, "commit": change.get("commit", "c1")} if change == {"commit": "none"} else KEY
    progress.Progress(first, tmp_path / "p").passed(LINE)
    again = progress.Progress({**KEY, **change}, tmp_path / "p")
    assert not again.resumed
    assert not again.lines
    assert not progress.Progress({**KEY, "commit": "none"}, tmp_path / "p").resumed


def test_a_run_that_ended_leaves_nothing(tmp_path):
    record = progress.Progress(KEY, tmp_path / "p")
    record.passed(LINE)
    record.end()
    assert not progress.Progress(KEY, tmp_path / "p").resumed


def test_the_half_line_of_a_killed_run_counts_for_nothing(tmp_path):
    progress.Progress(KEY, tmp_path / "p").passed(LINE)
    path = tmp_path / "p" / "run.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1][:9])
    assert set(progress.Progress(KEY, tmp_path / "p").lines) == {"a"}
    ids = tmp_path / "p" / "a.passed"
    ids.write_text("one\ntw")
    assert progress.tests_passed(ids) == ["one"]


def test_a_stage_that_passed_is_not_run_again_and_one_that_failed_is(tmp_path):
    ran = []

    def work(context):
        ran.append(context.name)
        return counts.Counts(failed=["no"] if context.name == "b" and len(ran) < 3 else [])

    stages = [runner.Stage("a", work, first=True), runner.Stage("b", work)]
    record = progress.Progress(KEY, tmp_path / "p")
    record.end = lambda: None  # as if the run were killed at its end
    runner.Gate(stages, record=record).run()
    again = runner.Gate(stages, record=progress.Progress(KEY, tmp_path / "p")).run()
    assert sorted(ran) == ["a", "b", "b"]
    assert [line.counts.failed for line in again] == [[], []]
    assert not (tmp_path / "p").exists()


TESTS = """
import os
def test_one(): open(os.environ["SEEN"], "a").write("one ")
def test_two():
    open(os.environ["SEEN"], "a").write("two ")
    assert os.environ["WELL"] == "1"
"""


def run_pytest(folder, well):
    passed, before = folder / "x.passed", folder / "x.before"
    before.write_text(passed.read_text() if passed.exists() else "")
    # In a process of xdist the test would be taken for one of its tests.
    around = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    env = {
        **around,
        "PYTHONPATH": str(machine.ROOT),
        "SEEN": str(folder / "seen"),
        "WELL": well,
        "KUBEMEND_GATE_PASSED": str(passed),
        "KUBEMEND_GATE_BEFORE": str(before),
    }
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.gate.resume",
            "test_it.py",
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_pytest_leaves_out_what_passed(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    assert run_pytest(tmp_path, "0").returncode == 1
    assert run_pytest(tmp_path, "1").returncode == 0
    assert (tmp_path / "seen").read_text() == "one two two "
    assert run_pytest(tmp_path, "1").returncode == counts.NO_TESTS


def test_idle_share_and_slowest_tests(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 0 10 60 20 0 0 0 0 0\ncpu0 1\n")
    assert usage.ticks(stat) == (80, 100)
    assert usage.idle_share((80, 100), (130, 200)) == 0.5
    assert usage.idle_share(None, (1, 2)) is None
    assert usage.ticks(tmp_path / "none") is None
    record = tmp_path / "a.xml"
    record.write_text(
        '<testsuites><testsuite><testcase classname="m" name="s" time="2"/>'
        '<testcase classname="m" name="q" time="0.1"/></testsuite></testsuites>'
    )
    assert usage.slowest([record, tmp_path / "none.xml"], 1) == [(2.0, "m::s")]
