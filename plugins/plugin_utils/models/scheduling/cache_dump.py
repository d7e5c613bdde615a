# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scheduler wrote of its cache at SIGUSR2, and what that proves against its own message.

Pure, of any text.

1.14 to 1.22 log one message a node, later ones one message with all of them, as text of many lines
or as JSON. The cache is not the list that a pod is tried against (the snapshot): where the cache
has a node that no reason counts, the list has lost it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import message as scheduling_reasons

NODES, QUEUE = "Dump of cached NodeInfo", "Dump of scheduling queue"
MAX_NODES, MAX_QUEUE = 50000, 5000
SHORT, WHOLE, LACKING, OPEN, UNKNOWN = (
    "snapshot_short",
    "nothing_missing",
    "cache_short",
    "not_conclusive",
    "unknown",
)
_HEAD = re.compile(r"[IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{1,9} ")
_NODE = re.compile(r"\s*Node name: (?P<name>[A-Za-z0-9][A-Za-z0-9.-]{0,252})\s*")
_DELETED = re.compile(r"\s*Deleted: (?P<deleted>true|false)\s*")
_PODS = re.compile(r"\s*(?:Scheduled Pods\(number: |Number of Pods: )(?P<pods>[0-9]{1,6})\)?:?\s*")
_POD = re.compile(
    r"\s*name: (?P<name>[^ ,]{1,253}), namespace: (?P<namespace>[^ ,]{1,253}), uid: [^ ,]{0,64},"
    r" phase: [A-Za-z]{0,20}, "
    r"nominated node: ?[^ ]{0,253}\s*"
)
_SAID = re.compile(r"0/[0-9]{1,6} nodes are available")
_CUT = re.compile(r"\u2026 \[[0-9]+ more bytes\]\Z")
# What tells how the scheduler came to its list, and what it came to with it: of 1.14 to 1.36.
_MATTERS = re.compile(
    r"(?i)cache mismatch|NodeTree|nodes are available|snapshot|nodeInfoList|couldn't find|unable to"
    r" (?:find|schedule)"
    r"|attempting to schedule pod|no (?:fit|corresponding node)|add event for node|delete event for"
    r" node"
)


@dataclass(frozen=True)
class Node:
    """A node of the cache. deleted: it is gone, and only its pods keep it there.

    None where the release does not tell. pods: that it holds there.
    """

    name: str
    deleted: bool | None = None
    pods: int | None = None


@dataclass(frozen=True)
class Dump:
    """The last dump of a log. found: whether there is one; whole.

    It goes on to its end, and nothing of it was cut. mismatch: the comparer's own words.
    """

    nodes: tuple[Node, ...] = ()
    queue: tuple[str, ...] = ()
    found: bool = False
    whole: bool = False
    mismatch: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Of the nodes that are there."""
        return frozenset(node.name for node in self.nodes if not node.deleted)


class _Reader:
    """A dump while it is read. state: before it, in its nodes, in its queue, behind it."""

    def __init__(self) -> None:
        self.start()
        self.state = "before"
        self.mismatch: list[str] = []

    def start(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.queue: list[str] = []
        self.lines: list[str] = []
        self.last: str | None = None
        self.ended, self.cut = False, False
        self.state = "nodes"

    def line(self, text: str) -> None:
        if "cache mismatch" in text.lower():
            self.mismatch.append(text)
        if NODES in text:
            self.start()
        elif QUEUE in text and self.state == "nodes":
            self.state, self.ended = "queue", True
        elif self.state == "queue" and (_HEAD.match(text) or text.startswith("{")):
            self.state = "behind"
        if self.state not in ("nodes", "queue"):
            return
        self.lines.append(text)
        self.cut = self.cut or _CUT.search(text) is not None
        if text.startswith("{"):
            self._json(text)
        elif self.state == "nodes":
            self._node(text)
        elif (found := _POD.fullmatch(text)) and len(self.queue) < MAX_QUEUE:
            self.queue.append(f"{found['namespace']}/{found['name']}")

    def _node(self, text: str) -> None:
        if found := _NODE.fullmatch(text):
            self.last = found["name"]
            if len(self.nodes) < MAX_NODES:
                self.nodes[self.last] = Node(self.last)
            else:
                self.cut = True
        elif self.last in self.nodes and (found := _DELETED.fullmatch(text)):
            self.nodes[self.last] = Node(
                self.last, found["deleted"] == "true", self.nodes[self.last].pods
            )
        elif self.last in self.nodes and (found := _PODS.fullmatch(text)):
            self.nodes[self.last] = Node(
                self.last, self.nodes[self.last].deleted, int(found["pods"])
            )

    def _json(self, text: str) -> None:
        """A line of --logging-format=json.

        The text of old as one value, or since lately a list of objects.
        """
        try:
            entry = json.loads(text)
            value = entry.get("nodes" if self.state == "nodes" else "pods")
        except (ValueError, RecursionError, AttributeError):
            self.cut = True
            return
        if isinstance(value, str):
            for part in value.split("\n"):
                if self.state == "nodes":
                    self._node(part)
                elif found := _POD.fullmatch(part):
                    self.queue.append(f"{found['namespace']}/{found['name']}")
        for one in value if isinstance(value, list) else ():
            if (
                self.state == "nodes"
                and isinstance(one, Mapping)
                and isinstance(one.get("name"), str)
            ):
                pods = one.get("pods")
                self.nodes[one["name"]] = Node(
                    one["name"],
                    one.get("deleted") is True,
                    len(pods) if isinstance(pods, list) else None,
                )
            elif isinstance(one, Mapping):
                self.queue.append(f"{one.get('namespace')}/{one.get('name')}")


def parse(lines: Iterable[Any]) -> Dump:
    """The last dump among the lines of one scheduler, in their order."""
    reader, found = _Reader(), False
    for text in lines:
        if isinstance(text, str):
            found = found or NODES in text
            reader.line(text)
    if not found:
        return Dump(mismatch=tuple(reader.mismatch))
    return Dump(
        tuple(sorted(reader.nodes.values(), key=lambda node: node.name)),
        tuple(reader.queue[:MAX_QUEUE]),
        True,
        reader.ended and not reader.cut,
        tuple(reader.mismatch),
        tuple(reader.lines),
    )


def matters(lines: Iterable[str]) -> list[str]:
    """The lines that tell how the scheduler came to its list of nodes, and what it said of a pod
    with it.
    """
    return [line for line in lines if _MATTERS.search(line)]


def messages(lines: Iterable[str]) -> list[str]:
    """What it said in these lines of pods that it found no node for.

    Each message once, the last ones last.
    """
    found: dict[str, None] = {}
    for line in lines:
        at = _SAID.search(line)
        if at is None:
            continue
        text = line[at.start() :]
        if line[: at.start()].endswith('"'):  # a value, in quotes
            text = text.split('"', 1)[0].removesuffix("\\")
        text = text.removesuffix("; waiting")
        found.pop(text, None)
        found[text] = None
    return list(found)


@dataclass(frozen=True)
class Comparison:
    """What the API, the cache and a message say of the nodes. None: not known. verdict.

    One of the names above; sentence: for the operator.
    """

    api: int | None
    cached: int | None
    counted: int | None  # N of the message
    reasons: int | None  # how many of them its reasons speak of, at most
    not_cached: tuple[str, ...]
    only_cached: tuple[str, ...]
    verdict: str
    sentence: str


def compare(api: Iterable[str] | None, dump: Dump, message: str, faulty: bool | None) -> Comparison:
    """faulty: whether a scheduler of this version loses nodes.

    None where nobody can tell, and False proves that it is something else.
    """
    names = None if api is None else frozenset(api)
    told = scheduling_reasons.parse(message)
    reasons = None if told.missing is None or told.nodes is None else told.nodes - told.missing
    if names is None or not dump.found or not dump.whole:
        lacking = (
            "what nodes the API has is not known"
            if names is None
            else (
                "the scheduler's log has no dump of its cache"
                if not dump.found
                else "the dump of its cache is cut, so that its nodes cannot be counted"
            )
        )
        return Comparison(
            None if names is None else len(names),
            None,
            told.nodes,
            reasons,
            (),
            (),
            UNKNOWN,
            f"nothing is compared: {lacking}",
        )
    absent, more = tuple(sorted(names - dump.names)), tuple(sorted(dump.names - names))
    verdict, sentence = _verdict(len(names), absent, more, told, reasons, faulty)
    return Comparison(
        len(names), len(dump.names), told.nodes, reasons, absent, more, verdict, sentence
    )


def _verdict(
    count: int,
    absent: tuple[str, ...],
    more: tuple[str, ...],
    told: scheduling_reasons.Message,
    reasons: int | None,
    faulty: bool | None,
) -> tuple[str, str]:
    if absent or more:
        what = " and ".join(
            part
            for part in (
                f"lacks {', '.join(absent[:5])}" if absent else "",
                f"has {', '.join(more[:5])} too" if more else "",
            )
            if part
        )
        return (
            LACKING,
            (
                f"the cache itself {what}, against the API: nodes came or went meanwhile, or the"
                " scheduler hears of them late"
            ),
        )
    if told.nodes is None or reasons is None:
        return (
            UNKNOWN,
            (
                f"the cache is complete ({count} nodes); no message counts the nodes that a pod was"
                " tried on"
            ),
        )
    if told.nodes != count:
        return (
            OPEN,
            (
                f"the cache is complete ({count} nodes); the message is of another time: it counts"
                f" {told.nodes}"
            ),
        )
    if not told.missing:
        return (
            WHOLE,
            (
                f"the cache is complete ({count} nodes), and the reasons are as many as its nodes:"
                " that proves nothing, since one node can have several"
            ),
        )
    short = f"the cache is complete ({count} nodes), and the reasons speak of {reasons} of them"
    if faulty is False:
        return (
            OPEN,
            (
                f"{short}: this version does not lose nodes, and leaves out of its reasons those"
                " that it need not try"
            ),
        )
    if faulty is None:
        return (
            OPEN,
            (
                f"{short}: so the list that pods are tried on would lack {told.missing}, if this"
                " build has the defect; only whoever built it knows"
            ),
        )
    return (
        SHORT,
        (
            f"{short}: the list that pods are tried on (the snapshot) lacks {told.missing},"
            " although the cache has them"
        ),
    )
