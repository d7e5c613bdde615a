# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: the lock of a cluster on one node, as the action cluster_lock asks for it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.kubemend.remediation.plugins.module_utils import lock
from ansible_collections.kubemend.remediation.plugins.module_utils.durable import ROOT, ChangeError


def run(params):
    """{held, changed, lock, message}: `lock` is whoever's lies there now, or None; message says why it is not held."""
    root, run_id = params.get("root") or ROOT, params["run_id"]
    if params.get("check"):
        return _answer(False, False, lock.read(root), "check mode: nothing is locked")
    try:
        if params["state"] == "released":
            return _answer(False, lock.release(run_id, root), None, "")
        if params["state"] == "renewed":
            return _answer(True, True, lock.renew(run_id, params["seconds"], root), "")
        before = lock.read(root)
        held = lock.acquire(run_id, params.get("controller") or {}, params["seconds"], params.get("take"), root)
        return _answer(True, before is None or before["run_id"] != run_id, held, "")
    except lock.LockHeld as error:
        return _answer(False, False, error.lock, str(error))
    except ChangeError as error:
        return _answer(False, False, None, str(error))


def _answer(held, changed, found, message):
    return {"held": held, "changed": changed, "lock": found, "message": message}
