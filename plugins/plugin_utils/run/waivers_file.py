# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the file of kubemend_waivers. What is wrong in it is one sentence with its line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from yaml.events import DocumentStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..models.waivers import NEVER, Waiver
from ..safe_io import yaml_nodes
from .settings import ALIKE, SettingsError, nearest, shown

NAME = "kubemend_waivers"
REQUIRED = ("code", "hosts", "reason", "owner", "expires")
KEYS = (*REQUIRED, "component")
MAX_BYTES = 1 << 20
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_GLOB = frozenset("*?[")
_WAY_OUT = "each entry has code, hosts, reason, owner and expires, and may have component"
_EMPTY = "write a list of waivers, [] for none, or leave kubemend_waivers out"


def read(path: str) -> bytes:
    """Return the contents of the file. Raises SettingsError with one sentence."""
    target = Path(path)
    if target.is_dir():
        raise _refusal(path, "that is a folder; name the YAML file in it")
    try:
        with target.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refusal(
            path, "there is no such file; write it, or leave kubemend_waivers out"
        ) from None
    except OSError as error:
        reason = f"it cannot be read ({error.strerror}); give your user the right to read it"
        raise _refusal(path, reason) from None
    if len(data) > MAX_BYTES:
        raise _refusal(path, f"it is larger than {MAX_BYTES} bytes; replace entries by globs")
    return data


def parse(data: bytes, path: str, codes: Collection[str]) -> tuple[Waiver, ...]:
    """Return the waivers of the file, in its order. Raises SettingsError with one sentence."""
    root = _root(data, path)
    if root is None or yaml_nodes.nothing(root):
        raise _refusal(path, f"it has no waiver; {_EMPTY}")
    if not isinstance(root, SequenceNode):
        raise _refusal(path, 'it is no list; begin each waiver with "- code:"', root)
    return tuple(_waiver(node, path, codes) for node in root.value)


def _root(data: bytes, path: str) -> Node | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _at_line(path, line, "a byte there is no UTF-8; save the file as UTF-8") from None
    try:
        root = yaml_nodes.first_document(text)
        _refuse_documents(text, path)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        if "end of stream" in str(error.problem):  # the mistake is where that text begins
            mark = error.context_mark
        line = getattr(mark, "line", 0) + 1
        problem = " ".join(str(error.problem or error.context).split())
        raise _at_line(path, line, f"that is no YAML ({problem}); correct it there") from None
    except yaml_nodes.BROKEN as error:
        reason = " ".join(str(error).split())[:200]
        raise _refusal(path, f"it is no YAML ({reason}); correct it") from None
    return root


def _refuse_documents(text: str, path: str) -> None:
    events = yaml.parse(text, yaml.SafeLoader)
    starts = [event for event in events if isinstance(event, DocumentStartEvent)]
    if len(starts) > 1:
        line = getattr(starts[1].start_mark, "line", 0) + 1
        raise _at_line(path, line, "a second document begins there; write one list without ---")


def _waiver(node: Node, path: str, codes: Collection[str]) -> Waiver:
    if not isinstance(node, MappingNode):
        raise _refusal(path, f"that is no waiver; {_WAY_OUT}", node)
    values = dict(_values(node, path))
    missing = [key for key in REQUIRED if key not in values]
    if missing:
        raise _refusal(path, f"the waiver lacks {' and '.join(missing)}; {_WAY_OUT}", node)
    texts = {key: _text(key, value, path) for key, value in values.items()}
    for key in ("code", "hosts", "component"):
        if key in texts:
            _require_glob(key, texts[key], values[key], path)
    _require_code(texts["code"], values["code"], path, codes)
    _require_day(texts["expires"], values["expires"], path)
    return Waiver(**texts, line=node.start_mark.line + 1)


def _values(node: MappingNode, path: str) -> Iterator[tuple[str, Node]]:
    """Yield the keys with their values; unknown and repeated keys are refused."""
    lines: dict[str, int] = {}
    for key_node, value in node.value:
        key = yaml_nodes.text_of(key_node)
        if key not in KEYS:
            hint = nearest(key, KEYS)
            near = f"; the nearest one is {hint}" if hint else ""
            raise _refusal(path, f"{shown(key)} is no key of a waiver{near}: {_WAY_OUT}", key_node)
        if key in lines:
            problem = f"{key} is there a second time, after line {lines[key]}; remove one of them"
            raise _refusal(path, problem, key_node)
        lines[key] = key_node.start_mark.line + 1
        yield key, value


def _text(key: str, node: Node, path: str) -> str:
    is_text = isinstance(node, ScalarNode) and not yaml_nodes.nothing(node)
    text = yaml_nodes.text_of(node).strip()
    if not is_text or not text:
        raise _refusal(path, f"{key} must be a text that is not empty", node)
    if not text.isprintable():
        raise _refusal(path, f"{key} must be one line without control characters", node)
    return text


def _require_glob(key: str, text: str, node: Node, path: str) -> None:
    """Raise SettingsError for a bracket without an end, which would match itself only."""
    rest = text
    while "[" in rest:
        # A bracket right behind the first one is a member of the set.
        _before, _bracket, rest = rest.partition("[")
        end = rest.find("]", 2 if rest.startswith("!") else 1)
        if end < 0:
            problem = f"{key} is {shown(text)}, a glob whose [ has no ]; close it"
            raise _refusal(path, problem, node)
        rest = rest[end + 1 :]


def _require_code(text: str, node: Node, path: str, codes: Collection[str]) -> None:
    if text in NEVER:
        problem = f"{text} cannot be waived: let kubemend.remediation.remediate end that change"
        raise _refusal(path, problem, node)
    if any(fnmatchcase(code, text) for code in codes):
        return
    if not _GLOB.isdisjoint(text):
        problem = f"code is {shown(text)}, a glob that no fault code matches; write one as KM4*"
        raise _refusal(path, problem, node)
    problem = f"code is {shown(text)}, which this version does not judge"
    near = nearest(text.upper(), sorted(codes), ALIKE)
    way_out = f"the nearest one is {near}" if near else "docs/faults.md lists all codes"
    raise _refusal(path, f"{problem}; {way_out}", node)


def _require_day(text: str, node: Node, path: str) -> None:
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        date.fromisoformat(text)
    except ValueError:
        problem = f"expires is {shown(text)}; it must be a day of the calendar such as 2027-01-31"
        raise _refusal(path, problem, node) from None


def _refusal(path: str, problem: str, node: Node | None = None) -> SettingsError:
    if node is not None:
        return _at_line(path, node.start_mark.line + 1, problem)
    return SettingsError(f"{NAME} is {path}: {problem}.")


def _at_line(path: str, line: int, problem: str) -> SettingsError:
    return SettingsError(f"{NAME} is {path}, line {line}: {problem}.")
