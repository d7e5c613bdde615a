# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of dpkg and dnf have of packages that a node stands on: when which one changed."""

import os
import time

from . import files

DPKG = ("/var/log/dpkg.log.1", "/var/log/dpkg.log")
DNF = ("/var/log/dnf.rpm.log.1", "/var/log/dnf.rpm.log")
LOG_BYTES, MAX_ROWS, LONGEST = 512 * 1024, 60, 80
NAMES = frozenset(
    (
        "apparmor",
        "chrony",
        "conmon",
        "container-selinux",
        "containerd",
        "containerd.io",
        "cri-dockerd",
        "cri-o",
        "cri-tools",
        "crun",
        "dbus",
        "docker-ce",
        "docker.io",
        "firewalld",
        "iptables",
        "iscsi-initiator-utils",
        "kubeadm",
        "kubelet",
        "kubernetes-cni",
        "moby-containerd",
        "moby-engine",
        "multipath-tools",
        "network-manager",
        "NetworkManager",
        "nfs-common",
        "nfs-utils",
        "nftables",
        "nvidia-container-toolkit",
        "open-iscsi",
        "openvswitch-switch",
        "runc",
        "systemd",
        "udev",
    )
)
PREFIXES = ("linux-image-", "nvidia-driver-", "nvidia-dkms-", "kernel-core", "selinux-policy")
OF_DPKG = {"upgrade": "upgrade", "install": "install", "remove": "remove"}
OF_DNF = {
    "Upgrade:": "upgrade",
    "Installed:": "install",
    "Erase:": "remove",
    "Downgrade:": "upgrade",
}
NONE = "<none>"


def changes(since, root=""):
    """Return ([{time, action, name, old, new}] since a time, oldest first; why not, or None).

    old, new: versions, empty where there is none, or the log does not tell it. Times are seconds
    since the epoch.
    """
    rows, problem = [], None
    for path, read in LOGS:
        written = files.mtime(root + path)
        if written is None or written < since:
            continue
        try:
            rows += _rows(root + path, read, since)
        except OSError as error:
            problem = files.reason(error)
    if not any(os.path.exists(root + path) for path, _dummy in LOGS):
        problem = "neither dpkg nor dnf has a log"
    rows.sort(key=lambda row: row["time"])
    return rows[-MAX_ROWS:], problem


def _rows(path, read, since):
    """Return the changes since a time in the end of a log."""
    data, _is_whole = files.last_lines(path, LOG_BYTES)
    rows = map(read, data.decode("utf-8", "replace").split("\n"))
    return [row for row in rows if row and row["time"] >= since]


def is_of_node(name):
    """Return whether a package is one that a node stands on."""
    return name in NAMES or name.startswith(PREFIXES)


def _of_dpkg(line):
    """Return the row of a line such as `DATE TIME upgrade NAME:ARCH OLD NEW`, or None."""
    words = line.split(" ")
    if len(words) != 6 or words[2] not in OF_DPKG:
        return None
    name = words[3].partition(":")[0]
    moment = _local(words[0] + " " + words[1])
    if not is_of_node(name) or moment is None:
        return None
    return _row(moment, OF_DPKG[words[2]], name, words[4], words[5])


def _of_dnf(line):
    """Return the row of a line such as `DATE SUBDEBUG Upgrade: NAME-VERSION-RELEASE.ARCH`."""
    words = line.split(" ")
    if len(words) != 4 or words[2] not in OF_DNF:
        return None
    name, version, release = ([*words[3].rsplit("-", 2), "", ""])[:3]
    moment = _zoned(words[0])
    if not is_of_node(name) or moment is None:
        return None
    action, text = OF_DNF[words[2]], version + "-" + release.rpartition(".")[0]
    if action == "remove":
        return _row(moment, action, name, text, "")
    return _row(moment, action, name, "", text)


def _row(moment, action, name, old, new):
    return {
        "time": moment,
        "action": action,
        "name": files.one_line(name, LONGEST),
        "old": _version(old),
        "new": _version(new),
    }


def _version(text):
    return "" if text == NONE else files.one_line(text, LONGEST)


def _local(text):
    """Return the seconds of a time of this machine's zone, None for what is none."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def _zoned(text):
    """Return the seconds of a time with its offset, as 2021-05-04T10:12:33+0200, or None."""
    import calendar  # the logs of most nodes do without it

    head, offset = text[:19], text[19:]
    sign = {"+": 1, "-": -1}.get(offset[:1])
    if offset != "Z" and (sign is None or len(offset) != 5 or not offset[1:].isdigit()):
        return None
    try:
        seconds = calendar.timegm(time.strptime(head, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None
    if offset == "Z":
        return float(seconds)
    return float(seconds - sign * (int(offset[1:3]) * 3600 + int(offset[3:]) * 60))


LOGS = (
    *((path, _of_dpkg) for path in DPKG),
    *((path, _of_dnf) for path in DNF),
)
