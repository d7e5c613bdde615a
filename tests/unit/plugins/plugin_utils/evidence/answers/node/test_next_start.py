# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next start of a node reads."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    next_start,
)
from tests.unit.plugins.plugin_utils.conftest import starts_again
from tests.unit.support import answers


def test_each_part():
    raw = starts_again()
    raw["kernels"]["kernels"] = [{"release": "6.1", "tree": True, "lacks": ["nvidia"]}]
    raw["gpu"] = {"loaded": "535.1", "libraries": [{"path": "/x", "version": "535.2"}]}
    raw["mounts"]["rows"] = [{"line": 3, "what": "/dev/sdz", "point": "/data"}]
    answer = answers.typed(next_start.NextStart, raw)
    assert [program.name for program in answer.programs] == ["kubelet", "containerd"]
    assert answer.runtime_files.files[0].newer is False
    assert answer.kernels.kernels[0].lacks == ("nvidia",)
    assert answer.gpu.libraries[0].version == "535.2"
    assert answer.mounts.rows[0].line == 3


def test_a_value_of_another_type_is_refused():
    decoded = answers.changed(
        next_start.NextStart, starts_again(), "programs", 0, "replaced", value="no"
    )
    assert decoded.malformed == ("programs[0].replaced",)
