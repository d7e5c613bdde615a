# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits or moves a file of a control-plane component, or restarts it, and verifies its process.

The kubelet starts the component again. Where the new process is not as expected within the time
limit, the former bytes are restored, and with them the component.
"""

import time

from ...changes import signals
from ...shared import step_times
from ...shared.step_kinds import DONE
from ...state import journal, step_record
from ...state.storage import ChangeError
from .. import file_change, health_probe, preconditions
from ..answers import STATE_OF_RECORD, answer_of, in_check_mode


class ChangeComponent:
    """One such step, on behalf of the executor, which records it and renews the lock."""

    def __init__(self, executor):
        self.executor = executor
        self.change = executor.change
        self.credentials = []
        self.notes = executor.notes

    def run(self):
        """Do the step, and return its answer."""
        executor = self.executor
        state = preconditions.check(executor.step, executor.params)
        self.credentials = state.credentials
        self.notes += state.notes
        if executor.context.check:
            self._write()  # which compares, and writes nothing
            return in_check_mode(notes=self.notes)
        record, earlier = executor.begin(state.former)
        if earlier:
            return earlier
        begin = time.monotonic()
        written = executor.perform(record, self._write)
        return self._verify(record, written["entry"], state.former, begin)

    def resume(self, record, entry):
        """Verify what an interrupted step wrote, or restore the former bytes.

        entry: the step's entry of the journal, or None.
        """
        executor = self.executor
        step = dict(
            executor.step,
            host=executor.host,
            guard=executor.step.get("guard") or record.get("guard"),
        )
        self.credentials = preconditions.resume(step, executor.params)
        return self._verify(record, entry, _former_process(record), time.monotonic())

    def _write(self):
        """Change the file, and return {"entry": None} when the step has none."""
        kind = self.change.get("kind") or "none"
        path, digest = self.change.get("path"), self.change.get("sha256")
        context = self.executor.context
        if kind == "none":
            return {"entry": None, "changed": False}
        if kind == "move_out":
            return file_change.move_out(path, digest, context)
        splices = file_change.decode_splices(self.change["splices"])
        return file_change.compare_and_swap(path, digest, splices, context)

    def _verify(self, record, entry, former, begin):
        """Restart the component and wait; roll back where it is not verified in time.

        begin: the time before the write.
        """
        expect = record["expect"]
        by_signal = expect.get("restart") == "signal"
        if by_signal and former:
            signals.terminate(former)
        # a file that is moved away need not restart anything
        is_moved = not expect.get("restart")
        probe = health_probe.wait(
            _expected(record, former),
            self.credentials,
            begin + record["limit"],
            step_times.WATCHED if is_moved else None,
            later=_latest_start(record, begin),
        )
        if not probe.ok:
            return self._roll_back(record, entry, former, probe)
        seconds = round(probe.shown_at - begin, 2) if probe.shown_at else None
        observation = dict(probe.observation(), proof_seconds=seconds)
        self.executor.end(record, step_record.PROVEN, None, observation, entry)
        return answer_of(DONE, "", bool(entry) or by_signal, observation, entry, self.notes)

    def _roll_back(self, record, entry, former, probe):
        """Restore the former bytes, and the component with them."""
        component, host = record["component"], self.executor.host
        seconds = round(probe.waited)
        reason = f"{component} of {host} was not proven within {seconds} s: {probe.reason}"
        if entry:
            try:
                self.executor.renew_lock(strict=False)
                self._restore(entry)
            except ChangeError as error:
                reason += f"; the former bytes were not put back: {error}"
                return self._end(record, step_record.FAILED, reason, probe, entry)
            reason += "; the former bytes are back"
        state = step_record.ROLLED_BACK if entry else step_record.FAILED
        terminated = _terminate_changed(record, entry, former)
        if not record["former"]:
            reason += ", and it did not run before either"
            return self._end(record, state, reason, probe, entry)
        return self._await_former(record, entry, terminated, state, reason)

    def _await_former(self, record, entry, terminated, state, reason):
        """Wait for the component as it was before the step.

        terminated: the identity of a process that does not count.
        """
        component, begin = record["component"], time.monotonic()
        probe = health_probe.wait(
            health_probe.ExpectedState(
                component, argv=record["former"]["argv"], not_identity=terminated
            ),
            self.credentials,
            begin + record["limit"],
            hopeless=False,
            later=_latest_start(record, begin),
        )
        if probe.ok:
            reason += ", and it runs"
            if entry:
                reason += f" as before (pid {probe.instance.pid})"
            return self._end(record, state, reason, probe, entry)
        reason = (
            f"component down: {reason}; but it did not come back within {round(probe.waited)} s"
            f" ({probe.reason}): look at journalctl"
            f" -u kubelet, crictl ps -a --name {component} and"
            f" /var/log/pods/kube-system_{component}-* on {self.executor.host}"
        )
        return self._end(record, step_record.FAILED, reason, probe, entry)

    def _end(self, record, state, reason, probe, entry):
        """Record how a step ended that was not verified, and return its answer."""
        observation = probe.observation()
        self.executor.end(record, state, reason, observation, entry)
        return answer_of(STATE_OF_RECORD[state], reason, True, observation, entry, self.notes)

    def _restore(self, entry):
        """Restore what the entry replaced or removed; refuse what was written since."""
        run_id, _slash, name = entry.partition("/")
        root = self.executor.root
        items = journal.read_run(run_id, root)
        item = next((item for item in items if item["entry"] == name), None)
        intent = item and item["intent"]
        if intent is None:
            raise ChangeError(f"the entry {entry} of the journal is gone or cannot be read")
        former = journal.former_bytes(item, root)
        context = self.executor.context.also(
            what="roll back: {}".format(intent["path"]), reverts=entry
        )
        if intent["sha256_after"] is None:
            attributes = file_change.Attributes(
                int(intent["mode"], 8),
                intent["uid"],
                intent["gid"],
                journal.unpacked(intent["xattrs"]),
            )
            file_change.create_file(intent["real"], former, context, attributes)
        else:
            file_change.replace(intent["real"], intent["sha256_after"], former, context)


def _terminate_changed(record, entry, former):
    """End the processes that run with what was restored; return the identity of the last."""
    terminated = None
    if record["expect"].get("restart") != "signal" or not entry:
        return terminated
    for instance in health_probe.instances(record["component"]):
        if not former or instance.identity != former.identity:
            terminated = instance.identity
            signals.terminate(instance)
    return terminated


def _latest_start(record, begin):
    """Return a function that returns until when the kubelet's back-off may delay the start.

    The function returns 0 where something else prevents the start.
    """
    image = record["expect"].get("image")
    return lambda: begin + step_times.BACK_OFF if preconditions.startable(image) else 0


def _expected(record, former):
    """Return what the component's process has to be like after the change."""
    expect = record["expect"]
    elect = True if expect.get("elect") else None
    if expect.get("restart"):
        identity = former.identity if former else None
        return health_probe.ExpectedState(
            record["component"], expect.get("flags"), None, identity, elect
        )
    argv = record["former"]["argv"] if record["former"] else None
    return health_probe.ExpectedState(record["component"], expect.get("flags"), argv, None, elect)


def _former_process(record):
    """Return the component's process of before the step, None where it is gone."""
    former = record["former"] or {}
    identity = (former.get("pid"), former.get("ticks"))
    for instance in health_probe.instances(record["component"]):
        if instance.identity == identity:
            return instance
    return None
