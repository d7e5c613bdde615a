# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The causes of a symptom."""

from __future__ import annotations

import re

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import symptoms
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    kubelet_exit_advice,
)
from tests.unit.support.fake_kubelet_messages import (
    CASES,
)


def test_whatever_fault_a_kubelets_death_names_is_a_cause_of_the_symptom():
    causes = sorted({case[2] for case in CASES} | {"limits", "oom_kill", "executable", "node_name"})
    told = " ".join(
        kubelet_exit_advice.words(cause, what)
        for cause in causes
        for what in ("x", kubelet_exit_advice.WATCHES)
    )
    assert "KM403" in told
    assert set(re.findall("KM[0-9]{3}", told)) <= set(symptoms.SYMPTOMS["node_unreachable"].causes)
