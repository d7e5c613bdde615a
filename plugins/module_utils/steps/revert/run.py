# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reverts what a run left on this node, or lists it with the preconditions of a revert.

Files are restored component by component, the last changed first. Each component has these parts:
the preconditions, as for a step; the former bytes; a restart where the kubelet makes none; the wait
until the component runs again with its former command line. The first component that is not
verified ends the revert, and the rest stays as the run left it. Nothing is written again
automatically.
"""

import os
import time

from ...changes import journal_entry, node_lock, signals, step_claim
from ...shared import step_kinds, step_times
from ...state import journal, revert_plan, step_record, storage
from ...state.raised_levels import raised_kubelet_runs
from ...state.storage import ROOT, ChangeError
from ...system import detached, files
from .. import health_probe, preconditions
from . import running_limits
from .files import revert
from .listing import FileHistory, listed, shown
from .registry import RAISE_KUBELET, kubelet_reverter_of

KUBELET = "kubelet"
RESTORED, ALREADY, REFUSED, KEPT = "restored", "already", "refused", "kept"
# By the state of a file that is not restored; others are refused.
RESULTS = {revert_plan.ALREADY: ALREADY, revert_plan.UNDONE: ALREADY, revert_plan.KEPT: KEPT}
LIST_AGAIN = "list again to see what became of it"


def run(params):
    """List the runs as listed() does, or revert one in a detached process, as `state` says.

    The result of a revert is {paths, components, changed, error}.
    """
    if params["state"] == "listed":
        listing = listed(params.get("root") or ROOT)
        return _with_preconditions(params, listing) if params.get("reverts") else listing
    return detached.run(reverted, params) or _answer(
        error=(
            "the program ended on the node without an answer (killed, or out of memory); list again"
            " to see what became of it"
        ),
        changed=True,
    )


def _with_preconditions(params, listing):
    """Return the list with the preconditions and the running values of the run in question."""
    listing = dict(listing, guards=guards(params, listing["runs"]))
    for listed_run in listing["runs"]:
        if listed_run["run_id"] == _chosen(params, listing["runs"]):
            listed_run["paths"] += running_limits.rows(
                listed_run["run_id"], params.get("root") or ROOT, params.get("allow") or []
            )
    return listing


def _chosen(params, runs):
    """Return the id of the run that `reverts` names; `last` is the newest that can be reverted."""
    if params["reverts"] != "last":
        return params["reverts"]
    return next((listed_run["run_id"] for listed_run in runs if _can_go_back(listed_run)), "")


def _can_go_back(listed_run):
    if listed_run["reverts"]:
        return False
    return any(path["state"] == revert_plan.RESTORE for path in listed_run["paths"])


def budget(count):
    """Return the seconds after which a revert of so many components has ended in any case."""
    return step_times.PRECONDITIONS + count * (
        step_times.PRECONDITIONS + step_times.BACK_OFF + step_times.WATCHED
    )


def reverted(params):
    """Revert the run `reverts` on this node, in this process, without an exception."""
    begin = time.monotonic()
    work = _Revert(params)
    error, changed = _run(work)
    has_changed = changed or any(row["changed"] for row in work.paths + work.components)
    answer = _answer(work.paths, work.components, error, has_changed)
    answer["seconds"] = round(time.monotonic() - begin, 2)
    return answer


def _run(work):
    """Return (the error or None, whether it may have changed something that is not listed)."""
    try:
        work.run()
    except (ChangeError, preconditions.PreconditionFailed) as reason:
        return str(reason), getattr(reason, "changed", False)
    except OSError as reason:
        path = files.one_line(reason.filename or "a file of this node")
        return (
            f"it ended, because {path} cannot be used: {storage.way_out(reason)}; {LIST_AGAIN}",
            True,
        )
    except Exception as reason:  # pylint: disable=broad-except
        return (
            f"it ended in an unforeseen way ({type(reason).__name__}: {files.one_line(reason)});"
            f" {LIST_AGAIN}",
            True,
        )
    return None, False


def _answer(paths=(), components=(), error=None, changed=False):
    return {
        "paths": list(paths),
        "components": list(components),
        "error": error,
        "changed": changed,
        "seconds": 0.0,
    }


def guards(params, runs):
    """Return [{component, refused}] of what a revert of the run `reverts` would start again now.

    refused: why that is not allowed now.

    The function changes nothing.
    """
    try:
        return _Revert(dict(params, reverts=_chosen(params, runs))).guards()
    except (OSError, ChangeError):
        return []  # the list says what cannot be read


class _Revert:
    """The revert of one run by another on this node."""

    def __init__(self, params):
        self.params = params
        self.run_id = params["reverts"]
        self.host = params.get("host") or "this host"
        self.root = params.get("root") or ROOT
        self.allow = params.get("allow") or []
        self.paths = []
        self.components = []
        self.stopped = None
        # of one run that is taken back by itself, again and again
        self.attempt = ""
        if params.get("attempt"):
            self.attempt = f"-{params['attempt']:d}"

    def run(self):
        """Fill `paths` and `components`."""
        step = journal_entry.StepContext(
            self.params["run_id"],
            "revert",
            f"revert of run {self.run_id}",
            "asked for",
            self.root,
            must_hold=bool(self.params.get("lock")),
        )
        if self.run_id not in journal.run_ids(self.root):
            raise preconditions.PreconditionFailed(
                f"nothing was changed: the journal of {self.host} knows no run {self.run_id}"
            )
        with step.exclusive():  # this run may change this node
            pass
        self._require_ended()
        groups = _groups(self._histories())
        if self.params.get("lock"):
            seconds = self.params["lock"].get("seconds") or 0
            node_lock.renew(self.params["run_id"], max(seconds, budget(len(groups))), self.root)
        for group in groups:
            self._group(group, step)
        refused = [row["path"] for row in self.paths if row["result"] == REFUSED]
        self.paths += running_limits.rows(self.run_id, self.root, self.allow, refused, act=True)

    def guards(self):
        """Return the preconditions of every component that would start again; change nothing."""
        if self.run_id not in journal.run_ids(self.root):
            return []
        rows = []
        for group in _groups(self._histories()):
            changes = [
                history
                for history in group
                if history.state == revert_plan.RESTORE and history.record is not None
            ]
            component = group[0].component
            if changes and component is not None:
                reason = self._refusal(component, group, changes)
                rows.append({"component": component, "refused": reason})
        return rows

    def _refusal(self, component, group, changes):
        """Return why a component may not start again now, or None."""
        try:
            if component == KUBELET:
                kubelet_reverter_of(RAISE_KUBELET).may_restart(group[0].record, self.allow)
            else:
                self._preconditions(component, changes)
        except (preconditions.PreconditionFailed, ChangeError) as error:
            return str(error)
        return None

    def _histories(self):
        items = {item["entry"]: item for item in revert_plan.intact(self.run_id, self.root)}
        return [
            FileHistory(change, items, self.run_id, self.root)
            for change in revert_plan.plan_revert(self.run_id, self.root)
        ]

    def _require_ended(self):
        """Refuse while a step runs here, or while the run itself waits to be finished."""
        for record in step_record.unproven(self.root):
            if record["running"]:
                raise preconditions.PreconditionFailed(
                    "nothing was changed: run {} is still at work on {} (step {}); let it end and"
                    " run again".format(record["run_id"], self.host, record["step"])
                )
            if record["run_id"] == self.run_id:
                raise preconditions.PreconditionFailed(
                    "nothing was changed: step {} of run {} was interrupted on {}; let kubemend"
                    " finish or undo it first (KM902)".format(
                        record["step"], self.run_id, self.host
                    )
                )

    def _group(self, group, step):
        """Restore the files of one component."""
        changes = [history for history in group if history.state == revert_plan.RESTORE]
        refusal = self._group_refusal(changes)
        if refusal:
            self._refuse(changes, refusal)
        else:
            self._take_back(group, changes, step)
        self.paths += [
            dict(shown(history), result=RESULTS.get(history.state, REFUSED), changed=False)
            for history in group
            if history.state != revert_plan.RESTORE
        ]

    def _group_refusal(self, changes):
        """Return why none of these files is touched, or None."""
        if changes and self.stopped:
            return self.stopped
        unknown = [history for history in changes if history.record is None and not history.alone]
        if not unknown:
            return None
        return (
            "the record of step {} is gone or cannot be read, so that it is unknown what has to run"
            " afterwards; its former bytes are in the journal: put them back by hand".format(
                ", ".join(unknown[0].row["steps"])
            )
        )

    def _take_back(self, group, changes, step):
        component = group[0].component
        if component is None:
            self._restore(changes, step)
            return
        here = step.also(step=f"revert-{component}{self.attempt}")
        if component == KUBELET:
            self._with_kubelet(group, changes, here)
            return
        pending = changes or _unfinished(group)
        if pending:
            self._with_component(component, changes, pending, here)

    def _preconditions(self, component, pending):
        """Return a _Start of this component, or raise PreconditionFailed."""
        start = _Start(component, pending, self.allow)
        start.scene = preconditions.check(
            {
                "host": self.host,
                "remedy": start.remedy,
                "expect": start.expect,
                "change": _change(pending[0]),
                "guard": start.guard,
            },
            self.params,
        )
        return start

    def _with_component(self, component, changes, pending, step):
        """Restore the files of a control-plane component, and wait until it runs as before."""
        try:
            start = self._preconditions(component, pending)
            if step_claim.claim(step, start.record(self.host, pending[0].path)) is not None:
                raise preconditions.PreconditionFailed(
                    f"run {step.run_id} has begun this before (a connection that was made twice);"
                    " list again to see what became of it"
                )
        except (preconditions.PreconditionFailed, ChangeError) as error:
            self._refuse(changes, str(error))
            if not changes:
                self.components.append(_component(component, False, str(error)))
            return
        begin, results = time.monotonic(), self._restore(changes, step)
        if changes and not any(row["changed"] for row in results):
            results[0]["reason"] = step_claim.ended(
                step, step_record.NOT_DONE, results[0]["reason"]
            )[1]
            return
        start.signal()
        if not any(history.former for history in pending):
            note = step_claim.ended(
                step, step_record.PROVEN, "it did not run before that run either"
            )[1]
            self.components.append(_component(component, None, note, True))
            return
        self._verify(start, begin, step)

    def _verify(self, start, begin, step):
        """Wait until the component runs with its former command line, and note the result."""
        health = start.wait(begin)
        state, reason = step_record.PROVEN, None
        if not health.ok:
            state, reason = step_record.FAILED, self._unproven(start.component, health, step)
            self.stopped = f"{start.component} was not proven after its files were restored"
        reason = step_claim.ended(step, state, reason, health.observation())[1]
        self.components.append(
            dict(
                _component(start.component, health.ok, reason, True),
                seen=health.observation(),
                seconds=round(health.waited, 2),
            )
        )

    def _unproven(self, component, health, step):
        return (
            f"{component} of {self.host} was not proven within {round(health.waited)} s:"
            f" {health.reason}; look at journalctl -u kubelet and crictl ps -a --name {component},"
            f" or restore what run {self.run_id} left with -e kubemend_run_id={step.run_id}"
        )

    def _with_kubelet(self, group, changes, step):
        record = group[0].record
        reverter = record and kubelet_reverter_of(record.get("remedy"))
        # a reset: what it moved stays where it is
        if not reverter:
            self._refuse(
                changes, "it belongs to a reset of the kubelet's state, which no revert takes back"
            )
            return
        if not changes and not _kubelet_waits(group):
            return

        def restore(here):
            results = self._restore(changes, here)
            if results and not any(row["changed"] for row in results):
                return results[0]["reason"]
            return None

        try:
            proven, reason = reverter.take_back(record, restore, step, self.allow)
        except (preconditions.PreconditionFailed, ChangeError) as error:
            self._refuse(changes, str(error))
            proven, reason = (None if changes else False), str(error)
        self.components.append(_component(KUBELET, proven, reason, proven is not None))

    def _restore(self, histories, step):
        """Restore the former bytes of these files, each for itself, and return their rows."""
        if not histories:
            return []
        by_entries = {tuple(history.row["entries"]): history for history in histories}
        done = revert(self.run_id, step, only=[history.path for history in histories])
        rows = [
            dict(
                shown(by_entries[tuple(result["entries"])]),
                result=result["result"],
                reason=result["reason"],
                changed=bool(result["changed"]),
            )
            for result in done
            if tuple(result["entries"]) in by_entries
        ]
        self.paths += rows
        return rows

    def _refuse(self, histories, reason):
        """Report these files as refused, and change none of them."""
        self.paths += [
            dict(
                shown(history),
                result=REFUSED,
                reason=f"{history.path} was not changed: {reason}",
                changed=False,
            )
            for history in histories
        ]


class _Start:
    """The start of a component that a revert waits for: what is expected, and what was there."""

    def __init__(self, component, pending, allow):
        self.component = component
        self.pending = pending
        self.scene = None
        self.signalled = any(history.restart == "signal" for history in pending)
        self.moved = all(not history.restart for history in pending)
        self.expect = {
            "component": component,
            "restart": next((history.restart for history in pending if history.restart), None),
            "flags": {},
            "image": next((history.image for history in pending if history.image), None),
        }
        self.remedy = _remedy(pending)
        self.guard = dict(pending[0].guard, allow=allow)
        # of the files that the process reads, these are no foreign change
        if self.signalled:
            loads = list(self.guard.get("loads") or [])
            self.guard["loads"] = loads + [history.path for history in pending]

    @property
    def former(self):
        """The process before the revert, or None."""
        return self.scene.former

    @property
    def limit(self):
        """Seconds until the component must run."""
        return _limit(self.signalled)

    def record(self, host, path):
        """Return what the record of the step says at its beginning."""
        former = self.former
        return {
            "component": self.component,
            "host": host,
            "remedy": step_kinds.REVERT,
            "limit": self.limit,
            "path": path,
            "kind": "none",
            "expect": self.expect,
            "guard": self.guard,
            "former": (
                former
                and {
                    "pid": former.pid,
                    "ticks": former.ticks,
                    "argv": files.masked_argv(former.argv),
                }
            ),
        }

    def signal(self):
        """End the process where nothing else restarts it."""
        if self.signalled and self.former:
            signals.terminate(self.former)

    def wait(self, begin):
        """Return what the component shows until the limit."""
        former = self.former
        not_identity = None
        if former and not self.moved:
            not_identity = former.identity
        return health_probe.wait(
            health_probe.ExpectedState(
                self.component, argv=self._argv(), not_identity=not_identity
            ),
            self.scene.credentials,
            begin + self.limit,
            step_times.WATCHED if self.moved else None,
            later=lambda: self._later(begin),
        )

    def _argv(self):
        """Return the expected command line.

        A restored manifest has the former command line. Where only a file that the process reads is
        restored, the command line stays as it is.
        """
        for history in reversed(self.pending):
            if history.restart != "signal":
                if history.former:
                    return history.former
                break
        return self.former and files.masked_argv(self.former.argv)

    def _later(self, begin):
        """Return until when the kubelet's back-off may delay a start that is possible."""
        return begin + step_times.BACK_OFF if preconditions.startable(self.expect["image"]) else 0


def _kubelet_waits(group):
    """Return whether the kubelet must start again although its files are back already."""
    if any(history.state == revert_plan.CONFLICT for history in group):
        return False
    return raised_kubelet_runs(group[0].record)


def _unfinished(group):
    """Return the restored files of processes that are older than these files.

    Nothing restarts these processes by itself.
    """
    return [
        history
        for history in group
        if history.state == revert_plan.ALREADY
        and history.restart == "signal"
        and _is_newer(history.path, history.component)
    ]


def _is_newer(path, component):
    """Return whether a file was written after the component started."""
    running = health_probe.instances(component)
    started = running[0].started_at if running else None
    written = _mtime(path)
    if not started or not written:
        return False
    return written > started + preconditions.TOLERANCE


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


def _groups(histories):
    """Return the histories grouped by component, in the order of the newest history of each.

    Each history without a component is a group of its own.
    """
    groups, by_component = [], {}
    for history in histories:
        group = by_component.get(history.component)
        if group is None:
            group = []
            groups.append(group)
        if history.component is not None:
            by_component[history.component] = group
        group.append(history)
    return groups


def _remedy(pending):
    """Return the kind of the step: of the file that the process reads, where there is one."""
    for history in pending:
        if history.restart == "signal":
            return history.record.get("remedy")
    return pending[0].record.get("remedy")


def _change(history):
    """Return what the preconditions need to know of the file.

    A file that is created is no manifest of its directory yet; a file that is removed is one still.
    """
    if history.row["sha256_left"] is None:
        return {"kind": "create", "path": None}
    kind = "move_out" if history.row["sha256_former"] is None else "splice"
    return {"kind": kind, "path": history.path}


def _limit(signalled):
    return max(step_times.LIMIT, step_times.BACK_OFF) if signalled else step_times.LIMIT
