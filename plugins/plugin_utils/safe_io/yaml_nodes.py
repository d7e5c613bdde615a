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
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "y"), True),
    **dict.fromkeys(("false", "no", "off", "n"), False),
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def first_document(text: str) -> Node | None:
    """Return the first document as nodes, which know their places; None without one.

    Raises BROKEN.
    """
    # libyaml does not count a byte order mark, PyYAML's own scanner does: without it, both give the
    # same places.
    text = text.removeprefix("\ufeff")
    _refuse_depth(text)
    loader = _LOADER(text)
    try:
        if not loader.check_node():
            return None
        return loader.get_node()
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
                    problem="nested too deeply",
                    problem_mark=event.start_mark,  # type: ignore[arg-type]  # libyaml's Mark
                )
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        elif isinstance(event, DocumentEndEvent):
            return


def get(node: Node | None, *keys: str) -> Node | None:
    """Return the node under these keys, one inside the other, or None."""
    for key in keys:
        if not isinstance(node, MappingNode):
            return None
        node = next((value for name, value in node.value if text_of(name) == key), None)
    return node


def items(node: Node | None) -> Iterator[Node]:
    """Yield the items of a list; nothing of what is none."""
    if isinstance(node, SequenceNode):
        yield from node.value


def text_of(node: Node | None) -> str:
    """Return a scalar's text; empty for what is no scalar."""
    if not isinstance(node, ScalarNode):
        return ""
    return str(node.value)


def nothing(node: Node | None) -> bool:
    """Return whether a scalar is the plain word that YAML reads as nothing.

    A word in quotes is a text.
    """
    return isinstance(node, ScalarNode) and not node.style and node.value in NULL


def boolean(text: str) -> bool | None:
    """Return a scalar as a boolean of YAML 1.1, which is how Kubernetes reads its files.

    The result is None for another text. Flags accept other texts (pflag.parse_bool).
    """
    return BOOLEANS.get(text.strip().lower())
