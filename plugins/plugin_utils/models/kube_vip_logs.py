# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why kube-vip does not hold the address of the API, by the logs of its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..evidence.document import ends, one_line
from ..parsers.known_message import Known
from . import pod_roles
from .cluster import Host
from .result import EvidenceRef

NAME = "kube-vip"
# Of a kube-vip that announces Services; another one, or another task of it, holds that of the API.
_OF_SERVICES = "plndr-svcs-lock"


class Obstacle(NamedTuple):
    """What keeps kube-vip from its work on a host, of a known cause; empty without any."""

    clause: str = ""
    advice: str = ""
    proofs: tuple[EvidenceRef, ...] = ()


def obstacle(hosts: Iterable[Host]) -> Obstacle:
    """Return what keeps kube-vip from holding the address of the API, on the first such host."""
    return next((row for host in hosts for row in _of_host(host)), Obstacle())


def _of_host(host: Host) -> Iterator[Obstacle]:
    for error in host.pod_errors.rows:
        if pod_roles.name(error) == NAME and error.known is not None:
            yield from _read(host, f"{error.namespace}/{error.pod}", error.message, error.known)
    for ended in host.system_pods:
        if pod_roles.name(ended) == NAME and ended.known is not None:
            yield from _read(host, f"{ended.namespace}/{ended.pod}", ended.line, ended.known)


def _read(host: Host, pod: str, line: str, cause: Known) -> Iterator[Obstacle]:
    if _OF_SERVICES in line:
        return
    name = one_line(pod, 317)
    yield Obstacle(
        f". {name} of {host.host} does not do its work: {cause.cause}",
        cause.advice,
        (EvidenceRef("log", host.host, object=name, text=ends(line, 400)),),
    )
