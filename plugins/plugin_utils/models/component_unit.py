# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a unit that runs a control-plane component is, by systemd and its journal. Pure.

Most clusters run the control plane as static pods; then such a unit is a leftover, and nothing is
wrong where it does not run. Others run it as units: kubespray's etcd, binary installations, k3s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.shared.start_refusal import Refusal
from ..evidence import contract
from ..evidence.answers.node.component_units import ComponentUnit, ComponentUnits
from ..evidence.answers.node.system import System
from ..evidence.document import ends
from ..parsers import pflag, systemd_unit, unit_journal
from . import unit_start
from .cluster import Host
from .kubelet import status as kubelet_status

# Kinds beside those of systemd_unit.
RESTARTS, HANGS, NOT_AT_BOOT, NOT_NEEDED, BOOTING = (
    "restarts",
    "hangs",
    "not_at_boot",
    "not_needed",
    "booting",
)
DOWN = frozenset((systemd_unit.LOOPING, systemd_unit.GAVE_UP, systemd_unit.FAILED))
# Others that do run or are about to: the count of their restarts decides.
UP = frozenset((systemd_unit.RUNNING, systemd_unit.STARTING, systemd_unit.STOPPING))
# What waits for what a boot has not started yet exits a few times.
BOOT_SECONDS, BOOTING_SECONDS = 600, 180
# Three exits within a day, the last one of late, are no accident; three within ten minutes are a
# loop where the newest process is young, whatever the unit does at the moment of the audit.
DAY_SECONDS, LATE_SECONDS, LOOP_SECONDS, SHORT_SECONDS, EXITS = 86400, 2400, 600, 120, 3
# A start that takes longer never ends by itself: systemd's own limit is 90 seconds, and k3s and
# RKE2, which have none, need some minutes for their images.
START_SECONDS = 900
# Programs that are a whole distribution: a host whose kubelet is another one's has left them.
WHOLE = frozenset(("k3s", "rke2", "k0s", "kubelite"))
# systemd 235 to 242 logs both lines of one restart, an older one the second line only, a newer one
# the first.
_SCHEDULED, _EXPIRED = "Scheduled restart job", "scheduling restart"
_LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True)
class Service:
    """A unit of the control plane on one host.

    kind: its state; why: one clause. exits: how often systemd restarted it lately. refused: what
    systemd refuses of its start. last: the last start that ended, None where no line is known.
    """

    row: ComponentUnit
    unit: systemd_unit.Unit
    kind: str
    why: str
    exits: int = 0
    refused: tuple[Refusal, ...] = ()
    last: unit_journal.Start | None = None


@dataclass(frozen=True)
class _Machine:
    """What of its machine decides over a unit.

    of_kubelet: the unit that runs the kubelet, and down: whether that does not run. static: the
    components of manifests. elsewhere: components that run otherwise. etcd: whether an API server
    of the machine uses its etcd
    """

    clock: float | None
    booted: float
    of_kubelet: str
    down: bool
    static: frozenset[str]
    elsewhere: frozenset[str]
    etcd: bool


def read(host: Host, document: Mapping[str, Any]) -> list[Service]:
    """Return the units of a host that run its control plane, or should."""
    rows = contract.answer(document, ComponentUnits).units
    machine = _machine(host, document, rows)
    return [_service(document, row, machine) for row in rows]


def _machine(host: Host, document: Mapping[str, Any], rows: Sequence[ComponentUnit]) -> _Machine:
    system = contract.answer(document, System)
    kubelet = kubelet_status.read(document)
    booted = 0.0
    if system.clock is not None and system.uptime_s is not None:
        booted = system.clock - system.uptime_s
    static: frozenset[str] = frozenset()
    if host.control_plane is not None:
        static = frozenset(use.component for use in host.control_plane.files)
    return _Machine(
        system.clock,
        booted,
        kubelet.unit.name if kubelet is not None else "",
        kubelet is not None and (kubelet.ended or kubelet.unit.masked),
        static,
        _elsewhere(host, {row.name for row in rows}),
        _uses_own_etcd(host, rows, {*(system.addresses or ()), *_LOCAL}),
    )


def _elsewhere(host: Host, names: set[str]) -> frozenset[str]:
    """Return the components of which a process runs that is in none of these units."""
    if host.control_plane is None:
        return frozenset()
    return frozenset(
        process.component
        for process in host.control_plane.processes
        if process.ours is not False and process.unit not in names
    )


def _uses_own_etcd(host: Host, rows: Sequence[ComponentUnit], addresses: set[str]) -> bool:
    """Tell whether an API server of this host is given an address of this host for etcd."""
    servers: list[str] = []
    for row in rows:
        if row.component == "kube-apiserver":
            flag = pflag.string_flag(row.argv, "etcd-servers")
            servers += (flag or "").split(",")
    if host.etcd_said.api_server is not None:
        servers += host.etcd_said.api_server.etcd_servers
    return any(_address(url) in addresses for url in servers)


def _address(url: str) -> str:
    """Return the address in http(s)://address:port."""
    return url.rpartition("://")[2].partition("/")[0].rpartition(":")[0].strip("[]")


def _service(document: Mapping[str, Any], row: ComponentUnit, machine: _Machine) -> Service:
    unit = systemd_unit.unit(row)
    exits = _exits(row, machine)
    kind, reason = _state(row, unit, exits, machine)
    refused: tuple[Refusal, ...] = ()
    if kind in DOWN or kind == systemd_unit.STOPPED:
        refused = tuple(unit_start.find_refusals(document, row, row.said))
    return Service(row, unit, kind, reason, len(exits), refused, _last(row))


def _exits(row: ComponentUnit, machine: _Machine) -> list[float]:
    """Return when systemd itself started the unit again within a day, not behind a boot."""
    if machine.clock is None:
        return []
    lines = [line for line in row.said if _SCHEDULED in line]
    lines = lines or [line for line in row.said if _EXPIRED in line]
    # A start by hand sets systemd's count to 0: what was before it is over.
    lines = lines[-(row.n_restarts or len(lines)) :]
    times = [kubelet_status.moment(line) for line in lines]
    return [
        time
        for time in times
        if time is not None
        and -LATE_SECONDS < machine.clock - time < DAY_SECONDS
        and not 0 <= time - machine.booted < BOOT_SECONDS
    ]


def _state(
    row: ComponentUnit, unit: systemd_unit.Unit, exits: Sequence[float], machine: _Machine
) -> tuple[str, str]:
    state = systemd_unit.state(unit)
    reason = _not_needed(row, state, machine)
    if reason:
        return NOT_NEEDED, reason
    if state.kind in UP:
        return _of_running(row, unit, state, exits, machine)
    if state.kind in (systemd_unit.LOOPING, systemd_unit.STOPPED) and _is_booting(machine):
        return BOOTING, "the machine has only just booted"
    if state.kind in (systemd_unit.STOPPED, systemd_unit.FENCED):
        return _of_stopped(row, unit, state, machine)
    return state.kind, state.why


def _not_needed(row: ComponentUnit, state: systemd_unit.State, machine: _Machine) -> str:
    """Return why nothing is wrong whatever becomes of the unit, or ""."""
    if row.component in machine.static:
        return f"{row.component} is a static pod here"
    # The process of a unit that runs may be in a container that the unit starts.
    if row.component in machine.elsewhere and state.kind != systemd_unit.RUNNING:
        return f"{row.component} runs here in another way"
    if row.name == machine.of_kubelet and machine.down:
        return "it runs the kubelet too: KM502 and KM503 report it"
    if row.component in WHOLE and machine.of_kubelet not in ("", row.name):
        return f"the kubelet of this host is that of {machine.of_kubelet}"
    return ""


def _is_booting(machine: _Machine) -> bool:
    return machine.clock is not None and 0 <= machine.clock - machine.booted < BOOTING_SECONDS


def _of_running(
    row: ComponentUnit,
    unit: systemd_unit.Unit,
    state: systemd_unit.State,
    exits: Sequence[float],
    machine: _Machine,
) -> tuple[str, str]:
    """Return the state of a unit that runs, starts or stops."""
    restarts = _of_restarts(unit, exits, machine.clock or 0.0)
    if restarts is not None:
        return restarts
    if state.kind == systemd_unit.STARTING:
        return _of_starting(row, state, machine)
    boot = systemd_unit.at_boot(unit)
    of_others = row.wanted_by or unit.family == "snap" or row.name == machine.of_kubelet
    if state.kind == systemd_unit.RUNNING and boot.answer == systemd_unit.NO and not of_others:
        return NOT_AT_BOOT, boot.why
    return state.kind, state.why


def _of_restarts(
    unit: systemd_unit.Unit, exits: Sequence[float], clock: float
) -> tuple[str, str] | None:
    """Return the state of a unit that systemd started again and again, else None."""
    # A start by hand sets systemd's count to 0: what was before it is over.
    if len(exits) < EXITS or unit.restarts == 0 or clock - exits[-1] >= LATE_SECONDS:
        return None
    loops = sum(clock - time < LOOP_SECONDS for time in exits) >= EXITS
    if loops and clock - exits[-1] < SHORT_SECONDS:
        return systemd_unit.LOOPING, "it ends again and again, and systemd starts it again"
    return RESTARTS, "it runs at the moment"


def _of_starting(
    row: ComponentUnit, state: systemd_unit.State, machine: _Machine
) -> tuple[str, str]:
    """Return the state of a unit that is starting."""
    if row.begun_at is None or machine.clock is None:
        return state.kind, state.why
    age = machine.clock - row.begun_at
    if age < START_SECONDS:
        return state.kind, state.why
    return HANGS, f"it has been starting for {age / 60:.0f} minutes"


def _of_stopped(
    row: ComponentUnit, unit: systemd_unit.Unit, state: systemd_unit.State, machine: _Machine
) -> tuple[str, str]:
    """Return the state of a unit that is inactive: it counts only where something needs it."""
    is_used = row.component == "etcd" and machine.etcd
    if row.ended_at is not None or is_used:
        return state.kind, state.why
    if systemd_unit.at_boot(unit).answer == systemd_unit.YES:
        return systemd_unit.STOPPED, "it is enabled, and was not started since the boot"
    return NOT_NEEDED, f"{state.why}, and nothing shows that this host needs it"


def _last(row: ComponentUnit) -> unit_journal.Start | None:
    """Return the newest start that ended, else the newest one."""
    starts = [start for start in unit_journal.starts(row.lines) if start.lines]
    ended = [start for start in starts if start.exit or start.result]
    return next(iter((ended or starts)[-1:]), None)


def own_lines(service: Service) -> list[str]:
    """Return what the program itself wrote in its last start that ended."""
    if service.last is None:
        return []
    lines = unit_journal.of_program(service.last.lines, service.row.argv)
    return [ends(line.text, 600) for line in lines]
