# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.pods import (
    refused_tokens,
)
from tests.unit.plugins.plugin_utils.conftest import CLOCK

REFUSED = "error getting ClusterInformation: connection is unauthorized: Unauthorized"
ISSUER = "https://kubernetes.default.svc"


def cluster_of(world: Any) -> Any:
    documents = [*world.documents.values(), world.api]
    return engine.evaluate_clusters(documents, faults=frozenset())[1][0]


def restarted(world: Any, host: str, written: float, started: float, issuer: str = ISSUER) -> None:
    flag = f"--service-account-issuer={issuer}"
    world.manifest(host, "kube-apiserver", flag, mtime=CLOCK - written)
    for row in world.data(host, "instances")["processes"]:
        if row["component"] == "kube-apiserver":
            row.update(started_at=CLOCK - started)
            row["argv"] = ["kube-apiserver", *([flag] if issuer else [])]


@pytest.mark.parametrize(
    "message",
    [
        "network plugin is not ready",
        "failed to pull image: 401 Unauthorized",
        "failed to get sandbox image: unexpected status: Unauthorized",
        "the registry says Unauthorized",
    ],
)
def test_other_messages_are_of_no_token(world: Any, message: str) -> None:
    assert refused_tokens.of_message(cluster_of(world), message) is None


def test_servers_whose_manifest_was_changed_before_their_start_are_named(world: Any) -> None:
    restarted(world, "m1", 7200, 7180)
    restarted(world, "m2", 7200, 7170)
    refusal = refused_tokens.of_message(cluster_of(world), REFUSED)
    assert refusal is not None
    assert "the API servers of m1, m2 run since 2027-01-15T06:00:20Z" in refusal.clause
    assert f"--service-account-issuer={ISSUER}" in refusal.clause
    assert "the former issuer" in refusal.advice
    assert [proof.host for proof in refusal.proofs] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("written", "started", "issuer"),
    [
        (90000, 7180, ISSUER),
        (7100, 7180, ISSUER),
        (7200, 7180, ""),
        (30 * 86400, 30 * 86400 - 20, ISSUER),
    ],
    ids=["long before", "after the start", "no issuer", "long ago"],
)
def test_a_start_that_changed_nothing_is_not_blamed(
    world: Any, written: float, started: float, issuer: str
) -> None:
    restarted(world, "m1", written, started, issuer)
    refusal = refused_tokens.of_message(cluster_of(world), REFUSED)
    assert refusal is not None
    assert "issuer" not in refusal.clause
    assert "restart the pods of the network plugin" in refusal.advice
    assert refusal.proofs == ()
