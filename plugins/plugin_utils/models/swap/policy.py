# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet refuses, tolerates or wants swap, and which of its settings end it. Pure.

The gate NodeSwap came as alpha with 1.22, as beta with 1.28, was on from 1.30 and is locked from
1.34; UnlimitedSwap went with 1.30, when NoSwap came. A kubelet from before 1.22 passes over
memorySwap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from ...parsers import json_values, pflag
from ...safe_io import yaml_nodes

GATE = "NodeSwap"
NO, LIMITED, UNLIMITED = "NoSwap", "LimitedSwap", "UnlimitedSwap"
ALPHA, BETA, ON, LOCKED, LEAVES = (1, 22), (1, 28), (1, 30), (1, 34), (1, 37)


@dataclass(frozen=True)
class SwapPolicy:
    """Attitude of a kubelet to swap.

    behavior: the effective swapBehavior
    refuses: whether it does not start while swap is on
    wants: whether pods are meant to use swap
    fatal: what ends the kubelet with or without swap
    unknown: what is not known, in clauses

    A field of the first three is None where it is not known. If a kubelet refuses swap and wants
    it, failSwapOn was forgotten, and swap is not the problem.
    """

    refuses: bool | None
    wants: bool | None
    behavior: str | None
    fatal: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass
class _Inputs:
    """Settings of a kubelet that decide, each None where it is not known, and what they show."""

    version: tuple[int, int] | None
    config: Mapping[str, Any] | None
    argv: Sequence[str] | None
    gates: Any
    fatal: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def feature_gates(self) -> dict[str, Any]:
        """Return the feature gates of the files, each overridden by the command line's.

        Unlike for other maps, the command line does not replace them all.
        """
        gates = dict(json_values.mapping(self.gates))
        flag = pflag.string_flag(self.argv or (), "feature-gates") or ""
        for pair in flag.split(","):
            name, equals, value = pair.strip().partition("=")
            if equals:
                gates[name.strip()] = pflag.parse_bool(value.strip())
        return gates

    @property
    def are_gates_known(self) -> bool:
        """Return whether files and command line with feature gates are known."""
        if self.argv is None or self.config is None:
            return False
        return self.gates is None or isinstance(self.gates, Mapping)


def swap_policy(
    version: str | None,
    config: Mapping[str, Any] | None,
    argv: Sequence[str] | None,
    gates: Any,
) -> SwapPolicy:
    """Return what a kubelet makes of swap. An argument is None where it is not known.

    version: such as v1.30.1; config: its KubeletConfiguration as its files together make it,
    nested; argv: its command line; gates: featureGates of those files, whatever they have there.
    """
    inputs = _Inputs(pflag.parse_version(version), config, argv, gates)
    parts = {
        "version": inputs.version,
        "configuration": inputs.config,
        "command line": inputs.argv,
    }
    inputs.unknown += [
        f"the kubelet's {name} is not known" for name, part in parts.items() if part is None
    ]
    refuses, behavior = _refuses(inputs), _effective_behavior(inputs)
    wants = None
    if behavior is not None:
        wants = behavior != NO
    return SwapPolicy(refuses, wants, behavior, tuple(inputs.fatal), tuple(inputs.unknown))


def _effective_behavior(inputs: _Inputs) -> str | None:
    if inputs.version is None:
        return _untouched(inputs)
    if inputs.version >= ALPHA:
        return _behavior(inputs, inputs.version, _gate(inputs, inputs.version))
    if GATE in inputs.feature_gates:
        inputs.fatal.append(f"this kubelet does not know the feature gate {GATE}")
    return NO


def _untouched(inputs: _Inputs) -> str | None:
    """Return NoSwap where no setting is changed: then no version lets pods use swap."""
    if not inputs.are_gates_known or inputs.config is None:
        return None
    if inputs.config.get("memorySwap") not in (None, {}):
        return None
    gates = inputs.feature_gates
    names = [name for name in (GATE, "AllAlpha", "AllBeta") if name in gates]
    if all(_bool(gates[name]) is False for name in names):
        return NO
    return None


def _refuses(inputs: _Inputs) -> bool | None:
    """Return failSwapOn: the flag overrides it, true is the default of all versions."""
    flag = pflag.bool_flag(inputs.argv or (), "fail-swap-on")
    if flag is not None:
        if flag.value is None:
            inputs.fatal.append(f"--fail-swap-on: {flag.problem}")
        return flag.value
    if inputs.config is None or inputs.argv is None:
        return None
    value = inputs.config.get("failSwapOn")
    if value is None:
        return True
    refuses = _bool(value)
    if refuses is None:
        inputs.unknown.append("failSwapOn is no boolean")
    return refuses


def _bool(value: Any) -> bool | None:
    """Return a boolean of a configuration, also from its text, or None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return yaml_nodes.boolean(value)
    return None


def _gate(inputs: _Inputs, version: tuple[int, int]) -> bool | None:
    """Return whether NodeSwap is on; None where it is not known."""
    gates = inputs.feature_gates
    value = _bool(gates.get(GATE))
    if GATE in gates and value is None:
        inputs.fatal.append(f"the feature gate {GATE} is no boolean")
        return None
    if version >= LOCKED:
        _note_locked(inputs, version, value)
        return True
    if not inputs.are_gates_known:
        return None
    if value is not None:
        return value
    family = "AllBeta"
    if version < BETA:
        family = "AllAlpha"
    default = _bool(gates.get(family))
    if default is None:
        return version >= ON
    return default


def _note_locked(inputs: _Inputs, version: tuple[int, int], value: bool | None) -> None:
    if value is not None and version >= LEAVES:
        inputs.unknown.append(
            f"a kubelet of {version[0]}.{version[1]} may no longer know the feature gate {GATE}"
        )
    elif value is False:
        inputs.fatal.append(f"the feature gate {GATE} is locked: false ends this kubelet")


def _behavior(inputs: _Inputs, version: tuple[int, int], gate: bool | None) -> str | None:
    """Return the effective memorySwap.swapBehavior; no flag sets it."""
    if inputs.config is None:
        return None
    memory = inputs.config.get("memorySwap")
    behavior = json_values.mapping(memory).get("swapBehavior")
    if not isinstance(memory, (Mapping, NoneType)) or not isinstance(behavior, (str, NoneType)):
        inputs.unknown.append("memorySwap.swapBehavior is no text")
        return None
    if gate is None:
        inputs.unknown.append(f"whether the feature gate {GATE} is on is not known")
        return None
    if gate:
        return _allowed_behavior(inputs, version, behavior)
    if behavior:
        inputs.fatal.append(f"memorySwap.swapBehavior is set, and the feature gate {GATE} is off")
    return NO


def _allowed_behavior(
    inputs: _Inputs, version: tuple[int, int], behavior: str | None
) -> str | None:
    # 1.28 and 1.29 document UnlimitedSwap as their default: pods swap either way
    allowed, default = (LIMITED, UNLIMITED), LIMITED
    if version >= ON:
        allowed, default = (NO, LIMITED), NO
    if not behavior:
        return default
    if behavior in allowed:
        return behavior
    inputs.fatal.append(
        f"memorySwap.swapBehavior must be {' or '.join(allowed)} in {version[0]}.{version[1]}:"
        f" it is {behavior[:100]!r}"
    )
    return None
