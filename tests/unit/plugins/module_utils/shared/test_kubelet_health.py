# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An endpoint that is switched off is no illness to the controller, and no proof either."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kubelet
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    http_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import control_plane


@pytest.mark.parametrize(
    ("argv", "texts"),
    [(["kubelet", "--healthz-port=0"], []), (["kubelet"], ["healthzPort: 0\n"])],
)
def test_what_the_collector_says_is_what_the_model_knows(argv, texts):
    record = kubelet._healthz(argv, texts)
    assert record["error"]
    assert control_plane._health_problem(http_answer.HttpAnswer(error=record["error"])) == ""
    assert control_plane._health_problem(http_answer.HttpAnswer(error="connection refused")) != ""
