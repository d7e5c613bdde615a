# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary arguments of a kubelet, and the arguments behind a variable of its ExecStart."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import dropin
from tests.unit.support import answers

ENVIRONMENT = {"path": dropin.ENVIRONMENT, "text": '# adds: --a=1 --b\nX="--a=1 --b"\n'}


@pytest.mark.parametrize(
    "unit",
    [
        None,
        "text",
        {},
        {"environment_files": None},
        {"environment_files": [{"path": "/etc/default/kubelet", "text": "# adds: --c"}]},
        {"environment_files": [{"path": dropin.ENVIRONMENT, "text": None}]},
    ],
)
def test_without_a_reset_no_argument_is_temporary(unit):
    assert dropin.lent(decode.decode(kubelet_answer.Kubelet, {"unit": unit}).answer) == ()


def test_arguments_of_an_unfinished_reset_are_temporary():
    unit = {"environment_files": [ENVIRONMENT]}
    assert dropin.lent(answers.typed(kubelet_answer.Kubelet, {"unit": unit})) == ("--a=1", "--b")


@pytest.mark.parametrize(
    ("words", "variables", "arguments"),
    [
        ([], [], []),
        (["kubelet", "--v=1"], [["X", ""]], ["kubelet", "--v=1"]),
        (["kubelet", "$X", "--v=1"], [["X", "--a"]], ["--v=1"]),
        (["kubelet", "$X", "$Y", "$X", "$Y"], [["Y", "--b --c"], ["X", ""]], ["--b", "--c"]),
        (["kubelet", "$X", "$Y"], [["Y", None], ["X", ""]], []),
        (["kubelet", "$X", "$Z"], [["X", ""]], ["$Z"]),
    ],
)
def test_arguments_behind_the_last_place_of_a_variable(words, variables, arguments):
    unit = answers.typed(
        kubelet_answer.KubeletUnit, {"start_words": words, "split_variables": variables}
    )
    assert dropin.behind(unit, "X") == arguments
