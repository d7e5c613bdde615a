# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pinning`."""

from __future__ import annotations

from dataclasses import dataclass

from ..file_record import FileRecord

Task = tuple[int, str, str]


@dataclass(frozen=True)
class Cpus:
    """The CPUs of a host, as the kernel lists them."""

    online: str | None = None
    possible: str | None = None
    isolated: str | None = None
    # CPU, core, socket, NUMA node
    topology: tuple[tuple[int, int, int | None, int | None], ...] | None = None


@dataclass(frozen=True)
class ReservedCgroup:
    """A cgroup that the kubelet is configured to limit."""

    name: str = ""
    driver: str = ""
    path: str = ""
    missing: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Container:
    """One container with the CPUs that its cgroup allows."""

    pod_uid: str | None = None
    pod: str | None = None
    name: str | None = None
    container_id: str | None = None
    static: bool | None = None
    pid: int | None = None
    cpus: str | None = None
    allowed: str | None = None


@dataclass(frozen=True)
class FrozenCgroup:
    """A cgroup that is frozen, with its tasks: PID, name, state."""

    pod_uid: str | None = None
    container_id: str | None = None
    path: str | None = None
    state: str | None = None
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True)
class StuckContainer:
    """A container with tasks in state D: PID, name, state."""

    pod_uid: str | None = None
    pod: str | None = None
    name: str | None = None
    container_id: str | None = None
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True)
class Pinning:
    """The state of the CPU and memory managers, and the CPUs of containers."""

    root_dir: str | None = None
    cpu_state: FileRecord | None = None
    memory_state: FileRecord | None = None
    cpus: Cpus | None = None
    numa: tuple[int, ...] | None = None
    memory_total: int | None = None
    cgroups: tuple[ReservedCgroup, ...] | None = None  # None: an older release collected
    pod_cgroups: tuple[str, ...] = ()  # those of a kubelet for all pods
    pods: tuple[str, ...] | None = None
    containers: tuple[Container, ...] | None = None
    logged: tuple[str, ...] | None = None
    frozen: tuple[FrozenCgroup, ...] | None = None
    stuck: tuple[StuckContainer, ...] | None = None
    runc: str | None = None
    mount: str | None = None  # of util-linux; None: not asked, or an older release collected
    kubelet_version: str | None = None
