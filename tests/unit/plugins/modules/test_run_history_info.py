# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of run_history_info, whose action alone does the work."""

import yaml

from ansible_collections.kubemend.remediation.plugins.action import run_history_info as action
from ansible_collections.kubemend.remediation.plugins.modules import run_history_info
from tests.unit.support.option_fields import checked_fields


def test_the_documented_options_are_those_of_the_action():
    options = yaml.safe_load(run_history_info.DOCUMENTATION)["options"]
    assert checked_fields(options) == checked_fields(action.SPEC)


def test_nothing_of_it_runs_on_a_host():
    assert not hasattr(run_history_info, "main")
