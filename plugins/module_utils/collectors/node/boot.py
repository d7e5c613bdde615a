# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector boot: the modules, kernel settings and file systems that a node needs.

It also reads what loads, sets and mounts them at a boot.

It reads files of /proc, /sys and /etc. Where nftables.service is active, it asks systemd when that
was reloaded, together with what other collectors ask. The controller judges what the files mean
(plugin_utils/models/boot.py).
"""

import os
import re
import time

from ...shared.firewall_files import NFTABLES
from ...shared.kernel_modules import ABSENT, BUILTIN, LOAD, LOADED, MODULES, SINGLE
from ...shared.sysctl import RUNNING
from ...system import boot_firewall, command, files, procfs, rule_loaders, systemd
from . import limits, swap, unit_start

KUBELET = "/var/lib/kubelet"
FOLDERS = (
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/etcd",
    "/var/lib/rancher/k3s",
    "/var/lib/rancher/rke2",
)
FAPOLICYD = "fapolicyd.service"
NFTABLES_UNIT = NFTABLES + ".service"
CHANGED, RELOAD = "StateChangeTimestampMonotonic", "ExecReload"
WORDS = ("modules_load", "rd.modules_load", "selinux", "enforcing", "fstab")
MAX_TEXT, MAX_FILES, MAX_MOUNTS, MAX_DEVICES = 65536, 100, 8 * 1024 * 1024, 100
# Programs of a node for which distributions have profiles of AppArmor, and the names of those.
PROFILED = frozenset(
    ("runc", "crun", "conmon", "containerd", "containerd-shim-runc-v2", "crio", "dockerd")
)
PROFILE = re.compile(r"(\S{1,200}) \((enforce|complain|unconfined|kill|prompt|mixed)\)")
MAX_PROFILES, MAX_PROFILE_TEXT = 20, 1024 * 1024
TAGS = {
    "UUID": "by-uuid",
    "LABEL": "by-label",
    "PARTUUID": "by-partuuid",
    "PARTLABEL": "by-partlabel",
}
# A name, maybe in quotes; udev writes other characters as \x20.
DEVICE_NAME = re.compile(r"""(["']?)([A-Za-z0-9#+.:=@_/-]+)\1\Z""")


def collect(context):
    """Return the state of the kernel, what sets it at the next boot, and how folders are mounted.

    The folders are those of the kubelet, the runtime and etcd.
    """
    context.source = "/proc, /sys, modules-load.d, /etc/selinux/config, firewalld, ufw, nftables"
    argv = (context.data.get("kubelet") or {}).get("argv") or []
    here = folders(procfs.flag(argv, "root-dir") or KUBELET)
    paths, unlisted = limits.conf_files(_load())
    if os.path.lexists(SINGLE):
        paths += [SINGLE]
    context.truncated = len(paths) > MAX_FILES
    records = [files.record(path, limit=MAX_TEXT) for path in paths[:MAX_FILES]]
    modes = selinux()
    return {
        "running": running(),
        "modules": modules(),
        "tree": os.path.isdir("/lib/modules/" + os.uname()[2]),
        "modules_files": records + unlisted,
        "cmdline": cmdline(files.whole("/proc/cmdline")),
        "folders": here,
        "mounts": with_errors(mounts(_mounts(), points(here))),
        "selinux": modes,
        "container": swap.container(),
        "devices": devices(files.whole("/etc/fstab", MAX_TEXT)),
        "firewall": firewalls(context.seconds),
        "fapolicyd": boot_firewall.active(FAPOLICYD),
        "denials": boot_firewall.denials() if modes["enforce"] == "1" else None,
        "apparmor": apparmor(),
    }


def question():
    """Return the question to systemd: (names, properties, whether is-enabled is asked too)."""
    return (NFTABLES_UNIT,), ("Id", CHANGED, RELOAD), False


def firewalls(seconds, root=""):
    """Return {name: record} of the firewalls, and of services that load a ruleset."""
    records = dict(boot_firewall.collect(root), **rule_loaders.collect(root))
    nftables = records.get(NFTABLES)
    if nftables and nftables["active"]:
        nftables.update(reload_of(_nftables_block(seconds)))
    return records


def _nftables_block(seconds):
    names, properties, _dummy = question()
    try:
        return systemd.show(names, properties, seconds(2)).get(NFTABLES_UNIT) or {}
    except command.CommandError:
        return {}


def reload_of(block):
    """Return {changed_at, reload_failed} of a unit, each None where it is not known.

    Its state changes at its start and at a reload. Without a reload ExecReload has no time.
    """
    text = block.get(RELOAD, [""])[-1]
    failed = None
    if "start_time=[" in text and "start_time=[n/a]" not in text:
        failed = "code=exited ; status=0" not in text
    changed = procfs.number(block.get(CHANGED, [""])[0])
    return {"changed_at": unit_start.moment(changed), "reload_failed": failed}


def _load():
    """Return LOAD, without its last folder where that is the same as the one before."""
    if os.path.realpath(LOAD[-1]) == os.path.realpath(LOAD[-2]):
        return LOAD[:-1]
    return LOAD


def running(base="/proc/sys/"):
    """Return {key: its text, None where it is there and cannot be read}.

    A key that the kernel does not have is left out.
    """
    values = {}
    for key in RUNNING:
        try:
            values[key] = (
                files.read(base + key.replace(".", "/"), 256).decode("ascii", "replace").strip()
            )
        except OSError as error:
            if files.reason(error) != "missing":
                values[key] = None
    return values


def modules(proc="/proc", sys="/sys", tree=None):
    """Return {name: loaded, builtin or absent}; None if unknown."""
    loaded_names = loaded(proc)
    tree = tree or "/lib/modules/" + os.uname()[2]
    builtin_names = _builtin_names(proc, tree)
    return {name: _module_state(name, loaded_names, builtin_names, sys) for name in MODULES}


def _builtin_names(proc, tree):
    """Return the names of what this kernel has without a module."""
    names = set(builtins(files.whole(tree + "/modules.builtin") or ""))
    if os.path.isdir(proc + "/sys/net/bridge"):
        names.add("br_netfilter")
    if overlay(files.whole(proc + "/filesystems") or ""):
        names.add("overlay")
    return names


def _module_state(name, loaded_names, builtin_names, sys):
    if loaded_names and name in loaded_names:
        return LOADED
    if name in builtin_names or os.path.isdir(os.path.join(sys, "module", name)):
        return BUILTIN
    if loaded_names is None:
        return None
    return ABSENT


def loaded(proc):
    """Return the names of the loaded modules, or None where they cannot be read.

    A kernel that takes no modules has no /proc/modules.
    """
    listed = files.whole(proc + "/modules")
    if listed is not None:
        return {line.partition(" ")[0] for line in listed.split("\n")}
    if os.path.exists(proc + "/filesystems") and not os.path.exists(proc + "/modules"):
        return {""}
    return None


def builtins(text):
    """Return the names in modules.builtin: the paths of what would be their files."""
    return {
        line.rpartition("/")[2].partition(".")[0].replace("-", "_")
        for line in text.split("\n")
        if line
    }


def overlay(text):
    """Return whether the kernel knows this file system."""
    return any(line.split()[-1:] == ["overlay"] for line in text.split("\n"))


def folders(root):
    """Return {folder: its real path, None where it is missing}.

    The folders are those of the kubelet, of the runtimes and of etcd.
    """
    return {
        path: os.path.realpath(path) if os.path.lexists(path) else None
        for path in (os.path.normpath(root), *FOLDERS)
        if path.startswith("/")
    }


def points(here):
    """Return every path where the file system of one of these folders may be mounted."""
    paths = set("/")
    for folder in list(here) + [real for real in here.values() if real]:
        path = folder
        while path.strip("/"):
            paths.add(path)
            path = os.path.dirname(path)
    return paths


def _mounts():
    try:
        data = files.read("/proc/self/mounts", MAX_MOUNTS)
    except OSError:
        return None
    if len(data) < MAX_MOUNTS:
        return data.decode("utf-8", "backslashreplace")
    return None


def mounts(text, mount_points):
    """Return [{point, source, type, options}] of what is mounted on these points; None if unknown.

    The last mount on a point counts.
    """
    if text is None:
        return None
    records = {}
    for line in text.split("\n"):
        words = line.split(" ")
        if len(words) > 3 and words[1] in mount_points:
            records[words[1]] = {
                "point": words[1],
                "source": files.one_line(words[0], 200),
                "type": files.one_line(words[2], 40),
                "options": files.one_line(words[3], 200),
            }
    return [records[point] for point in sorted(records)]


def with_errors(records, sys="/sys", proc="/proc", now=time.time):
    """Add to each ext4 file system the errors that the kernel counts for it.

    After an error, newer kernels (measured: 6.1.0-56 of Debian 12) refuse writes and still say rw
    in /proc/mounts.
    """
    for record in records or ():
        if record["type"] == "ext4":
            # The path of the device and not of the mount: nothing is asked of a disk that fails.
            name = os.path.basename(os.path.realpath(record["source"]))
            record.update(_ext4_errors(name, sys, proc, now()))
    return records


def _ext4_errors(name, sys, proc, now):
    folder = os.path.join(sys, "fs/ext4", name)
    count = _integer(files.text(os.path.join(folder, "errors_count"), 32))
    last = _integer(files.text(os.path.join(folder, "last_error_time"), 32))
    uptime = (files.text(os.path.join(proc, "uptime"), 64) or "").partition(".")[0]
    options = files.text(os.path.join(proc, "fs/ext4", name, "options"), 4096) or ""
    reactions = [line[7:] for line in options.split("\n") if line.startswith("errors=")]
    since_boot = None
    if last is not None and uptime.isdigit():
        since_boot = last >= now - int(uptime)
    return {
        "error_count": count,
        "error_since_boot": since_boot,
        "on_error": files.one_line(reactions[0], 40) if reactions else None,
    }


def devices(fstab, dev="/dev"):
    """Return {device as fstab writes it: whether it is there}; None where no fstab was read.

    A tag is left out where udev makes no links, and so is a name that udev spells in another way.
    """
    if fstab is None:
        return None
    states = {}
    for line in fstab.split("\n"):
        device = (line.split() or [""])[0]
        path = _device(device, dev)
        if path and len(states) < MAX_DEVICES:
            states[device] = os.path.exists(path)
    return states


def _device(device, dev):
    """Return the path of a device of fstab; empty for what is none, or has another spelling."""
    tag, _equals, value = device.partition("=")
    if tag in TAGS:
        return _link(os.path.join(dev, "disk"), TAGS[tag], value)
    if device.startswith("/dev/") and DEVICE_NAME.match(device):
        return os.path.join(dev, device[len("/dev/") :])
    return ""


def _link(links, folder, value):
    """Return the path of udev's link; empty where udev makes none, or spells the name otherwise."""
    name = DEVICE_NAME.match(value)
    if name and "/" not in value and os.path.isdir(links):
        return os.path.join(links, folder, name.group(2))
    return ""


def _integer(text):
    """Return the number in a file of sysfs; None where there is none."""
    text = (text or "").strip()
    if text.isdigit():
        return int(text)
    return None


def cmdline(text):
    """Return [[key, value]] of the words about modules, SELinux and fstab; None if unknown.

    The characters - and _ are the same in a key.
    """
    if text is None:
        return None
    pairs = (word.partition("=")[::2] for word in text.split())
    return [
        [key.replace("-", "_"), files.one_line(value, 200)]
        for key, value in pairs
        if key.replace("-", "_") in WORDS
    ]


def apparmor(sys="/sys"):
    """Return {profile: its mode} of the runtime's programs; None where that cannot be read."""
    text = files.text(sys + "/kernel/security/apparmor/profiles", MAX_PROFILE_TEXT)
    if text is None:
        return None
    modes = {}
    for row in filter(None, map(PROFILE.match, text.split("\n"))):
        if os.path.basename(row.group(1)) in PROFILED and len(modes) < MAX_PROFILES:
            modes[row.group(1)] = row.group(2)
    return modes


def selinux(sys="/sys", etc="/etc"):
    """Return {enforce: what runs, config: what a boot makes}; None for each that is not there."""
    config = None
    for line in (files.text(etc + "/selinux/config", MAX_TEXT) or "").split("\n"):
        key, equals, value = line.strip().partition("=")
        if equals and key == "SELINUX":
            config = files.one_line(value.strip().lower(), 40)
    enforce = files.text(sys + "/fs/selinux/enforce", 16)
    return {"enforce": enforce.strip() if enforce is not None else None, "config": config}
