# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `boot`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..file_record import FileRecord, Unread


@dataclass(frozen=True)
class Mount:
    """One mounted file system; the errors are those of ext4.

    error_count: errors since the last check of the file system
    error_since_boot: whether the last of them is of this boot
    on_error: what the kernel does then: remount-ro, continue or panic
    """

    point: str = ""
    source: str = ""
    type: str = ""
    options: str = ""
    error_count: int | None = None
    error_since_boot: bool | None = None
    on_error: str | None = None


@dataclass(frozen=True)
class Selinux:
    """The mode that runs, and the mode of the next boot."""

    enforce: str | None = None
    config: str | None = None


@dataclass(frozen=True)
class FirewallFile:
    """One file of a firewall."""

    path: str = ""
    text: str | None = None
    error: str | None = None
    truncated: bool = False
    executable: bool | None = None


@dataclass(frozen=True)
class LoaderLine:
    """One line of a unit or file of a service that loads a ruleset."""

    path: str = ""
    line: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Firewall:
    """One firewall that is installed, or a service that loads a ruleset at its start.

    since: when systemd started it last
    version: of firewalld
    enabled_at: when the first link was made by which a boot starts a service with a ruleset
    lines: of such a service, where it is active
    changed_at: of nftables, when its state changed last, by its start or by a reload
    reload_failed: whether its last reload failed; None: it had none, or that is not known
    """

    active: bool | None = None
    enabled: bool | None = None
    masked: bool | None = None
    files: tuple[FirewallFile, ...] = ()
    zones: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    since: float | None = None
    version: str | None = None
    enabled_at: float | None = None
    lines: tuple[LoaderLine, ...] = ()
    changed_at: float | None = None
    reload_failed: bool | None = None


@dataclass(frozen=True)
class Denials:
    """What SELinux denied since the boot."""

    count: int | None = None
    lines: tuple[str, ...] = ()
    cut: bool = False
    since: bool = False
    path: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Boot:
    """The kernel's modules and settings, and what sets them at the next boot."""

    running: Mapping[str, str | None] | None = None
    modules: Mapping[str, str | None] | None = None
    tree: bool | None = None
    modules_files: tuple[FileRecord, ...] | None = None
    cmdline: tuple[tuple[str, str], ...] | None = None
    folders: Mapping[str, str | None] | None = None
    mounts: tuple[Mount, ...] | None = None
    selinux: Selinux | None = None
    container: bool | None = None
    devices: Mapping[str, bool | None] | None = None  # of fstab: whether each is there
    firewall: Mapping[str, Firewall] | None = None
    denials: Denials | None = None
    fapolicyd: bool | None = None  # whether it runs; None: not known
    # the mode of each profile of a runtime's program; None: not known, or no AppArmor
    apparmor: Mapping[str, str] | None = None
