# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time at which a raised log level goes back, by the file of its service."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import verbosity_expiry

RUN = "20261121T090000Z-1a2b3c"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(verbosity_expiry, "boot", lambda: ("this boot", 1000.0))
    (tmp_path / "levels").mkdir()
    return tmp_path


def expire(folder: Path, **more: Any) -> str:
    record = dict({"boot": "this boot", "uptime": 1060.0, "complete": True}, **more)
    (folder / "levels" / (RUN + ".json")).write_text(json.dumps(record))
    return str(folder)


def test_the_seconds_that_remain(folder: Path) -> None:
    assert verbosity_expiry.remaining(RUN, expire(folder)) == (60.0, True)
    assert verbosity_expiry.remaining(RUN, expire(folder, complete=False)) == (60.0, False)


def test_none_remain_after_another_start_of_the_node(folder: Path) -> None:
    assert verbosity_expiry.remaining(RUN, expire(folder, boot="another")) == (0, True)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"boot": "x", "uptime": "y"}'])
def test_a_file_that_cannot_be_read_leaves_no_time(folder: Path, text: str) -> None:
    (folder / "levels" / (RUN + ".json")).write_text(text)
    assert verbosity_expiry.remaining(RUN, str(folder)) == (0, True)


@pytest.mark.parametrize(
    ("more", "patience", "overdue"),
    [
        ({"uptime": 1060.0}, 30, False),
        ({"uptime": 971.0}, 30, False),
        ({"uptime": 969.0}, 30, True),
        ({"boot": "another"}, 30, True),
        ({"boot": "another"}, 2000, False),  # the node has started a moment ago
    ],
)
def test_a_level_is_overdue(
    folder: Path, more: "dict[str, Any]", patience: int, overdue: bool
) -> None:
    assert verbosity_expiry.overdue(RUN, expire(folder, **more), patience) is overdue


def test_without_a_service_it_is_overdue_and_has_no_time(folder: Path) -> None:
    assert verbosity_expiry.overdue(RUN, str(folder), 30) is True
    assert verbosity_expiry.until(RUN, str(folder)) is None


def test_the_time_is_of_this_nodes_clock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbosity_expiry.time, "time", lambda: 0)
    assert verbosity_expiry.until(RUN, expire(folder)) == "1970-01-01T00:01:00Z"
    assert verbosity_expiry.until(RUN, expire(folder, uptime=1.0)) == "1970-01-01T00:00:00Z"


def test_a_start_of_the_node_has_a_name_of_its_own() -> None:
    name, uptime = verbosity_expiry.boot()
    assert re.match(r"[0-9a-f-]{36}/\d+\Z", name)
    assert uptime > 0
