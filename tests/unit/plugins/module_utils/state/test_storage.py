# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend's own directory on a node: its files appear whole, and one process uses it."""

import errno
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


@pytest.mark.parametrize(
    ("text", "reason"), [("[]", "no record"), ("{", "Expecting"), ("\xff", "ascii")]
)
def test_what_is_no_record_is_not_read(tmp_path: Path, folder: int, text: str, reason: str) -> None:
    (tmp_path / "own" / "a.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=reason):
        storage.load("a.json", folder)


def test_what_is_larger_or_no_file_is_not_read(tmp_path: Path, folder: int) -> None:
    durable_files.write_new("a", b"12345", folder)
    assert storage.read_bytes("a", folder, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        storage.read_bytes("a", folder, 4)
    os.mkfifo(str(tmp_path / "own" / "fifo"))
    with pytest.raises(ValueError, match="no regular file"):
        storage.read_bytes("fifo", folder, 5)


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
        with storage.change_errors("x was not written"):
            raise OSError(number, os.strerror(number))

    with pytest.raises(storage.ChangeError, match=r"^x was not written: ") as error:
        write()
    assert words in str(error.value)
    assert not error.value.changed


def test_a_reason_is_one_line_and_bounded() -> None:
    text = str(storage.ChangeError("a\nb" + "c" * 5000))
    assert "\n" not in text
    assert len(text) <= 1010
