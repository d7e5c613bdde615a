# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of this node: its process, its unit and the files of its configuration."""

import os
import re

from ..shared.units import KUBELET as UNIT
from ..shared.units import KUBELET_OF_DISTRIBUTIONS as OTHERS
from . import files, procfs, systemd
from .command import CommandError

MAX_DROPINS = 64
PROXIES, MAX_PROXY = ("HTTPS_PROXY", "NO_PROXY"), 65536
SCHEMES = ("http", "https", "socks5")
ADDRESS = re.compile(
    r"(\[[0-9A-Fa-f:.]{1,60}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?(?=[/?#]|\Z)"
)
MAX_PORT, SHORTEST = 65535, 4  # digits that may be a password
USUAL_PORTS = frozenset(("80", "443", "1080", "3128", "8000", "8080", "8118", "8443", "8888"))
QUERY = re.compile(r"[?#]")
UNREADABLE = "[unreadable]"
DELETED = " (deleted)"  # what the kernel writes behind the path of a program that was removed


def here(processes, seconds=5):
    """Return (process, systemd's properties of its unit, the error of systemctl).

    Without a kubelet the process is None and the properties are {}. The error is None where
    systemd answered within these seconds.
    """
    units, trouble = _units(seconds)
    process = _process(processes, units)
    return process, units.get(_unit_of(process, units), {}), trouble


def question():
    """Return what it asks systemd: (names, properties, whether is-enabled is asked too)."""
    names = [UNIT]
    for path, units in OTHERS:
        if os.path.isdir(path):
            names += units
    return names, systemd.PROPERTIES, True


def _units(seconds):
    try:
        return systemd.show(question()[0], seconds=seconds), None
    except CommandError as error:
        return {}, error


def _process(processes, units):
    """Return the kubelet of this machine.

    This is the main process of a unit, else a process in no pod: a pod may hold a cluster of its
    own.
    """
    main = [
        int(block["MainPID"][0])
        for block in units.values()
        if block.get("MainPID", ["0"])[0] not in ("0", "")
    ]
    candidates = _candidates(processes, main)
    if not candidates:
        return None
    _is_main, in_pod, _in_container, pid, argv = min(candidates)
    if in_pod:
        return None
    exe, is_deleted = _program(pid)
    return {
        "pid": pid,
        "started_at": procfs.started_at(pid),
        "argv": files.masked_argv(argv),
        "raw": argv,
        "exe": exe,
        "exe_deleted": is_deleted,
        "proxy": proxy_of(pid),
    }


def _candidates(processes, main):
    """Return [(of no unit, in a pod, in a container, pid, argv)] of the kubelets that run."""
    candidates = []
    for pid, comm in processes:
        try:
            argv = procfs.argv(pid)
        except OSError:
            continue
        if argv and procfs.component(comm, argv) == "kubelet":
            group = procfs.cgroup(files.text(f"/proc/{pid}/cgroup") or "")
            in_pod, in_container = group["pod_uid"] is not None, group["container_id"] is not None
            candidates.append((pid not in main, in_pod, in_container, pid, argv))
    return candidates


def _program(pid):
    """Return (the path of a process's program, whether that was deleted); None where unknown."""
    exe = procfs.link(pid, "exe")
    if not exe:
        return exe, None
    if exe.endswith(DELETED):
        return exe[: -len(DELETED)], True
    return exe, False


def proxy_of(pid):
    """Return {HTTPS_PROXY, NO_PROXY} of a process's environment; None where it may not be read."""
    try:
        raw = procfs.files_of_proc(pid, "environ")
    except OSError:
        return None
    return proxies(raw.decode("utf-8", "backslashreplace").split("\0"))


def proxies(variables):
    """Return the proxy of an environment without its credentials, and what needs none.

    A program of Go takes the name in capitals first. The other variables may be secrets.
    """
    values = {}
    for variable in variables:
        name, equals, value = variable.partition("=")
        if equals and value and name.upper() in PROXIES:
            values.setdefault(name, value)
    chosen = {name: values.get(name) or values.get(name.lower()) for name in PROXIES}
    if chosen["HTTPS_PROXY"]:
        chosen["HTTPS_PROXY"] = _without_credentials(chosen["HTTPS_PROXY"])
    return {name: files.one_line(value, MAX_PROXY) for name, value in chosen.items() if value}


def _without_credentials(url):
    # A password may have any character that is not escaped: all before the last @ goes.
    # What is then no address may be a part of one, as may be what follows an @ in a query.
    before, at_sign, rest = url.rpartition("@")
    address = ADDRESS.match(rest.rpartition("://")[2])
    if address is None or QUERY.search(before):
        return UNREADABLE
    name = address.group(0)
    if not at_sign and _may_be_password(address.group(1), address.group(2)):
        name = address.group(1) + ":" + "*" * len(address.group(2))
    scheme = url.partition("://")[0].lower()
    if scheme in SCHEMES:
        return f"{scheme}://{name}"
    return name


def _may_be_password(host, port):
    """Return whether a name and a port may be a user and a password without what follows them.

    A proxy has an address, a name with a dot, or one of the usual ports.
    """
    if not port or len(port) < SHORTEST or port in USUAL_PORTS:
        return False
    is_host = "." in host or host.startswith("[") or host == "localhost"
    return not is_host or int(port) > MAX_PORT


def _unit_of(process, units):
    """Return the unit to report: the process's, else kubelet.service, else another present."""
    if process:
        name = procfs.cgroup(files.text("/proc/{}/cgroup".format(int(process["pid"]))) or "")[
            "unit"
        ]
        if name in units:
            return name
    present = [name for name, block in units.items() if systemd.unit(block)]
    return UNIT if UNIT in present or not present else present[0]


def dropin_paths(folder):
    """Return the *.conf files below the folder in the order in which the kubelet reads them."""
    paths = []
    for directory, folders, names in os.walk(folder):
        folders.sort()
        paths += [os.path.join(directory, name) for name in names if name.endswith(".conf")]
    return sorted(paths)[:MAX_DROPINS]
