# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend's own directory on a node: its files appear whole, and one process uses it."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import storage


@pytest.fixture
def folder(tmp_path: Path) -> "Iterator[int]":
    with storage.descriptor(storage.private_folder(str(tmp_path / "own"))) as fd:
        yield fd


def test_the_folder_and_its_files_are_private(tmp_path: Path, folder: int) -> None:
    storage.put("a.json", {"x": 1}, folder)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "own" / "a.json").stat().st_mode & 0o777 == 0o600
    assert storage.load("a.json", folder) == {"x": 1}
    assert os.listdir(folder) == ["a.json"]


def test_a_folder_that_others_may_read_becomes_private_again(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o755)
    os.close(storage.private_folder(str(tmp_path / "own")))
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own").chmod(0o770)
    with pytest.raises(storage.ChangeError, match="others may write to it"):
        storage.private_folder(str(tmp_path / "own"))


def test_no_link_is_followed_to_a_folder_within(tmp_path: Path, folder: int) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "own" / "journal").symlink_to(tmp_path / "else")
    with pytest.raises(OSError, match="journal"):
        storage.private_folder("journal", folder)


def test_a_prepared_record_has_no_name_until_it_is_published(folder: int) -> None:
    storage.put("end.json", {"result": "old"}, folder)
    storage.prepare("end.json", {"result": "new"}, folder)
    assert storage.load("end.json", folder) == {"result": "old"}
    storage.publish("end.json", folder)
    assert storage.load("end.json", folder) == {"result": "new"}
    assert os.listdir(folder) == ["end.json"]


def test_a_new_file_replaces_none(folder: int) -> None:
    storage.write_new("former", b"old", folder)
    with pytest.raises(FileExistsError):
        storage.write_new("former", b"new", folder)
    assert storage.read_bytes("former", folder, 10) == b"old"


@pytest.mark.parametrize(
    ("text", "reason"), [("[]", "no record"), ("{", "Expecting"), ("\xff", "ascii")]
)
def test_what_is_no_record_is_not_read(tmp_path: Path, folder: int, text: str, reason: str) -> None:
    (tmp_path / "own" / "a.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=reason):
        storage.load("a.json", folder)


def test_what_is_larger_or_no_file_is_not_read(tmp_path: Path, folder: int) -> None:
    storage.write_new("a", b"12345", folder)
    assert storage.read_bytes("a", folder, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        storage.read_bytes("a", folder, 4)
    os.mkfifo(str(tmp_path / "own" / "fifo"))
    with pytest.raises(ValueError, match="no regular file"):
        storage.read_bytes("fifo", folder, 5)


def test_to_remove_nothing_is_no_error(folder: int) -> None:
    storage.write_new("a", b"", folder)
    assert storage.unlink("a", folder)
    assert not storage.unlink("a", folder)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    root = str(tmp_path / "own")
    assert not storage.busy(root)
    with storage.exclusive(root):
        assert storage.busy(root)
        again = storage.exclusive(root, wait=0.1)
        with pytest.raises(storage.ChangeError, match="another process changes this node"), again:
            pass
    assert not storage.busy(root)
    with (tmp_path / "own" / storage.FLOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert storage.busy(root)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "make room there"),
        (errno.EROFS, "mount it writable"),
        (errno.EPERM, "lsattr"),
        (errno.ENETDOWN, "fix that and run again"),
    ],
)
def test_an_error_names_the_way_out(number: int, words: str) -> None:
    def write() -> None:
        with storage.told("x was not written"):
            raise OSError(number, os.strerror(number))

    with pytest.raises(storage.ChangeError, match=r"^x was not written: ") as error:
        write()
    assert words in str(error.value)
    assert not error.value.changed


def test_a_reason_is_one_line_and_bounded() -> None:
    text = str(storage.ChangeError("a\nb" + "c" * 5000))
    assert "\n" not in text
    assert len(text) <= 1010
