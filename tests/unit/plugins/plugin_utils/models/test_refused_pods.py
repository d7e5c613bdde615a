# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that are not made, and the webhook that refuses them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    unmade,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import refused_pods
from tests.unit.support import answers, unmade_pods


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (unmade_pods.MESSAGE, unmade_pods.WEBHOOK),
        ('failed calling admission webhook "a.b": EOF', "a.b"),
        ('admission webhook "a.b" denied the request: no', ""),
        ("exceeded quota: none", ""),
        ("", ""),
    ],
)
def test_the_webhook_that_cannot_be_called(message, name):
    raw = {"refused": [{"kind": "ReplicaSet", "name": "a", "message": message}]}
    (row,) = answers.typed(unmade.Unmade, raw).refused
    assert refused_pods.webhook_of(row) == name
