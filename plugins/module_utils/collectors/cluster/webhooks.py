# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Webhooks of admission that refuse what they are asked about where no server answers.

Of a webhook the evidence has its service and its rules, and neither its certificate nor a URL
outside of the cluster.
"""

import itertools
import urllib.parse

from ...kubeapi.client import ApiError, dicts
from ...shared.text import one_line

PATHS = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}
VERSIONS = ("v1", "v1beta1")  # the latter up to 1.21
MAX_CONFIGURATIONS, MAX_WEBHOOKS, MAX_SERVICES, MAX_RULES, MAX_NAMES = 500, 200, 50, 20, 20
MAX_TEXT = 253
NAME = "kubernetes.io/metadata.name"
SYSTEM = "kube-system"


def collect(api):
    """Return ({listed, items}, whether the list was cut)."""
    items, listed, cut = [], 0, False
    for kind, plural in PATHS.items():
        configurations, is_cut = _configurations(api, plural)
        cut = cut or is_cut
        for configuration in configurations:
            rows = rows_of(kind, configuration)
            listed += len(dicts(configuration.get("webhooks")))
            items += rows
    cut = cut or len(items) > MAX_WEBHOOKS
    items = items[:MAX_WEBHOOKS]
    return {"listed": listed, "items": [row for row, _selector in items]}, _look(api, items) or cut


def _configurations(api, plural):
    """Return (the configurations of one kind, whether there are more)."""
    for version in VERSIONS:
        path = f"/apis/admissionregistration.k8s.io/{version}/{plural}"
        try:
            rows = list(itertools.islice(api.items(path), MAX_CONFIGURATIONS + 1))
        except ApiError as error:
            if error.status == "absent" and version != VERSIONS[-1]:
                continue
            raise
        return rows[:MAX_CONFIGURATIONS], len(rows) > MAX_CONFIGURATIONS
    return [], False


def rows_of(kind, configuration):
    """Return [(row, its selector of namespaces)] of the webhooks that fail closed."""
    meta = configuration.get("metadata") or {}
    version = str(configuration.get("apiVersion") or "")
    # The policy by default was Ignore in v1beta1; the API server fills it in, in each version.
    default = "Ignore" if version.endswith("v1beta1") else "Fail"
    return [
        (_row(kind, meta, index, webhook), webhook.get("namespaceSelector") or {})
        for index, webhook in enumerate(dicts(configuration.get("webhooks")))
        if _service(webhook) and webhook.get("failurePolicy", default) == "Fail"
    ]


def _service(webhook):
    """Return the service of the cluster that answers a webhook, None for a URL."""
    service = (webhook.get("clientConfig") or {}).get("service")
    if isinstance(service, dict):
        return service
    return None


def _row(kind, meta, index, webhook):
    service = _service(webhook)
    return {
        "kind": kind,
        "configuration": _text(meta.get("name")),
        "name": _text(webhook.get("name")),
        "index": index,
        "namespace": _text(service.get("namespace")),
        "service": _text(service.get("name")),
        "port": _port(service.get("port", 443)),
        "found": None,
        "ready": None,
        "other": None,
        "objects": bool(webhook.get("objectSelector") or webhook.get("matchConditions")),
        "own": None,
        "system": None,
        "rules": [_rule(rule) for rule in dicts(webhook.get("rules"))[:MAX_RULES]],
        "created": _text(meta.get("creationTimestamp")) or None,
    }


def _port(value):
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65536:
        return value
    return None


def _rule(rule):
    return {
        "groups": _names(rule.get("apiGroups")),
        "resources": _names(rule.get("resources")),
        "operations": _names(rule.get("operations")),
        "scope": _text(rule.get("scope") or "*"),
    }


def _names(values):
    if not isinstance(values, list):
        return []
    return [_text(value) for value in values[:MAX_NAMES]]


def _text(value):
    return one_line(str(value or "")[:MAX_TEXT])


def _look(api, items):
    """Add to each row what is known of its service; return whether some were left out."""
    addresses, labels, cut = {}, {}, False
    for row, selector in items:
        key = row["namespace"], row["service"]
        if key not in addresses:
            if len(addresses) >= MAX_SERVICES:
                cut = True
                continue
            addresses[key] = _addresses(api, *key)
        row.update(addresses[key])
        if row["ready"] == 0:
            row["own"] = selects(selector, _labels(api, row["namespace"], labels))
            row["system"] = selects(selector, _labels(api, SYSTEM, labels))
    return cut


def _addresses(api, namespace, service):
    """Return {found, ready, other} of a service: its addresses that are ready, and the others.

    A service that is a name outside of the cluster has none, and may answer all the same.
    """
    folder = f"namespaces/{urllib.parse.quote(namespace, safe='')}"
    counts = _of_slices(api, folder, service) or _of_endpoints(api, folder, service)
    if counts["ready"]:
        return dict(counts, found=True)
    try:
        item = api.find(f"/api/v1/{folder}/services/{urllib.parse.quote(service, safe='')}")
    except ApiError as error:
        if error.status != "denied":
            raise
        return dict(counts, found=None)
    if ((item or {}).get("spec") or {}).get("type") == "ExternalName":
        return {"found": True, "ready": None, "other": None}
    return dict(counts, found=item is not None)


def _of_slices(api, folder, service):
    """Return the counts by the EndpointSlices, None where this release serves none."""
    query = {"labelSelector": f"kubernetes.io/service-name={service}"}
    counts = {"ready": 0, "other": 0}
    try:
        for item in api.items(f"/apis/discovery.k8s.io/v1/{folder}/endpointslices", query):
            for endpoint in dicts(item.get("endpoints")):
                is_ready = (endpoint.get("conditions") or {}).get("ready") is not False
                counts["ready" if is_ready else "other"] += len(endpoint.get("addresses") or [])
    except ApiError as error:
        if error.status == "absent":
            return None
        raise
    return counts


def _of_endpoints(api, folder, service):
    item = api.find(f"/api/v1/{folder}/endpoints/{urllib.parse.quote(service, safe='')}") or {}
    counts = {"ready": 0, "other": 0}
    for subset in dicts(item.get("subsets")):
        counts["ready"] += len(subset.get("addresses") or [])
        counts["other"] += len(subset.get("notReadyAddresses") or [])
    return counts


def _labels(api, namespace, by_namespace):
    """Return the labels of a namespace, None where they are not known."""
    if namespace not in by_namespace:
        try:
            path = f"/api/v1/namespaces/{urllib.parse.quote(namespace, safe='')}"
            labels = ((api.find(path) or {}).get("metadata") or {}).get("labels") or {}
            by_namespace[namespace] = dict(labels, **{NAME: namespace})
        except ApiError:
            by_namespace[namespace] = None
    return by_namespace[namespace]


def selects(selector, labels):
    """Return whether a selector of the API takes these labels, None where that is not known."""
    if labels is None or not isinstance(selector, dict):
        return None
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_meets(row, labels) for row in dicts(selector.get("matchExpressions")))


def _meets(row, labels):
    key, operator, values = row.get("key"), row.get("operator"), row.get("values") or []
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) is (operator == "Exists")
