# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: a service of this node restarted so that it has its limit at once: what must hold before, and the proof of its new process.

Only where its operator allowed it by name. What it would take with it is asked of systemd and the kernel, not known by a list: units that must follow it,
processes of containers that its way of ending would kill, somebody else's changes that its next start would load.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

from ansible_collections.kubemend.remediation.plugins.module_utils import guard, kubelet_restart, kubelet_service, pending
from ansible_collections.kubemend.remediation.plugins.module_utils.collect import command, files, procfs, unit

ALLOW = "service_restart"
SECONDS = 240  # a unit may take 90 to stop and as many to start
ASKING = 60
DOCKER, DOCKER_CONFIG = "docker.service", "/etc/docker/daemon.json"
PROPERTIES = unit.PROPERTIES + ("Type", "KillMode", "RefuseManualStart", "RefuseManualStop", "ControlGroup", "RequiredBy", "BoundBy", "ConsistsOf")
FOLLOW = ("RequiredBy", "BoundBy", "ConsistsOf")  # who is stopped or restarted with it
SPARES = ("process", "none")  # of KillMode: what is in the unit's control group beside its main process lives on
# Without which the machine, or the cluster, loses more than a service: their restart is never for the sake of a limit.
NEVER = ("systemd-", "dbus", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "NetworkManager")
SHIMS = ("containerd-shim", "conmon", "docker-containerd-shim", "runc", "crun")


def refused(name):
    """Why a unit of this name is never restarted here, or None."""
    if name in kubelet_service.UNITS or name.startswith(NEVER):
        return "%s is not restarted for a limit, whatever is allowed: more than a service hangs on it" % name
    return None


def check(name, host, allow, path, members):
    """Its main process as (pid, ticks), when the unit may be restarted now; guard.Refused. path: our drop-in; members: [pid] of its control group."""
    why = refused(name)
    block = _block(name, host)
    found = unit.unit(block)
    if why is None and not (found and found["active_state"] == "active" and found["main_pid"]):
        why = "it has no main process that runs (%s)" % (found["active_state"] if found else "no such unit")
    why = why or _forbids(block) or _takes_along(block, host) or _containers(block, members) or _docker(name, found["main_pid"])
    if why:
        raise guard.Refused("%s of %s is not restarted, because %s; without %s in kubemend_allow its limit is written for its next start" % (
            name, host, why, ALLOW))
    if "kubelet_restart" not in allow:  # systemd is reloaded before
        kubelet_restart.demand_no_devices(host)
    waiting = _waiting(found, block, path)
    if waiting and "pending_changes" not in allow:
        raise guard.Refused(pending.sentence(host, name, waiting))
    return found["main_pid"], procfs.ticks(found["main_pid"])


def _block(name, host):
    """systemd's properties of it; guard.Refused."""
    try:
        return unit.show([name], PROPERTIES).get(name) or {}
    except (command.CommandError, OSError) as error:
        raise guard.Refused("systemd of %s does not say what %s is (%s): nothing was changed" % (host, name, files.one_line(error)))


def _one(block, key):
    return block.get(key, [""])[0]


def _forbids(block):
    if "yes" in (_one(block, "RefuseManualStart"), _one(block, "RefuseManualStop")):
        return "its unit refuses to be stopped or started by hand"
    if _one(block, "Type") == "oneshot":
        return "it does its work once (Type=oneshot), which a restart would do again"
    return None


def _takes_along(block, host):
    """Active units that are stopped or restarted with it."""
    names = sorted(set(name for key in FOLLOW for value in block.get(key, []) for name in unit.words(value) if not name.endswith(".target")))
    if not names:
        return None
    try:
        told = unit.show(names, ("Id", "ActiveState"))
    except (command.CommandError, OSError) as error:
        return "systemd of %s does not say which units would be stopped with it (%s)" % (host, files.one_line(error))
    active = [name for name in sorted(told) if _one(told[name], "ActiveState") not in ("inactive", "failed")]
    return "%s would be stopped with it" % ", ".join(active[:5]) if active else None


def _containers(block, members):
    """What its end would kill beside itself, that is not its own."""
    mode = _one(block, "KillMode")
    if mode in SPARES:
        return None
    if os.getpid() in members:
        return "this program runs in it, and would end with it (KillMode=%s)" % mode
    names = [(pid, files.text("/proc/%d/comm" % pid, 64, "").strip()) for pid in members]
    held = ["%s (pid %d)" % (files.one_line(name, 20), pid) for pid, name in names if name.startswith(SHIMS)]
    return "containers would end with it (KillMode=%s): %s" % (mode, ", ".join(held[:3])) if held else None


def _docker(name, pid):
    """dockerd ends its containers itself when it stops, unless it was told to leave them."""
    if name != DOCKER:
        return None
    try:
        argv, config = procfs.argv(pid), json.loads(files.text(DOCKER_CONFIG, 65536) or "{}")
    except (OSError, ValueError):
        argv, config = [], {}
    told = procfs.flag(argv, "live-restore")
    spared = told in ("", "true") if told is not None else isinstance(config, dict) and config.get("live-restore") is True
    return None if spared else "dockerd ends its containers when it stops (no live-restore in %s)" % DOCKER_CONFIG


def _waiting(found, block, path):
    """What its next start would load beside our drop-in."""
    pid = found["main_pid"]
    paths = [one for one in [found["fragment_path"]] + found["drop_in_paths"] + unit.environment_paths(block) if one and one != path]
    waiting = pending.changes({"started_at": procfs.started_at(pid), "exe": procfs.link(pid, "exe")}, [{"path": one, "mtime": _mtime(one)} for one in paths])
    if found["need_daemon_reload"] and not kubelet_restart.only_ours(found, [path]):
        waiting.append(pending.RELOAD)
    return waiting


def _mtime(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def reload():
    """systemd reads its units again: what it complained of, or an empty text."""
    return command.complaint(["systemctl", "daemon-reload"], ASKING)


def restart(name):
    """The same, and it restarts this one."""
    told = reload()
    command.complaint(["systemctl", "reset-failed", name], ASKING)  # else its limit of starts may forbid this one
    return command.complaint(["systemctl", "restart", "--no-block", name], ASKING) or told


def wait(name, former, soft):
    """(its new main pid, why not): up with another process than former (pid, ticks), for long enough, with as many files as asked. soft: None for any."""
    pid, why = kubelet_service.proven(name, SECONDS, lambda unit_name: _look(unit_name, former))
    if pid is None or soft is None:
        return pid, why
    has = procfs.rlimit(files.text("/proc/%d/limits" % pid, 8192, ""), "Max open files")
    if has is None:
        return None, "how many files its process %d may have open cannot be read" % pid
    if 0 <= has[0] < soft:
        return None, "its process %d may have %d files open, not %d" % (pid, has[0], soft)
    return pid, None


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
        why = None if now["active"] == "active" and now["pid"] else "it is %s (%s, result %s)" % (
            now["active"] or "gone", found.get("sub_state"), found.get("result"))
    if why is None and former and (now["pid"], procfs.ticks(now["pid"])) == tuple(former):
        return dict(now, pid=None), "the former process (pid %d) still runs" % former[0]
    return now, why
