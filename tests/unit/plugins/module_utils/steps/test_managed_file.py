# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small managed file.

A path that is no file, or cannot be read, never counts as a file that does not exist.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    managed_file,
)

RUN = "20261121T090000Z-1a2b3c"


def added(present: "bytes | None") -> bytes:
    return (present or b"") + (b"" if b"ours" in (present or b"") else b"ours\n")


@pytest.fixture
def step(tmp_path: Path) -> journal_entry.StepContext:
    return journal_entry.StepContext(
        RUN, "01", "a file of ours", "asked for", str(tmp_path / "kubemend")
    )


def test_it_is_made_added_to_and_put_back(tmp_path: Path, step: journal_entry.StepContext) -> None:
    path = tmp_path / "made.d" / "ours"
    assert managed_file.write(str(path), added, step) is None
    assert path.read_bytes() == b"ours\n"
    assert managed_file.says(str(path), added)
    managed_file.put_back(str(path), None, step)
    assert not path.exists()
    assert not managed_file.says(str(path), added)
    path.write_bytes(b"theirs\n")
    assert managed_file.write(str(path), added, step) == b"theirs\n"
    assert path.read_bytes() == b"theirs\nours\n"
    assert managed_file.write(str(path), added, step) == b"theirs\nours\n"
    managed_file.put_back(str(path), b"theirs\n", step)
    assert path.read_bytes() == b"theirs\n"


@pytest.mark.parametrize(
    "make",
    [os.mkdir, os.mkfifo, lambda path: os.symlink(path, path)],  # noqa: PTH211 - beside its like
    ids=["a folder", "a pipe", "a loop"],
)
def test_what_is_no_file_is_not_one_that_is_missing(
    tmp_path: Path, step: journal_entry.StepContext, make: Any
) -> None:
    path = str(tmp_path / "ours")
    make(path)
    for act in (
        lambda: managed_file.read(path),
        lambda: managed_file.write(path, added, step),
        lambda: managed_file.put_back(path, None, step),
    ):
        with pytest.raises((OSError, ChangeError)):
            act()
    assert managed_file.says(path, added) is False
    assert os.path.lexists(path)


def test_one_that_somebody_took_away_is_not_made_again(
    tmp_path: Path, step: journal_entry.StepContext
) -> None:
    path = tmp_path / "ours"
    with pytest.raises(ChangeError, match="it was removed"):
        managed_file.put_back(str(path), b"theirs\n", step)
    assert not path.exists()


def test_a_failed_step_restores_the_file_or_says_why_not(
    tmp_path: Path, step: journal_entry.StepContext
) -> None:
    path = tmp_path / "ours"
    path.write_bytes(b"ours\n")
    state, reason = managed_file.rolled_back(str(path), b"theirs\n", step, "it had no effect")
    assert (state, path.read_bytes()) == (step_record.ROLLED_BACK, b"theirs\n")
    assert reason.startswith("it had no effect; ")
    assert str(path) in reason
    path.unlink()
    state, reason = managed_file.rolled_back(str(path), b"theirs\n", step, "it had no effect")
    assert (state, path.exists()) == (step_record.FAILED, False)
    assert "removed" in reason
