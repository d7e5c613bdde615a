# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dump of a scheduler's cache at SIGUSR2, and what it proves against the scheduler's own message.

The functions are pure and take any text.

1.14 to 1.22 log one message a node, later ones one message with all of them, as text of many lines
or as JSON. The cache is not the list that a pod is tried against (the snapshot): where the cache
has a node that no reason counts, the list has lost it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....module_utils.shared.text import counted
from ...parsers import json_values
from .message import Message
from .message import parse as parse_message

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
_CUT = re.compile(r"\u2026 \[[0-9]+ more bytes?\]\Z")
# What tells how the scheduler came to its list, and what it came to with it: of 1.14 to 1.36.
_MATTERS = re.compile(
    r"(?i)cache mismatch|NodeTree|nodes are available|snapshot|nodeInfoList|couldn't find|unable to"
    r" (?:find|schedule)"
    r"|attempting to schedule pod|no (?:fit|corresponding node)|add event for node|delete event for"
    r" node"
)


@dataclass(frozen=True)
class Node:
    """Node of the cache.

    pods: the pods that it holds there
    deleted: whether it is gone, and only its pods keep it there; None where the release does not
    show it
    """

    name: str
    deleted: bool | None = None
    pods: int | None = None


@dataclass(frozen=True)
class Dump:
    """Last dump of a log.

    found: whether there is one
    whole: whether it goes on to its end, and nothing of it was cut
    mismatch: the comparer's own words
    """

    nodes: tuple[Node, ...] = ()
    queue: tuple[str, ...] = ()
    found: bool = False
    whole: bool = False
    mismatch: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the nodes that are there."""
        return frozenset(node.name for node in self.nodes if not node.deleted)


class _Reader:
    """Reader of a dump. state: before it, in its nodes, in its queue, behind it."""

    def __init__(self) -> None:
        self.start()
        self.state = "before"
        self.mismatch: list[str] = []

    def start(self) -> None:
        """Begin a dump; an earlier one is dropped."""
        self.nodes: dict[str, Node] = {}
        self.queue: list[str] = []
        self.lines: list[str] = []
        self.last = ""
        self.ended, self.cut = False, False
        self.state = "nodes"

    def line(self, text: str) -> None:
        """Read one line of the log."""
        if "cache mismatch" in text.lower():
            self.mismatch.append(text)
        self._advance(text)
        if self.state not in ("nodes", "queue"):
            return
        self.lines.append(text)
        self.cut = self.cut or _CUT.search(text) is not None
        if text.startswith("{"):
            self._json(text)
        elif self.state == "nodes":
            self._node(text)
        elif len(self.queue) < MAX_QUEUE:
            self._queued(text)

    def _advance(self, text: str) -> None:
        if NODES in text:
            self.start()
        elif QUEUE in text and self.state == "nodes":
            self.state, self.ended = "queue", True
        elif self.state == "queue" and (_HEAD.match(text) or text.startswith("{")):
            self.state = "behind"

    def _queued(self, text: str) -> None:
        pod = _POD.fullmatch(text)
        if pod:
            self.queue.append(f"{pod['namespace']}/{pod['name']}")

    def _node(self, text: str) -> None:
        node = _NODE.fullmatch(text)
        if node:
            self.last = node["name"]
            self._begin_node()
        elif self.last in self.nodes:
            self._detail(text)

    def _begin_node(self) -> None:
        if len(self.nodes) < MAX_NODES:
            self.nodes[self.last] = Node(self.last)
        else:
            self.cut = True

    def _detail(self, text: str) -> None:
        node = self.nodes[self.last]
        deleted, pods = _DELETED.fullmatch(text), _PODS.fullmatch(text)
        if deleted:
            self.nodes[self.last] = replace(node, deleted=deleted["deleted"] == "true")
        elif pods:
            self.nodes[self.last] = replace(node, pods=int(pods["pods"]))

    def _json(self, text: str) -> None:
        """Read a line of --logging-format=json.

        Old releases write the text as one value, newer ones a list of objects.
        """
        key, take_text, take_object = "pods", self._queued, self._queued_object
        if self.state == "nodes":
            key, take_text, take_object = "nodes", self._node, self._node_object
        try:
            value = json.loads(text).get(key)
        except (ValueError, RecursionError, AttributeError):
            self.cut = True
            return
        if isinstance(value, str):
            for part in value.split("\n"):
                take_text(part)
        elif isinstance(value, list):
            for item in json_values.mappings(value):
                take_object(item)

    def _node_object(self, item: Mapping[str, Any]) -> None:
        name, pods = item.get("name"), item.get("pods")
        if not isinstance(name, str):
            self._queued_object(item)
            return
        count = None
        if isinstance(pods, list):
            count = len(pods)
        self.nodes[name] = Node(name, item.get("deleted") is True, count)

    def _queued_object(self, item: Mapping[str, Any]) -> None:
        self.queue.append(f"{item.get('namespace')}/{item.get('name')}")


def parse(lines: Iterable[Any]) -> Dump:
    """Return the last dump among the lines of one scheduler, in their order."""
    reader, has_dump = _Reader(), False
    for text in lines:
        if isinstance(text, str):
            has_dump = has_dump or NODES in text
            reader.line(text)
    if not has_dump:
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
    """Return the lines that show the scheduler's list of nodes, or a pod that was tried on it."""
    return [line for line in lines if _MATTERS.search(line)]


def messages(lines: Iterable[str]) -> list[str]:
    """Return the messages in these lines about pods without a node.

    Each message occurs once, the last ones last.
    """
    texts: dict[str, None] = {}
    for line in lines:
        match = _SAID.search(line)
        if match is None:
            continue
        text = line[match.start() :]
        if line[: match.start()].endswith('"'):  # a value, in quotes
            text = text.split('"', 1)[0].removesuffix("\\")
        text = text.removesuffix("; waiting")
        texts.pop(text, None)
        texts[text] = None
    return list(texts)


@dataclass(frozen=True)
class Comparison:
    """Nodes by the API, the cache and a message. None stands for a number that is not known.

    verdict: one of the names above
    sentence: the verdict for the operator
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
    """Compare the nodes of the API, of the cache and of a message.

    faulty: whether a scheduler of this version loses nodes. None where that is not known, and False
    proves another cause.
    """
    parsed = parse_message(message)
    reasons = None
    if parsed.missing is not None and parsed.nodes is not None:
        reasons = parsed.nodes - parsed.missing
    if api is None:
        reason = "what nodes the API has is not known"
        return _uncompared(None, parsed.nodes, reasons, reason)
    names = frozenset(api)
    reason = _why_uncounted(dump)
    if reason:
        return _uncompared(len(names), parsed.nodes, reasons, reason)
    absent, more = tuple(sorted(names - dump.names)), tuple(sorted(dump.names - names))
    if absent or more:
        verdict, sentence = LACKING, _cache_differs(absent, more)
    else:
        verdict, sentence = _verdict(len(names), parsed, reasons, faulty)
    return Comparison(
        len(names), len(dump.names), parsed.nodes, reasons, absent, more, verdict, sentence
    )


def _why_uncounted(dump: Dump) -> str:
    if not dump.found:
        return "the scheduler's log has no dump of its cache"
    if not dump.whole:
        return "the dump of its cache is cut, so that its nodes cannot be counted"
    return ""


def _uncompared(
    api: int | None, counted: int | None, reasons: int | None, reason: str
) -> Comparison:
    sentence = f"nothing is compared: {reason}"
    return Comparison(api, None, counted, reasons, (), (), UNKNOWN, sentence)


def _cache_differs(absent: tuple[str, ...], more: tuple[str, ...]) -> str:
    differences = []
    if absent:
        differences.append(f"lacks {', '.join(absent[:5])}")
    if more:
        differences.append(f"has {', '.join(more[:5])} too")
    return (
        f"the cache itself {' and '.join(differences)}, against the API: nodes came or went"
        " meanwhile, or the scheduler hears of them late"
    )


def _verdict(
    count: int, message: Message, reasons: int | None, faulty: bool | None
) -> tuple[str, str]:
    """Return (verdict, sentence) for a cache with the nodes of the API."""
    complete = f"the cache is complete ({counted(count, 'node')})"
    if message.nodes is None or reasons is None:
        return UNKNOWN, f"{complete}; no message counts the nodes that a pod was tried on"
    if message.nodes != count:
        return OPEN, f"{complete}; the message is of another time: it counts {message.nodes}"
    if not message.missing:
        return (
            WHOLE,
            (
                f"{complete}, and the reasons are as many as its nodes: that proves nothing, since"
                " one node can have several"
            ),
        )
    return _missing(f"{complete}, and the reasons speak of {reasons} of them", message, faulty)


def _missing(short: str, message: Message, faulty: bool | None) -> tuple[str, str]:
    """Return (verdict, sentence) for reasons that are fewer than the nodes of the cache."""
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
                f"{short}: so the list that pods are tried on would lack {message.missing}, if this"
                " build has the defect; only its vendor knows"
            ),
        )
    return (
        SHORT,
        (
            f"{short}: the list that pods are tried on (the snapshot) lacks {message.missing},"
            " although the cache has them"
        ),
    )
