# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""API groups that another server than the API server serves, and which of them fail."""

import itertools

from ...kubeapi.client import ApiError, dicts
from ...shared.text import one_line

VERSIONS = ("v1", "v1beta1")
MAX_SERVICES, MAX_KEPT, MAX_TEXT, MAX_MESSAGE = 1000, 50, 253, 500


def collect(api):
    """Return ({listed, items}, whether the list was cut)."""
    services = _services(api)
    served = [item for item in services if _is_served_elsewhere(item)]
    rows = [row for row in map(_row, served[:MAX_SERVICES]) if row is not None]
    cut = len(services) > MAX_SERVICES or len(rows) > MAX_KEPT
    return {"listed": len(served), "items": rows[:MAX_KEPT]}, cut


def _services(api):
    for version in VERSIONS:
        path = f"/apis/apiregistration.k8s.io/{version}/apiservices"
        try:
            return list(itertools.islice(api.items(path), MAX_SERVICES + 1))
        except ApiError as error:
            if error.status != "absent" or version == VERSIONS[-1]:
                raise
    return []


def _is_served_elsewhere(item):
    return isinstance((item.get("spec") or {}).get("service"), dict)


def _row(item):
    """Return what is known of a group that is not available, None for another one."""
    for condition in dicts((item.get("status") or {}).get("conditions")):
        if condition.get("type") == "Available" and condition.get("status") == "False":
            service = item["spec"]["service"]
            return {
                "name": _text((item.get("metadata") or {}).get("name")),
                "namespace": _text(service.get("namespace")),
                "service": _text(service.get("name")),
                "reason": _text(condition.get("reason")),
                "message": one_line(str(condition.get("message") or "")[:MAX_MESSAGE]),
                "since": _text(condition.get("lastTransitionTime")) or None,
            }
    return None


def _text(value):
    return one_line(str(value or "")[:MAX_TEXT])
