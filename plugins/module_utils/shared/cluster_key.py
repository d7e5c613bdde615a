# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a cluster: the digest of its CA certificates."""

import base64
import hashlib
import re

CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----")


def certificate_digests(pem):
    """Return the SHA-256 digests of the certificates in a PEM text."""
    digests = set()
    for block in CERTIFICATE.findall(pem or ""):
        try:
            der = base64.b64decode("".join(block.split("-----")[2].split()), validate=True)
        except ValueError:
            continue
        digests.add(hashlib.sha256(der).hexdigest())
    return digests


def cluster_key(pem):
    """Return SHA-256 over the sorted digests of the CA certificates, or None without any."""
    digests = certificate_digests(pem)
    if not digests:
        return None
    return hashlib.sha256("".join(sorted(digests)).encode("ascii")).hexdigest()
