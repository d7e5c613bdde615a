# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether its state lets a kubelet run, and with which temporary arguments it would start. Pure.

Only a running kubelet ends pods: for a drain it is started with the policy of its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....module_utils.shared import kubelet_start
from ...evidence import contract
from ...evidence.answers.node.journal import Journal
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.system import System
from ...parsers import cpu_manager_state, cpuset
from .. import cpu_manager
from ..cpu_manager import Node

FITS = "nothing in its state shows why it does not start"
STRICT = "--cpu-manager-policy-options=strict-cpu-reservation="


def stands(document: Mapping[str, Any], node: Node) -> bool:
    """Return whether the kubelet is healthy for longer than one that its state ends."""
    healthz = contract.answer(document, Kubelet).healthz
    if healthz is None or healthz.status != 200:
        return False
    arguments, why_not = lend(node)
    ends = bool(arguments) or why_not != FITS
    return not (ends and _is_young(document))


def _is_young(document: Mapping[str, Any]) -> bool:
    clock = contract.answer(document, System).clock
    process = contract.answer(document, Kubelet).process
    if process is None or not process.started_at or not clock:
        return False
    return clock - process.started_at < kubelet_start.SETTLED_SECONDS


def comes_back(document: Mapping[str, Any], node: Node) -> bool:
    """Return whether an interrupted reset (KM902) left the kubelet down without a state.

    That reset is finished first, and nothing prevents the kubelet's start afterwards.
    """
    steps = contract.answer(document, Journal).unproven
    return node.file is None and any(
        step.component == kubelet_start.COMPONENT and not step.running for step in steps
    )


class _NoStartError(Exception):
    """Why no arguments are known with which this kubelet starts."""


def lend(node: Node) -> tuple[tuple[str, ...], str]:
    """Return (arguments with which this kubelet starts over its state, why none are known)."""
    try:
        arguments = [*_cpu_arguments(node), *_memory_arguments(node)]
    except _NoStartError as reason:
        return (), str(reason)
    if not arguments:
        return (), FITS
    return tuple(arguments), ""


def _cpu_arguments(node: Node) -> list[str]:
    """Return the arguments for the CPU manager's state. Raises _NoStartError."""
    state = node.state
    if state is not None and state.more and not state.problem:
        raise _NoStartError(
            f"its CPU manager's state is of a newer format ({', '.join(state.more[:5])}), of"
            " which nothing is known here"
        )
    _require_readable(node)
    if state is None:
        return []
    if state.policy == cpu_manager_state.NONE:
        return _arguments_of_none(node)
    if state.policy != cpu_manager_state.STATIC:
        raise _NoStartError(f"no kubelet has the policy {state.policy!r} of its state")
    return _policy_argument(node, state) + _static_arguments(node, state)


def _require_readable(node: Node) -> None:
    foreign, reader = node.foreign(), "any"
    if foreign:
        reader = "its"
    reason = node.trouble or _state_problem(node.state) or foreign
    if not reason and node.state and node.state.checksum == cpu_manager_state.WRONG:
        reason = "checksum"
    if reason:
        raise _NoStartError(
            f"its CPU manager's state cannot be read by {reader} kubelet ({reason})"
        )


def _state_problem(state: cpu_manager_state.CpuState | None) -> str:
    if state is None:
        return ""
    return state.problem


def _memory_arguments(node: Node) -> list[str]:
    """Return the arguments for the memory manager's state. Raises _NoStartError."""
    file = node.seen.memory_state
    if file is None:
        return []
    memory = cpu_manager.read_memory(file)
    problem = memory.problem or cpu_manager.unread(file)
    if problem:
        raise _NoStartError(f"its memory manager's state cannot be read by any kubelet ({problem})")
    if memory.policy == cpu_manager.memory_policy(node)[0]:
        return []
    return [f"--memory-manager-policy={memory.policy}"]


def _policy_argument(node: Node, state: cpu_manager_state.CpuState) -> list[str]:
    if state.policy == node.policy:
        return []
    return [f"--cpu-manager-policy={state.policy}"]


def _arguments_of_none(node: Node) -> list[str]:
    if node.policy == cpu_manager_state.NONE:
        return []
    if node.options:  # No flag empties the options, and the policy none takes none.
        raise _NoStartError(
            "its state is of the policy none, which no kubelet takes up with"
            " cpuManagerPolicyOptions"
        )
    return [f"--cpu-manager-policy={cpu_manager_state.NONE}"]


def _static_arguments(node: Node, state: cpu_manager_state.CpuState) -> list[str]:
    state_cpus = state.default | state.assigned
    if node.online is None or not state_cpus <= node.online or not _is_consistent(state):
        raise _NoStartError("its state does not fit the machine's CPUs, whatever the policy")
    added = node.online - state_cpus
    if added:
        return _strict_arguments(node, added)
    arguments, reserved = [], node.reservation().cpus
    if node.strict:
        arguments.append(STRICT + "false")
    if node.strict or not reserved or not reserved <= state.default:
        arguments.append(f"--reserved-cpus={min(state.default)}")
    return arguments


def _is_consistent(state: cpu_manager_state.CpuState) -> bool:
    """Return whether there is a default set, which no container uses exclusively."""
    return bool(state.default) and all(other is not None for dummy, other in state.overlaps)


def _strict_arguments(node: Node, added: cpuset.CPUs) -> list[str]:
    """Return the arguments for CPUs that the state lacks.

    It was written with strict-cpu-reservation, or before CPUs were added: only the first starts so.
    """
    if node.takes_strict():
        return [STRICT + "true", f"--reserved-cpus={cpuset.text(added)}"]
    raise _NoStartError(
        f"CPUs {cpuset.text(added)} came since its state was written, and no kubelet of its"
        " release and gates starts over that"
    )
