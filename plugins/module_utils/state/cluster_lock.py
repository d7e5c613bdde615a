# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster on one node, as the action cluster_lock asks for it."""

from . import lock
from . import step_record as proof
from .storage import ROOT, ChangeError


def run(params):
    """{held, changed, lock, message}: `lock` is whoever's lies there now, or None.

    Message says why it is not held.
    """
    root, run_id = params.get("root") or ROOT, params["run_id"]
    if params.get("check"):
        return _answer(False, False, lock.read(root), "check mode: nothing is locked")
    try:
        if params["state"] == "released":
            # it still needs the lock, for its way back; the lock's time ends it
            if _at_work(root, lambda run: run == run_id):
                return _answer(True, False, lock.read(root), "")
            return _answer(False, lock.release(run_id, root), None, "")
        if params["state"] == "renewed":
            return _answer(True, True, lock.renew(run_id, params["seconds"], root), "")
        before, working = lock.read(root), _at_work(root, lambda run: run != run_id)
        if working:
            return dict(
                _answer(
                    False,
                    False,
                    before,
                    "step {} of run {} is still at work here".format(
                        working["step"], working["run_id"]
                    ),
                ),
                working=working["run_id"],
            )
        held = lock.acquire(
            run_id, params.get("controller") or {}, params["seconds"], params.get("take"), root
        )
        return _answer(True, before is None or before["run_id"] != run_id, held, "")
    except lock.LockHeld as error:
        return _answer(False, False, error.lock, str(error))
    except ChangeError as error:
        return _answer(False, False, None, str(error))


def _at_work(root, chosen):
    """The record of a step of such a run whose program is alive on this node, whatever became of
    its controller; or None.
    """
    return next(
        (one for one in proof.unproven(root) if one.get("running") and chosen(one.get("run_id"))),
        None,
    )


def _answer(held, changed, found, message):
    return {"held": held, "changed": changed, "lock": found, "message": message}
