# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a step writes for a kubelet, and the restart that loads them."""

import base64
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_files,
    kubelet_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.unit.support.fake_file_change import RUN, sha


@pytest.fixture
def step(tmp_path: Path) -> journal_entry.StepContext:
    return journal_entry.StepContext(RUN, "01-x", "what", "why", root=str(tmp_path / "own"))


def test_a_file_is_made_with_its_folder_and_its_mode(
    tmp_path: Path, step: journal_entry.StepContext
) -> None:
    path = tmp_path / "kubelet.service.d" / "99.conf"
    file = {"kind": "create", "path": str(path), "data": base64.b64encode(b"[Service]\n").decode()}
    kubelet_files.write(dict(file, mode="0600"), step)
    assert path.read_bytes() == b"[Service]\n"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ChangeError):
        kubelet_files.write(file, step)


def test_bytes_are_replaced_where_they_are_those_of_the_plan(
    tmp_path: Path, step: journal_entry.StepContext
) -> None:
    path = tmp_path / "kubelet.env"
    path.write_bytes(b"ARGS=--v=2\n")
    word = [base64.b64encode(data).decode() for data in (b"2", b"6")]
    file = {"kind": "splice", "path": str(path), "splices": [[9, 10, *word]]}
    with pytest.raises(ChangeError):
        kubelet_files.write(dict(file, sha256=sha(b"other")), step)
    kubelet_files.write(dict(file, sha256=sha(b"ARGS=--v=2\n")), step)
    assert path.read_bytes() == b"ARGS=--v=6\n"


def test_a_restart_that_cannot_be_asked_for_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []  # type: list[Any]
    monkeypatch.setattr(kubelet_restart, "restart", asked.append)
    assert kubelet_files.ask_restart(True) is None
    assert asked == [True]

    def fail(_reload: bool) -> None:
        raise command.CommandError("no\nbus")

    monkeypatch.setattr(kubelet_restart, "restart", fail)
    reason = kubelet_files.ask_restart(False)
    assert reason is not None
    assert reason.startswith("it could not be restarted (no")
    assert "\n" not in reason


def test_only_empty_folders_of_this_boot_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_files, "MOMENTARY", str(tmp_path / "run") + "/")
    for name in ("run/empty", "run/used", "etc/empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run" / "used" / "a.conf").touch()
    names = ("run/empty", "run/used", "run/gone", "etc/empty")
    kubelet_files.tidy([str(tmp_path / name / "99.conf") for name in names])
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == [
        "etc/empty",
        "run/used",
    ]
