# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: steps whose effect lies in the API, done through a control-plane node: nothing restarts there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.kubemend.remediation.plugins.module_utils import config_map, journal

KUBEADM_CONFIG = "kubeadm_config"
SECONDS = {KUBEADM_CONFIG: 60}  # after which such a step has ended, whatever happens


def do(step, as_step, params):
    """{proven, reason, changed, entry}; ChangeError as for a file."""
    wanted = step["change"]
    done = config_map.compare_and_swap(wanted, as_step, _via(wanted, params))
    proven = done["left"] == done["sha256_after"]
    reason = "" if proven else "%s was changed, but somebody else changed it at once: it holds %s, not %s; find out who" % (
        wanted["path"], done["left"] or "nothing", done["sha256_after"])
    return {"proven": proven, "reason": reason, "changed": done["changed"], "entry": done["entry"]}


def resumed(record):
    """(state of the proof, what is told) of a step whose program is gone, after its change was ended; None: not yet known."""
    item = record["entry"]
    if item and not item["end"]:
        return None, "its change of %s is still open" % record["path"]
    result = item["end"]["result"] if item else journal.NOT_DONE
    return {journal.COMMITTED: ("proven", "it was written"), journal.SUPERSEDED: ("not_done", "somebody else's text was left")}.get(
        result, ("not_done", "nothing of it was written"))


def _via(wanted, params):
    return {"kubectl": params.get("kubectl"), "kubeconfig": params.get("kubeconfig"), "cluster_uid": wanted.get("cluster_uid")}
