# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the log of a component lies, and how it is read."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    sources as log_sources,
)
from tests.unit.support.fake_logs import Node, a_node, cri, texts
from tests.unit.support.waiting import until


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from a_node(monkeypatch)


def test_a_large_file_is_begun_near_the_window(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sources, "BLOCK", 4096)
    lines = [
        cri(node.now - 19999.5 + index, f"line {index} " + "x" * (index % 90))
        for index in range(19990)
    ]
    path = node.log("0.log", "".join(lines))
    with Path(path).open("rb") as file:
        start = log_sources.begin_of(file.fileno(), path.stat().st_size, node.now - 101)
    left = path.read_bytes()[start:].splitlines()
    assert 90 < len(left) < 300
    assert int(left[0].split()[4]) <= 19898
    assert [text.split(" ")[1] for text in texts(node.read())] == [
        str(index) for index in range(19900, 19990)
    ]
    with Path(path).open("rb") as file:
        assert log_sources.begin_of(file.fileno(), path.stat().st_size, 0) == 0
    path.write_bytes(b"no time at all\n" * 5000)
    with Path(path).open("rb") as file:
        assert log_sources.begin_of(file.fileno(), path.stat().st_size, node.now) == 0


def test_a_file_that_is_rotated_between_listing_and_reading(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = node.log("0.log", cri(node.now - 10, "before"))
    listed = log_sources.log_files

    def rotating(folder):
        found = listed(folder)
        if not (path.parent / "0.log.20261121-200102").exists():
            path.rename(path.parent / "0.log.20261121-200102")
            node.log("0.log", cri(time.time() + 1, "after"))
        return found

    monkeypatch.setattr(log_sources, "log_files", rotating)
    assert texts(node.read()) == ["before"]


@pytest.mark.parametrize(
    ("first", "started", "restart", "expected"),
    [
        (None, None, 0, None),
        (50.0, 10.0, 0, None),
        (200.0, 10.0, 0, "rotation took it"),
        (200.0, 195.0, 0, "begins at 1970-01-01T00:03:20.000000Z, within"),
        (200.0, None, 3, "what the 3 containers before it logged is gone"),
        (200.0, None, 0, "within the window"),
    ],
)
def test_where_a_log_begins(first, started, restart, expected) -> None:
    said = log_sources.beginning(first, 100.0, started, restart)
    assert said is None if expected is None else expected in said


def test_a_read_that_never_returns(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.log("0.log.20260101-000000", cri(node.now - 10, "x"))
    path = node.log("0.log", cri(node.now - 9, "y"))
    opened = log_sources.files.opened
    monkeypatch.setattr(
        log_sources.files,
        "opened",
        lambda name: time.sleep(6000) if name == str(path) else opened(name),
    )
    begin = time.monotonic()
    found = node.read(timeout=6)
    assert time.monotonic() - begin < 100
    assert texts(found) == ["x"]
    assert [(source["status"], source["source"]) for source in found["sources"]] == [
        ("ok", f"{path}.20260101-000000"),
        ("timeout", str(path)),
    ]
    ended: list[int] = []
    # other tests may have left children too
    assert until(lambda: ended.append(os.waitpid(-1, os.WNOHANG)[1]) or 9 in ended), (
        "the reader does not live on"
    )


def test_a_reader_that_breaks(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sources, "pods", lambda *arguments: 1 / 0)
    found = node.read()
    assert [(source["status"], source["notes"]) for source in found["sources"]] == [
        ("error", ["its reader ended without an answer"])
    ]
