# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of the node as the write sees it, and the copy that keeps what belongs to it."""

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import file_target, storage
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError


def found(path: Path, root: Path) -> Any:
    place = file_target.Place(str(path), str(root))
    with storage.descriptor(place.opened()) as folder:
        return file_target.look(place, folder)


@pytest.mark.parametrize("path", ["", "a", "/", "/a/../b", "/a//b", "/a/", "/a\0b", None, 7])
def test_only_a_plain_absolute_path_is_a_place(tmp_path: Path, path: Any) -> None:
    with pytest.raises(ChangeError, match="only a plain absolute path"):
        file_target.Place(path, str(tmp_path))


def test_nothing_of_the_tool_itself_is_a_place(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    for path in (tmp_path / "own", tmp_path / "own" / "journal", tmp_path / "link" / "journal"):
        with pytest.raises(ChangeError, match="belongs to kubemend itself"):
            file_target.Place(str(path), str(tmp_path / "own"))
    assert file_target.Place(str(tmp_path / "owner"), str(tmp_path / "own")).name == "owner"


def test_a_link_leads_to_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("x")
    (tmp_path / "link").symlink_to("real/a")
    place = file_target.Place(str(tmp_path / "link"), str(tmp_path / "own"))
    assert (place.linked, place.real, place.path) == (
        True,
        str(tmp_path / "real" / "a"),
        str(tmp_path / "link"),
    )
    assert found(tmp_path / "link", tmp_path / "own").data == b"x"


def test_where_nothing_is_there_is_no_file(tmp_path: Path) -> None:
    assert found(tmp_path / "a", tmp_path / "own") is None


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(str(tmp_path / "fifo"))
    for name, kind in (("folder", "a folder"), ("fifo", "a FIFO")):
        with pytest.raises(ChangeError, match="no regular file but " + kind):
            found(tmp_path / name, tmp_path / "own")


def test_a_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_target, "MAX_SIZE", 4)
    (tmp_path / "a").write_text("1234")
    assert found(tmp_path / "a", tmp_path / "own").data == b"1234"
    (tmp_path / "a").write_text("12345")
    with pytest.raises(ChangeError, match="larger than 4 bytes"):
        found(tmp_path / "a", tmp_path / "own")


def test_a_file_is_the_same_until_anything_of_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    before = found(path, tmp_path / "own")
    assert before.same(found(path, tmp_path / "own"))
    assert not before.same(None)
    path.chmod(0o611)
    assert not before.same(found(path, tmp_path / "own"))
    other = found(path, tmp_path / "own")
    os.utime(str(path), (1, 1))
    assert not other.same(found(path, tmp_path / "own"))
