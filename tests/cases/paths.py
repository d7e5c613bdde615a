# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of evidence by their path, such as w1.kubelet.unit.n_restarts or api.nodes.items[w1].

The first part is a host, or api for what the API answered. The second is a collector. A part in
brackets is a place in a list, or the name, path, type or component of one of its items.
"""

from __future__ import annotations

import re
from typing import Any

API = "api"
PART = re.compile(r"([A-Za-z0-9_-]+|\[[^\]]*\])")
NAMES = ("name", "path", "component", "type", "host", "unit", "comm", "kind")


class PathError(ValueError):
    """A path that leads nowhere, with the reason."""


def split(path: str) -> tuple[str, str, list[str]]:
    """Return host, collector and the parts below the collector's data."""
    parts = PART.findall(path)
    if len(parts) < 2 or re.sub(r"\.", "", PART.sub("", path)):
        raise PathError(f"{path} is no path such as HOST.COLLECTOR.FIELD")
    return parts[0], parts[1], parts[2:]


def get(data: Any, parts: list[str], path: str) -> Any:
    """Return the value below these parts."""
    for part in parts:
        data = data[_key(data, part, path)]
    return data


def put(data: Any, parts: list[str], value: Any, path: str) -> None:
    """Set the value below these parts; the last one may be new in its object."""
    inner = get(data, parts[:-1], path)
    last = parts[-1]
    if last == "[+]":
        inner.append(value)
        return
    inner[_key(inner, last, path, new=True)] = value


def remove(data: Any, parts: list[str], path: str) -> None:
    """Remove what is below these parts."""
    inner = get(data, parts[:-1], path)
    del inner[_key(inner, parts[-1], path)]


def _key(data: Any, part: str, path: str, new: bool = False) -> Any:
    if isinstance(data, list) and part.startswith("["):
        return _place(data, part[1:-1], path)
    key = part.strip("[]")
    if isinstance(data, dict) and (new or key in data):
        return key
    raise PathError(f"{path}: there is no {part}")


def _place(data: list[Any], name: str, path: str) -> int:
    if name.isdecimal() and int(name) < len(data):
        return int(name)
    for number, item in enumerate(data):
        if isinstance(item, dict) and name in [item.get(key) for key in NAMES]:
            return number
    raise PathError(f"{path}: no item is named {name}")
