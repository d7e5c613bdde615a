# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fault is, and what its predicate answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..models.cluster import Cluster, Host
from ..models.result import Missing, Proof


@dataclass(frozen=True)
class Hit:
    """One place where the fault is. severity and risk: only where they differ from the fault's own.

    Command: what cures it, where one line does.

    kernel: what hosts that share one kernel share of it; hits of which it is the same are one
    finding. rank: which of them that finding is.
    """

    summary: str
    evidence: tuple[Proof, ...]
    remedy: str
    host: str | None = None
    node: str | None = None
    component: str | None = None
    because: tuple[str, ...] = ()
    severity: str | None = None
    risk: int | None = None
    command: str | None = None
    kernel: tuple[Any, ...] | None = None
    rank: int = 0


class Outcome(NamedTuple):  # as many as verdicts
    """What a predicate says of one component or host.

    Hits make it present, else missing evidence makes it unknown.

    settled: the `kernel` of hits that this host's files answer for all hosts of its kernel.
    """

    hits: tuple[Hit, ...] = ()
    missing: tuple[Missing, ...] = ()
    applies: bool = True
    component: str | None = None
    host: str | None = None
    note: str = ""
    settled: tuple[tuple[Any, ...], ...] = ()

    @property
    def verdict(self) -> str:
        if self.hits:
            return "present"
        if not self.applies:
            return "not_applicable"
        return "unknown" if self.missing else "clear"


# What a component cannot run without: it ends while that is down.
NEEDS = {
    "kube-apiserver": ("etcd",),
    "kube-controller-manager": ("kube-apiserver", "etcd"),
    "kube-scheduler": ("kube-apiserver", "etcd"),
}


def depends(component: str | None, other: str | None) -> bool:
    """Tell whether a component cannot run without the other one."""
    return other in NEEDS.get(component or "", ())


@dataclass(frozen=True)
class Fault:
    """One cause that evidence can prove.

    The catalogue's page and the README's table are generated from these.

    scope node: node(host, document) sees one host's evidence while it is read; scope cluster:
    cluster(cluster) sees all hosts' extracts and the API's answers. needs: the collectors of the
    node, cluster_needs: those of the cluster. risk: of the remedy (0 observe ... 4 possible loss).
    tier: core, or deep where a collector of that tier is needed. sooner: of a deep one, present is
    said in a plain run too: its collectors follow where a limit is used up (spec.follows).
    explained_by: (code, component or None for any) of the faults that cause this one, named in its
    finding's because. present: whether only the present state of the API clears it, so that it is
    unknown where nothing is written (KM115).
    """

    code: str
    title: str
    severity: str
    applies: str
    explanation: str
    remedy: str
    risk: int
    needs: tuple[str, ...] = ()
    cluster_needs: tuple[str, ...] = ()
    node: Callable[[Host, Mapping[str, Any]], Iterable[Outcome]] | None = None
    cluster: Callable[[Cluster], Iterable[Outcome]] | None = None
    references: tuple[str, ...] = ()
    tier: str = "core"
    sooner: bool = False
    explained_by: frozenset[tuple[str, str | None]] = frozenset()
    present: bool = False

    @property
    def scope(self) -> str:
        return "node" if self.node else "cluster"
