# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enables this node's kubelet, or its container runtime, at boot, and starts it.

enable_kubelet, enable_runtime: systemctl enable, without the daemon-reload that takes devices away
    from running containers. The journal records it as a change of a text, the answer of is-enabled.
    An interrupted change is thus found, and a revert disables the unit again, which stops nothing.
start_kubelet, start_runtime: a unit that is down is started and verified. It must be active with
    one main process, and healthy (a kubelet by its healthz, a runtime by a connection to its
    socket), for long enough.

A unit that does not start is left to systemd, which goes on trying as after a boot. Stopping the
unit would not help the node.
"""

import time

from ...changes import journal_entry
from ...collectors import registry
from ...collectors.node import kubelet, runtime, unit_start
from ...shared import start_refusal, step_kinds
from ...shared.errors import PreconditionFailed
from ...shared.text import times
from ...shared.unit_enablement import DISABLED, ENABLED, component_of, path_of
from ...shared.units import KUBELET, RUNTIMES
from ...shared.units import KUBELET_UNITS as UNITS
from ...state import journal, step_record, storage
from ...state.storage import ChangeError
from ...state.unit_target import ASKING, is_enabled, name_of, state
from ...state.unit_target import digest as _digest
from ...state.unit_target import encoded as _bytes
from ...system import command, cri, files, procfs
from .. import file_change, kubelet_restart, preconditions
from ..base import StepHandler, outcome, state_after

# until it is proven; a server of k3s takes a minute
START_SECONDS = step_kinds.kind_of(step_kinds.START_KUBELET).seconds
STABLE = 10.0  # seconds of one main process that answers
DEATHS = 3  # main processes that ended again
PAUSE = 0.5
# The units that a step of a kind may change.
UNITS_OF = {
    step_kinds.ENABLE_KUBELET: UNITS,
    step_kinds.START_KUBELET: UNITS,
    step_kinds.ENABLE_RUNTIME: RUNTIMES,
    step_kinds.START_RUNTIME: RUNTIMES,
}
LIMITED = ("start-limit-hit", "start-limit")
DOWN = ("inactive", "failed")


class _ServiceHandler(StepHandler):
    """A step on a unit that must be neither foreign nor masked.

    The change of a step is {path, unit, former}.
    """

    def check(self, step):
        """Return the unit, and its states for the record."""
        name = step.change.get("unit")
        self.now = _require_allowed(name, step.host, step.kind.name)
        self.require_state(step, name)
        return {
            "component": component_of(name),
            "path": path_of(name),
            "unit": name,
            "former_states": [self.now["enabled"], self.now["active"], self.now["result"]],
        }

    def require_state(self, step, name):
        """Raise PreconditionFailed where the unit is no longer as the plan has it."""
        raise NotImplementedError

    def recover(self, record, context=None, params=None):
        """Return how it ended by what systemd says; open while systemd does not answer."""
        name = record.get("unit")
        try:
            now = state(name)
        except ChangeError as error:
            return None, str(error)
        return self.recovered(record, name, now)

    def recovered(self, record, name, now):
        """Return (state of the record, reason) by the unit's present state."""
        raise NotImplementedError


class EnableService(_ServiceHandler):
    """Enables a unit at boot."""

    def require_state(self, step, name):
        """Refuse where the unit is neither enabled nor as the plan found it."""
        former = step.change.get("former")
        if self.now["enabled"] in (ENABLED, former) and former in DISABLED:
            return
        raise PreconditionFailed(
            "the evidence is old: {} of {} is {}, not {}; {}".format(
                name,
                step.host,
                self.now["enabled"],
                files.one_line(former, 40),
                preconditions.OLD,
            )
        )

    def perform(self, step, record):
        """Enable the unit, and compare what is-enabled says."""
        enabled = self.now["enabled"]
        if enabled == ENABLED:
            return outcome(step.context, step_record.PROVEN, "it is enabled already")
        try:
            done = switch(record["unit"], _digest(enabled), ENABLED, step.context)
        except (ChangeError, OSError) as error:
            return outcome(
                step.context,
                state_after(error),
                f"{_phrase(record['unit'], step.host)} was not enabled:"
                f" {files.one_line(error, 600)}",
            )
        observation = {"enabled": [enabled, ENABLED], "journal": done["entry"]}
        return outcome(step.context, step_record.PROVEN, None, observation)

    def recovered(self, record, name, now):
        """Return whether the unit is enabled."""
        if now["enabled"] == ENABLED:
            return step_record.PROVEN, f"{name} is enabled"
        return step_record.NOT_DONE, "{} is {}".format(name, now["enabled"])


class StartService(_ServiceHandler):
    """Starts a unit that is down."""

    def require_state(self, step, name):
        """Refuse where the unit is changing, or cannot start now."""
        _require_startable(name, self.now, step.host)

    def perform(self, step, record):
        """Start the unit, and wait until it is healthy."""
        name = record["unit"]
        is_down = self.now["active"] in DOWN
        complaint = None
        if is_down:
            complaint = _start(name, self.now)
        pid, reason = proven(name)
        if pid:
            observation = {"pid": pid, "ticks": step_record.ticks(pid)}
            note = None if is_down else "it runs already"
            return outcome(step.context, step_record.PROVEN, note, observation)
        if complaint:
            reason = f"{reason} ({complaint})"
        return outcome(step.context, step_record.FAILED, _down(name, step.host, reason))

    def recovered(self, record, name, now):
        """Return whether the unit runs and is healthy."""
        if now["active"] in DOWN:
            return (
                step_record.NOT_DONE,
                f"its {component_of(name)} does not run; what to do is judged again",
            )
        pid, reason = proven(name)
        if pid:
            return step_record.PROVEN, f"its {component_of(name)} runs (pid {pid})"
        return step_record.FAILED, _down(name, record["host"], reason)


def _start(name, now):
    """Start the unit; return the error of systemctl, or None."""
    if now["active"] == "failed" or now["result"] in LIMITED:
        _systemctl("reset-failed", name)
    return _systemctl("start", "--no-block", name)


def _phrase(name, host):
    """Return what sentences call a unit."""
    return f"the {component_of(name)} of {host}"


def _require_allowed(name, host, kind):
    """Return the unit's state; raise PreconditionFailed or ChangeError where it stays as it is."""
    now = state(name)
    if name not in UNITS_OF[kind]:
        raise PreconditionFailed(
            f"{name} is no unit for a step of the kind {kind}; {preconditions.OLD}"
        )
    if now["load"] == "masked" or now["enabled"].startswith("masked"):
        raise PreconditionFailed(
            f"{name} of {host} is masked, which was done on purpose: unmask it first, or leave"
            " the node alone"
        )
    return now


def _require_startable(name, now, host):
    """Raise PreconditionFailed where something that is known now prevents the start."""
    if now["active"] == "active":
        return  # It was started meanwhile; the verification says whether it is well.
    if now["active"] not in DOWN:
        raise PreconditionFailed(
            "the evidence is old: {} is {} ({}), not stopped; {}".format(
                _phrase(name, host), now["active"], now["sub"], preconditions.OLD
            )
        )
    _require_accepted(name, host)
    if name not in RUNTIMES:
        _require_no_other_kubelet(host)


def _require_no_other_kubelet(host):
    instance = kubelet_restart.look(host)
    if instance.pid is not None:
        raise PreconditionFailed(
            f"a kubelet runs on {host} next to its unit (pid {instance.pid}): end it first, or find"
            f" out who"
            " started it"
        )
    if instance.evidence["unit"] and instance.evidence["unit"]["name"] == KUBELET:
        kubelet_restart.demand_start(instance, host)


def _require_accepted(name, host):
    """Raise PreconditionFailed where systemd would not start the unit, as far as that is known."""
    try:
        facts = unit_start.every([name])
    except command.CommandError:
        return
    refused = start_refusal.now({}, facts[0] if facts else {})
    if refused:
        raise PreconditionFailed(
            f"nothing was started: {name} of {host}: {refused.what}; {refused.cure}"
        )


def _systemctl(*arguments):
    """Run systemctl, and return its error, or None.

    systemctl prints nothing unless something is wrong, or prints the links that it makes on
    standard error.
    """
    try:
        command.run(["systemctl", *arguments], ASKING)
    except command.CommandError as error:
        complaint = files.one_line(error)
        return None if complaint.endswith("it said nothing") else complaint
    return None


def switch(name, expected, after, step):
    """Enable or disable the unit if the answer of is-enabled still has this digest.

    The result is {changed, entry}. ChangeError is raised otherwise.
    """
    path, now = path_of(name), state(name)["enabled"]
    with step.exclusive() as root_fd:
        file_change.compare(path, _digest(now), expected)
        if now == after:
            return {"changed": False, "entry": None}
        file_change.demand_ended(path, journal.UNIT + name, step.root)
        if after not in (*DISABLED, ENABLED):
            raise ChangeError(
                f"{path} was not changed: nothing here makes it {files.one_line(after, 40)}"
            )
        entry = None
        if not step.check:
            entry = _switched(name, now, after, step, root_fd)
        return {"changed": True, "entry": entry}


def _switched(name, now, after, step, root_fd):
    """Write the intent, switch, read is-enabled, commit; return the entry."""
    path = path_of(name)
    facts = {
        "path": path,
        "real": journal.UNIT + name,
        "sha256_before": _digest(now),
        "sha256_after": _digest(after),
        "size_before": len(_bytes(now)),
    }
    with storage.change_errors(
        f"{path} was not changed, because the journal in {step.root} cannot be written"
    ):
        entry = journal_entry.begin(step, root_fd, facts, _bytes(now), None)[0]
    with entry:
        _enable_or_abandon(name, now, after, entry)
        try:
            entry.commit()
        except OSError as error:
            raise ChangeError(
                f"{name} is {after}, but that cannot be committed: {storage.way_out(error)};"
                f" {_stays_open(entry)}",
                changed=True,
            ) from error
    return f"{entry.run_id}/{entry.name}"


def _enable_or_abandon(name, now, after, entry):
    """Switch the unit to this state, or back where it takes another one; raise ChangeError."""
    complaint = _systemctl(*_arguments(name, after))
    present = _present_state(name)
    if present not in (after, now):
        complaint = f"{complaint}; {_systemctl(*_arguments(name, now))}"
        present = _present_state(name)
    if present == now:
        entry.abandon("systemd did not do it")
        raise ChangeError(
            "systemctl {} was asked for, and it is {} still ({})".format(
                " ".join(_arguments(name, after)), now, complaint or "it said nothing"
            )
        )
    if present != after:
        raise ChangeError(
            f"{name} is {present} now, neither {now} nor {after} ({complaint}):"
            f" {_stays_open(entry)}",
            changed=True,
        )


def _stays_open(entry):
    return f"the journal's entry {entry.name} of run {entry.run_id} stays open"


def _arguments(name, after):
    # A daemon-reload is left out: containers with devices would lose them.
    return ["enable" if after == ENABLED else "disable", "--no-reload", name]


def _present_state(name):
    try:
        return is_enabled(name)
    except command.CommandError as error:
        return files.one_line(error)


def _masks():
    from . import service_unmask  # few nodes ever have such an entry

    return service_unmask


def put_back(history, intent, former, step):
    """Restore the state of a unit from before an entry, for a revert.

    history: {sha256_left}, the digest that the unit's state must still have.
    former: the bytes of the former state: the answer of is-enabled, or the target of a mask.
    """
    if name_of(intent).startswith("/"):
        return _masks().put_back(name_of(intent), history["sha256_left"], former, step)
    return switch(
        name_of(intent), history["sha256_left"], former.decode("utf-8", "replace").strip(), step
    )


def _down(name, host, reason):
    return (
        f"component down: {_phrase(name, host)} was started and is not well: {reason}; systemd has"
        f" it now: look at journalctl -u {name}"
    )


def proven(name, seconds=None, looks=None):
    """Return (the main pid of the unit, why it is not verified).

    A unit is verified when it is active with one process, and healthy, for STABLE seconds.

    looks: a function that is used instead of `look`.
    """
    watch = _Watch(looks or look)
    end = time.monotonic() + (seconds or START_SECONDS)
    while time.monotonic() < end and watch.deaths < DEATHS:
        now = watch.inspect(name)
        if watch.is_stable():
            return watch.pid, None
        if now and now["active"] == "failed":
            break
        time.sleep(PAUSE)
    reason = watch.reason or f"it was not healthy for {int(STABLE)} s"
    if watch.deaths:
        reason += f" (it ended again {times(int(watch.deaths))})"
    return None, reason


class _Watch:
    """The observed state of a unit that starts.

    It has the unit's process, the time since which it is healthy, and the number of its deaths.
    """

    def __init__(self, inspection):
        self.inspection = inspection
        self.healthy_since = None
        self.pid = None
        self.deaths = 0
        self.reason = "nothing was seen"

    def inspect(self, name):
        """Look at the unit once more, and return its state."""
        now, self.reason = self.inspection(name)
        if now and now["pid"] and now["pid"] != self.pid:
            if self.pid is not None:
                self.deaths += 1
            self.pid, self.healthy_since = now["pid"], None
        if self.reason is not None:
            self.healthy_since = None
        elif self.healthy_since is None:
            self.healthy_since = time.monotonic()
        return now

    def is_stable(self):
        """Return whether one process was healthy for long enough."""
        return self.healthy_since is not None and time.monotonic() - self.healthy_since >= STABLE


def look(name):
    """Return (the unit's state, what is not well with it)."""
    try:
        now = state(name)
        if now["active"] != "active" or not now["pid"]:
            return now, "{} is {} ({}, result {})".format(
                name,
                now["active"],
                now["sub"],
                now["result"],
            )
        if name in RUNTIMES:
            return now, _unconnectable(name)
        healthz = kubelet.collect(registry.Context({}, procfs.of_interest(), {}))["healthz"]
    except Exception as error:  # pylint: disable=broad-except
        return None, files.one_line(error)
    if healthz["status"] == 200 or healthz["url"] is None:  # which has been switched off
        return now, None
    return now, "its healthz does not answer 200 yet ({})".format(
        healthz["error"] or "HTTP {}".format(healthz["status"])
    )


def _unconnectable(name):
    """Return why no connection to this runtime's socket can be made.

    The result is None where one can be made, or where the kubelet uses another runtime.
    """
    kubelet_facts = kubelet.collect(registry.Context({}, procfs.of_interest(), {}))
    path = runtime.socket_of(name, kubelet_facts)
    error = cri.connect(path, runtime.CONNECT) if path else None
    return error and f"{path} takes no connection ({error})"
