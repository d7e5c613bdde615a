# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of run_history_info, whose action alone does the work."""

import yaml

from ansible_collections.kubemend.remediation.plugins.modules import run_history_info


def test_it_has_no_options_and_runs_on_no_host():
    assert yaml.safe_load(run_history_info.DOCUMENTATION)["options"] == {}
    assert not hasattr(run_history_info, "main")
