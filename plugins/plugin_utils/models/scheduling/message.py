# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler's message about a pod without a node, as counts and causes.

The functions are pure and take any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import taints

MAX_TEXT = 64 * 1024  # a condition's message may have 32 KiB
MAX_REASONS = 500
SHOWN_TEXT = 300
KINDS = (
    "resource",
    "pods",
    "taint",
    "cordon",
    "unready",
    "affinity",
    "node_name",
    "pod_affinity",
    "spread",
    "port",
    "volume",
    "claim",
    "gates",
    "prefilter",
    "unknown",
)
_HEAD = re.compile(r"0/(?P<nodes>[0-9]{1,6}) nodes are available:")
_NO_NODES = re.compile(r"no nodes available to schedule pods")
_GATED = re.compile(r"Scheduling is blocked due to non-empty scheduling gates")
# What preemption tried follows the reasons: alone from 1.22 on, after other plugins' words from
# 1.31 on.
_AFTER = re.compile(
    r"\.\s+(?=(?:[a-z][A-Za-z ]{0,80}, )?preemption:|no new claims to deallocate|still not"
    r" schedulable"
    r"|de(?:allocation|letion) of ResourceClaim completed|All PostFilter plugins are skipped)"
)
_PREEMPTION = re.compile(r"preemption:\s{0,4}(?:0/[0-9]{1,6} nodes are available:\s?)?")
# A clause begins with how many nodes it is of; a comma inside of one is followed by no number.
_BETWEEN, _COUNTED = (
    re.compile(r", (?=[0-9]{1,6} )"),
    re.compile(r"(?P<nodes>[0-9]{1,6}) (?P<text>.*)", re.S),
)
_RESOURCE = re.compile(r"Insufficient (?P<name>[A-Za-z0-9][A-Za-z0-9._/-]{0,316})")
_KINDS = tuple(
    (kind, re.compile(text))
    for kind, text in (
        ("pods", r"Too many pods|Insufficient pods$"),
        # before volumes, whose words name an affinity too
        (
            "volume",
            r"volume node affinity conflict|PersistentVolume's node affinity|available volume"
            r" zone|max volume count|no available disk"
            r"|available persistent volumes to bind|enough free"
            r" storage|ReadWriteOncePod|non-existent pv"
            r"|PersistentVolume\(?s?\)? not found",
        ),
        (
            "claim",
            (
                r"unbound immediate"
                r" PersistentVolumeClaims|[Pp]ersistent[Vv]olume[Cc]laim|resourceclaim|cannot"
                r" allocate all claims"
            ),
        ),
        ("node_name", r"the requested (?:hostname|node name)"),
        ("spread", r"topology spread constraint"),
        # 1.14 to 1.20 say this of a node beside the rule that it breaks
        ("pod_affinity", r"pod affinity|pod anti-affinity|existing pods anti-affinity"),
        (
            "affinity",
            r"node selector|Pod's node affinity|scheduler-enforced node affinity|the requested"
            r" labels|service affinity"
            r"|\[NodeAffinity\]|plugin NodeAffinity",
        ),
        ("port", r"free ports for the requested pod ports"),
        ("gates", r"scheduling gates"),
        ("unready", r"were (?:not ready|out of disk space)"),
        ("prefilter", r"filtered out by the prefilter result|didn't satisfy plugin"),
    )
)


@dataclass(frozen=True)
class Reason:
    """Clause of a message.

    name: the resource or the taint
    nodes: how many it excludes, None where it is about the pod as such
    """

    kind: str
    text: str
    nodes: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Message:
    """Message of a scheduler.

    nodes: N, None where it has none
    preemption: its second part
    whole: whether its reasons are all there, not cut off. A node can have several reasons, so that
    a sum of N or more proves nothing.
    """

    nodes: int | None = None
    reasons: tuple[Reason, ...] = ()
    preemption: tuple[Reason, ...] = ()
    whole: bool = False

    @property
    def total(self) -> int:
        """Return the sum of the counts."""
        return sum(reason.nodes or 0 for reason in self.reasons)

    @property
    def missing(self) -> int | None:
        """Return the least number of nodes without a reason.

        It is None where the message is cut off, or about the pod as such.
        """
        if self.nodes is None or not self.whole:
            return None
        if any(reason.nodes is None for reason in self.reasons):
            return None
        return max(0, self.nodes - self.total)


def parse(text: Any) -> Message:
    """Parse a scheduler's message of 1.14 to 1.36; return an empty Message for what is none."""
    if not isinstance(text, str):
        return Message()
    cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip()
    head = _HEAD.search(text)
    if head is None:
        return _without_nodes(text)
    clauses, rest = text[head.end() :], ""
    # as if a sentence had ended: 1.22 and newer may have no reasons at all
    after = _AFTER.search(f".{clauses}")
    if after:
        clauses, rest = clauses[: max(0, after.start() - 1)], clauses[max(0, after.end() - 1) :]
    reasons, more = _clauses(clauses)
    ended = after is not None or (not cut and _is_ended(clauses))
    return Message(int(head.group("nodes")), reasons, _preemption(rest), ended and not more)


def _is_ended(clauses: str) -> bool:
    if not clauses.endswith(".") or clauses.endswith("..."):
        return False
    return clauses.count("{") == clauses.count("}")


def _preemption(text: str) -> tuple[Reason, ...]:
    match = _PREEMPTION.search(text)
    if match is None:
        return ()
    return _clauses(text[match.end() :])[0]


def _without_nodes(text: str) -> Message:
    """Parse a message that counts no nodes.

    There are none, or the pod was refused before any was inspected.
    """
    if _NO_NODES.search(text):
        return Message(0, (), (), True)
    kind = _kind(text)
    if _GATED.search(text):
        kind = "gates"
    if kind == "unknown":
        return Message()
    return Message(None, (Reason(kind, text[:SHOWN_TEXT]),))


def _clauses(text: str) -> tuple[tuple[Reason, ...], bool]:
    """Return (reasons, whether there were more than are kept)."""
    clauses = text.strip().rstrip(".")
    if not clauses:
        return (), False
    parts = _BETWEEN.split(clauses, maxsplit=MAX_REASONS)
    return tuple(map(_clause, parts[:MAX_REASONS])), len(parts) > MAX_REASONS


def _clause(text: str) -> Reason:
    counted = _COUNTED.fullmatch(text)
    nodes, words = None, text
    if counted:
        nodes, words = int(counted.group("nodes")), counted.group("text")
    kind = _kind(words)
    return Reason(kind, words[:SHOWN_TEXT], nodes, _subject(kind, words))


def _subject(kind: str, words: str) -> str:
    """Return the resource or the taint that a clause names, else ""."""
    resource = _RESOURCE.match(words)
    if kind == "resource" and resource:
        return resource.group("name")
    if kind == "taint":
        return str(taints.parse_reasons(words)[0].taint or "")
    return ""


def _kind(text: str) -> str:
    condition = next(iter(taints.parse_reasons(text)), None)
    if condition is not None:
        return {"cordon": "cordon", "condition": "unready"}.get(condition.kind, "taint")
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    if _RESOURCE.match(text):
        return "resource"
    return "unknown"


def plain(message: Message) -> dict[str, Any]:
    """Return a message as plain data, which a filter gives to a playbook."""
    return {
        "nodes": message.nodes,
        "whole": message.whole,
        "total": message.total,
        "missing": message.missing,
        "reasons": [_plain(reason) for reason in message.reasons],
        "preemption": [_plain(reason) for reason in message.preemption],
    }


def _plain(reason: Reason) -> Mapping[str, Any]:
    return {"kind": reason.kind, "nodes": reason.nodes, "name": reason.name, "text": reason.text}
