# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run left on this node taken back, or listed with what the guards say of it (revert_list).

Files are put back component by component, the last changed first: guards as for a repair, the
former bytes, a restart where the kubelet makes none, and the wait until the component runs again
with its former command line. A component that is not proven ends it: what is left stays as the run
left it. Nothing is rolled forward again by itself.
"""

import os
import time

from ...shared import step_kinds, step_times
from ...state import journal, lock, revert_plan
from ...state import step_record as proof
from ...state import storage as durable
from ...state.raised_levels import raised_kubelet_runs
from ...state.storage import ROOT, ChangeError
from ...system import detached as outlive
from ...system import files
from .. import health_probe as prove
from .. import preconditions as guard
from . import running_limits
from .files import revert
from .listing import Stretch, listed, shown
from .registry import RAISE_KUBELET, kubelet_reverter_of

RESTORED, ALREADY, REFUSED, KEPT = "restored", "already", "refused", "kept"


def run(params):
    """State listed: {runs, truncated, busy}; state reverted.

    {paths, components, changed, error}, by a process that outlives this one.
    """
    if params["state"] == "listed":
        found = listed(params.get("root") or ROOT)
        return _asked(params, found) if params.get("reverts") else found
    return outlive.run(reverted, params) or _answer(
        error=(
            "the program ended on the node without an answer (killed, or out of memory); list again"
            " to see what became of it"
        ),
        changed=True,
    )


def _asked(params, found):
    """The list, with what the guards say of the run in question, and what it raised that is no
    file.
    """
    found = dict(found, guards=guards(params, found["runs"]))
    for one in found["runs"]:
        if one["run_id"] == _meant(params, found["runs"]):
            one["paths"] += running_limits.rows(
                one["run_id"], params.get("root") or ROOT, params.get("allow") or []
            )
    return found


def _meant(params, runs):
    able = (
        one["run_id"]
        for one in runs
        if not one["reverts"] and any(path["state"] == revert_plan.RESTORE for path in one["paths"])
    )
    return next(able, "") if params["reverts"] == "last" else params["reverts"]


def budget(count):
    """Seconds after which so many components are taken back or not, whatever happens."""
    return step_times.PRECONDITIONS + count * (
        step_times.PRECONDITIONS + step_times.BACK_OFF + step_times.WATCHED
    )


def reverted(params):
    """The run `reverts` taken back on this node, in this process. Never raises."""
    begin = time.monotonic()
    work, error, changed = _Revert(params), None, False
    try:
        work.run()
    except (ChangeError, guard.Refused) as reason:
        error, changed = str(reason), getattr(reason, "changed", False)
    except OSError as reason:
        error, changed = (
            "it ended, because {} cannot be used: {}; list again to see what became of it".format(
                files.one_line(reason.filename or "a file of this node"), durable.why(reason)
            ),
            True,
        )
    except Exception as reason:  # pylint: disable=broad-except
        error, changed = (
            (
                f"it ended in a way that nobody foresaw ({type(reason).__name__}:"
                f" {files.one_line(reason)}); list again to see what became of it"
            ),
            True,
        )
    answer = _answer(
        work.paths,
        work.components,
        error,
        changed or any(one["changed"] for one in work.paths + work.components),
    )
    answer["seconds"] = round(time.monotonic() - begin, 2)
    return answer


def _answer(paths=(), components=(), error=None, changed=False):
    return {
        "paths": list(paths),
        "components": list(components),
        "error": error,
        "changed": changed,
        "seconds": 0.0,
    }


def guards(params, runs):
    """Of the run `reverts`: [{component, refused}] of what would be started again now, and why
    it may not be. Changes nothing.
    """
    try:
        return _Revert(dict(params, reverts=_meant(params, runs))).guards()
    except (OSError, ChangeError):
        return []  # what cannot be read is told by the list


class _Revert:
    """One run taken back by another on this node."""

    def __init__(self, params):
        self.params = params
        self.run_id = params["reverts"]
        self.host = params.get("host") or "this host"
        self.root = params.get("root") or ROOT
        self.paths = []
        self.components = []
        self.stopped = None
        # of one run that is taken back by itself, again and again
        self.attempt = "-%d" % params["attempt"] if params.get("attempt") else ""

    def run(self):
        """Fill `paths` and `components`."""
        step = journal.Step(
            self.params["run_id"],
            "revert",
            f"revert of run {self.run_id}",
            "asked for",
            self.root,
            must_hold=bool(self.params.get("lock")),
        )
        if self.run_id not in journal.run_ids(self.root):
            raise guard.Refused(
                f"nothing was changed: the journal of {self.host} knows no run {self.run_id}"
            )
        with step.exclusive():  # this run may change this node
            pass
        self._ended()
        groups = _groups(self._stretches())
        if self.params.get("lock"):
            lock.renew(
                self.params["run_id"],
                max(self.params["lock"].get("seconds") or 0, budget(len(groups))),
                self.root,
            )
        for group in groups:
            self._group(group, step)
        refused = [one["path"] for one in self.paths if one["result"] == REFUSED]
        self.paths += running_limits.rows(
            self.run_id, self.root, self.params.get("allow") or [], refused, act=True
        )

    def guards(self):
        """The guards of every component that would start again, without anything behind them."""
        found = []
        if self.run_id not in journal.run_ids(self.root):
            return found
        for group in _groups(self._stretches()):
            wanted = [
                one for one in group if one.state == revert_plan.RESTORE and one.record is not None
            ]
            if not wanted or group[0].component is None:
                continue
            try:
                if group[0].component == "kubelet":
                    kubelet_reverter_of(RAISE_KUBELET).may_restart(
                        group[0].record, self.params.get("allow") or []
                    )
                else:
                    self._scene(group[0].component, wanted)
                why = None
            except (guard.Refused, ChangeError) as error:
                why = str(error)
            found.append({"component": group[0].component, "refused": why})
        return found

    def _stretches(self):
        items = {item["entry"]: item for item in revert_plan.intact(self.run_id, self.root)}
        return [
            Stretch(one, items, self.run_id, self.root)
            for one in revert_plan.plan_revert(self.run_id, self.root)
        ]

    def _ended(self):
        """Nobody is at work here, and the run itself is not waiting to be finished."""
        for record in proof.unproven(self.root):
            if record["running"]:
                raise guard.Refused(
                    "nothing was changed: run {} is still at work on {} (step {}); let it end and"
                    " run again".format(record["run_id"], self.host, record["step"])
                )
            if record["run_id"] == self.run_id:
                raise guard.Refused(
                    "nothing was changed: step {} of run {} was interrupted on {}; let kubemend"
                    " finish or undo it first (KM902)".format(
                        record["step"], self.run_id, self.host
                    )
                )

    def _group(self, group, step):
        """The files of one component."""
        wanted = [one for one in group if one.state == revert_plan.RESTORE]
        unknown = [one for one in wanted if one.record is None and not one.alone]
        if wanted and self.stopped:
            self._refuse(wanted, self.stopped)
        elif unknown:
            self._refuse(
                wanted,
                "the record of step {} is gone or cannot be read, so that nobody knows what has to"
                " run afterwards; its former bytes are in the journal: put them back by hand".format(
                    ", ".join(unknown[0].told["steps"])
                ),
            )
        elif group[0].component is None:
            self._restore(wanted, step)
        elif group[0].component == "kubelet":
            self._with_kubelet(group, wanted, step.also(step=f"revert-kubelet{self.attempt}"))
        else:
            pending = wanted or _unfinished(group)
            if pending:
                self._with_component(
                    group[0].component,
                    wanted,
                    pending,
                    step.also(step=f"revert-{group[0].component}{self.attempt}"),
                )
        for one in group:
            if one.state != revert_plan.RESTORE:
                result = {
                    revert_plan.ALREADY: ALREADY,
                    revert_plan.UNDONE: ALREADY,
                    revert_plan.KEPT: KEPT,
                }.get(one.state, REFUSED)
                self.paths.append(dict(shown(one), result=result, changed=False))

    def _scene(self, component, pending):
        """(what the guards of this component found, what is expected of it, what was allowed),
        or guard.Refused.
        """
        expect = {
            "component": component,
            "restart": next((one.restart for one in pending if one.restart), None),
            "flags": {},
            "image": next((one.image for one in pending if one.image), None),
        }
        allowed = dict(pending[0].guard, allow=self.params.get("allow") or [])
        # of the files that the process reads, these are no change of somebody else
        if any(one.restart == "signal" for one in pending):
            allowed["loads"] = list(allowed.get("loads") or []) + [one.path for one in pending]
        return (
            guard.check(
                {
                    "host": self.host,
                    "remedy": _remedy(pending),
                    "expect": expect,
                    "change": _change(pending[0]),
                    "guard": allowed,
                },
                self.params,
            ),
            expect,
            allowed,
        )

    def _with_component(self, component, wanted, pending, step):
        signalled, moved = (
            any(one.restart == "signal" for one in pending),
            all(not one.restart for one in pending),
        )
        try:
            scene, expect, allowed = self._scene(component, pending)
            former = scene.former
            record = {
                "component": component,
                "host": self.host,
                "remedy": step_kinds.REVERT,
                "limit": _limit(signalled),
                "path": pending[0].path,
                "kind": "none",
                "expect": expect,
                "guard": allowed,
                "former": (
                    former
                    and {
                        "pid": former.pid,
                        "ticks": former.ticks,
                        "argv": files.masked_argv(former.argv),
                    }
                ),
            }
            if proof.claim(step, record) is not None:
                raise guard.Refused(
                    f"run {step.run_id} has begun this before (a connection that was made twice);"
                    " list again to see what became of it"
                )
        except (guard.Refused, ChangeError) as error:
            self._refuse(wanted, str(error))
            if not wanted:
                self.components.append(_component(component, False, str(error)))
            return
        begin, results = time.monotonic(), self._restore(wanted, step)
        if wanted and not any(one["changed"] for one in results):
            results[0]["reason"] = proof.ended(step, proof.NOT_DONE, results[0]["reason"])[1]
            return
        if signalled and former:
            prove.terminate(former)
        if not any(one.former for one in pending):
            told = proof.ended(step, proof.PROVEN, "it did not run before that run either")[1]
            self.components.append(_component(component, None, told, True))
            return
        # what a manifest held decides the command line; where only a file that the process reads is
        # put back, it stays as it is
        argv = next((one.former for one in reversed(pending) if one.restart != "signal"), None) or (
            former and files.masked_argv(former.argv)
        )
        want = prove.Want(
            component, argv=argv, not_identity=former.identity if former and not moved else None
        )

        def later():
            return begin + step_times.BACK_OFF if guard.startable(expect["image"]) else 0

        found = prove.wait(
            want,
            scene.credentials,
            begin + record["limit"],
            step_times.WATCHED if moved else None,
            later=later,
        )
        reason = None
        if not found.ok:
            reason = (
                "%s of %s was not proven within %d s: %s; look at journalctl -u kubelet and crictl"
                " ps -a --name %s, or bring back what run %s left with -e kubemend_run_id=%s"
                % (
                    component,
                    self.host,
                    round(found.waited),
                    found.reason,
                    component,
                    self.run_id,
                    step.run_id,
                )
            )
            self.stopped = f"{component} was not proven after its files were restored"
        reason = proof.ended(
            step, proof.PROVEN if found.ok else proof.FAILED, reason, found.seen()
        )[1]
        self.components.append(
            dict(
                _component(component, found.ok, reason, True),
                seen=found.seen(),
                seconds=round(found.waited, 2),
            )
        )

    def _with_kubelet(self, group, wanted, step):
        record = group[0].record
        reverter = record and kubelet_reverter_of(record.get("remedy"))
        # a reset: what it moved stays where it is
        if not reverter:
            self._refuse(
                wanted, "it belongs to a reset of the kubelet's state, which no revert takes back"
            )
            return
        if not wanted and (
            any(one.state == revert_plan.CONFLICT for one in group)
            or not raised_kubelet_runs(record)
        ):
            return

        def restore(here):
            results = self._restore(wanted, here)
            return (
                results[0]["reason"]
                if results and not any(one["changed"] for one in results)
                else None
            )

        try:
            proven, reason = reverter.take_back(
                record, restore, step, self.params.get("allow") or []
            )
        except (guard.Refused, ChangeError) as error:
            self._refuse(wanted, str(error))
            proven, reason = (None if wanted else False), str(error)
        self.components.append(_component("kubelet", proven, reason, proven is not None))

    def _restore(self, stretches, step):
        """The former bytes of these files, each for itself; what became of each."""
        known = {tuple(one.told["entries"]): one for one in stretches}
        done = revert(self.run_id, step, only=[one.path for one in stretches]) if stretches else []
        mine = [
            dict(
                shown(known[tuple(one["entries"])]),
                result=one["result"],
                reason=one["reason"],
                changed=bool(one["changed"]),
            )
            for one in done
            if tuple(one["entries"]) in known
        ]
        self.paths += mine
        return mine

    def _refuse(self, stretches, why):
        """None of these files is touched."""
        self.paths += [
            dict(
                shown(one),
                result=REFUSED,
                reason=f"{one.path} was not changed: {why}",
                changed=False,
            )
            for one in stretches
        ]


def _unfinished(group):
    """Files that hold their former bytes already while the process, which nothing restarts by
    itself, is older than they are.
    """
    found = []
    for one in group:
        if one.state == revert_plan.ALREADY and one.restart == "signal":
            running = prove.instances(one.component)
            started, written = running[0].started_at if running else None, _mtime(one.path)
            if started and written and written > started + guard.TOLERANCE:
                found.append(one)
    return found


def _mtime(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def _component(component, proven, reason, changed=False):
    return {
        "component": component,
        "proven": proven,
        "reason": reason,
        "changed": changed,
        "seen": {},
        "seconds": 0.0,
    }


def _groups(stretches):
    """The stretches of each component together, in the order of its newest.

    Those without a component each for itself.
    """
    groups, of = [], {}
    for one in stretches:
        if one.component is None or one.component not in of:
            groups.append([])
            if one.component is not None:
                of[one.component] = groups[-1]
        (of[one.component] if one.component is not None else groups[-1]).append(one)
    return groups


def _remedy(pending):
    return next(
        (one.record.get("remedy") for one in pending if one.restart == "signal"),
        pending[0].record.get("remedy"),
    )


def _change(stretch):
    """What the guard has to know of the file.

    One that is to be created is no manifest of its folder yet, one that goes away is.
    """
    if stretch.told["sha256_left"] is None:
        return {"kind": "create", "path": None}
    return {
        "kind": "move_out" if stretch.told["sha256_former"] is None else "splice",
        "path": stretch.path,
    }


def _limit(signalled):
    return max(step_times.LIMIT, step_times.BACK_OFF) if signalled else step_times.LIMIT
