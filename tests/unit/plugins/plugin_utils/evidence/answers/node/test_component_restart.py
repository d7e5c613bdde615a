# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How containers of components ended, as recorded of an API server whose key was gone."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_restart,
)
from tests.unit.support import answers

ENDS = answers.recorded("v1.36.3-component-restarted", "m1", "component_restart")


def test_a_container_that_exited_by_itself():
    answer = answers.typed(component_restart.ComponentRestart, ENDS)
    (server,) = [
        row
        for row in answer.containers or ()
        if (row.component, row.state) == ("kube-apiserver", "exited")
    ]
    assert (server.exit_code, server.reason, server.attempt) == (1, "Error", 6)
    assert server.finished is not None
    assert (answer.runtime.error, answer.kernel.error, answer.unread) == (None, None, None)
