# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `certificates`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CertificateUse:
    """A flag that names a file of certificates; file: its index in `files`."""

    component: str = ""
    flag: str = ""
    path: str = ""
    pid: int | None = None
    file: int | None = None


@dataclass(frozen=True)
class UsedFile:
    """A file of certificates; key_beside: whether a key of the same name lies beside it."""

    path: str = ""
    pem: str | None = None
    error: str | None = None
    mtime: float | None = None
    key_beside: bool = False


@dataclass(frozen=True)
class KeyUse:
    """A flag that names a file with a key; digests: SHA-256 of its public keys."""

    component: str = ""
    flag: str = ""
    path: str = ""
    pid: int | None = None
    digests: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class KubeconfigUse:
    """The certificates of a kubeconfig; component is empty for one of administrators.

    host_client: that of the host's file, where the process has another file at the same path
    """

    component: str = ""
    path: str = ""
    server: str | None = None
    client: str | None = None
    client_path: str | None = None
    authority: str | None = None
    digests: tuple[str, ...] = ()
    users: int = 0
    error: str | None = None
    mtime: float | None = None
    host_client: str | None = None


@dataclass(frozen=True)
class Served:
    """The certificate that a port shows; flag: what names its file."""

    component: str = ""
    flag: str = ""
    pid: int | None = None
    address: str | None = None
    port: int | None = None
    pem: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Certificates:
    """The certificates that the components of a node use."""

    uses: tuple[CertificateUse, ...] = ()
    files: tuple[UsedFile, ...] = ()
    keys: tuple[KeyUse, ...] = ()
    kubeconfigs: tuple[KubeconfigUse, ...] = ()
    served: tuple[Served, ...] = ()
