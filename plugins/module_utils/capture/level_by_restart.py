# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels of this node that only a restart raises, and their revert, which restarts again.

Each is a step of the run like that of a repair: checked, journalled, and verified by the new
process or rolled back.
"""

import os
import time

from ..changes import durable_files, node_lock
from ..shared import step_kinds, step_times
from ..state import journal, lock, step_record, storage
from ..state.raised_levels import PREFIX, edited, paths_of, restorable_records
from ..state.storage import ChangeError
from ..steps import executor as step_executor
from ..steps import preconditions
from ..steps.revert import run as revert_run
from ..system import component_process, files
from . import kubelet_level

KEPT = 32 * 1024 * 1024  # bytes of a component's logs that are kept before a restart
RAISED, REFUSED, UNSURE, RESTORED, FAILED = "raised", "refused", "unsure", "restored", "failed"
BY_HAND = "by_hand"  # still raised, and the edit of its file keeps kubemend from lowering it


def budget(step):
    """Return the seconds after which a step has ended in any case."""
    if step["remedy"] == kubelet_level.REMEDY:
        return kubelet_level.BUDGET
    return int(step_times.budget(step)) + 1


def raise_one(step, target, params):
    """Do the step of a target, and return (state, reason).

    It first keeps the component's logs, where they go with its pod.
    """
    if target["step"]["remedy"] == kubelet_level.REMEDY:
        return _raise_kubelet(step, target["step"])
    try:
        with step.exclusive() as root_fd:
            _keep_logs(step, target["component"], root_fd)
    except ChangeError as error:
        return REFUSED, files.one_line(error)
    done = step_executor.work(
        dict(
            ((name, params.get(name)) for name in ("lock", "root", "kubeconfig", "kubectl")),
            run_id=step.run_id,
            step=target["step"],
            check=False,
        )
    )
    if done["state"] == step_kinds.DONE:
        return RAISED, ""
    may_be_raised = done["state"] == step_kinds.FAILED and done["changed"]
    return UNSURE if may_be_raised else REFUSED, files.one_line(done["reason"])


def _raise_kubelet(step, target):
    here = step.also(step=target["id"], what="log level of kubelet: {}".format(target["target"]))
    state, reason = kubelet_level.raise_level(here, target, target["host"])
    states = {step_record.PROVEN: RAISED, step_record.FAILED: UNSURE}
    return states.get(state, REFUSED), files.one_line(reason or "")


def _keep_logs(step, component, root_fd):
    """Keep the logs that go with the pod in the run's directory of the journal.

    They stay as they are, the newest first, up to KEPT bytes.
    """
    with storage.change_errors(
        f"no level was raised, because what {component} logged until now cannot be kept"
    ):
        runs = durable_files.private_folder(journal.FOLDER, root_fd)
        with storage.descriptor(runs), storage.descriptor(
            durable_files.private_folder(step.run_id, runs)
        ) as fd:
            _copy_logs(component, fd)


def _copy_logs(component, fd):
    remaining = KEPT
    for path in sorted(component_process.starts(component), key=os.path.getmtime, reverse=True):
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - remaining))
            data = log.read(remaining)
        name = "log-{}-{}".format(component, path.replace("/", "%2F")[-100:])
        durable_files.write_new(name, data, fd)
        remaining -= len(data)
        if remaining <= 0:
            break


def take_back(step, attempt, by=None, allow=()):
    """Revert what the run raised by restarts, and return [(component, state, reason)].

    It works as a revert does, under the lock, because something restarts. It waits for another
    process that does the same. by: the run that does it and has the lock; without it, the run
    that raised the levels takes the lock again. allow: the guards to lift in addition to those
    of the raising.
    """
    _wait(step)
    foreign = [
        (record["component"], _foreign_state(is_up), files.one_line(reason))
        for record, (is_up, reason) in edited(step.run_id, step.root)
    ]
    raised = restorable_records(step.run_id, step.root)
    if not raised:
        components = [component for component, _state, _reason in foreign]
        return foreign + [row for row in _down(step) if row[0] not in components]
    allow = sorted(set(allow).union(*map(_allowed, raised)))
    forbidden = _forbidden(raised, allow)
    if forbidden:  # before any lock is taken: it may be so for days
        return foreign + forbidden
    if by is not None:
        return foreign + _taken_back(step, attempt, by, raised, allow)
    return foreign + _taken_back_with_lock(step, attempt, raised, allow)


def _foreign_state(is_up):
    return BY_HAND if is_up else RESTORED


def _allowed(record):
    return (record.get("guard") or {}).get("allow") or ()


def _taken_back_with_lock(step, attempt, raised, allow):
    """Take the lock again for the run itself, and release it where the revert fails."""
    former_lock = lock.read(step.root) or {}
    seconds = sum(budget(record) for record in raised)
    node_lock.acquire(step.run_id, former_lock.get("controller") or {}, seconds, root=step.root)
    rows = _taken_back(step, attempt, step.run_id, raised, allow)
    has_failed = any(state == FAILED for _component, state, _reason in rows)
    if has_failed and former_lock.get("run_id") != step.run_id:
        node_lock.release(step.run_id, step.root)
    return rows


def _taken_back(step, attempt, run_id, raised, allow):
    host = raised[0].get("host")
    if _is_interrupted(step):
        _recover(step, attempt, run_id, host, allow)
    done = revert_run.reverted(
        {
            "run_id": run_id,
            "reverts": step.run_id,
            "root": step.root,
            "lock": None,
            "attempt": attempt,
            "allow": allow,
            "host": host,
        }
    )
    _wait(step)
    foreign = {record["component"]: edit for record, edit in edited(step.run_id, step.root)}
    return [_result(record, done, foreign) for record in raised]


def _is_interrupted(step):
    """Return whether a step or a change of the run has no end."""
    open_items = step_record.unproven(step.root) + journal.open_entries(step.root)
    return any(item["run_id"] == step.run_id for item in open_items)


def _recover(step, attempt, run_id, host, allow):
    recovery = {
        "id": f"recover-{attempt:d}",
        "remedy": "recover",
        "only_run": step.run_id,
        "host": host,
        "guard": {"allow": allow},
    }
    step_executor.work({"run_id": run_id, "root": step.root, "lock": None, "step": recovery})


def _result(record, done, foreign):
    """Return (component, state, reason) of one record."""
    component = record["component"]
    state, reason = _became(record, done)
    # one of its files may have been edited: what counts is whether the level is still raised
    if state == FAILED and component in foreign and not _unproven(component, done):
        is_up, reason = foreign[component]
        return component, _foreign_state(is_up), files.one_line(reason)
    return component, state, reason


def _unproven(component, done):
    return bool(done["error"]) or bool(_failed(component, done))


def _failed(component, done):
    return [row for row in _rows_of(component, done) if row["proven"] is False]


def _rows_of(component, done):
    return [row for row in done["components"] if row["component"] == component]


def _forbidden(raised, allow):
    """Return [(component, failed, reason)] of all records where one must not restart now, or []."""
    for record in raised:
        if record["component"] == kubelet_level.COMPONENT:
            try:
                kubelet_level.may_restart(record, allow)
            except preconditions.PreconditionFailed as error:
                reason = files.one_line(error)
                return [(other["component"], FAILED, reason) for other in raised]
    return []


def _down(step):
    """Return the components that a run took back already and that did not come up again.

    Their state is not "restored".
    """
    newest = {}
    for name, record in _records(step):
        component, ended = record.get("component"), record.get("ended") or ""
        if component and (ended, name) >= newest.get(component, ("",))[:2]:
            newest[component] = ended, name, record
    return [
        (component, FAILED, files.one_line(record.get("reason") or ""))
        for component, (_ended, _name, record) in sorted(newest.items())
        if record.get("state") == step_record.FAILED
    ]


def _records(step):
    """Yield (file name, record) of the steps that raised a level or took it back."""
    with journal.opened(step.root, step.run_id) as fd:
        names = [] if fd is None else os.listdir(fd)
    for name in names:
        if name.startswith((PREFIX, step_record.PREFIX + "revert-")):
            identity = name[len(step_record.PREFIX) : -len(step_record.SUFFIX)]
            yield name, step_record.read(step.run_id, identity, step.root) or {}


def _became(record, done):
    """Return (state, reason) of one record, by the answer of the revert."""
    component = record["component"]
    problems = [
        file["reason"]
        for file in done["paths"]
        if file["path"] in paths_of(record) and file["result"] == revert_run.REFUSED
    ]
    problems += [row["reason"] for row in _failed(component, done)]
    if done["error"]:
        problems.append(done["error"])
    if problems:
        return FAILED, files.one_line(problems[0])
    notes = [row["reason"] for row in _rows_of(component, done) if row["proven"] and row["reason"]]
    return RESTORED, files.one_line(notes[0]) if notes else ""


def _wait(step):
    """Wait until no other process takes back what this run raised.

    The service and the controller may start it at the same moment.
    """
    end = time.monotonic() + step_times.BACK_OFF
    while time.monotonic() < end and _is_running(step):
        time.sleep(0.5)


def _is_running(step):
    return any(
        record["run_id"] == step.run_id and record["running"]
        for record in step_record.unproven(step.root)
    )
