# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a repair on its node: guard, write, wait for the proof, or the former bytes back.

All of it in one program, so that nobody has to be there between the write and its proof. The work
is done by a process in a session of its own: a controller that vanishes, and the channel with it,
stops nothing.
"""

import base64
import time

from ..state import journal, lock
from ..state import step_record as proof
from ..state import storage as durable
from ..state.storage import ROOT, ChangeError
from ..system import detached as outlive
from ..system import files
from . import file_change as change
from . import health_probe as prove
from . import preconditions as guard
from .handlers import api_steps as apply_api

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
LIMIT = 120
# the kubelet waits up to 5 minutes before it starts a container again that ended, also when a
# manifest comes back
BACK_OFF = 330
GUARDS = 60
WATCHED = 22.0  # seconds: longer than the kubelet's look at its whole folder, every 20
DONE, ROLLED_BACK, REFUSED, FAILED, SKIPPED = "done", "rolled_back", "refused", "failed", "skipped"
AT_WORK = "at_work"  # no end: whoever asks again for the same step waits on
REVERT = "revert"  # what records of revert_run say in its place
LEVELS, KUBELET = "restore_levels", "raise_kubelet"
MANAGERS = ("start_former", "reset_state", "unlend")  # of manager_reset, which few nodes ever need
ALONE = (
    "kernel_setting",
    "kernel_module",
    "file_limit",
    "unit_limit",
    "pinned_pod",
    "swap_persistence",
    "swap_off",
    "unmask_kubelet",
    "restart_leader",
)  # of modules of their own
# what is written is proven as soon as it is read again: nothing is waited for
SHORT = ("kernel_setting", "kernel_module", "file_limit", "swap_persistence")
# of kubelet_service
SERVICE = ("enable_kubelet", "start_kubelet", "enable_runtime", "start_runtime")
UNCHANGED = "nothing was changed"
LOOK = 120  # seconds in which a step in check mode has looked at everything
REMEDIES = (
    "edit_manifest",
    "edit_config",
    "move_out",
    "restart",
    "recover",
    LEVELS,
    *ALONE,
    *SERVICE,
    *MANAGERS,
    *tuple(sorted(apply_api.SECONDS)),
)


def limit_of(step):
    """Seconds in which the step must be proven."""
    limit = step.get("limit") or LIMIT
    return max(limit, BACK_OFF) if (step.get("expect") or {}).get("restart") == "signal" else limit


def budget(step):
    """Seconds after which the step has ended, whatever happens.

    Guards, proof, and the same again for the way back.
    """
    # what was interrupted may have been of any kind, and several
    if step.get("remedy") == "recover":
        return GUARDS + 4 * BACK_OFF
    if step.get("remedy") == LEVELS:
        return max(2 * GUARDS, step.get("limit") or 0)
    if step.get("remedy") in apply_api.SECONDS:
        return GUARDS + apply_api.seconds_of(step)
    if step.get("remedy") in SHORT:
        return GUARDS + (step.get("limit") or LIMIT)
    return GUARDS + 2 * max(limit_of(step), BACK_OFF) + WATCHED


def run(params):
    """{state, reason, changed, seconds, seen, journal, notes}.

    `work` in a process that outlives this one.

    patience: seconds after which a step that is still at work says so, with its progress as the
    reason; asked again, it is waited for again.
    """
    try:
        return outlive.run(work, params, params.get("patience")) or answer_of(
            FAILED,
            "the program ended on the node without an answer (killed, or out of memory); the next"
            " run finds out what became of the step",
        )
    except outlive.AtWork:
        record = (
            proof.read(params["run_id"], params["step"]["id"], params.get("root") or ROOT) or {}
        )
        return answer_of(AT_WORK, record.get("progress"), True)


def work(params):
    """The step, in this process. Never raises."""
    begin = time.monotonic()
    try:
        answer = _Executor(params).run()
    except guard.Refused as error:
        answer = answer_of(REFUSED, str(error))
    except ChangeError as error:
        answer = answer_of(FAILED if error.changed else REFUSED, str(error), changed=error.changed)
    except OSError as error:
        answer = answer_of(
            FAILED,
            "the step ended, because {} cannot be used: {}; the next run finds out what became"
            " of it".format(
                files.one_line(error.filename or "a file of this node"), durable.why(error)
            ),
        )
    except Exception as error:  # pylint: disable=broad-except
        answer = answer_of(
            FAILED,
            f"the step ended in a way that nobody foresaw ({type(error).__name__}:"
            f" {files.one_line(error)}); the next run finds out what became of it",
        )
    answer["seconds"] = round(time.monotonic() - begin, 2)
    return answer


def answer_of(state, reason, changed=False, seen=None, entry=None, notes=()):
    """What a step answers."""
    return {
        "state": state,
        "reason": durable.one_line(reason or "", 1000),
        "changed": changed,
        "seconds": 0.0,
        "seen": seen or {},
        "journal": entry,
        "notes": list(notes),
    }


class _Executor:
    """One step of one run on this node."""

    def __init__(self, params):
        step = params["step"]
        self.params = params
        self.step = step
        self.expect = step.get("expect") or {}
        self.change = step.get("change") or {}
        self.host = step.get("host") or "this host"
        self.component = self.expect.get("component")
        self.root = params.get("root") or ROOT
        self.lock = params.get("lock")
        self.as_step = journal.Step(
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
        """The answer."""
        if self.step.get("remedy") not in REMEDIES:
            raise guard.Refused(
                "a step of the kind {} is not done on a node by this program".format(
                    files.one_line(self.step.get("remedy"), 40)
                )
            )
        if not self.as_step.check:
            earlier = self._earlier(proof.read(self.params["run_id"], self.step["id"], self.root))
            if earlier:
                return earlier
            self._hold(strict=True)
        if self.step["remedy"] == "recover":
            from . import recovery as resume  # which needs this module

            return resume.Recovery(self).run()
        if self.step["remedy"] == LEVELS:
            return self._levels()
        if self.step["remedy"] in ALONE + SERVICE + MANAGERS:
            return self._by_itself()
        through_api, former = self.step["remedy"] in apply_api.SECONDS, None
        if not through_api:
            scene = guard.check(self.step, self.params)
            self.credentials, self.notes, former = scene.credentials, scene.notes, scene.former
        if self.as_step.check:
            if not through_api:
                self._write()  # which compares, and writes nothing
            would, told = (
                through_api and apply_api.predict(self.step, self.as_step, self.params)
            ) or (False, UNCHANGED)
            return answer_of(SKIPPED, "check mode: " + told, would, notes=self.notes)
        record = self._record(former)
        earlier = self._earlier(proof.claim(self.as_step, record))
        if earlier:
            return earlier
        begin = time.monotonic()
        try:
            done = (
                apply_api.do(self.step, self.as_step, self.params) if through_api else self._write()
            )
        except ChangeError as error:
            if not error.changed:
                self.end(record, proof.NOT_DONE, str(error))
            else:  # whoever was told how far it is, and asks again, is told this
                proof.tell(
                    self.params["run_id"], self.step["id"], str(error), self.root, "ended_so"
                )
            raise
        if through_api:
            ended = (
                (proof.PROVEN, DONE)
                if done["proven"]
                else (
                    (proof.ROLLED_BACK, ROLLED_BACK)
                    if done.get("rolled_back")
                    else (proof.FAILED, FAILED)
                )
            )
            self.end(record, ended[0], done["reason"], None, done["entry"], changed=done["changed"])
            return answer_of(
                ended[1], done["reason"], done["changed"], None, done["entry"], self.notes
            )
        return self.proved(record, done, former, begin)

    def _hold(self, strict):
        """The run's lock on this node, for as long as the step may last. strict.

        It must be held now.
        """
        if not self.lock:
            return
        if strict:
            with self.as_step.exclusive():
                pass
        lock.renew(
            self.params["run_id"], max(self.lock.get("seconds") or 0, budget(self.step)), self.root
        )

    def _earlier(self, record):
        """The answer of whoever began this very step before (a connection that was made twice),
        or None.
        """
        if record is None:
            return None
        patience = self.params.get("patience")
        end = time.monotonic() + (patience or budget(self.step))
        while record["state"] == proof.AWAITED and proof.alive(record) and time.monotonic() < end:
            time.sleep(0.5)
            record = proof.read(self.params["run_id"], self.step["id"], self.root)
        if patience and record["state"] == proof.AWAITED and proof.alive(record):
            return answer_of(AT_WORK, record.get("progress"), True)
        states = {proof.PROVEN: DONE, proof.ROLLED_BACK: ROLLED_BACK, proof.NOT_DONE: REFUSED}
        reason = (
            record.get("reason")
            if record["state"] != proof.AWAITED
            else record.get("ended_so")
            or "this step was begun at {} and interrupted; the next run finishes or undoes it".format(
                record.get("at")
            )
        )
        changed = record.get("changed", record["state"] != proof.NOT_DONE)
        return answer_of(
            states.get(record["state"], FAILED),
            reason,
            changed,
            record.get("seen"),
            record.get("journal"),
        )

    def _write(self):
        """The change of the file; {"entry": None} when the step has none."""
        kind = self.change.get("kind") or "none"
        if kind == "none":
            return {"entry": None, "changed": False}
        if kind == "move_out":
            return change.move_out(self.change["path"], self.change["sha256"], self.as_step)
        splices = [
            (begin, end, base64.b64decode(old), base64.b64decode(new))
            for begin, end, old, new in self.change["splices"]
        ]
        return change.compare_and_swap(
            self.change["path"], self.change["sha256"], splices, self.as_step
        )

    def _record(self, former):
        """What the next run needs, should this program be ended between write and proof."""
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
            "former": (
                former
                and {
                    "pid": former.pid,
                    "ticks": former.ticks,
                    "argv": files.masked_argv(former.argv),
                }
            ),
        }

    def proved(self, record, done, former, begin):
        """Restart, wait, and if it is not proven in time: back. begin: just before the write."""
        expect = record["expect"]
        if expect.get("restart") == "signal" and former:
            prove.terminate(former)
        moved = not expect.get("restart")
        # a file that is taken away need not restart anything
        want = prove.Want(
            record["component"],
            expect.get("flags"),
            record["former"]["argv"] if moved and record["former"] else None,
            None if moved or not former else former.identity,
            True if expect.get("elect") else None,
        )
        found = prove.wait(
            want,
            self.credentials,
            begin + record["limit"],
            WATCHED if moved else None,
            later=self._later(record, begin),
        )
        seen = dict(
            found.seen(), proof_seconds=round(found.shown_at - begin, 2) if found.shown_at else None
        )
        if found.ok:
            self.end(record, proof.PROVEN, None, seen, done["entry"])
            return answer_of(
                DONE,
                "",
                bool(done["entry"]) or expect.get("restart") == "signal",
                seen,
                done["entry"],
                self.notes,
            )
        return self._back(record, done["entry"], former, found)

    def _back(self, record, entry, former, found):
        """The former bytes, and the component with them."""
        component, reason = (
            record["component"],
            "%s of %s was not proven within %d s: %s"
            % (
                record["component"],
                self.host,
                round(found.waited),
                found.reason,
            ),
        )
        if entry:
            try:
                self._hold(strict=False)
                self._restore(entry)
            except ChangeError as error:
                reason += f"; the former bytes were not put back: {error}"
                self.end(record, proof.FAILED, reason, found.seen(), entry)
                return answer_of(FAILED, reason, True, found.seen(), entry, self.notes)
            reason += "; the former bytes are back"
        ended = None
        if record["expect"].get("restart") == "signal" and entry:
            for one in prove.instances(component):
                if not former or one.identity != former.identity:
                    ended = one.identity
                    prove.terminate(one)  # it runs with what was taken back
        if not record["former"]:
            reason += ", and it did not run before either"
            state = proof.ROLLED_BACK if entry else proof.FAILED
            self.end(record, state, reason, found.seen(), entry)
            return answer_of(
                ROLLED_BACK if entry else FAILED, reason, True, found.seen(), entry, self.notes
            )
        begin = time.monotonic()
        back = prove.wait(
            prove.Want(component, argv=record["former"]["argv"], not_identity=ended),
            self.credentials,
            begin + record["limit"],
            hopeless=False,
            later=self._later(record, begin),
        )
        if back.ok:
            reason += (
                ", and it runs as before (pid %d)" % back.instance.pid if entry else ", and it runs"
            )
            state = (proof.ROLLED_BACK, ROLLED_BACK) if entry else (proof.FAILED, FAILED)
        else:
            reason = (
                "component down: %s; but it did not come back within %d s (%s): look at journalctl"
                " -u kubelet, crictl ps -a --name %s and /var/log/pods/kube-system_%s-* on %s"
                % (reason, round(back.waited), back.reason, component, component, self.host)
            )
            state = (proof.FAILED, FAILED)
        self.end(record, state[0], reason, back.seen(), entry)
        return answer_of(state[1], reason, True, back.seen(), entry, self.notes)

    @staticmethod
    def _later(record, begin):
        """Until when the kubelet's back-off may last.

        No longer than now where something else keeps the component from starting.
        """
        return lambda: begin + BACK_OFF if guard.startable(record["expect"].get("image")) else 0

    def _restore(self, entry):
        """What the entry replaced or took away, back.

        Refused when somebody else wrote meanwhile.
        """
        run_id, _dummy, name = entry.partition("/")
        item = next(
            (one for one in journal.read_run(run_id, self.root) if one["entry"] == name), None
        )
        intent = item and item["intent"]
        if intent is None:
            raise ChangeError(f"the entry {entry} of the journal is gone or cannot be read")
        former = journal.former_bytes(item, self.root)
        step = self.as_step.also(what="roll back: {}".format(intent["path"]), reverts=entry)
        if intent["sha256_after"] is None:
            attributes = change.Attributes(
                int(intent["mode"], 8),
                intent["uid"],
                intent["gid"],
                journal.unpacked(intent["xattrs"]),
            )
            change.create_file(intent["real"], former, step, attributes)
        else:
            change.replace(intent["real"], intent["sha256_after"], former, step)

    def end(self, record, state, reason, seen=None, entry=None, **more):
        """Record how a step ended, as far as that can be."""
        try:
            proof.end(
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
            self.notes.append(f"{durable.one_line(error)}; the next run does that (KM902)")

    def _by_itself(self):
        """A step that has a module to itself, its guards and its proof with it."""
        try:
            state, reason, seen = module_of(self.step["remedy"]).do(
                self.as_step, self.step, self.host, self.params
            )
        except proof.Looked:
            return answer_of(SKIPPED, "check mode: " + UNCHANGED)
        ends = {proof.PROVEN: DONE, proof.ROLLED_BACK: ROLLED_BACK, proof.NOT_DONE: REFUSED}
        return answer_of(ends.get(state, FAILED), reason, state != proof.NOT_DONE, seen)

    def _levels(self):
        """Put back what captures raised from here and nobody put back.

        Their own service failed, or is gone.
        """
        from ..capture import level_window as log_level
        from ..state import level_target as level
        from ..state import raised_levels as level_raised

        if self.as_step.check:
            return answer_of(SKIPPED, "check mode: " + UNCHANGED)
        runs = {item["run_id"] for item in level.raised(self.root)}
        runs.update(
            run_id
            for run_id in journal.run_ids(self.root)
            if level_raised.left(run_id, self.root)
            or any(up for _record, (up, _why) in level_raised.edited(run_id, self.root))
        )
        allow = (self.step.get("guard") or {}).get("allow") or []
        done = [
            log_level.restore(
                {"run_id": run_id, "root": self.root, "by": self.params["run_id"], "allow": allow}
            )
            for run_id in sorted(runs)
        ]
        wrong = [one["error"] for one in done if one["error"]]
        wrong += [
            target["reason"]
            for one in done
            for target in one["targets"]
            if target["state"] != log_level.RESTORED
        ]
        return answer_of(
            FAILED if wrong else DONE, "; ".join(wrong), any(one["targets"] for one in done)
        )


def module_of(remedy):
    """The module of a step that has one to itself. Imported late: few nodes ever need one."""
    from .handlers import (
        cpu_manager_reset as manager_reset,
    )
    from .handlers import (
        kernel_module,
        kernel_setting,
        scheduler_restart,
        swap_off,
    )
    from .handlers import (
        login_limit as file_limit,
    )
    from .handlers import (
        pinning_probe as pinned_pod,
    )
    from .handlers import (
        service_limit as unit_limit,
    )
    from .handlers import (
        service_start as kubelet_service,
    )
    from .handlers import (
        service_unmask as unit_unmask,
    )

    own = {
        "kernel_setting": kernel_setting,
        "kernel_module": kernel_module,
        "file_limit": file_limit,
        "unit_limit": unit_limit,
        "pinned_pod": pinned_pod,
        "swap_persistence": swap_off,
        "swap_off": swap_off,
        unit_unmask.REMEDY: unit_unmask,
        "restart_leader": scheduler_restart,
    }
    return (
        kubelet_service
        if remedy in SERVICE
        else manager_reset
        if remedy in MANAGERS
        else own[remedy]
    )


def _listed(value):
    return (
        [str(one) for one in value]
        if isinstance(value, (list, tuple))
        else [str(value)]
        if value
        else []
    )
