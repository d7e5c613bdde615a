# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which certificate an API server comes to its etcd, by its arguments. Pure.

etcd may serve TLS without asking for a certificate of clients: that none is shown counts only where
etcd refuses one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..parsers import pflag

SERVER = "kube-apiserver"
CERTIFICATE, KEY = "etcd-certfile", "etcd-keyfile"
# Alerts of TLS by which a server refuses a client that shows no certificate.
_REFUSED = re.compile(r"remote error: tls: (?:bad certificate|certificate required)")


def lacking(component: str, argv: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Return the flags that an API server lacks to show etcd, which refuses it, a certificate."""
    if component != SERVER or not any(map(_REFUSED.search, texts)):
        return ()
    servers = (pflag.string_flag(argv, "etcd-servers") or "").split(",")
    if not any(server.strip().startswith("https://") for server in servers):
        return ()
    return tuple(f"--{name}" for name in (CERTIFICATE, KEY) if not pflag.string_flag(argv, name))


def clause(flags: Sequence[str]) -> str:
    """Return that these flags are missing, as a clause, or ""."""
    if not flags:
        return ""
    return (
        f"; it is started without {' and '.join(flags)}, and etcd takes none without a certificate"
    )


def advice(flags: Sequence[str]) -> str:
    """Return what to do about flags that are missing, before all else, or ""."""
    if not flags:
        return ""
    return (
        "give kube-apiserver --etcd-certfile and --etcd-keyfile: a certificate for clients by the"
        " CA of --trusted-ca-file of etcd, and its key (kubeadm: apiserver-etcd-client.crt and"
        " .key); else "
    )
