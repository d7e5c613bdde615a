# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of kinds that a node sends: evidence of earlier runs has them."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import program_kinds


def test_the_names_are_those_of_earlier_evidence():
    names = (program_kinds.EMPTY, program_kinds.SCRIPT, program_kinds.NO_PROGRAM)
    assert names == ("empty", "script", "none")
