# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit of one scalar in a configuration file, and of kubeadm's extra arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..parsers import pflag as flags
from ..safe_io.yaml_nodes import boolean
from . import yaml_layout as layout
from .draft import Draft, Edit, Source

_YAML = "tag:yaml.org,2002:"
_DOTTED = re.compile(r"( *)((?:-[ \t]+)*)")


def set_scalar(
    source: Source | str, path: Sequence[str], value: str | bool | int, *, kind: str | None = None
) -> Edit:
    """Set the scalar at a path of keys.

    Replaced where it is, else added behind the last entry of its mapping.

    Mappings on the way are made where they are absent, empty or null, in the style of the one they
    are added to. A string stays a string: it is quoted where a parser could take it for something
    else. kind: what the document must be. Raises EditRefused; then nothing is to be changed.
    """
    draft = Draft(source)
    _refuse_kind(draft, kind)
    return _put(draft, draft.root, list(path), value)


def set_extra_arg(source: Source | str, section: str, name: str, value: str) -> Edit:
    """Set an argument of one component (section.

    Scheduler, controllerManager, apiServer) in a ClusterConfiguration.

    extraArgs is a map up to kubeadm.k8s.io/v1beta3 and a list of name and value from v1beta4 on;
    what is there decides, and the version where nothing is. Of a name that a list holds more than
    once, the last one counts and is set. Raises EditRefused; then nothing is to be changed.
    """
    draft = Draft(source)
    _refuse_kind(draft, "ClusterConfiguration")
    name = name.lstrip("-")
    found = draft.entry(draft.root, section)
    extra = (
        draft.entry(found[1], "extraArgs") if found and isinstance(found[1], MappingNode) else None
    )
    if extra and isinstance(extra[1], SequenceNode):
        return _put_listed(draft, extra[1], name, value)
    if extra and isinstance(extra[1], MappingNode):
        keys = [
            key.value
            for key, _value in extra[1].value
            if flags.normalise(str(key.value)) == flags.normalise(name)
        ]
        return _put(draft, extra[1], [keys[-1] if keys else name], value)
    if _is_listed(draft):
        return _put(draft, draft.root, [section, "extraArgs"], [{"name": name, "value": value}])
    return _put(draft, draft.root, [section, "extraArgs", name], value)


def _refuse_kind(draft: Draft, kind: str | None) -> None:
    found = draft.entry(draft.root, "kind")
    held = found[1].value if found and isinstance(found[1], ScalarNode) else None
    if kind is not None and held != kind:
        draft.refuse(
            found[0] if found else None,
            f"its kind is {held or 'missing'}, not {kind}",
            "name the right file",
        )


def _is_listed(draft: Draft) -> bool:
    found = draft.entry(draft.root, "apiVersion")
    held = found[1].value if found and isinstance(found[1], ScalarNode) else ""
    version = re.fullmatch(r"kubeadm\.k8s\.io/v1(?:(alpha|beta)(\d+))?", held)
    if version is None:
        draft.refuse(
            found[0] if found else None,
            f"apiVersion {held or 'is missing'}: whether extraArgs is a map or a list cannot be"
            " known",
            "add extraArgs by hand",
        )
    return version.group(1) is None or (version.group(1) == "beta" and int(version.group(2)) >= 4)


def _put_listed(draft: Draft, items: SequenceNode, name: str, value: str) -> Edit:
    found = None
    for item in items.value:
        if not isinstance(item, MappingNode):
            draft.refuse(
                item, "an item of extraArgs is no mapping of name and value", "correct it by hand"
            )
        entry = draft.entry(item, "name")
        if (
            entry
            and isinstance(entry[1], ScalarNode)
            and flags.normalise(entry[1].value) == flags.normalise(name)
        ):
            found = item
    if found is not None:
        draft.refuse_marks(found)
        return _put(draft, found, ["value"], value)
    layout.refuse_control(draft, name, value)
    data = {"name": name, "value": value}
    for item in items.value[-1:]:
        draft.refuse_marks(item)
    if items.flow_style:
        spans = [(item.start_mark.index, item.end_mark.index) for item in items.value]
        layout.append_flow(draft, items, spans, _flow(draft, data))
    else:
        last = items.value[-1]
        lines = [line for key in data for line in _block(draft, key, data[key])]
        layout.append_block(draft, last, _end(draft, last), lines)
    items.value.append(_node(data))
    return draft.finish()


def _put(draft: Draft, mapping: Node, path: list[str], value: Any) -> Edit:
    """Follow the path as far as it is there, then replace or add."""
    layout.refuse_control(draft, *path, *([value] if isinstance(value, str) else []))
    for index, name in enumerate(path):
        if not isinstance(mapping, MappingNode):
            draft.refuse(
                mapping,
                f"{path[index - 1] if index else 'the document'} is no mapping",
                "correct it by hand",
            )
        found = draft.entry(mapping, name)
        rest: Any = value
        for key in reversed(path[index + 1 :]):
            rest = {key: rest}
        if found is None:
            _append(draft, mapping, name, rest)
            return draft.finish()
        if (
            isinstance(rest, (dict, list))
            and isinstance(found[1], ScalarNode)
            and found[1].tag == _YAML + "null"
        ):
            _fill(draft, mapping, found, rest)
            return draft.finish()
        if index == len(path) - 1:
            return _replace(draft, mapping, found, value)
        mapping = found[1]
    raise ValueError("an empty path")


def _replace(
    draft: Draft, mapping: MappingNode, found: tuple[ScalarNode, Node], value: Any
) -> Edit:
    key, node = found
    if not isinstance(node, ScalarNode) or not isinstance(value, (str, int)):
        draft.refuse(key, f"{key.value} holds no single value", "correct it by hand")
    draft.refuse_marks(node)
    draft.refuse_masked(node)
    if _holds(node, value):
        return draft.unchanged(key)
    text = _scalar(value, layout.quote_of(draft, node), bool(mapping.flow_style))
    start, end = node.start_mark.index, node.end_mark.index
    # Behind a bare `key:` there may be no blank yet.
    draft.change(start, end, text if start < end else f" {text}")
    _swap(mapping, key, value)
    return draft.finish()


def _holds(node: ScalarNode, value: str | bool | int) -> bool:
    kind = node.tag[len(_YAML) :]
    if isinstance(value, bool):
        return kind == "bool" and boolean(node.value) is value
    if isinstance(value, int):
        return kind == "int" and node.value == str(value)
    return kind == "str" and node.value == value


def _fill(draft: Draft, mapping: MappingNode, found: tuple[ScalarNode, Node], data: Any) -> None:
    """A key without a value gets a mapping or list."""
    key, node = found
    draft.refuse_marks(node)
    start, end = node.start_mark.index, node.end_mark.index
    if start < end or mapping.flow_style:
        draft.change(start, end, ("" if start < end else " ") + _flow(draft, data))
    else:
        lines = _block(draft, key.value, data)[1:]
        layout.append_lines(
            draft, key, start, [_indent(draft, mapping, key) + line for line in lines]
        )
    _swap(mapping, key, data)


def _swap(mapping: MappingNode, key: ScalarNode, data: Any) -> None:
    mapping.value = [(one, _node(data) if one is key else value) for one, value in mapping.value]


def _append(draft: Draft, mapping: MappingNode, name: str, data: Any) -> None:
    if mapping.flow_style:
        layout.append_flow(
            draft, mapping, layout.entry_spans(mapping), _flow(draft, {name: data})[1:-1]
        )
    else:
        key, value = mapping.value[-1]
        indent = _indent(draft, mapping, key)
        layout.append_lines(
            draft, key, _end(draft, value), [indent + line for line in _block(draft, name, data)]
        )
    mapping.value.append((layout.string_node(name), _node(data)))


def _indent(draft: Draft, mapping: MappingNode, key: Node) -> str:
    """The blanks before the keys of a block mapping, the first of which may stand behind dashes."""
    start = key.start_mark.index
    found = _DOTTED.fullmatch(draft.body[draft.line_start(start) : start])
    if found is None:
        draft.refuse(key, "more stands before this key on its line")
    return found.group(1) + " " * len(found.group(2))


def _end(draft: Draft, node: Node) -> int:
    """Where the last line of a block node ends."""
    while True:
        if draft.body[node.start_mark.index : node.start_mark.index + 1] in ("&", "!"):
            draft.refuse_marks(node)
        if isinstance(node, ScalarNode) or node.flow_style:
            break
        node = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
    end = node.end_mark.index
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        # A block scalar ends behind its last newline.
        end -= (
            2 if draft.body[:end].endswith("\r\n") else 1 if draft.body[:end].endswith("\n") else 0
        )
    return end


def _node(data: Any) -> Node:
    """What must be read where data was written."""
    if isinstance(data, dict):
        return MappingNode(
            _YAML + "map", [(layout.string_node(key), _node(value)) for key, value in data.items()]
        )
    if isinstance(data, list):
        return SequenceNode(_YAML + "seq", [_node(item) for item in data])
    if isinstance(data, str):
        return layout.string_node(data)
    return ScalarNode(
        _YAML + ("bool" if isinstance(data, bool) else "int"), _scalar(data, None, False)
    )


def _scalar(value: str | bool | int, quote: str | None, flow: bool) -> str:
    if isinstance(value, str):
        return layout.render(value, quote, flow)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _flow(draft: Draft, data: Any) -> str:
    quote = '"' if _is_json(draft) else None
    if isinstance(data, dict):
        inner = (
            f"{_scalar(key, quote, True)}: {_flow(draft, value)}" for key, value in data.items()
        )
        return "{" + ", ".join(inner) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(_flow(draft, item) for item in data) + "]"
    return _scalar(data, quote, True)


def _is_json(draft: Draft) -> bool:
    return bool(draft.root.flow_style)


def _block(draft: Draft, name: str, data: Any) -> list[str]:
    key = _scalar(name, None, False)
    if isinstance(data, dict):
        return [f"{key}:"] + [
            "  " + line for inner, value in data.items() for line in _block(draft, inner, value)
        ]
    if isinstance(data, list):
        lines = [f"{key}:"]
        for item in data:
            own = [line for inner, value in item.items() for line in _block(draft, inner, value)]
            lines += ["- " + own[0], *("  " + line for line in own[1:])]
        return lines
    return [f"{key}: {_scalar(data, None, False)}"]
