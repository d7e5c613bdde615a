# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log verbosity that a command line gives."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    klog_verbosity,
)
from tests.unit.support.fake_verbosity import SCHEDULER, Levels


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Levels:
    return Levels(tmp_path / "kubemend", monkeypatch)


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["kube-scheduler", "--v=3"], 3),
        (["kube-scheduler", "-v=1", "--v", "5"], 5),
        (["kube-scheduler"], 0),
        (["kube-scheduler", "--v=²"], 0),
        (["kube-scheduler", "--v=-1"], 0),
    ],
)
def test_a_process_that_was_started_again_has_the_level_of_its_own_command_line(
    node: Levels, argv: list[str], wanted: int
) -> None:
    node.up()
    node.argv = argv
    node.down()
    assert node.levels[SCHEDULER] == wanted == klog_verbosity.of_argv(argv)
