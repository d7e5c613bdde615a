# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's limits are, which processes reach them, and what its files set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..evidence import contract, memoize
from ..evidence.answers import process_holder
from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.node import limits as node_limits
from ..evidence.answers.node.descriptors import Descriptors
from ..evidence.answers.systemd_unit import LimitedProcess, LimitedUnit
from ..evidence.document import one_line
from ..parsers import limits_conf, sysctl_d, sysctl_overrides
from ..parsers.sysctl_d import Setting

INSTANCES, WATCHES, EVENTS = (
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.inotify.max_queued_events",
)
FILE_MAX, NR_OPEN, PID_MAX, THREADS_MAX = (
    "fs.file-max",
    "fs.nr_open",
    "kernel.pid_max",
    "kernel.threads-max",
)
# What is raised to, where nothing else was asked for; watches as kind and kubespray have them.
TARGETS = {FILE_MAX: 2097152, INSTANCES: 8192, WATCHES: 524288, EVENTS: 16384}
NOFILE, NPROC = "nofile", "nproc"  # of logins, as limits.conf names them
# The variables that ask for another value.
VARIABLES = {
    NOFILE: "kubemend_nofile",
    NPROC: "kubemend_nproc",
    FILE_MAX: "kubemend_file_max",
    INSTANCES: "kubemend_inotify_instances",
    WATCHES: "kubemend_inotify_watches",
    EVENTS: "kubemend_inotify_queued_events",
}
WATCHED = (*TARGETS, PID_MAX)
FULL = 0.95  # of a limit: the rest is used up before an operator reads the report
UNLIMITED = -1


@dataclass(frozen=True)
class Holder:
    """A process, and what it holds.

    Attributes:
        where: The unit, or the container and its pod.
        instances: Instances of inotify.
        watches: Watches of inotify.
        open: Open descriptors; soft and hard are their limits.
        named: Whether the name of its pod is known.
    """

    pid: int
    comm: str
    uid: int
    where: str
    role: str = ""
    instances: int = 0
    watches: int = 0
    open: int = 0
    soft: int = 0
    hard: int = 0
    unit: str = ""
    container: str = ""
    named: bool = False
    session: str = ""
    ticks: int | None = None
    threads: int = 0

    def __str__(self) -> str:
        if self.where:
            return f"{self.comm} ({self.where})"
        return self.comm


@dataclass(frozen=True)
class Program:
    """The processes of one name within one unit or container, the largest one first."""

    processes: tuple[Holder, ...]

    @property
    def largest(self) -> Holder:
        """Return the process that holds the most."""
        return self.processes[0]

    def __str__(self) -> str:
        if len(self.processes) == 1:
            return str(self.largest)
        return f"{len(self.processes)} processes of {self.largest}"


@dataclass(frozen=True)
class Shortage:
    """A limit that is reached.

    Attributes:
        uid: The user whose limit it is; None for a limit of the host.
        shown: The sentence that shows it.
        holders: The processes that hold the most.
        left: How many could still be opened.
    """

    key: str
    limit: int
    uid: int | None
    shown: str
    holders: tuple[Holder, ...] = ()
    left: int = 0

    @property
    def culprit(self) -> Program | None:
        """The one program that holds more than half of the limit."""
        program = next(iter(self.programs()), None)
        if program is not None and 2 * self.total_of(program) > self.limit:
            return program
        return None

    def programs(self) -> list[Program]:
        """Return the programs whose processes hold something, the largest one first."""
        groups: dict[tuple[str, str], list[Holder]] = {}
        for holder in self.holders:
            groups.setdefault((holder.comm, holder.where), []).append(holder)
        programs = [Program(tuple(group)) for group in groups.values()]
        return sorted(programs, key=lambda row: (-self.total_of(row), row.largest.pid))

    def total_of(self, program: Program) -> int:
        """Return how much of the limit the processes of a program hold."""
        return sum(map(self.usage_of, program.processes))

    def usage_of(self, holder: Holder) -> int:
        """Return how much of the limit a process holds."""
        if self.key == FILE_MAX:
            return holder.open
        if self.key == WATCHES:
            return holder.watches
        return holder.instances


def number(value: int | None) -> int | None:
    """Return an integer of 64 bits, as the kernel prints it, or -1; else None."""
    if value is None or not -1 <= value < 1 << 64:
        return None
    return value


def pair(limits: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the soft and the hard limit, of 64 bits each; -1 is unlimited."""
    if limits is None or None in map(number, limits):
        return None
    return limits


@dataclass(frozen=True)
class Limits:
    """One node's evidence about limits.

    Attributes:
        answer: The answer of the collector `limits`.
        descriptors: The answer of the collector `descriptors`.
        walked: Whether that collector answered.
        cut: Whether there were more files than the collector reads.
    """

    answer: node_limits.Limits
    descriptors: Descriptors
    walked: bool
    cut: bool

    @property
    def records(self) -> tuple[FileRecord, ...]:
        """The files of sysctl.d."""
        return self.answer.sysctl_files or ()

    @property
    def login_records(self) -> tuple[FileRecord, ...]:
        """The files of limits.d."""
        return self.answer.limits_files or ()

    @cached_property
    def kernel(self) -> dict[str, int]:
        """The running values that are whole numbers."""
        texts = self.answer.kernel or {}
        numbers = {key: sysctl_d.number(text) for key, text in texts.items()}
        return {key: value for key, value in numbers.items() if value is not None and value >= 0}

    @property
    def tried(self) -> node_limits.InotifyTrial:
        """What became of the try to open another instance and watch."""
        return self.answer.inotify or node_limits.InotifyTrial()

    @property
    def uncounted(self) -> bool:
        """Return whether the walk excluded processes: no time, or no right to read them."""
        walk = self.descriptors
        return self.walked and (walk.complete is not True or walk.denied != 0)

    @memoize.last
    def at_boot(self) -> dict[str, Setting]:
        """Return what a boot sets of the watched keys: systemd-sysctl, and what overrides it."""
        return self.booted((*TARGETS, NR_OPEN, PID_MAX))

    def booted(self, keys: tuple[str, ...]) -> dict[str, Setting]:
        """Return what a boot sets of these keys."""
        boots = sysctl_d.at_boot(self.records, keys)
        return sysctl_overrides.at_boot(self.answer.late, boots, keys)

    @memoize.last
    def by_hand(self) -> dict[str, Setting]:
        """Return what `sysctl --system` would set."""
        return sysctl_d.by_hand(self.records, (*TARGETS, NR_OPEN, PID_MAX))

    @memoize.last
    def unread_sysctl(self) -> list[str]:
        """Return where there may be settings that could not be read."""
        unread = [path for path, _reason in sysctl_d.unreadable(self.records)]
        unread += sysctl_overrides.unread(self.answer.late)
        return unread + self._unlisted("sysctl_files", self.answer.sysctl_files, sysctl_d.FOLDERS)

    @memoize.last
    def unread_limits(self) -> list[str]:
        """Return where there may be limits of logins that could not be read."""
        unread = [path for path, _reason in limits_conf.unreadable(self.login_records)]
        return unread + self._unlisted(
            "limits_files", self.answer.limits_files, (limits_conf.FOLDER,)
        )

    def _unlisted(
        self, name: str, files: tuple[FileRecord, ...] | None, folders: Sequence[str]
    ) -> list[str]:
        """Return the directories that could not be listed."""
        if files is None:
            return [name]
        unlisted = [
            file.path
            for file in files
            if file.path in folders and file.error not in (None, "missing")
        ]
        if self.cut:
            unlisted.append("what is behind the first hundred files")
        return unlisted

    def entries(self) -> list[limits_conf.Entry]:
        """Return the lines of limits.conf."""
        return limits_conf.entries(self.login_records)

    @memoize.last
    def hard_limits(self) -> list[limits_conf.Entry]:
        """Return the hard limits of open files, by the files of limits.conf and limits.d.

        For each user, group or range the last line counts; an exempt one has no limit. pam_limits
        lowers a soft limit above the hard one to the hard one, so that it refuses nothing and gives
        nothing.
        """
        entries = self.entries()
        exempt = {entry.domain for entry in entries if not entry.item}
        last = {
            entry.domain: entry
            for entry in entries
            if entry.item == "nofile" and entry.kind in ("hard", "-")
        }
        return [
            entry
            for entry in last.values()
            if entry.number is not None and entry.domain not in exempt
        ]

    def impossible(self) -> list[limits_conf.Entry]:
        """Return the hard limits above what a process can have, as far as that is known."""
        ceiling = self.ceiling()
        if ceiling is None:
            return []
        return [
            entry
            for entry in self.hard_limits()
            if entry.number == UNLIMITED or (entry.number or 0) > ceiling[0]
        ]

    def ceiling(self) -> tuple[int, str] | None:
        """Return the highest possible hard limit of open files, and what bounds it, or None.

        Without CAP_SYS_RESOURCE, PID 1 cannot give more than it has; fs.nr_open bounds all.
        """
        init = self.answer.init
        if init is None or init.cap_sys_resource is None:
            return None
        bounds = []
        if NR_OPEN in self.kernel:
            bounds.append((self.kernel[NR_OPEN], NR_OPEN))
        if not init.cap_sys_resource:
            if init.nofile is None:
                return None
            if init.nofile[1] != UNLIMITED:
                bounds.append(
                    (init.nofile[1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE")
                )
        return min(bounds, default=None)

    @memoize.last
    def processes(self) -> tuple[Holder, ...]:
        """Return kubelet, runtimes and sshd, then the processes near their own limit."""
        holders: dict[int, Holder] = {}
        for process in self.answer.processes or ():
            _enter(holders, _component(process))
        for holder in self.descriptors.nofile:
            _enter(holders, _near_limit(holder))
        return tuple(holders.values())

    def full(self) -> list[Holder]:
        """Return the processes that have as many files open as they may."""
        return [
            process
            for process in self.processes()
            if process.soft > 0 and process.open >= FULL * process.soft
        ]

    def units(self) -> dict[str, LimitedUnit]:
        """Return systemd's units by name: of kubelet, runtimes, sshd and of those near a limit."""
        units = (*(self.descriptors.units or ()), *(self.answer.units or ()))
        return {unit.name: unit for unit in units if unit.name}

    @memoize.last
    def shortages(self) -> list[Shortage]:
        """Return what is reached, verified by trying or by counting; root's first."""
        rows: list[Shortage] = []
        for key in (INSTANCES, WATCHES):
            rows += sorted(self._of_inotify(key), key=lambda short: short.uid != 0)
        used = self.answer.file_nr
        if used and used[1] > 0 and used[0] >= FULL * used[1]:
            shown = f"{used[0]} file handles of {used[1]} are in use"
            rows.append(Shortage(FILE_MAX, used[1], None, shown, self.most("open")))
        return rows

    def in_use(self, key: str) -> tuple[int | None, str]:
        """Return the most that a user has of it now, and which user.

        The number is None where not everything was counted.
        """
        if key == FILE_MAX:
            if self.answer.file_nr is None:
                return None, ""
            return self.answer.file_nr[0], ""
        shares = [(getattr(user, INOTIFY[key][0]), user.uid) for user in self.descriptors.uids]
        if not shares or self.uncounted or any(count is None for count, _uid in shares):
            return None, ""
        count, uid = max(shares, key=lambda share: share[0])
        return count, f" by {describe_user(uid)}"

    def _of_inotify(self, key: str) -> Iterator[Shortage]:
        counted = INOTIFY[key][0]
        limit = self.kernel.get(key)
        if limit is None:
            return
        tried = self.tried
        yield from self._refused(key, limit, tried)
        for user in self.descriptors.uids:
            count = getattr(user, counted)
            if None in (user.uid, count) or user.uid == tried.uid:
                continue
            if 0 < limit <= count:
                shown = (
                    f"processes of {describe_user(user.uid)} hold {count} inotify {counted}; what a"
                    " process inherited counts for each of them"
                )
                yield Shortage(key, limit, user.uid, shown, self._holders(counted, user.uid))

    def _refused(self, key: str, limit: int, tried: node_limits.InotifyTrial) -> Iterator[Shortage]:
        """Return the shortage that the collector met itself."""
        counted, trial, error = INOTIFY[key]
        if getattr(tried, trial) != error:
            return
        opened = 0
        if trial == "instance":
            opened = tried.opened or 0
        shown = f"another inotify {trial} could not be made by {describe_user(tried.uid)} ({error})"
        if opened:
            shown += f" after {opened} that were left: a kubelet that starts needs more"
        yield Shortage(key, limit, tried.uid, shown, self._holders(counted, tried.uid), opened)

    def most(self, counted: str) -> tuple[Holder, ...]:
        """Return the processes with the most open files, or threads."""
        rows = [(getattr(row, counted) or 0, row) for row in getattr(self.descriptors, counted)]
        holders = [
            replace(process, open=row.open or 0, threads=row.threads or 0)
            for count, row in rows
            if count > 0 and (process := holder(row))
        ]
        return tuple(sorted(holders, key=lambda process: (-getattr(process, counted), process.pid)))

    def _holders(self, counted: str, uid: int | None) -> tuple[Holder, ...]:
        """Return a user's processes with inotify instances or watches, or those of all users."""
        rows = [row for row in self.descriptors.inotify if (getattr(row, counted) or 0) > 0]
        holders = [
            replace(process, instances=row.instances or 0, watches=row.watches or 0)
            for row in rows
            if (process := holder(row)) and uid in (None, process.uid)
        ]
        return tuple(sorted(holders, key=lambda process: (-getattr(process, counted), process.pid)))


# Of each: what the walk counts, what was tried, and what the kernel says when there are no more.
INOTIFY = {INSTANCES: ("instances", "instance", "EMFILE"), WATCHES: ("watches", "watch", "ENOSPC")}


def _enter(holders: dict[int, Holder], process: Holder | None) -> None:
    if process is not None:
        holders.setdefault(process.pid, process)


def _component(process: LimitedProcess) -> Holder | None:
    """Return the main process of a unit, where its limit is known."""
    if process.pid is None or process.nofile is None or process.open is None:
        return None
    unit = one_line(process.unit or "", 80)
    return Holder(
        process.pid,
        one_line(process.comm or "?", 40),
        _user(process.uid),
        unit,
        role=one_line(process.role, 40),
        open=process.open,
        soft=process.nofile[0],
        hard=process.nofile[1],
        unit=unit,
        ticks=process.ticks,
    )


def _near_limit(process: process_holder.Holder) -> Holder | None:
    """Return a process near its own limit."""
    limited = holder(process)
    if limited is None or process.open is None:
        return None
    if process.soft is None or process.hard is None:
        return None
    return replace(
        limited,
        open=process.open,
        soft=process.soft,
        hard=process.hard,
        ticks=process.ticks,
        session=one_line(process.session or "", 80),
    )


def describe_user(uid: int | None) -> str:
    """Return a user as messages name it."""
    if uid is None:
        return "a user that is not known"
    if uid == 0:
        return "root"
    return f"uid {uid}"


def holder(process: process_holder.Holder) -> Holder | None:
    """Return a process with its pod or unit; None without a number."""
    if process.pid is None:
        return None
    container = one_line(process.container_id or "", 80)[:12]
    unit = one_line(process.unit or "", 80)
    place = unit
    if process.pod_uid:
        place = _pod(process, container)
    return Holder(
        process.pid,
        one_line(process.comm or "?", 40),
        _user(process.uid),
        place,
        unit=unit,
        container=container,
        named=bool(process.pod),
    )


def _user(uid: int | None) -> int:
    return uid if uid is not None else -1


def _pod(process: process_holder.Holder, container: str) -> str:
    """Return a container and its pod by their names, or by their ids."""
    pod = one_line(process.pod or "", 320) or one_line(process.pod_uid or "", 80)
    if not container:
        return f"pod {pod}"
    name = one_line(process.container or "", 80) or container
    return f"pod {pod}, container {name}"


@memoize.last
def read(document: Mapping[str, Any]) -> Limits:
    """Return the evidence of a host; fields are empty where a collector did not answer."""
    descriptors = contract.optional_answer(document, Descriptors)
    return Limits(
        contract.answer(document, node_limits.Limits),
        descriptors or Descriptors(),
        descriptors is not None,
        bool(contract.record(document, "limits").get("truncated")),
    )
