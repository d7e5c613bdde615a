# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM176 and KM177: webhooks and API groups whose servers do not answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import known_rows, unmade_pods

RULE = {"groups": [""], "resources": ["pods"], "operations": ["CREATE"], "scope": "*"}


def webhook(**more: Any) -> dict[str, Any]:
    return {
        "kind": "ValidatingWebhookConfiguration",
        "configuration": "gate",
        "name": "pods.gate.example.com",
        "index": 1,
        "namespace": "gate-system",
        "service": "gate",
        "port": 443,
        "found": True,
        "ready": 0,
        "other": 0,
        "objects": False,
        "own": False,
        "system": False,
        "rules": [RULE],
        "created": "2027-01-01T00:00:00Z",
        **more,
    }


def give(world: Any, *rows: dict[str, Any], status: str = "ok", cut: bool = False) -> None:
    data = {"listed": len(rows), "items": list(rows)} if status == "ok" else None
    record = {"status": status, "data": data, "truncated": cut}
    world.api["collectors"]["webhooks"] = record


def found(world: Any, code: str = "KM176") -> list[Any]:
    return [item for item in world.judge(faults={code}).findings if item.code == code]


def verdict(world: Any, code: str = "KM176") -> str:
    return next(row.verdict for row in world.judge(faults={code}).verdicts)


def test_a_webhook_without_a_server(world):
    give(world, webhook())
    (one,) = found(world)
    assert one.severity == "warning"
    for word in ("gate", "gate-system/gate", "no address", "pods"):
        assert word in one.summary
    assert "kubectl patch validatingwebhookconfigurations gate" in one.remedy
    assert "/webhooks/1/failurePolicy" in one.remedy
    assert "your decision" in one.remedy


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"own": True}, "cannot come back by itself"),
        ({"system": True}, "pods of kube-system"),
        ({"rules": [{**RULE, "resources": ["nodes/status"], "operations": ["*"]}]}, "Nodes"),
        ({"rules": [{**RULE, "resources": ["*/*"], "operations": ["*"]}]}, "Nodes"),
        ({"rules": [{**RULE, "groups": ["*"], "resources": ["*"]}], "own": True}, "by itself"),
        (
            {
                "system": True,
                "rules": [
                    {
                        **RULE,
                        "groups": ["coordination.k8s.io"],
                        "resources": ["leases"],
                        "operations": ["UPDATE"],
                    }
                ],
            },
            "leases",
        ),
    ],
)
def test_it_refuses_what_a_cluster_needs(world, more, word):
    give(world, webhook(**more))
    (one,) = found(world)
    assert one.severity == "critical"
    assert word in one.summary


@pytest.mark.parametrize(
    "more",
    [
        {"own": True, "objects": True},  # which pods it takes, is not known
        {"own": None, "system": None},
        {"own": True, "rules": [{**RULE, "operations": ["DELETE"]}]},
        {"own": True, "rules": [{**RULE, "resources": ["pods/exec"]}]},
        {"own": True, "rules": [{**RULE, "groups": ["apps"], "resources": ["deployments"]}]},
    ],
)
def test_what_it_refuses_is_not_sure_to_be_needed(world, more):
    give(world, webhook(**more))
    (one,) = found(world)
    assert one.severity == "warning"


@pytest.mark.parametrize(
    ("more", "word"),
    [({"found": False}, "does not exist"), ({"other": 2}, "no pod of"), ({}, "no address")],
)
def test_what_is_known_of_its_service(world, more, word):
    give(world, webhook(**more))
    assert word in found(world)[0].summary


def test_webhooks_of_one_service_are_one_finding(world):
    give(world, webhook(), webhook(name="b", index=0), webhook(service="other"))
    assert len(found(world)) == 2


@pytest.mark.parametrize("more", [{"ready": 2}, {"ready": None, "found": True}])
def test_a_webhook_that_is_served(world, more):
    give(world, webhook(**more))
    assert found(world) == []
    assert verdict(world) == "clear"


def test_a_webhook_of_this_minute_is_unknown(world):
    give(world, webhook(created="2027-01-15T07:59:00Z"))
    assert found(world) == []
    assert verdict(world) == "unknown"


@pytest.mark.parametrize("code", ["KM176", "KM177"])
def test_without_an_answer_it_is_unknown(world, code):
    for name in ("webhooks", "api_services"):
        world.api["collectors"][name] = {"status": "denied", "data": None}
    assert verdict(world, code) == "unknown"


def test_a_list_that_was_cut_is_unknown(world):
    give(world, webhook(ready=1), cut=True)
    assert verdict(world) == "unknown"


def groups(world: Any, *rows: dict[str, Any]) -> None:
    data = {"listed": 1, "items": list(rows)}
    world.api["collectors"]["api_services"] = {"status": "ok", "data": data}


def group(**more: Any) -> dict[str, Any]:
    return {
        "name": "v1beta1.metrics.k8s.io",
        "namespace": "kube-system",
        "service": "metrics-server",
        "reason": "MissingEndpoints",
        "message": "endpoints for service/metrics-server have no addresses",
        "since": "2027-01-15T07:00:00Z",
        **more,
    }


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("MissingEndpoints", "get pods"),
        ("ServiceNotFound", "delete apiservice"),
        ("FailedDiscoveryCheck", "proxy-client-cert-file"),
    ],
)
def test_a_group_that_is_not_available(world, reason, word):
    groups(world, group(reason=reason))
    (one,) = found(world, "KM177")
    assert one.severity == "warning"
    for text in ("v1beta1.metrics.k8s.io", reason, "kube-system/metrics-server"):
        assert text in one.summary
    assert word in one.remedy


def test_a_server_that_restarts_is_waited_for(world):
    groups(world, group(since="2027-01-15T07:59:30Z"))
    assert found(world, "KM177") == []
    assert verdict(world, "KM177") == "unknown"


def test_groups_that_are_available(world):
    groups(world)
    assert verdict(world, "KM177") == "clear"


def test_whose_pods_it_keeps_away(world):
    unmade_pods.refuse(world)
    unmade_pods.refuse(world, "exceeded quota: none", name="other-1")
    unmade_pods.add_dead_webhook(world)
    (one,) = found(world)
    assert one.summary.endswith("Pods that could not be made: those of ReplicaSet shop/cart-1")
    assert one.evidence[-1].object == "ReplicaSet shop/cart-1"
    assert one.evidence[-1].text.startswith("FailedCreate, last 2027-01-15T07:59:00Z: Internal")


def test_the_cause_of_a_known_message_is_told(world):
    groups(world, group(message="listen unix /run/a.sock: bind: address already in use"))
    (one,) = found(world, "KM177")
    assert "Known cause: A file is at the place of its socket /run/a.sock" in one.summary
    assert one.remedy.startswith("ss -lxp on the node")


def test_a_message_of_another_release_has_no_known_cause(world, monkeypatch):
    groups(world, group(message="listen unix /run/a.sock: bind: address already in use"))
    known_rows.of_a_later_release(monkeypatch)
    (one,) = found(world, "KM177")
    assert "Known cause" not in one.summary
