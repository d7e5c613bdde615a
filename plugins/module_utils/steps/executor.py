# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a repair on its node: check, write, verify, or restore the former bytes.

All of it in one program, so that no connection is needed between the write and its verification.
The work is done by a process in a session of its own: a controller that vanishes, and the channel
with it, stops nothing.
"""

import time

from ..shared import step_kinds, step_times
from ..shared.errors import PreconditionFailed
from ..shared.step_kinds import (
    DONE,
    FAILED,
    REFUSED,
    ROLLED_BACK,
    RUNNING,
    UNCHANGED,
    kind_of,
)
from ..shared.step_times import budget, limit_of
from ..state import journal, lock, step_record, storage
from ..state.storage import ROOT, ChangeError
from ..system import detached, files
from . import file_change, health_probe, preconditions, registry
from .answers import answer_of, in_check_mode
from .base import Step

# Options that an action gives the modules which do a step where no program can travel;
# doc_fragments/node_step.py.
GIVEN = {
    "run_id": {"type": "str"},
    "step": {"type": "dict"},
    "lock": {"type": "dict"},
    "check": {"type": "bool", "default": False},
    "timeout": {"type": "int"},
    "patience": {"type": "float"},
}
# How a step ends whose record ended so.
STATE_OF_RECORD = {
    step_record.PROVEN: DONE,
    step_record.ROLLED_BACK: ROLLED_BACK,
    step_record.NOT_DONE: REFUSED,
}


def run(params):
    """Return {state, reason, changed, seconds, seen, journal, notes}.

    `work` is done by a process that continues when this one ends. patience: seconds after which a
    running step answers so, with its progress as the reason; the next call waits for it again.
    """
    try:
        return detached.run(work, params, params.get("patience")) or answer_of(
            FAILED,
            "the program ended on the node without an answer (killed, or out of memory); the next"
            " run finds out what became of the step",
        )
    except detached.AtWork:
        root = params.get("root") or ROOT
        record = step_record.read(params["run_id"], params["step"]["id"], root) or {}
        return answer_of(RUNNING, record.get("progress"), True)


def work(params):
    """Do the step in this process, and return its answer. Never raises."""
    begin = time.monotonic()
    try:
        answer = _Executor(params).run()
    except PreconditionFailed as error:
        answer = answer_of(REFUSED, str(error))
    except ChangeError as error:
        answer = answer_of(FAILED if error.changed else REFUSED, str(error), changed=error.changed)
    except OSError as error:
        answer = answer_of(
            FAILED,
            "the step ended, because {} cannot be used: {}; the next run finds out what became"
            " of it".format(
                files.one_line(error.filename or "a file of this node"), storage.why(error)
            ),
        )
    except Exception as error:  # pylint: disable=broad-except
        answer = answer_of(
            FAILED,
            f"the step ended in an unforeseen way ({type(error).__name__}:"
            f" {files.one_line(error)}); the next run finds out what became of it",
        )
    answer["seconds"] = round(time.monotonic() - begin, 2)
    return answer


class _Executor:
    """One step of one run on this node."""

    def __init__(self, params):
        step = params["step"]
        self.params = params
        self.step = step
        self.kind = kind_of(step.get("remedy"))
        self.expect = step.get("expect") or {}
        self.change = step.get("change") or {}
        self.host = step.get("host") or "this host"
        self.component = self.expect.get("component")
        self.root = params.get("root") or ROOT
        self.lock = params.get("lock")
        self.context = journal.StepContext(
            params["run_id"],
            step["id"],
            "{}: {}".format(step.get("remedy"), step.get("target") or self.change.get("path")),
            ", ".join(_listed(step.get("code"))) or "asked for",
            self.root,
            bool(params.get("check")),
            bool(self.lock),
        )
        self.credentials = []
        self.notes = []

    def run(self):
        """Return the answer."""
        if not self.kind.in_plan:
            raise PreconditionFailed(
                "a step of the kind {} is not done on a node by this program".format(
                    files.one_line(self.step.get("remedy"), 40)
                )
            )
        if not self.context.check:
            earlier = self._earlier(
                step_record.read(self.params["run_id"], self.step["id"], self.root)
            )
            if earlier:
                return earlier
            self._hold(strict=True)
        if self.kind.name == step_kinds.RECOVER:
            from . import recovery  # which needs this module

            return recovery.Recovery(self).run()
        if self.kind.name == step_kinds.RESTORE_LEVELS:
            return self._restore_levels()
        if self.kind.through_api:
            return self._through_api()
        if self.kind.handler:
            return self._by_handler()
        return self._by_manifest()

    def _by_manifest(self):
        """Change a component's file, or restart it, and verify its process."""
        scene = preconditions.check(self.step, self.params)
        self.credentials, self.notes = scene.credentials, scene.notes
        if self.context.check:
            self._write()  # which compares, and writes nothing
            return in_check_mode(notes=self.notes)
        record, earlier = self._begin(scene.former)
        if earlier:
            return earlier
        begin = time.monotonic()
        done = self._ending_record(record, self._write)
        return self.proved(record, done, scene.former, begin)

    def _through_api(self):
        """Change objects of the API: nothing of this host changes but its journal."""
        handler = registry.handler_of(self.kind.name)
        step = Step(self.context, self.step, self.host, self.params)
        if self.context.check:
            would_change, text = handler.predict(step) or (False, UNCHANGED)
            return in_check_mode(text, would_change, self.notes)
        record, earlier = self._begin(None)
        if earlier:
            return earlier
        done = self._ending_record(record, lambda: handler.do(step))
        state = step_record.FAILED
        if done["proven"]:
            state = step_record.PROVEN
        elif done.get("rolled_back"):
            state = step_record.ROLLED_BACK
        self.end(record, state, done["reason"], None, done["entry"], changed=done["changed"])
        return answer_of(
            STATE_OF_RECORD.get(state, FAILED),
            done["reason"],
            done["changed"],
            None,
            done["entry"],
            self.notes,
        )

    def _begin(self, former):
        """Return (the record of the step, None), or (None, the answer of who began it before)."""
        record = self._record(former)
        earlier = self._earlier(step_record.claim(self.context, record))
        return record, earlier

    def _ending_record(self, record, change):
        """Return what the change returns; record how the step ended where it raises ChangeError."""
        try:
            return change()
        except ChangeError as error:
            if not error.changed:
                self.end(record, step_record.NOT_DONE, str(error))
            else:  # Who asks for this step again is told this.
                step_record.tell(
                    self.params["run_id"], self.step["id"], str(error), self.root, "ended_so"
                )
            raise

    def _hold(self, strict):
        """Renew the run's lock on this node for as long as the step may last.

        strict: the run must have it now.
        """
        if not self.lock:
            return
        if strict:
            with self.context.exclusive():
                pass
        lock.renew(
            self.params["run_id"], max(self.lock.get("seconds") or 0, budget(self.step)), self.root
        )

    def _earlier(self, record):
        """Return the answer of an earlier attempt at this step, or None.

        Ansible may open a connection twice.
        """
        if record is None:
            return None
        patience = self.params.get("patience")
        end = time.monotonic() + (patience or budget(self.step))
        while _is_running(record) and time.monotonic() < end:
            time.sleep(0.5)
            record = step_record.read(self.params["run_id"], self.step["id"], self.root)
        if patience and _is_running(record):
            return answer_of(RUNNING, record.get("progress"), True)
        return answer_of(
            STATE_OF_RECORD.get(record["state"], FAILED),
            _reason_of(record),
            record.get("changed", record["state"] != step_record.NOT_DONE),
            record.get("seen"),
            record.get("journal"),
        )

    def _write(self):
        """Change the file, and return {"entry": None} when the step has none."""
        kind = self.change.get("kind") or "none"
        if kind == "none":
            return {"entry": None, "changed": False}
        if kind == "move_out":
            return file_change.move_out(self.change["path"], self.change["sha256"], self.context)
        return file_change.compare_and_swap(
            self.change["path"],
            self.change["sha256"],
            file_change.decode_splices(self.change["splices"]),
            self.context,
        )

    def _record(self, former):
        """Return what the next run needs if this program is killed before the step has ended."""
        process = None
        if former:
            process = {
                "pid": former.pid,
                "ticks": former.ticks,
                "argv": files.masked_argv(former.argv),
            }
        return {
            "run_id": self.params["run_id"],
            "step": self.step["id"],
            "component": self.component,
            "host": self.host,
            "remedy": self.step["remedy"],
            "expect": self.expect,
            "limit": limit_of(self.step),
            "path": self.change.get("path"),
            "kind": self.change.get("kind") or "none",
            "guard": self.step.get("guard"),
            "node": self.change.get("node"),
            "cluster_uid": self.change.get("cluster_uid"),
            "allow": self.change.get("allow"),
            "held": self.change.get("held"),
            "former": process,
        }

    def proved(self, record, done, former, begin):
        """Restart and wait; roll back what is not verified in time. begin: before the write."""
        expect = record["expect"]
        by_signal = expect.get("restart") == "signal"
        if by_signal and former:
            health_probe.terminate(former)
        # a file that is taken away need not restart anything
        is_moved = not expect.get("restart")
        found = health_probe.wait(
            _expected(record, former),
            self.credentials,
            begin + record["limit"],
            step_times.WATCHED if is_moved else None,
            later=self._later(record, begin),
        )
        if not found.ok:
            return self._back(record, done["entry"], former, found)
        seconds = round(found.shown_at - begin, 2) if found.shown_at else None
        seen = dict(found.seen(), proof_seconds=seconds)
        self.end(record, step_record.PROVEN, None, seen, done["entry"])
        return answer_of(
            DONE, "", bool(done["entry"]) or by_signal, seen, done["entry"], self.notes
        )

    def _back(self, record, entry, former, found):
        """Restore the former bytes, and the component with them."""
        component = record["component"]
        seconds = round(found.waited)
        reason = f"{component} of {self.host} was not proven within {seconds} s: {found.reason}"
        if entry:
            try:
                self._hold(strict=False)
                self._restore(entry)
            except ChangeError as error:
                reason += f"; the former bytes were not put back: {error}"
                return self._ended(record, step_record.FAILED, reason, found, entry)
            reason += "; the former bytes are back"
        restored = step_record.ROLLED_BACK if entry else step_record.FAILED
        terminated = self._terminate_changed(record, entry, former)
        if not record["former"]:
            reason += ", and it did not run before either"
            return self._ended(record, restored, reason, found, entry)
        begin = time.monotonic()
        back = health_probe.wait(
            health_probe.ExpectedState(
                component, argv=record["former"]["argv"], not_identity=terminated
            ),
            self.credentials,
            begin + record["limit"],
            hopeless=False,
            later=self._later(record, begin),
        )
        if back.ok:
            reason += ", and it runs"
            if entry:
                reason += f" as before (pid {back.instance.pid})"
            return self._ended(record, restored, reason, back, entry)
        reason = (
            f"component down: {reason}; but it did not come back within {round(back.waited)} s"
            f" ({back.reason}): look at journalctl"
            f" -u kubelet, crictl ps -a --name {component} and"
            f" /var/log/pods/kube-system_{component}-* on {self.host}"
        )
        return self._ended(record, step_record.FAILED, reason, back, entry)

    def _ended(self, record, state, reason, found, entry):
        """Record how a step ended that was not verified, and return its answer."""
        self.end(record, state, reason, found.seen(), entry)
        answer = STATE_OF_RECORD.get(state, FAILED)
        return answer_of(answer, reason, True, found.seen(), entry, self.notes)

    @staticmethod
    def _terminate_changed(record, entry, former):
        """End the processes that run with what was restored; return the identity of the last."""
        terminated = None
        if record["expect"].get("restart") != "signal" or not entry:
            return terminated
        for instance in health_probe.instances(record["component"]):
            if not former or instance.identity != former.identity:
                terminated = instance.identity
                health_probe.terminate(instance)
        return terminated

    @staticmethod
    def _later(record, begin):
        """Return the function that says until when the kubelet's back-off may last.

        No longer than now where something else keeps the component from starting.
        """
        image = record["expect"].get("image")
        return lambda: begin + step_times.BACK_OFF if preconditions.startable(image) else 0

    def _restore(self, entry):
        """Restore what the entry replaced or removed; refuse what was written since."""
        run_id, _dummy, name = entry.partition("/")
        items = journal.read_run(run_id, self.root)
        item = next((item for item in items if item["entry"] == name), None)
        intent = item and item["intent"]
        if intent is None:
            raise ChangeError(f"the entry {entry} of the journal is gone or cannot be read")
        former = journal.former_bytes(item, self.root)
        context = self.context.also(what="roll back: {}".format(intent["path"]), reverts=entry)
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

    def end(self, record, state, reason, seen=None, entry=None, **more):
        """Record how a step ended, as far as that can be."""
        try:
            step_record.end(
                record["run_id"],
                record["step"],
                state,
                reason,
                self.root,
                seen=seen,
                journal=entry,
                ended_by=self.params["run_id"],
                **more,
            )
        except (OSError, ValueError, ChangeError) as error:
            self.notes.append(f"{storage.one_line(error)}; the next run does that (KM902)")

    def _by_handler(self):
        """Do a step whose handler has its own preconditions and verification."""
        step = Step(self.context, self.step, self.host, self.params)
        try:
            state, reason, seen = registry.handler_of(self.kind.name).run(step)
        except step_record.Looked:
            return in_check_mode()
        return answer_of(
            STATE_OF_RECORD.get(state, FAILED), reason, state != step_record.NOT_DONE, seen
        )

    def _restore_levels(self):
        """Restore what captures raised from here, where their own service failed or is gone."""
        if self.context.check:
            return in_check_mode()
        allow = (self.step.get("guard") or {}).get("allow") or []
        handler = registry.handler_of(self.kind.name)
        return answer_of(*handler.restore_all(self.params["run_id"], self.root, allow))


def _is_running(record):
    return record["state"] == step_record.AWAITED and step_record.alive(record)


def _reason_of(record):
    """Return why a step ended so; of an interrupted one what was said of it."""
    if record["state"] != step_record.AWAITED:
        return record.get("reason")
    return record.get("ended_so") or (
        "this step was begun at {} and interrupted; the next run finishes or undoes it".format(
            record.get("at")
        )
    )


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


def _listed(value):
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return [str(value)] if value else []
