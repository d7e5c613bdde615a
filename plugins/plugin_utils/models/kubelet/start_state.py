# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet runs for its state, and what one that its state keeps down would start with.

Pure, from evidence.

Pods are ended by a kubelet that runs: so one that is to be drained is lent the policy of its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....module_utils.steps.handlers import cpu_manager_reset as manager_reset
from ...parsers import cpu_manager_state as manager_state
from ...parsers import cpuset
from .. import control_plane
from .. import cpu_manager as pinning
from ..cpu_manager import Node

FITS = "nothing in its state tells why it does not start"
STRICT = "--cpu-manager-policy-options=strict-cpu-reservation="


def stands(document: Mapping[str, Any], node: Node) -> bool:
    """Whether the kubelet is healthy, and not only for the moment in which one that its state
    ends answers.
    """
    kubelet, clock = (
        control_plane.data(document, "kubelet"),
        control_plane.data(document, "system").get("clock"),
    )
    started = (kubelet.get("process") or {}).get("started_at")
    young = bool(started and clock) and float(clock) - float(started) < manager_reset.SETTLED
    words, why_not = lend(node)
    ends = bool(words) or why_not != FITS
    return (kubelet.get("healthz") or {}).get("status") == 200 and not (young and ends)


def comes_back(document: Mapping[str, Any], node: Node) -> bool:
    """Whether an interrupted reset (KM902), which is ended first, left it down without a state.

    Nothing keeps it from starting then.
    """
    left = control_plane.data(document, "journal").get("unproven") or ()
    return node.file is None and any(
        one.get("component") == manager_reset.COMPONENT and not one.get("running") for one in left
    )


def lend(node: Node) -> tuple[tuple[str, ...], str]:
    """(what this kubelet would start with, over its state as it is.

    Why nothing is known that would).
    """
    state, words = node.state, []
    if state is not None and state.more and not state.problem:
        return (
            (),
            (
                f"its CPU manager's state is of a newer format ({', '.join(state.more[:5])}), of"
                " which nothing is known here"
            ),
        )
    unread = (
        node.trouble
        or (state.problem if state else "")
        or node.foreign()
        or ("checksum" if state and state.checksum == manager_state.WRONG else "")
    )
    if unread:
        return (
            (),
            (
                f"its CPU manager's state cannot be read by {'its' if node.foreign() else 'any'}"
                f" kubelet ({unread})"
            ),
        )
    if state is not None:
        if state.policy not in (manager_state.NONE, manager_state.STATIC):
            return (), f"no kubelet has the policy {state.policy!r} of its state"
        found, why = _lent_cpus(node, state)
        if why:
            return (), why
        words += found
    file = node.seen.get("memory_state")
    if isinstance(file, Mapping):
        memory = pinning.read_memory(file)
        if memory.problem or pinning.unread(file):
            return (
                (),
                (
                    "its memory manager's state cannot be read by any kubelet"
                    f" ({memory.problem or pinning.unread(file)})"
                ),
            )
        words += (
            [f"--memory-manager-policy={memory.policy}"]
            if memory.policy != pinning.memory_policy(node)[0]
            else []
        )
    return tuple(words), "" if words else FITS


def _lent_cpus(node: Node, state: manager_state.CpuState) -> tuple[list[str], str]:
    """The CPU manager's part of it."""
    words = [f"--cpu-manager-policy={state.policy}"] if state.policy != node.policy else []
    if state.policy == manager_state.NONE:
        # No flag empties the options, and the policy none takes none.
        return (
            (words, "")
            if not (words and node.options)
            else (
                [],
                (
                    "its state is of the policy none, which no kubelet takes up with"
                    " cpuManagerPolicyOptions"
                ),
            )
        )
    known = state.default | state.assigned
    if (
        any(other is None for dummy, other in state.overlaps)
        or not state.default
        or node.online is None
        or not known <= node.online
    ):
        return [], "its state does not fit the machine's CPUs, whatever the policy"
    kept, spared = node.reservation(), node.online - known
    # written with strict-cpu-reservation, or before CPUs were added: the first alone starts so
    if spared:
        came = (
            f"CPUs {cpuset.text(spared)} came since its state was written, and no kubelet of its"
            " release and gates starts over that"
        )
        return (
            ([*words, STRICT + "true", f"--reserved-cpus={cpuset.text(spared)}"], "")
            if node.takes_strict()
            else ([], came)
        )
    if node.strict:
        words.append(STRICT + "false")
    if node.strict or not kept.cpus or not kept.cpus <= state.default:
        words.append(f"--reserved-cpus={min(state.default)}")
    return words, ""
