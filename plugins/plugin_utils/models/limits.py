# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's limits are, who is at them, and what its files say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..evidence import memoize as remember
from ..evidence.document import one_line
from ..parsers import limits_conf
from ..parsers import sysctl_d as sysctl_files
from ..parsers import sysctl_overrides as sysctl_late
from ..parsers.sysctl_d import Setting
from . import control_plane

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
FULL = 0.95  # of a limit: what is left is gone before anybody has read this
UNLIMITED = -1


@dataclass(frozen=True)
class Holder:
    """A process, by what it holds. instances and watches of inotify.

    Open descriptors and their soft and hard limit. unit, or container of a pod.
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
    named: bool = False  # whether its pod is told by name
    session: str = ""
    ticks: int | None = None
    threads: int = 0

    def __str__(self) -> str:
        return f"{self.comm} ({self.where})" if self.where else self.comm


@dataclass(frozen=True)
class Shortage:
    """A limit that is reached: its key, its value, whose it is (None.

    Everybody's), what shows it, who holds the most, and how many were left.
    """

    key: str
    limit: int
    uid: int | None
    shown: str
    holders: tuple[Holder, ...] = ()
    left: int = 0

    @property
    def culprit(self) -> Holder | None:
        """The one process that holds more than half of the limit."""
        first = self.holders[0] if self.holders else None
        return first if first and 2 * self.held(first) > self.limit else None

    def held(self, one: Holder) -> int:
        return (
            one.open
            if self.key == FILE_MAX
            else one.watches
            if self.key == WATCHES
            else one.instances
        )


def number(value: Any) -> int | None:
    """A whole number that a node may have said, of 64 bits as all that the kernel says, or -1.

    Else None.
    """
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and -1 <= value < 1 << 64
        else None
    )


def pair(value: Any) -> tuple[int, int] | None:
    """(soft, hard) of a limit; -1 is unlimited."""
    if (
        not isinstance(value, (list, tuple))
        or len(value) != 2
        or any(number(one) is None for one in value)
    ):
        return None
    return value[0], value[1]


def items(value: Any) -> list[Mapping[str, Any]]:
    """Those of a list that are mappings."""
    return (
        [one for one in value if isinstance(one, Mapping)]
        if isinstance(value, (list, tuple))
        else []
    )


@dataclass(frozen=True)
class Limits:
    """One node's evidence about limits. seen: of collector limits; walk.

    Of collector descriptors, empty where it was not asked.

    cut: there were more files than the collector reads.
    """

    seen: Mapping[str, Any]
    walk: Mapping[str, Any]
    cut: bool = False

    @cached_property
    def kernel(self) -> dict[str, int]:
        """The running values that are whole numbers."""
        told = self.seen.get("kernel")
        found = (
            {key: sysctl_files.number(value) for key, value in told.items()}
            if isinstance(told, Mapping)
            else {}
        )
        return {key: value for key, value in found.items() if value is not None and value >= 0}

    @property
    def tried(self) -> Mapping[str, Any]:
        """What became of the try to have another instance and watch."""
        found = self.seen.get("inotify")
        return found if isinstance(found, Mapping) else {}

    @property
    def uncounted(self) -> bool:
        """Whether the walk left out processes: no time, or no right to look at them."""
        return bool(self.walk) and (
            self.walk.get("complete") is not True or self.walk.get("denied") != 0
        )

    @cached_property
    def records(self) -> list[Mapping[str, Any]]:
        return items(self.seen.get("sysctl_files"))

    @remember.last
    def at_boot(self) -> dict[str, Setting]:
        """What a boot sets of what is watched here: systemd-sysctl, and who comes after it."""
        return self.booted((*TARGETS, NR_OPEN, PID_MAX))

    def booted(self, keys: tuple[str, ...]) -> dict[str, Setting]:
        """The same of these keys."""
        return sysctl_late.at_boot(
            self.seen.get("late"), sysctl_files.at_boot(self.records, keys), keys
        )

    @remember.last
    def by_hand(self) -> dict[str, Setting]:
        """What `sysctl --system` would set."""
        return sysctl_files.by_hand(self.records, (*TARGETS, NR_OPEN, PID_MAX))

    @remember.last
    def unread_sysctl(self) -> list[str]:
        """Where settings may stand that nobody could read."""
        found = [
            path for path, dummy in sysctl_files.unreadable(self.records)
        ] + sysctl_late.unread(self.seen.get("late"))
        return found + self._unlisted("sysctl_files", sysctl_files.FOLDERS)

    def unread_limits(self) -> list[str]:
        """Where limits of logins may stand that nobody could read."""
        return [
            path for path, dummy in limits_conf.unreadable(items(self.seen.get("limits_files")))
        ] + self._unlisted("limits_files", (limits_conf.FOLDER,))

    def _unlisted(self, field: str, folders: Sequence[str]) -> list[str]:
        if not isinstance(self.seen.get(field), (list, tuple)):
            return [field]
        found = [
            str(one["path"])
            for one in items(self.seen[field])
            if one.get("path") in folders and one.get("error") not in (None, "missing")
        ]
        return found + (["what is behind the first hundred files"] if self.cut else [])

    def entries(self) -> list[limits_conf.Entry]:
        return list(limits_conf.entries(items(self.seen.get("limits_files"))))

    @remember.last
    def hard_limits(self) -> list[limits_conf.Entry]:
        """What limits.conf gives as a hard limit of open files, of each user, group or range the
        line that counts: the last, and none for the exempt.

        A soft limit above the hard one is lowered to it by pam_limits: it refuses nothing, and
        gives nothing.
        """
        entries = self.entries()
        exempt = {one.domain for one in entries if not one.item}
        last = {
            one.domain: one for one in entries if one.item == "nofile" and one.kind in ("hard", "-")
        }
        return [one for one in last.values() if one.number is not None and one.domain not in exempt]

    def impossible(self) -> list[limits_conf.Entry]:
        """Those of hard_limits that ask for more than a process can have.

        None where nobody can tell how much that is.
        """
        most = self.ceiling()
        return [
            one
            for one in self.hard_limits()
            if most and (one.number == UNLIMITED or (one.number or 0) > most[0])
        ]

    def ceiling(self) -> tuple[int, str] | None:
        """(what no hard limit of open files may exceed, whose it is); None where nobody can tell.

        Fs.nr_open bounds everybody.
        """
        init, most = self.seen.get("init"), self.kernel.get(NR_OPEN)
        if not isinstance(init, Mapping) or not isinstance(init.get("cap_sys_resource"), bool):
            return None
        bounds = [(most, NR_OPEN)] if most is not None else []
        if not init["cap_sys_resource"]:
            own = pair(init.get("nofile"))
            if own is None:
                return None
            bounds += (
                [(own[1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE")]
                if own[1] != UNLIMITED
                else []
            )
        return min(bounds, default=None)

    @remember.last
    def processes(self) -> tuple[Holder, ...]:
        """Kubelet, runtimes and sshd; then whoever the walk found near its own limit."""
        seen: dict[int, Holder] = {}
        for one in (*items(self.seen.get("processes")), *items(self.walk.get("nofile"))):
            limits, count = (
                pair(one.get("nofile")) or pair([one.get("soft"), one.get("hard")]),
                number(one.get("open")),
            )
            found = holder(one)
            if found and limits and count is not None and found.pid not in seen:
                seen[found.pid] = replace(
                    found,
                    role=one_line(one.get("role") or "", 40),
                    open=count,
                    soft=limits[0],
                    hard=limits[1],
                    ticks=number(one.get("ticks")),
                    session=one_line(one.get("session") or "", 80),
                )
        return tuple(seen.values())

    def full(self) -> list[Holder]:
        """Those that have as many files open as they may."""
        return [one for one in self.processes() if one.soft > 0 and one.open >= FULL * one.soft]

    def units(self) -> dict[str, Mapping[str, Any]]:
        """What systemd says of units, by their names.

        Of kubelet, runtimes and sshd, and of whom the walk found near its limit.
        """
        return {
            str(one.get("name")): one
            for one in (*items(self.walk.get("units")), *items(self.seen.get("units")))
        }

    def shortages(self) -> Iterator[Shortage]:
        """What is reached, proven by trying or by counting; root's first."""
        for key in (INSTANCES, WATCHES):
            yield from sorted(self._of_inotify(key), key=lambda short: short.uid != 0)
        used = pair(self.seen.get("file_nr"))
        if used and used[1] > 0 and used[0] >= FULL * used[1]:
            yield Shortage(
                FILE_MAX,
                used[1],
                None,
                f"{used[0]} file handles of {used[1]} are in use",
                self.most("open"),
            )

    def in_use(self, key: str) -> tuple[int | None, str]:
        """(the most that anybody has of it now, by whom).

        None where that was not counted in full.
        """
        if key == FILE_MAX:
            used = pair(self.seen.get("file_nr"))
            return (used[0] if used else None), ""
        rows = [
            (number(one.get(INOTIFY[key][0])), number(one.get("uid")))
            for one in items(self.walk.get("uids"))
        ]
        if not rows or self.uncounted or any(count is None for count, dummy in rows):
            return None, ""
        count, uid = max(rows, key=lambda row: row[0] or 0)
        return count, f" by {whose(uid)}"

    def _of_inotify(self, key: str) -> Iterator[Shortage]:
        counted, trial, error = INOTIFY[key]
        limit, uid = self.kernel.get(key), number(self.tried.get("uid"))
        if limit is None:
            return
        if self.tried.get(trial) == error:
            opened = number(self.tried.get("opened")) if trial == "instance" else None
            shown = f"another inotify {trial} could not be made by {whose(uid)} ({error})" + (
                f" after {opened} that were left: a kubelet that starts needs more"
                if opened
                else ""
            )
            yield Shortage(key, limit, uid, shown, self._holders(counted, uid), opened or 0)
        for one in items(self.walk.get("uids")):
            other, count = number(one.get("uid")), number(one.get(counted))
            if other is not None and count is not None and other != uid and 0 < limit <= count:
                shown = (
                    f"processes of {whose(other)} hold {count} inotify {counted}; what a process"
                    " inherited counts for each of them"
                )
                yield Shortage(key, limit, other, shown, self._holders(counted, other))

    def most(self, counted: str) -> tuple[Holder, ...]:
        """The processes that the walk found with the most open files, or threads."""
        rows = [
            (number(one.get(counted)) or 0, holder(one)) for one in items(self.walk.get(counted))
        ]
        found = [replace(one, **{counted: count}) for count, one in rows if one and count > 0]
        return tuple(sorted(found, key=lambda one: (-getattr(one, counted), one.pid)))

    def _holders(self, counted: str, uid: int | None) -> tuple[Holder, ...]:
        found = [
            (number(one.get(counted)) or 0, holder(one), one)
            for one in items(self.walk.get("inotify"))
        ]
        rows = [
            (
                count,
                replace(
                    one,
                    instances=number(raw.get("instances")) or 0,
                    watches=number(raw.get("watches")) or 0,
                ),
            )
            for count, one, raw in found
            if one and count > 0 and uid in (None, one.uid)
        ]
        return tuple(one for dummy, one in sorted(rows, key=lambda row: (-row[0], row[1].pid)))


# Of each: what the walk counts, what was tried, and what the kernel says when there are no more.
INOTIFY = {INSTANCES: ("instances", "instance", "EMFILE"), WATCHES: ("watches", "watch", "ENOSPC")}


def whose(uid: int | None) -> str:
    return "root" if uid == 0 else "a user that is not known" if uid is None else f"uid {uid}"


def holder(one: Mapping[str, Any]) -> Holder | None:
    pid, uid = number(one.get("pid")), number(one.get("uid"))
    if pid is None:
        return None
    pod, container, unit = (
        one_line(one.get(key) or "", 80) for key in ("pod_uid", "container_id", "unit")
    )
    name, inner = one_line(one.get("pod") or "", 320), one_line(one.get("container") or "", 80)
    where = (
        f"pod {name or pod}" + (f", container {inner or container[:12]}" if container else "")
        if pod
        else unit
    )
    return Holder(
        pid,
        one_line(one.get("comm") or "?", 40),
        -1 if uid is None else uid,
        where,
        unit=unit,
        container=container[:12],
        named=bool(name),
    )


@remember.last
def read(document: Mapping[str, Any]) -> Limits:
    """The evidence of a host; fields are empty where a collector did not answer."""
    cut = bool(document.get("collectors", {}).get("limits", {}).get("truncated"))
    return Limits(
        control_plane.data(document, "limits"), control_plane.data(document, "descriptors"), cut
    )
