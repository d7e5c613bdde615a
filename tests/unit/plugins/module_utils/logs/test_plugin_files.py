# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in the file in which a program logs beside its container."""

import calendar

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import plugin_files

NOW = calendar.timegm((2026, 11, 24, 7, 30, 0))
ZAP = '{{"level":"{0}","ts":"2026-11-24T07:{1}:00.123Z","caller":"main.go:28","msg":"{2}"}}'


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return what is read of a file with these lines."""

    def of(*lines):
        path = tmp_path / "own.log"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        monkeypatch.setitem(plugin_files.PATHS, "aws-node", str(path))
        return plugin_files.errors("aws-node", NOW)

    return of


def test_the_last_errors_each_once_oldest_first(written):
    lines = [ZAP.format("error", 10 + index, f"e{index % 5}") for index in range(12)]
    record = written(*lines, ZAP.format("info", 29, "later"), lines[-1])
    assert [line.rpartition(":")[2] for line in record["lines"]] == ['"e4"}', '"e0"}', '"e1"}']
    assert record["error"] is None


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        (ZAP.format("error", "29", "x"), True),
        ("2026-11-24T07:20:00.001Z|00012|dpif|ERR|failed to open vport: No such device", True),
        ("2026-11-24T07:20:00.001Z|00012|dpif|WARN|failed to open vport", False),
        (ZAP.format("warn", "29", "x"), False),
        (ZAP.format("info", "29", 'says \\"level\\":\\"error\\"'), False),
        (ZAP.format("error", "29", "x").replace("24T07", "24T05"), False),
        (ZAP.format("error", "29", "x").replace("24T07", "25T07"), False),
        (ZAP.format("error", "29", "x").replace("11-24", "13-44"), False),
        ('{"level":"error","msg":"without a time"}', False),
        ("", False),
    ],
)
def test_which_lines_are_errors_of_late(written, line, is_kept):
    assert len(written(line)["lines"]) == is_kept


def test_no_secret_and_no_long_line_leaves_the_node(written):
    text = "token=abcdefghijklmnopqrstuvwxyz " + "x" * 5000
    (line,) = written(ZAP.format("error", "29", text))["lines"]
    assert "abcdefghijklmnopqrstuvwxyz" not in line
    assert len(line) <= plugin_files.LONGEST


def test_a_file_that_is_not_there_and_a_program_without_one(tmp_path, monkeypatch):
    monkeypatch.setitem(plugin_files.PATHS, "aws-node", str(tmp_path / "gone.log"))
    assert plugin_files.errors("aws-node", NOW)["error"]
    assert plugin_files.errors("kube-proxy", NOW) is None


def test_of_a_long_file_only_the_end_is_read(written):
    old = ZAP.format("error", "20", "old")
    filler = [ZAP.format("info", "25", "y" * 500)] * (plugin_files.FILE_BYTES // 500)
    assert written(old, *filler)["lines"] == []
