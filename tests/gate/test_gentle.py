# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A command that gets less CPU than the others."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from tests.gate import gentle


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    gentle._folder.cache_clear()
    monkeypatch.setattr(gentle, "WEIGHTS", ((tmp_path / "none", "x", "1"),))
    yield
    gentle._folder.cache_clear()


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_control_groups_it_is_nice():
    command = gentle.gentle(["cat", "a b"])
    assert command[0] == "nice"
    assert command[-2:] == ["cat", "a b"]


def test_it_enters_its_group_before_it_runs(monkeypatch, tmp_path):
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.procs").write_text("")
    monkeypatch.setattr(gentle, "WEIGHTS", ((root, "weight", "7"),))
    told = run(gentle.gentle(["sh", "-c", 'echo "$$ $1"', "x", "a b"]))
    (folder,) = (path for path in root.iterdir() if path.is_dir())
    process, words = told.split(" ", 1)
    assert (folder / "weight").read_text() == "7"
    assert words == "a b\n"
    assert (folder / "cgroup.procs").read_text() == process + "\n"


def test_a_group_that_cannot_be_made_is_done_without(monkeypatch):
    monkeypatch.setattr(gentle, "WEIGHTS", ((pathlib.Path("/proc/1"), "x", "1"),))
    assert gentle.gentle(["true"])[0] == "nice"
