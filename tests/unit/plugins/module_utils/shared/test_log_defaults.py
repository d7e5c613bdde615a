# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read without an option is within the limits of a node, and of every component."""

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import components
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import log_defaults
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variables


def test_a_node_accepts_what_nobody_asked_for():
    given = {
        "components": log_defaults.COMPONENTS,
        "seconds_back": log_defaults.SECONDS_BACK,
        "max_bytes": log_defaults.MAX_BYTES,
        "max_line": log_defaults.MAX_LINE_BYTES,
    }
    assert components.refusal(given) is None
    assert components.refusal({}) is None


def test_every_component_that_a_capture_may_name_has_logs_to_read():
    assert set(variables.COMPONENTS) == set(log_defaults.COMPONENTS)
