# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which events have a meaning, and that the collector keeps them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    object_events as collector,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import object_events


def test_each_reason_of_the_collector_has_a_meaning():
    kept = {reason for reasons in collector.REASONS.values() for reason in reasons}
    assert kept == set(object_events._OF_OBJECTS)


def test_what_is_normal_or_usual_of_a_node():
    assert set(object_events._OF_NODES) >= collector.NODE_REASONS
    assert not collector.USUAL & set(object_events._OF_NODES)
