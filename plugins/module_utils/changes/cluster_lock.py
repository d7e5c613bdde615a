# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster on one node, as the action cluster_lock asks for it."""

from ..state import lock, step_record
from ..state.storage import ROOT, ChangeError
from . import node_lock


def run(params):
    """Return {held, changed, lock, message}.

    lock: the lock that is on the node now, or None.
    message: the reason why the run does not hold it.
    """
    root = params.get("root") or ROOT
    if params.get("check"):
        return _answer(False, False, lock.read(root), "check mode: nothing is locked")
    try:
        return STATES.get(params["state"], _acquired)(params, root)
    except node_lock.LockHeld as error:
        return _answer(False, False, error.lock, str(error))
    except ChangeError as error:
        return _answer(False, False, None, str(error))


def _released(params, root):
    run_id = params["run_id"]
    # a step that runs still needs the lock, for its rollback; the lock's time ends it
    if _running_step(root, lambda run: run == run_id):
        return _answer(True, False, lock.read(root), "")
    return _answer(False, node_lock.release(run_id, root), None, "")


def _renewed(params, root):
    return _answer(True, True, node_lock.renew(params["run_id"], params["seconds"], root), "")


def _acquired(params, root):
    run_id = params["run_id"]
    before = lock.read(root)
    running = _running_step(root, lambda run: run != run_id)
    if running:
        message = "step {step} of run {run_id} is still at work here".format(**running)
        return dict(_answer(False, False, before, message), working=running["run_id"])
    granted_lock = node_lock.acquire(
        run_id, params.get("controller") or {}, params["seconds"], params.get("take"), root
    )
    return _answer(True, before is None or before["run_id"] != run_id, granted_lock, "")


STATES = {"released": _released, "renewed": _renewed}


def _running_step(root, is_chosen):
    """Return the record of a step of such a run whose program lives on this node, or None."""
    return next(
        (
            record
            for record in step_record.unproven(root)
            if record.get("running") and is_chosen(record.get("run_id"))
        ),
        None,
    )


def _answer(is_held, changed, record, message):
    return {"held": is_held, "changed": changed, "lock": record, "message": message}
