# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kubelet`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..file_record import CertificateFile, FileRecord
from ..http_answer import HttpAnswer
from ..systemd_unit import Unit


@dataclass(frozen=True)
class MaskLink:
    """One link or empty file that masks a unit."""

    path: str = ""
    to: str | None = None


@dataclass(frozen=True)
class Mask:
    """What masks a unit, and what counts without the mask."""

    links: tuple[MaskLink, ...] = ()
    file: str | None = None
    wanted: bool = False


@dataclass(frozen=True)
class KubeletUnit(Unit):
    """The kubelet's unit, with what starts it."""

    start_words: tuple[str, ...] = ()
    split_variables: tuple[tuple[str, str | None], ...] = ()
    environment_files: tuple[FileRecord, ...] = ()
    mask: Mask | None = None
    # (file of the unit, program of its ExecStart); None: an older release collected
    programs: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class KubeletProcess:
    """The kubelet's process."""

    pid: int | None = None
    started_at: float | None = None
    argv: tuple[str, ...] = ()
    exe: str | None = None
    exe_deleted: bool | None = None
    # HTTPS_PROXY without credentials, NO_PROXY; None: unreadable, or an older release collected
    proxy: Mapping[str, str] | None = None


@dataclass(frozen=True)
class NetworkFile:
    """One configuration file of the pod network."""

    name: str = ""
    size: int | None = None


@dataclass(frozen=True)
class Networks:
    """The directory of the pod network's configuration."""

    folder: str | None = None
    files: tuple[NetworkFile, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Setting:
    """A key of k3s or RKE2, and its value where that is no secret."""

    line: int = 0
    key: str = ""
    value: str | None = None


@dataclass(frozen=True)
class SettingsFile:
    """A configuration file of k3s or RKE2."""

    path: str = ""
    error: str | None = None
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True)
class Template:
    """A file of which k3s or RKE2 makes containerd's configuration.

    expressions: whether it is a template, and no whole configuration; nvidia: whether it names
    NVIDIA's runtime
    """

    path: str = ""
    expressions: bool = True
    nvidia: bool = False


@dataclass(frozen=True)
class Distribution:
    """The program that runs the kubelet, and its configuration.

    argv: the command line that k3s logs for the kubelet within it; empty where it is not known
    """

    program: str = ""
    files: tuple[SettingsFile, ...] = ()
    argv: tuple[str, ...] = ()
    templates: tuple[Template, ...] = ()


@dataclass(frozen=True)
class Kubelet:
    """The kubelet as it runs, or as it would start."""

    process: KubeletProcess | None = None
    unit: KubeletUnit | None = None
    argv: tuple[str, ...] = ()
    argv_source: str | None = None
    config: FileRecord | None = None
    config_dropins: tuple[FileRecord, ...] = ()
    kubeconfig: FileRecord | None = None
    client_certificate: CertificateFile | None = None
    ca: CertificateFile | None = None
    static_pod_path: str | None = None
    static_pod_path_source: str | None = None
    healthz: HttpAnswer | None = None
    cni: Networks | None = None
    # of k3s and RKE2; None: another one runs the kubelet, or an older release collected
    distribution: Distribution | None = None
