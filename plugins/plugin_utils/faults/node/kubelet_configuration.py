# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the values of a kubelet's resource managers for KM506."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...evidence.document import ends, one_line, shell_name
from ...models import cpu_manager
from ...models.cluster import Host
from ...models.kubelet import (
    exit_cause,
    manager_policies,
    node_allocatable,
    refused_configuration,
    supervisor,
)
from ...models.kubelet import (
    status as kubelet_status,
)
from ...models.kubelet.configured_value import Refusal, listed
from ...models.kubelet.refused_configuration import Judged
from ...models.kubelet.status import KubeletStatus
from ...models.result import EvidenceRef, Missing
from ...parsers import systemd_unit
from ..base import CheckResult, Detection, present, unknown
from . import kubelet_exit_advice
from . import kubelet_unit as node_kubelet_unit

LONGEST = 700
_ENFORCED = {reserved.cgroup: reserved.word for reserved in node_allocatable.RESERVED}


def with_values(host: Host, document: Mapping[str, Any], outcome: CheckResult) -> CheckResult:
    """Return the result with what the configuration adds to the kubelet's last log lines."""
    node, status = cpu_manager.read(document), kubelet_status.read(document)
    if node is None or status is None or node.config.problem:
        return outcome
    values = refused_configuration.judged(node)
    if values.refused and not _is_other(status, values, outcome):
        hit = _hit(host, document, status, values)
        return present(hit, host=host.host, component="kubelet")
    if outcome.hits and status.death is not None:
        hit = _by_log(host, document, status, status.death, outcome.hits[0])
        hit = _besides(host, document, values, hit)
        return present(hit, host=host.host, component="kubelet")
    if outcome.missing or not values.unsure:
        return outcome
    return unknown(
        Missing(host.host, "pinning", "error"),
        host=host.host,
        component="kubelet",
        note="; ".join(values.unsure),
    )


def _hit(
    host: Host, document: Mapping[str, Any], status: KubeletStatus, values: Judged
) -> Detection:
    """Make one hit of the values that a configuration has, and its kubelet refuses."""
    start = _then(document, status)
    severity = None
    if _runs(status):
        start = "the kubelet reads it at its next start"
        severity = "warning"
    proofs = _places(host, document, values)
    places = _where(proofs)
    summary = f"the kubelet {_state(status)}: it refuses its configuration: {values.reason}{places}"
    return Detection(
        one_line(summary, LONGEST),
        (*proofs, *_ends(host, status)),
        one_line(f"correct {_keys(values)}{places}: {values.reason}; then {start}", LONGEST),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity=severity,
    )


def _by_log(
    host: Host,
    document: Mapping[str, Any],
    status: KubeletStatus,
    death: exit_cause.Death,
    hit: Detection,
) -> Detection:
    """Return the hit with more about the key that the last log line names."""
    if death.keys:
        return _by_keys(host, document, status, death, hit)
    return _by_words(host, document, status, hit)


def _besides(host: Host, document: Mapping[str, Any], values: Judged, hit: Detection) -> Detection:
    """Return the hit of what a kubelet said, with other values that it would refuse then."""
    if not values.refused:
        return hit
    proofs = _places(host, document, values)
    places = _where(proofs)
    return replace(
        hit,
        summary=one_line(f"{hit.summary}; it would refuse then: {values.reason}{places}", LONGEST),
        evidence=(*hit.evidence, *proofs),
        remedy=one_line(f"{hit.remedy}; and correct {_keys(values)}{places} too", LONGEST),
    )


def _places(host: Host, document: Mapping[str, Any], values: Judged) -> tuple[EvidenceRef, ...]:
    settings = [setting for refused in values.refused for setting in refused.settings]
    return tuple(refused_configuration.places(document, settings, host.host))


def _keys(values: Judged) -> str:
    return " and ".join(sorted({refused.key for refused in values.refused}))


def _then(document: Mapping[str, Any], status: KubeletStatus) -> str:
    """Return how the kubelet is started again."""
    unit = shell_name(status.unit.name, "UNIT")
    return kubelet_exit_advice.then(status, unit, supervisor.read(document))


def _runs(status: KubeletStatus) -> bool:
    return status.runs or status.state.kind == systemd_unit.RUNNING


def _state(status: KubeletStatus) -> str:
    """Return whether a kubelet with a configuration that it refuses runs, for a summary."""
    if status.ended and status.death is None:
        return "would not start"
    if _runs(status):
        return "runs, and will not start again"
    return "does not start"


def _by_words(
    host: Host, document: Mapping[str, Any], status: KubeletStatus, hit: Detection
) -> Detection:
    """Return the hit with more about the key of the managers that the last log line names."""
    subject = ""
    if status.death is not None:
        subject = status.death.what
    key, _separator, value = subject.partition(": ")
    if key != "policy" and key not in refused_configuration.FLAGS:
        return hit
    then = _then(document, status)
    settings = refused_configuration.named(document, subject)
    if not settings:
        return replace(
            hit,
            summary=one_line(
                f"{hit.summary}, which its configuration does not say any more", LONGEST
            ),
            remedy=f"look at its configuration once more; then {then}",
        )
    proofs = refused_configuration.places(document, settings, host.host)
    reason, advice = f"{settings[0].text} ({subject})", f"correct {key}"
    if key in _ENFORCED:
        reason = f"{key}: {value}; {_lack(status)}"
        advice = (
            "have that cgroup made before the kubelet starts, or take "
            f"{_ENFORCED[key]} out of enforceNodeAllocatable"
        )
    places = _where(proofs)
    return replace(
        hit,
        summary=one_line(
            f"the kubelet does not start: it refuses its configuration: {reason}{places}",
            LONGEST,
        ),
        remedy=one_line(f"{advice}{places}; then {then}", LONGEST),
    )


def _lack(status: KubeletStatus) -> str:
    """Return what the cgroup lacks for whose limits a kubelet looks, as a clause."""
    line = ""
    if status.death is not None:
        line = status.death.line
    if "has some missing controllers" in line:
        return "that cgroup does not have every controller"
    if "has some missing paths" in line:
        return "there is no such cgroup, or not for every controller"
    return "there is no such cgroup"


def _by_keys(
    host: Host,
    document: Mapping[str, Any],
    status: KubeletStatus,
    death: exit_cause.Death,
    hit: Detection,
) -> Detection:
    """Return the hit with the place of the key that the kubelet's own message names."""
    settings = refused_configuration.meant(document, death)
    if not settings:
        return hit
    places = _where(refused_configuration.places(document, settings, host.host))
    start = _then(document, status)
    values = " and ".join(dict.fromkeys(setting.text.strip() for setting in settings))
    summary = (
        f"the kubelet does not start: it refuses its configuration:"
        f" {values}{places}: {death.message}"
    )
    advice = f"correct {values}{places}{_accepted(death.keys, values)}"
    return replace(
        hit,
        summary=one_line(summary, LONGEST),
        remedy=one_line(f"{advice}; then {start}", LONGEST),
    )


def _accepted(keys: Sequence[str], values: str) -> str:
    """Return the values that a policy may have, or ""."""
    for key in keys:
        flag = manager_policies.FLAGS.get(key, "")
        if key in manager_policies.ACCEPTED and (key in values or flag in values):
            return f": accepted values are {listed(manager_policies.ACCEPTED[key])}"
    return ""


def _where(proofs: Sequence[EvidenceRef]) -> str:
    """Return the places of the values in parentheses, or ""."""
    places = [_place(proof) for proof in proofs if proof.path]
    if any(not proof.path for proof in proofs):
        places.append("its command line")
    if not places:
        return ""
    return f" ({', '.join(places)})"


def _place(proof: EvidenceRef) -> str:
    if proof.line:
        return f"{proof.path}:{proof.line}"
    return str(proof.path)


def _is_other(status: KubeletStatus, values: Judged, outcome: CheckResult) -> bool:
    """Tell whether the last log line refuses something else than these values."""
    if not outcome.hits or status.death is None or not status.death.certain:
        return False
    return not any(_is_about(refused, status.death.what) for refused in values.refused)


def _is_about(refused: Refusal, subject: str) -> bool:
    """Tell whether a log line names the key or a value of a refused setting."""
    if re.search(rf"(?<![\w.]){re.escape(refused.key)}(?!\w)", subject):
        return True
    return any(setting.value and setting.value in subject for setting in refused.settings)


def _ends(host: Host, status: KubeletStatus) -> list[EvidenceRef]:
    """Return what systemd reports about the unit, and the log line about a configuration."""
    proofs = [node_kubelet_unit.proof(host, status.unit)]
    death = status.death
    if death is None or not death.line:
        return proofs
    if death.cause in (exit_cause.BAD_CONFIGURATION, exit_cause.UNKNOWN):
        unit, line = one_line(status.unit.name, 80), ends(death.line, 400)
        proofs.append(EvidenceRef("log", host.host, object=unit, text=line))
    return proofs
