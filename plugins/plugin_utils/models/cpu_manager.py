# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's CPU pinning: its kubelet's configuration and state, and its machine's CPUs. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from ..evidence import contract, memoize
from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.node import pinning
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.kubelet_log import KubeletLog
from ..parsers import (
    cpu_manager_state,
    cpuset,
    memory_manager_state,
    pflag,
)
from ..parsers.cpu_manager_state import NONE, WRONG, CpuState
from ..parsers.memory_manager_state import MemoryState
from . import cpu_manager_options
from .kubelet import (
    config as kubelet_config,
)
from .kubelet import (
    dropin as kubelet_dropin,
)
from .kubelet import (
    exit_cause as kubelet_exit_cause,
)
from .kubelet import (
    status as kubelet_status,
)
from .kubelet.config import KubeletConfig, Setting

Row = tuple[int, int, int | None, int | None]  # CPU, core, socket, NUMA node
# What a kubelet says last that does not start because of its managers.
FATAL = (
    "Failed to start ContainerManager",
    "failed to run Kubelet",
    "failed to initialize cpu manager",
)
CHECKSUM = "its checksum is that of other content"
# The last log lines of a memory manager about its state, not about the memory reserved for it.
REFUSED_MEMORY = (
    "delete the memory manager checkpoint file",
    "the expected machine state is different from the real one",
)
# What it says of cpu_manager_state where the checksum is that of other content.
_CORRUPT = re.compile(r"checkpoint is corrupted\b.{0,60}CPU manager checkpoint file")
# With one of these a kubelet picks the CPUs that it reserves by rules of its own.
SPREADING = (cpu_manager_options.NUMA, cpu_manager_options.CORES, cpu_manager_options.CACHE)
RESERVED_CGROUPS = (
    ("systemReservedCgroup", "system-reserved-cgroup"),
    ("kubeReservedCgroup", "kube-reserved-cgroup"),
)
# the release from which on an unknown cpuManagerPolicy is refused; before, it counts as none
REFUSES = (1, 16)
# the release from which on entries are by pod; one of before is taken up where the runtime still
# has its container
BY_POD = (1, 18)
# Where kubeadm writes every kubelet's configuration; kubespray's kubelets read another file.
KUBEADM_FILE = "/var/lib/kubelet/config.yaml"

RUNNING = ("active", "running")  # as systemd shows a unit


@dataclass(frozen=True)
class Pinning:
    """What judging a cluster keeps of a node.

    policy: the policy as the kubelet's next start reads it
    state_policy: the policy of cpu_manager_state
    state_path: where that file is
    from_kubeadm: whether the policy is what the file says that `kubeadm upgrade node` writes: no
    flag, drop-in or other file has the last word
    topology: the topology manager's policy that its configuration sets

    Each is None where it is not known, or there is no such file.
    """

    policy: str | None = None
    state_policy: str | None = None
    state_path: str | None = None
    from_kubeadm: bool = False
    topology: str | None = None


@dataclass(frozen=True)
class Reservation:
    """CPUs kept from containers that have CPUs alone.

    cpus: which, None where only their number is known, or that not either: then why says why.
    """

    cpus: cpuset.CPUs | None
    number: int | None
    settings: tuple[Setting, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Node:
    """One node's evidence of pinning, read.

    policy and memory_policy: none where what could not be read may say otherwise.

    state and file: None where there is no cpu_manager_state, or it could not be read (then trouble
    says why). last_words: the line with which a kubelet that does not run gave its managers up,
    where the deep tier was asked for. refused_memory: the line with which one that ended refused
    memory_manager_state; corrupt_state: the same of a cpu_manager_state that is corrupt. lent: what
    a reset that did not come to its end added to its arguments. config_path: its --config. proven:
    a kubelet that is well was started with what its files say now.
    """

    config: KubeletConfig
    policy: str | None
    policy_setting: Setting | None
    state: CpuState | None
    file: FileRecord | None
    seen: pinning.Pinning
    running: bool
    release: tuple[int, int] | None = None
    trouble: str = ""
    last_words: str = ""
    lent: tuple[str, ...] = ()
    refused_memory: str = ""
    config_path: str | None = None
    proven: bool = False
    corrupt_state: str = ""

    @property
    def options(self) -> dict[str, str]:
        """CpuManagerPolicyOptions."""
        return {
            key: value.value
            for key, value in self.config.mapping(
                "cpuManagerPolicyOptions", "cpu-manager-policy-options"
            ).items()
        }

    @property
    def gates(self) -> dict[str, str]:
        """featureGates: those of the command line are added to the files', as only these are."""
        files = {
            path[1]: value.value
            for path, value in self.config.values.items()
            if len(path) == 2 and path[0] == "featureGates"
        }
        return {
            **files,
            **{
                key: value.value
                for key, value in self.config.mapping("featureGates", "feature-gates").items()
            },
        }

    def takes_strict(self) -> bool:
        """Tell whether its release and gates may support reserving CPUs from all containers."""
        return not self._misfits(cpu_manager_state.STATIC, {cpu_manager_options.STRICT: "true"})

    def _misfits(self, policy: str | None, options: Mapping[str, str]) -> str:
        return cpu_manager_options.misfits(
            policy, options, self.gates, self.release, self.topology_policy
        )

    @property
    def topology_policy(self) -> str:
        """The policy of the topology manager that its configuration sets, empty without."""
        setting = self.config.setting("topologyManagerPolicy", "topology-manager-policy")
        if setting is None:
            return ""
        return setting.value

    @property
    def strict(self) -> bool:
        """Return whether the reserved CPUs are kept from everybody's containers."""
        return self._has(cpu_manager_options.STRICT)

    def _has(self, option: str) -> bool:
        return self.options.get(option, "") in cpu_manager_options.TRUTHS

    @property
    def cpus(self) -> pinning.Cpus:
        """The CPUs as the kernel lists them."""
        return self.seen.cpus or pinning.Cpus()

    @property
    def online(self) -> cpuset.CPUs | None:
        """The machine's CPUs that are switched on."""
        return _parsed(self.cpus.online)

    @property
    def numa(self) -> frozenset[int] | None:
        """The machine's NUMA nodes, also those without a CPU; None where they were not read."""
        if self.seen.numa is None:
            return None
        return frozenset(self.seen.numa)

    @property
    def numa_of_cpus(self) -> frozenset[int]:
        """The NUMA nodes that are known to have a CPU: there may be others."""
        return frozenset(numa for *_cpu, numa in self.cpus.topology or () if numa is not None)

    @property
    def memory_total(self) -> int | None:
        """The machine's memory in bytes."""
        total = self.seen.memory_total
        if total is None or total <= 0:
            return None
        return total

    def reservation(self) -> Reservation:
        """Return what the kubelet reserves: its list, else systemReserved and kubeReserved.

        Without a list a kubelet takes whole sockets, then whole cores, then threads, the lowest
        first; where its release, its options or an uneven machine may make it take others, which
        ones is not known.
        """
        listed = self.config.setting("reservedSystemCPUs", "reserved-cpus")
        if listed is not None and listed.value.strip():
            return _listed(listed)
        parts = [
            self.config.mapping(key, flag).get("cpu")
            for key, flag in (
                ("systemReserved", "system-reserved"),
                ("kubeReserved", "kube-reserved"),
            )
        ]
        settings = tuple(part for part in parts if part is not None)
        amounts = [kubelet_config.cpus(part.value) for part in settings]
        known_amounts = [amount for amount in amounts if amount is not None]
        if len(known_amounts) < len(amounts):
            texts = " and ".join(part.text for part in settings)
            return Reservation(None, None, settings, f"{texts}: no quantity of CPUs")
        return self._summed(ceil(sum(known_amounts, Fraction(0))), settings)

    def _summed(self, number: int, settings: tuple[Setting, ...]) -> Reservation:
        """Return the reservation of so many CPUs."""
        lowest = self._lowest(number)
        if lowest is None:
            reason = f"which {number} CPUs this kubelet reserves cannot be determined from here"
            return Reservation(None, number, settings, reason)
        return Reservation(lowest, number, settings)

    def _lowest(self, number: int) -> cpuset.CPUs | None:
        """Return the CPUs that a kubelet reserves without a list, or None."""
        if not number:
            return frozenset()
        rows = self.cpus.topology
        if rows is None or len(rows) < number or not _even(rows):
            return None
        if any(self._has(option) for option in SPREADING):
            return None
        # Releases differ in whether they fill sockets or NUMA nodes first.
        orders = [frozenset(_ordered(rows, places)[:number]) for places in ((2,), (2, 3), (3, 2))]
        if any(order != orders[0] for order in orders):
            return None
        return orders[0]

    def containers(self) -> tuple[pinning.Container, ...]:
        """Containers of pods that run on this node, with the sets that they really have."""
        return self.seen.containers or ()

    def containers_there(self) -> set[str] | None:
        """Return ids of the containers that run, or whose log the kubelet keeps.

        The result is None where the links to logs were not read, or no container that runs has one.
        The links show nothing then.
        """
        running, logged = self.containers(), self.seen.logged
        if logged is None or not any(container.name for container in running):
            return None
        return {str(container.container_id) for container in running} | set(logged)

    def foreign(self) -> str:
        """Return why the kubelet does not take up a well-formed state that another version wrote.

        The result is empty where no reason is known.
        """
        state = self.state
        if state is None or state.problem or self.release is None:
            return ""
        release = ".".join(map(str, self.release))
        if state.generation == 2 and self.release < BY_POD:
            return (
                f"its entries are of the format of 1.18 and newer, which Kubernetes {release} does"
                " not know"
            )
        gone = self._gone(state)
        if not gone:
            return ""
        return (
            f"its entries are of the format up to 1.17, and Kubernetes {release} takes up none of a"
            f" container that is gone ({gone[0][:12]})"
        )

    def _gone(self, state: CpuState) -> list[str]:
        """Return the containers of an old state that are gone, as far as that is known."""
        if state.generation != 1 or self.release is None or self.release < BY_POD:
            return []
        there = self.containers_there()
        if there is None:
            return []
        return sorted(name for _pod, name in state.entries if name not in there)


def _listed(setting: Setting) -> Reservation:
    """Return the reservation of a list of CPUs."""
    cpus = _parsed(setting.value)
    if cpus is None:
        return Reservation(None, None, (setting,), f"{setting.text} is no list of CPUs")
    return Reservation(cpus, len(cpus), (setting,))


def extract(document: Mapping[str, Any]) -> Pinning:
    """Return what evaluating a cluster keeps of one node; never raises."""
    node = read(document)
    if node is None:
        return Pinning()
    state_policy = state_path = None
    written = _written_policy(node.state)
    if node.file and written:
        state_policy, state_path = written, node.file.path
    topology = node.topology_policy or None
    return Pinning(node.policy, state_policy, state_path, _is_from_kubeadm(node), topology)


def _written_policy(state: CpuState | None) -> str | None:
    """Return the policy of a state that is well formed."""
    if state is None or state.problem:
        return None
    return state.policy


def _is_from_kubeadm(node: Node) -> bool:
    """Tell whether the policy is what kubeadm's file sets."""
    if node.policy is None or node.config_path != KUBEADM_FILE:
        return False
    return node.policy_setting is None or node.policy_setting.path == KUBEADM_FILE


@memoize.last
def read(document: Mapping[str, Any]) -> Node | None:
    """Return what is known of a node; None where its kubelet was not found, or not collected."""
    kubelet = contract.optional_answer(document, Kubelet)
    if kubelet is None:
        return None
    config = kubelet_config.read(kubelet)
    answer = contract.answer(document, pinning.Pinning)
    state, trouble = _state_file(answer.cpu_state)
    release = pflag.parse_version((answer.kubelet_version or "").rpartition(" ")[2])
    policy, setting = _policy(config, release)
    last_words = ""
    if not _runs(kubelet):
        last_words = _last_words(contract.answer(document, KubeletLog).lines)
    return Node(
        config,
        policy,
        setting,
        state,
        answer.cpu_state,
        answer,
        _runs(kubelet),
        release,
        trouble,
        last_words,
        kubelet_dropin.lent(kubelet),
        _refused_memory(document),
        _path(kubelet),
        _proven(kubelet),
        _corrupt_state(document, answer.cpu_state),
    )


def _runs(kubelet: Kubelet) -> bool:
    """Tell whether the kubelet runs: one within k3s has no process of its own."""
    if kubelet.process is not None:
        return True
    unit = kubelet.unit
    is_within = kubelet.distribution is not None and bool(kubelet.distribution.argv)
    return is_within and unit is not None and (unit.active_state, unit.sub_state) == RUNNING


def _policy(
    config: KubeletConfig, release: tuple[int, int] | None
) -> tuple[str | None, Setting | None]:
    """Return the CPU manager's policy as the next start reads it, and what sets it."""
    setting = config.setting("cpuManagerPolicy", "cpu-manager-policy")
    policy = _value(config, setting, NONE)
    if policy in (None, cpu_manager_state.STATIC) or release is None or release >= REFUSES:
        return policy, setting
    return NONE, setting


def _value(config: KubeletConfig, setting: Setting | None, default: str) -> str | None:
    """Return a setting's value; None where what could not be read may set another."""
    if not config.certain(setting):
        return None
    if setting is None:
        return default
    return setting.value or default


def _state_file(file: FileRecord | None) -> tuple[CpuState | None, str]:
    """Return what cpu_manager_state contains, and why that is not known."""
    if file is None or not file.path:
        return None, ""
    trouble = unread(file)
    if trouble:
        return None, trouble
    return read_state(file), ""


def _path(kubelet: Kubelet) -> str | None:
    if kubelet.config is None:
        return None
    return kubelet.config.path


def _proven(kubelet: Kubelet) -> bool:
    """Tell whether a kubelet that is well was started with what its files contain now."""
    if kubelet.process is None or kubelet.healthz is None or kubelet.healthz.status != 200:
        return False
    return not kubelet_dropin.lent(kubelet) and not kubelet_config.pending_changes(kubelet)


def unread(file: FileRecord) -> str:
    """Return why a state file's content is not known, in one clause; empty where it is."""
    if file.error:
        return file.error
    if file.truncated:
        return "it is longer than is read"
    return ""


def read_state(file: FileRecord) -> CpuState:
    """Return the content of cpu_manager_state; a power cut can leave zeros, which are no text."""
    if file.binary:
        return CpuState("it is no text")
    return cpu_manager_state.cpu_state(file.text)


def _last_words(lines: tuple[str, ...]) -> str:
    """Return the last line with which a kubelet gave its managers up."""
    for line in reversed(lines):
        if any(words in line for words in FATAL):
            return line
    return ""


def _refused_memory(document: Mapping[str, Any]) -> str:
    """Return the line with which a kubelet exited over memory_manager_state, or nothing.

    No reading of the file alone shows that.
    """
    death = _death(document)
    if death is None or not death.certain:
        return ""
    if death.cause != kubelet_exit_cause.MEMORY_MANAGER_STATE:
        return ""
    return death.line if any(words in death.line for words in REFUSED_MEMORY) else ""


def _corrupt_state(document: Mapping[str, Any], file: FileRecord | None) -> str:
    """Return the line with which a kubelet exited over a corrupt cpu_manager_state, or nothing.

    Its words are whole, so that no other line has to prove them. A file that was written since is
    not the one that it read.
    """
    death = _death(document)
    if death is None or not _CORRUPT.search(death.line):
        return ""
    logged = kubelet_status.moment(death.line)
    written = file.mtime if file is not None else None
    if logged is not None and written is not None and written > logged + 1:
        return ""
    return death.line


def _death(document: Mapping[str, Any]) -> kubelet_exit_cause.Death | None:
    """Return how a kubelet exited that does not run, or None."""
    status = kubelet_status.read(document)
    if status is None or not status.ended:
        return None
    return status.death


def memory_policy(node: Node) -> tuple[str | None, Setting | None]:
    """Return the memory manager's policy as the next start reads it."""
    setting = node.config.setting("memoryManagerPolicy", "memory-manager-policy")
    policy = _value(node.config, setting, "None")
    if policy is None:
        return None, None
    return policy, setting


def read_memory(file: FileRecord) -> MemoryState:
    """Return the content of memory_manager_state.

    A checksum of other content is a problem, as it is to every kubelet.
    """
    if file.binary:
        return MemoryState("it is no text")
    state = memory_manager_state.memory_state(file.text)
    if state.checksum == WRONG:
        return replace(state, problem=CHECKSUM)
    return state


def _even(rows: Iterable[Row]) -> bool:
    """Tell whether all cores, sockets and NUMA nodes have as many CPUs as each other.

    A kubelet takes from smaller ones first.
    """
    kinds = (lambda row: (row[2], row[1]), lambda row: row[2], lambda row: row[3])
    return all(len(set(Counter(kind(row) for row in rows).values())) == 1 for kind in kinds)


def _ordered(rows: Iterable[Row], places: tuple[int, ...]) -> list[int]:
    """Return CPUs by these columns (socket 2, NUMA node 3), then by core, then by number.

    A core is named by its lowest CPU.
    """
    first: dict[tuple[Any, Any], int] = {}
    for cpu, core, socket, _numa in rows:
        first[socket, core] = min(cpu, first.get((socket, core), cpu))

    def key(row: Row) -> tuple[int, ...]:
        columns = [_known(row[place]) for place in places]
        return (*columns, first[row[2], row[1]], row[0])

    return [row[0] for row in sorted(rows, key=key)]


def _known(number: int | None) -> int:
    """Return a socket or NUMA node; an unknown one comes first."""
    if number is None:
        return -1
    return number


def _parsed(text: str | None) -> cpuset.CPUs | None:
    if text is None:
        return None
    try:
        return cpuset.parse(text)
    except cpuset.CpusetError:
        return None
