# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the kernel's limits: what is exhausted, by which process, and what a reboot changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.kubelet_log import KubeletLog
from ...evidence.answers.node.limits import UNTRIED
from ...evidence.answers.node.system import System
from ...models import limits as model_limits
from ...models import persistent_sysctl, shared_kernel
from ...models.cluster import Host
from ...models.limits import (
    FILE_MAX,
    INSTANCES,
    PID_MAX,
    THREADS_MAX,
    WATCHES,
    Holder,
    Limits,
    Program,
    Shortage,
)
from ...models.result import EvidenceRef, Missing
from ...parsers import errno_message, release_number
from ..base import CheckResult, Detection, node_check

SHOWN = 5
MORE_PIDS = 4194304  # as many as a kernel of 64 bits counts
SHIM, LEAK_FIXED = "containerd-shim", "1.6.0"
LEAK = (
    "with cgroup v2 a shim of containerd before 1.6.0 leaves one open at each start of a container"
    " in its pod"
)
LEAK_ADVICE = (
    "install containerd 1.6.0 or later (late patches of 1.5 have the correction too); the shims"
    " that run keep theirs until their pods are deleted: drain the node and reboot it"
    " (see https://github.com/containerd/containerd/issues/5670)"
)
WHO_THREADS = "ps -eo nlwp,pid,comm --sort=-nlwp | head"
# The subject that a log line of kubelet or runtime must have: the same errno also occurs for a full
# disk or a process at its limit.
SAYS = {
    INSTANCES: errno_message.INSTANCES,
    FILE_MAX: errno_message.FILE_MAX,
    WATCHES: errno_message.WATCHES,
}
RAISE = (
    "raise it: the plan writes {0}={1}, or what -e {2}=NUMBER asks for, to a file that counts after"
    " a reboot too, and sets it in the running kernel (nothing restarts)"
)
WHO = (
    'for p in /proc/[0-9]*; do echo "$(ls $p/fd | wc -l) $(cat $p/comm) ${p#/proc/}"; done | sort'
    " -rn | head"
)


@node_check(
    "KM401",
    "One program holds most inotify instances",
    severity="critical",
    applies="nodes whose processes were looked at",
    risk=1,
    needs=("limits", "descriptors"),
    tier="deep",
    sooner=True,
)
def one_holder(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM401: report a program whose processes hold most of a user's inotify instances."""
    limits = model_limits.read(document)
    missing = (
        host.missing("limits")
        or host.missing("descriptors")
        or _untried(host, limits, INSTANCES) + uncounted(host, limits)
    )
    shortages = [shortage for shortage in _of(limits, INSTANCES) if shortage.culprit]
    yield _outcome(host, document, limits, shortages, missing)


@node_check(
    "KM402",
    "Inotify instances are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def too_small(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM402: report used up inotify instances of which no program is known to hold most.

    If one program does, KM401 reports it, and this fault does not apply.
    """
    limits = model_limits.read(document)
    shortages = _of(limits, INSTANCES)
    shared = [shortage for shortage in shortages if not shortage.culprit]
    missing = host.missing("limits") or _untried(host, limits, INSTANCES)
    if shortages and not shared:
        holder = "one process"
        if any(len(row.culprit.processes) > 1 for row in shortages if row.culprit):
            holder = "one program"
        note = f"{holder} holds most of them: KM401"
        yield _outcome(host, document, limits, [], missing, applies=False, note=note)
    else:
        yield _outcome(host, document, limits, shared, missing)


@node_check(
    "KM403",
    "Inotify watches are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def watches(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM403: report that a user's inotify watches are used up."""
    limits = model_limits.read(document)
    error = model_limits.INOTIFY[INSTANCES][2]
    note = ""
    if (limits.tried.instance, limits.tried.watch) == (error, UNTRIED):
        note = f"no inotify instance for the test of a watch ({error}): correct KM402 first"
    missing = host.missing("limits") or _untried(host, limits, WATCHES)
    yield _outcome(host, document, limits, _of(limits, WATCHES), missing, note=note)


@node_check(
    "KM405",
    "The machine's file handles are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def file_max(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM405: report that the machine's file handles are used up."""
    limits = model_limits.read(document)
    handles = model_limits.pair(limits.answer.file_nr)
    counted = bool(handles and handles[0] >= 0 and handles[1] > 0)
    missing = host.missing("limits") or unless(host, counted)
    yield _outcome(host, document, limits, _of(limits, FILE_MAX), missing)


@node_check(
    "KM411",
    "The machine's process ids are used up",
    severity="critical",
    applies="nodes",
    needs=("limits",),
)
def pids(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM411: report that as many threads run as the machine has numbers for.

    Each thread has one, a process with one thread too.
    """
    limits = model_limits.read(document)
    threads = model_limits.number(limits.answer.threads)
    bounds = [(limits.kernel[key], key) for key in (PID_MAX, THREADS_MAX) if limits.kernel.get(key)]
    missing = host.missing("limits") or unless(host, threads is not None and len(bounds) == 2)
    bound, key = min(bounds, default=(0, ""))
    hits = []
    if threads is not None and bound and threads >= model_limits.FULL * bound:
        hits.append(_crowded(host, document, threads, bound, key, limits.most("threads")))
    yield CheckResult(tuple(hits), missing, host=host.host)


def _crowded(
    host: Host,
    document: Mapping[str, Any],
    threads: int,
    bound: int,
    key: str,
    holders: tuple[Holder, ...],
) -> Detection:
    first, rank = None, 0
    # Containers see only their own processes: the host that sees the largest one is named.
    if holders:
        first, rank = holders[0], -holders[0].threads
    most_of_them, advice = "", f"see who has so many ({WHO_THREADS})"
    if first and 2 * first.threads > threads:
        most_of_them = f", {first.threads} of them of {first}"
        advice = f"find out why {first} has so many"
    proofs = [
        EvidenceRef("process", host.host, text=f"/proc/loadavg counts {threads} threads"),
        EvidenceRef("process", host.host, text=f"/proc/sys/{key.replace('.', '/')} is {bound}"),
    ]
    proofs += [
        _holder(host, holder, counted(holder.threads, "thread")) for holder in holders[:SHOWN]
    ]
    return Detection(
        f"{threads} threads run{most_of_them}, and {key} is {bound}:"
        " soon no process and no thread can be started",
        tuple(proofs),
        f"{advice}, and restart it where it leaks; podPidsLimit of the kubelet's configuration"
        f" bounds a pod{_higher(key, bound)}",
        host=host.host,
        node=host.node,
        component=key,
        kernel=shared_kernel.token(document, key, bound),
        rank=rank,
    )


def _higher(key: str, bound: int) -> str:
    """Return how the bound of threads is raised, for a remedy."""
    more = 2 * bound
    if key == PID_MAX:
        more = MORE_PIDS
    if more <= bound:
        return f"; {key} cannot be higher"
    return (
        f"; to raise it, sysctl -w {key}={more}, and a line {key} = {more} in a file of"
        " /etc/sysctl.d that nothing overrides: nothing here does either"
    )


def _holder(host: Host, holder: Holder, text: str) -> EvidenceRef:
    return EvidenceRef("process", host.host, pid=holder.pid, text=f"{holder}: {text}")


def unless(host: Host, is_known: bool, status: str = "error") -> tuple[Missing, ...]:
    """Return what is missing where collector limits answered without this part of its answer."""
    if is_known or host.statuses.get("limits") != "ok":
        return ()
    return (Missing(host.host, "limits", status),)


def uncounted(host: Host, limits: Limits) -> tuple[Missing, ...]:
    """Return what is missing where processes were read, but not all of them could be."""
    if host.statuses.get("descriptors", "not_asked") in ("not_asked", "absent"):
        return ()
    if host.statuses["descriptors"] == "ok" and limits.walked and not limits.uncounted:
        return ()
    status = "timeout"
    if limits.descriptors.denied:
        status = "denied"
    return host.missing("descriptors") or (Missing(host.host, "descriptors", status),)


def _of(limits: Limits, key: str) -> list[Shortage]:
    return [shortage for shortage in limits.shortages() if shortage.key == key]


def _untried(host: Host, limits: Limits, key: str) -> tuple[Missing, ...]:
    """Return what is missing where root could not try it.

    Whether the kubelet gets more is not known then.
    """
    trial, error = model_limits.INOTIFY[key][1:]
    uid = model_limits.number(limits.tried.uid)
    if uid:
        return unless(host, False, "denied")
    tried = getattr(limits.tried, trial) in (None, error)
    return unless(host, tried and uid == 0 and key in limits.kernel)


def _outcome(
    host: Host,
    document: Mapping[str, Any],
    limits: Limits,
    shortages: list[Shortage],
    missing: tuple[Missing, ...],
    **more: Any,
) -> CheckResult:
    hits = []
    if shortages:
        hits.append(_hit(host, document, limits, shortages))
    return CheckResult(tuple(hits), missing, host=host.host, **more)


def _hit(
    host: Host, document: Mapping[str, Any], limits: Limits, shortages: list[Shortage]
) -> Detection:
    """Return one hit for all users, because their limit is the same.

    Root's comes first, and it alone stops kubelet and runtime.
    """
    first = shortages[0]
    most_of_them, rank, state, severity = "", 0, "used up", None
    culprit = first.culprit
    leak = _leak(host, document, culprit)
    if culprit:
        most_of_them = f", most of them by {culprit} with {first.total_of(culprit)}"
    if leak:
        most_of_them += f": {LEAK}"
    if first.holders:
        rank = -first.usage_of(first.holders[0])
    if first.left:
        state = "nearly used up"
    if first.key != FILE_MAX and first.uid != 0:
        severity = "warning"
    return Detection(
        f"{first.key}={first.limit} is {state}{_users(shortages)}{most_of_them}",
        tuple(_proofs(host, document, limits, shortages)),
        _advice(first, culprit, leak),
        host=host.host,
        node=host.node,
        component=first.key,
        severity=severity,
        kernel=_kernel(document, limits, first),
        rank=rank,
    )


def _leak(host: Host, document: Mapping[str, Any], culprit: Program | None) -> str:
    """Return what ends the known leak of the program, where the node has that release, or ""."""
    containerd = dict(host.releases.of_node).get("containerd", "")
    number, fixed = release_number.parse(containerd), release_number.parse(LEAK_FIXED)
    if culprit is None or not culprit.largest.comm.startswith(SHIM):
        return ""
    if number is None or fixed is None or number >= fixed:
        return ""
    return LEAK_ADVICE if contract.answer(document, System).cgroup == "v2" else ""


def _users(shortages: list[Shortage]) -> str:
    """Return whose limits are used up, for a summary."""
    users = [
        model_limits.describe_user(shortage.uid)
        for shortage in shortages
        if shortage.key != FILE_MAX
    ]
    if not users:
        return ""
    if len(users) > SHOWN:
        return f" for {', '.join(users[:SHOWN])} and {len(users) - SHOWN} more"
    return f" for {', '.join(users)}"


def _kernel(
    document: Mapping[str, Any], limits: Limits, shortage: Shortage
) -> tuple[Any, ...] | None:
    """Return what every host of this kernel shares of a shortage.

    Inotify is counted per user of a user namespace, and shared only within that.
    """
    if shortage.key == FILE_MAX:
        return shared_kernel.token(document, shortage.key, shortage.limit)
    space = limits.answer.user_ns
    if not space:
        return None
    return shared_kernel.token(document, shortage.key, shortage.limit, shortage.uid, space)


def _holds(shortage: Shortage, program: Program) -> str:
    if shortage.key == FILE_MAX:
        return counted(shortage.total_of(program), "open descriptor")
    instances = sum(process.instances for process in program.processes)
    watches = sum(process.watches for process in program.processes)
    return f"{counted(instances, 'instance')}, {counted(watches, 'watch', 'watches')}"


def _proofs(
    host: Host, document: Mapping[str, Any], limits: Limits, shortages: list[Shortage]
) -> Iterator[EvidenceRef]:
    for shortage in shortages[:SHOWN]:
        yield EvidenceRef("process", host.host, text=shortage.shown)
        for program in shortage.programs()[:SHOWN]:
            text = f"{program}: {_holds(shortage, program)}"
            yield EvidenceRef("process", host.host, pid=program.largest.pid, text=text)
    key = shortages[0].key
    unseen = _unseen(host, limits)
    if key != FILE_MAX and unseen:
        yield EvidenceRef("process", host.host, text=unseen)
    lines = contract.answer(document, KubeletLog).lines
    errors = [line for line in lines if _is_about(line, SAYS[key])]
    yield from (EvidenceRef("log", host.host, text=line) for line in errors[-2:])


def _is_about(line: str, kind: str) -> bool:
    error = errno_message.about(line)
    return error is not None and error.kind == kind


def _unseen(host: Host, limits: Limits) -> str:
    """Return why it is not known which processes hold them, or not of all processes."""
    status = host.statuses.get("descriptors", "not_asked")
    if status in ("not_asked", "absent"):
        return (
            "who holds them was not looked at: the playbook too_many_open_files, or -e"
            " kubemend_deep=true, does"
        )
    if not limits.walked:
        if status == "ok":
            status = "no answer"
        return f"who holds them could not be looked at ({status})"
    if limits.uncounted:
        return (
            "not all processes could be looked at: others may hold more than those that are named"
        )
    return ""


def _advice(shortage: Shortage, culprit: Program | None, leak: str) -> str:
    target, variable = model_limits.TARGETS[shortage.key], model_limits.VARIABLES[shortage.key]
    if target > shortage.limit:
        raised = RAISE.format(shortage.key, target, variable)
    else:
        raised = (
            f"it is {shortage.limit} already, no less than what this collection raises it to: find"
            f" out who holds so many, or ask for more with -e {variable}=NUMBER"
        )
    if leak:
        return f"{leak}; raising the limit only buys time; {raised}"
    if culprit:
        named, largest = "", culprit.largest
        if largest.container.isalnum() and not largest.named:
            named = f" (crictl inspect {largest.container} names its pod)"
        return (
            f"find out why {culprit} holds so many{named}, and restart it when it leaks; raising"
            f" the limit only buys time; {raised}"
        )
    if shortage.key == FILE_MAX:
        return f"{raised}; to see who has so many open, as root: {WHO}"
    return raised


@node_check(
    "KM407",
    "Kernel settings that do not last",
    severity="warning",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def lasting(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM407: report a setting that a file overrides, a reboot resets, or that was never loaded."""
    limits = model_limits.read(document)
    unread: Sequence[str] = ()
    if host.statuses.get("limits") == "ok":
        unread = limits.unread_sysctl()
    hits = [
        _lasting_hit(host, document, limits, setting)
        for setting in persistent_sysctl.lasting(limits)
    ]
    # Of hosts that share one kernel it is enough that the files of one of them set its value.
    settled = []
    for key, running in limits.kernel.items():
        token = shared_kernel.token(document, shared_kernel.LASTING, key, running)
        if token and not unread and persistent_sysctl.says(limits, key, running):
            settled.append(token)
    watched = limits.kernel.keys() >= set(model_limits.WATCHED)
    missing = host.missing("limits") or unless(host, not unread and watched)
    note = ""
    if unread:
        note = f"{unread[0]} could not be read"
    yield CheckResult(tuple(hits), missing, host=host.host, note=note, settled=tuple(settled))


def _lasting_hit(
    host: Host, document: Mapping[str, Any], limits: Limits, setting: persistent_sysctl.Lasting
) -> Detection:
    proofs = [
        EvidenceRef("file", host.host, path=path, line=line, text=text)
        for path, line, text in setting.places
    ]
    if not proofs:
        text = f"/proc/sys/{setting.key.replace('.', '/')} is {setting.running}"
        proofs.append(EvidenceRef("process", host.host, text=text))
    return Detection(
        f"{setting.key}: {setting.why}",
        tuple(proofs),
        _lasts(limits, setting),
        host=host.host,
        node=host.node,
        component=setting.key,
        kernel=_lasting_kernel(document, setting),
    )


def _lasting_kernel(
    document: Mapping[str, Any], setting: persistent_sysctl.Lasting
) -> tuple[Any, ...] | None:
    """Return what hosts of one kernel share of a setting.

    It is the kernel's value, which no file sets or too low a one, or a value of files that the
    kernel does not have.
    """
    key, running, target = setting.key, setting.running, setting.wanted
    if setting.own:
        return None
    if target == running:
        return shared_kernel.token(document, shared_kernel.LASTING, key, running)
    return shared_kernel.token(document, shared_kernel.WISH, key, running, target)


def _lasts(limits: model_limits.Limits, setting: persistent_sysctl.Lasting) -> str:
    """Return how a setting becomes persistent.

    It is set in the plan's file, or in the line of another file that is read after that.
    """
    key, target = setting.key, setting.wanted
    later = persistent_sysctl.later(limits, key, target)
    advice = later.why or (
        f"the plan writes {key} = {target} to {persistent_sysctl.FILE}, which no other file"
        " overrides"
    )
    if later.edit:
        advice += ": the plan makes it, and a revert takes it back"
    if target <= setting.running:
        return advice
    if not later.blocked:
        advice += ", and sets it in the running kernel"
    return f"{advice} (by hand, until the next boot: sysctl -w {key}={target})"
