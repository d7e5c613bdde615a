# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wire format of protobuf, as far as the answers of the CRI and of etcd need it."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(Exception):
    """The error of bytes that are no message."""


def fields(data):
    """Return [(number, value)] of a message: an int of a varint, bytes of what has a length."""
    rows, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        kind, size = key & 7, 0
        if kind == _VARINT:
            value, at = _varint(data, at)
            rows.append((key >> 3, value))
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise Malformed(f"a field of type {kind}")
        if at + size > len(data):
            raise Malformed("a field that is cut off")
        if kind == _BYTES:
            rows.append((key >> 3, data[at : at + size]))
        at += size
    return rows


def _varint(data, at):
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if not byte & 128:
            return value, at
        shift += 7
    raise Malformed("a number that is cut off")


def values(rows, number):
    """Return the values of one field, in their order."""
    return [value for field, value in rows if field == number]


def text(rows, number, default=""):
    """Return the last value of a field as text."""
    texts = [value for value in values(rows, number) if isinstance(value, bytes)]
    if not texts:
        return default
    return texts[-1].decode("utf-8", "replace")


def integer(rows, number):
    """Return the last value of a field as a number; 0 where it is left out, as protobuf has it."""
    numbers = [value for value in values(rows, number) if isinstance(value, int)]
    return numbers[-1] if numbers else 0


def pairs(rows, number):
    """Return {key: value} of a map of texts."""
    entries = [fields(value) for value in values(rows, number) if isinstance(value, bytes)]
    return {text(entry, 1): text(entry, 2) for entry in entries}


def string(number, value):
    """Return the bytes of one field with a text that is shorter than 16 KiB."""
    return message(number, value.encode("utf-8"))


def message(number, data):
    """Return the bytes of one field with a message that is shorter than 16 KiB."""
    return bytes([number << 3 | _BYTES]) + _size(len(data)) + data


def _size(size):
    if size < 128:
        return bytes([size])
    return bytes([size & 127 | 128, size >> 7])
