# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What judging keeps of a host, and of a cluster of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from ..evidence import contract
from ..evidence.answers import registry
from ..evidence.answers.cluster.server import Server
from ..evidence.answers.cluster.work import Work
from ..evidence.answers.kubemend_journal import Lock, OpenStep
from ..evidence.answers.node.address_holders import AddressHolders
from ..evidence.answers.node.api_server import ApiServerAnswers
from ..evidence.answers.node.api_way import ApiWay
from ..evidence.answers.node.devices import Devices
from ..evidence.answers.node.etcd import Etcd
from ..evidence.answers.node.hangs import Hangs, RemoteMount
from ..evidence.answers.node.installer import Installer
from ..evidence.answers.node.journal import Journal
from ..evidence.answers.node.kernel_log import KernelLine
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.kubelet_log import KubeletLog
from ..evidence.answers.node.path_states import PathStates
from ..evidence.answers.node.runtime import Runtime
from ..evidence.answers.node.scheduler_log import SchedulerLogs
from ..evidence.answers.node.space import DatabaseFile, Spaces
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers.known_age import Versions
from . import (
    anonymous_client,
    certificates,
    cni_chain,
    cni_folders,
    container_denials,
    containerd_merge,
    control_plane,
    default_runtime,
    etcd_damage,
    etcd_initial_state,
    etcd_revisions,
    file_policies,
    flushed_rules,
    held_addresses,
    hidden_units,
    kube_vip,
    machine,
    memory_kills,
    next_release,
    node_identity,
    overlay_base,
    pod_errors,
    rancher_unit,
    registration,
    releases,
    repeated_errors,
    runtime_proxy,
    runtime_work,
    sandbox_setting,
    storage_clients,
    system_pods,
)
from . import cpu_manager as pinning
from . import host_network as model_network
from . import pressure as model_pressure
from .certificates import HostCertificates, KubeletServing
from .cni_chain import CniChain
from .cni_folders import CniFolders
from .containerd_merge import Dropped
from .control_plane import ControlPlane
from .cpu_manager import Pinning
from .etcd_damage import Damage
from .etcd_initial_state import InitialState
from .etcd_revisions import Ahead
from .file_policies import Policies
from .flushed_rules import HostFirewall
from .held_addresses import HeldAddresses
from .hidden_units import HiddenUnit
from .host_network import HostNetwork
from .kube_vip import KubeVip
from .kubelet import busy as kubelet_busy
from .kubelet import config as kubelet_config
from .kubelet import log_command, status
from .kubelet.busy import Busy
from .machine import Machine
from .memory_kills import KernelKills
from .moments import moment
from .next_release import NextRelease
from .node_identity import Identity
from .pod_errors import PodErrors
from .pressure import Pressure
from .rancher_unit import RancherUnit
from .registration import Registration
from .releases import Releases
from .repeated_errors import NodeError, RuntimeObstacle, SandboxImage
from .result import Missing
from .runtime_proxy import RuntimeProxy
from .runtime_work import RuntimeWork
from .sandbox_setting import SandboxSetting
from .system_pods import EndedPod, UnreadPods

Answer = TypeVar("Answer")
# A lock that was not renewed for this long has no holder: left by a retired master, or by a former
# release's lock kind.
STALE_LOCK_SECONDS = 120


@dataclass(frozen=True)
class Host:
    """What judging keeps of one host once its evidence file is closed.

    Memory must not grow with the files.
    """

    host: str
    node: str | None
    key: str | None
    status: str
    reason: str
    groups: tuple[str, ...]
    names: frozenset[str]
    statuses: Mapping[str, str]
    control_plane: ControlPlane | None
    etcd: Etcd
    installer: tuple[str, ...]
    devices: Devices | None = None
    kubelet_started: datetime | None = None
    pinning: Pinning = field(default_factory=Pinning)
    identity: Identity = field(default_factory=Identity)
    working: frozenset[str] = frozenset()  # runs of kubemend that work there
    api_way: ApiWay | None = None
    scheduler_log: SchedulerLogs = field(default_factory=SchedulerLogs)
    pressure: Pressure = field(default_factory=Pressure)
    # seconds by which it is ahead of the controller's, at least and at most
    clock: tuple[float, float] | None = None
    # also where etcd's member list was not answered
    etcd_said: Etcd = field(default_factory=Etcd)
    # what collectors without an answer said
    errors: Mapping[str, str] = field(default_factory=dict)
    # of Kubernetes on this machine; None where the evidence does not say
    traces: tuple[str, ...] | None = None
    kubelet_unit: bool = False
    node_error: NodeError | None = None
    runtime_obstacle: RuntimeObstacle | None = None
    # the newest line of the kubelet about an image that it removed to free space, else empty
    image_removed: str = ""
    sandbox_image: SandboxImage | None = None
    machine: Machine = field(default_factory=Machine)
    registration: Registration = field(default_factory=Registration)
    api_servers: ApiServerAnswers | None = None
    # whether the runtime takes calls; None where that was not asked
    runtime_answers: bool | None = None
    # by which an etcd that does not run says that it cannot read its data
    etcd_damage: Damage | None = None
    releases: Releases = field(default_factory=Releases)
    certificates: HostCertificates | None = None  # None: not of the control plane
    network: HostNetwork = field(default_factory=HostNetwork)
    kubelet_serving: KubeletServing | None = None
    system_pods: tuple[EndedPod, ...] = ()
    unclear_pods: tuple[EndedPod, ...] = ()  # of add-ons, whose containers end
    unread_system_pods: UnreadPods = field(default_factory=UnreadPods)
    pod_errors: PodErrors = field(default_factory=PodErrors)
    next_release: NextRelease = field(default_factory=NextRelease)
    # what its kernel said of remote storage
    storage_lines: tuple[KernelLine, ...] = ()
    memory_kills: KernelKills | None = None  # None: the kernel's log was not read
    # what components log that are system:anonymous for the API server, by component
    anonymous: Mapping[str, str] = field(default_factory=dict)
    unit_components: frozenset[str] = frozenset()  # those that run as units of systemd
    etcd_initial: InitialState = field(default_factory=InitialState)
    busy: Busy = field(default_factory=Busy)
    runtime_work: RuntimeWork = field(default_factory=RuntimeWork)
    kubelet_root: str = ""  # the folder of its kubelet where it is not the usual one
    overlay: overlay_base.Base = field(default_factory=overlay_base.Base)
    cni_folders: CniFolders = field(default_factory=CniFolders)
    default_runtime: str = ""  # of containers without a RuntimeClass
    container_denials: tuple[str, ...] = ()  # what SELinux denied containers, by the audit log
    address_holders: AddressHolders = field(default_factory=AddressHolders)
    path_states: PathStates = field(default_factory=PathStates)
    sandbox_setting: SandboxSetting = field(default_factory=SandboxSetting)
    hidden_units: Mapping[str, HiddenUnit] = field(default_factory=dict)
    # the file of its etcd's database; None where there is none, or an older release collected
    database: DatabaseFile | None = None
    policies: Policies = field(default_factory=Policies)
    runtime_proxy: RuntimeProxy = field(default_factory=RuntimeProxy)
    # what its containerd drops of its files
    dropped_settings: tuple[Dropped, ...] = ()
    # the revision of its etcd that other members do not have
    etcd_ahead: Ahead | None = None
    rancher: RancherUnit | None = None  # the unit of k3s or RKE2 that runs its kubelet
    kubelet_log: str = log_command.USUAL  # the command that shows it
    cni_chain: CniChain = field(default_factory=CniChain)
    held: HeldAddresses = held_addresses.NONE  # at links of its own
    firewall: HostFirewall = field(default_factory=HostFirewall)
    remote_mounts: tuple[RemoteMount, ...] = ()  # that were asked whether they answer
    kube_vip: KubeVip | None = None  # of its static pods
    unheard_docker: str = ""  # what dockerd repeats of answers whose client has gone

    @property
    def is_k3s(self) -> bool:
        """Return whether k3s runs its kubelet, and on a server its API server and its etcd."""
        return self.rancher is not None and self.rancher.program == "k3s"

    def missing(self, collector: str, *, absent_is_answer: bool = True) -> tuple[Missing, ...]:
        """Empty when this host's collector answered, else the one thing that is missing."""
        if self.status != "ok":
            return (Missing(self.host, "host", self.status),)
        status = self.statuses.get(collector, "not_asked")
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (Missing(self.host, collector, status),)


@dataclass(frozen=True)
class UnlistedMember:
    """A member of the control plane that is no host of the inventory.

    source: what names it
    """

    name: str
    source: str


@dataclass
class Cluster:
    """One cluster's hosts and the API's view of it.

    api: collectors of the cluster evidence
    api_status: how the reading of the API ended
    """

    key: str | None
    hosts: list[Host]
    api: Mapping[str, Any] = field(default_factory=dict)
    api_host: str | None = None
    api_status: str = "not_asked"
    api_reason: str = ""
    collected_at: str = ""
    strangers: list[UnlistedMember] = field(default_factory=list)
    members: list[Host] = field(default_factory=list)
    unplaced: list[Host] = field(default_factory=list)
    # Node of the API -> which host of the run it is
    node_hosts: dict[str, Host | None] = field(default_factory=dict)
    control_plane_nodes: set[str] = field(default_factory=set)
    # the release that an upgrade is to bring; None: the one that follows
    upgrade_to: tuple[int, int] | None = None

    def hosts_by_node(self) -> dict[str, Host]:
        """Map names of Nodes to hosts.

        A host that did not answer proves no Node of its own; its names and addresses may tell.
        """
        hosts: dict[str, Host] = {}
        for host in self.hosts:
            names = host.names if host.node is None else (host.node,)
            hosts.update(dict.fromkeys(names, host))
        return hosts

    def versions(self, node: str | None) -> Versions:
        """Return the releases of a Node's kernel and runtime, where a host of the run is it."""
        host = self.node_hosts.get(node or "")
        return host.releases.of_node if host is not None else ()

    def answer(self, collector: str) -> Any:
        """Return a cluster collector's data when it answered, else None."""
        record = self.api.get(collector) or {}
        if record.get("status") == "ok":
            return record.get("data")
        return None

    def typed(self, kind: type[Answer]) -> Answer:
        """Return a cluster collector's answer, an empty one when it did not answer."""
        data = self.answer(registry.COLLECTORS[kind])
        if not data:
            return kind()
        return contract.decoded(data, kind).answer

    def answered(self, kind: type) -> bool:
        """Tell whether a cluster collector answered."""
        return bool(self.answer(registry.COLLECTORS[kind]))

    def missing_answer(self, collector: str, status: str) -> Missing:
        """Return that an answer of the API is missing, at the host that asked it."""
        return Missing(self.api_host or "cluster API", collector, status)

    def cut(self, collector: str) -> tuple[Missing, ...]:
        """Return what is missing where the API's list was cut: the rest of it."""
        if (self.api.get(collector) or {}).get("truncated"):
            return (self.missing_answer(collector, "timeout"),)
        return ()

    def missing(self, collector: str, *, absent_is_answer: bool = False) -> tuple[Missing, ...]:
        """Empty when the API answered this collector, else the one thing that is missing."""
        if self.api_status == "ok":
            silent = "not_asked"
        else:
            silent = self.api_status
        status = (self.api.get(collector) or {}).get("status") or silent
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (self.missing_answer(collector, status),)

    @property
    def working(self) -> frozenset[str]:
        """Runs of kubemend that work, as far as the hosts and the host that asked the API know."""
        work = self.typed(Work)
        return _working(work.lock, work.unproven).union(*(host.working for host in self.hosts))

    @property
    def version(self) -> str | None:
        """Return the version of Kubernetes that the API server reports."""
        return self.typed(Server).git_version


DAY_SECONDS = 86400
MAX_ERROR = 300  # characters of what a collector said
# image_gc_manager.go; up to 1.20 with the image between the words
_REMOVES = re.compile(r"Removing image (?:\S{1,200} )?to free ")
LAST = 253402300799.0  # the end of the year 9999, in seconds since the epoch


def host_of(document: Mapping[str, Any]) -> Host:
    """Return the extract of one node's evidence."""
    system = contract.answer(document, System)
    kubelet = contract.answer(document, Kubelet)
    installer = contract.answer(document, Installer)
    journal = contract.answer(document, Journal)
    names = {document["host"], document.get("node"), document.get("address"), system.hostname}
    names.update(system.addresses or ())
    plane, own_machine = control_plane.extract(document), machine.extract(document)
    own_releases = releases.extract(document, own_machine, plane)
    started = None
    if kubelet.process is not None:
        started = moment(kubelet.process.started_at)
    return Host(
        document["host"],
        document.get("node"),
        document.get("cluster_key"),
        document.get("status", "ok"),
        document.get("reason") or "",
        tuple(document.get("groups") or ()),
        frozenset(str(name) for name in names if name) - {"127.0.0.1", "::1"},
        {
            _interned(name): _interned(record.get("status", "error"))
            for name, record in document.get("collectors", {}).items()
        },
        plane,
        contract.answer(document, Etcd),
        installer.paths,
        contract.optional_answer(document, Devices),
        started,
        pinning.extract(document),
        node_identity.extract(document),
        _working(journal.lock, journal.unproven),
        contract.optional_answer(document, ApiWay),
        contract.answer(document, SchedulerLogs),
        model_pressure.extract(document),
        _clock(document, system.clock),
        contract.partial_answer(document, Etcd),
        _errors(document),
        installer.traces,
        kubelet.unit is not None,
        node_error=repeated_errors.of_node(document, own_releases),
        runtime_obstacle=repeated_errors.of_runtime(document, own_releases),
        image_removed=_image_removed(document),
        sandbox_image=repeated_errors.of_sandbox_image(document),
        machine=own_machine,
        registration=registration.extract(document),
        api_servers=contract.optional_answer(document, ApiServerAnswers),
        runtime_answers=_runtime_answers(document),
        etcd_damage=etcd_damage.extract(document),
        releases=own_releases,
        certificates=_certificates(document),
        network=model_network.extract(document),
        kubelet_serving=certificates.kubelet_serving(document),
        system_pods=system_pods.extract(document),
        unclear_pods=system_pods.unclear(document),
        unread_system_pods=system_pods.unread(document),
        pod_errors=pod_errors.extract(document),
        next_release=next_release.extract(document),
        storage_lines=storage_clients.lines(document),
        memory_kills=memory_kills.extract(document),
        anonymous=anonymous_client.extract(document),
        unit_components=anonymous_client.running(document),
        etcd_initial=etcd_initial_state.extract(document, plane),
        busy=kubelet_busy.extract(document),
        runtime_work=runtime_work.extract(document),
        kubelet_root=kubelet_config.other_root(kubelet.argv),
        overlay=overlay_base.extract(document),
        cni_folders=cni_folders.extract(document),
        default_runtime=default_runtime.extract(document),
        container_denials=container_denials.extract(document),
        address_holders=contract.answer(document, AddressHolders),
        path_states=contract.answer(document, PathStates),
        sandbox_setting=sandbox_setting.extract(document),
        hidden_units=hidden_units.extract(document),
        database=contract.answer(document, Spaces).database,
        policies=file_policies.extract(document),
        runtime_proxy=runtime_proxy.extract(document),
        dropped_settings=containerd_merge.extract(document),
        etcd_ahead=etcd_revisions.extract(document),
        rancher=rancher_unit.extract(document),
        kubelet_log=log_command.read(document),
        cni_chain=cni_chain.extract(document),
        held=held_addresses.extract(document),
        firewall=flushed_rules.extract(document),
        remote_mounts=contract.answer(document, Hangs).mounts,
        kube_vip=kube_vip.extract(document),
        unheard_docker=repeated_errors.unheard_docker(document),
    )


def _runtime_answers(document: Mapping[str, Any]) -> bool | None:
    runtime = contract.optional_answer(document, Runtime)
    if runtime is None or not runtime.asked:
        return None
    return runtime.error is None


def _certificates(document: Mapping[str, Any]) -> HostCertificates | None:
    """Return the certificates of a control-plane node; those of workers would only cost memory."""
    host_certificates = certificates.extract(document)
    if host_certificates.is_control_plane:
        return host_certificates
    return None


def _image_removed(document: Mapping[str, Any]) -> str:
    """Return the newest line of a kubelet about an image that it removed within a day, or ""."""
    lines = contract.answer(document, KubeletLog).lines
    newest = next((line for line in reversed(lines) if _REMOVES.search(line)), "")
    if not newest:
        return ""
    removed_at, clock = status.moment(newest), contract.answer(document, System).clock
    if removed_at is not None and clock is not None and clock - removed_at > DAY_SECONDS:
        return ""
    return one_line(newest, MAX_ERROR)


def _errors(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors of the collectors that gave no answer."""
    errors = {}
    for name, record in (document.get("collectors") or {}).items():
        if record.get("status") not in ("ok", "not_asked") and record.get("error"):
            errors[_interned(str(name))] = _interned(one_line(record["error"], MAX_ERROR))
    return errors


def _interned(value: Any) -> Any:
    """Return a text of which all hosts have one in memory; another value as it is."""
    if type(value) is str:
        return sys.intern(value)
    return value


def _clock(document: Mapping[str, Any], clock: Any) -> tuple[float, float] | None:
    """Return the bounds between which the host's clock is ahead of the controller's.

    The result is None where one of the three times is missing, or they contradict each other.
    """
    times = [
        value
        for value in (document.get("asked_at"), clock, document.get("received_at"))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LAST
    ]
    if len(times) < 3 or times[0] > times[2]:
        return None
    return times[1] - times[2], times[1] - times[0]


def _working(lock: Lock | None, steps: Iterable[OpenStep]) -> frozenset[str]:
    """Return the runs that lock a host, or have a step running on it."""
    runs = {str(step.run_id) for step in steps if step.running}
    if lock is not None and lock.held:
        runs.add(str(lock.run_id))
    return frozenset(runs)


def unjudged(record: Mapping[str, Any], reason: str) -> Host:
    """Return the extract of a host whose evidence cannot be evaluated.

    record: its document, or its former extract.
    """
    groups = record.get("groups")
    if not isinstance(groups, (list, tuple)):
        groups = ()
    return Host(
        record["host"],
        _text(record.get("node")),
        _text(record.get("cluster_key") or record.get("key")),
        "error",
        reason,
        tuple(groups),
        frozenset([record["host"]]),
        {},
        None,
        Etcd(),
        (),
    )


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return None
