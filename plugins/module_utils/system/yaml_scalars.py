# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single scalars of configuration files, without a YAML parser.

They are sufficient for what the node itself must know, such as the path of the next file. The
controller parses everything else.
"""

from . import json_line


def top(text, key):
    """Return a scalar at the top level of YAML in block style, or of JSON.

    The result is None when the key is missing or its value is no scalar.
    """
    if text.lstrip()[:1] == "{":
        return _top_of_json(text, key)
    last_value = None
    for line in text.splitlines():
        if line[:1] in ("", " ", "\t", "#"):
            continue
        if line.startswith("---") and last_value is not None:
            break
        name, colon, value = line.partition(":")
        if colon and name.strip().strip("\"'") == key and (not value or value[0] in " \t"):
            last_value = scalar(value)
    return last_value


def _top_of_json(text, key):
    try:
        value = json_line.loads(text).get(key)
    except (ValueError, AttributeError):
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    return None


def anywhere(text, key):
    """Return the first non-empty scalar of this key at any depth.

    The text is YAML in block or flow style, or JSON. The result is None when there is no such
    scalar.
    """
    position = text.find(key)
    while position >= 0:
        after = text[position + len(key) : position + len(key) + 1]
        before = text[position - 1 : position]
        rest = text[position + len(key) :].split("\n", 1)[0]
        if after in ("'", '"') and after:
            rest = rest[1:]
        rest = rest.lstrip(" \t")
        if rest.startswith(":") and (before == "" or before in " \t\n\"'{,-"):
            value = scalar(_value(rest[1:], before))
            if value:
                return value
        position = text.find(key, position + 1)
    return None


def _value(rest, before):
    """Return the value behind a colon, up to its end in a flow mapping.

    before: the character in front of the key.
    """
    if before in ("'", '"', "{", ",") and rest.lstrip()[:1] not in ("'", '"'):
        for stop in ",}":
            rest = rest.split(stop, 1)[0]
    return rest


def scalar(value):
    """Return the text of a plain or quoted scalar on one line, without its comment.

    The result is None when the text is empty or no scalar.
    """
    value = value.strip()
    if value[:1] in ("'", '"') and value:
        end = value.find(value[0], 1)
        if end < 0:
            return None
        return value[1:end] or None
    if " #" in value:
        value = value.split(" #", 1)[0].rstrip()
    return None if not value or value[0] in "#{[|>&*!~" or value == "null" else value


def os_release(text):
    """Return {id, version_id, pretty_name} of /etc/os-release."""
    release = {"id": None, "version_id": None, "pretty_name": None}
    for line in text.splitlines():
        key, equal, value = line.partition("=")
        if equal and key.lower() in release:
            release[key.lower()] = scalar(value)
    return release


def decoded(value):
    """Return the text that a *-data field holds; None when it is no base64."""
    import binascii

    try:
        return binascii.a2b_base64(value.encode("ascii")).decode("utf-8", "replace")
    except (ValueError, UnicodeEncodeError):
        return None
