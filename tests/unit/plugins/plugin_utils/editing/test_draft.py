# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The draft of a file's change."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing.draft import EditRefused
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from tests.unit.support.kubelet_unit import argument_files, unit


@pytest.mark.parametrize(
    ("kubelet_unit", "reason"),
    [
        (kubelet_answer.KubeletUnit(), "no variable for more arguments"),
        (unit("", "--v=4"), "sets --v behind the variable X"),
        (unit(None), "holds a secret"),
    ],
)
def test_a_unit_without_room_is_refused(kubelet_unit, reason):
    with pytest.raises(EditRefused, match=reason):
        argument_files(kubelet_unit, "--v=2")
