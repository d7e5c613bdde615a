# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels of this node that only a restart raises, and their way back, which restarts again.

Each is a step of the run like a repair's: guarded, journalled, proven by the new process, or rolled
back.
"""

import os
import time

from ..shared import step_times
from ..state import journal, lock
from ..state import step_record as proof
from ..state import storage as durable
from ..state.raised_levels import PREFIX, edited, left, paths_of
from ..state.storage import ChangeError
from ..steps import executor as apply_step
from ..steps import health_probe as prove
from ..steps import preconditions as guard
from ..steps.revert import run as revert_run
from ..system import files
from . import kubelet_level

KEPT = 32 * 1024 * 1024  # bytes of a component's logs that are kept before a restart
RAISED, REFUSED, UNSURE, RESTORED, FAILED = "raised", "refused", "unsure", "restored", "failed"
BY_HAND = "by_hand"  # the level is up still, and only whoever edited its file can take it down


def budget(step):
    """Seconds after which it has ended, whatever happens."""
    return (
        kubelet_level.BUDGET
        if step["remedy"] == kubelet_level.REMEDY
        else int(apply_step.budget(step)) + 1
    )


def raise_one(step, target, params):
    """(state, why) of a target that has a step.

    What the component logged until now is kept first, where it goes with its pod.
    """
    wanted = target["step"]
    if wanted["remedy"] == kubelet_level.REMEDY:
        here = step.also(
            step=wanted["id"], what="log level of kubelet: {}".format(wanted["target"])
        )
        state, reason = kubelet_level.raise_level(here, wanted, wanted["host"])
        return {proof.PROVEN: RAISED, proof.FAILED: UNSURE}.get(state, REFUSED), files.one_line(
            reason or ""
        )
    try:
        with step.exclusive() as root_fd:
            _keep_logs(step, target["component"], root_fd)
    except ChangeError as error:
        return REFUSED, files.one_line(error)
    done = apply_step.work(
        dict(
            ((name, params.get(name)) for name in ("lock", "root", "kubeconfig", "kubectl")),
            run_id=step.run_id,
            step=wanted,
            check=False,
        )
    )
    if done["state"] == apply_step.DONE:
        return RAISED, ""
    return (
        UNSURE if done["state"] == apply_step.FAILED and done["changed"] else REFUSED
    ), files.one_line(done["reason"])


def _keep_logs(step, component, root_fd):
    """The logs that go with the pod, as they are, in the run's folder of the journal.

    At most so much, the newest first.
    """
    left = KEPT
    with durable.told(
        f"no level was raised, because what {component} logged until now cannot be kept"
    ), durable.descriptor(durable.private_folder(journal.FOLDER, root_fd)) as runs:
        with durable.descriptor(durable.private_folder(step.run_id, runs)) as fd:
            for path in sorted(prove.starts(component), key=os.path.getmtime, reverse=True):
                with open(path, "rb") as log:
                    log.seek(max(0, os.fstat(log.fileno()).st_size - left))
                    data = log.read(left)
                durable.write_new(
                    "log-{}-{}".format(component, path.replace("/", "%2F")[-100:]), data, fd
                )
                left -= len(data)
                if left <= 0:
                    break


def take_back(step, attempt, by=None, allow=()):
    """[(component, state, why)]: as revert does it, under the lock, since something restarts.

    Whoever else is at it is waited for.

    by: the run that does it and has the lock; without it the run that raised them takes the lock
    again. allow: what is lifted besides what was lifted for raising them.
    """
    _wait(step)
    theirs = [
        (record["component"], BY_HAND if up else RESTORED, files.one_line(why))
        for record, (up, why) in edited(step.run_id, step.root)
    ]
    raised = left(step.run_id, step.root)
    if not raised:
        return theirs + [
            one
            for one in _down(step)
            if one[0] not in [component for component, _state, _why in theirs]
        ]
    allow = sorted(
        set(allow).union(
            word for record in raised for word in (record.get("guard") or {}).get("allow") or ()
        )
    )
    forbidden = _forbidden(raised, allow)
    if forbidden:  # before any lock is taken: it may be so for days
        return theirs + forbidden
    held = lock.read(step.root) or {}
    if by is None:
        lock.acquire(
            step.run_id,
            held.get("controller") or {},
            sum(budget(record) for record in raised),
            root=step.root,
        )
    found = _taken_back(step, attempt, by or step.run_id, raised, allow)
    if (
        by is None
        and held.get("run_id") != step.run_id
        and any(state == FAILED for _component, state, _why in found)
    ):
        lock.release(step.run_id, step.root)
    return theirs + found


def _taken_back(step, attempt, run_id, raised, allow):
    if any(record["run_id"] == step.run_id for record in proof.unproven(step.root)) or any(
        item["run_id"] == step.run_id for item in journal.open_entries(step.root)
    ):
        apply_step.work(
            {
                "run_id": run_id,
                "root": step.root,
                "lock": None,
                "step": {
                    "id": "recover-%d" % attempt,
                    "remedy": "recover",
                    "only_run": step.run_id,
                    "host": raised[0].get("host"),
                    "guard": {"allow": allow},
                },
            }
        )
    done = revert_run.reverted(
        {
            "run_id": run_id,
            "reverts": step.run_id,
            "root": step.root,
            "lock": None,
            "attempt": attempt,
            "allow": allow,
            "host": raised[0].get("host"),
        }
    )
    _wait(step)
    found = [(record["component"], *_became(record, done)) for record in raised]
    theirs = {record["component"]: told for record, told in edited(step.run_id, step.root)}
    # one of its files may have been edited: what counts is whether the level is up still
    return [
        (
            (
                component,
                BY_HAND if theirs[component][0] else RESTORED,
                files.one_line(theirs[component][1]),
            )
            if state == FAILED and component in theirs and not _unproven(component, done)
            else (component, state, why)
        )
        for component, state, why in found
    ]


def _unproven(component, done):
    return any(
        one["component"] == component and one["proven"] is False for one in done["components"]
    ) or bool(done["error"])


def _forbidden(raised, allow):
    """What must not be restarted now: [(component, failed, why)] for all of them, or nothing."""
    for record in raised:
        if record["component"] == kubelet_level.COMPONENT:
            try:
                kubelet_level.may_restart(record, allow)
            except guard.Refused as error:
                return [(one["component"], FAILED, files.one_line(error)) for one in raised]
    return []


def _down(step):
    """What was taken back already, by whomever, and did not come up again.

    Nobody is told "restored" of it.
    """
    newest = {}
    with journal.opened(step.root, step.run_id) as fd:
        names = (
            []
            if fd is None
            else [
                name
                for name in os.listdir(fd)
                if name.startswith((PREFIX, proof.PREFIX + "revert-"))
            ]
        )
    for name in names:
        record = (
            proof.read(step.run_id, name[len(proof.PREFIX) : -len(proof.SUFFIX)], step.root) or {}
        )
        if (
            record.get("component")
            and (record.get("ended") or "", name) >= newest.get(record["component"], ("",))[:2]
        ):
            newest[record["component"]] = record.get("ended") or "", name, record
    return [
        (component, FAILED, files.one_line(record.get("reason") or ""))
        for component, (_at, _name, record) in sorted(newest.items())
        if record.get("state") == proof.FAILED
    ]


def _became(record, done):
    """(state, why) of one of them, by the answer of the revert."""
    wrong = [
        one["reason"]
        for one in done["paths"]
        if one["path"] in paths_of(record) and one["result"] == revert_run.REFUSED
    ]
    wrong += [
        one["reason"]
        for one in done["components"]
        if one["component"] == record["component"] and one["proven"] is False
    ]
    wrong += [done["error"]] if done["error"] else []
    told = [
        one["reason"]
        for one in done["components"]
        if one["component"] == record["component"] and one["proven"] and one["reason"]
    ]
    return (
        (FAILED, files.one_line(wrong[0]))
        if wrong
        else (RESTORED, files.one_line(told[0]) if told else "")
    )


def _wait(step):
    """Until nobody else takes back what this run raised.

    The service and the controller may come at the same moment.
    """
    end = time.monotonic() + step_times.BACK_OFF
    while time.monotonic() < end and any(
        record["run_id"] == step.run_id and record["running"]
        for record in proof.unproven(step.root)
    ):
        time.sleep(0.5)
