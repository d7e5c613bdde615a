# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a dict as one line of ASCII JSON, and reads JSON, without the modules json and re.

Either import takes 8 ms on a node.
"""

try:
    from _json import encode_basestring_ascii as _quoted
    from _json import make_scanner as _make_scanner
except ImportError:  # another Python than CPython
    from json import dumps as _quoted

    _make_scanner = None


def dumps(value):
    """Return the JSON text of what collectors return.

    The value may be None, a bool, int, float or str, or a list, tuple or dict (with str keys) of
    these.
    """
    parts = []
    _write(value, parts.append)
    return "".join(parts)


class _Rules:
    """Return how a scanner of CPython reads JSON: as json.loads does."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def loads(text):
    """Return the value of a JSON text, ValueError where it is none."""
    if _make_scanner is None:
        import json

        return json.loads(text)
    text = text.strip(" \t\n\r")
    try:
        value, end = _make_scanner(_Rules)(text, 0)  # type: ignore[arg-type]
    except StopIteration as error:
        raise ValueError(f"no JSON at character {error}") from error
    if end != len(text):
        raise ValueError(f"more than one JSON value: the second at character {end}")
    return value


def _write(value, put):
    text = _scalar(value)
    if text is not None:
        put(text)
    elif isinstance(value, dict):
        for index, key in enumerate(value):
            put(("," if index else "{") + _quoted(key) + ":")
            _write(value[key], put)
        put("}" if value else "{}")
    else:
        for index, item in enumerate(value):
            put("," if index else "[")
            _write(item, put)
        put("]" if value else "[]")


def _scalar(value):
    """Return the JSON text of a string, null, boolean or number; None for another value."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return repr(value) if value - value == 0 else "null"
    return None
