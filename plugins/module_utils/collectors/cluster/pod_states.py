# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods that have a node, counted by node and by the state that kubectl shows.

They are rows of a table, which are small. Pods whose deletion was asked for are read again with
their metadata, on the nodes that have most of them.

A table has no owners: the name of a pod without what its controller, or the kubelet of a static
pod, adds to it stands for its workload.
"""

from ...kubeapi.client import LIST, TABLE, ApiError
from ...shared.pod_states import CRASHES
from ...shared.text import one_line

MAX_PODS, MAX_NODES, MAX_STATES, MAX_ENDING, MAX_ON_NODE, MAX_NAMES = 50000, 5000, 40, 10, 2000, 3
PLACED = {
    "fieldSelector": "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
    "includeObject": "None",
}
TERMINATING, RUNNING = "Terminating", "Running"
MAX_WORKLOADS = 20000
# What Kubernetes generates the end of a name of, which has this length.
GENERATED, ADDED = frozenset("bcdfghjklmnpqrstvwxz2456789"), 5


class States:
    """The pods of each node by their state, and the workloads that crash and that run there."""

    def __init__(self):
        self.counts, self.crashing, self.running = {}, {}, {}

    def read(self, api):
        """Read all pods; return why the rest is missing: cut, table, or None.

        A row has no UID by which a repeated one is known, so that a list that expires is an error.
        """
        for number, item in enumerate(api.items("/api/v1/pods", PLACED, accept=TABLE, restarts=0)):
            if number >= MAX_PODS:
                return "cut"
            if not isinstance(item.get("Status"), str) or not item.get("Node"):
                return "table"
            self._count(one_line(item["Node"], 253), one_line(item["Status"], 80), item.get("Name"))
        return None

    def _count(self, node, state, name):
        row = self.counts.setdefault(node, {})
        if state not in row and len(row) >= MAX_STATES:
            state = "other"
        row[state] = row.get(state, 0) + 1
        workload = workload_of(str(name), node)
        if state in CRASHES and workload:
            self.crashing.setdefault(node, set()).add(workload)
        elif state == RUNNING and (workload in self.running or len(self.running) < MAX_WORKLOADS):
            self.running.setdefault(workload, set()).add(node)

    def sent(self):
        """Return [{node, states, elsewhere}] of the nodes.

        elsewhere: of the workloads that crash on a node, how many run on another one.
        """
        return [
            {"node": node, "states": self.counts[node], "elsewhere": self._elsewhere(node)}
            for node in sorted(self.counts)[:MAX_NODES]
        ]

    def _elsewhere(self, node):
        crashing = self.crashing.get(node, ())
        return sum(bool(self.running.get(workload, set()) - {node}) for workload in crashing)


def workload_of(name, node):
    """Return the name of the workload that makes such a pod, "" where it seems to stand alone."""
    if name.endswith("-" + node):
        return name[: -len(node) - 1]  # a static pod
    workload, _dash, last = name.rpartition("-")
    if last.isdigit() or (len(last) == ADDED and GENERATED.issuperset(last)):
        return workload
    return ""


def ending(api, name):
    """Return the pods of a node whose deletion was asked for, with the oldest time.

    deletionTimestamp is the end of the grace period. Of pods with a finalizer it says nothing:
    these are only counted.
    """
    row = {"node": name, "pods": 0, "since": None, "names": [], "finalizers": 0}
    query = {"fieldSelector": "spec.nodeName=" + name}
    for number, item in enumerate(api.items("/api/v1/pods", query, accept=LIST, unmanaged=True)):
        if number >= MAX_ON_NODE:
            break
        meta = item.get("metadata") or {}
        if meta.get("deletionTimestamp"):
            _add_ending(row, meta)
    return row


def _add_ending(row, meta):
    row["pods"] += 1
    if meta.get("finalizers"):
        row["finalizers"] += 1
        return
    row["since"] = min(row["since"] or meta["deletionTimestamp"], meta["deletionTimestamp"])
    if len(row["names"]) < MAX_NAMES:
        row["names"].append("{}/{}".format(meta.get("namespace"), meta.get("name")))


def collect(api, ended):
    """Return (data, truncated).

    `ended(error)` returns whether an error may cut the answer short instead of costing all of it.
    """
    states, rows, is_cut = States(), [], False
    counts = states.counts
    try:
        reason = states.read(api)
        if reason == "table":
            raise ApiError("error", "the API server makes no table of pods")
        is_cut = reason is not None
        late = {name: row[TERMINATING] for name, row in counts.items() if TERMINATING in row}
        names = sorted(late, key=lambda name: (-late[name], name))
        is_cut = is_cut or len(names) > MAX_ENDING
        rows += [ending(api, name) for name in names[:MAX_ENDING]]
    except Exception as error:  # pylint: disable=broad-except
        if not ended(error):
            raise
        is_cut = True
    return {"nodes": states.sent(), "ending": rows}, is_cut or len(counts) > MAX_NODES
