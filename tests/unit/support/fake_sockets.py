# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of raw bytes, for the tests of HTTP."""

import contextlib
import socket
import threading
import time


@contextlib.contextmanager
def answering():
    """Yield a server that answers every connection with given bytes, in pieces."""
    listening, opened = [], []

    def start(*pieces, pause=0.0):
        one = socket.create_server(("127.0.0.1", 0))
        listening.append(one)

        def serve():
            while True:
                try:
                    connection = one.accept()[0]
                except OSError:
                    return
                opened.append(connection)
                connection.recv(65536)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(pause)
                    connection.close()
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        return one.getsockname()[1]

    try:
        yield start
    finally:
        for one in listening + opened:
            one.close()


def chunked(*parts):
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
