# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Managed cordons of a node, which an annotation distinguishes from foreign cordons.

The cordon and its annotation are one patch of the Node that was read. Neither exists without the
other, and a concurrent cordon or uncordon by another client is noticed.
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


def put(api, name, run_id, reason, is_held=False, ended=None):
    """Cordon the node for this run, and return (MINE or THEIRS, whether anything was changed).

    The result is THEIRS where the node has a foreign cordon, which stays as it is. A cordon that an
    earlier run left is taken over.

    is_held: the cordon is held, as in cordon_annotation.cordon_of(). A cordon that is held already
        stays unchanged if its run has ended. An interrupted run is still to be ended, which removes
        its cordon.
    ended: a function that returns whether a run has ended.

    After an ApiError only the annotation shows whether the node was cordoned.
    """
    facts = {"run": run_id, "reason": reason, "at": storage.now()}
    if is_held:
        facts["held"] = True
    mark = json.dumps(facts, sort_keys=True)

    def decide(node):
        cordon = cordon_annotation.cordon_of(node)
        if cordon_annotation.has_foreign_cordon(node, is_held):
            return THEIRS, None
        if cordon and (cordon["run"] == run_id or _is_settled(cordon, is_held, ended)):
            return MINE, None
        return MINE, {
            "metadata": {"annotations": {cordon_annotation.CORDON: mark}},
            "spec": {"unschedulable": True},
        }

    return _patch(api, name, decide)


def _is_settled(cordon, is_held, ended):
    """Return whether a cordon is held, may be, and is of a run that came to its end."""
    if not is_held or not cordon["held"] or ended is None:
        return False
    return ended(cordon["run"])


def lift(api, name, run_id=None, is_held=False):
    """Remove the managed cordon, and return (its owner, whether anything was changed).

    The owner is MINE for a cordon that is removed, THEIRS for a foreign one or one that the
    parameters exclude, and NONE without a cordon.

    run_id: remove only the cordon of this run.
    is_held: remove a held cordon too.
    """

    def decide(node):
        cordon = cordon_annotation.cordon_of(node)
        if cordon is None:
            return _owner(node), None
        if cordon["run"] != run_id and (
            run_id is not None or cordon_annotation.has_foreign_cordon(node, is_held)
        ):
            return THEIRS, None
        return MINE, {
            "metadata": {"annotations": {cordon_annotation.CORDON: None}},
            "spec": {"unschedulable": None},
        }

    return _patch(api, name, decide)


def release(api, name, run_id=None):
    """Mark the managed cordon as no longer held.

    run_id: mark only the cordon of this run.

    A later run may then remove it when the node is well (KM903).
    """

    def decide(node):
        cordon = cordon_annotation.cordon_of(node)
        if cordon is None:
            return _owner(node), None
        if run_id is not None and cordon["run"] != run_id:
            return THEIRS, None
        if not cordon.pop("held"):
            return MINE, None
        return MINE, {
            "metadata": {
                "annotations": {cordon_annotation.CORDON: json.dumps(cordon, sort_keys=True)}
            }
        }

    return _patch(api, name, decide)


def _owner(node):
    """Return whose the cordon of a node without kubemend's annotation is."""
    return THEIRS if cordon_annotation.cordoned(node) else NONE


def _patch(api, name, decide):
    """Read the Node, decide, and patch what was read.

    The Node is read again after a concurrent write by another client, or when there was no answer.
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
