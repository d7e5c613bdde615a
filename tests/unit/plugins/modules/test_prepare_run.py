# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of prepare_run is that of its action, which alone does the work."""

import yaml

from ansible_collections.kubemend.remediation.plugins.action import prepare_run as action
from ansible_collections.kubemend.remediation.plugins.modules import prepare_run
from tests.unit.support.option_fields import checked_fields


def test_the_documented_options_are_those_of_the_action():
    """Ansible compares only modules that have an argument_spec."""
    options = yaml.safe_load(prepare_run.DOCUMENTATION)["options"]
    assert checked_fields(options) == checked_fields(action.SPEC)


def test_nothing_of_it_runs_on_a_host():
    assert not hasattr(prepare_run, "main")
