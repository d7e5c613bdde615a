# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that changed, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    package_changes,
)
from tests.unit.support import answers

CHANGES = {
    "since": 1606700000.0,
    "items": [
        {
            "time": 1606803124.0,
            "action": "upgrade",
            "name": "containerd",
            "old": "1.3.2",
            "new": "1.3.3",
        }
    ],
}


def test_an_upgrade():
    (item,) = answers.typed(package_changes.PackageChanges, CHANGES).items
    assert (item.action, item.name, item.new) == ("upgrade", "containerd", "1.3.3")


def test_a_time_that_is_a_text_is_malformed():
    decoded = answers.changed(
        package_changes.PackageChanges, CHANGES, "items", 0, "time", value="x"
    )
    assert decoded.malformed == ("items[0].time",)
