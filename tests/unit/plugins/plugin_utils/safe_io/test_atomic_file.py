# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report is the former or the new one, whenever one looks and however the writer ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.safe_io import (
    atomic_file,
)


def test_whoever_reads_the_former_one_reads_it_to_its_end(tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("former")
    path.chmod(0o644)
    with Path(path).open(encoding="utf-8") as reader:
        atomic_file.replace(path, ["new", "er\ud800"])
        assert reader.read() == "former"
    assert path.read_text() == "newer\\ud800"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_one_that_is_not_written_to_its_end_leaves_the_former(tmp_path, error):
    def pieces():
        yield "new"
        raise error

    path = tmp_path / "report.txt"
    path.write_text("former")
    with pytest.raises(type(error)):
        atomic_file.replace(path, pieces())
    assert path.read_text() == "former"
    assert list(tmp_path.iterdir()) == [path]


def test_what_lies_there_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "report.txt").symlink_to(tmp_path / "theirs")
    atomic_file.replace(tmp_path / "report.txt", ["ours"])
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert (tmp_path / "report.txt").read_text() == "ours"


def test_one_that_is_killed_before_the_last_moment_leaves_nothing_beside_it(tmp_path, monkeypatch):
    """A killed controller leaves the former file, and no other file with it."""
    path = tmp_path / "report.txt"
    atomic_file.replace(path, ["former\n"])

    def killed(*_paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_file.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        atomic_file.replace(path, ["new\n"])
    assert path.read_text() == "former\n"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
