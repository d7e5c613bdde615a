# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints of nodes: who owns each, what removes it, what never may; which pods they keep away.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evidence.answers.cluster import nodes
from ..evidence.answers.cluster.api_pod import Toleration
from ..evidence.document import ends, one_line
from .taint_catalogue import CONDITIONS, CORDON, OWNED, PREFIXES, Owner

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
        text = self.key
        if self.value:
            text += f"={self.value}"
        if self.effect:
            text += f":{self.effect}"
        return text


@dataclass(frozen=True)
class Explained:
    """A taint with its owner. No remedy removes any taint.

    Owners remove theirs, people decide on theirs.
    """

    taint: Taint
    owner: Owner


@dataclass(frozen=True)
class Told:
    """A clause of a scheduler's message.

    kind: taint (`taint` names it), taints (the message names none), cordon or condition
    nodes: how many nodes it is about
    """

    kind: str
    nodes: int | None = None
    taint: Taint | None = None


UNKNOWN_OWNER = Owner(
    "unknown",
    "a component that is not known here: the name is reserved to Kubernetes",
    "not known",
    "its owner",
    "any repair",
)
USER = Owner(
    "user",
    "a user of this cluster",
    "only pods that tolerate it are meant to be here",
    "the one who set it; a pod that belongs here gets a toleration",
    "any repair: removing it lets foreign pods in",
)


def read(taint: nodes.Taint | Taint) -> Taint | None:
    """Return a taint of a Node object; None for what is none."""
    if isinstance(taint, Taint):
        return taint
    if taint.key and taint.effect in EFFECTS:
        return Taint(taint.key, taint.value or "", taint.effect)
    return None


def explained(taint: nodes.Taint | Taint) -> Explained | None:
    """Return a taint's owner; None for what is no taint. The key alone does not tell.

    A controller owns a key with an effect.
    """
    parsed_taint = read(taint)
    if parsed_taint is None:
        return None
    return Explained(parsed_taint, _owner(parsed_taint))


def condition_of(taint: Taint, conditions: Iterable[nodes.Condition]) -> nodes.Condition | None:
    """Return the condition of a Node that its taint stands for, or None."""
    kind = CONDITIONS.get(taint.key)
    return next((condition for condition in conditions if condition.type == kind), None)


def reason_of(condition: nodes.Condition | None) -> str:
    """Return the reason and the message of a condition, as a clause in brackets, or ""."""
    if condition is None:
        return ""
    message = ends(one_line(condition.message or "", 2000), 200)
    text = ": ".join(filter(None, (one_line(condition.reason or "", 80), message)))
    return f" ({text})" if text else ""


def _owner(taint: Taint) -> Owner:
    """Return the owner of a taint: of its key and effect, of its prefix, else a user."""
    borrowed = False
    for key, effects, owner in OWNED:
        if taint.key == key:
            borrowed = True
            if not taint.effect or taint.effect in effects:
                return owner
    for prefix, owner in PREFIXES:
        if taint.key.startswith(prefix):
            return owner
    if borrowed:
        return Owner(
            "user",
            f"someone who borrowed the key: its controller sets no {taint.effect} with it",
            "a taint of a user's own",
            "the one who set it",
            "any repair; no controller removes it either",
        )
    if _KUBERNETES.match(taint.key):
        return UNKNOWN_OWNER
    return USER


def parse_reasons(text: Any) -> tuple[Told, ...]:
    """Return the taints, cordons and conditions that a scheduler's message names, in its order.

    Each clause once: its words on preemption repeat it.
    """
    if not isinstance(text, str):
        return ()
    text = text[:MAX_TEXT].split("preemption:", 1)[0]
    reasons: dict[int, Told] = {}
    for kind, pattern in _TOLD:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            count = None
            if parts["nodes"]:
                count = int(parts["nodes"])
            reasons[match.start()] = Told(kind, count, _named_taint(kind, parts))
    return tuple(dict.fromkeys(reasons[at] for at in sorted(reasons)))


def _named_taint(kind: str, parts: Mapping[str, str]) -> Taint | None:
    """Return the taint that a clause of a message names."""
    if kind == "taint":
        return Taint(parts["key"], parts["value"])
    if kind == "cordon":
        return Taint(CORDON, "", NO_SCHEDULE)
    if kind == "condition" and parts["condition"] in _CONDITIONS:
        return Taint(f"node.kubernetes.io/{_CONDITIONS[parts['condition']]}")
    return None


def tolerated(taint: nodes.Taint | Taint, tolerations: Sequence[Toleration] | None) -> bool | None:
    """Return whether a pod's tolerations take a taint, as the scheduler decides.

    The result is None where that is not known. Lt and Gt (a gate of 1.35 and newer) are unknown:
    whether the gate is on, the pod does not say. A PreferNoSchedule taint that is not tolerated
    keeps no pod away: see keeps_away().
    """
    parsed_taint, listed = read(taint), tolerations or ()
    if parsed_taint is None or not parsed_taint.effect or len(listed) > MAX_TAINTS:
        return None
    fits = [_fits(toleration, parsed_taint) for toleration in listed]
    if True in fits:
        return True
    if None in fits:
        return None
    return False


def keeps_away(
    taints: Sequence[nodes.Taint | Taint], tolerations: Sequence[Toleration] | None
) -> tuple[list[Taint], list[Taint]]:
    """Return the taints that keep a pod off a node, and those of which it is not known.

    A taint keeps the pod off if its effect is NoSchedule or NoExecute and no toleration matches it.
    An entry that is no taint stands in the result as one without a key.
    """
    off: list[Taint] = []
    doubtful: list[Taint] = []
    if len(taints) > MAX_TAINTS:
        return [], [Taint("")]
    for item in taints:
        taint = read(item) or Taint("")
        if taint.effect == PREFER:
            continue
        verdict = tolerated(taint, tolerations)
        if verdict is None:
            doubtful.append(taint)
        elif not verdict:
            off.append(taint)
    return off, doubtful


def _fits(toleration: Toleration, taint: Taint) -> bool | None:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == taint.value
    if toleration.operator == "Exists":
        return True
    return None
