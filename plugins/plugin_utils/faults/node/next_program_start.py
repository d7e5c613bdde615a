# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the next start of the kubelet and its runtime loads, and runs without now.

KM700: files and units, KM701: programs, KM703: a configuration that containerd refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....module_utils.shared import restart_impact
from ....module_utils.shared.systemd_output import words
from ...evidence import contract
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ...evidence.answers.node.next_start import NextStart, Program, RuntimeFiles, Trial
from ...evidence.answers.node.runtime import Runtime
from ...evidence.answers.systemd_unit import Unit
from ...evidence.document import ends, one_line
from ...models import containerd_trial
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...parsers import release_number
from ..base import CheckResult, Detection, node_check, not_applicable, unknown

COLLECTOR = "next_start"
NO_KUBELET = "no kubelet"
SHOWN = 4
RELOAD = "its unit was changed and not loaded (systemctl daemon-reload)"


@node_check(
    "KM700",
    "Next start of kubelet or runtime loads changes that never ran",
    severity="info",
    applies="nodes with a kubelet",
    needs=("kubelet", "runtime", COLLECTOR),
    tier="deep",
)
def pending_changes(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM700: report files and units that were changed after what reads them had started."""
    without = unread(host)
    if without is not None:
        yield without
        return
    answer = contract.answer(document, NextStart)
    kubelet, runtime = contract.answer(document, Kubelet), contract.answer(document, Runtime)
    hits = [*_of_kubelet(host, kubelet)]
    for unit in runtime.units:
        if not unit.absent and unit.active_state == "active":
            hits += _of_unit(host, unit, _changed_files(unit, answer.runtime_files))
    missing = _unread_files(host, kubelet) + host.missing("runtime")
    yield CheckResult(tuple(hits), missing, host=host.host)


def unread(host: Host) -> CheckResult | None:
    """Return the result of a host whose next start was not read, else None."""
    if "absent" in (host.statuses.get("kubelet"), host.statuses.get(COLLECTOR)):
        return not_applicable(NO_KUBELET, host=host.host)
    missing = host.missing("kubelet") or host.missing(COLLECTOR)
    if missing:
        return unknown(*missing, host=host.host)
    return None


def _records(kubelet: Kubelet) -> list[FileRecord]:
    """Return the files that the kubelet and its unit read at a start."""
    records = [record for record in (kubelet.config, *kubelet.config_dropins) if record]
    if kubelet.unit is not None:
        records += kubelet.unit.environment_files
    return records


def _unread_files(host: Host, kubelet: Kubelet) -> tuple[Missing, ...]:
    """Return what is missing to know whether each of these files was changed."""
    errors = {record.error for record in _records(kubelet) if record.mtime is None}
    if "denied" in errors:
        return (Missing(host.host, "kubelet", "denied"),)
    if errors - {None, "missing"}:
        return (Missing(host.host, "kubelet", "error"),)
    return ()


def _of_kubelet(host: Host, kubelet: Kubelet) -> Iterator[Detection]:
    process, unit = kubelet.process, kubelet.unit
    if process is None:
        return
    files = [{"path": record.path, "mtime": record.mtime} for record in _records(kubelet)]
    clauses = restart_impact.changes({"started_at": process.started_at}, files)
    proofs = [
        EvidenceRef("file", host.host, path=one_line(file["path"], 200), text="newer")
        for file in files
        if any(clause.startswith(f"{file['path']} ") for clause in clauses)
    ]
    if unit is not None:
        clauses += _differing(process.argv, unit)
        if unit.need_daemon_reload:
            clauses.append(RELOAD)
        proofs += _of_reload(host, unit)
    if clauses:
        yield _change(host, "kubelet", unit, clauses, proofs)


def _differing(argv: Sequence[str], unit: KubeletUnit) -> list[str]:
    """Return a clause for each flag that differs between the unit and the process."""
    meant = _command(unit)
    if meant is None:
        return []
    running, later = restart_impact.flags_of(argv[1:]), restart_impact.flags_of(meant[1:])
    missing = restart_impact.MISSING
    names = [
        name
        for name in sorted({*running, *later})
        if running.get(name, missing) != later.get(name, missing)
    ]
    return [f"--{one_line(name, 60)} of its unit is not that of the process" for name in names]


def _command(unit: KubeletUnit) -> list[str] | None:
    """Return the command line that the unit starts; None where that is not known."""
    values, command = dict(unit.split_variables), []
    for word in unit.start_words:
        if not word.startswith("$") or word.startswith(("${", "$$")):
            if "$" in word:
                return None
            command.append(word)
            continue
        value = values.get(word[1:])
        if value is None:
            return None
        command += words(value)
    return command or None


def _changed_files(unit: Unit, files: RuntimeFiles | None) -> list[str]:
    if files is None or unit.name != "containerd.service":
        return []
    return [file.path for file in files.files if file.newer]


def _of_unit(host: Host, unit: Unit, changed: Iterable[str]) -> Iterator[Detection]:
    clauses = [f"{one_line(path, 200)} is newer than the process" for path in changed]
    proofs = [
        EvidenceRef("file", host.host, path=one_line(path, 200), text="newer") for path in changed
    ]
    if unit.need_daemon_reload:
        clauses.append(RELOAD)
        proofs += _of_reload(host, unit)
    if clauses:
        yield _change(host, unit.name.rpartition(".")[0], unit, clauses, proofs)


def _of_reload(host: Host, unit: Unit) -> list[EvidenceRef]:
    """Return the proof that systemd has not read the files of a unit."""
    if not unit.need_daemon_reload:
        return []
    return [
        EvidenceRef("unit", host.host, object=one_line(unit.name, 80), text="NeedDaemonReload=yes")
    ]


def _change(
    host: Host,
    name: str,
    unit: Unit | None,
    clauses: Sequence[str],
    proofs: Sequence[EvidenceRef],
) -> Detection:
    component, unit_name = one_line(name, 60), one_line(f"{name}.service", 80)
    if unit is not None:
        unit_name = one_line(unit.name, 80)
    severity, look = "info", ""
    if RELOAD in clauses:
        severity = "warning"
        look = (
            f"read the files (systemctl cat {unit_name}), and load them without a restart"
            " (systemctl daemon-reload). Then run this playbook again, because it judged the unit"
            " as systemd has it. After that, "
        )
    shown = [one_line(clause, 200) for clause in clauses]
    pid = EvidenceRef("process", host.host, object=component, text=shown[0])
    return Detection(
        f"{component} has not loaded these changes, and its next start does:"
        f" {and_others(shown, SHOWN)}",
        tuple(proofs) or (pid,),
        f"{look}compare each file with its intended content. Then restart {unit_name} at a time"
        " that you choose, or undo the change. Before a restart of the kubelet, drain the node"
        " where device plugins run",
        host=host.host,
        node=host.node,
        component=component,
        severity=severity,
    )


@node_check(
    "KM701",
    "Program of kubelet or runtime was replaced on the disk",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("kubelet", COLLECTOR),
    tier="deep",
)
def replaced_programs(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM701: report programs that run and that are no more those at their path."""
    without = unread(host)
    if without is not None:
        yield without
        return
    if contract.answer(document, Kubelet).distribution is not None:
        yield not_applicable("k3s and RKE2 unpack their own programs", host=host.host)
        return
    programs = contract.answer(document, NextStart).programs
    hits = [_replacement(host, program) for program in programs if program.replaced]
    missing: tuple[Missing, ...] = ()
    if any(program.replaced is None for program in programs):
        missing = (Missing(host.host, COLLECTOR, "denied"),)
    yield CheckResult(tuple(hits), missing, host=host.host)


def _replacement(host: Host, program: Program) -> Detection:
    name, path = one_line(program.name, 40), one_line(program.path or "", 200)
    running, disk = one_line(program.running, 120), one_line(program.disk, 120)
    severity, change = _change_of_version(program)
    versions = ""
    if running and disk:
        versions = f": {running} runs, {disk} starts next"
    if program.missing:
        versions = ": nothing lies there, so the next start fails"
    return Detection(
        f"{path}, from which {name} runs, {change}{versions}",
        (
            EvidenceRef("process", host.host, pid=program.pid, object=name, text=running or path),
            EvidenceRef("file", host.host, path=path, text=disk or "another file, or none"),
        ),
        _advice(name, program),
        host=host.host,
        node=host.node,
        component=name,
        severity=severity,
    )


def _change_of_version(program: Program) -> tuple[str, str]:
    """Return (severity, what happened) by both versions."""
    if program.missing:
        return "critical", "was removed"
    running, disk = release_number.parse(program.running), release_number.parse(program.disk)
    if running is None or disk is None:
        return "warning", "was replaced by a program whose version is not known"
    if running[:2] == disk[:2]:
        return "info", "was replaced by one of the same minor release"
    return "warning", "was replaced by another minor release"


def _advice(name: str, program: Program) -> str:
    if program.missing:
        return (
            "install the package again, or put the program back, before the node restarts;"
            f" systemctl cat {name} shows what the unit starts"
        )
    hold = "apt-mark hold PACKAGE (dnf versionlock add PACKAGE) keeps it from the next upgrade"
    if name == "kubelet":
        return (
            "see that the API servers are not older than this release, and that it knows each flag"
            f" and key of the kubelet; drain the node, restart kubelet, uncordon it; {hold}"
        )
    return (
        f"read what this release removed from its configuration; restart {name} at a time that you"
        f" choose, on one node first; {hold}"
    )


@node_check(
    "KM703",
    "Runtime refuses its configuration at its next start",
    severity="critical",
    applies="nodes with containerd",
    needs=("kubelet", "runtime", COLLECTOR),
    tier="deep",
)
def refused_files(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM703: report files of containerd that the program on the disk does not accept."""
    without = unread(host)
    if without is not None:
        yield without
        return
    answer = contract.answer(document, NextStart)
    if answer.runtime_files is None:
        yield not_applicable("no containerd with a unit of its own", host=host.host)
        return
    read = _by_reading(host, answer.runtime_files)
    if answer.trial is None:
        yield read
        return
    proof = containerd_trial.proof(
        answer.trial, contract.answer(document, Runtime).kind == "containerd"
    )
    if proof.verdict == containerd_trial.UNKNOWN:
        missing = read.missing or (Missing(host.host, COLLECTOR, "error"),)
        yield read._replace(missing=missing, note=f"trial start of containerd: {proof.text}")
        return
    # what containerd did is a better proof than what its files say
    hits = [*_of_trial(host, answer.trial, proof)]
    yield CheckResult(tuple(hits), host=host.host)


def _by_reading(host: Host, files: RuntimeFiles) -> CheckResult:
    """Return the result of a host whose containerd was only asked to read its files."""
    hits = [*_refusal(host, files), *_conflict(host, files)]
    missing: tuple[Missing, ...] = ()
    if files.error is None:
        missing = (Missing(host.host, COLLECTOR, "error"),)
    return CheckResult(tuple(hits), missing, host=host.host)


def _of_trial(host: Host, trial: Trial, proof: containerd_trial.Proof) -> Iterator[Detection]:
    """Yield what a trial start proves against the next start."""
    if proof.verdict != containerd_trial.PRESENT:
        return
    path = one_line(trial.path, 200)
    consequence = "will not start again"
    if proof.is_cri:
        consequence = "serves no CRI after its next start"
    evidence = [EvidenceRef("log", host.host, object="containerd", text=proof.line or proof.text)]
    location = ""
    if trial.place is not None:
        place, key = one_line(trial.place.path, 200), one_line(trial.place.key, 80)
        location = f" ({place}:{trial.place.line} {key})".replace(" )", ")")
        evidence += [EvidenceRef("file", host.host, path=place, line=trial.place.line, text=key)]
    else:
        evidence += [EvidenceRef("file", host.host, path=path, text="read by the trial start")]
    yield Detection(
        f"containerd runs, and {consequence}: a trial start of {one_line(trial.program, 200)} with"
        f" {path} said: {proof.text}{location}",
        tuple(evidence),
        f"{_cure(proof)}; then run this playbook again with kubemend_probe, before containerd"
        " restarts",
        host=host.host,
        node=host.node,
        component="containerd",
    )


def _cure(proof: containerd_trial.Proof) -> str:
    if proof.cure:
        return proof.cure
    if proof.is_cri and not proof.line:
        return "take cri out of disabled_plugins of its configuration"
    return "correct the setting that it names, in the file or in one of its imports"


def _refusal(host: Host, files: RuntimeFiles) -> Iterator[Detection]:
    if not files.error:
        return
    path, error = one_line(files.path, 200), ends(files.error, 300)
    yield Detection(
        f"containerd runs, and will not start again: it refuses {path}: {error}",
        (EvidenceRef("file", host.host, path=path, text=error),),
        f"correct the file that it names; containerd --config {path} config dump > /dev/null shows"
        " whether containerd reads it, without a restart",
        host=host.host,
        node=host.node,
        component="containerd",
    )


def _conflict(host: Host, files: RuntimeFiles) -> Iterator[Detection]:
    if len(files.conflicts) < 2:
        return
    folder, other = files.conflicts[0], files.conflicts[1]
    place = f"{one_line(other.path, 200)}:{other.line}"
    proofs = [
        EvidenceRef(
            "file", host.host, path=one_line(row.path, 200), line=row.line, text=one_line(row.key)
        )
        for row in files.conflicts[: SHOWN + 1]
    ]
    yield Detection(
        f"containerd runs, and serves no CRI after its next start: {one_line(other.key, 40)}"
        f" ({place}) cannot be set together with config_path"
        f" ({one_line(folder.path, 200)}:{folder.line}) of its registries",
        tuple(proofs),
        "write each mirror into a hosts.toml below config_path (containerd's docs/hosts.md), and"
        " take it out of config.toml; or take config_path away",
        host=host.host,
        node=host.node,
        component="containerd",
    )
