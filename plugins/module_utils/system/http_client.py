# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/1.1 on a socket, with a deadline and a bounded answer; http.client takes 20 ms to import."""

import contextlib
import os
import time

try:
    import _socket as socket  # the module behind socket, without enum, selectors and re
except ImportError:
    import socket

MAX_BODY = 32 * 1024 * 1024
MAX_HEAD = 65536
TIMED_OUT, CLOSED = "timed out", "the connection was closed"
NO_HTTP = "the answer is no HTTP"


class HttpError(Exception):
    """No answer, in one line."""


class Refused(HttpError):
    """A request that the server refused, in one line."""


class Connection:
    """One connection, for one request after another."""

    def __init__(self, address, port, seconds, context=None):
        self.host = "localhost" if _is_path(address) else f"{bracketed(address)}:{port}"
        self.end = time.monotonic() + seconds
        self.rest = b""
        try:
            self.socket = self._connected(address, port, context)
        except (OSError, ValueError, OverflowError) as error:  # the last of a port that is none
            raise HttpError(reason(error)) from error

    def _connected(self, address, port, context):
        if _is_path(address):
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        elif context is None:
            plain = socket.socket(
                socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM
            )
        else:
            import socket as full

            plain = full.socket(full.AF_INET6 if ":" in address else full.AF_INET, full.SOCK_STREAM)
        try:
            plain.settimeout(self._left())
            plain.connect(address if _is_path(address) else (address, port))
            if context is None:
                return plain
            return context.wrap_socket(plain)
        except BaseException:
            plain.close()
            raise

    def _left(self):
        remaining = self.end - time.monotonic()
        if remaining <= 0:
            raise HttpError(TIMED_OUT)
        return remaining

    def request(self, path, body=None, keep=None, method=None):
        """Return (status, body), with `keep` only the lines that begin with one of these."""
        status, parts = self.streamed(path, body, method)
        try:
            return status, _lines(parts, keep) if keep else _joined(parts)
        except (OSError, ValueError) as error:
            raise HttpError(reason(error)) from error

    def streamed(self, path, body=None, method=None):
        """Return (status, the body piece by piece); who reads it bounds it, and its errors."""
        method = method or ("GET" if body is None else "POST")
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nUser-Agent: kubemend\r\nAccept:"
            " */*\r\n"
        )
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        try:
            self.socket.settimeout(self._left())
            self.socket.sendall(head.encode("ascii") + b"\r\n" + (body or b""))
            status, headers = self._head()
            return status, self._parts(headers)
        except (OSError, ValueError) as error:
            raise HttpError(reason(error)) from error

    def close(self):
        """Close the socket, and ignore its errors."""
        with contextlib.suppress(OSError):
            self.socket.close()

    def _more(self):
        self.socket.settimeout(self._left())
        chunk = self.socket.recv(262144)
        if not chunk:
            raise HttpError(CLOSED)
        return chunk

    def _head(self):
        while b"\r\n\r\n" not in self.rest:
            if len(self.rest) > MAX_HEAD:
                raise HttpError(NO_HTTP)
            self.rest += self._more()
        head, _dummy, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
            raise HttpError(NO_HTTP)
        headers = {
            name.strip().lower(): value.strip()
            for name, _dummy, value in (line.partition(":") for line in lines[1:])
        }
        return int(words[1]), headers

    def _parts(self, headers):
        """Return the body, piece by piece."""
        if "chunked" in headers.get("transfer-encoding", ""):
            return self._chunks()
        if "content-length" in headers:
            return self._exactly(int(headers["content-length"]))
        return self._until_closed()

    def _chunks(self):
        length = -1
        while length:
            while b"\r\n" not in self.rest:
                if len(self.rest) > MAX_HEAD:
                    raise HttpError(NO_HTTP)
                self.rest += self._more()
            size, _dummy, self.rest = self.rest.partition(b"\r\n")
            length = int(size.split(b";")[0], 16)
            yield from self._exactly(length)
            for _dummy in self._exactly(2):
                pass

    def _until_closed(self):
        while True:
            if self.rest:
                yield self.rest
            try:
                self.rest = self._more()
            except HttpError as error:
                if "closed" in str(error):
                    self.rest = b""
                    return
                raise

    def _exactly(self, remaining):
        while remaining > 0:
            if self.rest:
                part = self.rest[:remaining]
            else:
                part = self._more()
            part, self.rest = (
                part[:remaining],
                self.rest[remaining:] if self.rest else part[remaining:],
            )
            remaining -= len(part)
            yield part


def _joined(parts):
    kept, size = [], 0
    for part in parts:
        size += len(part)
        if size > MAX_BODY:
            raise HttpError(f"an answer of more than {MAX_BODY} bytes")
        kept.append(part)
    return b"".join(kept)


def _lines(parts, prefixes):
    """Return only the lines that begin with a prefix: metrics may be many megabytes."""
    kept, rest, size = [], b"", 0
    for part in parts:
        size += len(part)
        if size > MAX_BODY:
            raise HttpError(f"an answer of more than {MAX_BODY} bytes")
        whole, _newline, rest = (rest + part).rpartition(b"\n")
        kept += _begin_with(b"\n" + whole, prefixes)
    return b"\n".join(kept + _begin_with(b"\n" + rest, prefixes))


def _begin_with(text, prefixes):
    lines = []
    for prefix in prefixes:
        position = text.find(b"\n" + prefix)
        while position >= 0:
            end = text.find(b"\n", position + 1)
            lines.append(text[position + 1 :] if end < 0 else text[position + 1 : end])
            position = text.find(b"\n" + prefix, position + 1)
    return lines


def get(address, port, path, seconds, context=None):
    """Return {status, body, error} of one GET: the body is text and short."""
    try:
        connection = Connection(address, port, seconds, context)
        try:
            status, body = connection.request(path)
        finally:
            connection.close()
        return {
            "status": status,
            "body": body[:8192].decode("utf-8", "backslashreplace"),
            "error": None,
        }
    except HttpError as error:
        return {"status": None, "body": None, "error": str(error)}


def reason(error):
    """Return why there is no answer, in one line."""
    number = getattr(error, "errno", None)
    name = type(error).__name__
    if "timeout" in name.lower() or TIMED_OUT in str(error):
        return TIMED_OUT
    if name.startswith("SSL"):
        return "TLS: {}".format(getattr(error, "reason", None) or str(error)[:200])
    if number and number > 0:
        return os.strerror(number)
    return str(error)[:200] or name


def _is_path(address):
    """Return whether an address is the path of a socket of this machine."""
    return address.startswith("/")


def reachable(address):
    """Return the address at which a server that listens there answers on this node."""
    address = (address or "").strip("[]")
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)


def bracketed(address):
    """Return an address as a URL has it."""
    if ":" in address:
        return f"[{address}]"
    return address
