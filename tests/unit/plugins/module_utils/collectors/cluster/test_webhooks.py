# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which webhooks the evidence has, and what of them and of their services."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    webhooks,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

V1 = "/apis/admissionregistration.k8s.io/v1/"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/gate-system/endpointslices"
SERVICE = "/api/v1/namespaces/gate-system/services/gate"


class Client:
    """Lists and objects by path; an ApiError is raised."""

    def __init__(self, lists, objects=None):
        self.lists, self.objects, self.asked = lists, objects or {}, []

    def items(self, path, query=None):
        self.asked.append(path)
        answer = self.lists.get(path, [])
        if isinstance(answer, ApiError):
            raise answer
        yield from answer

    def find(self, path):
        self.asked.append(path)
        answer = self.objects.get(path)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def configuration(name="gate", version="v1", **more):
    webhook = {
        "name": "pods.gate.example.com",
        "failurePolicy": "Fail",
        "clientConfig": {
            "caBundle": "c2VjcmV0",
            "service": {"namespace": "gate-system", "name": "gate", "port": 8443},
        },
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
            | {"operations": ["CREATE"], "scope": "Namespaced"}
        ],
        **more,
    }
    return {
        "apiVersion": f"admissionregistration.k8s.io/{version}",
        "metadata": {"name": name, "creationTimestamp": "2027-01-01T00:00:00Z"},
        "webhooks": [webhook],
    }


def endpoints(*ready):
    rows = [{"addresses": ["10.1.0.1"], "conditions": {"ready": value}} for value in ready]
    return [{"endpoints": rows}]


def namespace(name, **labels):
    return {f"/api/v1/namespaces/{name}": {"metadata": {"name": name, "labels": labels}}}


def collect(*configurations, slices=(), **objects):
    client = Client({V1 + "validatingwebhookconfigurations": configurations, SLICES: slices})
    client.objects = {SERVICE: {"spec": {"type": "ClusterIP"}}, **objects}
    return webhooks.collect(client)


def test_a_webhook_without_a_server():
    data, cut = collect(configuration())
    (row,) = data["items"]
    assert (row["found"], row["ready"], row["other"]) == (True, 0, 0)
    assert (row["kind"], row["configuration"]) == ("ValidatingWebhookConfiguration", "gate")
    assert (row["namespace"], row["service"], row["port"]) == ("gate-system", "gate", 8443)
    assert row["rules"][0]["resources"] == ["pods"]
    assert "c2VjcmV0" not in str(data)
    assert (data["listed"], cut) == (1, False)


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({"failurePolicy": "Ignore"}, 0),
        ({"clientConfig": {"url": "https://gate.example.com"}}, 0),
        ({"clientConfig": None}, 0),
        ({"failurePolicy": "Fail"}, 1),
    ],
)
def test_which_webhooks_are_kept(more, count):
    data, _cut = collect(configuration(**more))
    assert (len(data["items"]), data["listed"]) == (count, 1)


@pytest.mark.parametrize(("version", "count"), [("v1", 1), ("v1beta1", 0)])
def test_the_policy_by_default(version, count):
    item = configuration(version=version)
    del item["webhooks"][0]["failurePolicy"]
    assert len(webhooks.rows_of("K", item)) == count


def test_addresses_that_are_ready():
    data, _cut = collect(configuration(), slices=endpoints(True, None, False))
    (row,) = data["items"]
    assert (row["ready"], row["other"], row["own"]) == (2, 1, None)


def test_a_service_that_is_gone_or_elsewhere_or_denied():
    data, _cut = collect(configuration(), **{SERVICE: None})
    assert data["items"][0]["found"] is False
    data, _cut = collect(configuration(), **{SERVICE: {"spec": {"type": "ExternalName"}}})
    assert data["items"][0]["ready"] is None
    data, _cut = collect(configuration(), **{SERVICE: ApiError("denied", "HTTP 403", 403)})
    assert (data["items"][0]["found"], data["items"][0]["ready"]) == (None, 0)


def test_a_release_without_endpoint_slices():
    client = Client(
        {
            V1 + "mutatingwebhookconfigurations": [configuration()],
            SLICES: ApiError("absent", "HTTP 404", 404),
        },
        {
            "/api/v1/namespaces/gate-system/endpoints/gate": {
                "subsets": [{"addresses": [{"ip": "10.1.0.1"}], "notReadyAddresses": []}]
            }
        },
    )
    data, _cut = webhooks.collect(client)
    assert data["items"][0]["ready"] == 1


def test_the_older_version_of_the_api():
    gone = ApiError("absent", "HTTP 404", 404)
    client = Client({V1 + plural: gone for plural in webhooks.PATHS.values()})
    old = "/apis/admissionregistration.k8s.io/v1beta1/"
    client.lists[old + "validatingwebhookconfigurations"] = [configuration(version="v1beta1")]
    assert len(webhooks.collect(client)[0]["items"]) == 1
    client.lists |= {old + plural: gone for plural in webhooks.PATHS.values()}
    with pytest.raises(ApiError):
        webhooks.collect(client)


@pytest.mark.parametrize(
    ("selector", "own", "system"),
    [
        (None, True, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "gate-system"}}, True, False),
        (
            {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "NotIn",
                        "values": ["kube-system"],
                    }
                ]
            },
            True,
            False,
        ),
        ({"matchExpressions": [{"key": "gate", "operator": "Exists"}]}, False, True),
        ({"matchExpressions": [{"key": "gate", "operator": "DoesNotExist"}]}, True, False),
        ({"matchExpressions": [{"key": "gate", "operator": "In", "values": ["on"]}]}, False, True),
    ],
)
def test_whose_pods_it_takes(selector, own, system):
    objects = namespace("gate-system") | namespace("kube-system", gate="on")
    data, _cut = collect(configuration(namespaceSelector=selector), **objects)
    (row,) = data["items"]
    assert (row["own"], row["system"]) == (own, system)


def test_labels_that_are_not_known():
    path = "/api/v1/namespaces/gate-system"
    data, _cut = collect(configuration(), **{path: ApiError("denied", "HTTP 403", 403)})
    assert (data["items"][0]["own"], data["items"][0]["system"]) == (None, True)


def test_each_service_is_asked_once_and_no_more_than_a_limit(monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_SERVICES", 1)
    other = {"clientConfig": {"service": {"namespace": "other", "name": "x"}}}
    client = Client(
        {
            V1 + "validatingwebhookconfigurations": [
                configuration(),
                configuration("b"),
                configuration("c", **other),
            ],
            SLICES: endpoints(True),
        }
    )
    data, cut = webhooks.collect(client)
    assert [row["ready"] for row in data["items"]] == [1, 1, None]
    assert cut is True
    assert client.asked.count(SLICES) == 1
