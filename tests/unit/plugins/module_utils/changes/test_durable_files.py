# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of kubemend's directory: files appear whole, and one process at a time writes."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import durable_files
from ansible_collections.kubemend.remediation.plugins.module_utils.state import storage


@pytest.fixture
def folder(tmp_path: Path) -> "Iterator[int]":
    with storage.descriptor(durable_files.private_folder(str(tmp_path / "own"))) as fd:
        yield fd


def test_the_folder_and_its_files_are_private(tmp_path: Path, folder: int) -> None:
    durable_files.put("a.json", {"x": 1}, folder)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "own" / "a.json").stat().st_mode & 0o777 == 0o600
    assert storage.load("a.json", folder) == {"x": 1}
    assert os.listdir(folder) == ["a.json"]


def test_a_folder_that_others_may_read_becomes_private_again(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o755)
    os.close(durable_files.private_folder(str(tmp_path / "own")))
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own").chmod(0o770)
    with pytest.raises(storage.ChangeError, match="others may write to it"):
        durable_files.private_folder(str(tmp_path / "own"))


def test_no_link_is_followed_to_a_folder_within(tmp_path: Path, folder: int) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "own" / "journal").symlink_to(tmp_path / "else")
    with pytest.raises(OSError, match="journal"):
        durable_files.private_folder("journal", folder)


def test_a_prepared_record_has_no_name_until_it_is_published(folder: int) -> None:
    durable_files.put("end.json", {"result": "old"}, folder)
    durable_files.prepare("end.json", {"result": "new"}, folder)
    assert storage.load("end.json", folder) == {"result": "old"}
    durable_files.publish("end.json", folder)
    assert storage.load("end.json", folder) == {"result": "new"}
    assert os.listdir(folder) == ["end.json"]


def test_a_new_file_replaces_none(folder: int) -> None:
    durable_files.write_new("former", b"old", folder)
    with pytest.raises(FileExistsError):
        durable_files.write_new("former", b"new", folder)
    assert storage.read_bytes("former", folder, 10) == b"old"


def test_to_remove_nothing_is_no_error(folder: int) -> None:
    durable_files.write_new("a", b"", folder)
    assert durable_files.unlink("a", folder)
    assert not durable_files.unlink("a", folder)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    root = str(tmp_path / "own")
    assert not storage.busy(root)
    with durable_files.exclusive(root):
        assert storage.busy(root)
        again = durable_files.exclusive(root, wait=0.1)
        with pytest.raises(storage.ChangeError, match="another process changes this node"), again:
            pass
    assert not storage.busy(root)
    with (tmp_path / "own" / storage.FLOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert storage.busy(root)
