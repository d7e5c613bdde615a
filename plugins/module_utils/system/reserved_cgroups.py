# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the cgroups exist that a kubelet is to limit, and which it has made for pods."""

import os
import re

from . import files, procfs, yaml_scalars

KEYS = (
    ("kubeReservedCgroup", "kube-reserved-cgroup"),
    ("systemReservedCgroup", "system-reserved-cgroup"),
)
# Those without which every kubelet says that a cgroup of v1 does not exist.
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
SLICE = ".slice"
ROOTS = ("kubepods.slice", "kubepods")
_PLAIN = re.compile(r"/?[\w.@:-]{1,200}(?:/[\w.@:-]{1,200}){0,20}/?")


def cgroups(kubelet, mountinfo=None):
    """Return [{name, driver, path, missing}]: the folders that are not there, None if unseen."""
    names = sorted({name for name in _names(kubelet) if name and _PLAIN.fullmatch(name)})
    if names:
        mounts = _mounts(
            files.whole("/proc/self/mountinfo") or "" if mountinfo is None else mountinfo
        )
    else:
        mounts = []
    return [
        {"name": name, "driver": driver, "path": path, "missing": _missing(mounts, path)}
        for name in names
        for driver, path in (("cgroupfs", "/" + name.strip("/")), ("systemd", systemd_path(name)))
    ]


def of_pods(mount="/sys/fs/cgroup"):
    """Return the names of the cgroups for all pods that are there, by the driver of their kubelet.

    A kubelet makes one when it starts. Both are there until the next boot where its driver changed.
    """
    folders = [mount] + [os.path.join(mount, controller) for controller in CONTROLLERS]
    return [
        name
        for name in ROOTS
        if any(os.path.isdir(os.path.join(folder, name)) for folder in folders)
    ]


def _names(kubelet):
    """Return what its command line or its files name, by the last word."""
    argv = kubelet.get("argv") or []
    records = [kubelet.get("config") or {}] + (kubelet.get("config_dropins") or [])
    for key, flag in KEYS:
        values = [yaml_scalars.top(record.get("text") or "", key) for record in records]
        yield procfs.flag(argv, flag) or ([value for value in values if value] or [None])[-1]


def systemd_path(name):
    """Return the folder that a kubelet with the systemd driver makes of a name.

    The folder of a slice is within the folders of its parent slices.
    """
    base = os.path.basename(name.rstrip("/"))
    if base.endswith(SLICE):
        stem = base[: -len(SLICE)]
    else:
        stem = base
    parts = stem.split("-")
    return "/" + "/".join("-".join(parts[:count]) + SLICE for count in range(1, len(parts) + 1))


def _mounts(mountinfo):
    """Return [(mount point, the file that shows a cgroup)] of the kubelet's cgroup hierarchies."""
    mounts = []
    for line in mountinfo.splitlines():
        before, _dummy, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        if kind[0] == "cgroup" and any(
            controller in CONTROLLERS for controller in kind[-1].split(",")
        ):
            mounts.append((fields[4], ""))
        elif kind[0] == "cgroup2" and fields[4] == "/sys/fs/cgroup":
            mounts.append((fields[4], "/cgroup.controllers"))
    return mounts


def _missing(mounts, path):
    if not mounts:
        return None
    return [mount + path for mount, shows in mounts if not os.path.exists(mount + path + shows)]
