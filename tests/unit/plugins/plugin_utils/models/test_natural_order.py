# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which people count names."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.natural_order import (
    natural,
)


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["w10", "w2", "2w", "", "w", "w2.b", "w2.a", "w" + "9" * 5000]
    assert sorted(names, key=natural)[:-1] == ["", "2w", "w", "w2", "w2.a", "w2.b", "w10"]
    assert natural(None) == natural("")
