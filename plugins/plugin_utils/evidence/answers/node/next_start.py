# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `next_start`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program that runs, and the one that lies at its path.

    replaced: whether they are two; None: this user may not know
    missing: whether nothing lies there
    running, disk: what both say of their version, where they are two
    """

    name: str = ""
    pid: int | None = None
    path: str | None = None
    started_at: float | None = None
    replaced: bool | None = None
    missing: bool = False
    running: str = ""
    disk: str = ""


@dataclass(frozen=True)
class ReadFile:
    """A file that a program reads at its start, and whether it was changed since then."""

    path: str = ""
    newer: bool | None = None


@dataclass(frozen=True)
class Conflict:
    """A setting that another one forbids."""

    path: str = ""
    line: int = 0
    key: str = ""


@dataclass(frozen=True)
class RuntimeFiles:
    """containerd's configuration, as its next start reads it.

    asked: whether the program on the disk was asked for it
    error: why it refuses its files, "" where it does not, None where it gave no answer
    """

    path: str = ""
    files: tuple[ReadFile, ...] = ()
    asked: bool = False
    error: str | None = None
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True)
class AbsentSource:
    """A line of fstab whose source is not there."""

    line: int = 0
    what: str = ""
    point: str = ""


@dataclass(frozen=True)
class Mounts:
    """What fstab mounts at a boot and is not there; unknown: lines of which that is not known."""

    rows: tuple[AbsentSource, ...] = ()
    unknown: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel that is installed and does not run.

    tree: whether its modules are there
    lacks: modules that are loaded now, and that it has not
    is_default: whether the link vmlinuz leads to it
    """

    release: str = ""
    tree: bool = False
    lacks: tuple[str, ...] = ()
    is_default: bool = False


@dataclass(frozen=True)
class Kernels:
    """The kernel that runs, and the others."""

    running: str = ""
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Library:
    """A library of NVIDIA's driver."""

    path: str = ""
    version: str = ""


@dataclass(frozen=True)
class GpuDriver:
    """NVIDIA's driver in the kernel, and its libraries."""

    loaded: str = ""
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True)
class OriginPattern:
    """Origins whose packages are upgraded; old: in the form origin:archive."""

    old: bool = False
    text: str = ""


@dataclass(frozen=True)
class Distribution:
    """What patterns of origins call the distribution."""

    id: str = ""
    codename: str = ""


@dataclass(frozen=True)
class PackageSource:
    """What the Release file of a source of packages says of it."""

    origin: str = ""
    archive: str = ""
    codename: str = ""
    label: str = ""
    component: str = ""
    site: str = ""


@dataclass(frozen=True)
class Package:
    """A package that nothing keeps, and the sources of its version and of newer ones."""

    name: str = ""
    installed: str = ""
    candidate: str = ""
    sources: tuple[PackageSource, ...] = ()


@dataclass(frozen=True)
class Upgrades:
    """What unattended-upgrades takes; on: whether its daily job runs."""

    on: bool = False
    patterns: tuple[OriginPattern, ...] = ()
    system: Distribution | None = None
    packages: tuple[Package, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class RpmPackage:
    """A package that no file of dnf or yum keeps; own: whether the distribution made it."""

    name: str = ""
    installed: str = ""
    own: bool = False


@dataclass(frozen=True)
class RpmUpgrades:
    """What dnf or yum upgrades by itself; security: whether security updates alone."""

    on: bool = False
    program: str = ""
    unit: str = ""
    security: bool = False
    packages: tuple[RpmPackage, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Place:
    """The line of a file that a program named as it refused it."""

    path: str = ""
    line: int = 0
    key: str = ""


@dataclass(frozen=True)
class Trial:
    """What containerd did in a trial start, which kubemend_probe asks for.

    state: served; ended, by itself; silent, until the time limit; refused, if nothing was started
    reason: why it was refused
    lines, failures: the last ones of its log, and those of plugins that were not loaded
    cri: whether it began to load the plugin that serves the CRI
    """

    state: str = ""
    reason: str = ""
    path: str = ""
    program: str = ""
    lines: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    cri: bool | None = None
    place: Place | None = None


@dataclass(frozen=True)
class NextStart:
    """What the next start of a node reads, and what runs does not have."""

    programs: tuple[Program, ...] = ()
    runtime_files: RuntimeFiles | None = None
    mounts: Mounts | None = None
    kernels: Kernels | None = None
    gpu: GpuDriver | None = None
    upgrades: Upgrades | None = None
    rpm_upgrades: RpmUpgrades | None = None
    trial: Trial | None = None
