# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe an entry of the pods that wait: how many of one owner, and which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...evidence.document import one_line
from ...models.api_node import and_others
from ...parsers import json_values


def count(entry: Mapping[str, Any]) -> int:
    """Return how many pods an entry stands for."""
    pods = json_values.whole_number(entry.get("pods"))
    if pods is None:
        return 1
    return pods


def wait(number: int) -> str:
    """Return the subject and verb of a summary about so many pods."""
    if number == 1:
        return "1 pod waits"
    return f"{number} pods wait"


def first_name(entry: Mapping[str, Any]) -> Any:
    """Return the name of the first of an entry's pods."""
    return (entry.get("names") or ["?"])[0]


def owners(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the first owners of the pods of these entries, and how many more there are."""
    return and_others(list(dict.fromkeys(_owner(entry) for entry in entries)))


def _owner(entry: Mapping[str, Any]) -> str:
    owner = entry.get("owner") or "Pod/" + str(first_name(entry))
    return f"{one_line(owner, 300)} (namespace {one_line(entry.get('namespace'), 80)})"
