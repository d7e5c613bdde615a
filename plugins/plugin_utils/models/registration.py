# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a kubelet that runs from having a Node, by its files, its process and its log. Pure.

A kubelet without a kubeconfig asks for a client certificate with its bootstrap token, and waits
until the request is signed. It registers its Node once, at its start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.repeated_errors import ComponentErrors, RepeatedErrors
from ..evidence.document import one_line
from ..parsers import no_proxy
from .kubelet import config as kubelet_config

MISSING = "missing"
UNREADABLE = "[unreadable]"
KEPT = 3  # lines of the log
# What a kubelet says of its certificate request and of its registration, and what follows later.
ASKS = re.compile(
    r"[Ff]ailed while requesting a signed certificate|[Cc]annot create certificate signing request"
)
# Without a credential each of its requests fails.
REGISTERS = re.compile(f"Unable to register node|{ASKS.pattern}|getting credentials: exec: ")
_FOLLOWS = re.compile(
    r"[Uu]pdat(?:e|ing) node status|[Ee]rror getting (?:the current )?node|[Ff]ailed to ensure"
    r" (?:node )?lease|nodes? \\?\"[^\"]*\" not found"
)


@dataclass(frozen=True)
class Registration:
    """How a kubelet comes to its Node.

    kubeconfig: why it could not be read, "" where it was; None for a kubelet without an API server
    unregistered: the text that tells it not to register
    proxy: where it sends its requests, without credentials; "" for none that is known
    no_proxy: what it asks without the proxy
    read_at: when its log was read
    errors: the errors about its Node and its certificate; None where its log was not read
    collected_at: when its host was read, by that host's clock
    """

    kubeconfig: str | None = None
    unregistered: str = ""
    proxy: str = ""
    no_proxy: str = ""
    read_at: float = 0.0
    errors: ComponentErrors | None = None
    collected_at: str = ""


def extract(document: Mapping[str, Any]) -> Registration:
    """Return what evaluating a cluster keeps of one host."""
    kubelet = contract.answer(document, Kubelet)
    log = contract.answer(document, RepeatedErrors)
    proxy: Mapping[str, str] = {}
    if kubelet.process is not None and kubelet.process.proxy is not None:
        proxy = kubelet.process.proxy
    return Registration(
        _kubeconfig(kubelet),
        _unregistered(kubelet),
        _proxy(proxy.get("HTTPS_PROXY") or ""),
        one_line(proxy.get("NO_PROXY") or "", no_proxy.MAX_TEXT),
        log.read_at or 0.0,
        _errors(log),
        one_line(document.get("collected_at") or "", 40),
    )


def _proxy(text: str) -> str:
    """Return a proxy; "" for an unreadable one, which Go may not use either."""
    if text == UNREADABLE:
        return ""
    return one_line(text, 200)


def _kubeconfig(kubelet: Kubelet) -> str | None:
    if kubelet.kubeconfig is None:
        return None
    return one_line(kubelet.kubeconfig.error or "", 120)


def _unregistered(kubelet: Kubelet) -> str:
    value, setting = kubelet_config.read(kubelet).switch("registerNode", "register-node")
    if value is False and setting is not None:
        return one_line(setting.text, 120)
    return ""


def _errors(log: RepeatedErrors) -> ComponentErrors | None:
    """Return the row of the kubelet with the few entries that are about its Node."""
    row = next((row for row in log.components if row.component == "kubelet"), None)
    if row is None:
        return None
    registers = [entry for entry in row.entries if REGISTERS.search(entry.line)]
    follows = [entry for entry in row.entries if _FOLLOWS.search(entry.line)]
    entries = dict.fromkeys([*registers[:KEPT], *follows[:KEPT]])
    return replace(row, entries=tuple(entries))
