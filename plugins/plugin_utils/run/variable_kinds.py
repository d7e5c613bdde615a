# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of values that kubemend_* variables have, and how `-e name=value` becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ...module_utils.shared import label_selector
from ..models.result import SEVERITIES
from ..parsers import cpuset
from ..safe_io import yaml_nodes

_TRUE = frozenset(("true", "yes", "on", "1", "y", "t"))
_FALSE = frozenset(("false", "no", "off", "0", "n", "f"))
_CODE = re.compile(r"KM[0-9]{3}")
_SEVERITIES = "a mapping of fault codes such as {KM514: info}, each to critical, warning or info"
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_MINOR = re.compile(r"v?(1\.[1-9][0-9]{0,2})(?:\.[0-9]{1,3})?")
_POD = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_UID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{32}")


class BadValue(ValueError):
    """A value that is not allowed; the message says what is allowed.

    code: what stands where a fault code must be, if that is what is wrong
    """

    def __init__(self, allowed: str, code: str = "") -> None:
        super().__init__(allowed)
        self.code = code


Parser = Callable[[Any], Any]


@dataclass(frozen=True)
class Kind:
    """How the values of a variable are read, and how argument specs and pages describe them.

    allowed: the sentence part of a page, empty where the type says it all
    """

    parse: Parser
    type: str = "str"
    choices: tuple[str, ...] = ()
    allowed: str = ""


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadValue("a text")
    text = str(value).strip()
    if not text or any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise BadValue("a text of one line that is not empty")
    return text


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)):
        text = str(value).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
    raise BadValue("true or false")


def number(low: int, high: int) -> Kind:
    """Return the kind of a whole number within two bounds, which it includes."""

    def parse(value: Any) -> int:
        try:
            if isinstance(value, (bool, float)):
                raise ValueError
            number = int(str(value).strip(), 10)
        except ValueError:
            raise BadValue(f"a whole number from {low} to {high}") from None
        if not low <= number <= high:
            raise BadValue(f"a whole number from {low} to {high}")
        return number

    return Kind(parse, "int", allowed=f"{low} to {high}")


def _items(value: Any) -> list[Any]:
    """Return a list from one, or from the text of `-e name=value`: "a", "a,b" or "[a, b]"."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError:
                raise BadValue("a list") from None
        else:
            value = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise BadValue("a list")


def some_of(*allowed: str, empty: bool = True) -> Kind:
    """Return the kind of a list of words."""

    def parse(value: Any) -> tuple[str, ...]:
        items = [str(item) for item in _items(value)]
        if not set(items) <= set(allowed) or not (items or empty):
            raise BadValue(f"a list of {', '.join(allowed)}")
        return tuple(dict.fromkeys(items))

    return Kind(parse, "list", allowed)


def one_of(*allowed: str) -> Kind:
    """Return the kind of one word."""

    def parse(value: Any) -> str:
        # YAML reads an unquoted never/on/off/yes/no as what it likes; only the words themselves are
        # taken.
        if not isinstance(value, str) or value.strip() not in allowed:
            raise BadValue(f"one of {', '.join(allowed)}")
        return value.strip()

    return Kind(parse, choices=allowed)


def _cpus(value: Any) -> str:
    """Return the text of reservedSystemCPUs.

    For `none` the result is the empty text, which a kubelet reads as a list that was not given.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError
        text = str(value).strip()
        if text == "none":
            return ""
        if not cpuset.parse(text):
            raise ValueError
    except (ValueError, cpuset.CpusetError):
        raise BadValue("a list of CPUs such as 0-1,4, or none") from None
    return text


def _paths(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and not value.strip().startswith("["):
        return (_text(value),)  # a path may hold a comma
    items = _items(value)
    if not items:
        raise BadValue("a path or a list of paths")
    return tuple(_text(item) for item in items)


def _faults(value: Any) -> frozenset[str] | None:
    items = [str(item).strip().upper() for item in _items(value)]
    if not items or items == ["ALL"]:
        if items:
            return None
        raise BadValue("all, or a list of fault codes such as KM101")
    wrong = _not_codes(items)
    if wrong:
        raise BadValue("all, or a list of fault codes such as KM101", wrong[0])
    return frozenset(items)


def _not_codes(items: Iterable[str]) -> list[str]:
    return [item for item in items if not _CODE.fullmatch(item)]


def _pod(value: Any) -> str:
    text = _text(value)
    if not (_POD.fullmatch(text) or _UID.fullmatch(text)):
        raise BadValue("namespace/name or the UID of a pod")
    return text


def _selector(value: Any) -> str:
    text = _text(value)
    try:
        label_selector.parse(text)
    except ValueError as error:
        raise BadValue(
            f"a label selector such as app=db,tier!=test or 'app in (db, cache)' ({error})"
        ) from None
    return text


def is_run_id(text: str) -> bool:
    """Return whether a text has the form of a run id."""
    return _RUN_ID.fullmatch(text) is not None


def _keep(value: Any) -> int | str:
    if value == "all":
        return "all"
    try:
        return int(number(1, 10**6).parse(value))
    except BadValue:
        raise BadValue("all, or a whole number from 1 to 1000000") from None


def _run_id(value: Any) -> str:
    text = _text(value)
    if text != "last" and not _RUN_ID.fullmatch(text):
        raise BadValue("a run id such as 20261121T090000Z-1a2b3c, or last")
    return text


def _minor_release(value: Any) -> str:
    """Return a minor release; a number is refused, because 1.30 would become 1.3."""
    match = _MINOR.fullmatch(str(value).strip())
    if match is None or isinstance(value, float):
        raise BadValue("a minor release of Kubernetes in quotes, such as '1.37'")
    return match.group(1)


def _lock_of(value: Any) -> str:
    text = _text(value)
    if not _RUN_ID.fullmatch(text):
        raise BadValue("the id of the run whose lock is taken, such as 20261121T090000Z-1a2b3c")
    return text


def _expression(value: Any) -> str:
    text = _text(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadValue(f"a regular expression of Python ({error})") from None
    return text


def _pattern(value: Any) -> str:
    """Return a host pattern, from one or from a list of names."""
    if isinstance(value, (list, tuple)) and value:
        return ":".join(_text(item) for item in value)
    return _text(value)


def _severities(value: Any) -> dict[str, str]:
    """Return {code: severity}, from a mapping or from its text as YAML."""
    refusal = BadValue(_SEVERITIES)
    if isinstance(value, str):
        value = _mapping(value, refusal)
    if not isinstance(value, Mapping):
        raise refusal
    severities = {str(code).strip().upper(): severity for code, severity in value.items()}
    wrong = _not_codes(severities)
    if wrong:
        raise BadValue(_SEVERITIES, wrong[0])
    if not all(word in SEVERITIES for word in severities.values()):
        raise refusal
    if len(severities) < len(value):
        raise BadValue("a mapping that names each fault code once")
    return {code: str(severity) for code, severity in severities.items()}


def _mapping(text: str, refusal: BadValue) -> dict[str, str]:
    """Return a mapping of texts from YAML, which itself would keep the last of two equal keys."""
    try:
        node = yaml_nodes.first_document(text)
    except yaml_nodes.BROKEN:
        raise refusal from None
    if not isinstance(node, yaml.MappingNode):
        raise refusal
    pairs = [(yaml_nodes.text_of(key), yaml_nodes.text_of(value)) for key, value in node.value]
    if len(dict(pairs)) < len(pairs):
        raise BadValue("a mapping that names each fault code once")
    return dict(pairs)


GROUP = Kind(_text, allowed="a group of the inventory")
NODE_PATH = Kind(_text, allowed="a path on the node")
NAME = Kind(_text, allowed="a name")
PATH = Kind(_text, "path", allowed="a path on the controller")
BOOLEAN = Kind(_boolean, "bool")
CPUS = Kind(_cpus, allowed="a list of CPUs such as `0-1,4`, or `none`")
PATHS = Kind(_paths, "list", allowed="a path, or a list of paths")
FAULTS = Kind(_faults, "list", allowed="`all`, or fault codes such as `KM101`")
POD = Kind(_pod, allowed="`namespace/name`, or the UID of a pod")
SELECTOR = Kind(_selector, allowed="a label selector such as `app=db,tier!=test`")
RUN_ID = Kind(_run_id, allowed="a run id such as `20261121T090000Z-1a2b3c`, or `last`")
MINOR_RELEASE = Kind(_minor_release, allowed="a minor release of Kubernetes, such as `1.37`")
KEEP = Kind(_keep, allowed="`all`, or a number from 1")
LOCK_OWNER = Kind(_lock_of, allowed="a run id such as `20261121T090000Z-1a2b3c`")
EXPRESSION = Kind(_expression, allowed="a regular expression of Python")
SEVERITY_OF = Kind(
    _severities,
    "dict",
    allowed="fault codes, each with `critical`, `warning` or `info`, such as `{KM514: info}`",
)
HOST_PATTERN = Kind(_pattern, allowed="a host pattern of Ansible, or a list of host names")
