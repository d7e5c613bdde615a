# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of a control plane component, and what it asks through it. Pure.

A program of Go asks https by HTTPS_PROXY, else by https_proxy, and reads NO_PROXY, else no_proxy
(golang.org/x/net/http/httpproxy). It knows no other letters. All that a component asks within a
cluster is https.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..evidence.document import one_line
from ..parsers import no_proxy, pflag
from ..parsers.pod_manifest import Container

PROXIES, EXCEPTIONS = ("HTTPS_PROXY", "https_proxy"), ("NO_PROXY", "no_proxy")
SERVER = "kube-apiserver"
CLIENTS = ("kube-controller-manager", "kube-scheduler")
ETCD = "etcd"
# The API server asks a webhook by the name of its service, which it does not look up.
WEBHOOK = "webhook.namespace.svc:443"
KUBELET_PORT = "10250"
MAX_RANGES, MAX_PEERS, MAX_SHOWN = 2, 20, 200
_PLACE = re.compile(r"[\w.-]{1,253}(?::\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](?::\d{1,5})?", re.ASCII)
_MASKED = re.compile(r"[x*]{4,}")


@dataclass(frozen=True)
class Proxy:
    """The proxy that the environment of a container names for https.

    variable, line: what names it, and where in the manifest
    place: its host and port, "" where these are not known; it never has a user or a password
    exceptions: the value of NO_PROXY or no_proxy
    exceptions_name: which of them the program reads, "" where it has none
    """

    variable: str
    line: int
    place: str
    exceptions: str = ""
    exceptions_name: str = ""


@dataclass(frozen=True)
class Destination:
    """What a component asks through its proxy.

    name: what it is, in words
    entry: what excepts it from the proxy
    effect: what fails where the proxy does not reach it
    """

    name: str
    entry: str
    effect: str


def of_container(container: Container) -> Proxy | None:
    """Return the proxy for https of a container, or None."""
    variable = next((name for name in PROXIES if container.env.get(name)), None)
    if variable is None:
        return None
    name = next((name for name in EXCEPTIONS if container.env.get(name)), "")
    return Proxy(
        variable,
        container.env_lines.get(variable, 0),
        _place(container.env[variable]),
        one_line(container.env.get(name, ""), no_proxy.MAX_TEXT),
        name,
    )


def _place(value: str) -> str:
    """Return the host and the port of a proxy, "" where they cannot be told from a secret."""
    text = value.strip().rpartition("://")[2].rpartition("@")[2].partition("/")[0]
    if not _PLACE.fullmatch(text) or _MASKED.fullmatch(text):
        return ""
    return text


def is_readable(proxy: Proxy) -> bool:
    """Tell whether the exceptions of a proxy are there as a whole, and not masked."""
    return not no_proxy.is_cut(proxy.exceptions) and not _MASKED.fullmatch(proxy.exceptions)


def through(
    component: str, words: Sequence[str], proxy: Proxy, servers: Iterable[str]
) -> Iterator[Destination]:
    """Yield what a component asks within the cluster through its proxy.

    words: its command line
    servers: of its kubeconfigs
    """
    if component == SERVER:
        yield from _of_server(words, proxy)
    elif component == ETCD:
        yield from _of_etcd(words, proxy)
    elif component in CLIENTS:
        yield from _of_client(proxy, servers)


def _of_server(words: Sequence[str], proxy: Proxy) -> Iterator[Destination]:
    if not _excepts(proxy, WEBHOOK):
        yield Destination(
            "webhooks (NAME.NAMESPACE.svc)", ".svc", "requests that webhooks are asked about"
        )
    routes = pflag.bool_flag(words, "enable-aggregator-routing")
    if routes is None or routes.value is False:  # else it asks the addresses of pods
        for network in _ranges(words):
            if not all(_excepts(proxy, f"{_url_host(end)}:443") for end in _ends(network)):
                yield Destination(
                    f"API groups of other servers (Services in {network})",
                    str(network),
                    "metrics and other API groups that an APIService names",
                )
    address = _address(pflag.string_flag(words, "advertise-address") or "")
    if address is not None and not _excepts(proxy, f"{_url_host(address)}:{KUBELET_PORT}"):
        yield Destination(f"the kubelet ({address}:{KUBELET_PORT})", str(address), "kubectl logs")


def _of_etcd(words: Sequence[str], proxy: Proxy) -> Iterator[Destination]:
    members = (pflag.string_flag(words, "initial-cluster") or "").split(",")[:MAX_PEERS]
    own_name = pflag.string_flag(words, "name") or ""
    for member in members:
        name, _equals, url = member.partition("=")
        if name == own_name or not url.startswith("https://") or _excepts(proxy, url):
            continue
        host = one_line(no_proxy.split(url)[0], MAX_SHOWN)
        yield Destination(f"the member {one_line(name, 80)} of etcd ({host})", host, "its quorum")


def _of_client(proxy: Proxy, servers: Iterable[str]) -> Iterator[Destination]:
    for server in dict.fromkeys(servers):
        if server.startswith("https://") and not _excepts(proxy, server):
            host = one_line(no_proxy.split(server)[0], MAX_SHOWN)
            yield Destination(
                f"the API server ({one_line(server, MAX_SHOWN)})", host, "its leader election"
            )


def _excepts(proxy: Proxy, server: str) -> bool:
    return no_proxy.bypasses(server, proxy.exceptions)


def _ranges(words: Sequence[str]) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    value = pflag.string_flag(words, "service-cluster-ip-range") or ""
    for text in value.split(",")[:MAX_RANGES]:
        try:
            yield ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:
            continue


def _ends(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> tuple[no_proxy.Address, ...]:
    """Return the first and the last address of a network: an exception may have a part of it."""
    return network[0], network[-1]


def _address(text: str) -> no_proxy.Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _url_host(address: no_proxy.Address) -> str:
    if address.version == 6:
        return f"[{address}]"
    return str(address)


def exception_list(destinations: Iterable[Destination]) -> Mapping[str, None]:
    """Return what excepts all of these, once each, in their order."""
    return dict.fromkeys(destination.entry for destination in destinations)
