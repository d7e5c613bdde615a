# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM116: check that each unit of systemd that runs a control-plane component stays up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.system import System
from ...evidence.document import ends, one_line, shell_name
from ...models import boot_network, component_unit, etcd_client, quoted_flags
from ...models import unit_start as model_unit_start
from ...models.cluster import Host
from ...models.component_unit import Service
from ...models.kubelet import exit_cause, supervisor
from ...models.kubelet.exit_cause import Death
from ...models.kubelet.supervisor import Supervisor
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, go_panic, message_class, systemd_unit, unit_journal
from ...parsers.component_log import Telling
from ..base import CheckResult, Detection, causes, node_check, not_applicable, present, unknown
from ..known_causes import Source, explained
from ..node import firewall, kubelet_supervisor, kubelet_unit
from . import k0s_components

# etcd's own lines about a disk that is too slow for it: what depends on etcd loses its lock then.
_SLOW = ("slow fdatasync", "took too long")
# RKE2 starts the kubelet, which writes to a file of its own, and the others as static pods.
_LOGS = {
    "rke2": ", in /var/lib/rancher/rke2/agent/logs/kubelet.log and below /var/log/pods",
    "k0s": ", of which each names its component",
}
# Of these programs the kubelet is the one with a table.
# One program runs several components: their tables, and of k0s only that of its kubelet.
_TABLES = {"k3s": "k3s", "rke2": "k3s", "kubelite": "k3s", "k0s": "kubelet"}
# What k3s and RKE2 have a place or a command of their own for.
_OF_OWNER = {
    "configuration": exit_cause.SUPERVISOR,
    "credential": exit_cause.CREDENTIAL,
}
BEGUN = 3  # first lines of a start
# An error of k3s, RKE2 or klog; and of a component that k0s runs, whatever its own level is.
_ERROR = re.compile(r'E|.* level=error |time="[^"]{1,64}" level=\w{1,10} msg="[EF]\d{4} ')
_TOOK = re.compile(r'"took":"([\d.]{1,20}[a-z]{1,2})"')
_CRITICAL = {
    systemd_unit.LOOPING: "does not stay up",
    systemd_unit.GAVE_UP: "does not run",
    systemd_unit.FAILED: "does not run",
    systemd_unit.STOPPED: "does not run",
    component_unit.HANGS: "does not become ready",
}
_WARNING = {
    component_unit.RESTARTS: "restarts again and again",
    component_unit.NOT_AT_BOOT: "runs, and will not after the next boot",
    systemd_unit.FENCED: "does not run",
}


@node_check(
    "KM116",
    "Control-plane service does not stay up",
    severity="critical",
    applies="hosts with a unit of systemd that runs a control-plane component",
    needs=(
        "system",
        "kubelet",
        "manifests",
        "instances",
        "component_units",
        "unit_start",
        "network",
    ),
    explained_by=causes("KM120", "KM124", "KM125", "KM126", "KM508", "KM521")
    | causes("KM150", component="etcd")
    | causes("KM114", "KM116", component="etcd")
    | causes("KM114", "KM116", component="kube-apiserver"),
)
def service_down(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM116: report a unit of etcd or another component that does not run, stay up or start."""
    missing = host.missing("component_units")
    if missing:
        yield unknown(*missing, host=host.host)
        return
    services = component_unit.read(host, document)
    if not services:
        yield not_applicable("", host=host.host)
        return
    owner = supervisor.read(document)
    for service in services:
        is_own = owner is not None and owner.unit == service.row.name
        because = _shut_in(host, document, service)
        result = _result(host, service, owner if is_own else None, because)
        yield _with_boot(document, service, result)
        if service.kind == systemd_unit.RUNNING:
            clock = contract.answer(document, System).clock
            yield from k0s_components.results(host, service, clock)


def _with_boot(document: Mapping[str, Any], service: Service, result: CheckResult) -> CheckResult:
    """Add to a unit that stays down what of the network it did not wait for at boot."""
    if not result.hits or service.kind not in (systemd_unit.FAILED, systemd_unit.GAVE_UP):
        return result
    line = _telling(service, component_unit.own_lines(service)).line
    early = boot_network.early(document, service.row.name, line, service.row.ended_at)
    if early is None:
        return result
    advice = early.advice(shell_name(service.row.name, "UNIT"))
    hits = (
        replace(hit, summary=f"{hit.summary}{early.clause}", remedy=f"{hit.remedy}{advice}")
        for hit in result.hits
    )
    return result._replace(hits=tuple(hits))


def _shut_in(host: Host, document: Mapping[str, Any], service: Service) -> tuple[str, ...]:
    """Return the fault of a firewall that keeps etcd from its peers, if this host has it."""
    if service.row.component == "etcd" and firewall.closed_to_peers(host, document):
        return ("KM527",)
    return ()


def _result(
    host: Host, service: Service, owner: Supervisor | None, because: tuple[str, ...]
) -> CheckResult:
    component, kind = service.row.component, service.kind
    if kind == component_unit.NOT_NEEDED:
        note = f"{one_line(service.row.name, 80)}: {service.why}"
        return not_applicable(note, host=host.host, component=component)
    if kind in _CRITICAL or kind in _WARNING:
        # What runs otherwise is in the evidence of the processes.
        missing = host.missing("instances") + host.missing("manifests")
        if missing and kind != component_unit.NOT_AT_BOOT:
            return unknown(*missing, host=host.host, component=component)
        hit = replace(_hit(host, service, owner), because=because)
        return present(hit, host=host.host, component=component)
    if kind in (component_unit.BOOTING, systemd_unit.STARTING, systemd_unit.STOPPING):
        doubt = Missing(host.host, "component_units", "starting")
        return unknown(doubt, host=host.host, component=component, note=service.why)
    return CheckResult(host=host.host, component=component)


def _hit(host: Host, service: Service, owner: Supervisor | None) -> Detection:
    name = shell_name(service.row.name, "UNIT")
    effect = {**_CRITICAL, **_WARNING}[service.kind]
    if service.kind == component_unit.NOT_AT_BOOT:
        return Detection(
            f"{name} {effect}: {service.why}",
            (kubelet_unit.proof(host, service.unit),),
            f"systemctl enable --no-reload {name}",
            host=host.host,
            node=host.node,
            component=service.row.component,
            severity="warning",
        )
    lines = component_unit.own_lines(service)
    telling = _telling(service, lines)
    past = model_unit_start.past(service.refused)
    cause = _message(telling, lines)
    if past is not None:
        cause = f"; {past.what}"
    flags: tuple[str, ...] = ()
    if not _is_stopped(service):
        flags = etcd_client.lacking(service.row.component, service.row.argv, lines)
    cause += etcd_client.clause(flags)
    argv = () if _is_stopped(service) else service.row.argv
    cause += quoted_flags.clause(argv)
    remedy = _remedy(service, telling, bool(_slow_line(lines)), owner)
    hit = Detection(
        one_line(f"{name} {effect}: {service.why}{_history(service)}{cause}{_slow(lines)}", 900),
        _proofs(host, service, telling, lines),
        f"{etcd_client.advice(flags)}{remedy}",
        host=host.host,
        node=host.node,
        component=service.row.component,
        severity=_severity(service),
    )
    if past is None and not _is_stopped(service):
        hit = explained(
            hit,
            (service.row.component,),
            (telling.line, *telling.before(lines)),
            # What a supervisor refuses has its own advice.
            is_of_program=not _of_owner(telling, owner),
            source=Source(service.row.argv, service.row.name),
        )
    # What a value with quotes brings about may have a known cause of its own.
    return replace(hit, remedy=f"{quoted_flags.advice(argv)}{hit.remedy}")


def _severity(service: Service) -> str | None:
    """Return the severity where it is not critical.

    A first end, and a unit that is not to start by itself, may be an operator's own doing.
    """
    if service.kind in _WARNING:
        return "warning"
    once = service.exits < 2 and service.unit.restarts in (0, 1)
    if service.kind == systemd_unit.LOOPING and once:
        return "warning"
    boot = systemd_unit.at_boot(service.unit).answer
    if service.kind == systemd_unit.STOPPED and boot != systemd_unit.YES:
        return "warning"
    return None


def _is_stopped(service: Service) -> bool:
    """Tell whether the unit was stopped in order: what its program said then is no cause."""
    has_stop_job = service.last is not None and service.last.has_stop_job
    if service.kind == systemd_unit.FAILED and has_stop_job:
        return True
    kinds = (systemd_unit.STOPPED, systemd_unit.FENCED)
    return service.kind in kinds and service.unit.result == "success"


def _history(service: Service) -> str:
    if _is_stopped(service):
        return ""
    if service.exits > 1:
        return f"; {counted(service.exits, 'restart')} within the last day"
    if service.kind in component_unit.DOWN and service.unit.restarts:
        return f"; {counted(service.unit.restarts, 'restart')} so far"
    return ""


def _telling(service: Service, lines: list[str]) -> Telling:
    """Return the line of its last start that tells why it ended."""
    if _is_stopped(service):
        return Telling()
    if service.kind == component_unit.HANGS or not lines:
        errors = [line for line in lines if _ERROR.match(line)]
        last = next(iter(errors[-1:]), "")
        if service.row.component != "k0s" or not last:
            return Telling(last)
        return Telling(last, component_log.reading(last, _TABLES["k0s"]))
    component = _TABLES.get(service.row.component, service.row.component)
    telling = component_log.telling(lines, _last_line(service, lines), component)
    if telling.reading is not None:
        return telling
    # A program that refuses a flag says so before it prints how it is used.
    begun = [Telling(line, component_log.reading(line, component)) for line in lines[:BEGUN]]
    return next((first for first in begun if first.names_cause), telling)


def _last_line(service: Service, lines: list[str]) -> str:
    """Return the line with which the program ended, else its last one."""
    last = component_log.last_word(lines)
    if service.last is None or last != lines[-1]:
        return last
    ended = unit_journal.last(service.last)
    if ended is None:
        return last
    return ends(ended.line.partition("]: ")[2], 600) or last


def _message(telling: Telling, lines: Sequence[str]) -> str:
    message = _text(telling.line, 300)
    if not message:
        return ""
    panicked = go_panic.clause(telling.line, lines)
    if panicked:
        return f"; it ended with {one_line(telling.line, 300)}{panicked}"
    if telling.reading is None:
        return f"; its last line: {message}"
    return f": {message} ({message_class.CLASSES[telling.reading.meaning].clause})"


def _text(line: str, most: int) -> str:
    """Return what a line says, without its time, level and place in the source."""
    return ends(component_log.text(line) or line, most)


def _slow(lines: list[str]) -> str:
    """Return what etcd says of a disk that is too slow for it, for a summary."""
    slow = _slow_line(lines)
    if not slow:
        return ""
    took = _TOOK.search(slow)
    took_text = ""
    if took is not None:
        took_text = f" ({took.group(1)})"
    return f"; before that: {_text(slow, 240)}{took_text}"


def _slow_line(lines: list[str]) -> str:
    for words in _SLOW:
        matches = [line for line in lines if words in line]
        if matches:
            return matches[-1]
    return ""


def _proofs(
    host: Host, service: Service, telling: Telling, lines: list[str]
) -> tuple[EvidenceRef, ...]:
    proofs = [kubelet_unit.proof(host, service.unit)]
    name = one_line(service.row.name, 80)
    proofs += model_unit_start.proofs(host.host, name, service.refused)
    for line in dict.fromkeys(filter(None, (telling.line, _slow_line(lines)))):
        proofs.append(EvidenceRef("log", host.host, object=name, text=line))
    if service.row.fragment_path:
        command = one_line(" ".join(service.row.argv), 300)
        proofs.append(
            EvidenceRef("file", host.host, path=service.row.fragment_path, text=command or None)
        )
    return tuple(dict.fromkeys(proofs))


def _remedy(service: Service, telling: Telling, slow: bool, owner: Supervisor | None) -> str:
    """Return what to do. owner: k3s or RKE2, where the unit is its own."""
    name = shell_name(service.row.name, "UNIT")
    cure = _cure(service, telling, name, owner)
    lost = component_log.says_lock_lost(telling.line)
    if slow and (lost or telling.reading is None):
        cure = (
            "see what else uses the disk of etcd's data (iostat -x 5), and give etcd a faster one"
        )
    started = _started(service, name)
    return f"{cure}{_files(service)}{started}. The whole log: journalctl -u {name}"


def _of_owner(telling: Telling, owner: Supervisor | None) -> str:
    """Return what to change of k3s or RKE2, "" where that is the usual."""
    cause = _OF_OWNER.get(telling.reading.meaning) if telling.reading is not None else None
    if owner is None or cause is None or telling.reading is None:
        return ""
    keys = tuple(telling.reading.key.split())
    death = Death(cause, ends(telling.reading.text, 300), telling.line, keys=keys)
    return kubelet_supervisor.cure(owner, death)


def _cure(service: Service, telling: Telling, name: str, owner: Supervisor | None) -> str:
    past = model_unit_start.past(service.refused)
    if past is not None:
        return str(past.cure)
    if service.kind == component_unit.HANGS:
        return f"see what it waits for in its last log lines{_LOGS.get(service.row.component, '')}"
    if service.kind in (systemd_unit.STOPPED, systemd_unit.FENCED):
        return f"find out who stopped it, and why (systemctl status {name})"
    if telling.reading is not None:
        usual = message_class.CLASSES[telling.reading.meaning].advice
        return _of_owner(telling, owner) or usual
    return "fix what its last log lines name, in its flags or in a file that it is given"


def _files(service: Service) -> str:
    """Return where its settings are."""
    paths = [*service.row.environment_files, *service.row.drop_in_paths]
    if not paths or service.kind == systemd_unit.STOPPED:
        return ""
    return f" (its settings: {one_line(', '.join(paths), 200)})"


def _started(service: Service, name: str) -> str:
    if service.kind == component_unit.HANGS:
        return ""
    if service.kind in (systemd_unit.LOOPING, component_unit.RESTARTS):
        return "; systemd starts it again by itself"
    if service.kind == systemd_unit.GAVE_UP:
        return f"; then systemctl reset-failed {name} and systemctl start {name}"
    if service.kind == systemd_unit.FENCED:
        return f"; then systemctl unmask {name} and systemctl start {name}"
    return f"; then systemctl start {name}"
