# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML that a node wrote, as PyYAML's nodes.

No objects are made of it, whatever depth, aliases and merge keys it has.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, DocumentEndEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_DEPTH = 1000
# What a text may raise that is no YAML, or too deep.
BROKEN = (yaml.YAMLError, RecursionError, ValueError)
NULL = frozenset({"", "~", "null", "Null", "NULL"})  # what YAML reads as nothing
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def first_document(text: str) -> Node | None:
    """The first document as nodes, which know their places; None when there is none.

    Raises BROKEN.
    """
    # libyaml does not count a byte order mark, PyYAML's own scanner does: without it, both give the
    # same places.
    text = text.removeprefix("\ufeff")
    _refuse_depth(text)
    loader = _LOADER(text)
    try:
        return loader.get_node() if loader.check_node() else None
    finally:
        loader.dispose()


def _refuse_depth(text: str) -> None:
    """Libyaml composes by recursion in C.

    Some 20,000 open brackets from one node would end the controller's process.
    """
    if sum(map(text.count, ("[", "{", "- ", "-\t", "-\n", "-\r", ":", "?"))) <= MAX_DEPTH:
        return
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise yaml.MarkedYAMLError(
                    problem="nested too deeply", problem_mark=event.start_mark
                )
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        elif isinstance(event, DocumentEndEvent):
            return


def get(node: Node | None, *keys: str) -> Node | None:
    """What stands under these keys, one inside the other."""
    for key in keys:
        found = node.value if isinstance(node, MappingNode) else ()
        node = next(
            (value for name, value in found if isinstance(name, ScalarNode) and name.value == key),
            None,
        )
    return node


def items(node: Node | None) -> Iterator[Node]:
    """What a list holds; nothing of what is none."""
    return iter(node.value if isinstance(node, SequenceNode) else ())


def text_of(node: Node | None) -> str:
    """A scalar's text; empty for what is no scalar."""
    return node.value if isinstance(node, ScalarNode) else ""


def nothing(node: Node | None) -> bool:
    """Whether a scalar is the plain word that YAML reads as nothing: one in quotes is a text."""
    return isinstance(node, ScalarNode) and not node.style and node.value in NULL


def boolean(text: str) -> bool | None:
    """A scalar as YAML 1.1 has booleans, which is what Kubernetes reads its files as.

    None for what is none. Flags have others (flags.parse_bool).
    """
    low = text.strip().lower()
    return (
        True
        if low in ("true", "yes", "on", "y")
        else False
        if low in ("false", "no", "off", "n")
        else None
    )
