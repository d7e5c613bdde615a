# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding that a name was looked up below a search domain of the nodes; a part of KM560.

A kubelet gives pods the search domains of its node. With ndots:5 pods ask for most names below each
of these domains first. A domain without an answer, or with one for any name, breaks such names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...evidence.document import one_line, shell_name
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef
from ..base import Detection

_FORWARDED = re.compile(r"plugin/errors: \d (?P<name>[\w.*-]{3,255}?)\.? [A-Z]{1,10}: ")
_CERTIFICATE = re.compile(
    r"certificate is valid for (?P<names>[\w.*, :-]{1,400}?), not (?P<name>[\w.-]{3,255})"
)
# Ends of whole names: a name with such an end before the search domain is none within that domain.
_WHOLE = re.compile(r"\.(?:com|org|net|io|dev|cloud|gov|edu|local|svc)$")
SHOWN = 3
ADVICE = (
    "on the node, resolvectl domain and cat {path} show that domain, and dig anything.{domain}"
    " shows whether any name below it gets an answer. Where the domain is not needed, keep it out"
    " of that file: with netplan, use-domains: false in dhcp4-overrides and dhcp6-overrides, and"
    " accept-ra: false; with systemd-networkd, UseDomains=no in [DHCPv4] and [IPv6AcceptRA]. Or"
    " name a file without it as resolvConf of the kubelet, and restart the kubelet. Pods that are"
    " made after that do not get the domain"
)


def with_domain(cluster: Cluster, hit: Detection, message: str) -> Detection:
    """Return a hit with the search domain below which a message had a name looked up."""
    pairs = _domains_in(cluster, message)
    if not pairs:
        return hit
    domain = pairs[0][1]
    hosts = [host for host, other in pairs if other == domain]
    path = _path(hosts[0])
    names = and_others([host.node or host.host for host in hosts])
    proofs = [
        EvidenceRef("file", host.host, path=path, text=f"search {domain}") for host in hosts[:SHOWN]
    ]
    return replace(
        hit,
        summary=f"{hit.summary}. The name was looked up below the search domain {domain}, which"
        f" the kubelets of {names} give to pods ({path}): with ndots:5 pods ask for names of the"
        " cluster and of the internet there too",
        evidence=(*hit.evidence, *proofs),
        remedy=f"{ADVICE.format(path=path, domain=shell_name(domain, 'DOMAIN'))}; {hit.remedy}",
    )


def _path(host: Host) -> str:
    resolver = host.network.resolver
    return one_line(resolver.path if resolver is not None else "", 200)


def _domains_in(cluster: Cluster, message: str) -> list[tuple[Host, str]]:
    """Return the hosts with a search domain below which a message has a whole name."""
    question, answer = _FORWARDED.search(message), _CERTIFICATE.search(message)
    pairs = []
    for host, domain in _domains(cluster):
        is_asked = question is not None and _is_whole_below(question.group("name"), domain)
        is_answered = answer is not None and _is_of(answer, domain)
        if is_asked or is_answered:
            pairs.append((host, domain))
    return pairs


def _domains(cluster: Cluster) -> Iterator[tuple[Host, str]]:
    """Yield the search domains that kubelets give to pods; the root is none."""
    resolvers = ((host, host.network.resolver) for host in cluster.hosts)
    for host, resolver in resolvers:
        if resolver is None:
            continue
        for word in resolver.search:
            domain = one_line(word, 253).strip(".").lower()
            if domain:
                yield host, domain


def _is_whole_below(name: str, domain: str) -> bool:
    """Tell whether a whole name was asked for below a domain, such as github.com.lan.example."""
    before, dot, rest = name.lower().rpartition(f".{domain}")
    return bool(dot) and not rest and _WHOLE.search(before) is not None


def _is_of(match: re.Match[str], domain: str) -> bool:
    """Tell whether a server of a domain answered to a whole name of another one."""
    name = match.group("name").lower()
    if name.endswith(f".{domain}") or not _WHOLE.search(name):
        return False
    names = [word.strip().lower() for word in match.group("names").split(",")]
    return any(word == domain or word.endswith(f".{domain}") for word in names)
