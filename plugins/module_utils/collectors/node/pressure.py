# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector pressure: what a kubelet's eviction signals measure.

A quiet node pays a statvfs() of two file systems. The collector largest follows where something is
nearly used up. That choice is coarse: the controller judges by the kubelet's configuration.
"""

import os

from ...system import etcd_folder, files, procfs, yaml_scalars
from ..base import Absent
from . import limits

ROOT_DIR = "/var/lib/kubelet"
# The folder of a runtime, by a part of the path of its socket: the first that fits.
IMAGES = (
    ("k3s", "/var/lib/rancher/k3s/agent/containerd"),
    ("rke2", "/var/lib/rancher/rke2/agent/containerd"),
    ("k0s", "/var/lib/k0s/containerd"),
    ("microk8s", "/var/snap/microk8s/common/var/lib/containerd"),
    ("crio", "/var/lib/containers/storage"),
    ("docker", "/var/lib/docker"),
    ("containerd", "/var/lib/containerd"),
)
# A kubelet's own thresholds, in percent or in bytes.
DEFAULTS = {
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
    "memory.available": "100Mi",
    "pid.available": "5%",
}
UNITS = {
    "": 1,
    "k": 1000,
    "M": 1000**2,
    "G": 1000**3,
    "T": 1000**4,
    "Ki": 1024,
    "Mi": 1024**2,
    "Gi": 1024**3,
    "Ti": 1024**4,
}
NEAR = 1.1  # times a threshold: what is above it is not looked at
MEMORY_NEAR = 2  # the kubelet counts by control groups, which differs from MemAvailable
MAX_MOUNTS = 8 * 1024 * 1024


def collect(context):
    """Return {filesystems, memory, pids, cgroups, stalls, used_up}.

    used_up: the names of what is nearly used up.
    """
    kubelet = context.data.get("kubelet")
    if not kubelet:
        raise Absent("no kubelet")
    context.source = "statvfs, /proc/meminfo, /proc/loadavg, /proc/cgroups, /proc/pressure"
    root = root_dir(kubelet)
    table = mounts(files.whole("/proc/self/mountinfo", MAX_MOUNTS) or "")
    evidence = {
        "filesystems": [filesystem("nodefs", root, table)],
        "pids": pids(),
        "memory": memory(files.text("/proc/meminfo", 16384, "")),
        "cgroups": cgroups(files.text("/proc/cgroups", 4096, "")),
        "stalls": etcd_folder.stalls(),
    }
    evidence["filesystems"] += [filesystem("imagefs", path, table) for path in images(kubelet)]
    evidence["used_up"] = used_up(evidence, thresholds(threshold_texts(kubelet)))
    return evidence


def cgroups(text):
    """Return {memory: how many memory cgroups there are}, None where the kernel counts none."""
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["memory"] and words[3:] == ["1"]:
            return {"memory": int(words[2]) if words[2].isdigit() else None}
    return {"memory": None}


def root_dir(kubelet):
    """Return the folder of the kubelet's data, as its command line names it."""
    return procfs.flag(kubelet.get("argv") or [], "root-dir") or ROOT_DIR


def images(kubelet, exists=os.path.isdir):
    """Return the folders where this kubelet's runtime keeps images."""
    socket = _runtime_socket(kubelet) or ""
    candidates = [path for part, path in IMAGES if part in socket][:1]
    return [path for path in candidates or [path for _dummy, path in IMAGES] if exists(path)]


def _runtime_socket(kubelet):
    """Return the socket of the runtime, as the command line or else the last file names it."""
    socket = procfs.flag(kubelet.get("argv") or [], "container-runtime-endpoint")
    if socket:
        return socket
    for record in reversed([kubelet.get("config")] + (kubelet.get("config_dropins") or [])):
        if record and record["text"]:
            socket = yaml_scalars.top(record["text"], "containerRuntimeEndpoint")
        if socket:
            return socket
    return None


def mounts(text):
    """Return [(mount point, device, type)] of mountinfo, in its order.

    A later mount covers an earlier one.
    """
    rows = procfs.mounts(text)
    types = [
        line.partition(" - ")[2].split(" ")[0]
        for line in text.splitlines()
        if len(line.split(" ")) > 4
    ]
    return [(point, device, kind) for (device, _dummy, point), kind in zip(rows, types)]


def mount_of(path, table):
    """Return the (mount point, device, type) that a path lies on, or None."""
    best = None
    for row in table:
        base = row[0].rstrip("/")
        within = path == base or path.startswith(base + "/")
        if within and (best is None or len(base) >= len(best[0].rstrip("/"))):
            best = row
    return best


def filesystem(name, path, table):
    """Return what is free on the file system of a folder."""
    record = {
        "name": name,
        "path": path,
        "mount": None,
        "type": None,
        "device": None,
        "total": None,
        "free": None,
        "inodes": None,
        "inodes_free": None,
        "error": None,
    }
    try:
        real = os.path.realpath(path)
        mount = mount_of(real, table)
        if mount:
            record.update(mount=mount[0], device=mount[1], type=mount[2])
        stats = os.statvfs(real)
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    # Some filesystems (btrfs) count no inodes.
    if stats.f_files:
        inodes = (stats.f_files, stats.f_ffree)
    else:
        inodes = (None, None)
    record.update(
        total=stats.f_blocks * stats.f_frsize,
        free=stats.f_bavail * stats.f_frsize,
        inodes=inodes[0],
        inodes_free=inodes[1],
    )
    return record


def memory(text):
    """Return {total, available} in bytes, None where the kernel does not say."""
    sizes = {"total": None, "available": None}
    for line in text.splitlines():
        name, _dummy, value = line.partition(":")
        key = {"MemTotal": "total", "MemAvailable": "available"}.get(name)
        if key and procfs.number((value.split() or [""])[0]) is not None:
            sizes[key] = int(value.split()[0]) * 1024
    return sizes


def pids():
    """Return {threads, max}: how many run, and how many can."""
    kernel = limits.kernel()
    most = [procfs.number(kernel.get(key, "")) for key in ("kernel.pid_max", "kernel.threads-max")]
    most = [value for value in most if value]
    return {
        "threads": limits.threads(files.text("/proc/loadavg", 256, "")),
        "max": min(most) if most else None,
    }


def threshold_texts(kubelet):
    """Return every text that may set a threshold: configuration files and command line."""
    records = [kubelet.get("config")] + (kubelet.get("config_dropins") or [])
    texts = [record["text"] for record in records if record and record.get("text")]
    return [*texts, " ".join(kubelet.get("argv") or [])]


def thresholds(texts):
    """Return {signal: values}: the kubelet's default and every value that a text has for it."""
    by_signal = {signal: [value] for signal, value in DEFAULTS.items()}
    for text in texts:
        for signal, values in by_signal.items():
            at = text.find(signal)
            while at >= 0:
                values.append(value_at(text, at + len(signal)))
                at = text.find(signal, at + 1)
    return by_signal


def value_at(text, start):
    """Return the word behind a signal's name, up to the end of a value in YAML, JSON or a flag."""
    rest = text[start : start + 64].lstrip("\"': <=")
    for index, char in enumerate(rest):
        if char in " ,;\"'\n}":
            return rest[:index]
    return rest


def amount(value, total):
    """Return a threshold as a number, by the total for a percentage; None for other text."""
    number = value.rstrip("%kKMGTi")
    try:
        count = float(number)
    except ValueError:
        return None
    unit = value[len(number) :]
    if unit == "%":
        if total is None:
            return None
        return count * total / 100
    if unit in UNITS:
        return count * UNITS[unit]
    return None


def used_up(evidence, by_signal):
    """Return the signals whose measure is below a threshold, or nearly so."""
    short = []
    for row in evidence["filesystems"]:
        for field, signal, total in (
            ("free", ".available", "total"),
            ("inodes_free", ".inodesFree", "inodes"),
        ):
            if _is_short(row[field], by_signal[row["name"] + signal], row[total], NEAR):
                short.append(row["name"] + signal)
    ram, pid = evidence["memory"], evidence["pids"]
    if _is_short(ram["available"], by_signal["memory.available"], ram["total"], MEMORY_NEAR):
        short.append("memory.available")
    if None in (pid["threads"], pid["max"]):
        free = None
    else:
        free = pid["max"] - pid["threads"]
    if _is_short(free, by_signal["pid.available"], pid["max"], NEAR):
        short.append("pid.available")
    return short


def _is_short(free, values, total, near):
    bounds = [bound for bound in (amount(value, total) for value in values) if bound is not None]
    return free is not None and bool(bounds) and free <= near * max(bounds)
