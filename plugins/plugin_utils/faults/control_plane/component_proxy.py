# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM181: check that static pods of the control plane ask the cluster without a proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import times
from ...evidence import contract
from ...evidence.answers.node.certificates import Certificates
from ...evidence.answers.node.repeated_errors import RepeatedError
from ...evidence.document import ends, one_line
from ...models import component_proxy, repeated_errors
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.component_proxy import CLIENTS, EXCEPTIONS, SERVER, Destination, Proxy
from ...models.control_plane import FileUse
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, known_message
from ..base import CheckResult, Detection, node_check

MAX_PATH, QUOTED = 200, 243
# What a component logs of a request that its proxy did not pass on.
_BY_PROXY = re.compile(r"proxyconnect tcp: ")
_KNOWN = frozenset(("webhook-by-proxy", "service-address-by-proxy"))


@node_check(
    "KM181",
    "Control-plane component asks the cluster through a proxy",
    severity="warning",
    applies="manifests of control-plane components in the folder of a kubelet",
    needs=("kubelet", "manifests", "certificates", "repeated_errors"),
)
def by_proxy(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM181: report a manifest whose proxy has no exceptions for what its component asks."""
    plane = host.control_plane
    missing = host.missing("manifests")
    if plane is None or missing:
        yield CheckResult((), missing, bool(missing), host=host.host)
        return
    lacking = []
    if plane.unread:
        lacking.append(Missing(host.host, "manifests", "denied"))
    hits = []
    for use in plane.files:
        if use.proxy is None:
            continue
        if not component_proxy.is_readable(use.proxy):
            lacking.append(Missing(host.host, "manifests", "timeout"))
            continue
        if use.component in CLIENTS:
            lacking.extend(host.missing("certificates"))
        destinations = tuple(
            component_proxy.through(
                use.component, use.words, use.proxy, _servers(document, use.component)
            )
        )
        if destinations:
            hits.append(_hit(host, document, use, use.proxy, destinations))
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(lacking)), bool(plane.files), host=host.host)


def _servers(document: Mapping[str, Any], component: str) -> list[str]:
    """Return the servers of the kubeconfigs that a component uses."""
    rows = contract.answer(document, Certificates).kubeconfigs
    return [one_line(row.server or "", MAX_PATH) for row in rows if row.component == component]


def _hit(
    host: Host,
    document: Mapping[str, Any],
    use: FileUse,
    proxy: Proxy,
    destinations: tuple[Destination, ...],
) -> Detection:
    path = one_line(use.path, MAX_PATH)
    place = "a proxy"
    if proxy.place:
        place = f"the proxy {proxy.place}"
    exceptions = f"has neither {EXCEPTIONS[0]} nor {EXCEPTIONS[1]}"
    if proxy.exceptions_name:
        exceptions = f"does not except them in {proxy.exceptions_name}"
    proofs = [
        EvidenceRef(
            "file", host.host, path=path, line=proxy.line or None, text=f"name: {proxy.variable}"
        )
    ]
    effect = f"{and_others([item.effect for item in destinations])} may fail"
    complaint = _complaint(host, document, use.component)
    if complaint is not None:
        source, entry = complaint
        effect = (
            f"its log has {times(entry.count)}:"
            f" {ends(component_log.text(entry.line[: repeated_errors.LONGEST]), QUOTED)}"
        )
        proofs.append(EvidenceRef("log", host.host, path=source, text=ends(entry.line, 600)))
    names = and_others([item.name for item in destinations], len(destinations))
    return Detection(
        f"{use.component} asks {place} ({proxy.variable} in {path}) for {names}, because its"
        f" environment {exceptions}: {effect}",
        tuple(proofs),
        _remedy(use, proxy, path, destinations),
        host.host,
        host.node,
        use.component,
    )


def _complaint(
    host: Host, document: Mapping[str, Any], component: str
) -> tuple[str, RepeatedError] | None:
    """Return where a component logs most of its proxy, and what; None where it says nothing."""
    _read_at, rows = repeated_errors.rows(document)
    release = host.releases.version(component)
    complaints = []
    for row in rows:
        if row.component != component:
            continue
        source = one_line(row.source, MAX_PATH)
        for entry in row.entries:
            if _is_of_proxy(component, entry.line[: repeated_errors.LONGEST], release):
                complaints.append((source, entry))
    return max(complaints, key=lambda item: item[1].count, default=None)


def _is_of_proxy(component: str, line: str, release: str | None) -> bool:
    row = known_message.find((component,), line, release)
    return bool(_BY_PROXY.search(line)) or (row is not None and row.id in _KNOWN)


def _remedy(use: FileUse, proxy: Proxy, path: str, destinations: tuple[Destination, ...]) -> str:
    entries = list(component_proxy.exception_list(destinations))
    more = ""
    if use.component == SERVER:
        more = " and the network of the nodes"
    name = proxy.exceptions_name or EXCEPTIONS[0]
    add = f"give its container the variable {name} in env of {path}, with"
    if proxy.exceptions_name:
        add = f"add to the value of {name} in {path}"
    return (
        f"{add} {','.join(entries)}{more}, or take {proxy.variable} out of it if the component asks"
        " nothing outside; the kubelet starts the pod again by itself, so change one control-plane"
        " node after the other. kubeadm copies the variables *_proxy of its shell into the"
        " manifests of API server, controller manager and scheduler at each init, join and"
        f" upgrade: set {name} in that shell, or unset the proxy, before it runs again"
    )
