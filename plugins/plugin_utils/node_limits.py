# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: what a node's limits are, who is at them, and what they will be after a reboot."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils import control_plane, limits_conf, sysctl_files, sysctl_late
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import one_line
from ansible_collections.kubemend.remediation.plugins.plugin_utils.sysctl_files import Setting

INSTANCES, WATCHES, EVENTS = "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "fs.inotify.max_queued_events"
FILE_MAX, NR_OPEN, PID_MAX = "fs.file-max", "fs.nr_open", "kernel.pid_max"
# What is raised to, where nothing else was asked for; watches as kind and kubespray have them.
TARGETS = {FILE_MAX: 2097152, INSTANCES: 8192, WATCHES: 524288, EVENTS: 16384}
NOFILE, NPROC = "nofile", "nproc"  # of logins, as limits.conf names them
# The variables that ask for another value.
VARIABLES = {NOFILE: "kubemend_nofile", NPROC: "kubemend_nproc",
             FILE_MAX: "kubemend_file_max", INSTANCES: "kubemend_inotify_instances", WATCHES: "kubemend_inotify_watches",
             EVENTS: "kubemend_inotify_queued_events"}
KERNEL_DEFAULT = {INSTANCES: 128}  # the others depend on the machine's memory, or on its init
# What the kernel takes: it refuses a greater number, and keeps what it has.
MOST = {INSTANCES: 2 ** 31 - 1, WATCHES: 2 ** 31 - 1, EVENTS: 2 ** 31 - 1, FILE_MAX: 2 ** 63 - 1, PID_MAX: 4194304}
WATCHED = (*TARGETS, PID_MAX)
VENDOR = ("/usr/", "/lib/")
UNBOUNDED = 2 ** 63 - 1  # what systemd gives fs.file-max before it reads any file: nobody raised it, and a file that says less is a wish
FULL = 0.95  # of a limit: what is left is gone before anybody has read this
FILE = "/etc/sysctl.d/99-zz-kubemend.conf"
UNLIMITED = -1


@dataclass(frozen=True)
class Holder:
    """A process, by what it holds. instances and watches of inotify; open descriptors and their soft and hard limit. unit, or container of a pod."""

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
    session: str = ""
    ticks: int | None = None

    def __str__(self) -> str:
        return f"{self.comm} ({self.where})" if self.where else self.comm


@dataclass(frozen=True)
class Shortage:
    """A limit that is reached: its key, its value, whose it is (None: everybody's), what shows it, who holds the most, and how many were left."""

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
        return one.watches if self.key == WATCHES else one.instances


def number(value: Any) -> int | None:
    """A whole number that a node may have said, of 64 bits as all that the kernel says, or -1; else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -1 <= value < 1 << 64 else None


def pair(value: Any) -> tuple[int, int] | None:
    """(soft, hard) of a limit; -1 is unlimited."""
    if not isinstance(value, (list, tuple)) or len(value) != 2 or any(number(one) is None for one in value):
        return None
    return value[0], value[1]


def items(value: Any) -> list[Mapping[str, Any]]:
    """Those of a list that are mappings."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else []


@dataclass(frozen=True)
class Limits:
    """One node's evidence about limits. seen: of collector limits; walk: of collector descriptors, empty where it was not asked.

    cut: there were more files than the collector reads.
    """

    seen: Mapping[str, Any]
    walk: Mapping[str, Any]
    cut: bool = False

    @property
    def kernel(self) -> dict[str, int]:
        """The running values that are whole numbers."""
        told = self.seen.get("kernel")
        found = {key: sysctl_files.number(value) for key, value in told.items()} if isinstance(told, Mapping) else {}
        return {key: value for key, value in found.items() if value is not None and value >= 0}

    @property
    def tried(self) -> Mapping[str, Any]:
        """What became of the try to have another instance and watch."""
        found = self.seen.get("inotify")
        return found if isinstance(found, Mapping) else {}

    @property
    def uncounted(self) -> bool:
        """Whether the walk left out processes: no time, or no right to look at them."""
        return bool(self.walk) and (self.walk.get("complete") is not True or self.walk.get("denied") != 0)

    @property
    def records(self) -> list[Mapping[str, Any]]:
        return items(self.seen.get("sysctl_files"))

    def at_boot(self) -> dict[str, Setting]:
        """What a boot sets of what is watched here: systemd-sysctl, and who comes after it."""
        return self.booted((*TARGETS, NR_OPEN, PID_MAX))

    def booted(self, keys: tuple[str, ...]) -> dict[str, Setting]:
        """The same of these keys."""
        return sysctl_late.at_boot(self.seen.get("late"), sysctl_files.at_boot(self.records, keys), keys)

    def by_hand(self) -> dict[str, Setting]:
        """What `sysctl --system` would set."""
        return sysctl_files.by_hand(self.records, (*TARGETS, NR_OPEN, PID_MAX))

    def unread_sysctl(self) -> list[str]:
        """Where settings may stand that nobody could read."""
        found = [path for path, dummy in sysctl_files.unreadable(self.records)] + sysctl_late.unread(self.seen.get("late"))
        return found + self._unlisted("sysctl_files", sysctl_files.FOLDERS)

    def unread_limits(self) -> list[str]:
        """Where limits of logins may stand that nobody could read."""
        return [path for path, dummy in limits_conf.unreadable(items(self.seen.get("limits_files")))] + self._unlisted("limits_files", (limits_conf.FOLDER,))

    def _unlisted(self, field: str, folders: Sequence[str]) -> list[str]:
        if not isinstance(self.seen.get(field), (list, tuple)):
            return [field]
        found = [str(one["path"]) for one in items(self.seen[field]) if one.get("path") in folders and one.get("error") not in (None, "missing")]
        return found + (["what is behind the first hundred files"] if self.cut else [])

    def entries(self) -> list[limits_conf.Entry]:
        return list(limits_conf.entries(items(self.seen.get("limits_files"))))

    def hard_limits(self) -> list[limits_conf.Entry]:
        """What limits.conf gives as a hard limit of open files, of each user, group or range the line that counts: the last, and none for the exempt.

        A soft limit above the hard one is lowered to it by pam_limits: it refuses nothing, and gives nothing.
        """
        entries = self.entries()
        exempt = {one.domain for one in entries if not one.item}
        last = {one.domain: one for one in entries if one.item == "nofile" and one.kind in ("hard", "-")}
        return [one for one in last.values() if one.number is not None and one.domain not in exempt]

    def impossible(self) -> list[limits_conf.Entry]:
        """Those of hard_limits that ask for more than a process can have; none where nobody can tell how much that is."""
        most = self.ceiling()
        return [one for one in self.hard_limits() if most and (one.number == UNLIMITED or (one.number or 0) > most[0])]

    def ceiling(self) -> tuple[int, str] | None:
        """(what no hard limit of open files may exceed, whose it is); None where nobody can tell. fs.nr_open bounds everybody."""
        init, most = self.seen.get("init"), self.kernel.get(NR_OPEN)
        if not isinstance(init, Mapping) or not isinstance(init.get("cap_sys_resource"), bool):
            return None
        bounds = [(most, NR_OPEN)] if most is not None else []
        if not init["cap_sys_resource"]:
            own = pair(init.get("nofile"))
            if own is None:
                return None
            bounds += [(own[1], "the hard limit of PID 1, which has no CAP_SYS_RESOURCE")] if own[1] != UNLIMITED else []
        return min(bounds, default=None)

    def processes(self) -> Iterator[Holder]:
        """Kubelet, runtimes and sshd; then whoever the walk found near its own limit."""
        seen = set()
        for one in (*items(self.seen.get("processes")), *items(self.walk.get("nofile"))):
            limits, count = pair(one.get("nofile")) or pair([one.get("soft"), one.get("hard")]), number(one.get("open"))
            found = _holder(one)
            if found and limits and count is not None and found.pid not in seen:
                seen.add(found.pid)
                yield replace(found, role=one_line(one.get("role") or "", 40), open=count, soft=limits[0], hard=limits[1], ticks=number(one.get("ticks")),
                              session=one_line(one.get("session") or "", 80))

    def full(self) -> list[Holder]:
        """Those that have as many files open as they may."""
        return [one for one in self.processes() if 0 < one.soft and one.open >= FULL * one.soft]

    def units(self) -> dict[str, Mapping[str, Any]]:
        """What systemd says of units, by their names: of kubelet, runtimes and sshd, and of whom the walk found near its limit."""
        return {str(one.get("name")): one for one in (*items(self.walk.get("units")), *items(self.seen.get("units")))}

    def shortages(self) -> Iterator[Shortage]:
        """What is reached, proven by trying or by counting; root's first."""
        for key in (INSTANCES, WATCHES):
            yield from sorted(self._of_inotify(key), key=lambda short: short.uid != 0)
        used = pair(self.seen.get("file_nr"))
        if used and used[1] > 0 and used[0] >= FULL * used[1]:
            yield Shortage(FILE_MAX, used[1], None, f"{used[0]} file handles of {used[1]} are in use")

    def _of_inotify(self, key: str) -> Iterator[Shortage]:
        counted, trial, error = INOTIFY[key]
        limit, uid = self.kernel.get(key), number(self.tried.get("uid"))
        if limit is None:
            return
        if self.tried.get(trial) == error:
            opened = number(self.tried.get("opened")) if trial == "instance" else None
            shown = f"another inotify {trial} could not be made by {whose(uid)} ({error})" + (
                f" after {opened} that were left: a kubelet that starts needs more" if opened else "")
            yield Shortage(key, limit, uid, shown, self._holders(counted, uid), opened or 0)
        for one in items(self.walk.get("uids")):
            other, count = number(one.get("uid")), number(one.get(counted))
            if other is not None and count is not None and other != uid and 0 < limit <= count:
                shown = f"processes of {whose(other)} hold {count} inotify {counted}; what a process inherited counts for each of them"
                yield Shortage(key, limit, other, shown, self._holders(counted, other))

    def _holders(self, counted: str, uid: int | None) -> tuple[Holder, ...]:
        found = [(number(one.get(counted)) or 0, _holder(one), one) for one in items(self.walk.get("inotify"))]
        rows = [(count, replace(one, instances=number(raw.get("instances")) or 0, watches=number(raw.get("watches")) or 0))
                for count, one, raw in found if one and count > 0 and uid in (None, one.uid)]
        return tuple(one for dummy, one in sorted(rows, key=lambda row: (-row[0], row[1].pid)))


# Of each: what the walk counts, what was tried, and what the kernel says when there are no more.
INOTIFY = {INSTANCES: ("instances", "instance", "EMFILE"), WATCHES: ("watches", "watch", "ENOSPC")}


def whose(uid: int | None) -> str:
    return "root" if uid == 0 else "a user that is not known" if uid is None else f"uid {uid}"


def _holder(one: Mapping[str, Any]) -> Holder | None:
    pid, uid = number(one.get("pid")), number(one.get("uid"))
    if pid is None:
        return None
    pod, container, unit = (one_line(one.get(key) or "", 80) for key in ("pod_uid", "container_id", "unit"))
    where = f"pod {pod}" + (f", container {container[:12]}" if container else "") if pod else unit
    return Holder(pid, one_line(one.get("comm") or "?", 40), -1 if uid is None else uid, where, unit=unit, container=container[:12])


def read(document: Mapping[str, Any]) -> Limits:
    """The evidence of a host; fields are empty where a collector did not answer."""
    cut = bool(document.get("collectors", {}).get("limits", {}).get("truncated"))
    return Limits(control_plane.data(document, "limits"), control_plane.data(document, "descriptors"), cut)


@dataclass(frozen=True)
class Lasting:
    """A setting that will not be, or is not, what somebody meant: key, what the kernel has, what it should lastingly have, why, and where that stands."""

    key: str
    running: int
    wanted: int
    why: str
    places: tuple[tuple[str, int, str], ...]


def lasting(limits: Limits) -> Iterator[Lasting]:
    """KM407: overridden by a later file, running but not written down, written down but not running. Nothing is said while a file is not known."""
    if limits.unread_sysctl():
        return
    boot, hand = limits.at_boot(), limits.by_hand()
    for key, running in sorted(limits.kernel.items()):
        found = boot.get(key)
        if key in WATCHED and found is None:
            yield from _untold(key, running, hand.get(key))
        elif key in WATCHED and found and taken(key, found.value) is not None:
            yield from _told(key, running, found, taken(key, found.value) or 0)


def taken(key: str, text: str) -> int | None:
    """The number, where the kernel would take it."""
    value = sysctl_files.number(text)
    return value if value is not None and 0 <= value <= MOST.get(key, value) else None


def _untold(key: str, running: int, hand: Setting | None) -> Iterator[Lasting]:
    """Nothing sets it at boot. /etc/sysctl.conf is read by hand only, where no link leads to it."""
    value, default = taken(key, hand.value) if hand else None, KERNEL_DEFAULT.get(key)
    if hand and value is not None and running <= value:
        yield Lasting(key, running, value, f"{place(hand)} says {value}, which nothing reads at boot (sysctl --system and sysctl -p do); the kernel has "
                      f"{running} now", ((hand.path, hand.line, f"{key} = {hand.value}"),))
    elif default is not None and running > default:
        yield Lasting(key, running, running, f"the kernel has {running}, and no file of sysctl.d says so: a reboot brings back {default}, unless something "
                      "else raises it again (tuned, a DaemonSet, a script)", ())


def _told(key: str, running: int, found: Setting, value: int) -> Iterator[Lasting]:
    won = (found.path, found.line, f"{key} = {found.value}")
    beaten = [(path, line, text, taken(key, text)) for path, line, text in found.overrides if path.startswith(("/etc/", "/run/"))]
    higher = [(path, line, text, number) for path, line, text, number in beaten if number is not None and number > value]
    if higher:
        path, line, text, most = max(higher, key=lambda one: one[3])
        is_later = (posixpath.basename(found.path), found.line) > (posixpath.basename(path), line)
        yield Lasting(key, running, max(most, running), f"{path}:{line} says {most}, and {place(found)}, which "
                      + (f"{found.who} sets after sysctl.d" if found.who else "is read later" if is_later else "names it without a pattern")
                      + f", says {value}; the kernel has {running} now",
                      ((path, line, f"{key} = {text}"), won))
    elif running > value and not (key == FILE_MAX and running == UNBOUNDED):
        yield Lasting(key, running, running, f"the kernel has {running}, and {place(found)} brings it back to {value} at the next boot", (won,))
    elif running < value and not found.path.startswith(VENDOR):  # what a distribution ships is nobody's wish, and not for every machine
        yield Lasting(key, running, value, f"{place(found)} says {value}, and the kernel has {running}: it was never loaded, or something lowered it since",
                      (won,))


def place(found: Setting) -> str:
    """Where a setting stands, as an operator edits it."""
    return f"{found.path}:{found.line}" + (f" ({found.real})" if found.real and found.real != found.path else "")


def asked_for(limits: Limits, key: str) -> Iterable[int]:
    """Every value that our file must not go below: what decides at boot and by hand, and what KM407 says is meant."""
    decide = [found for found in (limits.at_boot().get(key), limits.by_hand().get(key)) if found]
    return [*(taken(key, found.value) or 0 for found in decide), *(one.wanted for one in lasting(limits) if one.key == key)]


def later(limits: Limits, key: str, wanted: int) -> tuple[str | None, str]:
    """(what keeps our file from deciding at boot, or None; what else is to be known of it: `sysctl --system`, files that were not read)."""
    name = posixpath.basename(FILE)
    ours = {"path": FILE, "name": name, "kind": "file", "link": None, "text": f"{key} = {wanted}\n", "truncated": False, "binary": False, "error": None}
    others: Sequence[Mapping[str, Any]] = [one for one in limits.records if one.get("path") != FILE]
    boot = sysctl_files.at_boot([*others, ours], (key,)).get(key)
    hand = sysctl_files.by_hand([*others, ours], (key,)).get(key)
    unread = [path for path in limits.unread_sysctl() if path != FILE and not (path.endswith(".conf") and posixpath.basename(path) < name)]
    notes = [f"{', '.join(unread[:3])} could not be read: whether that overrides it is not known"] if unread else []
    if boot is None:
        return f"a line -{key} without a value is read after {FILE} and keeps it from being set at boot: take that line away", "; ".join(notes)
    if _is_less(boot, wanted):
        return f"{place(boot)} is read after {FILE} and says {one_line(boot.value, 80)}: raise it there, or take the line away", "; ".join(notes)
    keys = (key, sysctl_late.SAME[key]) if key in sysctl_late.SAME else (key,)
    late = sysctl_late.at_boot(limits.seen.get("late"), {key: boot}, keys)
    over = next((one for one in late.values() if one.who and _is_less(one, wanted)), None)
    if over:
        why = f"{place(over)} says {one_line(over.value, 80)}, which {over.who} sets after sysctl.d: raise it there, or take the line away"
        return why, "; ".join(notes)
    if hand and _is_less(hand, wanted):
        notes.insert(0, f"sysctl --system reads {place(hand)} last, which says {one_line(hand.value, 80)}: change that line too")
    return None, "; ".join(notes)


def _is_less(found: Setting, wanted: int) -> bool:
    return found.path != FILE and (sysctl_files.number(found.value) or 0) < wanted
