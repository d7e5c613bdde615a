# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP over the unix socket on which `kubectl proxy` listens, under one deadline."""

import http.client
import socket
import time


class ApiError(Exception):
    """The error of one request without a usable answer.

    status: the evidence status; code: that of HTTP, or None when no API server answered.
    """

    def __init__(self, status, reason, code=None, retry_after=None, body=None):
        super().__init__(reason)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.body = body


class Deadline:
    """An instant after which nothing waits."""

    def __init__(self, seconds, parent=None):
        self.at = time.monotonic() + seconds
        if parent is not None:
            self.at = min(self.at, parent.at)

    def remaining(self):
        """Return the seconds that remain; raise ApiError when there are none."""
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise ApiError("timeout", "the time limit was reached")
        return seconds


class Socket(socket.socket):
    """A socket whose reads and writes obey one deadline, however slowly the bytes drip."""

    deadline: "Deadline | None" = None

    def recv_into(self, *args, **kwargs):
        """Read before the deadline."""
        self.settimeout(self.deadline.remaining())
        return super().recv_into(*args, **kwargs)

    def sendall(self, *args, **kwargs):
        """Write before the deadline."""
        self.settimeout(self.deadline.remaining())
        return super().sendall(*args, **kwargs)


class Connection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket, to the host `localhost`, which the proxy requires."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path
        self.deadline = None

    def connect(self):
        """Connect to the socket before the deadline."""
        self.sock = Socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.deadline = self.deadline
        self.sock.settimeout(self.deadline.remaining())
        self.sock.connect(self.path)

    def limit(self, deadline):
        """Put the next exchange under this deadline."""
        self.deadline = deadline
        if self.sock is not None:
            self.sock.deadline = deadline


class Ahead:
    """Pages that are requested while the page before is parsed.

    The API server works meanwhile, and each page has a connection of its own.
    """

    def __init__(self, path):
        self.path = path
        self.open = {}  # {target: its connection}

    def ask(self, target, headers, deadline):
        """Send the request, and return how many were sent.

        `get` sends the request again where that is 0.
        """
        connection = Connection(self.path)
        connection.limit(deadline)
        try:
            connection.request("GET", target, None, headers)
        except (ApiError, OSError, http.client.HTTPException):
            connection.close()
            return 0
        self.open[target] = connection
        return 1

    def take(self, target, deadline, read):
        """Return (HTTP code, headers, body) of a page; None if it was not requested or is lost."""
        connection = self.open.pop(target, None)
        if connection is None:
            return None
        connection.limit(deadline)
        try:
            answer = connection.getresponse()
            return answer.status, answer.headers, read(answer)
        except (ApiError, OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def forget(self, path):
        """Drop the pages of a list that is not read any more."""
        for target in [target for target in self.open if target.split("?")[0] == path]:
            self.open.pop(target).close()
