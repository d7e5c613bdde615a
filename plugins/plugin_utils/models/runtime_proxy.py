# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of a node's container runtime, which the plugins of the CNI inherit. Pure.

A plugin is a program of Go that the runtime starts in its own environment, and asks the API by the
address of its Service. k3s and RKE2 give containerd the variables that begin with CONTAINERD_.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.runtime import Runtime
from ..evidence.document import one_line
from ..parsers import no_proxy
from ..parsers.pod_start_message import NODE, Trouble
from .result import EvidenceRef

KIND = "runtime_proxy"
PROXY, EXCEPTIONS, DOCKER = "HTTPS_PROXY", "NO_PROXY", "docker"
PREFIX = "CONTAINERD_"
_ASSIGNMENT = re.compile(
    rf"\s*(?:export\s+)?(?P<name>{PREFIX}(?:{PROXY}|{EXCEPTIONS}))\s*=\s*(?P<value>.*)",
    re.IGNORECASE,
)
_MASKED = re.compile(r"[\"']?\*{2,}[\"']?")
_PLUGIN = re.compile(r"plugin type=|[Nn]etworkPlugin cni failed")
_REQUEST = re.compile(
    r"(?:Get|Post|Put|Patch|Delete) \\*\"?https://(?P<server>[A-Za-z0-9.:\[\]-]{3,120})[/\"\\?]"
    r"[^\s\"\\]{0,300}\\*\"?: (?P<reason>[^\n]{3,400})"
)
# What a proxy answers to CONNECT (net/http), or how it is not reached.
_BY_PROXY = re.compile(
    r"proxyconnect tcp: |(?:Forbidden|Proxy Authentication Required|Bad Gateway|Service Unavailable"
    r"|Gateway Timeout|Method Not Allowed|Not Found)\b"
)
# The certificate of what answers in place of the server.
_OF_ANOTHER = re.compile(
    r"x509: certificate is (?:valid for [^\n]{1,300}?, not |not valid for any names, but wanted to"
    r" match )(?P<name>[\w.:*-]{1,253})"
)


@dataclass(frozen=True)
class RuntimeProxy:
    """What the runtime of a node asks through a proxy.

    proxy: its address without credentials, "" where it is not known
    exceptions: what is asked without it, None where that is not known
    place: the file that names it for containerd alone, "" for none
    line: where in it
    """

    proxy: str = ""
    exceptions: str | None = None
    place: str = ""
    line: int = 0

    @property
    def _names(self) -> tuple[str, str]:
        """Return the variables of the proxy and of its exceptions, as they are set."""
        prefix = PREFIX if self.place else ""
        return f"{prefix}{PROXY}", f"{prefix}{EXCEPTIONS}"

    @property
    def is_there(self) -> bool:
        """Tell whether the runtime has a proxy."""
        return bool(self.proxy or self.place)

    def excepts(self, server: str) -> bool | None:
        """Tell whether a server is asked without the proxy, None where that is not known."""
        if self.exceptions is None:
            return None
        if no_proxy.bypasses(f"https://{server}", self.exceptions):
            return True
        return None if no_proxy.is_cut(self.exceptions) else False

    def trouble(self, text: str) -> Trouble | None:
        """Return why a plugin of the CNI does not reach the API, where that is this proxy."""
        match = _REQUEST.search(text)
        if match is None or not self.is_there or not _PLUGIN.search(text):
            return None
        server = match.group("server")
        is_excepted = self.excepts(server)
        if is_excepted or (is_excepted is None and not _is_by_proxy(server, match.group("reason"))):
            return None
        return Trouble(KIND, NODE, self._clause(server, is_excepted), self._advice(server))

    def _clause(self, server: str, is_excepted: bool | None) -> str:
        name, exceptions = self._names
        place = f" in {self.place}" if self.place else ""
        proxy = f" {self.proxy}" if self.proxy else ""
        clause = (
            "the network plugin takes the environment of the runtime, which has the proxy"
            f"{proxy} ({name}{place}), and asks {server} through it"
        )
        if is_excepted is None:
            return f"{clause}, unless {exceptions}, whose value was not read, has that address"
        return f"{clause}: {exceptions} does not have that address"

    def _advice(self, server: str) -> str:
        _name, exceptions = self._names
        setting = "in the environment of the runtime's unit (systemctl cat)"
        if self.place:
            setting = f"in {self.place}"
        return (
            f"add to {exceptions} {setting} the networks of Services (which has"
            f" {no_proxy.split(server)[0]}) and pods, the addresses of the nodes, .svc and"
            " .cluster.local, and restart the unit, so that the plugins get them"
        )

    def proof(self, host: str) -> tuple[EvidenceRef, ...]:
        """Return where the proxy is named."""
        if self.place:
            name = self._names[0]
            return (EvidenceRef("file", host, path=self.place, line=self.line or None, text=name),)
        text = f"{PROXY}={self.proxy} {EXCEPTIONS}={self.exceptions or ''}"
        return (EvidenceRef("process", host, object="container runtime", text=one_line(text, 400)),)


def _is_by_proxy(server: str, reason: str) -> bool:
    """Tell whether a failure is one that a proxy makes."""
    if _BY_PROXY.match(reason):
        return True
    match = _OF_ANOTHER.search(reason)
    return match is not None and match.group("name") == no_proxy.split(server)[0]


def extract(document: Mapping[str, Any]) -> RuntimeProxy:
    """Return the proxy of a node's runtime: of its process, else as the unit's files name it."""
    kubelet = contract.answer(document, Kubelet)
    runtime = contract.answer(document, Runtime)
    variables = runtime.proxy
    if runtime.kind == DOCKER and kubelet.process is not None:
        variables = kubelet.process.proxy
    if variables is not None and not variables.get(PROXY):
        return RuntimeProxy()
    place, line, exceptions = _named(kubelet)
    if variables is not None:
        exceptions = one_line(variables.get(EXCEPTIONS) or "", no_proxy.MAX_TEXT)
        return RuntimeProxy(one_line(variables[PROXY], 200), exceptions, place, line)
    if not place:
        return RuntimeProxy()
    return RuntimeProxy("", exceptions, place, line)


def _named(kubelet: Kubelet) -> tuple[str, int, str | None]:
    """Return the file and line that name a proxy for containerd, and its exceptions if known."""
    place, line, exceptions = "", 0, ""
    is_hidden = False
    for path, number, match in _assignments(kubelet):
        value = match.group("value").strip()
        if match.group("name").upper().endswith(PROXY):
            if value:
                place, line = path, number
        elif _MASKED.fullmatch(value):
            is_hidden = True
        else:
            exceptions = one_line(value.strip("\"'"), no_proxy.MAX_TEXT)
    return place, line, None if is_hidden else exceptions


def _assignments(kubelet: Kubelet) -> Iterator[tuple[str, int, re.Match[str]]]:
    files = kubelet.unit.environment_files if kubelet.unit is not None else ()
    for file in files:
        for number, text in enumerate((file.text or "").splitlines(), 1):
            match = _ASSIGNMENT.fullmatch(text)
            if match is not None:
                yield one_line(file.path, 200), number, match
