# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of diagnose is that of its action, which alone does the work."""

import yaml

from ansible_collections.kubemend.remediation.plugins.action import diagnose as action
from ansible_collections.kubemend.remediation.plugins.modules import diagnose
from tests.unit.support.option_fields import checked_fields


def test_the_documented_options_are_those_of_the_action():
    """Ansible compares only modules that have an argument_spec."""
    options = yaml.safe_load(diagnose.DOCUMENTATION)["options"]
    assert checked_fields(options) == checked_fields(action.SPEC)


def test_nothing_of_it_runs_on_a_host():
    assert not hasattr(diagnose, "main")
