# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of gRPC on a connection that is open, without the gRPC library.

A call is a request of HTTP/2: the preface, settings, headers that are spelled out, and one message.
Only the trailer grpc-status of the answer matters, and the message before it. The first answer on a
connection has the trailer with its name, in the Huffman code of HPACK as Go's servers (containerd,
CRI-O, cri-dockerd, etcd) send it. Its number is plain digits, as the code makes digits no shorter.
"""

import contextlib
import time

try:
    import _socket as socket  # the module behind socket, without enum, selectors and re
except ImportError:
    import socket

OK, UNIMPLEMENTED = 0, 12
SILENT, CLOSED, ODD = "no answer", "the connection was closed", "the answer is no gRPC"
MAX_ANSWER, MAX_REPLY = 65536, 4 * 1024 * 1024
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _GOAWAY, _WINDOW = 0, 1, 3, 4, 7, 8
_INITIAL_WINDOW = 4  # a setting, and what a connection begins with
_FIRST_WINDOW = 65535
_END_STREAM, _END_HEADERS = 1, 4
# "grpc-status", plainly and by the Huffman code
_STATUS = (b"\x0bgrpc-status", b"\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f")


def request(method, message=b"", window=None, scheme="http"):
    """Return the bytes of a call, by default with an empty message.

    window: how many bytes the answer may have, at least the protocol's own default of 64 KiB.
    """
    fields = (
        (":method", "POST"),
        (":scheme", scheme),
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields)
    settings, room = b"", b""
    if window is not None:
        settings = _number(_INITIAL_WINDOW, 2) + _number(window, 4)
        room = frame(_WINDOW, 0, 0, _number(window - _FIRST_WINDOW, 4))
    return (
        _PREFACE
        + frame(_SETTINGS, 0, 0, settings)
        + room
        + frame(_HEADERS, _END_HEADERS, 1, block)
        + frame(_DATA, _END_STREAM, 1, b"\0" + _number(len(message), 4) + message)
    )


def frame(kind, flags, stream, payload):
    """Return one frame of HTTP/2."""
    return (
        _number(len(payload), 3)
        + _number(kind, 1)
        + _number(flags, 1)
        + _number(stream, 4)
        + payload
    )


def _text(text):
    return _number(len(text), 1) + text.encode("ascii")  # shorter than 127, each of them


def _number(value, size):
    return value.to_bytes(size, "big")


def final_status(plain, end):
    """Return the final status of a call that was sent; SILENT, CLOSED or ODD without one.

    end: until when the answer may come, by the monotonic clock.
    """
    buffer, total = b"", 0
    while total < MAX_ANSWER:
        filled = _filled(plain, end, buffer)
        if not isinstance(filled, bytes):
            return filled
        total += len(filled) - len(buffer)
        kind, flags, payload, buffer = _split_frame(filled)
        if kind == _HEADERS:
            code = status(payload)
            if code is not None:
                return code
            if flags & _END_STREAM:
                return ODD
        elif kind in (_RESET, _GOAWAY):
            return CLOSED
        elif kind == _SETTINGS and not flags & 1:
            with contextlib.suppress(OSError):  # it closed its end; what it said comes first
                plain.sendall(frame(_SETTINGS, 1, 0, b""))
    return ODD


def reply(plain, end, most=MAX_REPLY):
    """Return (status, message) of the answer to a call that was sent.

    Where the status is not OK, the message is empty; without a status it is SILENT, CLOSED or ODD.
    most: how many bytes the whole answer may have.
    """
    buffer, data, total = b"", b"", 0
    while total < most:
        filled = _filled(plain, end, buffer)
        if not isinstance(filled, bytes):
            return filled, b""
        total += len(filled) - len(buffer)
        kind, flags, payload, buffer = _split_frame(filled)
        if kind in (_RESET, _GOAWAY):
            return CLOSED, b""
        if kind == _DATA:
            data += payload
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            # HTTP of another kind ends with its data, and has no trailer
            return _ended(status(payload) if kind == _HEADERS else None, data)
    return ODD, b""


def _ended(code, data):
    """Return (status, message) once the trailer has come; a message begins with five bytes."""
    if code != OK:
        return (ODD if code is None else code), b""
    if len(data) < 5 or data[0] or len(data) - 5 != int.from_bytes(data[1:5], "big"):
        return ODD, b""
    return code, data[5:]


def _filled(plain, end, buffer):
    """Return the bytes once a whole frame is among them, or SILENT, CLOSED or ODD."""
    while not _is_frame(buffer):
        chunk = _received(plain, end)
        if not isinstance(chunk, bytes):
            return chunk
        buffer += chunk
        if len(buffer) >= 5 and (buffer[3] > 9 or _size(buffer) > MAX_ANSWER):
            return ODD
    return buffer


def _size(buffer):
    return int.from_bytes(buffer[:3], "big")


def _is_frame(buffer):
    """Return whether the bytes begin with a whole frame."""
    return len(buffer) >= 9 and len(buffer) >= 9 + _size(buffer)


def _split_frame(filled):
    """Return (kind, flags, payload) of the first frame, and the bytes behind it."""
    end = 9 + _size(filled)
    return filled[3], filled[4], filled[9:end], filled[end:]


def _received(plain, end):
    """Return the next bytes, or SILENT or CLOSED."""
    remaining = end - time.monotonic()
    if remaining <= 0:
        return SILENT
    plain.settimeout(remaining)
    try:
        return plain.recv(16384) or CLOSED
    except socket.timeout:
        return SILENT
    except ConnectionResetError:
        return CLOSED


def status(block):
    """Return the number of grpc-status in a block of headers.

    The result is None where the status is missing, or in an encoding that no known server uses.
    """
    for name in _STATUS:
        position = block.find(name)
        if position >= 0:
            rest = block[position + len(name) :]
            if rest and rest[0] in (1, 2):
                digits = rest[1 : 1 + rest[0]]
            else:
                digits = b""
            if digits.isdigit() and len(digits) == rest[0]:
                return int(digits)
            return None
    return None
