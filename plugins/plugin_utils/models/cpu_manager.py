# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's CPU pinning: what its kubelet is told, what it wrote down, what the machine has.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from ...module_utils.shared import restart_impact as pending
from ..evidence import memoize as remember
from ..parsers import (
    cpu_manager_state as manager_state,
)
from ..parsers import (
    cpuset,
)
from ..parsers import (
    memory_manager_state as memory_state,
)
from ..parsers import (
    pflag as flags,
)
from ..parsers.cpu_manager_state import NONE, WRONG, CpuState
from ..parsers.memory_manager_state import MemoryState
from . import control_plane
from . import cpu_manager_options as cpu_options
from .kubelet import (
    config as kubelet_config,
)
from .kubelet import (
    dropin as kubelet_dropin,
)
from .kubelet import (
    exit_cause as kubelet_death,
)
from .kubelet import (
    status as kubelet_why,
)
from .kubelet.config import KubeletConfig, Setting

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
# With one of these a kubelet picks the CPUs that it reserves by rules of its own.
SPREADING = (cpu_options.NUMA, cpu_options.CORES, cpu_options.CACHE)
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


@dataclass(frozen=True)
class Pinning:
    """What judging a cluster keeps of a node. policy: as the kubelet's next start reads it.

    State_policy: of cpu_manager_state.

    Each is None where it is not known, or there is no such file. state_path: where that file lies.
    from_kubeadm: whether the policy is what the file says that `kubeadm upgrade node` writes: no
    flag, drop-in or other file has the last word.
    """

    policy: str | None = None
    state_policy: str | None = None
    state_path: str | None = None
    from_kubeadm: bool = False


@dataclass(frozen=True)
class Reservation:
    """CPUs kept from containers that have CPUs alone. cpus.

    Which, None where only their number is known, or that not either: then why says why.
    """

    cpus: cpuset.CPUs | None
    number: int | None
    settings: tuple[Setting, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Node:
    """One node's evidence of pinning, read. policy and memory_policy.

    None where what could not be read may say otherwise.

    state and file: None where there is no cpu_manager_state, or it could not be read (then trouble
    says why). last_words: the line with which a kubelet that does not run gave its managers up,
    where the deep tier was asked for. refused_memory: the line with which one that ended refused
    memory_manager_state. lent: what a reset that did not come to its end added to its arguments.
    config_path: its --config. proven: a kubelet that is well was started with what its files say
    now.
    """

    config: KubeletConfig
    policy: str | None
    policy_setting: Setting | None
    state: CpuState | None
    file: Mapping[str, Any] | None
    seen: Mapping[str, Any]
    running: bool
    release: tuple[int, int] | None = None
    trouble: str = ""
    last_words: str = ""
    lent: tuple[str, ...] = ()
    refused_memory: str = ""
    config_path: str | None = None
    proven: bool = False

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
        return not self._misfits(manager_state.STATIC, {cpu_options.STRICT: "true"})

    def _misfits(self, policy: str | None, options: Mapping[str, str]) -> str:
        topology = self.config.setting("topologyManagerPolicy", "topology-manager-policy")
        return cpu_options.misfits(
            policy, options, self.gates, self.release, topology.value if topology else ""
        )

    @property
    def strict(self) -> bool:
        """Whether the reserved CPUs are kept from everybody's containers."""
        return self._has(cpu_options.STRICT)

    def _has(self, option: str) -> bool:
        return self.options.get(option, "") in cpu_options.TRUTHS

    @property
    def online(self) -> cpuset.CPUs | None:
        """The machine's CPUs that are switched on."""
        return _parsed((self.seen.get("cpus") or {}).get("online"))

    @property
    def numa(self) -> frozenset[int] | None:
        """The machine's NUMA nodes, also those without a CPU; None where they were not read."""
        found = self.seen.get("numa")
        if isinstance(found, list) and all(map(_is_whole, found)):
            return frozenset(map(int, found))
        return None

    @property
    def numa_of_cpus(self) -> frozenset[int]:
        """The NUMA nodes that are known to have a CPU: there may be others."""
        rows = (self.seen.get("cpus") or {}).get("topology")
        if isinstance(rows, list):
            places = [row[3] for row in rows if isinstance(row, list) and len(row) > 3]
        else:
            places = []
        return frozenset(one for one in places if _is_whole(one))

    @property
    def memory_total(self) -> int | None:
        """The machine's memory in bytes."""
        found = self.seen.get("memory_total")
        if _is_whole(found) and found > 0:
            return found
        return None

    def reservation(self) -> Reservation:
        """Return what the kubelet reserves: its list, else systemReserved and kubeReserved.

        Without a list a kubelet takes whole sockets, then whole cores, then threads, the lowest
        first; where its release, its options or an uneven machine may make it take others, which
        ones is not known.
        """
        listed = self.config.setting("reservedSystemCPUs", "reserved-cpus")
        if listed is not None and listed.value.strip():
            found = _parsed(listed.value)
            return Reservation(
                found,
                None if found is None else len(found),
                (listed,),
                "" if found is not None else f"{listed.text} is no list of CPUs",
            )
        parts = [
            self.config.mapping(key, flag).get("cpu")
            for key, flag in (
                ("systemReserved", "system-reserved"),
                ("kubeReserved", "kube-reserved"),
            )
        ]
        settings = tuple(part for part in parts if part is not None)
        amounts = [kubelet_config.cpus(part.value) for part in settings]
        if any(amount is None for amount in amounts):
            return Reservation(
                None,
                None,
                settings,
                f"{' and '.join(part.text for part in settings)}: no quantity of CPUs",
            )
        number = ceil(sum((amount for amount in amounts if amount is not None), Fraction(0)))
        lowest = self._lowest(number)
        return Reservation(
            lowest,
            number,
            settings,
            (
                ""
                if lowest is not None
                else f"which {number} CPUs this kubelet reserves cannot be told from here"
            ),
        )

    def _lowest(self, number: int) -> cpuset.CPUs | None:
        rows = (self.seen.get("cpus") or {}).get("topology")
        if not number:
            return frozenset()
        if (
            not isinstance(rows, list)
            or len(rows) < number
            or not _even(rows)
            or any(self._has(option) for option in SPREADING)
        ):
            return None
        # Releases differ in whether they fill sockets or NUMA nodes first.
        orders = [_ordered(rows, places)[:number] for places in ((2,), (2, 3), (3, 2))]
        if all(set(order) == set(orders[0]) for order in orders):
            return frozenset(orders[0])
        return None

    def containers(self) -> list[Mapping[str, Any]]:
        """Containers of pods that run on this node, with the sets that they really have."""
        return [one for one in self.seen.get("containers") or () if isinstance(one, Mapping)]

    def containers_there(self) -> set[str] | None:
        """Ids of the containers that run, or whose log the kubelet keeps.

        None where it keeps none of those that run: then a link tells nothing.
        """
        running, logged = self.containers(), self.seen.get("logged")
        if not isinstance(logged, list) or not any(one.get("name") for one in running):
            return None
        return {str(one.get("container_id")) for one in running} | {str(one) for one in logged}

    def foreign(self) -> str:
        """Why a state that is well formed is of a version that its kubelet does not take up.

        Empty where none is known.
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


def extract(document: Mapping[str, Any]) -> Pinning:
    """Of one node's evidence. Never raises."""
    node = read(document)
    if node is None:
        return Pinning()
    config = control_plane.data(document, "kubelet").get("config")
    from_kubeadm = (
        node.policy is not None
        and isinstance(config, Mapping)
        and config.get("path") == KUBEADM_FILE
        and (node.policy_setting is None or node.policy_setting.path == KUBEADM_FILE)
    )
    readable = node.state is not None and not node.state.problem and bool(node.state.policy)
    return Pinning(
        node.policy,
        node.state.policy if node.state and readable else None,
        str(node.file.get("path")) if node.file and readable else None,
        from_kubeadm,
    )


@remember.last
def read(document: Mapping[str, Any]) -> Node | None:
    """Return what is known of a node; None where its kubelet was not found, or not collected."""
    kubelet = control_plane.data(document, "kubelet")
    if not kubelet:
        return None
    config = kubelet_config.read(kubelet)
    setting = config.setting("cpuManagerPolicy", "cpu-manager-policy")
    if config.certain(setting):
        policy = (setting.value if setting else "") or NONE
    else:
        policy = None
    seen = control_plane.data(document, "pinning")
    if isinstance(seen.get("cpu_state"), Mapping):
        file = seen.get("cpu_state")
    else:
        file = None
    if file:
        trouble = unread(file)
    else:
        trouble = ""
    if file and not trouble:
        state = read_state(file)
    else:
        state = None
    release = flags.parse_version(str(seen.get("kubelet_version") or "").rpartition(" ")[2])
    if (
        policy is not None
        and release is not None
        and release < REFUSES
        and policy != manager_state.STATIC
    ):
        policy = NONE
    main = kubelet.get("config")
    return Node(
        config,
        policy,
        setting,
        state,
        file,
        seen,
        bool(kubelet.get("process")),
        release,
        trouble,
        "" if kubelet.get("process") else _last_words(document),
        kubelet_dropin.lent(kubelet),
        _refused_memory(document),
        str(main.get("path")) if isinstance(main, Mapping) else None,
        _proven(kubelet),
    )


def _proven(kubelet: Mapping[str, Any]) -> bool:
    """Whether a kubelet that is well was started with what its files say now."""
    healthz = kubelet.get("healthz")
    well = (
        isinstance(healthz, Mapping)
        and healthz.get("status") == 200
        and isinstance(kubelet.get("process"), Mapping)
    )
    try:
        return well and not kubelet_dropin.lent(kubelet) and not pending.of_kubelet(kubelet)
    except (AttributeError, KeyError, TypeError):  # evidence of another shape proves nothing
        return False


def unread(file: Mapping[str, Any]) -> str:
    """Why what a state file holds is not known, in one clause; empty where it is."""
    return str(file.get("error") or ("it is longer than is read" if file.get("truncated") else ""))


def read_state(file: Mapping[str, Any]) -> CpuState:
    """cpu_manager_state; what is no text (a power cut can leave zeros) no kubelet reads either."""
    if file.get("binary"):
        return CpuState("it is no text")
    return manager_state.cpu_state(file.get("text"))


def _last_words(document: Mapping[str, Any]) -> str:
    lines = control_plane.data(document, "kubelet_log").get("lines") or ()
    return next(
        (str(line) for line in reversed(lines) if any(words in str(line) for words in FATAL)), ""
    )


def _refused_memory(document: Mapping[str, Any]) -> str:
    """Return the line with which a kubelet exited over memory_manager_state, or nothing.

    No reading of the file alone shows that.
    """
    why = kubelet_why.read(document)
    if why and why.ended:
        died = why.death
    else:
        died = None
    if died is None or not died.certain or died.cause != kubelet_death.MEMORY_MANAGER_STATE:
        return ""
    if any(words in died.line for words in REFUSED_MEMORY):
        return died.line
    return ""


def memory_policy(node: Node) -> tuple[str | None, Setting | None]:
    """Return the memory manager's policy as the next start reads it."""
    setting = node.config.setting("memoryManagerPolicy", "memory-manager-policy")
    if node.config.certain(setting):
        return ((setting.value if setting else "") or "None", setting)
    return (None, None)


def read_memory(file: Mapping[str, Any]) -> MemoryState:
    """memory_manager_state, likewise.

    A checksum of other content is a problem, as it is to every kubelet.
    """
    if file.get("binary"):
        return MemoryState("it is no text")
    text = file.get("text")
    found = memory_state.memory_state(text if isinstance(text, str) else None)
    if found.checksum == WRONG:
        return replace(found, problem=CHECKSUM)
    return found


def _even(rows: Iterable[tuple[Any, ...]]) -> bool:
    """Whether all cores, sockets and NUMA nodes have as many CPUs as each other.

    A kubelet takes from smaller ones first.
    """
    kinds = (lambda row: (row[2], row[1]), lambda row: row[2], lambda row: row[3])
    return all(len(set(Counter(kind(row) for row in rows).values())) == 1 for kind in kinds)


def _ordered(rows: Iterable[tuple[Any, ...]], places: tuple[int, ...]) -> list[int]:
    """Return CPUs by these columns (socket 2, NUMA node 3), then by core, then by number.

    A core is named by its lowest CPU.
    """
    first: dict[tuple[Any, Any], int] = {}
    for cpu, core, socket, _numa in rows:
        first[socket, core] = min(cpu, first.get((socket, core), cpu))

    def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (
            *(-1 if row[place] is None else row[place] for place in places),
            first[row[2], row[1]],
            row[0],
        )

    return [row[0] for row in sorted(rows, key=key)]


def _is_whole(value: Any) -> bool:
    """Tell whether a value of evidence is a whole number; in Python a truth value is one too."""
    return isinstance(value, int) and not isinstance(value, bool)


def _parsed(value: object) -> cpuset.CPUs | None:
    try:
        if isinstance(value, str):
            return cpuset.parse(value)
        return None
    except cpuset.CpusetError:
        return None
