# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scheduler says of a pod that it finds no node for, as counts and causes.

Pure, of any text.
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
_NOBODY = re.compile(r"no nodes available to schedule pods")
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
    """A clause. nodes: of how many, None where it is of the pod as such; name.

    The resource, or the taint.
    """

    kind: str
    text: str
    nodes: int | None = None
    name: str = ""


@dataclass(frozen=True)
class Message:
    """What a message says. nodes: N, None where it does not tell; whole.

    Whether its reasons are all there, not cut off.

    preemption: what is said of the same nodes once more. A node can have several reasons, so that a
    sum of N or more proves nothing.
    """

    nodes: int | None = None
    reasons: tuple[Reason, ...] = ()
    preemption: tuple[Reason, ...] = ()
    whole: bool = False

    @property
    def total(self) -> int:
        """The sum of the counts."""
        return sum(reason.nodes or 0 for reason in self.reasons)

    @property
    def missing(self) -> int | None:
        """How many nodes at least no reason speaks of; None where the message does not tell.

        Cut off, or of the pod as such.
        """
        if (
            self.nodes is None
            or not self.whole
            or any(reason.nodes is None for reason in self.reasons)
        ):
            return None
        return max(0, self.nodes - self.total)


def parse(text: Any) -> Message:
    """A scheduler's message, as 1.14 to 1.36 word it; an empty Message for what is none."""
    if not isinstance(text, str):
        return Message()
    cut = len(text) > MAX_TEXT
    text = text[:MAX_TEXT].strip()
    head = _HEAD.search(text)
    if head is None:
        return _without_nodes(text)
    body = text[head.end() :]
    # as if a sentence had ended: 1.22 and newer may have no reasons at all
    after = _AFTER.search("." + body)
    told, rest = (
        (body[: max(0, after.start() - 1)], body[max(0, after.end() - 1) :])
        if after
        else (body, "")
    )
    ended = after is not None or (
        told.endswith(".") and not told.endswith("...") and told.count("{") == told.count("}")
    )
    reasons, some = _clauses(told)
    tried = _PREEMPTION.search(rest)
    return Message(
        int(head.group("nodes")),
        reasons,
        _clauses(rest[tried.end() :])[0] if tried else (),
        ended and not some and not (cut and after is None),
    )


def _without_nodes(text: str) -> Message:
    """A message that counts no nodes.

    There are none, or the pod was refused before any was looked at.
    """
    if _NOBODY.search(text):
        return Message(0, (), (), True)
    kind = "gates" if _GATED.search(text) else _kind(text)
    return Message(None, (Reason(kind, text[:SHOWN_TEXT]),)) if kind != "unknown" else Message()


def _clauses(text: str) -> tuple[tuple[Reason, ...], bool]:
    """(reasons, whether there were more than are kept)."""
    text = text.strip()
    while text.endswith("."):
        text = text[:-1]
    parts = _BETWEEN.split(text, maxsplit=MAX_REASONS) if text else []
    return tuple(map(_clause, parts[:MAX_REASONS])), len(parts) > MAX_REASONS


def _clause(text: str) -> Reason:
    counted = _COUNTED.fullmatch(text)
    nodes, words = (int(counted.group("nodes")), counted.group("text")) if counted else (None, text)
    kind, name = _kind(words), ""
    if kind == "resource":
        name = _RESOURCE.match(words).group("name")
    elif kind == "taint":
        one = taints.told(words)[0].taint
        name = str(one) if one else ""
    return Reason(kind, words[:SHOWN_TEXT], nodes, name)


def _kind(text: str) -> str:
    of_node = next(iter(taints.told(text)), None)
    if of_node is not None:
        return {"cordon": "cordon", "condition": "unready"}.get(of_node.kind, "taint")
    found = next((kind for kind, pattern in _KINDS if pattern.search(text)), None)
    return found or ("resource" if _RESOURCE.match(text) else "unknown")


def plain(message: Message) -> dict[str, Any]:
    """As plain data, which a filter gives to a playbook."""
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
