# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of this node restarted so that it has its limit at once.

What must hold before, and the proof of its new process.

Only where its operator allowed it by name. What it would take with it is asked of systemd and the
kernel, not known by a list: units that must follow it, processes of containers that its way of
ending would kill, somebody else's changes that its next start would load.
"""

import json
import os
import re

from ..shared import restart_impact as pending
from ..system import command, files, procfs
from ..system import systemd as unit
from . import kubelet_restart
from . import preconditions as guard
from .handlers import service_start as kubelet_service

ALLOW = "service_restart"
SECONDS = 240  # a unit may take 90 to stop and as many to start
# seconds that a unit may take to stop: one that may take longer cannot be watched until it is back
STOPS = 180
ASKING = 60
DOCKER, DOCKER_CONFIG = "docker.service", "/etc/docker/daemon.json"
PROPERTIES = (
    *unit.PROPERTIES,
    "Type",
    "KillMode",
    "RefuseManualStart",
    "RefuseManualStop",
    "TimeoutStopUSec",
    "ControlGroup",
    "RequiredBy",
    "RequisiteOf",
    "BoundBy",
    "ConsistsOf",
    "PropagatesStopTo",
)
# who is stopped or restarted with it
FOLLOW = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")
# of KillMode: what is in the unit's control group beside its main process lives on
SPARES = ("process", "none")
# Without which the machine, its network or its disks, or the cluster loses more than a service:
# their restart is never for the sake of a limit.
NEVER = (
    "systemd-",
    "dbus",
    "etcd",
    "kube-",
    "haproxy",
    "keepalived",
    "NetworkManager",
    "networking",
    "wicked",
    "firewalld",
    "openvswitch",
    "ovs-",
    "flanneld",
    "iscsid",
    "multipathd",
    "ceph-",
    "glusterd",
)
# as the kernel cuts their names
SHIMS = ("containerd-shim", "conmon", "docker-containe", "runc", "crun")
SPAN = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "month": 2629800,
    "y": 31557600,
}
FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
CONFIGS = {"ssh": "sshd", "sshd": "ssh"}  # whose folder has another name
MOST = 500  # files of a configuration that are looked at


def refused(name):
    """Why a unit of this name is never restarted here, or None."""
    if name in kubelet_service.UNITS or name.startswith(NEVER):
        return "more than a service hangs on it, whatever is allowed"
    return None


def sentence(name, host, why):
    """The refusal, which the plan says as the node does."""
    return (
        f"{name} of {host} is not restarted, because {why}; without {ALLOW} in kubemend_allow its"
        " limit is written for its next start"
    )


def check(name, host, allow, path, members):
    """Its main process as (pid, ticks), when the unit may be restarted now; guard.Refused. path.

    Our drop-in; members: [pid] of its control group.
    """
    why = refused(name)
    block = _block(name, host)
    found = unit.unit(block)
    if why is None and not (found and found["active_state"] == "active" and found["main_pid"]):
        why = "it has no main process that runs (%s)" % (
            found["active_state"] if found else "no such unit"
        )
    why = (
        why
        or _forbids(block)
        or _takes_along(block, host)
        or _containers(block, members)
        or _docker(name, found["main_pid"])
    )
    if why:
        raise guard.Refused(sentence(name, host, why))
    if "kubelet_restart" not in allow:  # systemd is reloaded before
        kubelet_restart.demand_no_devices(host)
    waiting = _waiting(found, block, path)
    if waiting and "pending_changes" not in allow:
        raise guard.Refused(pending.sentence(host, name, waiting))
    return found["main_pid"], procfs.ticks(found["main_pid"])


def _block(name, host):
    """Systemd's properties of it; guard.Refused."""
    try:
        return unit.show([name], PROPERTIES).get(name) or {}
    except (command.CommandError, OSError) as error:
        raise guard.Refused(
            f"systemd of {host} does not say what {name} is ({files.one_line(error)}): nothing was"
            " changed"
        )


def _one(block, key):
    return block.get(key, [""])[0]


def _forbids(block):
    if "yes" in (_one(block, "RefuseManualStart"), _one(block, "RefuseManualStop")):
        return "its unit refuses to be stopped or started by hand"
    if _one(block, "Type") == "oneshot":
        return "it does its work once (Type=oneshot), which a restart would do again"
    stops = seconds_of(_one(block, "TimeoutStopUSec"))
    if stops is None or stops > STOPS:
        return (
            "it may take longer to stop than the %d s that are waited for here (TimeoutStopUSec=%s)"
            % (STOPS, files.one_line(_one(block, "TimeoutStopUSec"), 40))
        )
    return None


def seconds_of(text):
    """A time span as systemd prints it (1min 30s), None for one without an end, or that is not
    understood.
    """
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|min|h|d|w|month|y)\b", text)
    if not parts or "".join("{}{}".format(*one) for one in parts) != text.replace(" ", ""):
        return None
    return sum(float(number) * SPAN[name] for number, name in parts)


def _takes_along(block, host):
    """Active units that are stopped or restarted with it."""
    names = sorted(
        {
            name
            for key in FOLLOW
            for value in block.get(key, [])
            for name in value.split()
            if not name.endswith(".target")
        }
    )
    if not names:
        return None
    try:
        told = unit.show(names, ("Id", "ActiveState"))
    except (command.CommandError, OSError) as error:
        return (
            f"systemd of {host} does not say which units would be stopped with it"
            f" ({files.one_line(error)})"
        )
    active = [
        name
        for name in sorted(told)
        if _one(told[name], "ActiveState") not in ("inactive", "failed")
    ]
    return "{} would be stopped with it".format(", ".join(active[:5])) if active else None


def _containers(block, members):
    """What its end would kill beside itself, that is not its own."""
    mode = _one(block, "KillMode")
    if mode in SPARES:
        return None
    if os.getpid() in members:
        return f"this program runs in it, and would end with it (KillMode={mode})"
    names = [(pid, files.text("/proc/%d/comm" % pid, 64, "").strip()) for pid in members]
    held = [
        "%s (pid %d)" % (files.one_line(name, 20), pid)
        for pid, name in names
        if name.startswith(SHIMS)
    ]
    return (
        "containers would end with it (KillMode={}): {}".format(mode, ", ".join(held[:3]))
        if held
        else None
    )


def _docker(name, pid):
    """Dockerd ends its containers itself when it stops, unless it was told to leave them.

    By a file that is as it was when it started.
    """
    if name != DOCKER:
        return None
    try:
        argv = procfs.argv(pid)
        path = procfs.flag(argv, "config-file") or DOCKER_CONFIG
        config = json.loads(files.text(path, 65536) or "{}")
    except (OSError, ValueError):
        argv, path, config = [], DOCKER_CONFIG, {}
    told, started, written = (
        procfs.flag(argv, "live-restore"),
        procfs.started_at(pid),
        files.mtime(path),
    )
    read = (
        isinstance(config, dict)
        and config.get("live-restore") is True
        and started is not None
        and written is not None
        and written < started
    )
    return (
        None
        if (told in ("", "true") if told is not None else read)
        else "dockerd ends its containers when it stops (it runs without live-restore)"
    )


def _waiting(found, block, path):
    """What its next start would load beside our drop-in.

    Files of its unit, and of its own configuration.
    """
    pid, name = found["main_pid"], found["name"]
    known = [one for one in [found["fragment_path"]] + found["drop_in_paths"] if one]
    paths = [
        one
        for one in known + unit.environment_paths(block) + configuration(name, pid)
        if one != path
    ]
    waiting = pending.changes(
        {"started_at": procfs.started_at(pid), "exe": procfs.link(pid, "exe")},
        [{"path": one, "mtime": files.mtime(one)} for one in sorted(set(paths))],
    )
    waiting += [f"{one} is not loaded yet" for one in _dropins(name) if one not in [*known, path]]
    if found["need_daemon_reload"] and not kubelet_restart.only_ours(found, [path]):
        waiting.append(pending.RELOAD)
    return waiting


def _dropins(name):
    """The drop-ins that lie there for it, each by the first folder that has its name."""
    found = {}
    for folder in FOLDERS:
        for one in files.names(f"{folder}/{name}.d"):
            found.setdefault(one, f"{folder}/{name}.d/{one}")
    return [found[one] for one in sorted(found) if one.endswith(".conf")]


def configuration(name, pid, etc="/etc"):
    """The files of its own that a program reads as a rule.

    Those that its command line names, and those of its name in /etc.
    """
    try:
        words = [
            word.partition("=")[2] if word.startswith("-") else word for word in procfs.argv(pid)
        ]
    except OSError:
        words = []
    found, plain = (
        [word for word in words if word.startswith(etc + "/") and os.path.isfile(word)],
        name[: -len(".service")].partition("@")[0],
    )
    for one in sorted({plain, CONFIGS.get(plain, plain)}):
        found += [
            path
            for path in (
                f"{etc}/{one}.conf",
                f"{etc}/default/{one}",
                f"{etc}/sysconfig/{one}",
            )
            if os.path.isfile(path)
        ]
        for folder in (f"{etc}/{one}", f"{etc}/{one}.d", f"{etc}/{one}.conf.d"):
            for top, dummy, names in os.walk(folder):
                found += [os.path.join(top, each) for each in sorted(names)]
                if len(found) > MOST:
                    break
    return found[:MOST]


def reload():
    """Systemd reads its units again: what it complained of, or an empty text."""
    return command.complaint(["systemctl", "daemon-reload"], ASKING)


def restart(name):
    """The same, and it restarts this one."""
    told = reload()
    # else its limit of starts may forbid this one
    command.complaint(["systemctl", "reset-failed", name], ASKING)
    return command.complaint(["systemctl", "restart", "--no-block", name], ASKING) or told


def wait(name, former, soft):
    """(its new main pid, what is wrong).

    Up with another process than former (pid, ticks), for long enough, and with as many files as
    asked.

    The pid is None where it is not up; soft: None for any number of files.
    """
    pid, why = kubelet_service.proven(name, SECONDS, lambda unit_name: _look(unit_name, former))
    if pid is None or soft is None:
        return pid, why
    has = procfs.rlimit(files.text("/proc/%d/limits" % pid, 8192, ""), "Max open files")
    if has is None:
        return pid, "how many files its process %d may have open cannot be read" % pid
    return pid, (
        "its process %d may have %d files open, not %d" % (pid, has[0], soft)
        if 0 <= has[0] < soft
        else None
    )


def is_stopped(name):
    """Whether somebody stopped it on purpose, or masked it, as far as systemd says.

    CommandError, OSError.
    """
    block = unit.show([name]).get(name) or {}
    return _one(block, "LoadState") == "masked" or (
        _one(block, "ActiveState") == "inactive" and _one(block, "Result") == "success"
    )


def is_stopping(name):
    """Whether its end, or its start, is under way; CommandError, OSError."""
    return _one(unit.show([name]).get(name) or {}, "ActiveState") in (
        "deactivating",
        "activating",
        "reloading",
    )


def _look(name, former):
    """(its state, what is not well with it), as kubelet_service looks at a unit."""
    if name in kubelet_service.RUNTIMES:
        now, why = kubelet_service.look(name)
    else:
        try:
            found = unit.unit(unit.show([name]).get(name) or {"LoadState": ["not-found"]}) or {}
        except (command.CommandError, OSError) as error:
            return None, files.one_line(error)
        now = {"active": found.get("active_state"), "pid": found.get("main_pid")}
        why = (
            None
            if now["active"] == "active" and now["pid"]
            else "it is {} ({}, result {})".format(
                now["active"] or "gone", found.get("sub_state"), found.get("result")
            )
        )
    if why is None and former and (now["pid"], procfs.ticks(now["pid"])) == tuple(former):
        return dict(now, pid=None), "the former process (pid %d) still runs" % former[0]
    return now, why
