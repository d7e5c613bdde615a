# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of run_journal is that of its action, which alone does the work."""

import yaml

from ansible_collections.kubemend.remediation.plugins.action import run_journal as action
from ansible_collections.kubemend.remediation.plugins.modules import run_journal

FIELDS = ("type", "elements", "required", "default", "choices")


def fields(options):
    """Return of each option what Ansible checks."""
    return {
        option: {field: declared[field] for field in FIELDS if field in declared}
        for option, declared in options.items()
    }


def test_the_documented_options_are_those_of_the_action():
    """Ansible compares only modules that have an argument_spec."""
    options = yaml.safe_load(run_journal.DOCUMENTATION)["options"]
    assert fields(options) == fields(action.SPEC)


def test_nothing_of_it_runs_on_a_host():
    assert not hasattr(run_journal, "main")
