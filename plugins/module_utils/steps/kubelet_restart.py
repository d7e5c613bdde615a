# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of this node restarted: what must hold before, and the proof of the new process.

Containers go on while it is away. What does not is what it loads: everybody's pending changes,
and the devices of containers that are running now, which safety counts as a disruption of its own.
"""

import os
import time

from ..collectors import registry as spec
from ..collectors.node import devices, instances, kubelet
from ..shared import restart_impact as pending
from ..shared import units
from ..state import step_record as proof
from ..system import command, files, procfs
from ..system import yaml_scalars as kubeconfig
from . import preconditions as guard

UNIT = units.KUBELET
# until the new process must have been healthy for long enough; its unit may wait ten before it
# starts it again
SECONDS = 90
STABLE = 3.0  # seconds of healthy answers
DEATHS = 3  # processes that ended again
PAUSE = 0.3


class Kubelet:
    """The kubelet as it runs: its evidence, with its command line as it is."""

    def __init__(self):
        self.evidence = kubelet.collect(spec.Context({}, procfs.of_interest(), {}))
        process = self.evidence["process"]
        self.pid = process["pid"] if process else None
        self.ticks = proof.ticks(self.pid) if process else None
        self.argv = _argv(self.pid) if process else []
        self.identity = (self.pid, self.ticks) if process else None
        self.healthy = self.evidence["healthz"]["status"] == 200


def _argv(pid):
    try:
        return procfs.argv(pid)
    except OSError:
        return []


def look(host):
    """The kubelet, or guard.Refused where nothing can be said about it."""
    try:
        return Kubelet()
    except Exception as error:  # pylint: disable=broad-except
        raise guard.Refused(
            f"the kubelet of {host} cannot be looked at ({files.one_line(error)}): nothing was"
            " changed"
        )


def check(host, wanted, allow, own=()):
    """The kubelet, when it may be restarted now, or guard.Refused. wanted.

    The step's expect and guard; own: managed files.
    """
    found = look(host)
    unit, expect = found.evidence["unit"] or {}, wanted.get("expect") or {}
    if unit.get("name") != UNIT or found.pid is None or unit.get("active_state") != "active":
        raise guard.Refused(
            f"the kubelet of {host} is not restarted, because it does not run as {UNIT} now"
            " (systemctl status kubelet)"
        )
    if not found.healthy:
        raise guard.Refused(
            "the kubelet of {} is not restarted, because it is not healthy ({}): mend it first"
            " (journalctl -u kubelet)".format(
                host,
                found.evidence["healthz"]["error"]
                or "HTTP {}".format(found.evidence["healthz"]["status"]),
            )
        )
    if expect.get("pid") is not None and expect["pid"] != found.pid:
        raise guard.Refused(
            "the evidence is old: the kubelet of {} is no longer the process {} but {}; {}".format(
                host, expect["pid"], found.pid, guard.OLD
            )
        )
    guard.answering(
        wanted.get("guard"),
        instances.collect(spec.Context({}, procfs.of_interest(), {}))["processes"],
        host,
    )
    if "kubelet_restart" not in allow:
        demand_no_devices(host)
    demand_start(found, host)
    waiting = pending.of_kubelet(found.evidence, own)
    # killed before systemd was told, or it could not be
    if waiting and only_ours(found.evidence["unit"], own):
        waiting = [one for one in waiting if one != pending.RELOAD]
    if waiting and "pending_changes" not in allow:
        raise guard.Refused(pending.sentence(host, "the kubelet", waiting))
    return found


def demand_start(found, host):
    """What would keep the new process from starting is not there, or guard.Refused."""
    swaps = (files.text("/proc/swaps") or "").splitlines()[1:]
    # of one that is down: as it would start
    given = procfs.flag(found.argv or found.evidence.get("argv") or [], "fail-swap-on")
    texts = [
        one.get("text") or ""
        for one in [found.evidence.get("config"), *list(found.evidence.get("config_dropins") or [])]
        if one
    ]
    told = [
        value
        for value in (kubeconfig.top(text, "failSwapOn") for text in texts)
        if value is not None
    ]
    if swaps and (given if given is not None else told[-1] if told else "true").lower() in (
        "",
        "true",
        "t",
        "1",
    ):
        raise guard.Refused(
            f"the kubelet of {host} is not restarted, because swap is on ({swaps[0].split()[0]})"
            " and it would refuse to start: switch it off first"
        )


def only_ours(unit, own):
    """Whether systemd knows the unit without our drop-in, or with one that is gone, and nothing
    else is known to differ.
    """
    known = unit.get("drop_in_paths") or []
    ours = [path for path in own if "/{}.d/".format(unit["name"]) in path]
    return any((path in known) != os.path.exists(path) for path in ours) and all(
        os.path.exists(path) for path in known if path not in ours
    )


def demand_no_devices(host):
    """No container that holds devices of a plugin runs here, or guard.Refused."""
    held = devices.running()
    if held is None:
        raise guard.Refused(
            f"whether pods with devices run on {host} cannot be told"
            f" ({os.path.join(devices.FOLDER, devices.CHECKPOINT)} cannot be read), so that its"
            " kubelet is not restarted; allow it with -e kubemend_allow=kubelet_restart"
        )
    if held:
        raise guard.Refused(
            "pods with devices run on {} ({}): they may lose them when the kubelet restarts; wait"
            " for their end, or allow it with -e kubemend_allow=kubelet_restart".format(
                host, ", ".join(devices.names(held)[:5])
            )
        )


def load(reload_units):
    """Let systemd read its units again, where that is needed."""
    if reload_units:
        _systemctl("daemon-reload")


def restart(reload_units):
    """Ask systemd for it, or CommandError; what came of it is `wait`'s to find out."""
    load(reload_units)
    _systemctl("restart", "--no-block", UNIT)


def stop():
    """Ask systemd to stop it, and wait for that; CommandError."""
    _systemctl("stop", UNIT)


def _systemctl(*words):
    try:
        command.run(["systemctl", *list(words)], seconds=60)
    except command.Silent as silent:  # it says something only where it fails
        told = str(silent)
        if not told.endswith("it said nothing") and ": Warning:" not in told:
            raise


def wait(fits, former, seconds=None):
    """(the kubelet or None, why not). fits(argv).

    Why a command line is not the wanted one, or None; former: the identity that must be gone.
    """
    end, healthy_at, identity, deaths, reason = (
        time.monotonic() + (seconds or SECONDS),
        None,
        former,
        0,
        "nothing was seen",
    )
    while time.monotonic() < end and deaths < DEATHS:
        found = _seen()
        if isinstance(found, str):
            reason, found = found, None
        if found and found.identity != identity:
            deaths += identity not in (former, None)
            identity, healthy_at = found.identity, None
        if found and found.identity == former:
            reason = "the former process (pid %d) still runs" % found.pid
        elif found:
            reason = fits(found.argv) or (
                None if found.healthy else "its healthz does not answer 200 yet"
            )
            healthy_at = (healthy_at or time.monotonic()) if reason is None else None
            if healthy_at is not None and time.monotonic() - healthy_at >= STABLE:
                return found, None
        time.sleep(PAUSE)
    return None, "{}{}".format(
        reason or "it was not healthy for %d s" % STABLE,
        " (it ended again %d times)" % deaths if deaths else "",
    )


def _seen():
    """The kubelet, or why there is none now."""
    try:
        found = Kubelet()
    except Exception as error:  # pylint: disable=broad-except
        return files.one_line(error)
    return found if found.identity else "no kubelet runs"
