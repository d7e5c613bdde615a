# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps for a process at its limit of open files.

A service gets the limit of its unit by a managed drop-in, and a login by a file of limits.d.

A kubelet sets its own limit (maxOpenFiles). A container has the limit that its runtime gives it.
Another process in a kubelet's unit would not be helped without a limit for the kubelet. For those
the finding says what to do. A restart gives a service at once what the kernel lets no process set
for another. It is planned only where that is so, and where the service's operator allowed it by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared import service_restart_rules
from ....module_utils.shared.consent import KUBELET_RESTART, SERVICE_RESTART
from ....module_utils.shared.step_kinds import UNIT_LIMIT
from ....module_utils.shared.unit_limits import DROPINS, OURS, UNIT
from ....module_utils.shared.units import KUBELET_UNITS, RUNTIMES
from ...evidence import contract
from ...evidence.answers.node.devices import Devices
from ...evidence.answers.systemd_unit import LimitedUnit
from ...evidence.document import one_line
from ...models import limits as model_limits
from ...models.limits import NOFILE, UNLIMITED, Holder, Limits
from ..plan import RemedyContext, Step, all_of, label, left_out
from . import login_limits

# of a file; of a restart; of one of a runtime, or beside pods that may lose their devices by the
# reload
RISK, RESTARTS, RUNTIME = 1, 2, 3
USER = "user@"  # how the unit of a user's own manager begins
PAM_USER = "/etc/pam.d/systemd-user"  # whose session that manager has
NEXT = (
    "nothing is restarted and systemd is not reloaded: the file counts from the next start of"
    " the unit"
    " after systemctl daemon-reload (a reboot is both), which may take their devices away from"
    " running containers"
)
ONCE = (
    "systemd reads its units again and restarts {name}, which ends what it does for its users in"
    " that moment{kept}; one that does not come up with its limit gets its file as it was and is"
    " started with that"
)
SELECT = 1024  # as many as select() can wait for
WITHOUT = ("runtime", "sshd")  # roles of programs that do not use it
# where the file of a unit lies that is there again after a boot
LASTING = ("/etc/", "/usr/", "/lib/", "/run/systemd/generator")
MORE = f"ask for more with -e {model_limits.VARIABLES[NOFILE]}=NUMBER"


def steps(scene: RemedyContext, fenced: str | None) -> Sequence[Step]:
    """KM404: plan a step for each service and one for logins.

    If some of them may be done, the others become a note of those.
    """
    limits = model_limits.read(scene.document)
    target = int(scene.consent.limits.get(NOFILE, login_limits.TARGETS[NOFILE]))
    full = limits.full()
    services = [
        _Service(scene, limits, name, holders, target).step(fenced)
        for name, holders in sorted(_by_unit(full).items())
    ]
    # A host that is to have the whole profile gets the limits of logins by a wish of its own.
    logins = None
    if scene.finding.host not in scene.consent.profile:
        logins = _of_logins(scene, limits, full, target, fenced)
    planned = [step for step in [*services, logins] if step]
    able = [step for step in planned if not step.blocked_by]
    return _combined(planned, able, full) if able else planned


def _combined(planned: Sequence[Step], able: Sequence[Step], full: Sequence[Holder]) -> list[Step]:
    """Return the steps that may be done, each with what the other ones leave at its limit."""
    raised = {pid for step in able for pid in _raised(step, full)}
    # What is still at its limit afterwards is no failure of a step that counts from the next start.
    expect = {"component": None, "later": any(holder.pid not in raised for holder in full)}
    note = "; ".join(_excluded_sentence(step) for step in planned if step.blocked_by)
    return [
        replace(step, expect=expect, note="; ".join(filter(None, [step.note, note])))
        for step in able
    ]


def _by_unit(full: Sequence[Holder]) -> dict[str, list[Holder]]:
    """Return the processes at their limit by their unit, as far as a drop-in of it may be made."""
    by_unit: dict[str, list[Holder]] = {}
    for holder in full:
        if holder.role != "kubelet" and _is_writable(holder.unit):
            by_unit.setdefault(holder.unit, []).append(holder)
    return by_unit


def _is_writable(unit: str) -> bool:
    return bool(UNIT.match(unit)) and unit not in KUBELET_UNITS and not unit.startswith(USER)


def _raised(step: Step, full: Sequence[Holder]) -> list[int]:
    """Return the processes that are not at their limit after the step."""
    change = step.change or {}
    processes = change.get("processes") or ()
    if "restart" in change:
        return [process["pid"] for process in processes]
    opened = {holder.pid: holder.open for holder in full}
    return [
        process["pid"]
        for process in processes
        if process["soft"] is not None
        and process["pid"] in opened
        and opened[process["pid"]] < model_limits.FULL * process["soft"]
    ]


def _excluded_sentence(step: Step) -> str:
    subject = (step.change or {}).get("unit", "logins")
    return f"nothing is done for {subject}: {step.blocked_by}"


class _Service:
    """A service with processes at their limit of open files, and what it can get."""

    def __init__(
        self,
        scene: RemedyContext,
        limits: Limits,
        name: str,
        holders: Sequence[Holder],
        target: int,
    ) -> None:
        self.scene = scene
        self.limits = limits
        self.name = name
        self.holders = holders
        self.target = target
        self.unit = limits.units().get(name, LimitedUnit())
        self.running = [
            _running(limits, holder, target) for holder in holders if holder.ticks is not None
        ]

    def step(self, fenced: str | None) -> Step | None:
        """Return its step, or what blocks it; None where nothing but a restart is left to do."""
        limit = model_limits.pair(self.unit.limit_nofile)
        refused = _refused(self.name, self.holders, limit, self.limits.ceiling(), self.target)
        if refused or limit is None:
            return _step(self.scene, self.name, None, [], refused)
        line = _line(limit, self.target)
        is_transient = bool(line) and not self._is_persistent()
        if is_transient or line == self.unit.ours:
            line = None  # The file has it already, and systemd has not read it yet.
        diff = self._file_diff(line)
        if self._may_restart() and not is_transient:
            blocked = fenced or _later(self.unit, self.name)
            step = _step(self.scene, self.name, line, self.running, blocked, diff)
            return _restarted(self.scene, self.name, self.holders, self.target, step)
        return self._without_restart(fenced, line, diff, is_transient)

    def _is_persistent(self) -> bool:
        return (self.unit.fragment_path or "").startswith(LASTING)

    def _file_diff(self, line: str | None) -> str:
        if not line:
            return ""
        path = _path(self.name)
        return f"--- {path}\n+++ {path}\n+[Service]\n+LimitNOFILE={line}\n"

    def _may_restart(self) -> bool:
        """Return whether a restart is allowed, and gives what running processes cannot get.

        The role that brings a host to the whole profile restarts nothing, whatever is allowed.
        """
        consent = self.scene.consent
        if SERVICE_RESTART not in consent.allow or self.scene.finding.host in consent.profile:
            return False
        is_short = any((process["soft"] or 0) < self.target for process in self.running)
        return bool(self.running) and (is_short or self._has_unknown())

    def _has_unknown(self) -> bool:
        """Return whether it is not known when some of its processes started."""
        return len(self.running) < len(self.holders)

    def _without_restart(
        self, fenced: str | None, line: str | None, diff: str, is_transient: bool
    ) -> Step | None:
        able = [
            (holder, process) for holder, process in self._pairs() if process["soft"] is not None
        ]
        if self.running and not line and not able:
            return None
        diff += "".join(
            f"process {holder.pid} ({holder.comm}): {_change(holder, process)}\n"
            for holder, process in able
        )
        processes = list(self.running)
        main, first = self._main_process()
        if main and first["soft"] is not None:
            processes.append(first)
            diff += (
                f"process {main.pid} ({main.comm}), from which others inherit it:"
                f" {_change(main, first)}\n"
            )
        notes = [
            *self._notes(line, processes, main, first),
            self._transient_note() if is_transient else "",
            _select(self.holders),
        ]
        note = "; ".join(filter(None, notes))
        return _step(
            self.scene, self.name, line, processes, self._blocked(fenced, line), diff, note
        )

    def _notes(
        self,
        line: str | None,
        processes: Sequence[Mapping[str, Any]],
        main: Holder | None,
        first: Mapping[str, Any],
    ) -> list[str]:
        """Return what has the limit from when on.

        main, first: the unit's first process where it has less, and what it gets.
        """
        notes = [NEXT if line else "", *self._kept_notes()]
        has_select = any(process.get("select") for process in processes)
        if has_select:
            notes.append(
                f"a running process that may have at most {SELECT} may use select(), and keeps its"
                " limit until then"
            )
        if main and first["soft"] is None:
            notes.append(f"what its first process {main.pid} starts has {main.soft} until then")
        if line and (has_select or self._keeps_limit()):
            notes.append(_sooner(self.name, self.holders))
        return notes

    def _transient_note(self) -> str:
        return f"{self.name} is a transient unit, and gets no file: only what runs now is changed"

    def _pairs(self) -> list[tuple[Holder, dict[str, Any]]]:
        """Return each process at its limit with what it gets."""
        pairs = [(holder, process) for holder in self.holders for process in self.running]
        return [(holder, process) for holder, process in pairs if holder.pid == process["pid"]]

    def _keeps_limit(self) -> bool:
        """Return whether the kernel does not let a running process have more."""
        if self._has_unknown():
            return True
        return any(
            process["soft"] is None and not process.get("select") for process in self.running
        )

    def _kept_notes(self) -> list[str]:
        if not self._keeps_limit():
            return []
        return [
            "a running process whose limit the kernel does not let us raise keeps it until then"
        ]

    def _main_process(self) -> tuple[Holder | None, dict[str, Any]]:
        """Return the unit's first process and what it gets, where it has less than the target."""
        main = _main(self.unit, self.name)
        if main is None or main.soft >= self.target:
            return None, {}
        return main, _running(self.limits, main, self.target)

    def _blocked(self, fenced: str | None, line: str | None) -> str | None:
        if fenced:
            return fenced
        later = _later(self.unit, self.name) if line else None
        if later or self.running:
            return later
        return "when its processes were started is not known"


def _change(holder: Holder, process: Mapping[str, Any]) -> str:
    return f"{holder.soft} (hard {holder.hard}) -> {process['soft']} (hard {process['hard']})"


def _refused(
    name: str,
    holders: Sequence[Holder],
    limit: tuple[int, int] | None,
    ceiling: tuple[int, str] | None,
    target: int,
) -> str | None:
    """Return why nothing can be done for this service, whatever is allowed, or None."""
    if limit is None:
        return f"what systemd gives {name} could not be read"
    if ceiling is None:
        return "how many files a process may have open at most could not be read"
    if all(holder.soft >= target for holder in holders):
        return (
            f"{name} has {holders[0].soft} already, which are used up: see what it has open, or"
            f" {MORE}"
        )
    most, owner = ceiling
    if target <= most:
        return None
    return (
        f"LimitNOFILE={target} is above {most} ({owner}), and {name} would not start with it: ask"
        f" for less with -e {model_limits.VARIABLES[NOFILE]}=NUMBER"
    )


def _restarted(
    scene: RemedyContext, name: str, holders: Sequence[Holder], target: int, step: Step
) -> Step:
    """Return the step with a restart in it, where its operator allows that."""
    pids = ", ".join(
        f"process {holder.pid} ({holder.comm}) has {holder.soft}" for holder in holders[:3]
    )
    notes = [ONCE.format(name=name, kept=_price(name, holders)), _select(holders)]
    never = service_restart_rules.never_reason(name)
    blocked_by = step.blocked_by
    if never and not blocked_by:
        blocked_by = service_restart_rules.refusal(name, step.host, never)
    return replace(
        step,
        risk=RUNTIME if _is_risky(scene, name, holders) else RESTARTS,
        blocked_by=blocked_by,
        diff=f"{step.diff}systemctl daemon-reload; systemctl restart {name}: {pids} -> {target}\n",
        limit=service_restart_rules.SECONDS,
        note="; ".join(filter(None, notes)),
        guard={"allow": sorted(scene.consent.allow)},
        change={**(step.change or {}), "restart": target},
    )


def _is_risky(scene: RemedyContext, name: str, holders: Sequence[Holder]) -> bool:
    """Return whether containers, or their devices, could be lost by the restart.

    Containers with devices may lose them when systemd reads its units again; where it is not known
    whether any run, the node asks once more.
    """
    with_devices = contract.answer(scene.document, Devices).running
    if with_devices or _is_runtime(name, holders):
        return True
    return with_devices is None and KUBELET_RESTART in scene.consent.allow


def _select(holders: Sequence[Holder]) -> str:
    if any(holder.soft <= SELECT for holder in holders):
        return f"a program that uses select() breaks beyond {SELECT} files"
    return ""


def _is_runtime(name: str, holders: Sequence[Holder]) -> bool:
    return name in RUNTIMES or any(holder.role == "runtime" for holder in holders)


def _price(name: str, holders: Sequence[Holder]) -> str:
    if not _is_runtime(name, holders):
        return ""
    if name == service_restart_rules.DOCKER:
        return ", and of docker containers without live-restore (refused then)"
    return ", and leaves containers running"


def _sooner(name: str, holders: Sequence[Holder]) -> str:
    """Return how running processes get the limit at once, and at what price."""
    if service_restart_rules.never_reason(name):
        return ""
    risk = RUNTIME if _is_runtime(name, holders) else RESTARTS
    return (
        f"a restart would give it at once ({SERVICE_RESTART}, which ends what {name} does in"
        f" that moment{_price(name, holders)}): -e kubemend_allow={SERVICE_RESTART} -e"
        f" kubemend_max_risk={risk}"
    )


def _main(unit: LimitedUnit, name: str) -> Holder | None:
    """Return the unit's first process, where it is none of those at their limit.

    It must get the new limit too: the next worker that it starts has its limit.
    """
    main = unit.main
    if main is None:
        return None
    pid, ticks = model_limits.number(main.pid), model_limits.number(main.ticks)
    limit = model_limits.pair(main.nofile)
    if not pid or ticks is None or limit is None:
        return None
    return Holder(
        pid,
        one_line(main.comm or "?", 64),
        0,
        name,
        soft=limit[0],
        hard=limit[1],
        unit=name,
        ticks=ticks,
    )


def _line(limit: tuple[int, int], target: int) -> str | None:
    """Return what the drop-in has to say, None where the unit gives as much.

    A unit whose limits differ is of a systemd that distinguishes them.
    """
    soft, hard = limit
    if soft == UNLIMITED or soft >= target:
        return None
    if hard == UNLIMITED:
        return f"{target}:infinity"
    return f"{target}:{hard}" if hard > target else str(target)


def _running(limits: Limits, holder: Holder, target: int) -> dict[str, Any]:
    """Return what a running process gets.

    Without CAP_SYS_RESOURCE no more than its hard limit, None where that is nothing. select: nor
    more than select() can wait for, where the program may use it.
    """
    init = limits.answer.init
    is_able = init is not None and init.cap_sys_resource is True
    hard = holder.hard
    if hard != UNLIMITED and is_able:
        hard = max(hard, target)
    soft = target if hard == UNLIMITED else min(target, hard)
    select = holder.role not in WITHOUT and holder.soft <= SELECT < soft
    process: dict[str, Any] = {"pid": holder.pid, "ticks": holder.ticks, "soft": None, "hard": None}
    if soft > holder.soft and not select:
        process.update(soft=soft, hard=hard)
    if select:
        process["select"] = True
    return process


def _later(unit: LimitedUnit, name: str) -> str | None:
    """Return which drop-in is read after the managed one and decides, or None."""
    for setting in unit.sets:
        folder, _slash, file = setting.path.rpartition("/")
        if folder.endswith(".d") and file > OURS and setting.text.startswith("LimitNOFILE="):
            return (
                f"{setting.path}:{setting.line} is read after {_path(name)} and says"
                f" {setting.text}: raise it there, or take the line away"
            )
    return None


def _path(name: str) -> str:
    return f"{DROPINS}/{name}.d/{OURS}"


def _step(  # noqa: PLR0913, PLR0917 - the parts of one step
    scene: RemedyContext,
    name: str,
    line: str | None,
    processes: Sequence[Mapping[str, Any]],
    blocked: str | None,
    diff: str = "",
    note: str = "",
) -> Step:
    finding = scene.finding
    host = finding.host or ""
    return Step(
        label(host, UNIT_LIMIT.replace("_", "-"), name),
        host,
        finding.code,
        UNIT_LIMIT,
        RISK,
        _path(name),
        None,
        finding.node,
        blocked_by=all_of(left_out(scene, host), blocked),
        note=note,
        diff=diff,
        limit=60,
        expect={"component": None},
        change={
            "kind": UNIT_LIMIT,
            "path": _path(name),
            "unit": name,
            "line": line,
            "processes": list(processes),
        },
    )


def _of_logins(
    scene: RemedyContext, limits: Limits, full: Sequence[Holder], target: int, fenced: str | None
) -> Step | None:
    """Return a step that raises the hard limit of logins whose sessions are at theirs.

    The result is None where a session can raise its own limit (ulimit -Sn), or where logins have
    the limit from the next one on.
    """
    by_user_manager = _limits_user_managers(limits)
    holders = [
        holder
        for holder in full
        if _is_of_login(holder, by_user_manager) and holder.hard != UNLIMITED
    ]
    domains = sorted(
        {"root" if holder.uid == 0 else "*" for holder in holders if holder.hard < target}
    )
    step = login_limits.profile(scene, NOFILE, fenced, domains) if domains else None
    if step is None:
        return None
    notes = [step.note]
    other_domains = _other_domains(limits)
    if other_domains and "*" in domains:
        first = ", ".join(other_domains[:3])
        notes.append(f"a line of a user or a group counts before it, as that of {first}")
    return replace(step, component=None, note="; ".join(filter(None, notes)))


def _limits_user_managers(limits: Limits) -> bool:
    """Return whether the session of a user's own manager asks for pam_limits."""
    return any(line.path == PAM_USER for line in limits.answer.pam or ())


def _is_of_login(holder: Holder, by_user_manager: bool) -> bool:
    """Return whether pam_limits gave the process its limit."""
    if not holder.session or holder.container:
        return False
    return by_user_manager or not holder.session.startswith(USER)


def _other_domains(limits: Limits) -> list[str]:
    """Return users and groups that have lines of their own."""
    entries = [entry for entry in limits.entries() if entry.item == NOFILE]
    return sorted(
        {
            one_line(entry.domain, 40)
            for entry in entries
            if entry.domain not in login_limits.EVERYBODY
        }
    )
