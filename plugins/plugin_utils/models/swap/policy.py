# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet refuses swap, tolerates it or wants it, and which of its settings end it by
themselves. Pure.

The gate NodeSwap came as alpha with 1.22, as beta with 1.28, was on from 1.30 and is locked from
1.34; UnlimitedSwap went with 1.30, when NoSwap came. A kubelet from before 1.22 passes over
memorySwap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...parsers import pflag as words
from ...safe_io import yaml_nodes

GATE = "NodeSwap"
NO, LIMITED, UNLIMITED = "NoSwap", "LimitedSwap", "UnlimitedSwap"
ALPHA, BETA, ON, LOCKED, LEAVES = (1, 22), (1, 28), (1, 30), (1, 34), (1, 37)


@dataclass(frozen=True)
class Wanted:
    """refuses: does this kubelet not start while swap is on; wants: are pods meant to use swap.

    Behavior: the effective swapBehavior.

    Each None where it is not known. One may refuse swap and want it: then somebody forgot
    failSwapOn, and swap is not what is wrong. fatal: what ends the kubelet with or without swap;
    unknown: what is not known, in clauses.
    """

    refuses: bool | None
    wants: bool | None
    behavior: str | None
    fatal: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def wanted(version: Any, config: Any, flags: Any, gates: Any) -> Wanted:
    """What a kubelet makes of swap.

    version: such as v1.30.1; config: its KubeletConfiguration as its files together make it,
    nested; flags: its command line; gates: featureGates of those files. Any of them None where it
    is not known.
    """
    argv = (
        [word for word in flags if isinstance(word, str)]
        if isinstance(flags, Sequence) and not isinstance(flags, (str, bytes))
        else None
    )
    files = config if isinstance(config, Mapping) else None
    known = words.parse_version(version) if isinstance(version, str) else None
    fatal: list[str] = []
    unknown = [
        f"the kubelet's {what} is not known"
        for what, part in (("version", known), ("configuration", files), ("command line", argv))
        if part is None
    ]
    refuses = _refuses(files, argv, fatal, unknown)
    behavior = None
    if known is None:
        behavior = _untouched(files, gates, argv)
    elif known < ALPHA:
        behavior = NO
        if GATE in _gates(gates, argv):
            fatal.append(f"this kubelet does not know the feature gate {GATE}")
    else:
        behavior = _behavior(
            known, files, _gate(known, files, gates, argv, fatal, unknown), fatal, unknown
        )
    return Wanted(
        refuses,
        None if behavior is None else behavior != NO,
        behavior,
        tuple(fatal),
        tuple(unknown),
    )


def _untouched(
    config: Mapping[str, Any] | None, gates: Any, argv: Sequence[str] | None
) -> str | None:
    """No version lets pods use swap where nobody touched its settings."""
    if (
        config is None
        or argv is None
        or config.get("memorySwap") not in (None, {})
        or not (gates is None or isinstance(gates, Mapping))
    ):
        return None
    found = _gates(gates, argv)
    return (
        NO
        if all(
            _bool(found[name]) is False for name in (GATE, "AllAlpha", "AllBeta") if name in found
        )
        else None
    )


def _refuses(
    config: Mapping[str, Any] | None,
    argv: Sequence[str] | None,
    fatal: list[str],
    unknown: list[str],
) -> bool | None:
    """failSwapOn: the flag has the last word, true is the default of all versions."""
    flag = words.bool_flag(argv or (), "fail-swap-on")
    if flag is not None:
        if flag.value is None:
            fatal.append(f"--fail-swap-on: {flag.problem}")
        return flag.value
    if config is None or argv is None:
        return None
    value = config.get("failSwapOn")
    told = True if value is None else _bool(value)
    if told is None:
        unknown.append("failSwapOn is no boolean")
    return told


def _bool(value: Any) -> bool | None:
    """A boolean of a configuration, or the text that one was."""
    return (
        value
        if isinstance(value, bool)
        else yaml_nodes.boolean(value)
        if isinstance(value, str)
        else None
    )


def _gates(gates: Any, argv: Sequence[str] | None) -> dict[str, Any]:
    """The feature gates of the files, each overridden by the command line's.

    Unlike other maps, that does not replace them all.
    """
    found = (
        {name: value for name, value in gates.items() if isinstance(name, str)}
        if isinstance(gates, Mapping)
        else {}
    )
    for pair in (words.string_flag(argv or (), "feature-gates") or "").split(","):
        name, equals, value = pair.strip().partition("=")
        if equals:
            found[name.strip()] = words.parse_bool(value.strip())
    return found


def _gate(
    version: tuple[int, int],
    config: Any,
    gates: Any,
    argv: Sequence[str] | None,
    fatal: list[str],
    unknown: list[str],
) -> bool | None:
    """Is NodeSwap on? None where it is not known."""
    found = _gates(gates, argv)
    said = _bool(found[GATE]) if GATE in found else None
    if GATE in found and said is None:
        fatal.append(f"the feature gate {GATE} is no boolean")
        return None
    if version >= LOCKED:
        if GATE in found and version >= LEAVES:
            unknown.append(
                f"a kubelet of {version[0]}.{version[1]} may no longer know the feature gate {GATE}"
            )
        elif said is False:
            fatal.append(f"the feature gate {GATE} is locked: false ends this kubelet")
        return True
    if argv is None or config is None or not (gates is None or isinstance(gates, Mapping)):
        return None
    if said is not None:
        return said
    family = "AllAlpha" if version < BETA else "AllBeta"
    told = _bool(found[family]) if family in found else None
    return version >= ON if told is None else told


def _behavior(
    version: tuple[int, int],
    config: Mapping[str, Any] | None,
    gate: bool | None,
    fatal: list[str],
    unknown: list[str],
) -> str | None:
    """The effective memorySwap.swapBehavior; no flag sets it."""
    if config is None:
        return None
    memory = config.get("memorySwap")
    said = memory.get("swapBehavior") if isinstance(memory, Mapping) else None
    if (said is not None and not isinstance(said, str)) or (
        memory is not None and not isinstance(memory, Mapping)
    ):
        unknown.append("memorySwap.swapBehavior is no text")
        return None
    if gate is None:
        unknown.append(f"whether the feature gate {GATE} is on is not known")
        return None
    if not gate:
        if said:
            fatal.append(f"memorySwap.swapBehavior is set, and the feature gate {GATE} is off")
        return NO
    allowed = (NO, LIMITED) if version >= ON else (LIMITED, UNLIMITED)
    if said and said not in allowed:
        fatal.append(
            f"memorySwap.swapBehavior must be {' or '.join(allowed)} in {version[0]}.{version[1]}:"
            f" it is {said[:100]!r}"
        )
        return None
    # 1.28 and 1.29 document UnlimitedSwap as their default: pods swap either way
    return said or (NO if version >= ON else LIMITED)
