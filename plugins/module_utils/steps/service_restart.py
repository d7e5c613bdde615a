# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts a service of this node so that it has its limit at once.

A restart happens only if the operator allowed it by name. systemd and the kernel show what it would
affect: units that must follow it, processes of containers that the stop would kill, and foreign
changes that the next start would load. No fixed list decides it.
"""

import json
import os
import re

from ..shared import consent, restart_impact
from ..shared.errors import PreconditionFailed
from ..shared.service_restart_rules import DOCKER, SECONDS, never_reason, refusal
from ..system import command, files, procfs, systemd
from . import kubelet_restart
from .handlers import service_start

# seconds that a unit may take to stop: one that may take longer cannot be watched until it is back
STOPS = 180
ASKING = 60
DOCKER_CONFIG = "/etc/docker/daemon.json"
PROPERTIES = (
    *systemd.PROPERTIES,
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


def check(name, host, allow, path, members):
    """Return the main process (pid, ticks) of a unit that may be restarted now.

    path: the managed drop-in.
    members: [pid] of the unit's control group.

    PreconditionFailed is raised where a restart is not allowed.
    """
    block = _block(name, host)
    unit = systemd.unit(block)
    reason = _forbidden(name, unit, block, host, members)
    if reason:
        raise PreconditionFailed(refusal(name, host, reason))
    if consent.KUBELET_RESTART not in allow:  # systemd is reloaded before
        kubelet_restart.demand_no_devices(host)
    waiting = _waiting(unit, block, path)
    if waiting and consent.PENDING_CHANGES not in allow:
        raise PreconditionFailed(restart_impact.sentence(host, name, waiting))
    return unit["main_pid"], procfs.ticks(unit["main_pid"])


def _forbidden(name, unit, block, host, members):
    """Return why the unit must not be restarted, or None."""
    reason = never_reason(name)
    if reason:
        return reason
    if not unit or unit["active_state"] != "active" or not unit["main_pid"]:
        state = unit["active_state"] if unit else "no such unit"
        return f"it has no main process that runs ({state})"
    reason = _forbids(block) or _takes_along(block, host)
    if reason:
        return reason
    return _lost_containers(block, members) or _lost_by_docker(name, unit["main_pid"])


def _block(name, host):
    """Return systemd's properties of the unit; raise PreconditionFailed."""
    try:
        return systemd.show([name], PROPERTIES).get(name) or {}
    except (command.CommandError, OSError) as error:
        raise PreconditionFailed(
            f"systemd of {host} does not say what {name} is ({files.one_line(error)}): nothing was"
            " changed"
        ) from error


def _one(block, key):
    return block.get(key, [""])[0]


def _forbids(block):
    if "yes" in (_one(block, "RefuseManualStart"), _one(block, "RefuseManualStop")):
        return "its unit refuses to be stopped or started by hand"
    if _one(block, "Type") == "oneshot":
        return "it does its work once (Type=oneshot), which a restart would do again"
    stops = seconds_of(_one(block, "TimeoutStopUSec"))
    if stops is None or stops > STOPS:
        limit = files.one_line(_one(block, "TimeoutStopUSec"), 40)
        return (
            f"it may take longer to stop than the {int(STOPS)} s that are waited for here"
            f" (TimeoutStopUSec={limit})"
        )
    return None


def seconds_of(text):
    """Return the seconds of a time span in systemd's own format (1min 30s).

    The result is None for a span without an end, or in another format.
    """
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s|min|h|d|w|month|y)\b", text)
    if not parts or "".join("{}{}".format(*part) for part in parts) != text.replace(" ", ""):
        return None
    return sum(float(number) * SPAN[name] for number, name in parts)


def _takes_along(block, host):
    """Return which active units are stopped or restarted with it, in a sentence, or None."""
    names = sorted(name for name in _followers(block) if not name.endswith(".target"))
    if not names:
        return None
    try:
        units = systemd.show(names, ("Id", "ActiveState"))
    except (command.CommandError, OSError) as error:
        return (
            f"systemd of {host} does not say which units would be stopped with it"
            f" ({files.one_line(error)})"
        )
    active = [
        name
        for name in sorted(units)
        if _one(units[name], "ActiveState") not in ("inactive", "failed")
    ]
    if not active:
        return None
    return "{} would be stopped with it".format(", ".join(active[:5]))


def _followers(block):
    """Return the names of the units that follow it."""
    values = [value for key in FOLLOW for value in block.get(key, [])]
    return {name for value in values for name in value.split()}


def _lost_containers(block, members):
    """Return which containers its end would kill, in a sentence, or None."""
    mode = _one(block, "KillMode")
    if mode in SPARES:
        return None
    if os.getpid() in members:
        return f"this program runs in it, and would end with it (KillMode={mode})"
    names = [(pid, files.text(f"/proc/{pid}/comm", 64, "").strip()) for pid in members]
    shims = [
        f"{files.one_line(name, 20)} (pid {pid})" for pid, name in names if name.startswith(SHIMS)
    ]
    if not shims:
        return None
    return "containers would end with it (KillMode={}): {}".format(mode, ", ".join(shims[:3]))


def _lost_by_docker(name, pid):
    """Return that dockerd ends its containers when it stops, or None.

    With live-restore, as its arguments or a file that is older than its process say, containers
    continue.
    """
    if name != DOCKER or _has_live_restore(pid):
        return None
    return "dockerd ends its containers when it stops (it runs without live-restore)"


def _has_live_restore(pid):
    argv, path, config = [], DOCKER_CONFIG, {}
    try:
        argv = procfs.argv(pid)
        path = procfs.flag(argv, "config-file") or DOCKER_CONFIG
        config = json.loads(files.text(path, 65536) or "{}")
    except (OSError, ValueError):
        argv, path, config = [], DOCKER_CONFIG, {}
    flag = procfs.flag(argv, "live-restore")
    if flag is not None:
        return flag in ("", "true")
    if not isinstance(config, dict) or config.get("live-restore") is not True:
        return False
    started, written = procfs.started_at(pid), files.mtime(path)
    return started is not None and written is not None and written < started


def _waiting(unit, block, path):
    """Return what its next start would load in addition to the managed drop-in (path).

    The function checks the files of the unit, and those of the program's own configuration.
    """
    pid, name = unit["main_pid"], unit["name"]
    unit_paths = [place for place in [unit["fragment_path"]] + unit["drop_in_paths"] if place]
    paths = {*unit_paths, *systemd.environment_paths(block), *configuration(name, pid)} - {path}
    waiting = restart_impact.changes(
        {"started_at": procfs.started_at(pid), "exe": procfs.link(pid, "exe")},
        [{"path": place, "mtime": files.mtime(place)} for place in sorted(paths)],
    )
    waiting += [
        f"{place} is not loaded yet" for place in _dropins(name) if place not in [*unit_paths, path]
    ]
    if unit["need_daemon_reload"] and not kubelet_restart.only_ours(unit, [path]):
        waiting.append(restart_impact.RELOAD)
    return waiting


def _dropins(name):
    """Return the drop-ins that lie there for it, each by the first folder that has its name."""
    places = {}
    for folder in FOLDERS:
        for file in files.names(f"{folder}/{name}.d"):
            places.setdefault(file, f"{folder}/{name}.d/{file}")
    return [places[file] for file in sorted(places) if file.endswith(".conf")]


def configuration(name, pid, etc="/etc"):
    """Return the configuration files that a program usually reads.

    These are the files that its command line names, and the files in /etc with its name.
    """
    paths = [word for word in _values(pid) if word.startswith(etc + "/") and os.path.isfile(word)]
    plain = name[: -len(".service")].partition("@")[0]
    for base in sorted({plain, CONFIGS.get(plain, plain)}):
        usual = (f"{etc}/{base}.conf", f"{etc}/default/{base}", f"{etc}/sysconfig/{base}")
        paths += [path for path in usual if os.path.isfile(path)]
        for folder in (f"{etc}/{base}", f"{etc}/{base}.d", f"{etc}/{base}.conf.d"):
            paths += _files_below(folder, MOST - len(paths))
    return paths[:MOST]


def _values(pid):
    """Return the arguments of a process, of flags their values."""
    try:
        argv = procfs.argv(pid)
    except OSError:
        return []
    return [word.partition("=")[2] if word.startswith("-") else word for word in argv]


def _files_below(folder, most):
    paths = []
    for top, _dummy, names in os.walk(folder):
        paths += [os.path.join(top, name) for name in sorted(names)]
        if len(paths) > most:
            break
    return paths


def reload():
    """Reload systemd; return its error, or an empty text."""
    return command.complaint(["systemctl", "daemon-reload"], ASKING)


def restart(name):
    """Reload systemd and restart the unit; return the error of systemctl."""
    complaint = reload()
    # else its limit of starts may forbid this one
    command.complaint(["systemctl", "reset-failed", name], ASKING)
    return command.complaint(["systemctl", "restart", "--no-block", name], ASKING) or complaint


def wait(name, former, soft):
    """Wait for the unit's new process; return (its pid, what is wrong).

    The pid is None where no other process than `former` (pid, ticks) is up for long enough.

    soft: how many files the process must be able to open, None for any number.
    """
    pid, reason = service_start.proven(name, SECONDS, lambda unit_name: _look(unit_name, former))
    if pid is None or soft is None:
        return pid, reason
    limit = procfs.rlimit(files.text(f"/proc/{pid}/limits", 8192, ""), "Max open files")
    if limit is None:
        return pid, f"how many files its process {pid} may have open cannot be read"
    if 0 <= limit[0] < soft:
        return pid, f"its process {pid} may have {int(limit[0])} files open, not {int(soft)}"
    return pid, None


def is_stopped(name):
    """Return whether the unit was stopped on purpose, or is masked, as systemd reports it.

    CommandError or OSError is raised where systemd does not answer.
    """
    block = systemd.show([name]).get(name) or {}
    if _one(block, "LoadState") == "masked":
        return True
    return _one(block, "ActiveState") == "inactive" and _one(block, "Result") == "success"


def is_stopping(name):
    """Return whether the unit stops or starts now; raise CommandError, OSError."""
    return _one(systemd.show([name]).get(name) or {}, "ActiveState") in (
        "deactivating",
        "activating",
        "reloading",
    )


def _look(name, former):
    """Return (the unit's state, what is not well with it), as service_start.look does."""
    if name in service_start.RUNTIMES:
        now, reason = service_start.look(name)
    else:
        now, reason = _inspect(name)
    if reason is None and former and (now["pid"], procfs.ticks(now["pid"])) == tuple(former):
        return dict(now, pid=None), f"the former process (pid {int(former[0])}) still runs"
    return now, reason


def _inspect(name):
    try:
        block = systemd.show([name]).get(name) or {"LoadState": ["not-found"]}
        unit = systemd.unit(block) or {}
    except (command.CommandError, OSError) as error:
        return None, files.one_line(error)
    now = {"active": unit.get("active_state"), "pid": unit.get("main_pid")}
    if now["active"] == "active" and now["pid"]:
        return now, None
    return now, "it is {} ({}, result {})".format(
        now["active"] or "gone", unit.get("sub_state"), unit.get("result")
    )
