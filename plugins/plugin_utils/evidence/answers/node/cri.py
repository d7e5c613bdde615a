# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `cri`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CriCondition:
    """A condition of the runtime."""

    type: str = ""
    status: bool = False
    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class CriConfig:
    """A few values of containerd's effective configuration, or of CRI-O's files."""

    default_runtime: str = ""
    systemd_cgroup: bool | None = None  # of the default runtime, where that is runc
    sandbox_image: str = ""  # empty: it is not told (containerd 2)
    sandbox_image_present: bool | None = None
    sandbox_image_by: str = ""  # of CRI-O's files or cri-dockerd's arguments, what sets it
    snapshotter: str = ""
    conf_dir: str = ""
    bin_dirs: tuple[str, ...] = ()
    max_conf_num: int | None = None
    default_network: str = ""  # of CRI-O, which then uses no other
    pids_limit: int | None = None  # of CRI-O's files, for a container
    pids_limit_path: str = ""  # the file and the line that set it


@dataclass(frozen=True)
class ConfigLine:
    """A line of the runtime's configuration."""

    line: int | None = None
    table: str = ""
    key: str = ""
    value: str = ""


@dataclass(frozen=True)
class ConfigFile:
    """A file of the runtime's configuration: the lines that decide how pods are made."""

    path: str = ""
    version: int | None = None
    error: str | None = None
    lines: tuple[ConfigLine, ...] = ()


@dataclass(frozen=True)
class Cri:
    """What the container runtime says of itself."""

    name: str = ""
    version: str = ""
    driver: str | None = None  # None: it does not tell its kubelet
    conditions: tuple[CriCondition, ...] = ()
    config: CriConfig | None = None
    cni_error: str | None = None  # empty: it loaded a configuration
    sandboxes: tuple[str, ...] | None = None
    files: tuple[ConfigFile, ...] = ()
