# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector api_way: whether this node reaches the API server of its kubelet's kubeconfig.

It resolves the name, connects and checks the certificate as the kubelet does. It makes no request
and shows no credential. A kubelet behind a proxy goes another way: this is evidence in addition to
what the API says of the node, and proves nothing alone.
"""

import re

from ...system import files, yaml_scalars
from ..base import Absent, Denied

SERVER = re.compile(
    r"^(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?(?:/|$)"
)
SECONDS = 3.0  # for the connections together, and for the certificate
MOST = 6  # addresses of a name
NAME, CONNECTION, CERTIFICATE = "name", "connection", "certificate"


def collect(context):
    """Return {server, address, failed, error}.

    failed: the first of name, connection and certificate that fails, None where all succeed.
    """
    kubelet = context.data.get("kubelet") or {}
    record = kubelet.get("kubeconfig") or {}
    if record.get("error") == "denied":
        raise Denied("the kubelet's kubeconfig, which names the server, may not be read")
    text = record.get("text")
    if text:
        server = yaml_scalars.anywhere(text, "server")
    else:
        server = None
    if not server:
        raise Absent("no kubeconfig of a kubelet that names a server")
    context.source = f"connection to {files.one_line(server, 200)}"
    address, failed, error = _tried(server, _authority(text, kubelet))
    return {
        "server": files.one_line(server, 200),
        "address": address,
        "failed": failed,
        "error": error and files.one_line(error, 300),
    }


def _authority(text, kubelet):
    """Return the CA's certificates as the kubeconfig gives them, None where it gives none."""
    embedded = yaml_scalars.anywhere(text, "certificate-authority-data")
    if embedded:
        pem = files.certificates(yaml_scalars.decoded(embedded) or "")
    else:
        pem = (kubelet.get("ca") or {}).get("pem")
    if pem:
        return pem.encode("ascii", "ignore")
    return None


def _tried(server, authority):
    """Return (address, what failed, why)."""
    import socket  # with ssl 20 ms, which are worth it only where there is a server

    match = SERVER.match(server)
    if match is None or int(match.group(3) or 443) > 65535:
        return None, NAME, "it is no address of a server"
    host, port = (
        match.group(2).strip("[]"),
        int(match.group(3) or (443 if match.group(1) == "https" else 80)),
    )
    try:
        places = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        return None, NAME, str(error)
    outcome = (None, NAME, "it has no address")
    # as a kubelet does: the first that takes the connection
    for family, _dummy, _dummy, _dummy, address in places[:MOST]:
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(SECONDS / min(MOST, len(places)))
            plain.connect(address)
            plain.settimeout(SECONDS)
            return (address[0],) + (
                _shaken(plain, host, authority) if match.group(1) == "https" else (None, None)
            )
        except OSError as error:
            outcome = (address[0], CONNECTION, str(error))
        finally:
            plain.close()
    return outcome


def _shaken(plain, host, authority):
    """Return (what failed, why) of a TLS handshake.

    The certificate's name and time count, as they do for a kubelet.
    """
    from ...system import http_client, tls

    try:
        tls_context = tls.context(authority=authority)
        tls_context.check_hostname = bool(authority)
        tls_context.wrap_socket(plain, server_hostname=host).close()
    except (OSError, ValueError, http_client.HttpError) as error:
        # A server that starts, or hangs, takes the connection and says nothing.
        if http_client.reason(error) == "timed out":
            return CONNECTION, "the connection is taken, and no TLS handshake follows"
        return CERTIFICATE, str(error)
    return None, None
