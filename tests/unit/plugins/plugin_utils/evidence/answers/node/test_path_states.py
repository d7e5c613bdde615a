# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies at a path, as the collector writes it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    path_states,
)
from tests.unit.support import answers

DATA = {"paths": [{"path": "/etc/a", "kind": "file", "owner": "root", "mode": "0600", "uid": 0}]}


def test_a_path():
    (row,) = answers.typed(path_states.PathStates, DATA).paths
    assert (row.path, row.kind, row.owner, row.mode, row.uid) == (
        "/etc/a",
        "file",
        "root",
        "0600",
        0,
    )
    assert row.target is None


def test_a_user_that_is_a_text_is_malformed():
    decoded = answers.changed(path_states.PathStates, DATA, "paths", 0, "uid", value="x")
    assert decoded.malformed == ("paths[0].uid",)
