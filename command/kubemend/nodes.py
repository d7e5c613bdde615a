# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Nodes of a cluster, by its API: names, addresses and roles for an inventory."""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .kubeconfig import Access
from .wrong_input import WrongInput, shown

TIMEOUT_SECONDS = 20
PAGE = 200  # Nodes of one answer
MAX_PAGES = 100
MESSAGE = 300  # characters of what a server says
MAX_BYTES = 64 << 20  # of one answer
# An inventory takes these texts, and ssh the address: nothing else may come from an API.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_ROLE = "kubernetes.io/role"
_SYSTEM = "kubernetes.io/os"


@dataclass(frozen=True)
class Node:
    """A Node as an inventory needs it."""

    name: str
    address: str
    control_plane: bool


def read(access: Access) -> list[Node]:
    """Return the Nodes with Linux; raise WrongInput where there are none or no answer comes."""
    try:
        nodes = [node for row in _rows(access) if (node := _node(row)) is not None]
    except WrongInput:
        raise
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise WrongInput(f"the API at {_place(access)} does not answer: {_reason(error)}") from None
    if not nodes:
        raise WrongInput(f"the API at {_place(access)} has no Nodes with Linux")
    return nodes


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shown(error) or type(error).__name__


def _place(access: Access) -> str:
    return f"{access.server.scheme}://{access.server.netloc}"


def _rows(access: Access) -> Iterator[Mapping[str, Any]]:
    """Yield the Nodes of all answers."""
    more = ""
    for _page in range(MAX_PAGES):
        document = _answer(access, f"/api/v1/nodes?limit={PAGE}{more}")
        yield from document["items"]
        token = (document.get("metadata") or {}).get("continue")
        if not token:
            return
        more = f"&continue={quote(str(token), safe='')}"
    raise ValueError(f"more than {MAX_PAGES * PAGE} Nodes")


def _answer(access: Access, path: str) -> Mapping[str, Any]:
    connection = _connection(access)
    try:
        headers = {"Accept": "application/json", "User-Agent": "kubemend"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        connection.request("GET", access.server.path.rstrip("/") + path, headers=headers)
        response = connection.getresponse()
        data = response.read(MAX_BYTES + 1)
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise WrongInput(
            f"the API at {_place(access)} does not list its Nodes: {response.status}"
            f" {shown(_message(data) or response.reason, MESSAGE)}"
        )
    if len(data) > MAX_BYTES:
        raise ValueError(f"an answer of more than {MAX_BYTES >> 20} MB")
    document = json.loads(data)
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        raise ValueError("it is no list of Nodes")
    return document


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""


def _connection(access: Access) -> http.client.HTTPConnection:
    server = access.server
    host = server.hostname or ""
    if server.scheme == "http":
        return http.client.HTTPConnection(host, server.port, timeout=TIMEOUT_SECONDS)
    try:
        context = _context(access)
    except (OSError, ValueError) as error:
        raise WrongInput(
            f"the certificate-authority, client certificate or client key for {_place(access)} in"
            f" the kubeconfig cannot be used: {_reason(error)}"
        ) from None
    connection = _Connection(host, server.port, timeout=TIMEOUT_SECONDS, context=context)
    connection.server_name = access.server_name or host
    return connection


class _Connection(http.client.HTTPSConnection):
    """A connection to a server whose certificate has another name than its address."""

    server_name = ""

    def connect(self) -> None:
        """Connect as HTTPSConnection does, with this name."""
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(self.sock, server_hostname=self.server_name)


def _context(access: Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority or None)
    if access.authority:
        # Python 3.13 wants of an authority all that RFC 5280 demands, and Go does not.
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if not access.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate and access.key:
        # The module ssl takes files only; the folder is readable for its owner alone.
        with tempfile.TemporaryDirectory(prefix="kubemend-") as folder:
            pair = Path(folder) / "client.pem"
            pair.touch(mode=0o600)
            pair.write_text(f"{access.certificate}\n{access.key}\n", encoding="utf-8")
            context.load_cert_chain(pair, password=_no_password)
    return context


def _no_password() -> str:
    raise WrongInput("the client key of the kubeconfig is encrypted, which kubemend does not read")


def _node(row: Any) -> Node | None:
    """Return a Node; None for one that is no Linux, or whose name no API server would accept."""
    try:
        name, labels = row["metadata"]["name"], row["metadata"].get("labels") or {}
        addresses = row["status"].get("addresses") or []
        by_type = {item["type"]: item["address"] for item in reversed(addresses)}
        is_control_plane = labels.get(_ROLE) == "master" or any(
            label in labels for label in _CONTROL_PLANE
        )
        is_linux = labels.get(_SYSTEM, "linux") == "linux"
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it is no list of Nodes") from None
    if not is_linux or not _is_name(name):
        return None
    addresses = [by_type.get("InternalIP"), by_type.get("Hostname")]
    usable = [item for item in addresses if _is_address(item) or _is_name(item)]
    return Node(name, str((*usable, name)[0]), is_control_plane)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return False
