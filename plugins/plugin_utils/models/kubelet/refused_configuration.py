# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet would start with what its managers are told. Pure.

Only the CPU, memory and topology managers, what is reserved, and the cgroups of that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import memoize as remember
from ...parsers import manager_error as refused_words
from .. import control_plane
from .. import cpu_manager as pinning
from ..cpu_manager import Node
from ..result import Proof
from . import (
    exit_cause as kubelet_death,
)
from . import (
    manager_policies as manager_values,
)
from . import (
    node_allocatable as manager_cgroups,
)
from . import (
    reserved_resources as manager_reserved,
)
from . import (
    status as kubelet_why,
)
from .config import Setting
from .configured_value import Found, Refusal, Told, Unsure

SHOWN = 5
# The keys by their flags, for words that name one of them.
FLAGS: Mapping[str, str] = {
    **manager_values.FLAGS,
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
    "the kubelet of {host} ended, and its last words are not known: they tell whether its state is "
    "why (with kubemend_faults, name KM506 too)"
)
# What a reset of the managers' state can cure.
OF_STATE = frozenset((kubelet_death.CPU_MANAGER_STATE, kubelet_death.MEMORY_MANAGER_STATE))


@dataclass(frozen=True)
class Judged:
    """refused: what no kubelet of this release takes; unsure: what may not be taken, in clauses."""

    refused: tuple[Refusal, ...] = ()
    unsure: tuple[str, ...] = ()

    def of(self, *keys: str) -> bool:
        """Return whether one of these keys is refused."""
        return any(one.key in keys for one in self.refused)

    @property
    def why(self) -> str:
        """Return all that is refused, in one clause."""
        return "; and ".join(one.why for one in self.refused[:SHOWN])


@remember.last
def judged(node: Node) -> Judged:
    """Judge one node's configuration. Where it cannot be read, nothing is told."""
    if node.config.problem:
        return Judged((), (node.config.problem,))
    told = Told(node)
    found: list[Found] = [
        *manager_values.refused(told),
        *manager_reserved.refused(told),
        *manager_cgroups.refused(told),
    ]
    unsure = [] if node.proven else [one.why for one in found if isinstance(one, Unsure)]
    return Judged(tuple(one for one in found if isinstance(one, Refusal)), tuple(unsure))


def read(document: Mapping[str, Any]) -> Judged:
    """Judge a node's evidence; nothing is told of one whose kubelet was not found."""
    node = pinning.read(document)
    return judged(node) if node is not None else Judged()


def cannot_start(host: str, node: Node) -> str:
    """Return why this kubelet is not known to start with what it is told; empty where it is."""
    found = judged(node)
    if found.refused:
        return (
            f"the kubelet of {host} would not start, it refuses its configuration (KM506): "
            f"{found.why}; correct that first"
        )
    if found.unsure:
        doubts = "; ".join(found.unsure[:SHOWN])
        return f"whether the kubelet of {host} would start is not known: {doubts}"
    return ""


def other_end(host: str, document: Mapping[str, Any]) -> str:
    """Return why a kubelet's last words do not name its managers' state; empty where they do."""
    why = kubelet_why.read(document)
    if why is None or not why.ended:
        return ""
    journals = [
        control_plane.data(document, name).get("lines") for name in ("kubelet_end", "kubelet_log")
    ]
    heard = why.death if why.death is not None and why.death.line else None
    death = heard or next(filter(None, map(kubelet_death.said, journals)), why.death)
    if death is None:
        return "" if why.asked and why.unit.result == "success" else UNHEARD.format(host=host)
    if death.cause in OF_STATE and not refused_words.unreserved(death.line):
        return ""
    line = f": {death.line}" if death.line else ""
    return (
        f"the last words of the kubelet of {host} do not name the state of its managers{line}; "
        "see to that first"
    )


def places(document: Mapping[str, Any], settings: Iterable[Setting], host: str) -> list[Proof]:
    """Return where settings stand: lines of files, also of those that give a flag."""
    found: list[Proof] = []
    for one in settings:
        found += [one.proof(host)] if one.path else _of_flag(document, one, host)
    return list(dict.fromkeys(found))[:SHOWN]


def _of_flag(document: Mapping[str, Any], setting: Setting, host: str) -> list[Proof]:
    """Return the lines of the unit's environment files that give this flag, else the process."""
    unit = control_plane.data(document, "kubelet").get("unit")
    files = unit.get("environment_files") if isinstance(unit, Mapping) else None
    word, found = setting.text.partition("=")[0], []
    for one in files if isinstance(files, list) else ():
        if (
            isinstance(one, Mapping)
            and isinstance(one.get("text"), str)
            and isinstance(one.get("path"), str)
        ):
            lines = enumerate(one["text"].splitlines(), 1)
            found += [
                Proof("file", host, path=one["path"], line=number, text=setting.text)
                for number, line in lines
                if _gives(line, word)
            ]
    return found or [setting.proof(host)]


def _gives(line: str, word: str) -> bool:
    """Whether this line of an environment file has the flag."""
    words = line.replace('"', " ").replace("'", " ").replace("=", " = ").split()
    return word in words and not line.lstrip().startswith(("#", ";"))


def named(document: Mapping[str, Any], what: str) -> tuple[Setting, ...]:
    """Return the settings that the last words mean: by their key, or by a policy's value."""
    node = pinning.read(document)
    if node is None:
        return ()
    key, _dummy, value = what.partition(": ")
    if key in FLAGS:
        rows = [one for dummy, one in node.config.rows(key)]
        one = node.config.setting(key, FLAGS[key])
        return (one,) if one is not None else tuple(rows)
    policies = [node.config.setting(one, flag) for one, flag in manager_values.FLAGS.items()]
    return tuple(
        one for one in policies if key == "policy" and one is not None and one.value == value
    )
