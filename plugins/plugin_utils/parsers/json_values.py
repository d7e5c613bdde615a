# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of decoded JSON by their type; a value of another type counts as absent. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    if isinstance(value, Mapping):
        return value
    return {}


def items(value: Any) -> Sequence[Any]:
    """Return the value if it is a list or tuple, else an empty one."""
    if isinstance(value, (list, tuple)):
        return value
    return ()


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list or tuple."""
    return [item for item in items(value) if isinstance(item, Mapping)]


def texts(value: Any) -> list[str]:
    """Return the strings in a list or tuple."""
    return [item for item in items(value) if isinstance(item, str)]


def text(value: Any) -> str:
    """Return the value if it is a string, else an empty one."""
    if isinstance(value, str):
        return value
    return ""


def whole_number(value: Any) -> int | None:
    """Return the value if it is a whole number, else None. A truth value is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None
