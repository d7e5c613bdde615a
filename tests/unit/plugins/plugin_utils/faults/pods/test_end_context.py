# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else the cluster tells of why one of its own pods ends."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pod_start,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.pods import end_context
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.system_pods import (
    EndedPod,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import (
    Known,
)

POD = EndedPod("kube-system", "csi-a", "registrar", 7, True, "", "starts", None)
PROBE = pod_start.Unhealthy("kube-system", "csi-a", "registrar", "w1", "Liveness probe failed: x")
KNOWN = Known("service-address-not-reached", "", "")


@pytest.mark.parametrize(
    ("changed", "known", "is_told"),
    [
        ({}, None, True),
        ({"message": "Startup probe failed: x"}, None, True),
        ({"message": "Readiness probe failed: x"}, None, False),
        ({"container": "other"}, None, False),
        ({}, KNOWN, False),
    ],
)
def test_a_probe_that_ends_a_container(changed, known, is_told):
    answer = pod_start.PodStart(unhealthy=(replace(PROBE, **changed),))
    cluster = SimpleNamespace(typed=lambda _kind: answer)
    assert bool(end_context.failed_probe(cluster, replace(POD, known=known))) is is_told


@pytest.mark.parametrize(
    ("known", "proxies", "is_told"),
    [(KNOWN, (POD,), True), (KNOWN, (), False), (None, (POD,), False)],
)
def test_a_proxy_that_ends_itself(known, proxies, is_told):
    assert ("kube-proxy" in end_context.without_proxy(known, proxies)) is is_told
