# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeconfig: the API server of one context, and how its user is known there.

What is not known is refused by its name, because to leave it out would be another request.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import yaml

from .wrong_input import WrongInput, shown

MAX_BYTES = 4 << 20
CLUSTER_FIELDS = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "disable-compression",
    "extensions",
}
USER_FIELDS = {
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "token",
    "tokenFile",
    "extensions",
}
INSTEAD = "use a kubeconfig with a certificate or a token, or name the hosts"


@dataclass(frozen=True)
class Access:
    """An API server, and what a client shows and checks there; texts are PEM."""

    server: SplitResult
    authority: str | None = None
    verified: bool = True
    server_name: str | None = None
    certificate: str | None = None
    key: str | None = None
    token: str | None = None


def read(path: str, context: str | None = None) -> Access:
    """Return the access that a context of a kubeconfig gives, by default its current one."""
    file = Path(path).expanduser()
    document = _parsed(file, path)
    names = _mapping(_named(document, "contexts", context or _current(document, path), path))
    cluster = _mapping(_named(document, "clusters", names.get("cluster"), path))
    user = _mapping(_named(document, "users", names.get("user"), path))
    _refuse_unknown("cluster", cluster, CLUSTER_FIELDS, path)
    _refuse_unknown("user", user, USER_FIELDS, path)
    return _access(_Source(file.parent, path), cluster, user)


def _parsed(file: Path, path: str) -> Mapping[str, Any]:
    try:
        with file.open("rb") as handle:
            data = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise WrongInput(f"kubeconfig {shown(path)} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise WrongInput(f"kubeconfig {shown(path)} has more than {MAX_BYTES >> 20} MB")
    try:
        document = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise WrongInput(f"kubeconfig {shown(path)} is no YAML") from None
    if not isinstance(document, Mapping) or not isinstance(document.get("contexts"), list):
        raise WrongInput(f"kubeconfig {shown(path)} has no contexts")
    return document


def _current(document: Mapping[str, Any], path: str) -> str:
    name = document.get("current-context")
    if not name:
        raise WrongInput(
            f"kubeconfig {shown(path)} has no current-context; name one with --context"
        )
    return str(name)


def _named(document: Mapping[str, Any], kind: str, name: Any, path: str) -> Any:
    """Return an entry of a list of named ones; the field has the name of the list's kind."""
    field = kind.removesuffix("s")
    rows = document.get(kind)
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("name") == name:
            return row.get(field)
    raise WrongInput(f"kubeconfig {shown(path)} has no {field} {shown(name)}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _refuse_unknown(kind: str, row: Mapping[str, Any], known: set[str], path: str) -> None:
    for field, value in row.items():
        if field not in known and value:
            raise WrongInput(
                f"the {kind} of kubeconfig {shown(path)} has {shown(field)}, which kubemend does"
                f" not support: {INSTEAD}"
            )


@dataclass(frozen=True)
class _Source:
    """The folder of a kubeconfig, to which its paths are relative, and its name for sentences."""

    folder: Path
    path: str

    def text(self, row: Mapping[str, Any], field: str, data_field: str = "") -> str | None:
        """Return the text of a field with base64, or of the file that another one names."""
        if data_field and row.get(data_field):
            try:
                return base64.b64decode(str(row[data_field]), validate=True).decode("utf-8")
            except (binascii.Error, ValueError):
                raise self.wrong(f"{data_field} that is no base64 of a text") from None
        if not row.get(field):
            return None
        file = self.folder / Path(str(row[field])).expanduser()
        try:
            with file.open(encoding="utf-8") as handle:
                return handle.read(MAX_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "no text"
            raise self.wrong(f"{field} {shown(file)}, which cannot be read: {reason}") from None

    def wrong(self, what: str) -> WrongInput:
        return WrongInput(f"kubeconfig {shown(self.path)} has a {what}")


def _access(source: _Source, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Access:
    certificate = source.text(user, "client-certificate", "client-certificate-data")
    key = source.text(user, "client-key", "client-key-data")
    if bool(certificate) != bool(key):
        raise source.wrong("user with a client certificate or its key alone")
    token = source.text(user, "tokenFile") or user.get("token")
    if token is not None:
        token = str(token).strip()
        if not (token.isascii() and token.isprintable()):
            raise source.wrong("token with characters that no token has")
    access = Access(
        server=_server(source, cluster),
        authority=source.text(cluster, "certificate-authority", "certificate-authority-data"),
        verified=cluster.get("insecure-skip-tls-verify") is not True,
        server_name=str(cluster.get("tls-server-name") or "") or None,
        certificate=certificate,
        key=key,
        token=token or None,
    )
    if access.server.scheme == "http" and (access.token or access.key):
        raise source.wrong("server without TLS, to which no token and no certificate is sent")
    return access


def _server(source: _Source, cluster: Mapping[str, Any]) -> SplitResult:
    text = str(cluster.get("server") or "")
    try:
        server = urlsplit(text)
        is_usable = server.scheme in ("http", "https") and bool(server.hostname)
        is_usable = is_usable and server.port != 0 and text.isascii() and text.isprintable()
    except ValueError:
        is_usable = False
    if not is_usable or " " in text or server.username:
        raise source.wrong(f"server {shown(text) or '(none)'}, which is no address of an API")
    return server
