# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of configuration files, of which nothing is trusted."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    file_record,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import conf_lines
from tests.unit.support.file_evidence import files


@pytest.mark.parametrize("records", [None, "text", b"x", {"path": "/a"}, 7, [None, "x", {}]])
def test_what_is_no_list_of_records_is_none(records: Any) -> None:
    assert conf_lines.usable(files(records)) == []


def test_the_first_record_of_a_path_counts() -> None:
    first, again = {"path": "/a", "text": "1"}, {"path": "/a", "text": "2"}
    records = files([first, again, {"path": "relative"}, {"path": 7}])
    assert conf_lines.usable(records) == [file_record.FileRecord("/a", text="1")]
    assert conf_lines.usable([file_record.FileRecord("/" + "a" * conf_lines.MAX_PATH)]) == []


@pytest.mark.parametrize(
    ("link", "target"),
    [("../b", "/etc/b"), ("/dev/null", "/dev/null"), ("c", "/etc/d/c"), ("", None), (7, None)],
)
def test_where_a_link_leads(link: Any, target: str | None) -> None:
    record = {"path": "/etc/d/a", "kind": "symlink", "link": link}
    (linked, plain) = files([record, {**record, "kind": "file"}])
    assert conf_lines.target(linked) == target
    assert conf_lines.target(plain) is None


def test_only_a_line_feed_ends_a_line() -> None:
    lines = list(conf_lines.lines(file_record.FileRecord(text="a\x0cb\u2028c\nd")))
    assert lines == [(1, "a\x0cb\u2028c"), (2, "d")]
    assert list(conf_lines.lines(file_record.FileRecord(text=None))) == []


def test_lines_behind_the_most_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf_lines, "MAX_LINES", 2)
    record = file_record.FileRecord(text="a\nb\nc\n")
    assert list(conf_lines.lines(record)) == [(1, "a"), (2, "b")]
    assert conf_lines.why_unread(record) == "more than 2 lines"
    assert conf_lines.why_unread(file_record.FileRecord(text="a\nb\n")) is None


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"text": "a", "truncated": True}, "cut off"),
        ({"error": "missing"}, None),
        ({"kind": "directory"}, None),
        ({"path": "/a", "kind": "symlink", "link": "/dev/null"}, None),
        ({"error": "denied"}, "denied"),
        ({"truncated": True}, "too long"),
        ({"binary": True}, "no text"),
        ({}, "no regular file"),
    ],
)
def test_why_not_all_is_known(record: dict[str, Any], why: str | None) -> None:
    (file,) = files([record])
    assert conf_lines.why_unread(file) == why
