# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PodDisruptionBudgets that let no pod go, with the pods that a drain would have to evict."""

import itertools
import urllib.parse

from ...kubeapi.client import ApiError, dicts
from ...shared.text import one_line

VERSIONS = ("v1", "v1beta1")  # the latter up to 1.20
MAX_BUDGETS, MAX_KEPT, MAX_PODS, MAX_NAMED, MAX_TEXT, MAX_MESSAGE = 2000, 30, 500, 5, 253, 200
MIRROR = "kubernetes.io/config.mirror"
ALWAYS = "AlwaysAllow"


def collect(api):
    """Return ({listed, items}, whether the list was cut)."""
    budgets = _budgets(api)
    tight = [item for item in budgets[:MAX_BUDGETS] if _is_tight(item)]
    items = [row for row in (_row(api, item) for item in tight[:MAX_KEPT]) if row is not None]
    cut = len(budgets) > MAX_BUDGETS or len(tight) > MAX_KEPT
    cut = cut or any(row["kept"] >= MAX_PODS for row in items)
    return {"listed": min(len(budgets), MAX_BUDGETS), "items": items}, cut


def _budgets(api):
    for version in VERSIONS:
        path = f"/apis/policy/{version}/poddisruptionbudgets"
        try:
            return list(itertools.islice(api.items(path), MAX_BUDGETS + 1))
        except ApiError as error:
            if error.status != "absent" or version == VERSIONS[-1]:
                raise
    return []


def _is_tight(item):
    """Return whether a budget allows no eviction, or does not say yet."""
    status = item.get("status") or {}
    if not _is_fresh(item) or _failure(status):
        return True
    if status.get("expectedPods") == 0:
        return False  # an empty selector takes no pod in v1beta1, and all in v1
    return (_count(status.get("disruptionsAllowed")) or 0) < 1


def _is_fresh(item):
    generation = _count((item.get("metadata") or {}).get("generation")) or 0
    return (_count((item.get("status") or {}).get("observedGeneration")) or 0) >= generation


def _row(api, item):
    """Return what is known of a budget; None where no pod is kept by it."""
    meta, status = item.get("metadata") or {}, item.get("status") or {}
    pods = _kept_pods(api, item)
    if not pods:
        return None
    nodes = sorted({_text((pod.get("spec") or {}).get("nodeName")) for pod in pods})
    return {
        "namespace": _text(meta.get("namespace")),
        "name": _text(meta.get("name")),
        "expected": _count(status.get("expectedPods")),
        "healthy": _count(status.get("currentHealthy")),
        "desired": _count(status.get("desiredHealthy")),
        "fresh": _is_fresh(item),
        "failure": _failure(status),
        "owner": _owner(meta),
        "kept": len(pods),
        "nodes": nodes[:MAX_NAMED],
        "node_count": len(nodes),
        "pods": [_named(pod) for pod in pods[:MAX_NAMED]],
    }


def _owner(meta):
    """Return the object that made a budget as {kind, group}; None where it names none."""
    owners = list(dicts(meta.get("ownerReferences")))
    if not owners:
        return None
    owner = next((row for row in owners if row.get("controller") is True), owners[0])
    group, slash, _version = str(owner.get("apiVersion") or "").partition("/")
    return {"kind": _text(owner.get("kind")), "group": _text(group if slash else "")}


def _named(pod):
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    return {"name": _text(meta.get("name")), "node": _text(spec.get("nodeName"))}


def _failure(status):
    """Return why the controller cannot count the pods of a budget, "" where it can."""
    for condition in dicts(status.get("conditions")):
        if condition.get("reason") == "SyncFailed":
            return one_line(str(condition.get("message") or "SyncFailed")[:MAX_MESSAGE])
    return ""


def _kept_pods(api, item):
    """Return the pods that a drain evicts and that the budget keeps."""
    selector = selector_of((item.get("spec") or {}).get("selector"))
    if selector is None:
        return []
    namespace = str((item.get("metadata") or {}).get("namespace") or "")
    path = f"/api/v1/namespaces/{urllib.parse.quote(namespace, safe='')}/pods"
    query = {"fieldSelector": "spec.nodeName!="}
    if selector:
        query["labelSelector"] = selector
    pods = (pod for pod in api.items(path, query) if _is_evicted(pod) and not _may_go(pod, item))
    return list(itertools.islice(pods, MAX_PODS))


def _is_evicted(pod):
    """Return whether a drain asks for the eviction of a pod, and budgets count for it."""
    meta, status = pod.get("metadata") or {}, pod.get("status") or {}
    owners = [owner.get("kind") for owner in dicts(meta.get("ownerReferences"))]
    if MIRROR in (meta.get("annotations") or {}) or "DaemonSet" in owners:
        return False
    return status.get("phase") == "Running" and not meta.get("deletionTimestamp")


def _may_go(pod, item):
    """Return whether the API server evicts a pod that is not ready, whatever the budget allows."""
    if _is_ready(pod):
        return False
    if (item.get("spec") or {}).get("unhealthyPodEvictionPolicy") == ALWAYS:
        return True
    status = item.get("status") or {}
    desired = _count(status.get("desiredHealthy")) or 0
    return _is_fresh(item) and 0 < desired <= (_count(status.get("currentHealthy")) or 0)


def _is_ready(pod):
    conditions = dicts((pod.get("status") or {}).get("conditions"))
    return any(row.get("type") == "Ready" and row.get("status") == "True" for row in conditions)


def selector_of(selector):
    """Return a selector of an object as the query of a list; None where it selects nothing."""
    if not isinstance(selector, dict):
        return None
    labels = sorted((selector.get("matchLabels") or {}).items())
    parts = [f"{key}={value}" for key, value in labels]
    return ",".join(parts + [_requirement(row) for row in dicts(selector.get("matchExpressions"))])


def _requirement(row):
    key, operator = row.get("key"), row.get("operator")
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    values = ",".join(str(value) for value in row.get("values") or [])
    return f"{key} {str(operator).lower()} ({values})"


def _count(value):
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _text(value):
    return one_line(str(value or "")[:MAX_TEXT])
