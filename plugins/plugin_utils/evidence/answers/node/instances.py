# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `instances`."""

from __future__ import annotations

from dataclasses import dataclass

from ..file_record import CertificateFile, FileRecord


@dataclass(frozen=True)
class ConfigFile(FileRecord):
    """A scheduler's configuration file, with its path on the host."""

    host_path: str | None = None


@dataclass(frozen=True)
class GivenFile:
    """A file that a flag names."""

    path: str = ""
    mtime: float | None = None
    replaced: bool = False


@dataclass(frozen=True)
class ComponentProcess:
    """One process of a control plane component.

    ignores_modes: whether owner and mode of files do not keep it out (CAP_DAC_OVERRIDE)
    label: that of SELinux or AppArmor
    """

    component: str = ""
    pid: int | None = None
    started_at: float | None = None
    argv: tuple[str, ...] = ()
    exe: str | None = None
    host_network: bool | None = None
    kubeconfig: FileRecord | None = None
    authority: CertificateFile | None = None
    config: ConfigFile | None = None
    pod_uid: str | None = None
    static: bool | None = None
    container_id: str | None = None
    unit: str | None = None
    given: tuple[GivenFile, ...] | None = None  # None: an older release collected
    ignores_modes: bool | None = None
    label: str | None = None


@dataclass(frozen=True)
class UnreadableProcess:
    """A process whose arguments could not be read."""

    pid: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Instances:
    """The control plane processes of a node."""

    processes: tuple[ComponentProcess, ...] = ()
    unreadable: tuple[UnreadableProcess, ...] = ()
