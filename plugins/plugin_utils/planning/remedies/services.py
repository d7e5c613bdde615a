# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that start a node's kubelet or runtime again.

Enabled at boot, started where it is down and nothing ends it, unmasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....module_utils.shared.consent import PENDING_CHANGES
from ....module_utils.shared.step_kinds import ENABLE_KUBELET as ENABLE
from ....module_utils.shared.step_kinds import ENABLE_RUNTIME, START_RUNTIME, kind_of
from ....module_utils.shared.step_kinds import START_KUBELET as START
from ....module_utils.shared.step_kinds import UNMASK_KUBELET as UNMASK
from ....module_utils.shared.unit_enablement import DISABLED, ENABLED, component_of, path_of
from ....module_utils.shared.units import KUBELET_UNITS, RUNTIMES
from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit, Mask, MaskLink
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.answers.node.runtime import Runtime, RuntimeUnit
from ...faults.control_plane import manifests
from ...faults.node import container_runtime, kubelet_down
from ...models import unit_start as model_unit_start
from ...models.cluster import Host
from ...models.kubelet import refused_configuration
from ...parsers import systemd_unit
from ...parsers.systemd_unit import Unit
from .. import fencing
from ..plan import RemedyContext, Step, label, left_out

UNMASK_RISK = 3
RISK = {ENABLE: 1, START: 2, ENABLE_RUNTIME: 1, START_RUNTIME: 2}
# What a start repairs. A unit that systemd starts again and again ends of something else, which
# has a finding of its own.
DOWN = frozenset((systemd_unit.STOPPED, systemd_unit.FAILED, systemd_unit.GAVE_UP))


@dataclass(frozen=True)
class Service:
    """What is started again: its unit, the evidence of that, and the steps' names."""

    unit: Unit
    record: KubeletUnit | RuntimeUnit
    enable: str
    start: str

    @property
    def component(self) -> str:
        """Return what the unit runs: the kubelet or the container runtime."""
        name: str = component_of(self.unit.name)
        return name


@dataclass(frozen=True)
class RuntimeService(Service):
    """A unit of the container runtime."""

    record: RuntimeUnit


def enabled(scene: RemedyContext) -> Sequence[Step]:
    """KM501: the unit enabled, and started where it is down too.

    What stands in the way of one of them is no reason against the other.
    """
    return _enabled(scene, _kubelet(scene))


def started(scene: RemedyContext) -> Step | None:
    """KM502: the unit started, where nothing but that is missing."""
    service = _kubelet(scene)
    return _start(scene, service) if _down(service.unit) else None


def unmasked(scene: RemedyContext) -> Sequence[Step]:
    """KM503: the unit unmasked, where that is allowed.

    Enabled and started behind it where it would not be there, all of it or nothing.
    """
    masked = _kubelet(scene)
    mask = _mask(scene)
    is_wanted = mask is not None and mask.wanted
    # the step before reloads
    behind = Service(
        replace(
            masked.unit,
            load="loaded",
            file_state="enabled" if is_wanted else DISABLED[0],
        ),
        replace(masked.record, need_daemon_reload=False),
        masked.enable,
        masked.start,
    )
    steps = [_unmask(scene, masked, mask)]
    if not is_wanted:
        diff = f"systemctl is-enabled {behind.unit.name}: disabled -> {ENABLED}\n"
        note = "without systemd's daemon-reload; a revert disables it again, which stops nothing"
        steps.append(_step(scene, behind, ENABLE, None, diff, note, UNMASK_RISK))
    if _down(behind.unit):
        steps.append(replace(_start(scene, behind), risk=UNMASK_RISK))
    return steps


def _mask(scene: RemedyContext) -> Mask | None:
    """Return what the evidence says of the mask of the kubelet's unit, or None."""
    unit = contract.answer(scene.document, Kubelet).unit
    if unit is None:
        return None
    return unit.mask


def _unmask(scene: RemedyContext, masked: Service, mask: Mask | None) -> Step:
    """Return the step that takes the mask away, or what blocks it."""
    unit = masked.unit
    links = mask.links if mask is not None else ()
    # A second sign of fencing is said before what a word allows.
    fenced = left_out(scene, scene.finding.host or "") or _both(scene) or fencing.refusal(scene)
    blocked = fenced or _no_mask(unit, mask)
    link = links[0] if links else MaskLink()
    diff = f"--- {link.path} -> {link.to}\n" if links else ""
    note = (
        "systemctl unmask of this unit alone, and systemd's daemon-reload, which is refused where"
        " pods with devices run unless kubelet_restart is allowed; it takes up what else was"
        " changed in units' files; a revert masks it again, and stops nothing"
    )
    step = _step(scene, masked, UNMASK, blocked, diff, note, UNMASK_RISK)
    path = link.path or path_of(unit.name)
    change = {"kind": UNMASK, "path": path, "unit": unit.name, "to": link.to}
    return replace(step, limit=kind_of(UNMASK).seconds, change=change)


def _both(scene: RemedyContext) -> str | None:
    """Return another sign of fencing next to the mask, or that none could be seen.

    No consent allows it, so that it comes before those that a consent allows.
    """
    other = fencing.beside_mask(scene)
    return other and (
        f"{other}, and its kubelet is masked too: nothing here unmasks it then; ask who masked"
        " it, and undo first what else was done, or systemctl unmask by hand"
    )


def _no_mask(unit: Unit, mask: Mask | None) -> str | None:
    """Return why there is no one link that masks it and could be taken away."""
    if unit.name not in KUBELET_UNITS or (unit.family == "rke2" and not unit.runs):
        return _unknown(replace(unit, load="loaded", file_state=""))
    if mask is None:
        return "its evidence does not say where the mask lies: run again"
    if not mask.links:
        return (
            "no link masks it any more, and systemd has not read that: systemctl daemon-reload,"
            f" then systemctl start {unit.name}"
        )
    if mask.links[0].to is None:
        return (
            f"{mask.links[0].path} is an empty file, which a power cut may have left as well: put"
            " back what it held, or remove it, by hand"
        )
    if len(mask.links) > 1:
        return (
            f"it is masked twice, by {' and '.join(link.path for link in mask.links)}: take"
            " them away by hand"
        )
    return (
        None
        if mask.file
        else (
            "behind the mask there is no file of the unit: its removal may have removed the"
            " kubelet too"
        )
    )


def runtime(scene: RemedyContext) -> Sequence[Step]:
    """KM508: the units of the runtime in the order in which they start.

    Enabled where the next boot would not start them, started where they are down. One that runs is
    left as it is. The finding of the first of them has the steps of all.
    """
    rows = [(service, _recovered(scene, service)) for service in _runtimes(scene)]
    groups = [(service, steps) for service, steps in rows if steps]
    if not groups or groups[0][0].component != scene.finding.component:
        return []
    return [step for _service, steps in groups for step in steps]


def _recovered(scene: RemedyContext, service: RuntimeService) -> Sequence[Step]:
    """Return the steps after which the unit runs, now and at the next boot."""
    unit = service.unit
    if unit.masked or not (unit.runs or _down(unit)):
        return []
    is_disabled = systemd_unit.at_boot(unit).answer == systemd_unit.NO
    if is_disabled and not container_runtime.starters(service.record):
        return _enabled(scene, service)
    if _down(unit) and not container_runtime.on_demand(service.record):
        return [_start(scene, service)]
    return []


def _enabled(scene: RemedyContext, service: Service) -> Sequence[Step]:
    unit = service.unit
    unfit = _not_enabled(unit)
    diff = f"systemctl is-enabled {unit.name}: {unit.file_state} -> {ENABLED}\n"
    note = "without systemd's daemon-reload; a revert disables it again, which stops nothing"
    refused = _refused(scene, service) or _lasting(scene, service) if _down(unit) else None
    if refused:
        note += f"; it alone does not start the unit: {refused}"
    step = _step(scene, service, service.enable, _blocked(scene, unit) or unfit, diff, note)
    if _down(unit) and not (unfit or refused or _loads(scene)):
        return [step, _start(scene, service)]
    return [step]


def _start(scene: RemedyContext, service: Service) -> Step:
    diff = f"systemctl is-active {service.unit.name}: {service.unit.active} -> active\n"
    ends = _ends(scene)
    blocked = _blocked(scene, service.unit) or _unstartable(scene, service)
    risk = 3 if ends else None
    step = _step(scene, service, service.start, blocked, diff, _effects(service, ends), risk)
    return replace(step, needs=_ending_faults(scene, service))


def _unstartable(scene: RemedyContext, service: Service) -> str | None:
    """Return why a start would fail, or load foreign changes, or None."""
    ended = _unconfigured(scene, service) or _lasting(scene, service)
    return _refused(scene, service) or ended or _loads(scene)


def _refused(scene: RemedyContext, service: Service) -> str | None:
    """Return what systemd would refuse of a start now: what cannot succeed is not planned."""
    if service.enable != ENABLE:
        return model_unit_start.now(scene.document, service.record)
    lines = contract.answer(scene.document, KubeletEnd).lines
    down = [runtime for runtime in _runtimes(scene) if _down(runtime.unit)]
    # started before the kubelet
    first = {runtime.unit.name for runtime in down if not _refused(scene, runtime)}
    return model_unit_start.now(scene.document, service.record, lines, first)


def _unconfigured(scene: RemedyContext, service: Service) -> str | None:
    """Return why a start would end at once: the kubelet refuses its configuration."""
    if service.start != START:
        return None
    judged = refused_configuration.read(scene.document)
    if not judged.refused:
        return None
    return (
        f"the kubelet would not start, it refuses its configuration (KM506): {judged.reason};"
        " correct that first"
    )


def _lasting(scene: RemedyContext, service: Service) -> str | None:
    """Return why a start would end as the last one did, or None."""
    if isinstance(service, RuntimeService):
        return container_runtime.lasting(service.record) or None
    host = _host(scene)
    if host is None:
        return None
    return kubelet_down.lasting(host, scene.document)[0] or None


def _ending_faults(scene: RemedyContext, service: Service) -> tuple[str, ...]:
    """Return the faults that ended a kubelet's last start, or would end the next one."""
    host = _host(scene)
    if host is None or service.start != START:
        return ()
    faults = kubelet_down.lasting(host, scene.document)[1]
    if _is_without_runtime(scene, host):
        faults = tuple(dict.fromkeys((*faults, "KM508")))
    return faults


def _is_without_runtime(scene: RemedyContext, host: Host) -> bool:
    """Tell whether a kubelet that starts finds no runtime: none that a connection starts."""
    down = [runtime for runtime in _runtimes(scene) if _down(runtime.unit)]
    if not down or any(container_runtime.on_demand(runtime.record) for runtime in down):
        return False
    return container_runtime.broken(host, scene.document)


def _host(scene: RemedyContext) -> Host | None:
    return next((item for item in scene.cluster.hosts if item.host == scene.finding.host), None)


def _kubelet(scene: RemedyContext) -> Service:
    record = contract.answer(scene.document, Kubelet).unit or KubeletUnit()
    return Service(systemd_unit.unit(record), record, ENABLE, START)


def _runtimes(scene: RemedyContext) -> list[RuntimeService]:
    return [
        RuntimeService(systemd_unit.unit(record), record, ENABLE_RUNTIME, START_RUNTIME)
        for record in contract.answer(scene.document, Runtime).units
        if not record.absent
    ]


def _down(unit: Unit) -> bool:
    return systemd_unit.state(unit).kind in DOWN


def _blocked(scene: RemedyContext, unit: Unit) -> str | None:
    """Return what forbids to touch this unit at all."""
    host = scene.finding.host or ""
    return left_out(scene, host) or fencing.refusal(scene) or _unknown(unit)


def _unknown(unit: Unit) -> str | None:
    """Return why the unit is not known as one of the kubelet or runtime that systemctl switches.

    The result is None where it is known.
    """
    if unit.masked:
        return (
            f"{unit.name} is masked, and nothing here unmasks it: systemctl unmask, where its"
            " owner agrees"
        )
    if unit.family == "snap":
        return (
            "snapd switches its services itself: snap start --enable"
            f" {unit.name.removeprefix('snap.').removesuffix('.service')}"
        )
    if unit.name not in KUBELET_UNITS + RUNTIMES:
        return "its unit is none that is known here: do by hand what its finding says"
    if unit.family == "rke2" and not unit.runs:
        return (
            "RKE2 installs the units of a server and of an agent on every node, and which one is"
            " this node's cannot be determined while neither runs"
        )
    return None


def _not_enabled(unit: Unit) -> str | None:
    """Return what keeps `systemctl enable` from making it enabled."""
    if unit.file_state in DISABLED:
        return None
    return (
        f"{systemd_unit.at_boot(unit).why}, which systemctl enable does not correct as it should:"
        f" look where its file comes from (systemctl cat {unit.name})"
    )


def _loads(scene: RemedyContext) -> str | None:
    """Return what a start would load besides: manifests that changed while the kubelet was away."""
    host = _host(scene)
    if host is None or host.control_plane is None or PENDING_CHANGES in scene.consent.allow:
        return None
    paths = _changed_manifests(scene, host, host.control_plane.processes)
    if not paths:
        return None
    return (
        f"its start would also load what was changed while it was away: {', '.join(paths)}; look at"
        f" that, then {fencing.lifted(scene, PENDING_CHANGES)}"
    )


def _changed_manifests(scene: RemedyContext, host: Any, processes: Sequence[Any]) -> list[str]:
    """Return the manifests of running components that differ from what runs."""
    running = {process.component for process in processes}
    hits = [hit for hit in _manifest_hits(scene, host) if hit.component in running]
    proofs = [proof for hit in hits for proof in hit.evidence]
    return sorted({proof.path for proof in proofs if proof.kind == "file" and proof.path})


def _manifest_hits(scene: RemedyContext, host: Any) -> list[Any]:
    """Return what the faults of manifests find on the host."""
    outcomes = [
        outcome
        for predicate in (manifests.broken, manifests.outdated, manifests.second_manifest)
        for outcome in predicate(host, scene.document)
    ]
    return [hit for outcome in outcomes for hit in outcome.hits]


def _ends(scene: RemedyContext) -> bool:
    """Return whether docker is down, so that a start starts it too.

    It starts with its own unit, and with a unit whose connection to docker makes systemd start it.
    """
    return any(
        service.unit.name == container_runtime.DOCKERD and _down(service.unit)
        for service in _runtimes(scene)
    )


def _effects(service: Service, ends: bool) -> str:
    """Return what else a start does.

    ends: whether it may end containers
    """
    notes = [container_runtime.ENDS] if ends else []
    if service.start == START:
        notes.append(
            "it takes up its configuration as it is now, and ends pods that were replaced while it"
            " was away"
        )
    elif not ends:
        notes.append("containers that ran on are taken over as they are")
    notes.append("a revert leaves it running")
    if service.record.need_daemon_reload:
        notes.append(
            "its unit's files have changed since systemd read them: it starts as they were before,"
            " until systemctl daemon-reload"
        )
    if systemd_unit.state(service.unit).kind == systemd_unit.GAVE_UP:
        notes.append("it ended too often before, and may again: journalctl shows why")
    return "; ".join(notes)


def _step(  # noqa: PLR0913, PLR0917 - the parts of one step
    scene: RemedyContext,
    service: Service,
    remedy: str,
    blocked: str | None,
    diff: str,
    note: str,
    risk: int | None = None,
) -> Step:
    finding, unit = scene.finding, service.unit
    host = finding.host or ""
    name = label(host, remedy, None if service.enable == ENABLE else service.component)
    former = unit.file_state if remedy == service.enable else None
    return Step(
        name,
        host,
        finding.code,
        remedy,
        risk or RISK[remedy],
        unit.name,
        service.component,
        finding.node,
        blocked_by=blocked,
        note=note,
        diff=diff,
        limit=kind_of(remedy).seconds,
        expect={"component": service.component},
        guard={"allow": sorted(scene.consent.allow)},
        change={
            "kind": remedy,
            "path": path_of(unit.name),
            "unit": unit.name,
            "former": former,
        },
    )


REMEDIES = {"KM501": enabled, "KM502": started, "KM503": unmasked, "KM508": runtime}
