# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: a node's kubelet brought back, as steps: enabled at boot, and started where it is down and nothing ends it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils import kubelet_service
from ansible_collections.kubemend.remediation.plugins.plugin_utils import control_plane, fencing, kubelet_unit
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import manifests
from ansible_collections.kubemend.remediation.plugins.plugin_utils.kubelet_unit import Unit
from ansible_collections.kubemend.remediation.plugins.plugin_utils.plan import Scene, Step, left_out

ENABLE, START = kubelet_service.ENABLE, kubelet_service.START
RISK = {ENABLE: 1, START: 2}
PENDING = "pending_changes"
# What a start mends. One that systemd starts again and again ends of something else, which its own finding names.
DOWN = frozenset((kubelet_unit.STOPPED, kubelet_unit.FAILED, kubelet_unit.GAVE_UP))


def enabled(scene: Scene) -> Sequence[Step]:
    """KM501: the unit enabled, and started where it is down too. What stands in the way of one of them is no reason against the other."""
    unit = _unit(scene)
    unfit = _not_enabled(unit)
    diff = f"systemctl is-enabled {unit.name}: {unit.file_state} -> {kubelet_service.ENABLED}\n"
    note = "without systemd's daemon-reload; a revert disables it again, which stops nothing"
    step = _step(scene, ENABLE, unit, _blocked(scene, unit) or unfit, diff, note)
    return [step] if unfit or not _down(unit) or _loads(scene) else [step, _start(scene, unit)]


def started(scene: Scene) -> Step | None:
    """KM502: the unit started, where nothing but that is missing."""
    unit = _unit(scene)
    return _start(scene, unit) if _down(unit) else None


def _start(scene: Scene, unit: Unit) -> Step:
    diff = f"systemctl is-active {unit.name}: {unit.active} -> active\n"
    return _step(scene, START, unit, _blocked(scene, unit) or _loads(scene), diff, _effects(scene, unit))


def _unit(scene: Scene) -> Unit:
    return kubelet_unit.unit(_facts(scene).get("unit"))


def _facts(scene: Scene) -> Mapping[str, Any]:
    return control_plane.data(scene.document, "kubelet")


def _down(unit: Unit) -> bool:
    return kubelet_unit.state(unit).kind in DOWN


def _blocked(scene: Scene, unit: Unit) -> str | None:
    """What forbids to touch this unit at all."""
    host = scene.finding.host or ""
    return left_out(scene, host) or fencing.why(scene) or _unknown(unit)


def _unknown(unit: Unit) -> str | None:
    """Why this is no unit that is known to be that of the kubelet, and to be systemctl's to switch; None where it is."""
    if unit.masked:
        return f"{unit.name} is masked, and nothing here unmasks it: systemctl unmask, where whoever masked it agrees"
    if unit.family == "snap":
        return f"snapd switches its services itself: snap start --enable {unit.name.removeprefix('snap.').removesuffix('.service')}"
    if unit.name not in kubelet_service.UNITS:
        return "its unit is none that is known here: do by hand what its finding says"
    if unit.family == "rke2" and not unit.runs:
        return "RKE2 installs the units of a server and of an agent on every node, and which one is this node's cannot be told while neither runs"
    return None


def _not_enabled(unit: Unit) -> str | None:
    """What keeps `systemctl enable` from making it enabled."""
    if unit.file_state in kubelet_service.FORMER:
        return None
    return f"{kubelet_unit.at_boot(unit).why}, which systemctl enable does not mend as it should: look where its file comes from (systemctl cat {unit.name})"


def _loads(scene: Scene) -> str | None:
    """What a start would make of components that run, because their manifests were changed while nobody looked at them."""
    host = next((one for one in scene.cluster.hosts if one.host == scene.finding.host), None)
    if host is None or host.control_plane is None or PENDING in scene.consent.allow:
        return None
    running = {process.component for process in host.control_plane.processes}
    hits = [hit for predicate in (manifests.broken, manifests.outdated, manifests.second_manifest) for outcome in predicate(host, scene.document)
            for hit in outcome.hits if hit.component in running]
    paths = sorted({proof.path for hit in hits for proof in hit.evidence if proof.kind == "file" and proof.path})
    return f"its start would also load what was changed while it was away: {', '.join(paths)}; look at that, then {fencing.lifted(scene, PENDING)}" \
        if paths else None


def _effects(scene: Scene, unit: Unit) -> str:
    """What else a start does."""
    facts = _facts(scene).get("unit")
    notes = ["it takes up its configuration as it is now, and ends pods that were replaced while it was away", "a revert leaves it running"]
    if isinstance(facts, Mapping) and facts.get("need_daemon_reload"):
        notes.append("its unit's files have changed since systemd read them: it starts as they were before, until systemctl daemon-reload")
    if kubelet_unit.state(unit).kind == kubelet_unit.GAVE_UP:
        notes.append("it ended too often before, and may again: journalctl tells why")
    return "; ".join(notes)


def _step(scene: Scene, remedy: str, unit: Unit, blocked: str | None, diff: str, note: str) -> Step:
    finding = scene.finding
    where = finding.host or ""
    label = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{where}-{remedy}")
    former = unit.file_state if remedy == ENABLE else None
    return Step(label, where, finding.code, remedy, RISK[remedy], unit.name, kubelet_service.COMPONENT, finding.node, blocked_by=blocked, note=note,
                diff=diff, limit=kubelet_service.SECONDS[remedy], expect={"component": kubelet_service.COMPONENT},
                guard={"allow": sorted(scene.consent.allow)},
                change={"kind": remedy, "path": kubelet_service.path_of(unit.name), "unit": unit.name, "former": former})


REMEDIES = {"KM501": enabled, "KM502": started}
