# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints of nodes: who owns each, what removes it, what never may; which pods they keep away.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .taint_catalogue import CORDON, OWNED, PREFIXES, Owner

NO_SCHEDULE, NO_EXECUTE, PREFER = "NoSchedule", "NoExecute", "PreferNoSchedule"
EFFECTS = (NO_SCHEDULE, NO_EXECUTE, PREFER)
MAX_TEXT = 64 * 1024  # a condition's message may have 32 KiB
MAX_TAINTS = 1000
_KUBERNETES = re.compile(r"(?:[^/]*\.)?(?:kubernetes|k8s)\.io/")
# Keys and values as the API server takes them; an empty value leaves a blank before the brace,
# except in what 1.24 and later print.
_TAINT = r"\{(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]{0,316}): ?(?P<value>[A-Za-z0-9._-]{0,63})\}"
_TOLD = tuple(
    (kind, re.compile(r"(?:(?<![0-9])(?P<nodes>[0-9]{1,6}) )?" + text))
    for kind, text in (
        ("taint", r"node\(s\) had (?:untolerated )?taint " + _TAINT),  # 1.18 to 1.34
        # 1.35 and newer, patched 1.34
        ("taints", r"node\(s\) had untolerated taint\(s\)"),
        ("taints", r"node\(s\) had taints that the pod didn't tolerate"),  # up to 1.17
        ("cordon", r"node\(s\) were unschedulable"),
        # up to 1.17, of conditions instead of taints
        (
            "condition",
            (
                r"node\(s\) (?P<condition>were not ready|had (?:memory|disk|pid) pressure|had"
                r" unavailable network|had unknown conditions)"
            ),
        ),
    )
)
_CONDITIONS = {
    "were not ready": "not-ready",
    "had memory pressure": "memory-pressure",
    "had disk pressure": "disk-pressure",
    "had pid pressure": "pid-pressure",
    "had unavailable network": "network-unavailable",
}


@dataclass(frozen=True)
class Taint:
    """A taint of a node. effect is empty where a text does not tell it."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return (
            self.key
            + (f"={self.value}" if self.value else "")
            + (f":{self.effect}" if self.effect else "")
        )


@dataclass(frozen=True)
class Explained:
    """A taint with its owner. No remedy removes any taint.

    Owners remove theirs, people decide on theirs.
    """

    taint: Taint
    owner: Owner


@dataclass(frozen=True)
class Told:
    """A clause of a scheduler's message. kind.

    Taint (taint tells which), taints (which is not told), cordon or condition; nodes: how many.
    """

    kind: str
    nodes: int | None = None
    taint: Taint | None = None


@dataclass(frozen=True)
class Verdict:
    """tolerated: None where it is not known; by: the toleration that takes it.

    lasting: may a running pod stay for good? Where not, it has to leave after so many seconds; None
    where that is not known.
    """

    tolerated: bool | None
    lasting: bool | None = None
    seconds: int | None = None
    by: int | None = None


def read(taint: Any) -> Taint | None:
    """Return a taint of a Node object; None for what is none."""
    if isinstance(taint, Taint):
        return taint
    key, value, effect = (
        (_text(taint, name) for name in ("key", "value", "effect"))
        if isinstance(taint, Mapping)
        else (None, None, None)
    )
    if key and value is not None and effect in EFFECTS:
        return Taint(key, value, effect)
    return None


def explained(taint: Any) -> Explained | None:
    """Whose a taint is; None for what is none. The key alone does not tell.

    A controller owns a key with an effect.
    """
    found = read(taint)
    if found is None:
        return None
    for key, effects, owner in OWNED:
        if found.key == key and (not found.effect or found.effect in effects):
            return Explained(found, owner)
    owner = next((owner for prefix, owner in PREFIXES if found.key.startswith(prefix)), None)
    if owner is None and any(found.key == key for key, _effects, _owner in OWNED):
        owner = Owner(
            "user",
            f"someone who borrowed the key: its controller sets no {found.effect} with it",
            "a taint of a user's own",
            "the one who set it",
            "any repair; no controller removes it either",
        )
    if owner is None and _KUBERNETES.match(found.key):
        owner = Owner(
            "unknown",
            "a component that is not known here: the name is reserved to Kubernetes",
            "not known",
            "its owner",
            "any repair",
        )
    return Explained(
        found,
        owner
        or Owner(
            "user",
            "a user of this cluster",
            "only pods that tolerate it are meant to be here",
            "the one who set it; a pod that belongs here gets a toleration",
            "any repair: removing it lets foreign pods in",
        ),
    )


def told(text: Any) -> tuple[Told, ...]:
    """Return the taints, cordons and conditions that a scheduler's message names, in its order.

    Each clause once: its words on preemption repeat it.
    """
    if not isinstance(text, str):
        return ()
    text = text[:MAX_TEXT].split("preemption:", 1)[0]
    found: dict[int, Told] = {}
    for kind, pattern in _TOLD:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            if kind == "taint":
                taint = Taint(parts["key"], parts["value"])
            else:
                taint = None
            if kind == "condition":
                key = _CONDITIONS.get(parts["condition"])
                if key:
                    taint = Taint(f"node.kubernetes.io/{key}")
                else:
                    taint = None
            if kind == "cordon":
                taint = Taint(CORDON, "", NO_SCHEDULE)
            found[match.start()] = Told(
                kind, int(parts["nodes"]) if parts["nodes"] else None, taint
            )
    return tuple(dict.fromkeys(found[at] for at in sorted(found)))


def tolerated(taint: Any, tolerations: Any) -> Verdict:
    """Whether a pod's tolerations take a taint, as the scheduler and the taint manager decide.

    The first that matches counts.

    Lt and Gt (a gate of 1.35 and newer) are unknown: whether the gate is on, the pod does not say.
    A PreferNoSchedule taint that is not tolerated keeps no pod away: see keeps_away().
    """
    found = read(taint)
    if tolerations is None:
        listed = ()
    elif isinstance(tolerations, Sequence) and not isinstance(tolerations, (str, bytes)):
        listed = tolerations
    else:
        listed = None
    if found is None or not found.effect or listed is None or len(listed) > MAX_TAINTS:
        return Verdict(None)
    doubt = False
    for position, toleration in enumerate(listed):
        fits = _fits(toleration, found)
        if fits:
            lasting, seconds = _stay(toleration, found)
            if doubt and found.effect == NO_EXECUTE:
                return Verdict(True, by=position)
            return Verdict(True, lasting, seconds, position)
        doubt = doubt or fits is None
    if doubt:
        return Verdict(None)
    return Verdict(False, found.effect != NO_EXECUTE, None if found.effect != NO_EXECUTE else 0)


def keeps_away(taints: Any, tolerations: Any) -> tuple[list[Taint], list[Taint]]:
    """(taints that keep a pod off a node, taints of which it is not known).

    Those of NoSchedule and NoExecute that are not tolerated.

    What is no taint at all is one without a key. A Node without taints leaves them out.
    """
    off: list[Taint] = []
    doubtful: list[Taint] = []
    if taints is not None and (not isinstance(taints, (list, tuple)) or len(taints) > MAX_TAINTS):
        return [], [Taint("")]
    for one in taints or ():
        taint = read(one) or Taint("")
        if taint.effect == PREFER:
            continue
        verdict = tolerated(taint, tolerations).tolerated
        if not verdict:
            (doubtful if verdict is None else off).append(taint)
    return off, doubtful


def _text(part: Mapping[str, Any], name: str) -> str | None:
    """Return an optional text, empty where it is not set; None for what is no text."""
    value = part.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return None


def _fits(toleration: Any, taint: Taint) -> bool | None:
    if not isinstance(toleration, Mapping):
        return None
    key, operator, value, effect = (
        _text(toleration, name) for name in ("key", "operator", "value", "effect")
    )
    if key is None or operator is None or value is None or effect is None:
        return None
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    if operator in ("", "Equal"):
        return value == taint.value
    if operator == "Exists":
        return True
    return None


def _stay(toleration: Mapping[str, Any], taint: Taint) -> tuple[bool | None, int | None]:
    """(whether a pod may stay for good, the seconds that it has if not).

    Only NoExecute makes anybody leave.
    """
    value = toleration.get("tolerationSeconds")
    if taint.effect != NO_EXECUTE or value is None:
        return True, None
    if isinstance(value, int) and not isinstance(value, bool):
        return (False, max(0, value))
    return (None, None)
