# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock objects of kube-system, of every kind, as one API server shows them."""

import json
import re

from ...kubeapi import client
from ...kubeapi.client import ApiError, Deadline

SYSTEM = "/api/v1/namespaces/kube-system"
SERVER_SECONDS = 8
BEAT = "Beat"  # no kind of the API
LEADER = "control-plane.alpha.kubernetes.io/leader"


def uid_of(api, seconds=None):
    """Return the UID of namespace kube-system, which identifies a cluster whatever its name is."""
    return (api.get(SYSTEM, accept=client.ONE, seconds=seconds).get("metadata") or {}).get("uid")


def read(address, api):
    """Return the lock objects of kube-system through one API server.

    A kind that may not be read adds an error, and the other kinds are kept.

    beat: when the last of the API servers renewed its own lease (1.26 and newer); clock: the
    time by this server's clock.
    """
    budget = Deadline(SERVER_SECONDS, api.deadline)
    uids, locks, errors = [], [], []
    _take(uids, _uids(api, budget), errors)
    _take(locks, _leases(api), errors)
    _take(locks, _annotated(api), errors)
    objects = {(lock["kind"], lock["name"]): lock for lock in locks if lock["kind"] != BEAT}
    beats = [str(lock["renew_time"] or "")[:40] for lock in locks if lock["kind"] == BEAT]
    return {
        "address": address,
        "error": "; ".join(errors) or None,
        "kube_system_uid": uids[0] if uids else None,
        "objects": [objects[key] for key in sorted(objects)],
        "beat": max(beats, default=None),
        "clock": api.clock,
    }


def _take(rows, answers, errors):
    """Add the objects of one kind to the rows, up to a refusal, which is added to the errors."""
    try:
        for answer in answers:
            rows.append(answer)
    except ApiError as error:
        if error.code is None or error.status not in ("denied", "absent"):
            raise
        errors.append(str(error))


def _uids(api, budget):
    """Yield the UID of namespace kube-system."""
    yield uid_of(api, budget.remaining())


def _leases(api):
    """Yield every Lease of kube-system.

    The API servers' own identities are no locks, but show that the API accepts writes.
    """
    try:
        group = api.get("/apis/coordination.k8s.io", seconds=SERVER_SECONDS)
    except ApiError as error:
        if error.status == "absent":
            return
        raise
    version = (group.get("preferredVersion") or {}).get("groupVersion") or "coordination.k8s.io/v1"
    for item in api.items(f"/apis/{version}/namespaces/kube-system/leases"):
        meta, spec = item.get("metadata") or {}, item.get("spec") or {}
        if _is_of_server(meta):
            yield {"kind": BEAT, "renew_time": spec.get("renewTime")}
            continue
        yield _lock(
            "Lease",
            meta,
            spec.get("holderIdentity"),
            spec.get("renewTime"),
            spec.get("leaseTransitions"),
            spec.get("leaseDurationSeconds"),
        )


def _is_of_server(meta):
    """Return whether a Lease is the identity of an API server."""
    labels = meta.get("labels") or {}
    identity = labels.get("apiserver.kubernetes.io/identity") or labels.get("k8s.io/component")
    if identity == "kube-apiserver":
        return True
    return bool(re.match(r"(kube-)?apiserver-", meta.get("name") or ""))


def _annotated(api):
    """Yield Endpoints and ConfigMaps that carry the annotation of the older lock kinds.

    It reads their metadata alone.
    """
    for kind in ("Endpoints", "ConfigMap"):
        for item in api.items(
            "{}/{}".format(SYSTEM, "endpoints" if kind == "Endpoints" else "configmaps"),
            accept=client.LIST,
        ):
            meta = item.get("metadata") or {}
            try:
                record = json.loads((meta.get("annotations") or {}).get(LEADER) or "null")
            except ValueError:
                record = {}
            if isinstance(record, dict):
                yield _lock(
                    kind,
                    meta,
                    record.get("holderIdentity"),
                    record.get("renewTime"),
                    record.get("leaderTransitions"),
                    record.get("leaseDurationSeconds"),
                )


def _lock(kind, meta, holder, renewed, transitions, seconds):
    return {
        "kind": kind,
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "holder": holder,
        "renew_time": renewed,
        "transitions": transitions,
        "lease_duration_s": seconds,
    }


def differ(servers):
    """Return whether two API servers name different holders.

    They may differ only because one was asked a moment before the other.
    """
    views = [
        {(lock["kind"], lock["name"]): lock["holder"] for lock in server["objects"]}
        for server in servers
        if server["objects"]
    ]
    return any(view != views[0] for view in views[1:])
