# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector limits: what bounds open files and inotify here, and the files that say so."""

import errno
import os

from ...shared.sysctl import SYSCTL
from ...shared.unit_limits import DROPINS, OURS, ROLES
from ...system import command, files, procfs, sysctl_overrides, systemd

KERNEL = (
    "fs.file-max",
    "fs.nr_open",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.inotify.max_queued_events",
    "kernel.pid_max",
    "kernel.threads-max",
)
PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "ExecMainStatus",
    "FragmentPath",
    "DropInPaths",
    "LimitNOFILE",
    "LimitNOFILESoft",
)
INFINITE = ("infinity", "18446744073709551615")  # the second is how systemd 219 says it
SETTINGS = ("LimitNOFILE", "LimitNPROC")
CAP_SYS_RESOURCE = 24
FULL = 0.95  # of what there is: as the controller judges it
TRIED = 8  # inotify instances: a kubelet that starts needs several
IN_DELETE_SELF = 0x400
# As text at most 2 MiB altogether: no distribution comes near, and the collector's answer stays
# below what the runner takes.
MAX_FILES, MAX_TEXT, ROOM = 100, 65536, 2 * 1024 * 1024
MAX_LINES, MAX_DROPINS, LONGEST = 100, 64, 200


def collect(context):
    """Return the limits of the kernel and of processes, how far they are used, and what sets them.

    units: None where systemd does not answer.
    """
    context.source = "/proc, systemctl, sysctl.d, limits.conf, pam.d"
    blocks = _blocks(context.seconds(5))
    evidence = {
        "kernel": kernel(),
        "file_nr": file_nr(files.text("/proc/sys/fs/file-nr", 256, "")),
        "threads": threads(files.text("/proc/loadavg", 256, "")),
        "inotify": tried(),
        "init": init(),
        "processes": _processes(context.processes, blocks or {}),
        "units": None
        if blocks is None
        else [unit for unit in map(of_unit, blocks.values()) if unit],
        "pam": pam(),
        "late": sysctl_overrides.facts(),
    }
    evidence["user_ns"] = procfs.link(os.getpid(), "ns/user")
    evidence["used_up"] = used_up(evidence)
    room = ROOM
    for key, folders, single in (
        ("sysctl_files", _folders(), "/etc/sysctl.conf"),
        ("limits_files", ("/etc/security/limits.d",), "/etc/security/limits.conf"),
    ):
        paths, unlisted = conf_files(folders)
        if os.path.lexists(single):
            paths += [single]
        context.truncated = context.truncated or len(paths) > MAX_FILES
        records, room = _records(paths[:MAX_FILES], room)
        evidence[key] = records + unlisted
    return evidence


def question():
    """Return the question to systemd: (names, properties, whether it asks is-enabled too)."""
    return [name for name, _dummy in ROLES], PROPERTIES, False


def _blocks(seconds):
    """Return systemd's properties of the units by name; None where systemd does not answer."""
    names, properties, _dummy = question()
    try:
        return systemd.show(names, properties, seconds)
    except (command.CommandError, OSError):
        return None


def kernel(base="/proc/sys/"):
    """Return the text of each of KERNEL that can be read."""
    pairs = ((key, files.text(base + key.replace(".", "/"), 256)) for key in KERNEL)
    return {key: text.strip() for key, text in pairs if text is not None}


def file_nr(text):
    """Return [allocated, most] of /proc/sys/fs/file-nr; the one between them is always 0."""
    numbers = [procfs.number(word) for word in text.split()]
    if len(numbers) == 3 and None not in numbers:
        return [numbers[0], numbers[2]]
    return None


def threads(text):
    """Return how many threads there are, by /proc/loadavg."""
    words = text.split()
    if len(words) > 3:
        return procfs.number(words[3].partition("/")[2])
    return None


def tried():
    """Try for less than a millisecond whether inotify instances and a watch can be had.

    It opens as many instances as a program that starts needs. The kernel counts them for the
    effective user. opened: how many of TRIED it got. It takes 15 ms, nearly all of it in the
    close() of the instance with a watch: the kernel waits there until no reader uses the watch
    any more.
    """
    outcome = {"instance": "untried", "watch": "untried", "uid": os.geteuid(), "opened": 0}
    try:
        import ctypes  # 5 ms that this child alone pays

        libc = ctypes.CDLL(None, use_errno=True)
        begin, add = libc.inotify_init1, libc.inotify_add_watch
    # MemoryError: where SELinux allows no memory that may be executed
    except (ImportError, AttributeError, OSError, MemoryError):
        return outcome
    opened = []
    try:
        outcome["instance"] = None
        while len(opened) < TRIED and outcome["instance"] is None:
            fd = begin(os.O_NONBLOCK | os.O_CLOEXEC)
            if fd < 0:
                outcome["instance"] = _name(ctypes.get_errno())
            else:
                opened.append(fd)
    finally:
        for fd in opened[1:]:
            os.close(fd)
    outcome["opened"] = len(opened)
    if opened:
        if add(opened[0], b"/", IN_DELETE_SELF) >= 0:
            outcome["watch"] = None
        else:
            outcome["watch"] = _name(ctypes.get_errno())
        os.close(opened[0])
    return outcome


def _name(number):
    return errno.errorcode.get(number, str(number))


def used_up(evidence):
    """Return the names of the machine's limits that are reached or nearly so.

    Only such a limit makes it worth while to look at every process.
    """
    tries, used, most = (
        evidence["inotify"],
        evidence["file_nr"],
        [
            procfs.number(evidence["kernel"].get(key, ""))
            for key in ("kernel.pid_max", "kernel.threads-max")
        ],
    )
    bounds = [value for value in most if value]
    checks = (
        ("inotify", tries["instance"] == "EMFILE" or tries["watch"] == "ENOSPC"),
        ("files", bool(used) and used[1] > 0 and used[0] >= FULL * used[1]),
        ("threads", bool(bounds) and (evidence["threads"] or 0) >= FULL * min(bounds)),
    )
    return [name for name, is_full in checks if is_full]


def init(proc="/proc"):
    """Return the limits and capability that PID 1 has; None where its limits cannot be read."""
    text = files.text(proc + "/1/limits", 8192, "")
    nofile, nproc = procfs.rlimit(text, "Max open files"), procfs.rlimit(text, "Max processes")
    if nofile is None or nproc is None:
        return None
    return {
        "nofile": nofile,
        "nproc": nproc,
        "cap_sys_resource": capable(files.text(proc + "/1/status", 16384, "")),
    }


def capable(status):
    """Return whether CAP_SYS_RESOURCE is in the bounding set; None if unknown."""
    words = procfs.status(status, "CapBnd")
    try:
        return bool(int(words[0], 16) >> CAP_SYS_RESOURCE & 1)
    except (IndexError, ValueError):
        return None


def _processes(of_interest, blocks):
    """Return the main processes of the units.

    A kubelet without a unit of its own, as in k3s, is among them.
    """
    mains = [
        (procfs.number(blocks[name].get("MainPID", ["0"])[0]), role, name)
        for name, role in ROLES
        if name in blocks
    ]
    if not any(pid and role == "kubelet" for pid, role, _dummy in mains):
        mains += [(pid, "kubelet", None) for pid in _kubelet(of_interest)]
    return [row for row in (process(pid, role, name) for pid, role, name in mains if pid) if row]


def _kubelet(of_interest):
    """Return [pid] of a kubelet that runs in no pod, or [] without one.

    A kubelet of a unit comes first.
    """
    candidates = []
    for pid, comm in of_interest:
        try:
            is_kubelet = procfs.component(comm, procfs.argv(pid)) == "kubelet"
        except OSError:
            continue
        group = procfs.cgroup(files.text(f"/proc/{pid}/cgroup", 65536, ""))
        if is_kubelet and not group["pod_uid"]:
            candidates.append((group["unit"] is None, pid))
    return [pid for _dummy, pid in sorted(candidates)[:1]]


def process(pid, role, name, proc="/proc"):
    """Return the limit and the number of a process's open files; None where it has ended."""
    base = f"{proc}/{pid}/"
    status = files.text(base + "status", 16384)
    if status is None:
        return None
    try:
        open_count = len(os.listdir(base + "fd"))
    except OSError:
        open_count = None
    return {
        "pid": pid,
        "comm": files.one_line(files.text(base + "comm", 64, ""), 64),
        "role": role,
        "uid": procfs.real_uid(status),
        "unit": name or procfs.cgroup(files.text(base + "cgroup", 65536, ""))["unit"],
        "nofile": procfs.rlimit(files.text(base + "limits", 8192, ""), "Max open files"),
        "open": open_count,
        "ticks": procfs.ticks(pid, proc),
    }


def of_unit(block):
    """Return the evidence of one unit; None when there is no such unit.

    ours: the LimitNOFILE= of kubemend's drop-in, which systemd may not have loaded yet.
    """
    unit = systemd.unit(block)
    if unit is None:
        return None
    facts = {
        key: unit[key]
        for key in (
            "name",
            "active_state",
            "sub_state",
            "result",
            "exec_main_status",
            "fragment_path",
        )
    }
    paths = ([unit["fragment_path"]] if unit["fragment_path"] else []) + unit["drop_in_paths"][
        :MAX_DROPINS
    ]
    rows = [row for path in paths for row in settings(path, files.text(path, MAX_TEXT, ""))]
    path = "{}/{}.d/{}".format(DROPINS, unit["name"], OURS)
    own_limits = [
        row["text"].partition("=")[2]
        for row in settings(path, files.text(path, MAX_TEXT, ""))
        if row["text"].startswith("LimitNOFILE=")
    ]
    return dict(
        facts,
        drop_in_paths=unit["drop_in_paths"],
        limit_nofile=limit_nofile(block),
        sets=rows[:MAX_LINES],
        ours=own_limits[-1] if own_limits else None,
    )


def limit_nofile(block):
    """Return [soft, hard] of systemd, None without a hard limit.

    An old systemd shows the hard limit only, and sets the soft limit to it.
    """
    hard, soft = [_limit(block.get(name, [""])[0]) for name in ("LimitNOFILE", "LimitNOFILESoft")]
    if hard is None:
        return None
    return [hard if soft is None else soft, hard]


def _limit(value):
    if value in INFINITE:
        return -1
    return procfs.number(value)


def settings(path, text):
    """Return the lines of a unit's file that set one of SETTINGS in its section [Service]."""
    rows, section = [], ""
    for number, line in systemd.joined(text):
        key, equal, value = line.partition("=")
        if line.startswith("["):
            section = line
        elif equal and section == "[Service]" and key.strip() in SETTINGS:
            rows.append(
                {
                    "path": path,
                    "line": number,
                    "text": files.one_line(key.strip() + "=" + value.strip(), LONGEST),
                }
            )
    return rows


def pam(folder="/etc/pam.d"):
    """Return the lines that name pam_limits.so, of every service."""
    rows = []
    try:
        names = sorted(os.listdir(folder))[: 2 * MAX_FILES]
    except OSError:
        return rows
    for name in names:
        path = os.path.join(folder, name)
        for number, text in systemd.joined(files.text(path, MAX_TEXT, ""), "#"):
            line = text.partition("#")[0]
            if "pam_limits.so" in line:
                rows.append({"path": path, "line": number, "text": files.one_line(line, LONGEST)})
    return rows[:MAX_LINES]


def _folders():
    """Return SYSCTL, without its last folder where that is the same as the one before."""
    if os.path.realpath(SYSCTL[-1]) == os.path.realpath(SYSCTL[-2]):
        return SYSCTL[:-1]
    return SYSCTL


def conf_files(folders):
    """Return (paths of *.conf by folder and name, records of folders that cannot be listed)."""
    paths, unlisted = [], []
    for folder in folders:
        try:
            paths += [
                os.path.join(folder, name)
                for name in sorted(os.listdir(folder))
                if name.endswith(".conf")
            ]
        except OSError as error:
            if files.reason(error) != "missing":
                unlisted.append(dict(files.record(folder), error=files.reason(error)))
    return paths, unlisted


def _records(paths, room):
    """Return (the records of these files, how many bytes of text there is room for after them)."""
    records = []
    for path in paths:
        record = files.record(path, limit=min(MAX_TEXT, room))
        room -= record["size"] if record["text"] is not None else 0
        records.append(record)
    return records, max(0, room)
