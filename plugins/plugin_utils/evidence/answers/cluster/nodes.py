# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `nodes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..http_answer import Clock
from .api_pod import NOT_COLLECTED


@dataclass(frozen=True)
class Address:
    """One address of a Node."""

    type: str | None = None
    address: str | None = None


@dataclass(frozen=True)
class Cordon:
    """A cordon that kubemend set."""

    run: str | None = None
    reason: str | None = None
    at: str | None = None
    held: bool | None = None


@dataclass(frozen=True)
class Taint:
    """One taint of a Node."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None
    added: str | None = None


@dataclass(frozen=True)
class Condition:
    """One condition of a Node."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    since: str | None = None


@dataclass(frozen=True)
class Vtep:
    """The end of a tunnel of flannel, as it wrote it into an annotation."""

    vni: int | None = None
    mac: str | None = None


@dataclass(frozen=True)
class Node:
    """One Node of the API."""

    name: str | None = None
    uid: str | None = None
    machine_id: str | None = None
    system_uuid: str | None = None
    boot_id: str | None = None
    kubelet_version: str | None = None
    runtime_version: str | None = None  # such as containerd://1.7.35
    addresses: tuple[Address, ...] = ()
    control_plane: bool | None = None
    labels: Mapping[str, str] | None = None
    ready: str | None = None
    unschedulable: bool | None = None
    cordon: Cordon | None = None
    created: str | None = None
    taints: tuple[Taint, ...] | None = None
    conditions: tuple[Condition, ...] | None = None
    devices: Mapping[str, tuple[int, int]] | None = None  # capacity, allocatable
    # cpu: millicores, memory: bytes; None: an older release collected
    capacity: Mapping[str, int] | None = None
    # spec.podCIDRs; None: an older release collected it
    pod_cidrs: tuple[str, ...] | None = None
    # by the annotation in which a network plugin keeps it
    plugin_addresses: Mapping[str, str] | None = None
    vtep: Vtep | None = None
    lease: str | None = NOT_COLLECTED
    lease_duration_s: int | None = None


@dataclass(frozen=True)
class CertificateRequest:
    """A kubelet's request for a certificate that has none yet."""

    name: str | None = None
    node: str | None = None
    user: str | None = None
    created: str | None = None
    state: str | None = None  # waiting, denied, failed or approved


@dataclass(frozen=True)
class Nodes:
    """The Nodes of a cluster, and what kubelets ask for that are not yet one."""

    items: tuple[Node, ...] = ()
    requests: tuple[CertificateRequest, ...] | None = None  # None: not all known
    # the same for their serving certificates; None also where an older release collected
    serving_requests: tuple[CertificateRequest, ...] | None = None
    clock: Clock | None = None
