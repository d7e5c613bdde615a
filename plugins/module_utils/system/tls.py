# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS with a client certificate that is never written to a disk.

The module is imported only where a node has a TLS endpoint to ask, because the import of ssl takes
20 ms. Certificates of servers on this node are not verified: their answers are evidence, and
nothing secret is sent to them.
"""

import os
import ssl

from .http_client import HttpError, reason


def context(certificate=None, key=None, authority=None, protocols=()):
    """Return the TLS context of a client.

    PEM bytes reach OpenSSL through memory, never through a file on the node.
    protocols: what ALPN offers, such as h2.
    """
    tls_context = ssl.SSLContext(getattr(ssl, "PROTOCOL_TLS_CLIENT", ssl.PROTOCOL_TLS))
    tls_context.check_hostname = False
    tls_context.verify_mode = ssl.CERT_NONE
    if protocols:
        tls_context.set_alpn_protocols(list(protocols))
    if authority:
        try:
            tls_context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise HttpError(f"the CA cannot be used: {reason(error)}") from error
        tls_context.verify_mode = ssl.CERT_REQUIRED
    if certificate:
        try:
            _load(tls_context, certificate + b"\n" + (key or b""))
        except (OSError, ValueError) as error:
            raise HttpError(f"the client certificate cannot be used: {reason(error)}") from error
    return tls_context


def _load(tls_context, pem):
    descriptor = _memory()
    try:
        os.write(descriptor, pem)
        tls_context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _memory():
    """Create a file in memory only; Python has it from 3.8 on, Linux since 3.17."""
    create = getattr(os, "memfd_create", None)
    if create is not None:
        return create("kubemend", 1)  # close-on-exec, the default, has no name before 3.8 either
    import ctypes

    numbers = {"x86_64": 319, "aarch64": 279, "ppc64le": 360, "s390x": 350, "armv7l": 385}
    number = numbers.get(os.uname()[4])
    if number is None:
        raise OSError(f"no file in memory on {os.uname()[4]}")
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.syscall(number, b"kubemend", 1)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor
