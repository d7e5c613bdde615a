# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The restart of a kubelet: what systemctl says, and a process that ends again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.unit.support.fake_kubelet_verbosity import Node, clean_node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from clean_node(tmp_path, monkeypatch)


def test_one_that_ends_again_and_again_is_given_up(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_restart, "SECONDS", 30)
    systemctl = node._systemctl

    def dying(*words: str) -> None:
        systemctl(*words)
        node.dies = 6 if node.argv[-1] == "--v=4" else 0

    monkeypatch.setattr(kubelet_restart, "_systemctl", dying)
    state, why = node.raise_level()
    assert state == "rolled_back"
    assert "it ended again 3 times" in why
    assert node.argv[-1] == "--v=2"


@pytest.mark.parametrize(
    ("said", "fails"),
    [
        ("systemctl: it said nothing", False),
        ("systemctl: Warning: The unit file changed on disk.", False),
        ("systemctl: Failed to restart kubelet.service: Unit is masked.", True),
    ],
)
def test_what_systemctl_says(monkeypatch: pytest.MonkeyPatch, said: str, fails: bool) -> None:
    def run(argv: Any, **dummy: Any) -> str:
        raise command.Silent(said)

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(command.CommandError) if fails else contextlib.nullcontext():
        kubelet_restart.restart(True)


def test_one_that_starts_between_the_look_and_the_write(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    there, node.pid = node.pid, 0
    load = kubelet_restart.load

    def meanwhile(reload_units: bool) -> None:
        load(reload_units)
        node.pid = node.pid or there + 1  # systemd started it, with what is taken back now

    monkeypatch.setattr(kubelet_restart, "load", meanwhile)
    assert node.revert()["components"][0]["proven"] is True
    assert node.argv[-1] == "--v=2"
