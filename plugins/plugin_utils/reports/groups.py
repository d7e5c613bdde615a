# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as a reader wants them: alike ones as one group, consequences below their cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..faults import graph
from ..models import result as model_result
from .phrases import Order, finding_order

_ADDRESS = re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b")
ADDRESS_DOTS = 3
# A name is a word of its own: w1 is no part of w10, of w1.example and of db-w1.
_BEFORE, _AFTER = r"(?<![\w.-])", r"(?![\w-]|\.\w)"
PLACEHOLDER = "HOST"  # in a text that all hosts of a group share
FixLabel = Callable[[model_result.Finding], str]
GROUPS_SHOWN = 3  # of one fault, if its texts differ; all others are one more group


@dataclass(frozen=True)
class Group:
    """Findings of one fault that read the same, and are fixed the same way.

    Attributes:
        first: the finding that is shown.
        hosts: of all findings, in their order; Nodes where no host is known.
        count: the number of findings.
        mixed: whether the texts of the others differ from that of the first.
        varied: whether they differ in addresses only.
        other_fixes: whether the remedies of the others differ.
        other_evidence: whether the evidence of the others says something else, or elsewhere.
        since: when the first of them was found; empty if no earlier run tells.
    """

    first: model_result.Finding
    hosts: tuple[str, ...]
    count: int
    mixed: bool = False
    varied: bool = False
    other_fixes: bool = False
    other_evidence: bool = False
    since: str = ""


@dataclass(frozen=True)
class Cause:
    """A further cause of an entry.

    Attributes:
        hosts: where it is, if the entry above has the same code and is on other hosts.
    """

    code: str
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A group at its place below the group that causes it.

    Attributes:
        depth: 0 for a group without a cause that was found.
        others: further causes that explain it, next to the group above.
        leads_to: the groups directly below it.
    """

    group: Group
    depth: int
    others: tuple[Cause, ...]
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
    if group.mixed:
        return _as_example(group, text)
    if group.varied:
        text = without_addresses(text)
    if len(group.hosts) > 1:
        for name in _names(group.first, text):
            word = re.escape(name)
            text = re.sub(rf"(?: (?:of|on|at))? {word}(?!'s){_AFTER}", "", text)
            text = re.sub(rf"^{word}{_AFTER}", "the host", text)
        text = _without_names(group.first, text, PLACEHOLDER)
    return text


def remedy_of(group: Group) -> str:
    """Return the remedy of a group, which names no host where it is that of several."""
    text = group.first.remedy or ""
    if group.other_fixes:
        return _as_example(group, text)
    if len(group.hosts) > 1:
        return _without_names(group.first, text, PLACEHOLDER)
    return text


def since_of(group: Group, started: str) -> str:
    """Return since when a group is there, if earlier runs found it; empty otherwise."""
    if not group.since or group.since >= started:
        return ""
    longest = " at the longest" if group.count > 1 else ""
    return f"present since {group.since}{longest}"


def differences(group: Group) -> str:
    """Return which texts of a group are not shown; empty if one stands for all."""
    kinds = []
    if group.mixed:
        kinds.append("texts")
    if group.other_fixes:
        kinds.append("fixes")
    return " and ".join(kinds)


def _as_example(group: Group, text: str) -> str:
    names = hosts_of(group.first)
    if not names or not text:
        return text
    return f"for example {names[0]}: {text}"


def group(
    findings: Iterable[model_result.Finding], fix_label: FixLabel | None = None
) -> list[Group]:
    """Group findings that differ only in their host and its evidence, worst first.

    The label says who can do the remedy and at which risk; another one is another group.
    """
    by_fault: dict[object, dict[object, list[model_result.Finding]]] = {}
    for finding in sorted(findings, key=finding_order):
        fault, text = _key(finding, fix_label)
        alike = by_fault.setdefault(fault, {})
        alike.setdefault(text, []).append(finding)
    return [item for alike in by_fault.values() for item in _bounded(list(alike.values()))]


def _key(finding: model_result.Finding, fix_label: FixLabel | None) -> tuple[object, object]:
    """Return (what findings of one entry always share, what they share if they are not mixed)."""
    names = hosts_of(finding)
    label = ""
    if fix_label is not None:
        label = fix_label(finding)
    fault = (
        finding.severity,
        finding.waived,
        finding.code,
        bool(names),
        finding.component,
        finding.because,
        finding.risk,
        finding.command,
        label,
    )
    if not names:
        return fault, (finding.id, finding.summary, finding.remedy)
    return fault, (
        without_addresses(_without_names(finding, finding.summary)),
        _without_names(finding, finding.remedy or ""),
    )


def without(names: Iterable[str], text: str, instead: str = PLACEHOLDER) -> str:
    """Return a text with another word in place of these names, the longest first."""
    for name in sorted(filter(None, names), key=lambda name: -len(name)):
        text = re.sub(f"{_BEFORE}{re.escape(name)}{_AFTER}", instead, text)
    return text


def _names(finding: model_result.Finding, text: str) -> list[str]:
    """Return the names of a finding's place that a text has, the longest first."""
    names = {*hosts_of(finding), finding.node or ""}
    return sorted((name for name in names if name and name in text), key=lambda name: -len(name))


def _without_names(finding: model_result.Finding, text: str, instead: str = "\0") -> str:
    return without(_names(finding, text), text, instead)


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
    yield _made(rest)


def _made(findings: Sequence[model_result.Finding]) -> Group:
    hosts = dict.fromkeys(host for finding in findings for host in hosts_of(finding))
    texts = {_without_names(finding, finding.summary) for finding in findings}
    mixed = len(set(map(without_addresses, texts))) > 1
    fixes = {_without_names(finding, finding.remedy or "") for finding in findings}
    proofs = {_evidence(finding) for finding in findings}
    return Group(
        findings[0],
        tuple(hosts),
        len(findings),
        mixed,
        len(texts) > 1 and not mixed,
        len(fixes) > 1,
        len(proofs) > 1,
        min((finding.since for finding in findings if finding.since), default=""),
    )


def _evidence(finding: model_result.Finding) -> tuple[object, ...]:
    """Return what the evidence of a finding says, and in which file or object of its host."""

    def unnamed(text: str | None) -> str:
        return _without_names(finding, text or "")

    return tuple(
        (proof.kind, unnamed(proof.path), unnamed(proof.object), unnamed(proof.text), proof.argv)
        for proof in finding.evidence
    )


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
        leads_to = tuple(groups[child] for child in children.get(index, ()))
        yield Entry(groups[index], depth, _others(groups, index, parent), leads_to)
        yield from _walk(groups, children, index, depth + 1)


def _others(groups: Sequence[Group], index: int, parent: int | None) -> tuple[Cause, ...]:
    """Return the causes of a group but the one above it.

    Findings with the code of that one, with another text on other hosts, are causes too.
    """
    item = groups[index]
    causes = [Cause(code) for code in sorted(set(item.first.because))]
    if parent is None:
        return tuple(causes)
    above = groups[parent]
    further = [cause for cause in causes if cause.code != above.first.code]
    hosts = _uncovered(groups, item, above)
    if hosts:
        further.insert(0, Cause(above.first.code, hosts))
    return tuple(further)


def _uncovered(groups: Sequence[Group], item: Group, above: Group) -> tuple[str, ...]:
    """Return hosts of other causes with the code of the one above, as far as they concern it."""
    hosts: dict[str, None] = {}
    for cause in groups:
        if cause.first.code == above.first.code and _explains(cause, item):
            hosts.update(dict.fromkeys(cause.hosts))
    concerned = item.hosts or tuple(hosts)
    return tuple(host for host in hosts if host in concerned and host not in above.hosts)


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
