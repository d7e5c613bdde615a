# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts the kubelet of this node: what must hold before, and how the new process is verified.

Containers continue without the kubelet. A restart affects other things: it loads all pending
changes, and it can take devices away from running containers, which the plan's safety check counts
as a separate disruption.
"""

import os
import time

from ..collectors import registry
from ..collectors.node import devices, instances, kubelet
from ..shared import consent, restart_impact, units
from ..shared.text import times
from ..state import step_record
from ..system import command, files, procfs, yaml_scalars
from . import preconditions

UNIT = units.KUBELET
# until the new process must have been healthy for long enough; its unit may wait ten before it
# starts it again
SECONDS = 90
STABLE = 3.0  # seconds of healthy answers
DEATHS = 3  # processes that ended again
PAUSE = 0.3


class Kubelet:
    """The running kubelet: its evidence, with its unmasked command line."""

    def __init__(self):
        self.evidence = kubelet.collect(registry.Context({}, procfs.of_interest(), {}))
        process = self.evidence["process"]
        self.pid = process["pid"] if process else None
        self.ticks = step_record.ticks(self.pid) if process else None
        self.argv = _argv(self.pid) if process else []
        self.identity = (self.pid, self.ticks) if process else None
        self.healthy = self.evidence["healthz"]["status"] == 200


def _argv(pid):
    try:
        return procfs.argv(pid)
    except OSError:
        return []


def look(host):
    """Return the kubelet, or PreconditionFailed where nothing can be said about it."""
    try:
        return Kubelet()
    except Exception as error:  # pylint: disable=broad-except
        raise preconditions.PreconditionFailed(
            f"the kubelet of {host} cannot be looked at ({files.one_line(error)}): nothing was"
            " changed"
        ) from error


def check(host, step, allow, own_paths=()):
    """Return the kubelet if it may be restarted now; raise PreconditionFailed otherwise.

    step: its `expect` and `guard`.
    own_paths: the managed files.
    """
    instance = look(host)
    _demand_running(instance, host)
    expected = (step.get("expect") or {}).get("pid")
    if expected is not None and expected != instance.pid:
        raise preconditions.PreconditionFailed(
            f"the evidence is old: the kubelet of {host} is no longer the process {expected} but"
            f" {instance.pid}; {preconditions.OLD}"
        )
    preconditions.answering(
        step.get("guard"),
        instances.collect(registry.Context({}, procfs.of_interest(), {}))["processes"],
        host,
    )
    if consent.KUBELET_RESTART not in allow:
        demand_no_devices(host)
    demand_start(instance, host)
    waiting = restart_impact.of_kubelet(instance.evidence, own_paths)
    # killed before systemd was told, or it could not be
    if waiting and only_ours(instance.evidence["unit"], own_paths):
        waiting = [impact for impact in waiting if impact != restart_impact.RELOAD]
    if waiting and consent.PENDING_CHANGES not in allow:
        raise preconditions.PreconditionFailed(
            restart_impact.sentence(host, "the kubelet", waiting)
        )
    return instance


def _demand_running(instance, host):
    """Raise PreconditionFailed unless the kubelet runs as its unit, and is healthy."""
    unit = instance.evidence["unit"] or {}
    if unit.get("name") != UNIT or instance.pid is None or unit.get("active_state") != "active":
        raise preconditions.PreconditionFailed(
            f"the kubelet of {host} is not restarted, because it does not run as {UNIT} now"
            " (systemctl status kubelet)"
        )
    if not instance.healthy:
        healthz = instance.evidence["healthz"]
        raise preconditions.PreconditionFailed(
            "the kubelet of {} is not restarted, because it is not healthy ({}): repair it first"
            " (journalctl -u kubelet)".format(
                host, healthz["error"] or "HTTP {}".format(healthz["status"])
            )
        )


def demand_start(instance, host):
    """Raise PreconditionFailed where something would keep the new process from starting."""
    swaps = (files.text("/proc/swaps") or "").splitlines()[1:]
    if swaps and _fails_on_swap(instance).lower() in ("", "true", "t", "1"):
        raise preconditions.PreconditionFailed(
            f"the kubelet of {host} is not restarted, because swap is on ({swaps[0].split()[0]})"
            " and it would refuse to start: switch it off first"
        )


def _fails_on_swap(instance):
    """Return fail-swap-on as its next start reads it, of a kubelet that is down too."""
    flag = procfs.flag(instance.argv or instance.evidence.get("argv") or [], "fail-swap-on")
    if flag is not None:
        return flag
    configs = [
        instance.evidence.get("config"),
        *list(instance.evidence.get("config_dropins") or []),
    ]
    values = [
        yaml_scalars.top(config.get("text") or "", "failSwapOn") for config in configs if config
    ]
    values = [value for value in values if value is not None]
    return values[-1] if values else "true"


def only_ours(unit, own_paths):
    """Return whether systemd's view differs from the unit's files only by the managed drop-in.

    The drop-in is not loaded yet, or is still loaded after its removal.
    """
    loaded_paths = unit.get("drop_in_paths") or []
    managed = [path for path in own_paths if "/{}.d/".format(unit["name"]) in path]
    return any((path in loaded_paths) != os.path.exists(path) for path in managed) and all(
        os.path.exists(path) for path in loaded_paths if path not in managed
    )


def demand_no_devices(host):
    """Require that no container with devices of a plugin runs here.

    PreconditionFailed is raised otherwise.
    """
    holders = devices.running()
    if holders is None:
        raise preconditions.PreconditionFailed(
            f"whether pods with devices run on {host} cannot be determined"
            f" ({os.path.join(devices.FOLDER, devices.CHECKPOINT)} cannot be read), so that its"
            " kubelet is not restarted; allow it with -e kubemend_allow=kubelet_restart"
        )
    if holders:
        raise preconditions.PreconditionFailed(
            "pods with devices run on {} ({}): they may lose them when the kubelet restarts; wait"
            " for their end, or allow it with -e kubemend_allow=kubelet_restart".format(
                host, ", ".join(devices.names(holders)[:5])
            )
        )


def load(reload_units):
    """Reload systemd where that is needed."""
    if reload_units:
        _systemctl("daemon-reload")


def restart(reload_units):
    """Ask systemd to restart the kubelet; raise CommandError where it refuses.

    The function does not wait: `wait` checks the result.
    """
    load(reload_units)
    _systemctl("restart", "--no-block", UNIT)


def stop():
    """Stop the kubelet, and wait for its end; raise CommandError where systemd refuses."""
    _systemctl("stop", UNIT)


def _systemctl(*words):
    try:
        command.run(["systemctl", *list(words)], seconds=60)
    except command.Silent as silent:  # it says something only where it fails
        output = str(silent)
        if not output.endswith("it said nothing") and ": Warning:" not in output:
            raise


def wait(fits, former, seconds=None):
    """Wait for a healthy kubelet; return (the kubelet or None, why not).

    fits: a function of argv that returns why a command line is not the wanted one, or None.
    former: the identity of the process that must be gone.
    """
    watch = _Watch(fits, former)
    end = time.monotonic() + (seconds or SECONDS)
    while time.monotonic() < end and watch.deaths < DEATHS:
        instance = watch.inspect()
        if instance and watch.is_stable():
            return instance, None
        time.sleep(PAUSE)
    reason = watch.reason or f"it was not healthy for {int(STABLE)} s"
    if watch.deaths:
        reason += f" (it ended again {times(int(watch.deaths))})"
    return None, reason


class _Watch:
    """The observed state of a kubelet that starts.

    It has the process, the time since which it is healthy, and the number of its deaths.
    """

    def __init__(self, fits, former):
        self.fits = fits
        self.former = former
        self.identity = former
        self.healthy_since = None
        self.deaths = 0
        self.reason = "nothing was seen"

    def inspect(self):
        """Look at the kubelet again; return it where it is another process than before."""
        instance = _seen()
        if isinstance(instance, str):
            self.reason = instance
            return None
        if instance.identity != self.identity:
            self.deaths += self.identity not in (self.former, None)
            self.identity, self.healthy_since = instance.identity, None
        if instance.identity == self.former:
            self.reason = f"the former process (pid {instance.pid}) still runs"
            return None
        self.reason = self.fits(instance.argv)
        if not self.reason:
            self.reason = None if instance.healthy else "its healthz does not answer 200 yet"
        if self.reason is not None:
            self.healthy_since = None
        elif self.healthy_since is None:
            self.healthy_since = time.monotonic()
        return instance

    def is_stable(self):
        """Return whether one process was well for long enough."""
        return self.healthy_since is not None and time.monotonic() - self.healthy_since >= STABLE


def _seen():
    """Return the kubelet, or why there is none now."""
    try:
        instance = Kubelet()
    except Exception as error:  # pylint: disable=broad-except
        return files.one_line(error)
    return instance if instance.identity else "no kubelet runs"
