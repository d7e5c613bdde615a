# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector descriptors: the processes with inotify instances and watches, or with many open files.

The walk over /proc/*/fd reads links, which the kernel makes from its own memory: a file system that
hangs cannot hold it up.
"""

import os
import time

from ...shared import unit_limits
from ...system import command, files, procfs, systemd
from . import limits, pinning

INOTIFY = ("anon_inode:inotify", "anon_inode:[inotify]")
WATCH = b"inotify wd:"
SECONDS = 18
EVERY = 512  # descriptors between two looks at the clock
MAX_UIDS, MAX_HOLDERS, MAX_MOST = 50, 30, 10
FULL = 0.8


class _Gone(Exception):
    """The process ended meanwhile."""


def collect(context):
    """Return which process holds what, as far as the time reaches.

    A descriptor that a child inherited counts for each process, so that the numbers are an
    upper bound.
    """
    context.source = "/proc/*/fd"
    evidence = walk(time.monotonic() + context.seconds(SECONDS))
    name_pods([row for kind in ("inotify", "nofile", "open", "threads") for row in evidence[kind]])
    return dict(evidence, units=units(evidence["nofile"], context.seconds(5)))


def walk(end, proc="/proc"):
    """Return the data; `end` is when to stop."""
    evidence = {"processes": 0, "denied": 0, "complete": True}
    holders, nofile, users, own_users = [], [], {}, _link(proc + "/self/ns/user")
    open_counts, thread_counts = [], []  # (count, pid, uid) of the processes with the most
    for pid in _pids(proc):
        if time.monotonic() >= end:
            evidence["complete"] = False
            break
        folder = f"{proc}/{pid}"
        try:
            process = look(folder, end)
        except _Gone:
            continue
        evidence["processes"] += 1
        evidence["denied"] += process["denied"]
        evidence["complete"] = evidence["complete"] and not process["late"]
        _note(open_counts, process["open"], pid, process["uid"])
        _note(thread_counts, process["threads"], pid, process["uid"])
        if process["instances"]:
            holders.append(_inotify_row(process, pid, folder))
            # another user namespace has limits of its own, within those of who made it
            if _link(folder + "/ns/user") == own_users:
                _add(users, process)
        if _is_full(process):
            nofile.append(_nofile_row(process, pid, proc))
    evidence["open"] = _count_rows("open", open_counts, proc)
    evidence["threads"] = _count_rows("threads", thread_counts, proc)
    return dict(
        evidence,
        uids=sorted(
            users.values(), key=lambda user: (-user["instances"], -user["watches"], user["uid"])
        )[:MAX_UIDS],
        inotify=most(holders),
        nofile=sorted(nofile, key=lambda row: -row["open"] / float(row["soft"]))[:MAX_HOLDERS],
    )


def _pids(proc):
    return sorted(int(name) for name in os.listdir(proc) if name.isdecimal())


def _inotify_row(process, pid, folder):
    return dict(
        holder(pid, process["uid"], folder),
        instances=process["instances"],
        watches=process["watches"],
    )


def _nofile_row(process, pid, proc):
    """Return the row of a process near its limit of open files."""
    folder = f"{proc}/{pid}"
    return dict(
        holder(pid, process["uid"], folder),
        open=process["open"],
        soft=process["nofile"][0],
        hard=process["nofile"][1],
        session=procfs.session(files.text(folder + "/cgroup", 65536, "")),
        ticks=procfs.ticks(pid, proc),
    )


def _count_rows(key, counts, proc):
    return [dict(holder(pid, uid, f"{proc}/{pid}"), **{key: count}) for count, pid, uid in counts]


def _note(most_of, count, pid, uid):
    """Keep the process among the first MAX_MOST of these."""
    if count > 0 and (len(most_of) < MAX_MOST or count > most_of[-1][0]):
        most_of.append((count, pid, uid))
        most_of.sort(key=lambda row: (-row[0], row[1]))
        del most_of[MAX_MOST:]


def look(folder, end):
    """Return what one process holds; raise _Gone when it has ended."""
    status = files.text(folder + "/status", 16384)
    process = {
        "uid": procfs.real_uid(status or ""),
        "open": 0,
        "instances": 0,
        "watches": 0,
        "threads": 0,
        "nofile": None,
        "denied": False,
        "late": False,
    }
    if process["uid"] is None:
        if not os.path.isdir(folder):
            raise _Gone from None
        process["denied"] = True  # hidepid
        return process
    process["threads"] = procfs.number((procfs.status(status, "Threads") or [""])[0]) or 0
    if procfs.status(status, "State")[:1] in (["Z"], ["X"]):
        return process  # it holds nothing any more, which only root may see
    try:
        _count(process, folder, end)
    except PermissionError:
        process["denied"] = True
    except OSError:
        raise _Gone from None
    process["nofile"] = procfs.rlimit(files.text(folder + "/limits", 8192, ""), "Max open files")
    return process


def _count(process, folder, end):
    """Count the descriptors of a process, and its inotify instances with their watches."""
    with os.scandir(folder + "/fd") as entries:
        for entry in entries:
            process["open"] += 1
            if not process["open"] % EVERY and time.monotonic() >= end:
                process["late"] = True
                return
            if process["denied"] or process["late"]:
                continue
            try:
                if os.readlink(entry.path) in INOTIFY:
                    process["instances"] += 1
                    count, process["late"] = watches(folder + "/fdinfo/" + entry.name, end)
                    process["watches"] += count
            except PermissionError:
                process["denied"] = True  # how many there are is known nevertheless
            except OSError:
                pass  # closed meanwhile


def watches(path, end):
    """Return (how many watches an inotify descriptor has, whether time ran out before its end).

    Each watch is a line of the descriptor's fdinfo.
    """
    descriptor = os.open(path, files.FLAGS)
    count, rest = 0, b""
    try:
        while True:
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return count, False
            chunk = rest + chunk
            count += chunk.count(WATCH)
            # no occurrence fits into what is kept: none counts twice
            rest = chunk[1 - len(WATCH) :]
            if time.monotonic() >= end:
                return count, True
    finally:
        os.close(descriptor)


def holder(pid, uid, folder):
    """Return what identifies a process, and its pod or unit."""
    group = procfs.cgroup(files.text(folder + "/cgroup", 65536, ""))
    return {
        "pid": pid,
        "comm": files.one_line(files.text(folder + "/comm", 64, ""), 64),
        "uid": uid,
        "unit": group["unit"],
        "pod_uid": group["pod_uid"],
        "container_id": group["container_id"],
    }


def name_pods(holders):
    """Add the pod (namespace/name) and the container's name to each holder in a container.

    Both are None where none of the kubelet's links to logs names them.
    """
    if any(row["container_id"] for row in holders):
        names = pinning.container_names()
    else:
        names = {}
    for row in holders:
        row["pod"], row["container"] = names.get(row["container_id"]) or (None, None)


def units(full, seconds):
    """Return systemd's limits of the services near their limit, and the files that set them.

    The result is None where systemd does not answer. systemd is not asked without such a
    service.

    main: the service's main process, where it is not the one near its limit: it gives its limit
    to the processes that it starts.
    """
    names = sorted(
        {row["unit"] for row in full if row["unit"] and unit_limits.UNIT.match(row["unit"])}
    )
    if not names:
        return []
    try:
        blocks = systemd.show(names, limits.PROPERTIES, seconds)
    except (command.CommandError, OSError):
        return None
    services, near = [], [row.get("pid") for row in full]
    for block in blocks.values():
        unit, main = limits.of_unit(block), procfs.number(block.get("MainPID", ["0"])[0])
        if unit:
            services.append(
                dict(
                    unit,
                    main=(
                        limits.process(main, "", unit["name"])
                        if main and main not in near
                        else None
                    ),
                )
            )
    return services


def most(holders):
    """Return at most MAX_HOLDERS of these, most instances first.

    Half of them are those with the most instances, the others those with the most watches.
    """
    by_instances = sorted(holders, key=lambda row: (-row["instances"], -row["watches"], row["pid"]))
    chosen = by_instances[: MAX_HOLDERS // 2]
    rest = sorted(by_instances[MAX_HOLDERS // 2 :], key=lambda row: -row["watches"])
    return chosen + sorted(rest[: MAX_HOLDERS - len(chosen)], key=lambda row: -row["instances"])


def _is_full(process):
    """Return whether a process is near its limit of open files.

    A limit of 0 does not count: a sandbox that opens no more files sets it so.
    """
    return (
        bool(process["nofile"])
        and process["nofile"][0] > 0
        and process["open"] >= FULL * process["nofile"][0]
    )


def _add(users, process):
    user = users.setdefault(
        process["uid"], {"uid": process["uid"], "instances": 0, "watches": 0, "holders": 0}
    )
    user["instances"] += process["instances"]
    user["watches"] += process["watches"]
    user["holders"] += 1


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None
