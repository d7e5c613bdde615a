# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free where logs lie: of the folder, or of the nearest one above it that is there."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import space


def told(**more: Any) -> Any:
    return SimpleNamespace(
        **{
            "f_bavail": 10,
            "f_bfree": 99,
            "f_frsize": 4096,
            "f_bsize": 1,
            "f_blocks": 100,
            "f_files": 50,
            "f_favail": 7,
            "f_ffree": 9,
            **more,
        }
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    paths: list[str] = []

    def statvfs(path: str) -> Any:
        paths.append(path)
        return told()

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    return paths


def one(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> list[dict[str, Any]]:
    monkeypatch.setattr(space, "FOLDERS", tuple(str(path) for path in paths))
    context = base.Context({}, [], {})
    found = space.collect(context)["folders"]
    assert context.source == "statvfs"
    return found


def test_what_users_may_still_write_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[str]
) -> None:
    """Neither blocks kept for root, nor the size of a transfer."""
    assert one(monkeypatch, tmp_path) == [
        {
            "path": str(tmp_path),
            "free_bytes": 40960,
            "total_bytes": 409600,
            "free_inodes": 7,
            "error": None,
        }
    ]


def test_a_folder_that_is_missing_counts_as_the_nearest_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    found = one(
        monkeypatch,
        tmp_path / "a" / "b",
        tmp_path / "file" / "x",
        tmp_path / "file",
        Path("/nowhere-kubemend/x"),
    )
    assert asked == [str(tmp_path)] * 3 + ["/"]
    assert next(item["path"] for item in found) == str(tmp_path / "a" / "b")


def test_some_filesystems_count_no_inodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(space.os, "statvfs", lambda path: told(f_files=0, f_favail=0))
    assert one(monkeypatch, tmp_path)[0]["free_inodes"] is None


def test_one_that_cannot_be_asked_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def statvfs(path: str) -> Any:
        if path == str(tmp_path):
            raise OSError(5, "Input/output error")
        return told()

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    first, second = one(monkeypatch, tmp_path, Path("/"))
    assert first["free_bytes"] is None
    assert "Input/output error" in first["error"]
    assert second["free_bytes"] == 40960


def test_the_real_thing() -> None:
    for item in space.collect(base.Context({}, [], {}))["folders"]:
        assert 0 <= item["free_bytes"] <= item["total_bytes"]
        assert os.path.isabs(item["path"])  # noqa: PTH117 - a path as the node gives it
        assert item["error"] is None
