# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resets the state of this node's CPU and memory manager, between a drain and its end.

start_former: a kubelet that cannot start with its present state is started under the former policy,
    by a drop-in under /run. Only a running kubelet can end the pods that a drain evicts.
reset_state: the kubelet is stopped, its state files are moved into the journal, its configuration
    is changed if the plan says so, the drop-in is removed, and the kubelet is started and verified.
    It must be healthy and have written a state of its policy.

State files are never restored: pods have run since they were written.
"""

import json
import os
import time

from ...changes import step_claim
from ...collectors import registry
from ...collectors.node import instances
from ...shared import consent, restart_impact
from ...shared.errors import PreconditionFailed
from ...shared.kubelet_start import COMPONENT, SETTLED_SECONDS
from ...state import step_record, storage
from ...state.storage import ChangeError
from ...system import command, files, procfs
from .. import file_change, kubelet_files, kubelet_restart, preconditions
from ..base import StepHandler, outcome

STOPPING = 60  # seconds until its process has ended
# seconds until a healthy kubelet has written its state, which it does before it is healthy
WRITTEN = 20
PAUSE = 0.3
STATE_KEPT = (
    "the state of a kubelet's managers is never put back, because pods ran since it was written"
)
LENT_KEPT = (
    "what a reset lends a kubelet goes once its state is reset, or with a reboot; until then the"
    " kubelet would not start again without it"
)
CONFIG_KEPT = (
    "a CPU manager's settings go back with a reset of their own (the role cpu_manager_reset with"
    " the former ones): alone they would keep the kubelet down"
)
MAX_STATE = 16 * 1024 * 1024


class _ManagerHandler(StepHandler):
    """A step on the kubelet's unit.

    The change of a step is {path, files, reload, states, edits}.
    """

    def check(self, step):
        """Refuse what could harm the node; return the kubelet's process and files."""
        kubelet = self.require(step)
        return {
            "component": COMPONENT,
            "limit": kubelet_restart.SECONDS,
            "paths": _paths(step),
            "expect": step.plan["expect"],
            "reload": step.change["reload"],
            "of_run": step.context.run_id,
            "states": step.change.get("states") or [],
            "former": {
                "pid": kubelet.pid,
                "ticks": kubelet.ticks,
                "argv": files.masked_argv(kubelet.argv),
            },
        }

    def require(self, step):
        """Return the kubelet as it is; raise PreconditionFailed where it must not be changed."""
        kubelet = _settled(step.host)
        _require_own_unit(kubelet.evidence["unit"] or {}, step.host)
        self.require_evidence(step, kubelet)
        if kubelet.healthy and step.expect.get("down"):
            raise PreconditionFailed(
                f"the evidence is old: the kubelet of {step.host} was down, so that nothing was"
                f" drained, and runs now; {preconditions.OLD}"
            )
        everyone = instances.collect(registry.Context({}, procfs.of_interest(), {}))["processes"]
        if consent.API_DOWN not in step.allow:
            preconditions.answering(step.guard, everyone, step.host)
        self.require_others(step, kubelet, everyone)
        _require_no_devices(step)
        kubelet_restart.demand_start(kubelet, step.host)
        if kubelet.healthy and consent.PENDING_CHANGES not in step.allow:
            _require_nothing_pending(step, kubelet)
        return kubelet

    def require_evidence(self, step, kubelet):
        """Raise PreconditionFailed where the kubelet is no longer as the evidence has it."""

    def require_others(self, step, kubelet, everyone):
        """Raise PreconditionFailed where no other control plane would answer meanwhile."""


class StartUnderFormerPolicy(_ManagerHandler):
    """Starts a kubelet under the policy of its state, so that it can end pods."""

    def require_evidence(self, step, kubelet):
        """Refuse a kubelet that is healthy without the temporary arguments."""
        if kubelet.healthy and not _runs_so(kubelet, step.plan):
            raise PreconditionFailed(
                f"the evidence is old: the kubelet of {step.host} runs and is healthy;"
                f" {preconditions.OLD}"
            )

    def perform(self, step, record):
        """Write the drop-in, start the kubelet by it and verify it, or restore everything."""
        words, kubelet = record["expect"]["words"], kubelet_restart.look(record["host"])
        if _runs_so(kubelet, record):
            return outcome(
                step.context, step_record.PROVEN, "it runs so already", _identity(kubelet)
            )
        try:
            for file in step.change["files"]:
                kubelet_files.write(file, step.context.also(keep=LENT_KEPT))
        except ChangeError as error:
            return _unstarted(step.context, record, str(error))
        reason = kubelet_files.ask_restart(True)
        if reason is None:
            kubelet, reason = kubelet_restart.wait(lambda argv: _missing(argv, words), None)
            if kubelet:
                return outcome(step.context, step_record.PROVEN, None, _identity(kubelet))
        return _unstarted(
            step.context,
            record,
            "the kubelet of {} does not run under the policy of its state either: {}".format(
                record["host"], reason
            ),
        )

    def recover(self, record, context=None, params=None):
        """Verify it, or remove the drop-in."""
        try:
            running = _settled(record["host"])
        except PreconditionFailed as error:
            return None, str(error)
        if _runs_so(running, record):
            return step_record.PROVEN, "it runs under the policy of its state"
        trouble = _remove_arguments(context, record)
        if trouble:
            return None, trouble
        return step_record.ROLLED_BACK, "its drop-in is gone again"


class RemoveTemporaryArguments(_ManagerHandler):
    """Removes the arguments that a reset set for the drain and that are not needed afterwards.

    The running kubelet keeps its arguments until its next start.
    """

    def require(self, step):
        """Return the kubelet as it is: a daemon-reload of systemd is all that happens."""
        kubelet = _settled(step.host)
        _require_own_unit(kubelet.evidence["unit"] or {}, step.host)
        _require_no_devices(step)
        return kubelet

    def perform(self, step, record):
        """Remove the drop-in."""
        trouble = _remove_arguments(step.context, record, restart=False)
        if trouble:
            return outcome(step.context, step_record.FAILED, trouble)
        words = " ".join(record["expect"]["words"])
        return outcome(
            step.context, step_record.PROVEN, f"the kubelet's next start is without {words}"
        )

    def recover(self, record, context=None, params=None):
        """Remove the drop-in."""
        try:
            _settled(record["host"])
        except PreconditionFailed as error:
            return None, str(error)
        trouble = _remove_arguments(context, record, restart=False)
        if trouble:
            return None, trouble
        return step_record.PROVEN, "what was lent is gone"


class ResetState(_ManagerHandler):
    """Stops the kubelet, moves its state into the journal, and starts it without one."""

    def require_others(self, step, kubelet, everyone):
        """Refuse to stop the only control plane."""
        if not kubelet.healthy or consent.SINGLE_CONTROL_PLANE in step.allow:
            return
        if preconditions.own_servers(everyone):
            may_ask = preconditions.usable(step.params, everyone)
            preconditions.another(step.guard, everyone, may_ask, step.host)

    def perform(self, step, record):
        """Stop, reset, start and verify, or restore all but the state: none fits any policy."""
        reset = _Reset(step.context, record)
        try:
            reset.apply(step.change.get("edits") or [])
        except (ChangeError, command.CommandError, OSError) as error:
            return reset.roll_back(
                "the state of {} was not reset: {}".format(record["host"], files.one_line(error))
            )
        kubelet, reason = _verified(record)
        if kubelet:
            return outcome(step.context, step_record.PROVEN, None, _identity(kubelet))
        return reset.roll_back(
            "the kubelet of {} was not proven with a new state: {}".format(record["host"], reason)
        )

    def recover(self, record, context=None, params=None):
        """Start the kubelet where it is stopped: it never stays stopped."""
        try:
            running = _settled(record["host"])
        except PreconditionFailed as error:
            return None, str(error)
        if running.healthy:
            return step_record.NOT_DONE, "its kubelet runs; what its state is now is judged again"
        kubelet, reason = _started(True)
        if kubelet:
            return (
                step_record.NOT_DONE,
                (
                    f"its kubelet runs again (pid {kubelet.pid}); what its state is now is judged"
                    " again"
                ),
            )
        policies = (record.get("expect") or {}).get("policies") or {}
        if any(os.path.lexists(path) for path in policies) and _unwritten(policies):
            return (
                step_record.NOT_DONE,
                (
                    "its state was not moved yet, and its kubelet does not start over it"
                    f" ({reason}): that is judged again"
                ),
            )
        return (
            step_record.FAILED,
            "its kubelet did not start again ({}): look at journalctl -u kubelet on {}".format(
                reason, record["host"]
            ),
        )


def _paths(step):
    return [file["path"] for file in step.change["files"]]


def _identity(kubelet):
    return {"pid": kubelet.pid, "ticks": kubelet.ticks}


def _missing(argv, words):
    """Return what a command line lacks, or None."""
    if all(word in argv for word in words):
        return None
    return "the process runs without {}".format(" ".join(words))


def _started(reload_units):
    """Restart the kubelet: (the kubelet, None), or (None, why it is not healthy)."""
    trouble = kubelet_files.ask_restart(reload_units)
    if trouble:
        return None, trouble
    return kubelet_restart.wait(lambda argv: None, None)


def _require_own_unit(unit, host):
    """Raise PreconditionFailed for a kubelet of another unit, and for a masked one."""
    if unit.get("name") != kubelet_restart.UNIT:
        raise PreconditionFailed(
            f"the kubelet of {host} is not that of {kubelet_restart.UNIT}: reset its state where it"
            " is started"
        )
    if "masked" in (unit.get("unit_file_state"), unit.get("load_state")):
        raise PreconditionFailed(
            f"the kubelet of {host} is masked, which was done on purpose: unmask it first, or"
            " leave the node alone"
        )


def _require_no_devices(step):
    if consent.KUBELET_RESTART not in step.allow:
        kubelet_restart.demand_no_devices(step.host)


def _require_nothing_pending(step, kubelet):
    """Raise PreconditionFailed where the restart would load foreign changes too.

    Changes of the kubelet's configuration do not count: the reset is meant to load them.
    """
    evidence = kubelet.evidence
    configs = [evidence.get("config"), *list(evidence.get("config_dropins") or [])]
    own_paths = _paths(step) + [config.get("path") for config in configs if config]
    waiting = restart_impact.of_kubelet(evidence, own_paths)
    if kubelet_restart.only_ours(evidence["unit"] or {}, own_paths):
        waiting = [impact for impact in waiting if impact != restart_impact.RELOAD]
    if waiting:
        raise PreconditionFailed(restart_impact.sentence(step.host, "the kubelet", waiting))


def _settled(host):
    """Return the kubelet; one that answers and was just started is inspected again."""
    kubelet, end = kubelet_restart.look(host), time.monotonic() + SETTLED_SECONDS
    while kubelet.healthy and _young(kubelet) and time.monotonic() < end:
        time.sleep(PAUSE)
        kubelet = kubelet_restart.look(host)
    return kubelet


def _young(kubelet):
    """Return whether the kubelet's process was started a moment ago.

    A process that is not visible, as in another namespace, does not count as young.
    """
    process = kubelet.evidence["process"]
    return process is not None and time.time() - (process.get("started_at") or 0) < SETTLED_SECONDS


def _runs_so(kubelet, plan):
    """Return whether it runs by these arguments already, as after an interrupted reset."""
    return kubelet.healthy and _has(kubelet, plan)


def _has(kubelet, plan):
    """Return whether its process has these arguments, healthy or not."""
    return kubelet.pid is not None and all(word in kubelet.argv for word in plan["expect"]["words"])


def _unstarted(context, record, reason):
    """Remove the drop-in: the kubelet is left to its unit, as it was."""
    trouble = _remove_arguments(context, record)
    # the record stays open: else a file that could not be taken back would refuse the next start
    if trouble:
        reason = f"{reason}; and not taken back: {trouble}; the next run takes it back (KM902)"
        step_claim.tell(context.run_id, context.step, reason, context.root, "ended_so")
        return step_record.FAILED, reason, {}
    return outcome(context, step_record.ROLLED_BACK, reason + "; its drop-in is gone again")


def _remove_arguments(context, record, restart=True):
    """Remove the drop-in, and reload systemd; return why that failed, or an empty text.

    restart: restart a process that runs with these arguments; without it the process keeps them.
    """
    try:
        for path in record["paths"]:
            _move_away(path, context)
        kubelet_files.tidy(record["paths"])
        kubelet_restart.load(record["reload"])
        # else evidence would take them for its own
        if restart and _has(kubelet_restart.look(record["host"]), record):
            kubelet_restart.restart(False)
        return ""
    except (ChangeError, PreconditionFailed, command.CommandError) as error:
        return files.one_line(error)


class _Reset:
    """A reset of the state, and what its rollback needs."""

    def __init__(self, context, record):
        self.context = context
        self.record = record
        self.dropins = {}  # {path: former bytes} of what was set for the drain
        self.configs = []  # [(path, former bytes)]

    def apply(self, edits):
        """Stop the kubelet, move its state away, and write its configuration."""
        _stop(self.record)
        self._move_states()
        for edit in edits:
            self.configs.append((edit["path"], files.read(edit["path"], MAX_STATE)))
            kubelet_files.write(edit, self.context.also(keep=CONFIG_KEPT))
        for path in self.record["paths"]:
            self.dropins[path] = _move_away(path, self.context.also(keep=LENT_KEPT))
        kubelet_files.tidy(self.record["paths"])

    def _move_states(self):
        for path in self.record["states"]:
            _move_away(path, self.context.also(keep=STATE_KEPT))

    def _restore(self):
        _stop(self.record)
        self._move_states()
        for path, data in self.configs:
            file_change.replace(
                path,
                storage.digest(files.read(path, MAX_STATE)),
                data,
                self.context.also(keep=CONFIG_KEPT, what=f"roll back: {path}"),
            )
        for path, data in sorted(self.dropins.items()):
            if data is not None and not os.path.lexists(path):
                file_change.create_file(
                    path,
                    data,
                    self.context.also(keep=LENT_KEPT, what=f"roll back: {path}"),
                    file_change.Attributes(0o600),
                    make_folder=True,
                )

    def roll_back(self, reason):
        """Restore the configuration and the drop-in, but no state, and start the kubelet so."""
        trouble = ""
        try:
            self._restore()
        except (ChangeError, command.CommandError, OSError) as error:
            trouble = f"; not taken back: {files.one_line(error)}"
        kubelet, failure = _started(self.record["reload"])
        if not kubelet:
            return outcome(
                self.context,
                step_record.FAILED,
                "component down: {}{}; and it did not come up with a new state ({}): look at"
                " journalctl -u kubelet on {}; the former state files are in the journal of this"
                " run".format(reason, trouble, failure, self.record["host"]),
            )
        arguments = ""
        if any(self.dropins.values()):
            arguments = " and what it was lent for the drain"
        return outcome(
            self.context,
            step_record.FAILED if trouble else step_record.ROLLED_BACK,
            f"{reason}{trouble}; it runs with its former configuration{arguments} and a new"
            f" state (pid {kubelet.pid})",
        )


def _move_away(path, context):
    """Move a file with its present content into the journal, and return its bytes.

    The kubelet wrote the file until it was stopped, so that there is no digest to compare it with.
    The result is None where there is no such file.
    """
    if not os.path.lexists(path):
        return None
    data = files.read(path, MAX_STATE)
    file_change.move_out(path, storage.digest(data), context)
    return data


def _stop(record):
    """Stop the kubelet's unit until no process of it is left; raise ChangeError."""
    kubelet_restart.stop()
    end = time.monotonic() + STOPPING
    while time.monotonic() < end:
        try:
            if kubelet_restart.look(record["host"]).pid is None:
                return
        except PreconditionFailed:
            pass
        time.sleep(PAUSE)
    raise ChangeError(
        f"its kubelet did not end within {int(STOPPING)} s (systemctl status kubelet)"
    )


def _verified(record):
    """Return (the kubelet, None) once it is healthy and its state is new, or (None, why not)."""
    kubelet, reason = _started(record["reload"])
    if not kubelet:
        return None, reason
    end = time.monotonic() + WRITTEN
    reason = _unwritten(record["expect"]["policies"])
    while reason and time.monotonic() < end:
        time.sleep(PAUSE)
        reason = _unwritten(record["expect"]["policies"])
    if reason:
        return None, reason
    return kubelet, None


def _unwritten(policies):
    """Return why the state files are not of these policies {path: policy}, or None."""
    for path, policy in sorted(policies.items()):
        try:
            written = json.loads(files.read(path, MAX_STATE).decode("utf-8")).get("policyName")
        except (OSError, ValueError, AttributeError) as error:
            return f"{path} cannot be read ({files.one_line(error)})"
        if written != policy:
            return f"{path} is of the policy {files.one_line(written, 40)}, not {policy}"
    return None
