# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of kubelets for a certificate that were not answered with one.

Of a request the evidence has the node's name, and neither the request itself nor its groups.
"""

import base64
import itertools
import re

from ...kubeapi.client import ApiError, dicts

PATHS = tuple(
    f"/apis/certificates.k8s.io/{version}/certificatesigningrequests"
    for version in ("v1", "v1beta1")  # the latter up to 1.21
)
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
MAX_READ, MAX_KEPT, MAX_TEXT = 2000, 200, 253
# The common name of a kubelet's certificate.
USER = b"system:node:"
LONG = 0x81  # precedes a length of one byte over 127, in DER
NAME = re.compile(r"^[A-Za-z0-9._-]{1,253}\Z")


def unissued(api, signer=CLIENT):
    """Return [{name, node, user, created, state}]: the newest of each node, the newest first.

    state: waiting, denied, failed or approved, which then is not signed. The result is None where
    they are denied or of an unexpected shape, and where there are too many to tell of a node that
    it has none.
    """
    query = {"fieldSelector": "spec.signerName=" + signer}
    for path in PATHS:
        try:
            items = list(itertools.islice(api.items(path, query), MAX_READ + 1))
        except ApiError as error:
            if error.status == "absent":
                continue
            return None
        if not all(map(_is_sound, items)):
            return None
        rows = _newest(items)
        if len(items) > MAX_READ or len(rows) > MAX_KEPT:
            return None
        return rows
    return None


def _is_sound(item):
    """Tell whether the parts of a request that are read have the types of the API."""
    parts = [item.get(name) or {} for name in ("metadata", "spec", "status")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    conditions = dicts(parts[-1].get("conditions"))
    return all(isinstance(row.get("type"), (str, type(None))) for row in conditions)


def _newest(items):
    """Return the newest request of each node, of those that were not issued."""
    rows = [request_of(item) for item in items if not _is_issued(item)]
    rows.sort(key=lambda row: row["created"] or "")
    by_node = {row["node"]: row for row in rows if row["node"]}
    return sorted(by_node.values(), key=lambda row: row["created"] or "", reverse=True)


def request_of(item):
    """Return what identifies a request, and its state."""
    meta, spec = item.get("metadata") or {}, item.get("spec") or {}
    return {
        "name": _text(meta.get("name")),
        "node": node_of(spec.get("request")),
        "user": _text(spec.get("username")),
        "created": _text(meta.get("creationTimestamp")),
        "state": _state(item),
    }


def _text(value):
    return str(value or "")[:MAX_TEXT] or None


def _is_issued(item):
    return bool((item.get("status") or {}).get("certificate"))


def _state(item):
    kinds = {row.get("type") for row in dicts((item.get("status") or {}).get("conditions"))}
    for kind in ("Denied", "Failed", "Approved"):
        if kind in kinds:
            return kind.lower()
    return "waiting"


def node_of(request):
    """Return the name of the node in the subject of a request (PEM in base64), or None."""
    try:
        pem = base64.b64decode(request or "")
        body = b"".join(line for line in pem.splitlines() if not line.startswith(b"-----"))
        name = _common_name(base64.b64decode(body))
    except (TypeError, ValueError):
        return None
    if name and NAME.match(name):
        return name
    return None


def _common_name(der):
    """Return the name in the user of a node, as the length before it tells; "" without one."""
    begin = der.find(USER)
    if begin < 2:
        return ""
    length = der[begin - 1]
    if length > LONG - 2 and der[begin - 2] != LONG:
        return ""
    return der[begin + len(USER) : begin + length].decode("ascii", "replace")
