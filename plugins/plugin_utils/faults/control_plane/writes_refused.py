# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM115, a cluster that accepts no writes, so that everything in its API stands still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...models import writes
from ...models.cluster import Cluster
from ...models.result import Proof
from ..base import Fault, Hit, Outcome

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
        "bring back as many members as a majority needs: what is found of their hosts, kubelets and"
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

# What only the present state of the API clears: unknown, not clear, while nothing is written.
PRESENT = frozenset(
    (
        "KM202",
        "KM203",
        "KM204",
        "KM511",
        "KM512",
        "KM513",
        "KM519",
        "KM523",
        "KM525",
        *(f"KM{number}" for number in range(210, 226)),
    )
)
# Who cannot renew, bind, create or report, because that is a write.
EXPLAINED = frozenset(
    (
        "KM114",
        "KM202",
        "KM203",
        "KM204",
        "KM217",
        "KM219",
        "KM220",
        "KM221",
        "KM222",
        "KM223",
        "KM225",
        "KM511",
        "KM512",
        "KM525",
    )
)


def standing(fault: Fault) -> Fault:
    """The fault, with what a cluster that accepts no writes is to it."""
    because = (
        fault.explained_by | {(writes.CODE, None)}
        if fault.code in EXPLAINED
        else fault.explained_by
    )
    return replace(fault, explained_by=because, present=fault.present or fault.code in PRESENT)


def refused(cluster: Cluster) -> Iterator[Outcome]:
    """KM115: etcd says that it takes no writes, or every lease of nodes and components has ended
    although those who renew it run.
    """
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    found = writes.state(cluster)
    if found.refused is not True:
        yield Outcome((), found.missing, note=found.note)
        return
    since = (
        f" since {found.since:%Y-%m-%dT%H:%M:%SZ}, when the last lease was renewed"
        if found.since is not None
        else ""
    )
    told = (
        found.told
        or "every lease of nodes and components has ended, although kubelets that renew one run"
    )
    proofs = found.proofs or (Proof("api", cluster.api_host, text=told),)
    yield Outcome(
        (Hit(f"the cluster accepts no writes{since}: {told}", proofs, REMEDIES[found.cause]),)
    )


FAULTS = (
    Fault(
        code=writes.CODE,
        title="Cluster accepts no writes",
        severity="critical",
        applies="every cluster",
        explanation=(
            "Nothing can be created, changed or deleted, while reads may work. Leases of nodes and"
            " locks of components are writes too: all of them stop at once, so that nodes and"
            " leaders look as they were, and no controller can say that one is gone. Judged by etcd"
            " itself (the alarms NOSPACE and CORRUPT, members that know no leader, none that"
            " answers), and by the age of every lease: where all are older than their own duration"
            " although kubelets run, nothing was written. Ages are taken by the clock of the host"
            " that read them, and are unknown where it differs from that of the API servers by more"
            " than 10 s (KM526). What only the present state of the API could clear is unknown"
            " meanwhile, and no step is taken that needs a write."
        ),
        remedy=(
            "Repair etcd first: space, quorum, data. No step here does it; no repair that needs a"
            " write starts before that."
        ),
        risk=0,
        needs=("kubelet", "manifests", "instances", "etcd"),
        cluster_needs=("nodes", "locks"),
        cluster=refused,
        references=(
            "https://etcd.io/docs/latest/op-guide/maintenance/#space-quota",
            "https://etcd.io/docs/latest/op-guide/recovery/",
        ),
        explained_by=frozenset([("KM114", "etcd"), ("KM107", "etcd")]),
    ),
)
