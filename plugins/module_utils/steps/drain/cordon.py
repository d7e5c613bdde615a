# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend's cordon of a node, distinguished from foreign ones by the annotation put with it.

Both are one patch of the Node as it was read, so that neither is ever there without the other, and
a cordon or uncordon by another client at the same moment is seen.
"""

import json
import time

from ...kubeapi.client import MERGE, ApiError
from ...shared import cordon_annotation
from ...state import storage

TRIES = 5
PAUSE = 0.2
MINE, THEIRS, NONE = "mine", "theirs", "none"


def node_of(api, name):
    """Return the Node as the API has it; ApiError (code 404) when there is none."""
    return api.get("/api/v1/nodes/" + name)


def put(api, name, run_id, reason, held=False, ended=None):
    """Cordon the node for this run, and return (MINE or THEIRS, whether anything was changed).

    THEIRS where a foreign cordon is there, which stays as it is. What an earlier run left is taken
    over. held: as cordon_mark.cordon_of has it; one that is held already is good as it is where its
    run came to its end (ended(run)): the end of an interrupted one is still to come, and takes its
    cordon away. ApiError: the annotation says whether it is there.
    """
    facts = {"run": run_id, "reason": reason, "at": storage.now()}
    if held:
        facts["held"] = True
    mark = json.dumps(facts, sort_keys=True)

    def decide(node):
        found = cordon_annotation.cordon_of(node)
        if cordon_annotation.theirs(node, held):
            return THEIRS, None
        if found and (found["run"] == run_id or _is_settled(found, held, ended)):
            return MINE, None
        return MINE, {
            "metadata": {"annotations": {cordon_annotation.CORDON: mark}},
            "spec": {"unschedulable": True},
        }

    return _patch(api, name, decide)


def _is_settled(found, held, ended):
    """Return whether a cordon is held, may be, and is of a run that came to its end."""
    if not held or not found["held"] or ended is None:
        return False
    return ended(found["run"])


def lift(api, name, run_id=None, held=False):
    """Remove kubemend's cordon, and return (its owner, whether anything was changed).

    The owner: MINE when it was there, THEIRS where it is foreign, NONE without any. run_id: only
    this run's; held: one that is held, too.
    """

    def decide(node):
        found = cordon_annotation.cordon_of(node)
        if found is None:
            return _owner(node), None
        if found["run"] != run_id and (run_id is not None or cordon_annotation.theirs(node, held)):
            return THEIRS, None
        return MINE, {
            "metadata": {"annotations": {cordon_annotation.CORDON: None}},
            "spec": {"unschedulable": None},
        }

    return _patch(api, name, decide)


def release(api, name, run_id=None):
    """Mark kubemend's cordon (run_id: only this run's) as one that no run comes back for.

    A later run may take it away once the node is well (KM903).
    """

    def decide(node):
        found = cordon_annotation.cordon_of(node)
        if found is None:
            return _owner(node), None
        if run_id is not None and found["run"] != run_id:
            return THEIRS, None
        if not found.pop("held"):
            return MINE, None
        return MINE, {
            "metadata": {
                "annotations": {cordon_annotation.CORDON: json.dumps(found, sort_keys=True)}
            }
        }

    return _patch(api, name, decide)


def _owner(node):
    """Return whose the cordon of a node without kubemend's annotation is."""
    return THEIRS if cordon_annotation.cordoned(node) else NONE


def _patch(api, name, decide):
    """Read the Node, decide, and patch what was read.

    Read it again when another client wrote meanwhile, or when the answer did not come.
    """
    unsure = last = None
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE * attempt)
        node = node_of(api, name)
        state, patch = decide(node)
        if patch is None:
            if unsure and state in (MINE, NONE):  # an answer got lost, not the patch
                return MINE, True
            return state, False
        patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
        try:
            api.send("PATCH", "/api/v1/nodes/" + name, patch, kind=MERGE)
            return state, True
        except ApiError as error:
            last = error
        if _may_be_done(last):
            unsure = last
        elif last.code not in (409, 429):
            raise last
    raise unsure or last


def _may_be_done(error):
    """Return whether the API may have done the patch that it did not answer well."""
    return error.code is None or error.code >= 500
