# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that looks for what kubemend keeps on a node looks where it is kept."""

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal,
    space,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.paths import ROOT
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.control_plane import (
    manifests,
)


def test_the_collector_of_the_journal_reads_where_the_steps_write():
    assert journal.ROOT == ROOT
    assert registry.BY_NAME["journal"].path == ROOT


def test_the_free_space_of_the_journal_is_known():
    assert ROOT in space.FOLDERS


def test_a_fault_names_the_journal_below_it():
    assert manifests.JOURNAL.startswith(ROOT + "/")
