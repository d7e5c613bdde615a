# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our cordon of a node, told from everybody else's by the annotation that is put with it.

Both are one patch of the Node as it was read, so that neither is ever there without the other, and
somebody who cordons or uncordons at the same moment is seen.
"""

import json
import time

from ...kubeapi.client import MERGE, ApiError
from ...shared import cordon_annotation as cordon_mark
from ...state import storage as durable

TRIES = 5
PAUSE = 0.2
MINE, THEIRS, NONE = "mine", "theirs", "none"


def node_of(api, name):
    """The Node as the API has it; ApiError (code 404) when there is none."""
    return api.get("/api/v1/nodes/" + name)


def put(api, name, run_id, reason, held=False, ended=None):
    """Cordon the node for this run.

    (MINE, or THEIRS where somebody else's is there, which stays as it is; whether anything was
    changed).

    What an earlier run of ours left is taken over. held: as cordon_mark.cordon_of has it; one that
    is held already is good as it is where its run came to its end (ended(run)): the end of an
    interrupted one is still to come, and takes its cordon away. ApiError: whether it is there is
    told by the annotation, to whoever looks.
    """
    mark = json.dumps(
        dict(
            {"run": run_id, "reason": reason, "at": durable.now()},
            **({"held": True} if held else {}),
        ),
        sort_keys=True,
    )

    def wanted(node):
        found = cordon_mark.cordon_of(node)
        if cordon_mark.theirs(node, held):
            return THEIRS, None
        if found and (
            found["run"] == run_id or (held and found["held"] and ended and ended(found["run"]))
        ):
            return MINE, None
        return MINE, {
            "metadata": {"annotations": {cordon_mark.CORDON: mark}},
            "spec": {"unschedulable": True},
        }

    return _patch(api, name, wanted)


def lift(api, name, run_id=None, held=False):
    """Take our cordon away: (MINE when it was there, THEIRS where it is somebody else's, NONE
    without any; whether anything was changed).

    run_id: only this run's; held: one that is held, too.
    """

    def wanted(node):
        found = cordon_mark.cordon_of(node)
        if found is None:
            return THEIRS if cordon_mark.cordoned(node) else NONE, None
        if found["run"] != run_id and (run_id is not None or cordon_mark.theirs(node, held)):
            return THEIRS, None
        return MINE, {
            "metadata": {"annotations": {cordon_mark.CORDON: None}},
            "spec": {"unschedulable": None},
        }

    return _patch(api, name, wanted)


def release(api, name, run_id=None):
    """Nobody comes back for our cordon any more (run_id: only for this run's).

    Whoever finds it may take it away once the node is well (KM903).
    """

    def wanted(node):
        found = cordon_mark.cordon_of(node)
        if found is None:
            return THEIRS if cordon_mark.cordoned(node) else NONE, None
        if run_id is not None and found["run"] != run_id:
            return THEIRS, None
        if not found.pop("held"):
            return MINE, None
        return MINE, {
            "metadata": {"annotations": {cordon_mark.CORDON: json.dumps(found, sort_keys=True)}}
        }

    return _patch(api, name, wanted)


def _patch(api, name, wanted):
    """Read, decide, patch what was read.

    Read again when somebody wrote meanwhile, or when the answer did not come.
    """
    unsure = last = None
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE * attempt)
        node = node_of(api, name)
        state, patch = wanted(node)
        if patch is None:
            # an answer got lost, not the patch
            return (MINE, True) if unsure and state in (MINE, NONE) else (state, False)
        patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
        try:
            api.send("PATCH", "/api/v1/nodes/" + name, patch, kind=MERGE)
        except ApiError as error:
            unsure = error if error.code is None or error.code >= 500 else unsure
            if error.code is not None and error.code < 500 and error.code not in (409, 429):
                raise
            last = error
            continue
        return state, True
    raise unsure or last
