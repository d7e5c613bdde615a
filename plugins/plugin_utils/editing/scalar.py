# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit of one scalar in a configuration file, and of kubeadm's extra arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from ..parsers import pflag
from ..safe_io.yaml_nodes import boolean, text_of
from . import yaml_layout
from .draft import Draft, Edit, Source

_YAML = "tag:yaml.org,2002:"
_DOTTED = re.compile(r"( *)((?:-[ \t]+)*)")


def set_scalar(
    source: Source | str, path: Sequence[str], value: str | bool | int, *, kind: str | None = None
) -> Edit:
    """Set the scalar at a path of keys, or add it behind the last entry of its mapping.

    Mappings on the way are made where they are absent, empty or null, in the style of the one they
    are added to. A string stays a string: it is quoted where a parser could take it for something
    else. kind: what the document must be. Raises EditRefused; then nothing is to be changed.
    """
    draft = Draft(source)
    _refuse_kind(draft, kind)
    return _put(draft, draft.root, list(path), value)


def set_extra_arg(source: Source | str, section: str, name: str, value: str) -> Edit:
    """Set an argument of one component in a ClusterConfiguration.

    section: scheduler, controllerManager or apiServer. extraArgs is a map up to
    kubeadm.k8s.io/v1beta3 and a list of name and value from v1beta4 on; what is there decides, and
    the version where nothing is. Of a name that a list has more than once, the last one counts and
    is set. Raises EditRefused; then nothing is to be changed.
    """
    draft = Draft(source)
    _refuse_kind(draft, "ClusterConfiguration")
    name = name.lstrip("-")
    extra = _extra_args(draft, section)
    if isinstance(extra, SequenceNode):
        return _put_listed(draft, extra, name, value)
    if isinstance(extra, MappingNode):
        return _put(draft, extra, [_written_key(extra, name)], value)
    if _is_listed(draft):
        return _put(draft, draft.root, [section, "extraArgs"], [{"name": name, "value": value}])
    return _put(draft, draft.root, [section, "extraArgs", name], value)


def _extra_args(draft: Draft, section: str) -> Node | None:
    entry = draft.entry(draft.root, section)
    if entry is None or not isinstance(entry[1], MappingNode):
        return None
    extra = draft.entry(entry[1], "extraArgs")
    if extra is None:
        return None
    return extra[1]


def _written_key(extra: MappingNode, name: str) -> str:
    """Return the last key that is this argument, as it is written, or its name."""
    keys = [key.value for key, _value in extra.value if _is_flag(str(key.value), name)]
    return next(reversed(keys), name)


def _is_flag(written: str, name: str) -> bool:
    return pflag.normalise(written) == pflag.normalise(name)


def _root_text(draft: Draft, name: str) -> tuple[ScalarNode | None, str]:
    """Return the key and the text of a scalar of the document; empty without one."""
    entry = draft.entry(draft.root, name)
    if entry is None:
        return None, ""
    return entry[0], text_of(entry[1])


def _refuse_kind(draft: Draft, kind: str | None) -> None:
    key, text = _root_text(draft, "kind")
    if kind is not None and text != kind:
        draft.refuse(key, f"its kind is {text or 'missing'}, not {kind}", "name the right file")


def _is_listed(draft: Draft) -> bool:
    key, text = _root_text(draft, "apiVersion")
    version = re.fullmatch(r"kubeadm\.k8s\.io/v1(?:(alpha|beta)(\d+))?", text)
    if version is None:
        draft.refuse(
            key,
            f"apiVersion {text or 'is missing'}: whether extraArgs is a map or a list cannot be"
            " known",
            "add extraArgs by hand",
        )
    return version.group(1) is None or (version.group(1) == "beta" and int(version.group(2)) >= 4)


def _put_listed(draft: Draft, items: SequenceNode, name: str, value: str) -> Edit:
    item = _listed_item(draft, items, name)
    if item is not None:
        draft.refuse_marks(item)
        return _put(draft, item, ["value"], value)
    yaml_layout.refuse_control(draft, name, value)
    data = {"name": name, "value": value}
    for last in items.value[-1:]:
        draft.refuse_marks(last)
    if items.flow_style:
        spans = [(item.start_mark.index, item.end_mark.index) for item in items.value]
        yaml_layout.append_flow(draft, items, spans, _flow(draft, data))
    else:
        last = items.value[-1]
        lines = [line for key in data for line in _block(draft, key, data[key])]
        yaml_layout.append_block(draft, last, _end(draft, last), lines)
    items.value.append(_node(data))
    return draft.finish()


def _listed_item(draft: Draft, items: SequenceNode, name: str) -> MappingNode | None:
    """Return the last item with this name."""
    last = None
    for item in items.value:
        if not isinstance(item, MappingNode):
            draft.refuse(
                item, "an item of extraArgs is no mapping of name and value", "correct it by hand"
            )
        entry = draft.entry(item, "name")
        if entry and isinstance(entry[1], ScalarNode) and _is_flag(entry[1].value, name):
            last = item
    return last


def _put(draft: Draft, mapping: Node, path: list[str], value: Any) -> Edit:
    """Follow the path as far as it is there, then replace or add."""
    yaml_layout.refuse_control(draft, *path)
    if isinstance(value, str):
        yaml_layout.refuse_control(draft, value)
    name_of_mapping = "the document"
    for index, name in enumerate(path):
        if not isinstance(mapping, MappingNode):
            draft.refuse(mapping, f"{name_of_mapping} is no mapping", "correct it by hand")
        entry = draft.entry(mapping, name)
        rest = _nested(path[index + 1 :], value)
        if entry is None:
            _append(draft, mapping, name, rest)
            return draft.finish()
        if isinstance(rest, (dict, list)) and _is_null(entry[1]):
            _fill(draft, mapping, entry, rest)
            return draft.finish()
        if index == len(path) - 1:
            return _replace(draft, mapping, entry, value)
        mapping, name_of_mapping = entry[1], name
    raise ValueError("an empty path")


def _nested(path: list[str], value: Any) -> Any:
    data = value
    for key in reversed(path):
        data = {key: data}
    return data


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _YAML + "null"


def _replace(
    draft: Draft, mapping: MappingNode, entry: tuple[ScalarNode, Node], value: Any
) -> Edit:
    key, node = entry
    if not isinstance(node, ScalarNode) or not isinstance(value, (str, int)):
        draft.refuse(key, f"{key.value} holds no single value", "correct it by hand")
    draft.refuse_marks(node)
    draft.refuse_masked(node)
    if _holds(node, value):
        return draft.unchanged(key)
    text = _scalar(value, yaml_layout.quote_of(draft, node), bool(mapping.flow_style))
    start, end = node.start_mark.index, node.end_mark.index
    draft.change(start, end, _gap(start, end) + text)
    _swap(mapping, key, value)
    return draft.finish()


def _holds(node: ScalarNode, value: str | bool | int) -> bool:
    kind = node.tag[len(_YAML) :]
    if isinstance(value, bool):
        return kind == "bool" and boolean(node.value) is value
    if isinstance(value, int):
        return kind == "int" and node.value == str(value)
    return kind == "str" and node.value == value


def _gap(start: int, end: int) -> str:
    """Return the blank that a value needs behind a bare `key:`."""
    if start < end:
        return ""
    return " "


def _fill(draft: Draft, mapping: MappingNode, entry: tuple[ScalarNode, Node], data: Any) -> None:
    """Give a mapping or list to a key without a value."""
    key, node = entry
    draft.refuse_marks(node)
    start, end = node.start_mark.index, node.end_mark.index
    if start < end or mapping.flow_style:
        draft.change(start, end, _gap(start, end) + _flow(draft, data))
    else:
        lines = _block(draft, key.value, data)[1:]
        yaml_layout.append_lines(
            draft, key, start, [_indent(draft, mapping, key) + line for line in lines]
        )
    _swap(mapping, key, data)


def _swap(mapping: MappingNode, key: ScalarNode, data: Any) -> None:
    values = {id(other): value for other, value in mapping.value}
    values[id(key)] = _node(data)
    mapping.value = [(other, values[id(other)]) for other, _value in mapping.value]


def _append(draft: Draft, mapping: MappingNode, name: str, data: Any) -> None:
    if mapping.flow_style:
        yaml_layout.append_flow(
            draft, mapping, yaml_layout.entry_spans(mapping), _flow(draft, {name: data})[1:-1]
        )
    else:
        key, value = mapping.value[-1]
        indent = _indent(draft, mapping, key)
        yaml_layout.append_lines(
            draft, key, _end(draft, value), [indent + line for line in _block(draft, name, data)]
        )
    mapping.value.append((yaml_layout.string_node(name), _node(data)))


def _indent(draft: Draft, mapping: MappingNode, key: Node) -> str:
    """Return the blanks before the keys of a block mapping.

    The first key may stand behind dashes.
    """
    start = key.start_mark.index
    match = _DOTTED.fullmatch(draft.body[draft.line_start(start) : start])
    if match is None:
        draft.refuse(key, "more stands before this key on its line")
    return match.group(1) + " " * len(match.group(2))


def _end(draft: Draft, node: Node) -> int:
    """Return the place where the last line of a block node ends."""
    last = _last(draft, node)
    end = last.end_mark.index
    if isinstance(last, ScalarNode) and last.style in ("|", ">"):
        # A block scalar ends behind its last newline.
        return len(draft.body[:end].removesuffix("\n").removesuffix("\r"))
    return end


def _last(draft: Draft, node: Node) -> Node:
    """Return the last scalar or flow collection of a block node."""
    if draft.body[node.start_mark.index : node.start_mark.index + 1] in ("&", "!"):
        draft.refuse_marks(node)
    if not isinstance(node, CollectionNode) or node.flow_style:
        return node
    if isinstance(node, MappingNode):
        return _last(draft, node.value[-1][1])
    return _last(draft, node.value[-1])


def _node(data: Any) -> Node:
    """Return the node that must be read where data was written."""
    if isinstance(data, dict):
        return MappingNode(
            _YAML + "map",
            [(yaml_layout.string_node(key), _node(value)) for key, value in data.items()],
        )
    if isinstance(data, list):
        return SequenceNode(_YAML + "seq", [_node(item) for item in data])
    if isinstance(data, str):
        return yaml_layout.string_node(data)
    kind = "int"
    if isinstance(data, bool):
        kind = "bool"
    return ScalarNode(_YAML + kind, _scalar(data, None, False))


def _scalar(value: str | bool | int, quote: str | None, flow: bool) -> str:
    if isinstance(value, str):
        return yaml_layout.render(value, quote, flow)
    return str(value).lower()


def _flow(draft: Draft, data: Any) -> str:
    quote = None
    if draft.root.flow_style:  # JSON
        quote = '"'
    if isinstance(data, dict):
        inner = (
            f"{_scalar(key, quote, True)}: {_flow(draft, value)}" for key, value in data.items()
        )
        return "{" + ", ".join(inner) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(_flow(draft, item) for item in data) + "]"
    return _scalar(data, quote, True)


def _block(draft: Draft, name: str, data: Any) -> list[str]:
    key = _scalar(name, None, False)
    if isinstance(data, dict):
        return [f"{key}:", *_indented(_entries(draft, data))]
    if isinstance(data, list):
        lines = [f"{key}:"]
        for item in data:
            first, *other_lines = _entries(draft, item)
            lines += [f"- {first}", *_indented(other_lines)]
        return lines
    return [f"{key}: {_scalar(data, None, False)}"]


def _entries(draft: Draft, data: Mapping[str, Any]) -> list[str]:
    return [line for name, value in data.items() for line in _block(draft, name, value)]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
