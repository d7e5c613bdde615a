# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Define faults, the results of their checks, and the decorators that register a check.

A check is a function below a decorator that states the fault's metadata. The fault's explanation
is docs/faults/CODE.md, written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from ..models.cluster import Cluster, Host
from ..models.result import EvidenceRef, Missing


@dataclass(frozen=True)
class Detection:
    """One place where the fault is present.

    severity and risk are set only where they differ from the fault's own. command is the one line
    that fixes it, if there is one. kernel identifies what hosts with the same kernel share: hits
    with the same kernel become one finding, the one with the highest rank.
    """

    summary: str
    evidence: tuple[EvidenceRef, ...]
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


class CheckResult(NamedTuple):
    """The result of a check for one component or host.

    Hits make the fault present; otherwise missing evidence makes it unknown. settled lists the
    `kernel` of hits that this host's files decide for all hosts with its kernel.
    """

    hits: tuple[Detection, ...] = ()
    missing: tuple[Missing, ...] = ()
    applies: bool = True
    component: str | None = None
    host: str | None = None
    note: str = ""
    settled: tuple[tuple[Any, ...], ...] = ()

    @property
    def verdict(self) -> str:
        """Return the verdict that the report gives this result."""
        if self.hits:
            return "present"
        if not self.applies:
            return "not_applicable"
        return "unknown" if self.missing else "clear"


CLEAR = CheckResult()
CORE, UPGRADE = "core", "upgrade"  # tiers


def present(*hits: Detection, **fields: Any) -> CheckResult:
    """Return a result that reports the fault with these hits."""
    return CheckResult(hits, **fields)


def unknown(*missing: Missing, **fields: Any) -> CheckResult:
    """Return a result that names the evidence without which nothing can be decided."""
    return CheckResult((), missing, **fields)


def not_applicable(note: str, **fields: Any) -> CheckResult:
    """Return a result for a host or component that the fault cannot occur on."""
    return CheckResult(applies=False, note=note, **fields)


def without_kubernetes(component: str | None = None) -> CheckResult:
    """Return the result of a cluster check for hosts on which no Kubernetes was found."""
    return not_applicable("no Kubernetes found on these hosts", component=component)


# The components that each component needs; it exits while they are down.
NEEDS = {
    "kube-apiserver": ("etcd",),
    "kube-controller-manager": ("kube-apiserver", "etcd"),
    "kube-scheduler": ("kube-apiserver", "etcd"),
}


def depends(component: str | None, other: str | None) -> bool:
    """Tell whether a component cannot run without the other one."""
    return other in NEEDS.get(component or "", ())


NodeCheck = Callable[[Host, Mapping[str, Any]], Iterable[CheckResult]]
ClusterCheck = Callable[[Cluster], Iterable[CheckResult]]
AnyNodeCheck = TypeVar("AnyNodeCheck", bound=NodeCheck)
AnyClusterCheck = TypeVar("AnyClusterCheck", bound=ClusterCheck)
Causes = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class Fault:
    """One cause that evidence can show, with its check.

    A node check reads the evidence of one host, a cluster check the extracts of all hosts and the
    answers of the API.

    Attributes:
        needs, cluster_needs: the collectors of a host and of the API that the check reads.
        risk: of its repair, 0 (observe) to 4 (possible loss).
        tier: core, or deep if a collector of that tier is needed; upgrade if it is about a later
            release, so that only a run that names its code evaluates it.
        sooner: a deep fault that a plain audit reports too where a limit is used up or a collector
            is slow; its collectors run then in the same audit (`follows` in their registry).
        component: what its results concern where the check does not name another one.
        explained_by: the faults that can cause this one; its finding names them (see causes).
        same_node: whether only a finding about the same Node, or about no Node, explains it.
        current_only: only the current state of the API clears it. It is unknown, not clear, while
            the cluster accepts no writes (KM115).
    """

    code: str
    title: str
    severity: str
    applies: str
    risk: int = 0
    needs: tuple[str, ...] = ()
    cluster_needs: tuple[str, ...] = ()
    node: NodeCheck | None = None
    cluster: ClusterCheck | None = None
    tier: str = "core"
    sooner: bool = False
    explained_by: Causes = frozenset()
    same_node: bool = False
    current_only: bool = False
    component: str | None = None

    @property
    def scope(self) -> str:
        """Return whether the fault is evaluated per node or per cluster."""
        return "node" if self.node else "cluster"


REGISTRY: list[Fault] = []


def node_check(code: str, title: str, **metadata: Any) -> Callable[[AnyNodeCheck], AnyNodeCheck]:
    """Register a check that reads the evidence of one host; metadata are fields of Fault."""

    def register(check: AnyNodeCheck) -> AnyNodeCheck:
        REGISTRY.append(Fault(code, title, node=check, **metadata))
        return check

    return register


def cluster_check(
    code: str, title: str, **metadata: Any
) -> Callable[[AnyClusterCheck], AnyClusterCheck]:
    """Register a check that reads a whole cluster; metadata are fields of Fault."""

    def register(check: AnyClusterCheck) -> AnyClusterCheck:
        REGISTRY.append(Fault(code, title, cluster=check, **metadata))
        return check

    return register


def causes(*codes: str, component: str | None = None) -> Causes:
    """Return faults that can cause another one, if they are those of this component."""
    return frozenset((code, component) for code in codes)


def catalogue() -> dict[str, Fault]:
    """Return every registered fault by its code, in the order of the codes."""
    faults: dict[str, Fault] = {}
    for fault in REGISTRY:
        if fault.code in faults:
            raise ValueError(f"fault code {fault.code} is used twice")
        faults[fault.code] = fault
    return dict(sorted(faults.items()))
