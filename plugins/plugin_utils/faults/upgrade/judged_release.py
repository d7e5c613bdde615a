# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that the checks of an upgrade judge, where its refusals are known."""

from __future__ import annotations

from ...models import upgrade_target
from ...models.cluster import Cluster
from ...models.result import Missing
from ...models.upgrade_target import Target
from ..base import CheckResult, unknown, without_kubernetes


def find(cluster: Cluster, *missing: Missing) -> Target | CheckResult:
    """Return the release to judge, or the result where that, or other evidence, is missing."""
    if cluster.key is None:
        return without_kubernetes()
    target = upgrade_target.find(cluster)
    gaps, note = upgrade_target.unknown_release(cluster, target)
    gaps = (*gaps, *missing)
    if target is None or gaps:
        return unknown(*gaps, note=note)
    return target
