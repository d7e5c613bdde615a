# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of a node's kubelet."""

from collections.abc import Iterator

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    kubelet_process,
)
from tests.unit.support.fake_logs import Node, a_node


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from a_node(monkeypatch)


def test_journald_begins_after_the_kubelet(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.journal("window", (node.now - 9, "one"))
    node.journal("oldest", (node.now - 50, "x"))
    here = kubelet_process.here
    for started, count in ((node.now - 70, 1), (node.now - 50, 0)):
        monkeypatch.setattr(
            kubelet_process,
            "here",
            lambda processes, started=started: ({"started_at": started}, *here(processes)[1:]),
        )
        notes = node.read("kubelet")["sources"][0]["notes"]
        assert len(notes) == count
        assert all("journald holds nothing before" in note for note in notes)
