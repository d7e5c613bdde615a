# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask one endpoint of etcd through its JSON gateway, or by gRPC where it has none.

An etcd within k3s, or one with a configuration file, has no gateway up to 3.4, where only the flag
has the default. One with --listen-client-http-urls, as newer releases of k3s and RKE2 set it, has
it at another address. One with --enable-grpc-gateway=false has none.
"""

import errno
import os

from . import etcd_keys, grpc_call, http_client, json_line

PREFIXES = ("/v3", "/v3beta")  # the second for etcd 3.3
MEMBERS, STATUS, ALARMS = "/cluster/member/list", "/maintenance/status", "/maintenance/alarm"
NOT_FOUND = 404
# How a server with gRPC alone ends a request of HTTP/1.1, and one without gRPC a call.
UNSPOKEN = (
    http_client.CLOSED,
    http_client.NO_HTTP,
    grpc_call.ODD,
    os.strerror(errno.ECONNRESET),
    os.strerror(errno.EPIPE),
)


class EtcdEndpoint:
    """A client of one endpoint with one credential.

    Each request has a connection of its own, and the URL prefix of the member's release.

    secure: makes the TLS context that offers these protocols, None without TLS. seconds: tells how
    long one request may take.
    """

    def __init__(self, address, port, secure, seconds):
        self._address, self._port = address, port
        self._secure, self._seconds = secure, seconds
        self._contexts = {}
        self._prefixes = PREFIXES
        self._has_gateway = self._has_grpc = False
        self._no_grpc = None  # why the endpoint does not speak it either

    def post(self, path, body=b"{}"):
        """Return (status, body) of the answer as the gateway writes it; HttpError without one.

        A silent endpoint is not asked a second time, by gRPC.
        """
        if self._has_grpc:
            return self._call_grpc(path, body)
        try:
            status, answer = self._ask_gateway(path, body)
        except http_client.HttpError as error:
            if self._has_gateway or str(error) not in UNSPOKEN:
                raise
            answer_by_grpc = self._try_grpc(path, body)
            if answer_by_grpc is None:
                raise
            return answer_by_grpc
        if self._has_gateway:
            return status, answer
        return self._try_grpc(path, body) or (status, self._refusal())

    def _ask_gateway(self, path, body):
        """Return (status, body) of the gateway, 404 where there is none."""
        status, answer = None, b""
        for prefix in self._prefixes:
            connection = self._connect()
            try:
                status, answer = connection.request(prefix + path, body)
            finally:
                connection.close()
            if status != NOT_FOUND:
                self._prefixes, self._has_gateway = (prefix,), True
                break
        return status, answer

    def _try_grpc(self, path, body):
        """Return the first answer by gRPC, None where the endpoint does not speak it."""
        if self._no_grpc is not None:
            return None
        try:
            answer_by_grpc = self._call_grpc(path, body)
        except http_client.Refused:
            self._has_grpc = True
            raise
        except http_client.HttpError as error:
            if str(error) not in UNSPOKEN:
                raise
            self._no_grpc = str(error)
            return None
        self._has_grpc = True
        return answer_by_grpc

    def _call_grpc(self, path, body):
        """Return (200, the answer by gRPC as the gateway writes it)."""
        from . import etcd_grpc  # most nodes do without it

        calls = {
            MEMBERS: etcd_grpc.members,
            STATUS: etcd_grpc.status,
            ALARMS: etcd_grpc.alarms,
            etcd_keys.PATH: etcd_grpc.count,
        }
        connection = self._connect((etcd_grpc.PROTOCOL,))
        try:
            return 200, calls[path](connection, body)
        finally:
            connection.close()

    def _refusal(self):
        """Return the body of an answer that only says why there is no gRPC."""
        return json_line.dumps({"error": f"no gRPC either ({self._no_grpc})"}).encode("ascii")

    def _connect(self, protocols=()):
        if protocols not in self._contexts:
            self._contexts[protocols] = self._secure(protocols)
        return http_client.Connection(
            self._address, self._port, self._seconds(), self._contexts[protocols]
        )
