# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one API server says of itself and of its etcd, by its host's evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import socket_kinds
from ..evidence import contract
from ..evidence.answers.node.address_holders import AddressHolders
from ..evidence.answers.node.api_server import ApiServerAnswers, PortHolder, ServerAnswer
from ..evidence.answers.node.component_end import ComponentEnd, ComponentLog
from ..evidence.document import ends, one_line
from ..parsers import pflag
from . import component_restart, taken_addresses
from .cluster import Host
from .component_restart import End, Restarts
from .control_plane import ControlPlane

SERVER = "kube-apiserver"
YOUNG_SECONDS = 60.0  # an API server that has just started is not ready yet
ETCD_CHECKS = ("etcd", "etcd-readiness")
REFUSED, CERTIFICATE, TIMEOUT, NAME, OTHER = "refused", "certificate", "timeout", "name", "other"
_REASONS = (
    (CERTIFICATE, re.compile(r"x509: |tls: |TLS: |[Cc]ertificate|authentication handshake failed")),
    (NAME, re.compile(r"no such host|Name or service not known|name resolution")),
    (REFUSED, re.compile(r"[Cc]onnection refused")),
    (
        TIMEOUT,
        re.compile(
            r"timed? ?out|i/o timeout|[Nn]o route to host|[Nn]etwork is unreachable|deadline"
        ),
    ),
)
# What the words of one line tell of a connection, to the end of the quoted error.
_QUOTED = re.compile(
    r"(?:dial tcp \S+ |handshake failed: |desc = \\*\"transport: )(?!Error while dialing)"
    r"([^\"\\]{3,200})"
)
# etcd did not answer within the time that an API server gives it at its start.
_STORAGE = re.compile(
    r"(?:creating (?:storage|leases)|storage factory|initializing (?:API|storage)|etcd)"
    r".{0,200}?context deadline exceeded"
)
_IN_USE = re.compile(r"listen\S* .{0,200}address already in use")
_LINE = 600


# Of an API server that ends for another reason: its own end breaks off what it asks etcd.
_CANCELED = re.compile(r"(?:context|operation was) cancell?ed")


@dataclass(frozen=True)
class EtcdFailure:
    """Why an API server does not reach one endpoint of etcd, an empty one where it is not told.

    kind: refused, certificate, timeout, name or other
    line: of the API server's own log, where that tells it
    """

    endpoint: str
    kind: str
    text: str
    line: str = ""


def answers(document: Mapping[str, Any]) -> ApiServerAnswers | None:
    """Return what the collector has, None where it did not answer."""
    return contract.optional_answer(document, ApiServerAnswers)


def is_young(plane: ControlPlane, server: ServerAnswer) -> bool:
    """Tell whether an API server has just started."""
    return any(
        process.pid == server.pid and plane.clock - process.started_at < YOUNG_SECONDS
        for process in plane.processes
    )


def is_silent(server: ServerAnswer) -> bool:
    """Tell whether an API server gives no answer at all."""
    answers = (server.version, server.readyz, server.livez)
    return all(answer.status is None for answer in answers)


def is_refused(server: ServerAnswer) -> bool:
    """Tell whether an API server lets no client of this node see its checks."""
    return server.readyz.status in (401, 403)


def failed_checks(server: ServerAnswer) -> list[str]:
    """Return the checks that fail, those of livez first."""
    names = [*server.livez.failed, *server.readyz.failed]
    return [one_line(name, 120) for name in dict.fromkeys(names)]


def etcd_checks(server: ServerAnswer) -> list[str]:
    """Return the failed checks that are about etcd."""
    return [name for name in failed_checks(server) if name in ETCD_CHECKS]


def other_checks(server: ServerAnswer) -> list[str]:
    """Return the failed checks that are not about etcd."""
    return [name for name in failed_checks(server) if name not in ETCD_CHECKS]


def log_of(document: Mapping[str, Any], component: str = SERVER) -> ComponentLog:
    """Return the end of a component's log, an empty one where it was not read."""
    logs = contract.answer(document, ComponentEnd).components
    return next((log for log in logs if log.component == component), ComponentLog())


def endpoints(plane: ControlPlane) -> list[str]:
    """Return the endpoints of etcd that the flags of this host's API servers name."""
    argvs = [use.words for use in plane.files if use.component == SERVER]
    argvs += [process.argv for process in plane.processes if process.component == SERVER]
    values = [value for argv in argvs for value in pflag.string_flags(argv, "etcd-servers")]
    urls = ",".join(values).split(",")
    return [one_line(url, 200) for url in dict.fromkeys(urls) if url]


def runs(plane: ControlPlane) -> bool:
    """Tell whether an API server runs on this host."""
    return any(process.component == SERVER for process in plane.processes)


def etcd_failures(
    host: Host, document: Mapping[str, Any], plane: ControlPlane
) -> list[EtcdFailure]:
    """Return why an API server that has no etcd does not reach it, [] where it has or may have.

    An endpoint that does not answer is no failure while another one does.
    """
    servers = (answers(document) or ApiServerAnswers()).servers
    if any(_is_without_etcd(server, plane) for server in servers):
        return _by_collector(host, plane) or [EtcdFailure("", OTHER, "")]
    if any(_is_stuck(server, plane) for server in servers):
        return _by_collector(host, plane)
    if runs(plane) or not has_manifest(plane):
        return []
    return _by_log(document, plane) or _by_deadline(host, document, plane)


def has_manifest(plane: ControlPlane) -> bool:
    """Tell whether a static pod of this host is an API server."""
    return any(use.component == SERVER for use in plane.files)


def _is_stuck(server: ServerAnswer, plane: ControlPlane) -> bool:
    return is_silent(server) and not is_young(plane, server)


def _is_without_etcd(server: ServerAnswer, plane: ControlPlane) -> bool:
    return bool(etcd_checks(server)) and not is_young(plane, server)


def _by_collector(host: Host, plane: ControlPlane) -> list[EtcdFailure]:
    """Return what this collection got with the API server's own certificate, if nothing answered.

    Each part of the error begins with the URL of the endpoint.
    """
    status = host.etcd_said.status
    if status is not None and status.errors:
        endpoint, text = one_line(status.endpoint or "", 200), one_line(status.errors[0], 200)
        return [EtcdFailure(endpoint, OTHER, text)]
    error = host.etcd_said.error or ""
    if host.statuses.get("etcd") not in ("error", "timeout") or host.etcd_said.status is not None:
        return []
    failures = []
    for part in error.split("; "):
        url = next((url for url in endpoints(plane) if part.startswith(f"{url}: ")), "")
        if url:
            text = one_line(part[len(url) + 2 :], 200)
            failures.append(EtcdFailure(url, kind_of(text), text))
    return failures


def _by_log(document: Mapping[str, Any], plane: ControlPlane) -> list[EtcdFailure]:
    """Return what the last lines of an API server that ended tell of its connections to etcd."""
    failures: dict[str, EtcdFailure] = {}
    for raw in log_of(document).lines:
        line = ends(raw, _LINE)
        for url in endpoints(plane):
            place = url.rpartition("//")[2].rstrip("/")
            quoted = _QUOTED.findall(line)
            if place in line and quoted and not _CANCELED.search(quoted[-1]):
                text = one_line(quoted[-1], 200)
                failures[url] = EtcdFailure(url, kind_of(text), text, line)
    return list(failures.values())


def _by_deadline(host: Host, document: Mapping[str, Any], plane: ControlPlane) -> list[EtcdFailure]:
    """Return why an API server that gave up waiting for etcd got no answer."""
    lines = [ends(raw, _LINE) for raw in log_of(document).lines]
    line = next((line for line in reversed(lines) if _STORAGE.search(line)), "")
    if not line:
        return []
    return _by_collector(host, plane) or [EtcdFailure("", TIMEOUT, "", line)]


def kind_of(text: str) -> str:
    """Return the sort of an error of a connection."""
    return next((kind for kind, pattern in _REASONS if pattern.search(text)), OTHER)


def memory_ends(document: Mapping[str, Any], plane: ControlPlane) -> list[End]:
    """Return the ends of the API server by the OOM killer within the last hour."""
    restarts = component_restart.of_host(document, plane).get(SERVER, Restarts())
    return [end for end in restarts.ends if end.kind == component_restart.OOM]


@dataclass(frozen=True)
class PortTaken:
    """A port of a component that another process has.

    holder: None where only the log tells of it
    """

    component: str
    holder: PortHolder | None = None
    line: str = ""


def ports_taken(document: Mapping[str, Any], plane: ControlPlane) -> Iterator[PortTaken]:
    """Yield the ports that keep components of this host's manifests from starting."""
    running = {process.component for process in plane.processes if process.static}
    for component in dict.fromkeys(use.component for use in plane.files):
        if component not in running:
            yield from _taken(document, component)


def _taken(document: Mapping[str, Any], component: str) -> Iterator[PortTaken]:
    """Yield the port of a component that does not run, where another process has it."""
    rows = (answers(document) or ApiServerAnswers()).ports
    holders = [row for row in rows if row.component == component and not _is_itself(row)]
    lines = [ends(raw, _LINE) for raw in log_of(document, component).lines]
    line = next((line for line in reversed(lines) if _IN_USE.search(line)), "")
    if holders:
        yield PortTaken(component, holders[0], line)
    elif line:
        yield PortTaken(component, _holder_by_line(document, component, line), line)


def _holder_by_line(document: Mapping[str, Any], component: str, line: str) -> PortHolder | None:
    """Return who listens at the address that the log of a component names, or None."""
    row = taken_addresses.first([line], contract.answer(document, AddressHolders))
    if row is None:
        return None
    for holder in row.holders[:1]:
        if holder.pid is not None and holder.kind == socket_kinds.LISTEN:
            place = (holder.pid, holder.comm, holder.unit, holder.pod_uid, holder.static)
            holder_row = PortHolder(component, row.port, *place)
            if not _is_itself(holder_row):
                return holder_row
    return None


def _is_itself(row: PortHolder) -> bool:
    """Tell whether the component itself, started meanwhile, listens there."""
    return bool(row.static) and row.comm == row.component[: component_restart.COMM]
