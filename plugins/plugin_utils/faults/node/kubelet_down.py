# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a kubelet that does not run: KM502, and the causes that it logs (KM505 to KM517)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.file_record import CertificateFile, FileRecord
from ...evidence.answers.node.boot import Boot
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.answers.node.package_changes import PackageChange
from ...evidence.document import ends, one_line, shell_name
from ...models import boot_network, denied_file, overlay_base, package_changes
from ...models import unit_start as model_unit_start
from ...models.cluster import Host
from ...models.kubelet import (
    boot_order,
    etcd_defragmentation,
    exit_cause,
    lost_election,
    refused_configuration,
    refused_program,
    runtime_log,
    supervisor,
)
from ...models.kubelet import (
    status as kubelet_status,
)
from ...models.kubelet.exit_cause import Death
from ...models.kubelet.lost_election import LostElection
from ...models.kubelet.status import KubeletStatus
from ...models.kubelet.waiting_start import Wait
from ...models.result import EvidenceRef, Missing
from ...parsers import go_panic, manager_error, systemd_unit, unit_journal
from ..base import (
    AnyNodeCheck,
    CheckResult,
    Detection,
    node_check,
    not_applicable,
    present,
    unknown,
)
from ..known_causes import Source, explained, with_denial
from ..limits import kernel as limits_kernel
from ..limits import process as limits_process
from ..resource_managers import state_files
from . import cgroup_driver as cgroup_driver_check
from . import (
    client_certificate,
    container_runtime,
    empty_arguments,
    failed_units,
    firewall,
    kubelet_configuration,
    kubelet_exit_advice,
    kubelet_supervisor,
)
from . import (
    kubelet_unit as node_kubelet_unit,
)
from . import (
    swap as node_swap,
)

# of a kubelet that was stopped, or not started since the boot: the line need not be its reason
LAST = "the last line of its journal: "
# The causes that are faults of their own; the others are reported by KM502, which names the fault
# that owns them if there is one.
CODES = {
    exit_cause.UNKNOWN_FLAG: "KM505",
    exit_cause.REMOVED_GATE: "KM505",
    exit_cause.BAD_CONFIGURATION: "KM506",
    exit_cause.CLIENT_CERTIFICATE: "KM507",
    exit_cause.STATE_FILE: "KM510",
    exit_cause.CGROUP_V1: "KM515",
    exit_cause.CGROUP_DRIVER: "KM516",
    exit_cause.KERNEL_DEFAULTS: "KM517",
}
# The faults that tell whether such a cause is still there.
Check = Callable[[Host, Mapping[str, Any]], Iterator[CheckResult]]
_CHECKS: Mapping[str, tuple[tuple[str, Check], ...]] = {
    exit_cause.SWAP: (("KM504", node_swap.swap_on),),
    exit_cause.LIMITS: (("KM409", limits_process.refused),),
    # 203/EXEC: the program is there, and systemd may not execute it
    exit_cause.EXECUTABLE: (("KM528", firewall.denied),),
    exit_cause.INOTIFY: (
        ("KM401", limits_kernel.one_holder),
        ("KM402", limits_kernel.too_small),
        ("KM403", limits_kernel.watches),
    ),
}
# The faults of the managers' state that keep a kubelet from its start.
STATE_FAULTS = ("KM301", "KM302", "KM303", "KM304", "KM305", "KM306", "KM307", "KM309", "KM310")
_OF_MANAGERS = frozenset((exit_cause.CPU_MANAGER_STATE, exit_cause.MEMORY_MANAGER_STATE))
_TOLD_BY_FAULTS = frozenset((*_CHECKS, exit_cause.RUNTIME))
KUBELET = "kubelet"
SERVER = "rke2-server.service"
WITH_UNIT = "nodes whose kubelet has a unit of systemd"
EMPTY = "it is empty"  # files.EMPTY of the collector
CGROUPS = "/sys/fs/cgroup/"
# pkg/executor/embed/embed.go and pkg/etcd/etcd.go of k3s
OF_VPN, NO_MEMBER = " due to VPN", "not a member of the etcd cluster"
# systemd starts it no more by itself.
ENDED_FOR_GOOD = (systemd_unit.FAILED, systemd_unit.GAVE_UP)
# Causes that a rule about the last line makes more exact; the others name what is wrong, and a file
# of their line may be a consequence: the bootstrap kubeconfig, where a certificate expired.
_BY_RULE = frozenset(
    (
        *(exit_cause.UNKNOWN, exit_cause.BAD_CONFIGURATION, exit_cause.SUPERVISOR),
        *(exit_cause.CREDENTIAL, exit_cause.DISK, exit_cause.STATE),
    )
)
# Programs of several components, by what the names of their units contain.
_WHOLE = ("kubelite", "k0s")
DATABASE = "k8s-dqlite"  # of MicroK8s, in kubelite itself up to 1.22
SHOWN = 5


@node_check(
    "KM502",
    "Kubelet does not run",
    severity="critical",
    applies=WITH_UNIT,
    risk=2,
    needs=(
        "system",
        "kubelet",
        "kubelet_end",
        "unit_start",
        "boot",
        "network",
        "package_changes",
        "component_units",
        "failed_units",
        "installer",
        "pinning",
    ),
)
def not_running(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM502: report a kubelet that does not run, unless a fault of its own is the reason."""
    status = kubelet_status.read(document)
    if status is None:
        yield node_kubelet_unit.without(host)
        return
    owner = _owner(status, document) or _runtime(host, status, document)
    if status.unit.masked:
        yield _excluded(host, "it is masked (KM503)")
    elif status.ended and owner:
        yield _excluded(host, f"{owner} is why")
    elif status.ended:
        hit = _with_denial(_down(host, status, document), status, document)
        yield present(hit, host=host.host, component=KUBELET)
    elif status.wait is not None:
        hit = _waiting(host, status.unit.name, status.wait, document)
        yield present(hit, host=host.host, component=KUBELET)
    elif status.state.kind not in (
        systemd_unit.RUNNING,
        systemd_unit.ABSENT,
        *kubelet_status.ENDED,
    ):
        missing = Missing(host.host, "kubelet", "error")
        yield unknown(missing, host=host.host, component=KUBELET, note=status.state.why)
    else:
        note = ""
        if status.runs:
            note = "it runs, but not its unit"
        yield CheckResult(host=host.host, component=KUBELET, note=note)


def _excluded(host: Host, reason: str) -> CheckResult:
    return not_applicable(reason, host=host.host, component=KUBELET)


def _down(host: Host, status: KubeletStatus, document: Mapping[str, Any]) -> Detection:
    history, risk = "", None
    if status.state.kind == systemd_unit.LOOPING:
        risk = 0  # systemd starts it again by itself, the plan does not
        if status.unit.restarts:
            history = f"; {counted(status.unit.restarts, 'restart')} so far"
    elif status.since:
        history = f", since {status.since}"
    because: tuple[str, ...] = ()
    if status.death is not None:
        because = _because(host, status.death, document)
    because += _of_layout(status, document)
    unit = shell_name(status.unit.name, "UNIT")
    order, advice = _order(document, status, unit)
    owner = supervisor.read(document)
    cause = kubelet_exit_advice.causes(status, owner)
    if status.runtime is not None:
        cause = runtime_log.clause(*status.runtime)
    refusal = refused_program.Refusal()
    if status.death is not None and not _stopped(status):
        refusal = refused_program.read(status.death.line, contract.answer(document, Boot))
    election = _election(document, status)
    cause += f"{_panic_clause(status, document)}{refusal.clause}{election.clause}"
    beside, without = _server_beside(document, status)
    cause += beside
    changes = _changes(document, status)
    summary = f"the kubelet does not run: {status.state.why}{history}{cause}{order}{_waits(status)}"
    places = kubelet_supervisor.places(owner, status.death)
    hit = Detection(
        one_line(f"{summary}{package_changes.clause(changes)}", 900),
        (
            *supervisor.proofs(places, host.host),
            *_proofs(host, status),
            *_election_proofs(host, status, election),
            *package_changes.proofs(host.host, changes),
        ),
        f"{_first(without)}{_first(refusal.advice)}{_first(election.advice)}{_of_runtime(status)}"
        f"{kubelet_exit_advice.remedy(status, unit, owner)}{advice}",
        host=host.host,
        node=host.node,
        component=KUBELET,
        because=because,
        risk=risk,
    )
    return _with_cause(hit, host, status, document)


def _with_cause(
    hit: Detection, host: Host, status: KubeletStatus, document: Mapping[str, Any]
) -> Detection:
    """Return a hit with the empty files of its flags, else with the known cause of its lines."""
    empty = empty_arguments.paths(document, status.unit.name)
    if _stopped(status) or empty:
        return empty_arguments.with_files(hit, empty)
    owner, unit = supervisor.read(document), shell_name(status.unit.name, "UNIT")
    return explained(
        hit,
        _of_component(status.death) or (*_programs(owner, unit), *_runtime_within(status)),
        _texts(status, document),
        host.machine.version,
        is_of_program=True,
        source=_source(host, document, status.death),
    )


def _election(document: Mapping[str, Any], status: KubeletStatus) -> LostElection:
    """Return the election whose loss ended the process of the kubelet, an empty one without it."""
    if _stopped(status) or status.child is not None:
        return lost_election.NONE
    return lost_election.read(document)


def _election_proofs(
    host: Host, status: KubeletStatus, election: LostElection
) -> list[EvidenceRef]:
    """Return the lines about an election, without that of the exit cause."""
    shown = ends(status.death.line, 400) if status.death is not None else ""
    return [
        EvidenceRef("log", host.host, object=election.unit, text=line)
        for line in election.lines
        if line != shown
    ]


def _with_denial(hit: Detection, status: KubeletStatus, document: Mapping[str, Any]) -> Detection:
    """Add who denies a kubelet a file; a program that is not executed has a refusal of its own."""
    if status.death is None or _stopped(status):
        return hit
    line, boot = status.death.line, contract.answer(document, Boot)
    if refused_program.read(line, boot).clause:
        return hit
    return with_denial(hit, denied_file.read(line, boot))


def _of_layout(status: KubeletStatus, document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return KM564 where the container runtime of a layout failed, and the kubelet ended."""
    if _stopped(status) or not failed_units.without_runtime(document):
        return ()
    return ("KM564",)


def _changes(document: Mapping[str, Any], status: KubeletStatus) -> tuple[PackageChange, ...]:
    """Return the packages that changed before a kubelet ended."""
    return package_changes.of_unit(
        document, status.unit.name, package_changes.KUBELETS, is_stopped=_stopped(status)
    )


def _panic_clause(status: KubeletStatus, document: Mapping[str, Any]) -> str:
    """Return in which functions of Go it ended, where its last line is a panic."""
    if status.death is None:
        return ""
    lines = contract.answer(document, KubeletEnd).lines
    texts = [line.partition("]: ")[2] for line in lines]
    return go_panic.clause(status.death.line.partition("]: ")[2], texts)


def _programs(owner: supervisor.Supervisor | None, unit: str) -> tuple[str, ...]:
    """Return whose messages the log of a kubelet may have."""
    if owner is not None:
        return (KUBELET, "k3s", "rke2")
    return (KUBELET, *(program for program in _WHOLE if program in unit))


def _runtime_within(status: KubeletStatus) -> tuple[str, ...]:
    """Return the runtime within k3s or RKE2, where its end ended the kubelet too."""
    return ("containerd",) if status.runtime is not None else ()


def _source(host: Host, document: Mapping[str, Any], death: Death | None) -> Source:
    """Return the kubelet's command line, without rules where its cause tells more than one."""
    return Source(
        contract.answer(document, Kubelet).argv,
        versions=host.releases.of_node,
        is_ruled=death is not None and death.cause in _BY_RULE,
    )


def _of_component(death: Death | None) -> tuple[str, ...]:
    """Return whose message the last line is, where it is that of another component."""
    if death is None or not kubelet_exit_advice.other_component(death):
        return ()
    return (*death.keys, DATABASE)


def _texts(status: KubeletStatus, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a kubelet or systemd wrote before it ended, what tells most first."""
    yield from (refusal.line for refusal in status.refused)
    if not status.state.has_stop_job:
        yield from _own_texts(status, contract.answer(document, KubeletEnd).lines)


def _own_texts(status: KubeletStatus, lines: Sequence[str]) -> Iterator[str]:
    """Yield what a kubelet or its runtime wrote before it ended by itself."""
    if status.runtime is not None:
        yield runtime_log.line_of(status.runtime[0])
    if status.death is not None and status.death.cause == exit_cause.CGROUP:
        # The kubelet logs what the kernel refused, and ends with what followed from that.
        yield from (line for line in reversed(lines) if CGROUPS in line)
    if status.death is not None:
        yield from _with_address_of_vpn(lines, status.death.line)
        yield from etcd_defragmentation.text(lines, status.death.line)
        yield status.death.line
    if status.child is not None:
        yield status.child.line
    yield status.last
    yield from _errors_before(status, lines)


def _errors_before(status: KubeletStatus, lines: Sequence[str]) -> Sequence[str]:
    """Return the errors that may say why a kubelet ended whose last line does not."""
    last = status.last
    if status.death is not None:
        last = status.death.line
        if status.death.cause != exit_cause.UNKNOWN:
            return ()
    # What k3s said before its containerd ended is not why that ended.
    if runtime_log.EXITED.search(last.partition("]: ")[2]):
        return ()
    return unit_journal.errors_before(lines, last)


def _with_address_of_vpn(lines: Sequence[str], last: str) -> Iterator[str]:
    """Yield the newest line in which k3s takes its address from a VPN, and the last line after it.

    The last line names the address that etcd has no member for, and not where it comes from.
    """
    if NO_MEMBER in last:
        addresses = (line for line in reversed(lines) if OF_VPN in line)
        yield from (f"{line} {last}" for line in islice(addresses, 1))


def _server_beside(document: Mapping[str, Any], status: KubeletStatus) -> tuple[str, str]:
    """Return that a server of the same program starts beside this agent, and what to do."""
    row = supervisor.server_beside(document, status.unit.name)
    if row is None:
        return "", ""
    server, agent = shell_name(row.name, "SERVER"), shell_name(status.unit.name, "AGENT")
    return (
        f"; {server}, the unit of a server, is started on this machine next to {agent}: each takes"
        " the ports and the containerd that the other one needs",
        f"systemctl disable --now {server} where this machine is to be an agent only (the role that"
        f" kubectl get nodes shows; a server that is a member of etcd has its data below"
        f" /var/lib/rancher), then systemctl restart {agent}",
    )


def _first(advice: str) -> str:
    """Return what to do before all else, as a clause, or ""."""
    return f"{advice}; else " if advice else ""


def _of_runtime(status: KubeletStatus) -> str:
    """Return what to do about a containerd of k3s or RKE2 that ended, or ""."""
    return "" if status.runtime is None else _first(status.runtime[0].cure)


def _waiting(host: Host, name: str, wait: Wait, document: Mapping[str, Any]) -> Detection:
    """Return the hit of a start that does not end, because what it waits for does not come."""
    unit = one_line(name, 80)
    reason = overlay_base.reason(host.overlay, wait.message)
    if reason is not None:
        wait = replace(wait, clause=reason.clause, advice=reason.advice)
    summary = (
        f"the kubelet does not run: {unit} does not finish its start, because {wait.clause}:"
        f" {ends(wait.message, 300)}"
    )
    hit = Detection(
        one_line(summary, 800),
        (EvidenceRef("log", host.host, object=unit, text=ends(wait.line, 400)),),
        f"{wait.advice}; it asks again by itself",
        host=host.host,
        node=host.node,
        component=KUBELET,
        risk=0,
    )
    if wait.is_whole:
        return hit
    lines = contract.answer(document, KubeletEnd).lines
    texts = (*_with_address_of_vpn(lines, wait.line), wait.line)
    return explained(hit, ("k3s", "rke2"), texts, host.machine.version, is_of_program=True)


def _order(document: Mapping[str, Any], status: KubeletStatus, unit: str) -> tuple[str, str]:
    """Return a clause and an advice where a kubelet was started at boot before what it needs."""
    name = boot_order.before_runtime(document, status)
    if not name:
        return _network(document, status, unit)
    name = shell_name(name, "RUNTIME")
    return (
        f"; it was started at boot before {name} was ready: its unit has no After={name}",
        f"; and systemctl edit {unit}: [Unit] After={name} Wants={name}, [Service] Restart=always,"
        " or the next boot may end the same way",
    )


def _network(document: Mapping[str, Any], status: KubeletStatus, unit: str) -> tuple[str, str]:
    """Return a clause and an advice where a kubelet was started at boot before its network."""
    if status.death is None or status.state.kind not in ENDED_FOR_GOOD:
        return "", ""
    line = status.death.line
    early = boot_network.early(document, status.unit.name, line, kubelet_status.moment(line))
    if early is None:
        return "", ""
    return early.clause, early.advice(unit)


def _because(host: Host, death: Death, document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the faults that explain this exit and are present on this host too."""
    if death.cause == exit_cause.RUNTIME and container_runtime.broken(host, document):
        return ("KM508",)
    if not death.certain:
        return ()
    checks = _CHECKS.get(death.cause, ())
    if death.cause in _OF_MANAGERS:
        checks = tuple((code, state_files.CHECKS[code]) for code in STATE_FAULTS)
    return tuple(
        code for code, check in checks if any(outcome.hits for outcome in check(host, document))
    )


def lasting(host: Host, document: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return why another start would end as the last one did, and the faults that must go first.

    The first is empty for a cause that may have passed, and for one that a fault of this host
    tells: then the faults are those that are still there.
    """
    status = kubelet_status.read(document)
    if status is None or status.death is None or not status.death.certain:
        return "", ()
    death = status.death
    if death.cause in _TOLD_BY_FAULTS:
        return "", _because(host, death, document)
    if death.cause in exit_cause.PASSING:
        return "", ()
    return kubelet_exit_advice.lasting(death.cause, death.what, host.node or host.host), ()


def exit_check(code: str, title: str, *more_needs: str) -> Callable[[AnyNodeCheck], AnyNodeCheck]:
    """Register a node check of a cause that a kubelet logs as it exits."""
    return node_check(
        code,
        title,
        severity="critical",
        applies=WITH_UNIT,
        needs=("system", "kubelet", "kubelet_end", *more_needs),
    )


@exit_check("KM505", "Kubelet does not know a flag or feature gate")
def flag(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM505: report a kubelet that does not know a flag or a feature gate."""
    yield _exit_result(host, document, "KM505")


@exit_check("KM506", "Kubelet refuses its configuration", "pinning")
def configuration(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM506: report a kubelet that refuses its configuration, or would at its next start."""
    outcome = _exit_result(host, document, "KM506")
    if not outcome.applies:
        yield outcome
        return
    outcome = kubelet_configuration.with_values(host, document, outcome)
    status = kubelet_status.read(document)
    if outcome.hits and status is not None:
        hits = tuple(_explained(host, document, status, hit) for hit in outcome.hits)
        outcome = outcome._replace(hits=hits)
    yield outcome


def _explained(
    host: Host, document: Mapping[str, Any], status: KubeletStatus, hit: Detection
) -> Detection:
    """Return a hit with the known cause of a kubelet's last log line."""
    empty = empty_arguments.paths(document, status.unit.name)
    if status.death is None or empty:
        return empty_arguments.with_files(hit, empty)
    places = _programs(supervisor.read(document), shell_name(status.unit.name, "UNIT"))
    version = host.machine.version
    source, line = _source(host, document, status.death), status.death.line
    return explained(hit, places, (line,), version, is_of_program=True, source=source)


@exit_check("KM507", "Kubelet client certificate is invalid or expires soon")
def certificate(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM507: report a kubelet whose client certificate is missing, invalid or about to expire."""
    outcome = _exit_result(host, document, "KM507")
    if outcome.applies and not outcome.hits:
        outcome = client_certificate.with_dates(host, document, outcome)
    yield outcome


@exit_check("KM510", "A file of the kubelet is empty or damaged")
def emptied(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM510: report a kubelet of which a file is empty or damaged."""
    yield _exit_result(host, document, "KM510")


@exit_check("KM515", "Kubelet refuses cgroup v1")
def cgroup_v1(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM515: report a kubelet that refuses a machine with cgroup v1."""
    yield _exit_result(host, document, "KM515")


@exit_check("KM516", "Kubelet and runtime differ in their cgroup driver", "pinning", "cri")
def cgroup_driver(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM516: report a kubelet whose cgroup driver is not the runtime's."""
    outcome = _exit_result(host, document, "KM516")
    if outcome.applies and not outcome.hits:
        outcome = cgroup_driver_check.with_configuration(host, document, outcome)
    yield outcome


@exit_check("KM517", "Kubelet refuses the kernel's settings")
def kernel_defaults(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM517: report a kubelet that refuses the kernel's settings, and must not change them."""
    yield _exit_result(host, document, "KM517")


def _exit_result(host: Host, document: Mapping[str, Any], code: str) -> CheckResult:
    """Return the result of the fault with this code: present if the kubelet's exit shows it.

    It is unknown if the kubelet exited and its log does not show its last line for certain. A last
    line that no table has is none of those that these faults read: they are clear.
    """
    status = kubelet_status.read(document)
    if status is None:
        return node_kubelet_unit.without(host)
    if status.unit.masked:
        return _excluded(host, "it is masked (KM503)")
    owner = _owner(status, document)
    if status.ended and owner == code and status.death is not None:
        hit = _death(host, document, status, status.death, code)
        return present(hit, host=host.host, component=KUBELET)
    missing: tuple[Missing, ...] = ()
    note = ""
    if not owner:
        missing, note = _lacking(host, status)
    return CheckResult((), missing, host=host.host, component=KUBELET, note=note)


def _lacking(host: Host, status: KubeletStatus) -> tuple[tuple[Missing, ...], str]:
    """Return what keeps a cause from being clear, with a note.

    A kubelet that exited by itself has a cause, and one must be certain.
    """
    kinds = (systemd_unit.STARTING, systemd_unit.STOPPING, systemd_unit.UNKNOWN)
    if status.state.kind in kinds:
        return (Missing(host.host, "kubelet", "error"),), status.state.why
    if not status.ended or _is_proven(status.death) or _stopped(status):
        return (), ""
    missing = host.missing("kubelet_end", absent_is_answer=False)
    if missing:
        return missing, ""
    missing = (Missing(host.host, "kubelet_end", "error"),)
    return missing, "its last log lines do not say for certain why it ended"


def _is_proven(death: Death | None) -> bool:
    """Tell whether the last line of the process is known for certain, whatever it means."""
    return death is not None and (death.certain or death.final)


def _stopped(status: KubeletStatus) -> bool:
    """Tell whether a kubelet was stopped in order, or never started: its exit has no cause."""
    if status.state.kind != systemd_unit.STOPPED:
        return False
    return status.state.has_stop_job or status.unit.result == "success"


def _owner(status: KubeletStatus, document: Mapping[str, Any]) -> str:
    """Return the fault that a kubelet's exit is itself, or "" if none or not certain."""
    if status.death is None:
        return ""
    if not status.death.certain:
        return _uncertain_owner(status, status.death, document)
    if manager_error.unreserved(status.death.line):
        return ""  # KM309 is about that value
    code = CODES.get(status.death.cause, "")
    may_be_empty = code in ("KM506", "KM507") or status.death.cause == exit_cause.CREDENTIAL
    if may_be_empty and _emptied(document, status.death.cause, status.death.what):
        return "KM510"
    return code


def _uncertain_owner(status: KubeletStatus, death: Death, document: Mapping[str, Any]) -> str:
    """Return KM506 if the configuration itself has a value that the kubelet refuses, or ""."""
    if death.cause not in (exit_cause.UNKNOWN, exit_cause.BAD_CONFIGURATION):
        return ""
    if status.ended and refused_configuration.read(document).refused:
        return "KM506"
    return ""


def _runtime(host: Host, status: KubeletStatus, document: Mapping[str, Any]) -> str:
    """Return KM508 if the runtime is the reason, and its return restarts the kubelet, or ""."""
    if status.death is None or not status.death.certain or status.death.cause != exit_cause.RUNTIME:
        return ""
    if status.state.kind == systemd_unit.LOOPING and container_runtime.broken(host, document):
        return "KM508"
    return ""


def _death(
    host: Host, document: Mapping[str, Any], status: KubeletStatus, death: Death, code: str
) -> Detection:
    cause, subject, unit = death.cause, death.what, shell_name(status.unit.name, "UNIT")
    node, owner = host.node or host.host, supervisor.read(document)
    places: Sequence[EvidenceRef]
    if code == "KM510":
        empty = _emptied(document, cause, subject)
        paths = empty or [subject.partition(": ")[0]]
        summary = f"the kubelet does not start: {' and '.join(paths)} is empty or damaged"
        advice = "; ".join(kubelet_exit_advice.emptied(path, node) for path in paths)
        places = [EvidenceRef("file", host.host, path=path, text="0 bytes") for path in empty]
    else:
        summary = f"the kubelet does not start: {kubelet_exit_advice.words(cause, subject)}"
        places = _places(host, document, death)
        path = ""
        if places:
            path = places[0].path or ""
        advice = kubelet_exit_advice.advice(death, node, path, owner)
        if cause == exit_cause.UNKNOWN_FLAG and _WHOLE[0] in unit:
            summary = f"the kubelet does not start: {kubelet_exit_advice.whose_flag(subject)}"
            advice = kubelet_exit_advice.of_kubelite(subject)
    changes = _changes(document, status)
    hit = Detection(
        one_line(f"{summary}{_of_child(status)}{package_changes.clause(changes)}", 600),
        (*places, *_proofs(host, status), *package_changes.proofs(host.host, changes)),
        f"{advice}; then {kubelet_exit_advice.then(status, unit, owner)}",
        host=host.host,
        node=host.node,
        component=KUBELET,
    )
    return _explained(host, document, status, hit)


def _of_child(status: KubeletStatus) -> str:
    """Return that RKE2 starts the kubelet again and again, for a summary."""
    if status.child is None:
        return ""
    return f"; {status.state.why}{_waits(status)}"


def _waits(status: KubeletStatus) -> str:
    """Return what waits for the kubelet of a server of RKE2, for a summary."""
    if status.child is None or status.unit.name != SERVER:
        return ""
    return "; etcd and the API server of this machine wait for it"


def _emptied(document: Mapping[str, Any], cause: str, subject: str) -> list[str]:
    """Return the files of 0 bytes that this exit is because of."""
    kubelet = contract.answer(document, Kubelet)
    files = [kubelet.config, kubelet.kubeconfig, *kubelet.config_dropins]
    paths = [file.path for file in files if file is not None and _is_empty_file(file)]
    secrets = [file for file in (kubelet.client_certificate, kubelet.ca) if file is not None]
    paths += [file.path for file in secrets if file.path is not None and file.error == EMPTY]
    credentials = _credentials(kubelet.kubeconfig, kubelet.client_certificate)
    named = subject.partition(": ")[0]
    names = {named}
    if cause == exit_cause.CLIENT_CERTIFICATE:
        names |= credentials
    if cause == exit_cause.CREDENTIAL:
        names |= set(subject.replace(":", " ").split())
    return [one_line(path, 200) for path in paths if path in names]


def _credentials(*files: FileRecord | CertificateFile | None) -> set[str]:
    """Return the paths of the files that hold or name the kubelet's certificate."""
    return {file.path for file in files if file is not None and file.path}


def _is_empty_file(file: FileRecord) -> bool:
    return file.size == 0 and file.kind in ("file", "symlink")


def _places(host: Host, document: Mapping[str, Any], death: Death) -> list[EvidenceRef]:
    """Return the lines with the flag or the gate, or where the configuration is wrong."""
    cause, subject = death.cause, death.what
    if cause == exit_cause.BAD_CONFIGURATION:
        named = refused_configuration.meant(document, death)
        if named:
            return refused_configuration.places(document, named, host.host)
        places = kubelet_supervisor.places(supervisor.read(document), death)
        return _configuration_place(host, subject) or supervisor.proofs(places, host.host)
    word = subject.partition("=")[0]
    if cause not in (exit_cause.UNKNOWN_FLAG, exit_cause.REMOVED_GATE) or len(word) < 3:
        return []
    kubelet = contract.answer(document, Kubelet)
    files: list[FileRecord | None] = []
    if kubelet.unit is not None:
        files += kubelet.unit.environment_files
    if cause == exit_cause.REMOVED_GATE:
        files += [kubelet.config, *kubelet.config_dropins]
    owner = supervisor.read(document)
    proofs = supervisor.proofs(kubelet_supervisor.places(owner, death), host.host)
    for file in filter(None, files):
        proofs += _lines_with(host, file, word)
    return proofs[:SHOWN]


def _configuration_place(host: Host, subject: str) -> list[EvidenceRef]:
    path, _separator, rest = subject.partition(": ")
    if path[:1] != "/":
        return []
    line = None
    if rest.startswith("line ") and rest[5:].isdecimal() and len(rest) < 12:
        line = int(rest[5:])
    return [EvidenceRef("file", host.host, path=path, line=line, text=rest or None)]


def _lines_with(host: Host, file: FileRecord, word: str) -> list[EvidenceRef]:
    """Return the lines of a file that contain a word, without comments."""
    return [
        EvidenceRef("file", host.host, path=file.path, line=number, text=one_line(line, 300))
        for number, line in enumerate((file.text or "").splitlines(), 1)
        if word in line and not line.lstrip().startswith("#")
    ]


def _proofs(host: Host, status: KubeletStatus) -> tuple[EvidenceRef, ...]:
    refusals = model_unit_start.proofs(host.host, status.unit.name, status.refused)
    line = ""
    if status.death is not None and status.death.line:
        line = status.death.line
    elif status.last and not any(proof.kind == "log" for proof in refusals):
        line = f"{LAST}{status.last}"
    log = []
    if line:
        place = one_line(kubelet_status.place_of_line(status), 200)
        log.append(EvidenceRef("log", host.host, object=place, text=ends(line, 400)))
    if status.runtime is not None:
        words, path = status.runtime
        text = ends(runtime_log.line_of(words), 400)
        log.append(EvidenceRef("log", host.host, path=one_line(path, 200), text=text))
    if status.child is not None:
        unit = one_line(status.unit.name, 80)
        log.append(EvidenceRef("log", host.host, object=unit, text=ends(status.child.line, 400)))
    return tuple(dict.fromkeys((node_kubelet_unit.proof(host, status.unit), *refusals, *log)))
