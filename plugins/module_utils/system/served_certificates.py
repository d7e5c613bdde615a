# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates that servers of this node show, read by TLS handshakes side by side.

Nothing is verified and nothing is sent after the handshake. A server that wants a certificate of
its client shows its own before it refuses; with TLS 1.2 that message is not encrypted, and is read
from what the server sent.
"""

import errno
import select
import time

from . import http_client, tls

HANDSHAKE, CERTIFICATE = 22, 11
MAX_HEARD = 65536
PIECE = 16384
BEGUN = (errno.EINPROGRESS, errno.EAGAIN, errno.EALREADY)


class _Visit:
    """A handshake with one server, which goes on as its socket allows."""

    def __init__(self, address, port, context):
        import socket
        import ssl

        self.wanted = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
        self.address, self.port = address, port
        self.der, self.error = None, None
        self.heard = b""
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.unsent = b""
        self.connected = False
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        begun = self.socket.connect_ex((address, port))
        if begun not in (0, *BEGUN):
            self._end(OSError(begun, "connect"))

    @property
    def over(self):
        """Return whether there is nothing to wait for any more."""
        return self.der is not None or self.error is not None

    @property
    def events(self):
        """Return what the socket is to be ready for."""
        if not self.connected or self.unsent:
            return select.POLLOUT
        return select.POLLIN

    def go_on(self):
        """Do what the socket allows now."""
        try:
            if self.connected and not self.unsent:
                self._hear()
            self.connected = True
            self._shake()
            self._send()
        except (OSError, ValueError) as error:
            self._end(error)

    def _hear(self):
        data = self.socket.recv(PIECE)
        self.heard = (self.heard + data)[:MAX_HEARD]
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def _shake(self):
        try:
            self.tls.do_handshake()
        except self.wanted:
            self.unsent += self.outgoing.read()
            return
        self.der = self.tls.getpeercert(True)
        if not self.der:
            raise ValueError("it showed no certificate")

    def _send(self):
        if self.unsent and not self.over:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]

    def _end(self, error):
        self.der = of_messages(self.heard)
        if self.der is None:
            self.error = http_client.reason(error)

    def late(self):
        """End a handshake whose time is over."""
        self._end(OSError(errno.ETIMEDOUT, "timed out"))

    def answer(self):
        """Close, and return the certificate in PEM, or why there is none."""
        self.socket.close()
        return {
            "address": self.address,
            "port": self.port,
            "pem": pem(self.der) if self.der else None,
            "error": self.error,
        }


def read(places, seconds):
    """Return [{address, port, pem, error}] of (address, port), after so many seconds at most."""
    context = tls.context()
    end = time.monotonic() + seconds
    visits = [_Visit(address, port, context) for address, port in places]
    remaining = seconds
    while remaining > 0 and not all(visit.over for visit in visits):
        _go_on([visit for visit in visits if not visit.over], remaining)
        remaining = end - time.monotonic()
    for visit in visits:
        if not visit.over:
            visit.late()
    return [visit.answer() for visit in visits]


def _go_on(visits, seconds):
    """Wait for the sockets of these handshakes, and let those go on that are ready."""
    poll = select.poll()
    waiting = {visit.socket.fileno(): visit for visit in visits}
    for number, visit in waiting.items():
        poll.register(number, visit.events)
    for number, _event in poll.poll(int(seconds * 1000) + 1):
        waiting[number].go_on()


def pem(der):
    """Return a certificate of DER as a PEM block."""
    import binascii

    text = binascii.b2a_base64(der, newline=False).decode("ascii")
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))


def of_messages(heard):
    """Return the first certificate in the records that a server of TLS 1.2 sent; else None."""
    messages = b"".join(_contents(heard))
    position = 0
    while position + 4 <= len(messages):
        size = int.from_bytes(messages[position + 1 : position + 4], "big")
        body = messages[position + 4 : position + 4 + size]
        if messages[position] == CERTIFICATE:
            length = int.from_bytes(body[3:6], "big")
            return body[6 : 6 + length] if 0 < length <= len(body) - 6 else None
        position += 4 + size
    return None


def _contents(heard):
    """Yield the contents of the records of the handshake, up to the first of another kind."""
    position = 0
    while position + 5 <= len(heard) and heard[position] == HANDSHAKE:
        size = int.from_bytes(heard[position + 3 : position + 5], "big")
        yield heard[position + 5 : position + 5 + size]
        position += 5 + size
