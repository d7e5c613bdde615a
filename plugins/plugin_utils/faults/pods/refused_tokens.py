# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say of pods that wait since an API server refuses a token what may have changed: part of KM600.

The text of a token is a secret that nothing reads. What is known is since when API servers run,
whether their manifests were changed just before, and which issuer they accept.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from ...evidence.document import one_line
from ...models.certificates import API
from ...models.cluster import Cluster, Host
from ...models.control_plane import ControlPlane, Process
from ...models.moments import moment
from ...models.result import EvidenceRef
from ...parsers import pflag

REFUSED = re.compile(r"\bUnauthorized\b")
# A registry says the same words of an image, also of the sandbox's.
OF_REGISTRY = re.compile(r"\bimages?\b|\bpull|\bregistry\b|\b401\b", re.IGNORECASE)
ISSUER = "service-account-issuer"
BEFORE_SECONDS = 900.0  # between a change of a manifest and the start that it brings about
RECENT_SECONDS = 7 * 86400.0
RENEW = (
    "the API server does not accept the token of the program that asks, which may have ended too:"
    " restart the pods of the network plugin, which get new ones (kubectl -n kube-system rollout"
    " restart daemonset NAME)"
)
FORMER = (
    f"; where --{ISSUER} was changed, name the former issuer a second time, from 1.22 on, so that"
    " tokens stay valid until all pods have new ones, and restart other pods that are refused"
)


class Refusal(NamedTuple):
    """What is said of a refused token: a clause, the advice, and the proofs."""

    clause: str
    advice: str
    proofs: tuple[EvidenceRef, ...] = ()


class _Server(NamedTuple):
    """An API server whose manifest was changed just before it was started."""

    host: Host
    process: Process
    issuers: list[str]


def of_message(cluster: Cluster, message: str) -> Refusal | None:
    """Return what is known of a refusal that a message of pods tells; None of other messages."""
    if not REFUSED.search(message) or OF_REGISTRY.search(message):
        return None
    servers = [server for host in cluster.hosts for server in _changed(host)]
    plain = Refusal("an API server refuses the token that is used", RENEW)
    if not servers:
        return plain
    first = min(server.process.started_at for server in servers)
    issuer = one_line(", ".join(servers[0].issuers), 200)
    return Refusal(
        f"{plain.clause}; {_names(servers)} run since {_time(moment(first))} with changed manifests"
        f" and --{ISSUER}={issuer}: tokens of another issuer or key are refused",
        RENEW + FORMER,
        tuple(_proof(server) for server in servers),
    )


def _changed(host: Host) -> list[_Server]:
    """Return the API servers of a host that a change of their manifest restarted of late."""
    plane = host.control_plane or ControlPlane()
    servers = []
    for process in plane.processes_of(API):
        issuers = pflag.string_flags(process.argv, ISSUER)
        written = [use.mtime for use in plane.files if use.component == API]
        is_recent = plane.clock - process.started_at < RECENT_SECONDS
        if issuers and is_recent and any(_is_cause(time, process) for time in written):
            servers.append(_Server(host, process, issuers))
    return servers


def _is_cause(written: float, process: Process) -> bool:
    """Tell whether a manifest that was written then brought about the start of a process."""
    return 0 <= process.started_at - written < BEFORE_SECONDS


def _names(servers: list[_Server]) -> str:
    names = ", ".join(dict.fromkeys(server.host.host for server in servers))
    return f"the API servers of {names}"


def _time(time: datetime | None) -> str:
    if time is None:
        return "their start"
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _proof(server: _Server) -> EvidenceRef:
    text = (
        f"started at {_time(moment(server.process.started_at))} with"
        f" --{ISSUER}={one_line(', '.join(server.issuers), 200)}"
    )
    return EvidenceRef("process", server.host.host, pid=server.process.pid, object=API, text=text)
