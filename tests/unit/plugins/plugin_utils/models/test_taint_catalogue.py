# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of taints."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.taint_catalogue import (
    OWNED,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.taints import (
    EFFECTS,
)


def test_the_catalogue_names_each_taint_once():
    pairs = [(key, effect) for key, effects, _owner in OWNED for effect in effects]
    assert len(pairs) == len(set(pairs))
    assert all(set(effects) <= set(EFFECTS) for _key, effects, _owner in OWNED)
