# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as a reader wants them: alike ones as one group, consequences below their cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..faults import graph
from ..models import result as model_result
from .phrases import finding_order

_ADDRESS = re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b")
ADDRESS_DOTS = 3
Order = tuple[int, bool, str, str, str]
GROUPS_SHOWN = 3  # of one fault, if its texts differ; all others are one more group


@dataclass(frozen=True)
class Group:
    """Findings of one fault that read the same.

    Attributes:
        first: the finding that is shown.
        hosts: of all findings, in their order; Nodes where no host is known.
        count: the number of findings.
        mixed: whether the texts of the others differ from that of the first.
        varied: whether they differ in addresses only.
    """

    first: model_result.Finding
    hosts: tuple[str, ...]
    count: int
    mixed: bool = False
    varied: bool = False


@dataclass(frozen=True)
class Entry:
    """A group at its place below the group that causes it.

    Attributes:
        depth: 0 for a group without a cause that was found.
        others: further codes that explain it, next to the group above.
        leads_to: the groups directly below it.
    """

    group: Group
    depth: int
    others: tuple[str, ...]
    leads_to: tuple[Group, ...]


def hosts_of(finding: model_result.Finding) -> tuple[str, ...]:
    """Return the hosts of a finding, else its Node."""
    if finding.everywhere:
        return finding.everywhere
    if finding.node:
        return (finding.node,)
    return ()


def summary_of(group: Group) -> str:
    """Return what all findings of a group say: without the name of the host that is shown."""
    text = group.first.summary
    if group.varied:
        text = without_addresses(text)
    if len(group.hosts) > 1:
        for name in hosts_of(group.first):
            text = re.sub(rf"(?: (?:of|on|at))? {re.escape(name)}(?![\w-])", "", text)
            text = re.sub(rf"^{re.escape(name)}(?![\w-])", "the host", text)
    return text


def group(findings: Iterable[model_result.Finding]) -> list[Group]:
    """Group findings that differ only in their host and its evidence, worst first."""
    alike: dict[object, list[model_result.Finding]] = {}
    for finding in sorted(findings, key=finding_order):
        alike.setdefault(_key(finding), []).append(finding)
    by_fault: dict[object, list[list[model_result.Finding]]] = {}
    for members in alike.values():
        first = members[0]
        fault = first.severity, first.code, bool(hosts_of(first))
        by_fault.setdefault(fault, []).append(members)
    return [item for members in by_fault.values() for item in _bounded(members)]


def _key(finding: model_result.Finding) -> object:
    names = hosts_of(finding)
    if not names:
        return finding.id, finding.summary
    return (
        finding.code,
        finding.severity,
        finding.component,
        _without(finding.summary, names),
        finding.because,
        _without(finding.remedy or "", names),
        finding.command,
    )


def _without(text: str, names: Iterable[str]) -> str:
    for name in names:
        text = text.replace(name, "\0")
    return without_addresses(text)


def without_addresses(text: str) -> str:
    """Return an error as it reads for any host: it may name the address of its own."""
    if text.count(".") < ADDRESS_DOTS:
        return text
    return _ADDRESS.sub("…", text)


def _bounded(members: list[list[model_result.Finding]]) -> Iterator[Group]:
    """Yield the groups of a fault; if there are many, the largest ones and one of the rest."""
    if len(members) <= GROUPS_SHOWN + 1 or not hosts_of(members[0][0]):
        yield from (_made(findings) for findings in members)
        return
    members = sorted(members, key=len, reverse=True)
    yield from (_made(findings) for findings in members[:GROUPS_SHOWN])
    rest = [finding for findings in members[GROUPS_SHOWN:] for finding in findings]
    yield _made(rest, mixed=True)


def _made(findings: Sequence[model_result.Finding], mixed: bool = False) -> Group:
    hosts = dict.fromkeys(host for finding in findings for host in hosts_of(finding))
    varied = not mixed and len({_unnamed(finding) for finding in findings}) > 1
    return Group(findings[0], tuple(hosts), len(findings), mixed, varied)


def _unnamed(finding: model_result.Finding) -> str:
    text = finding.summary
    for name in hosts_of(finding):
        text = text.replace(name, "\0")
    return text


def chain(groups: Sequence[Group]) -> list[Entry]:
    """Return groups with each consequence directly below its cause.

    A cause is as urgent as the worst of what it leads to.
    """
    parents = _parents(groups)
    children: dict[int | None, list[int]] = {}
    for index in range(len(groups)):
        children.setdefault(parents.get(index), []).append(index)
    urgency = _urgency(groups, children)
    for indexes in children.values():
        indexes.sort(key=lambda index: urgency[index])
    return list(_walk(groups, children, None, 0))


def _walk(
    groups: Sequence[Group],
    children: Mapping[int | None, Sequence[int]],
    parent: int | None,
    depth: int,
) -> Iterator[Entry]:
    for index in children.get(parent, ()):
        causes = set(groups[index].first.because)
        if parent is not None:
            causes.discard(groups[parent].first.code)
        leads_to = tuple(groups[child] for child in children.get(index, ()))
        yield Entry(groups[index], depth, tuple(sorted(causes)), leads_to)
        yield from _walk(groups, children, index, depth + 1)


def _parents(groups: Sequence[Group]) -> dict[int, int]:
    """Return the group that causes a group, by their indexes; no group is its own ancestor."""
    by_code: dict[str, list[int]] = {}
    for index, item in enumerate(groups):
        by_code.setdefault(item.first.code, []).append(index)
    parents: dict[int, int] = {}
    for index, item in enumerate(groups):
        named = [cause for code in item.first.because for cause in by_code.get(code, ())]
        candidates = [
            cause
            for cause in named
            if _explains(groups[cause], item) and not _is_above(parents, index, cause)
        ]
        if candidates:
            parents[index] = min(candidates, key=lambda cause: _nearness(groups[cause], item))
    return parents


def _explains(cause: Group, item: Group) -> bool:
    """Return whether the catalogue lets this component of the cause explain the group."""
    return cause is not item and graph.explains(
        cause.first.code, cause.first.component, item.first.code
    )


def _is_above(parents: Mapping[int, int], index: int, cause: int) -> bool:
    """Return whether the group is an ancestor of its alleged cause."""
    while cause in parents:
        if cause == index:
            return True
        cause = parents[cause]
    return cause == index


def _nearness(cause: Group, item: Group) -> tuple[bool, object]:
    """Return the sort key of a cause: one on the same host first."""
    apart = bool(cause.hosts) and bool(item.hosts) and set(cause.hosts).isdisjoint(item.hosts)
    return apart, finding_order(cause.first)


def _urgency(
    groups: Sequence[Group], children: Mapping[int | None, Sequence[int]]
) -> dict[int, Order]:
    """Return the sort key of each group: the first of itself and everything that it causes."""
    urgency: dict[int, Order] = {}

    def visit(index: int) -> Order:
        order = finding_order(groups[index].first)
        urgency[index] = min([order, *(visit(child) for child in children.get(index, ()))])
        return urgency[index]

    for root in children.get(None, ()):
        visit(root)
    return urgency
