# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods that have a node, counted by node and by the state that kubectl shows.

They are rows of a table, which are small. Pods whose deletion was asked for are read again with
their metadata, on the nodes that have most of them.
"""

from ...kubeapi.client import LIST, TABLE, ApiError
from ...shared.text import one_line

MAX_PODS, MAX_NODES, MAX_STATES, MAX_ENDING, MAX_ON_NODE, MAX_NAMES = 50000, 5000, 40, 10, 2000, 3
PLACED = {
    "fieldSelector": "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
    "includeObject": "None",
}
TERMINATING = "Terminating"


def states(api, counts):
    """Fill {node: {state: pods}}; return why the rest is missing: cut, table, or None.

    A row has no UID by which a repeated one is known, so that a list that expires is an error.
    """
    for number, item in enumerate(api.items("/api/v1/pods", PLACED, accept=TABLE, restarts=0)):
        if number >= MAX_PODS:
            return "cut"
        if not isinstance(item.get("Status"), str) or not item.get("Node"):
            return "table"
        _count(counts, one_line(item["Node"], 253), one_line(item["Status"], 80))
    return None


def _count(counts, node, state):
    row = counts.setdefault(node, {})
    if state not in row and len(row) >= MAX_STATES:
        state = "other"
    row[state] = row.get(state, 0) + 1


def ending(api, name):
    """Return the pods of a node whose deletion was asked for, with the oldest time.

    deletionTimestamp is the end of the grace period.
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
    row["finalizers"] += bool(meta.get("finalizers"))
    row["since"] = min(row["since"] or meta["deletionTimestamp"], meta["deletionTimestamp"])
    if len(row["names"]) < MAX_NAMES:
        row["names"].append("{}/{}".format(meta.get("namespace"), meta.get("name")))


def collect(api, ended):
    """Return (data, truncated).

    `ended(error)` returns whether an error may cut the answer short instead of costing all of it.
    """
    counts, rows, is_cut = {}, [], False
    try:
        reason = states(api, counts)
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
    nodes = [{"node": name, "states": counts[name]} for name in sorted(counts)[:MAX_NODES]]
    return {"nodes": nodes, "ending": rows}, is_cut or len(counts) > MAX_NODES
