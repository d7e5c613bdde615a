# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM115: check that the cluster accepts writes; without them its API holds only the past."""

from __future__ import annotations

from collections.abc import Iterator

from ...models import writes
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ..base import (
    CheckResult,
    Detection,
    causes,
    cluster_check,
    present,
    unknown,
    without_kubernetes,
)

REMEDIES = {
    writes.NOSPACE: (
        "etcd refuses every write until its database is below the quota and the alarm is taken"
        " back: etcdctl compact to the current revision, etcdctl defrag of one member after"
        " another, then etcdctl alarm disarm. Find what filled it (events, secrets, leases), or the"
        " alarm comes back; --quota-backend-bytes raises the quota"
    ),
    writes.CORRUPT: (
        "do not disarm this alarm: the data of the members differ. Find the member whose data are"
        " wrong (etcdctl endpoint hashkv --cluster), remove it, empty its data directory and add it"
        " again; without a majority that agrees, restore a snapshot"
    ),
    writes.NO_QUORUM: (
        "restore as many members as a majority needs: what is found of their hosts, kubelets and"
        " manifests says why they are down. Remove no member, and start none with"
        " --force-new-cluster, while the others can come back"
    ),
    writes.NO_ETCD: (
        "bring etcd back: what is found of its manifests, kubelets and hosts says why it is down"
        " (crictl ps -a --name etcd, crictl logs)"
    ),
    "": (
        "see what the API servers and etcd say of writes (crictl logs of kube-apiserver and etcd:"
        " no space, no leader, timeouts, a full disk, a webhook that refuses every lease), and"
        " whether those who write are let in at all (certificates that have expired)"
    ),
}


@cluster_check(
    "KM115",
    "Cluster accepts no writes",
    severity="critical",
    applies="every cluster",
    needs=("kubelet", "manifests", "instances", "etcd"),
    cluster_needs=("nodes", "locks"),
    explained_by=causes("KM120", "KM124", "KM125")
    | causes("KM107", "KM114", "KM116", component="etcd")
    | causes("KM140", "KM142", "KM146", "KM150"),
)
def refused(cluster: Cluster) -> Iterator[CheckResult]:
    """KM115: report that etcd accepts no writes, or that all leases ended although kubelets run."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    state = writes.state(cluster)
    if state.refused is not True:
        yield unknown(*state.missing, note=state.note)
        return
    since = ""
    if state.since is not None:
        since = f" since {state.since:%Y-%m-%dT%H:%M:%SZ}, when the last lease was renewed"
    reason = (
        state.told
        or "every lease of nodes and components has ended, although kubelets that renew one run"
    )
    proofs = state.proofs or (EvidenceRef("api", cluster.api_host, text=reason),)
    summary = f"the cluster accepts no writes{since}: {reason}"
    yield present(Detection(summary, proofs, REMEDIES[state.cause]))
