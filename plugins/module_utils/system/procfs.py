# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes by /proc, with the command lines of components of Kubernetes only.

Reading the name (comm) of a process never blocks; reading its command line can, when its memory is
locked. The program itself therefore reads only names, and a child process of a collector reads the
rest.
"""

import os

from . import files

# The kernel keeps 15 characters of a name.
NAMES = {
    "kubelet": "kubelet",
    "kube-scheduler": "kube-scheduler",
    "kube-controller": "kube-controller-manager",
    "kube-apiserver": "kube-apiserver",
    "cloud-controlle": "cloud-controller-manager",
    "etcd": "etcd",
    "hyperkube": None,
    "kubelite": "kubelet",
    "k3s": "kubelet",
    "k3s-server": "kubelet",
    "k3s-agent": "kubelet",
    "rke2": None,
}
HYPERKUBE = {
    "kubelet": "kubelet",
    "scheduler": "kube-scheduler",
    "kube-scheduler": "kube-scheduler",
    "controller-manager": "kube-controller-manager",
    "kube-controller-manager": "kube-controller-manager",
    "apiserver": "kube-apiserver",
    "kube-apiserver": "kube-apiserver",
    "cloud-controller-manager": "cloud-controller-manager",
}
MAX_ARGV = 256 * 1024


def of_interest(proc="/proc"):
    """Return [(pid, comm)] of the processes whose name is known, by pid."""
    processes = []
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            descriptor = os.open(proc + "/" + name + "/comm", os.O_RDONLY)
        except OSError:
            continue  # it ended, or hidepid hides it
        try:
            comm = os.read(descriptor, 64).rstrip(b"\n").decode("ascii", "replace")
        except OSError:
            comm = ""
        os.close(descriptor)
        if comm in NAMES:
            processes.append((int(name), comm))
    return sorted(processes)


def any_of(components, processes):
    """Return whether one of these components may be among the processes.

    A hyperkube process may be any component.
    """
    return any(comm == "hyperkube" or NAMES[comm] in components for _dummy, comm in processes)


def component(comm, argv):
    """Return the component that a process is; None for another process."""
    if comm == "hyperkube":
        if len(argv) > 1:
            word = next((item for item in argv[1:] if not item.startswith("-")), "")
        else:
            word = ""
        return HYPERKUBE.get(word)
    name = NAMES.get(comm)
    if comm in ("k3s", "k3s-server", "k3s-agent") and comm == "k3s":
        if len(argv) > 1 and argv[1] in ("server", "agent"):
            return name
        return None
    return name


def argv(pid, proc="/proc"):
    """Return the command line; OSError when it is hidden or the process is gone."""
    raw = files_of_proc(pid, "cmdline", proc)
    items = raw.decode("utf-8", "backslashreplace").split("\0")
    if items and items[-1] == "":
        return items[:-1]
    return items


def files_of_proc(pid, name, proc="/proc"):
    """Return the bytes of one of its files, bounded."""
    descriptor = os.open(f"{proc}/{pid}/{name}", files.FLAGS)
    chunks, size = [], 0
    try:
        while size < MAX_ARGV:
            chunk = os.read(descriptor, 65536)
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def link(pid, name, proc="/proc"):
    """Return where one of its links points, or None."""
    try:
        return os.readlink(f"{proc}/{pid}/{name}")
    except OSError:
        return None


def has_ended(root):
    """Return whether the process of this root in /proc is gone; a root that is denied is not."""
    try:
        os.stat(root)
    except OSError as error:
        return files.reason(error) == "missing"
    return False


def file_of(pid, path, limit, proc="/proc"):
    """Return the bytes that a process has at a path; of one that has ended, those of the host.

    A component that ends every few seconds ends while it is read, too. Its next start, by a static
    pod, has the files of the host.
    """
    root = f"{proc}/{pid}/root"
    try:
        return files.read(path, limit, root)
    except OSError:
        if not has_ended(root):
            raise
    return files.read(path, limit)


def started_at(pid, proc="/proc"):
    """Return when a process started, in seconds since the epoch; None when it is gone."""
    stat = files.text(f"{proc}/{pid}/stat")
    uptime = files.text(proc + "/uptime")
    if stat and uptime:
        return start_of(stat, uptime, _now(), os.sysconf("SC_CLK_TCK"))
    return None


def ticks(pid, proc="/proc"):
    """Return when a process started, in clock ticks since the boot; None when it is gone.

    With its pid this number identifies a process, even after the pid is reused.
    """
    stat = files.text(f"{proc}/{pid}/stat") or ""
    fields = stat.rpartition(")")[2].split()
    if len(fields) > 19:
        return int(fields[19])
    return None


def state(pid, proc="/proc"):
    """Return the letter of a process's state, such as T of one that is stopped; None when gone."""
    fields = (files.text(f"{proc}/{pid}/stat") or "").rpartition(")")[2].split()
    if fields:
        return fields[0]
    return None


def _now():
    import time

    return time.time()


def start_of(stat, uptime, now, ticks):
    """Return when a process started in seconds since the epoch, by the texts of stat and uptime.

    The name of a process may contain spaces and brackets, so that the fields begin after the last
    closing bracket.
    """
    try:
        age = float(uptime.split()[0]) - int(stat.rpartition(")")[2].split()[19]) / float(ticks)
        return round(now - age, 2)
    except (IndexError, ValueError):
        return None


def flag(argv_of, name):
    """Return the value of a flag as the component reads it, None when the flag is not given.

    The last occurrence counts, and `_` equals `-`.
    """
    last_value, flag_name = None, name.replace("_", "-")
    for index, item in enumerate(argv_of):
        if not item.startswith("-"):
            continue
        key, equal, value = item.lstrip("-").partition("=")
        if key.replace("_", "-") != flag_name:
            continue
        if index + 1 < len(argv_of):
            following = argv_of[index + 1]
        else:
            following = ""
        if equal:
            last_value = value
        elif following.startswith("-"):
            last_value = ""
        else:
            last_value = following
    return last_value


def cgroup(text):
    """Return {pod_uid, static, container_id, unit} of /proc/PID/cgroup.

    The outermost pod counts, because a pod may itself hold a cluster.
    """
    group = {"pod_uid": None, "static": None, "container_id": None, "unit": None}
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        parts = list(filter(None, path.replace(":", "/").split("/")))
        uids = [uid for uid in map(_pod_uid, parts) if uid]
        units = [part for part in parts if part.endswith(".service")]
        if uids:
            containers = [container for container in map(_container, parts) if container]
            static = len(uids[0]) == 32 and "-" not in uids[0]
            return {
                "pod_uid": uids[0],
                "static": static,
                "container_id": containers[0] if containers else None,
                "unit": None,
            }
        if units and not group["unit"]:
            group["unit"] = units[0]
    return group


def session(text):
    """Return the scope or service of the login that a process belongs to, by its /proc/PID/cgroup.

    This is the scope of its session, else the manager of its user; None where there is neither.
    """
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        for part in path.split("/") if path.startswith("/user.slice/") else ():
            if (part.startswith("session-") and part.endswith(".scope")) or (
                part.startswith("user@") and part.endswith(".service")
            ):
                return part
    return None


def _pod_uid(part):
    if part.endswith(".slice"):
        part = part[: -len(".slice")]
        if not part.startswith("kubepods"):
            return None
        if "-pod" in part:
            part = part.rpartition("-pod")[2]
        else:
            part = ""
    elif part.startswith("pod"):
        part = part[3:]
    else:
        return None
    uid = part.replace("_", "-")
    if len(uid) in (32, 36) and all(char in "0123456789abcdef-" for char in uid):
        return uid
    return None


def _container(part):
    if part.startswith("crio-conmon-"):
        return None  # CRI-O's monitor of the container, in a cgroup of its own beside it
    if part.endswith(".scope"):
        part = part[: -len(".scope")]
    part = part.rpartition("-")[2]
    if len(part) == 64 and all(char in "0123456789abcdef" for char in part):
        return part
    return None


def rlimit(text, name):
    """Return [soft, hard] of a line of /proc/PID/limits, unlimited as -1; None without the line."""
    for line in text.splitlines():
        if line.startswith(name + " "):
            values = [
                -1 if word == "unlimited" else number(word)
                for word in line[len(name) :].split()[:2]
            ]
            if len(values) == 2 and None not in values:
                return values
            return None
    return None


def status(text, key):
    """Return the words of a line of /proc/PID/status; [] where it is not there."""
    for line in text.splitlines():
        if line.startswith(key + ":"):
            return line[len(key) + 1 :].split()
    return []


def real_uid(text):
    """Return the user of a process, by its /proc/PID/status; None where that has none."""
    words = status(text, "Uid")
    if words:
        return number(words[0])
    return None


def number(word):
    """Return a number as the kernel prints it; None for anything else."""
    if word.isdecimal() and len(word) <= 20:
        return int(word)
    return None


def host_path(inside, mountinfo, host_mountinfo):
    """Return a possible path on the host of a container's path, by the two mountinfo texts.

    The result is None when no mount leads to one. The caller verifies the path by device and inode.
    """
    mount = _mount_of(inside, mountinfo)
    if mount is None:
        return None
    device, root, point = mount
    source = root.rstrip("/") + inside[len(point.rstrip("/")) :]
    for other, other_root, other_point in mounts(host_mountinfo):
        base = other_root.rstrip("/")
        if other == device and _is_within(source, base):
            return other_point.rstrip("/") + source[len(base) :]
    return None


def _mount_of(path, mountinfo):
    """Return the mount that shows the path: the deepest, and of several there the last."""
    best, depth = None, 0
    for mount in mounts(mountinfo):
        point = mount[2].rstrip("/")
        if _is_within(path, point) and len(point) >= depth:
            best, depth = mount, len(point)
    return best


def _is_within(path, folder):
    return path == folder or path.startswith(folder + "/")


def mounts(text):
    """Return [(device, root, mount point)] of mountinfo, with its octal escapes undone."""
    rows = []
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) > 4:
            root, point = [
                field.replace("\\040", " ")
                .replace("\\011", "\t")
                .replace("\\012", "\n")
                .replace("\\134", "\\")
                for field in fields[3:5]
            ]
            rows.append((fields[2], root, point))
    return rows
