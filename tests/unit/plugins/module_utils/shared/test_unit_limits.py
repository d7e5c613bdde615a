# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of units that may stand in a path and on a command line."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import unit_limits


@pytest.mark.parametrize("name", ["kubelet.service", "a@b:c.service", "cri-docker.service"])
def test_a_name_that_needs_no_quotes(name: str) -> None:
    assert unit_limits.UNIT.match(name)


@pytest.mark.parametrize(
    "name",
    [
        "-H.service",
        "../a.service",
        "a b.service",
        "a.service\n",
        ".service",
        "a.socket",
        "a/b.service",
    ],
)
def test_no_option_no_path_and_no_second_word(name: str) -> None:
    assert not unit_limits.UNIT.match(name)
