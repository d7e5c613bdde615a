# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a node as collectors read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileRecord:
    """One file: what it is, and its text without secrets."""

    path: str = ""
    name: str = ""
    kind: str = "other"
    link: str | None = None
    size: int | None = None
    mode: str | None = None
    uid: int | None = None
    gid: int | None = None
    mtime: float | None = None
    ctime: float | None = None  # of manifests only
    sha256: str | None = None
    text: str | None = None
    masked: tuple[tuple[int, int], ...] = ()  # byte spans of secrets
    truncated: bool = False
    binary: bool = False
    error: str | None = None


@dataclass(frozen=True)
class CertificateFile:
    """The certificates of one file."""

    path: str | None = None
    pem: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class SettingLine:
    """One line of a configuration file."""

    path: str = ""
    line: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Assignment:
    """One key and its value in a configuration file."""

    path: str = ""
    line: int | None = None
    key: str = ""
    value: str = ""


@dataclass(frozen=True)
class Unread:
    """A file or directory that could not be read."""

    path: str = ""
    error: str | None = None
