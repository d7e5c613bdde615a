# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet would start with the settings of its resource managers. Pure.

Only the CPU, memory and topology managers, reservations and their cgroups are evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import contract, memoize
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.answers.node.kubelet_log import KubeletLog
from ...parsers import manager_error
from .. import cpu_manager
from ..cpu_manager import Node
from ..result import EvidenceRef
from . import (
    exit_cause,
    manager_policies,
    node_allocatable,
    reserved_resources,
    status,
    supervisor,
)
from .config import KubeletConfig, Setting
from .configured_value import ConfiguredKubelet, Found, Refusal, Unsure

SHOWN = 5
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_FLAG = re.compile(r"(?<![\w-])--([a-z][\w-]*)")
# Key -> its flag, for log lines that name the key.
FLAGS: Mapping[str, str] = {
    **manager_policies.FLAGS,
    "reservedSystemCPUs": "reserved-cpus",
    "kubeReserved": "kube-reserved",
    "systemReserved": "system-reserved",
    "reservedMemory": "reserved-memory",
    "enforceNodeAllocatable": "enforce-node-allocatable",
    "kubeReservedCgroup": "kube-reserved-cgroup",
    "systemReservedCgroup": "system-reserved-cgroup",
    "cgroupsPerQOS": "cgroups-per-qos",
}
UNHEARD = (
    "the kubelet of {host} ended, and its last log lines are not known: they show whether its state"
    " is why (with kubemend_faults, name KM506 too)"
)
# What a reset of the managers' state can correct.
OF_STATE = frozenset((exit_cause.CPU_MANAGER_STATE, exit_cause.MEMORY_MANAGER_STATE))


@dataclass(frozen=True)
class Judged:
    """Evaluated configuration.

    refused: what no kubelet of this release takes
    unsure: what may not be taken, in clauses
    """

    refused: tuple[Refusal, ...] = ()
    unsure: tuple[str, ...] = ()

    def refuses(self, *keys: str) -> bool:
        """Return whether one of these keys is refused."""
        return any(refusal.key in keys for refusal in self.refused)

    @property
    def reason(self) -> str:
        """Return all that is refused, in one clause."""
        return "; and ".join(refusal.why for refusal in self.refused[:SHOWN])


@memoize.last
def judged(node: Node) -> Judged:
    """Evaluate one node's configuration; where it cannot be read, nothing is refused."""
    if node.config.problem:
        return Judged((), (node.config.problem,))
    kubelet = ConfiguredKubelet(node)
    results: list[Found] = [
        *manager_policies.refused(kubelet),
        *reserved_resources.refused(kubelet),
        *node_allocatable.refused(kubelet),
    ]
    refused = tuple(result for result in results if isinstance(result, Refusal))
    if node.proven:
        return Judged(refused)
    return Judged(refused, tuple(result.why for result in results if isinstance(result, Unsure)))


def read(document: Mapping[str, Any]) -> Judged:
    """Evaluate a node's evidence; nothing is refused where its kubelet was not found."""
    node = cpu_manager.read(document)
    if node is None:
        return Judged()
    return judged(node)


def cannot_start(host: str, node: Node) -> str:
    """Return why this kubelet is not known to start with its configuration; empty where it is."""
    result = judged(node)
    if result.refused:
        return (
            f"the kubelet of {host} would not start, it refuses its configuration (KM506): "
            f"{result.reason}; correct that first"
        )
    if result.unsure:
        doubts = "; ".join(result.unsure[:SHOWN])
        return f"whether the kubelet of {host} would start is not known: {doubts}"
    return ""


def other_end(host: str, document: Mapping[str, Any]) -> str:
    """Return why a kubelet's last log lines do not name its managers' state, or ""."""
    kubelet_status = status.read(document)
    if kubelet_status is None or not kubelet_status.ended:
        return ""
    death = _death(kubelet_status, document)
    if death is None:
        if kubelet_status.asked and kubelet_status.unit.result == "success":
            return ""
        return UNHEARD.format(host=host)
    if death.cause in OF_STATE and not manager_error.unreserved(death.line):
        return ""
    quote = ""
    if death.line:
        quote = f": {death.line}"
    return (
        f"the last log lines of the kubelet of {host} do not name the state of its managers{quote};"
        " see to that first"
    )


def _death(
    kubelet_status: status.KubeletStatus, document: Mapping[str, Any]
) -> exit_cause.Death | None:
    """Return the exit cause with a line of the journal, if one has it."""
    if kubelet_status.death is not None and kubelet_status.death.line:
        return kubelet_status.death
    end, log = contract.answer(document, KubeletEnd), contract.answer(document, KubeletLog)
    return (
        exit_cause.newest_death(end.lines)
        or exit_cause.newest_death(log.lines)
        or kubelet_status.death
    )


def places(
    document: Mapping[str, Any], settings: Iterable[Setting], host: str
) -> list[EvidenceRef]:
    """Return the places of settings: lines of files, also of those that give a flag."""
    proofs: list[EvidenceRef] = []
    for setting in settings:
        if setting.path:
            proofs.append(setting.proof(host))
        else:
            proofs += _places_of_flag(document, setting, host)
    return list(dict.fromkeys(proofs))[:SHOWN]


def _places_of_flag(document: Mapping[str, Any], setting: Setting, host: str) -> list[EvidenceRef]:
    """Return the lines of the unit's environment files that give this flag, else the process."""
    unit = contract.answer(document, Kubelet).unit or KubeletUnit()
    word, proofs = setting.text.partition("=")[0], []
    for file in unit.environment_files:
        for number, line in enumerate((file.text or "").splitlines(), 1):
            if _gives(line, word):
                text = setting.text
                proofs.append(EvidenceRef("file", host, path=file.path, line=number, text=text))
    owner = supervisor.read(document)
    if owner is not None and not proofs:
        lines = owner.flag(supervisor.KUBELET_KEY, word.lstrip("-"), setting.value)
        proofs = supervisor.proofs(lines, host)
    return proofs or [setting.proof(host)]


def _gives(line: str, word: str) -> bool:
    """Return whether this line of an environment file has the flag."""
    words = line.replace('"', " ").replace("'", " ").replace("=", " = ").split()
    return word in words and not line.lstrip().startswith(("#", ";"))


def meant(document: Mapping[str, Any], death: exit_cause.Death) -> tuple[Setting, ...]:
    """Return the settings that a kubelet's last log line names."""
    if not death.keys:
        return named(document, death.what)
    node = cpu_manager.read(document)
    if node is None:
        return ()
    settings = [
        setting for key in death.keys for setting in _of_key(node.config, key, death.message)
    ]
    by_value = [setting for setting in settings if _has_value(death.message, setting.value)]
    return tuple((by_value or settings)[:SHOWN])


def _has_value(message: str, value: str) -> bool:
    """Return whether a message has a value as a word of its own."""
    if not value:
        return False
    return re.search(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])", message) is not None


def _of_key(config: KubeletConfig, key: str, message: str) -> list[Setting]:
    """Return the settings of a key or of a flag, as forms of messages name them."""
    path = tuple((key[:1].lower() + key[1:]).split("."))
    flags = [FLAGS.get(path[0], ""), _CAPITAL.sub(r"-\1", path[-1]).lower()]
    flags += _FLAG.findall(message)
    for flag in filter(None, flags):
        setting = config.setting(".".join(path), flag)
        if setting is not None:
            return [setting]
    return [value for place, value in config.values.items() if place[: len(path)] == path]


def named(document: Mapping[str, Any], subject: str) -> tuple[Setting, ...]:
    """Return the settings that the last log lines mean: by their key, or by a policy's value."""
    node = cpu_manager.read(document)
    if node is None:
        return ()
    key, _dummy, value = subject.partition(": ")
    if key in FLAGS:
        setting = node.config.setting(key, FLAGS[key])
        if setting is not None:
            return (setting,)
        return tuple(row for dummy, row in node.config.rows(key))
    if key != "policy":
        return ()
    policies = [node.config.setting(name, flag) for name, flag in manager_policies.FLAGS.items()]
    return tuple(policy for policy in policies if policy is not None and policy.value == value)
