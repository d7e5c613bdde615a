# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM506 by the values that a kubelet's resource managers are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import cpu_manager as pinning
from ...models.cluster import Host
from ...models.kubelet import (
    exit_cause as kubelet_death,
)
from ...models.kubelet import (
    node_allocatable as manager_cgroups,
)
from ...models.kubelet import (
    refused_configuration as kubelet_refused,
)
from ...models.kubelet import (
    status as kubelet_why,
)
from ...models.kubelet.refused_configuration import Judged
from ...models.kubelet.status import Why
from ...models.result import Missing, Proof
from ...parsers import systemd_unit as kubelet_unit
from ..base import Hit, Outcome
from . import kubelet_exit_advice as kubelet_cures
from . import kubelet_unit as nodes

LONGEST = 700
_ENFORCED = {one.cgroup: one.word for one in manager_cgroups.RESERVED}


def told(host: Host, document: Mapping[str, Any], words: Outcome) -> Outcome:
    """Return what the configuration adds to what the kubelet's last words told."""
    node, why = pinning.read(document), kubelet_why.read(document)
    if node is None or why is None or node.config.problem:
        return words
    found = kubelet_refused.judged(node)
    if found.refused:
        return Outcome(
            (_hit(host, document, why, found, words),), host=host.host, component="kubelet"
        )
    if words.hits and why.death is not None:
        return Outcome(
            (_by_words(host, document, why, words.hits[0]),), host=host.host, component="kubelet"
        )
    if words.missing or not found.unsure:
        return words
    return Outcome(
        (),
        (Missing(host.host, "pinning", "error"),),
        host=host.host,
        component="kubelet",
        note="; ".join(found.unsure),
    )


def _hit(host: Host, document: Mapping[str, Any], why: Why, found: Judged, words: Outcome) -> Hit:
    """Make one finding of the values and of the last words about a configuration."""
    node, runs = host.node or host.host, why.runs or why.state.kind == kubelet_unit.RUNNING
    state = "runs, and will not start again" if runs else "does not start"
    if why.ended and why.death is None:
        state = "would not start"
    proofs = kubelet_refused.places(
        document, [one for each in found.refused for one in each.settings], host.host
    )
    where = _where(proofs)
    summary = f"the kubelet of {node} {state}: it refuses its configuration: {found.why}{where}"
    other = _other(why, found, words)
    if other:
        summary += f"; and its last words are: {other}"
    unit = shell_name(why.unit.name, "UNIT")
    then = (
        "the kubelet reads it at its next start"
        if runs
        else kubelet_cures.started(why.state.kind, unit)
    )
    keys = " and ".join(sorted({one.key for one in found.refused}))
    remedy = f"correct {keys}{where}: {found.why}; then {then}"
    return Hit(
        one_line(summary, LONGEST),
        (*proofs, *_ends(host, why)),
        one_line(remedy, LONGEST),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity="warning" if runs else None,
    )


def _by_words(host: Host, document: Mapping[str, Any], why: Why, hit: Hit) -> Hit:
    """Say more of what the last words refuse, where they name a key of the managers."""
    what = why.death.what if why.death is not None else ""
    key, _dummy, value = what.partition(": ")
    if key != "policy" and key not in kubelet_refused.FLAGS:
        return hit
    then = kubelet_cures.started(why.state.kind, shell_name(why.unit.name, "UNIT"))
    settings = kubelet_refused.named(document, what)
    if not settings:
        return replace(
            hit,
            summary=one_line(
                f"{hit.summary}, which its configuration does not say any more", LONGEST
            ),
            remedy=f"look at its configuration once more; then {then}",
        )
    proofs = kubelet_refused.places(document, settings, host.host)
    reason, cure = f"{settings[0].text} ({what})", f"correct {key}"
    if key in _ENFORCED:
        reason = f"{key}: {value}; there is no such cgroup"
        cure = (
            "have that cgroup made before the kubelet starts, or take "
            f"{_ENFORCED[key]} out of enforceNodeAllocatable"
        )
    where = _where(proofs)
    return replace(
        hit,
        summary=one_line(
            f"the kubelet of {host.node or host.host} does not start: it refuses its "
            f"configuration: {reason}{where}",
            LONGEST,
        ),
        remedy=one_line(f"{cure}{where}; then {then}", LONGEST),
    )


def _where(proofs: list[Proof]) -> str:
    """Return the places of the values, as people write them."""
    shown = [f"{one.path}:{one.line}" if one.line else str(one.path) for one in proofs if one.path]
    shown += ["its command line"] if any(not one.path for one in proofs) else []
    return f" ({', '.join(shown)})" if shown else ""


def _other(why: Why, found: Judged, words: Outcome) -> str:
    """Return what its last words refuse, where that is something else than these values."""
    if not words.hits or why.death is None:
        return ""
    what = why.death.what
    mine = any(
        one.key in what or any(each.value and each.value in what for each in one.settings)
        for one in found.refused
    )
    return "" if mine else kubelet_cures.words(why.death.cause, what)


def _ends(host: Host, why: Why) -> list[Proof]:
    """Return what systemd says of the unit, and the line that names a configuration."""
    proofs = [nodes.proof(host, why.unit)]
    death = why.death
    if (
        death is not None
        and death.line
        and death.cause in (kubelet_death.BAD_CONFIGURATION, kubelet_death.UNKNOWN)
    ):
        proofs.append(
            Proof(
                "log", host.host, object=one_line(why.unit.name, 80), text=one_line(death.line, 400)
            )
        )
    return proofs
