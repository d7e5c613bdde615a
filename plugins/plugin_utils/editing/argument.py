# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit of one argument of a static pod manifest, as a pure function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..parsers import pflag, pod_manifest
from . import yaml_layout
from .draft import Draft, Edit, EditRefused, Source, Splice, apply

__all__ = ["Edit", "EditRefused", "Source", "Splice", "apply", "set_argument"]

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "ksh", "zsh", "busybox"})
_FLAG = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


def set_argument(
    source: Source | str,
    component: str,
    flag: str,
    value: str | None,
    *,
    boolean: bool | None = None,
) -> Edit:
    """Set (value None: remove) --flag of the one container that runs a component.

    Without such a container, it is the one of the component's name. Set: the use that is in effect,
    which is the last one, gets the value in the form and quotes that it has; uses before it are
    left as they are (they have no effect). A flag that is not there becomes the last argument,
    written like the argument before it. Remove: every use goes.

    boolean: pflag's boolean flags take no second item: `--flag` with `false` behind it is a stray
    argument, with which the component refuses to start, so setting the flag removes it. None: a
    boolean when value is true or false; for a removal, an item behind a bare `--flag` goes with it
    unless it is a flag.

    Raises EditRefused; then nothing is to be changed.
    """
    draft = Draft(source)
    name = pflag.normalise(flag.lstrip("-"))
    if not _FLAG.fullmatch(name):
        raise ValueError(f"{flag!r} is no flag")
    yaml_layout.refuse_control(draft, value or "")
    if boolean is None and value is not None:
        boolean = len(value) > 1 and pflag.parse_bool(value) is not None
    target = _target(draft, component)
    uses = _uses(draft, target, name, boolean)
    if value is None:
        edit = _remove(draft, target, uses)
    elif not uses:
        edit = _add(draft, target, f"--{name}={value}")
    else:
        _refuse_shorthand(draft, target, name, uses[-1].index)
        edit = _replace(draft, target, uses[-1], value, bool(boolean))
    if edit.changed and not _in_effect(draft, target, name, value, bool(boolean)):
        draft.refuse(None, f"--{name} would not be what was asked for after the change")
    return edit


@dataclass(frozen=True)
class _Target:
    """Container that is edited.

    begin: the first argument behind the component's own name
    """

    position: int
    lists: tuple[tuple[ScalarNode, SequenceNode], ...]
    places: tuple[tuple[int, int], ...]
    argv: tuple[str, ...]
    begin: int

    def node(self, index: int) -> ScalarNode:
        """Return the node of an argument."""
        number, item = self.places[index]
        node: ScalarNode = self.lists[number][1].value[item]
        return node


@dataclass(frozen=True)
class _Use:
    """Use of the flag.

    value: its value, None when it is bare
    following: the item that belongs to it
    """

    index: int
    written: str
    value: str | None
    following: int | None = None

    @property
    def indexes(self) -> list[int]:
        """Return the indexes of its items."""
        if self.following is None:
            return [self.index]
        return [self.index, self.following]


def _target(draft: Draft, component: str) -> _Target:
    try:
        pod = pod_manifest.read(draft.root)
    except pod_manifest.ManifestError as exc:
        draft.refuse(exc.line, f"the kubelet drops this file ({exc.problem})", "correct it by hand")
    key, nodes = _containers(draft)
    position = _position(draft, pod, component, key, nodes)
    draft.refuse_marks(nodes[position])
    lists = _lists(draft, nodes[position])
    argv = tuple(pod.containers[position].argv)
    places = tuple(
        (number, index)
        for number, (_key, items) in enumerate(lists)
        for index in range(len(items.value))
    )
    return _Target(position, lists, places, argv, _begin(argv, component))


def _lists(draft: Draft, container: MappingNode) -> tuple[tuple[ScalarNode, SequenceNode], ...]:
    lists = []
    for name in ("command", "args"):
        key, items = draft.entry(container, name) or (None, None)
        if key is None or (isinstance(items, ScalarNode) and items.tag.endswith(":null")):
            continue
        if not isinstance(items, SequenceNode):
            draft.refuse(key, f"{name} is no list", "write it as a list and run again")
        for item in items.value:
            if not isinstance(item, ScalarNode):
                draft.refuse(item, f"an item of {name} is no string", "correct it by hand")
            draft.refuse_marks(item)
        lists.append((key, items))
    return tuple(lists)


def _begin(argv: Sequence[str], component: str) -> int:
    """Return the index behind the component's name.

    What stands before it belongs to a wrapper such as go-runner or tini.
    """
    for index, word in enumerate(argv[:8]):
        base = word.rsplit("/", 1)[-1]
        if base == component:
            return index + 1
        if base == "hyperkube":
            return min(index + 2, len(argv))
    return 0


def _containers(draft: Draft) -> tuple[ScalarNode, list[Any]]:
    """Return the key and the items of spec.containers."""
    draft.entry(draft.root, "kind")
    spec, containers = draft.entry(draft.root, "spec"), None
    if spec and isinstance(spec[1], MappingNode):
        containers = draft.entry(spec[1], "containers")
    if containers is None or not isinstance(containers[1], SequenceNode):
        draft.refuse(None, "spec.containers is no list", "correct it by hand")
    nodes = containers[1].value
    for node in nodes:
        if isinstance(node, MappingNode):
            draft.entry(node, "name")
    return containers[0], nodes


def _position(
    draft: Draft, pod: pod_manifest.Manifest, component: str, key: Node, nodes: Sequence[Node]
) -> int:
    """Return the index of the one container that runs a component, or is named so."""
    containers = list(enumerate(pod.containers))
    positions = [index for index, container in containers if container.component == component]
    if not positions:
        positions = [index for index, container in containers if container.name == component]
    if not positions:
        draft.refuse(key, f"no container runs {component}", "name the file that runs it")
    if len(positions) > 1:
        draft.refuse(
            nodes[positions[1]],
            f"a second container runs {component}",
            "leave one of them and run again",
        )
    return positions[0]


def _uses(draft: Draft, target: _Target, name: str, boolean: bool | None) -> list[_Use]:
    _refuse_shell(draft, target, name)
    uses: list[_Use] = []
    argv, value_index = target.argv, -1
    for index in range(target.begin, len(argv)):
        if index == value_index:
            continue
        if argv[index] == "--":
            draft.refuse(
                target.node(index), "an item `--` ends the flags", "remove it and run again"
            )
        written, equals, value = argv[index][2:].partition("=")
        if not argv[index].startswith("--") or pflag.normalise(written) != name:
            continue
        if equals:
            uses.append(_Use(index, written, value))
        elif _takes(draft, target, index, boolean):
            value_index = index + 1
            uses.append(_Use(index, written, argv[value_index], value_index))
        else:
            uses.append(_Use(index, written, None))
    return uses


def _refuse_shell(draft: Draft, target: _Target, name: str) -> None:
    argv = target.argv
    base = next(iter(argv), "").rpartition("/")[2]
    if base in _SHELLS and any(re.fullmatch(r"-[A-Za-z]*c", word) for word in argv[1:4]):
        draft.refuse(
            target.node(0),
            f"{base} -c starts this container, so --{name} stands inside a shell's command line",
            "write command as a list of arguments, or change that line by hand",
        )
    for index, word in enumerate(argv):
        if _is_inside(word, name):
            draft.refuse(
                target.node(index),
                f"--{name} stands inside an item with more arguments",
                "write each argument as an item of its own and run again",
            )


def _is_inside(word: str, name: str) -> bool:
    """Return whether an item has more arguments, with the flag among them."""
    if not re.search(r"\s--\w", word):
        return False
    parts = pflag.shell_words(word)[1:]
    return any(_is_use(part, name) for part in parts)


def _is_use(word: str, name: str) -> bool:
    return pflag.normalise(word.partition("=")[0]) == f"--{name}"


def _refuse_shorthand(draft: Draft, target: _Target, name: str, last: int) -> None:
    """Refuse a later shorthand.

    pflag's `-v 2`, `-v=2` and `-v2` are --v, and the last one counts, however it is written.
    """
    if len(name) != 1:
        return
    short = re.compile(rf"-{re.escape(name)}(=.*|\d+)?")
    for index in range(last + 1, len(target.argv)):
        if short.fullmatch(target.argv[index]):
            draft.refuse(
                target.node(index),
                f"-{name} stands behind --{name} and has the last word",
                "leave one of them and run again",
            )


def _takes(draft: Draft, target: _Target, index: int, boolean: bool | None) -> bool:
    """Return whether the item behind a bare --flag belongs to it."""
    if index + 1 >= len(target.argv):
        return False
    following = target.argv[index + 1]
    if boolean:
        return pflag.parse_bool(following) is not None
    if following.startswith("--") and boolean is False:
        draft.refuse(
            target.node(index),
            f"{target.argv[index]} has no value of its own",
            "write it as --flag=value and run again",
        )
    return boolean is False or not following.startswith("-")


def _replace(draft: Draft, target: _Target, use: _Use, value: str, boolean: bool) -> Edit:
    for index in use.indexes:
        draft.refuse_masked(target.node(index))
    if _is_set(use, value, boolean):
        return draft.unchanged(target.node(use.index))
    if use.following is not None and not boolean:
        number, item = target.places[use.following]
        yaml_layout.replace_item(draft, target.lists[number][1], item, value)
        return draft.finish()
    number, item = target.places[use.index]
    yaml_layout.replace_item(draft, target.lists[number][1], item, f"--{use.written}={value}")
    if use.following is not None:
        _drop(draft, target, {use.following})
    return draft.finish()


def _add(draft: Draft, target: _Target, text: str) -> Edit:
    filled = [items for _key, items in target.lists if items.value]
    if not filled:
        draft.refuse(
            None,
            "the container has neither command nor args",
            "write its command as a list and run again",
        )
    yaml_layout.append_item(draft, filled[-1], text)
    return draft.finish()


def _is_set(use: _Use, value: str, boolean: bool) -> bool:
    """Return whether a use of the flag already has this value."""
    if not boolean:
        return use.value == value
    if use.following is not None:
        return False
    if use.value is None:
        return pflag.parse_bool(value) is True
    current = pflag.parse_bool(use.value)
    return current is not None and current == pflag.parse_bool(value)


def _remove(draft: Draft, target: _Target, uses: Sequence[_Use]) -> Edit:
    if uses:
        _drop(draft, target, {index for use in uses for index in use.indexes})
        return draft.finish()
    if target.lists:
        return draft.unchanged(target.lists[0][0])
    return draft.unchanged(draft.root)


def _drop(draft: Draft, target: _Target, indexes: set[int]) -> None:
    places = [target.places[index] for index in indexes]
    for number, (key, items) in enumerate(target.lists):
        dropped = {item for place, item in places if place == number}
        if dropped:
            yaml_layout.remove_items(draft, key, items, dropped)


def _in_effect(draft: Draft, target: _Target, name: str, value: str | None, boolean: bool) -> bool:
    """Return whether the container would be started so, read by the code that evaluates it."""
    argv = pod_manifest.read(draft.after).containers[target.position].argv[target.begin :]
    if value is None:
        return not any(_is_use(word, name) for word in argv)
    if boolean:
        use = pflag.bool_flag(argv, name)
        return use is not None and not use.problem and use.value == pflag.parse_bool(value)
    return pflag.string_flag(argv, name) == value
