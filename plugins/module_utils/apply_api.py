# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: steps whose effect lies in the API, done through a control-plane node: nothing restarts there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.kubemend.remediation.plugins.module_utils import clean_up, config_map, journal, probe
from ansible_collections.kubemend.remediation.plugins.module_utils.api import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.durable import ChangeError

KUBEADM_CONFIG, PROBE, CLEAN_UP = "kubeadm_config", "probe", "clean_up"
SECONDS = {KUBEADM_CONFIG: 60, PROBE: 180, CLEAN_UP: 120}  # after which such a step has ended, whatever happens


def do(step, as_step, params):
    """{proven, reason, changed, entry}; ChangeError as for a file."""
    return {PROBE: _probed, CLEAN_UP: _cleaned}.get(step["remedy"], _written)(step["change"], as_step, params)


def _written(wanted, as_step, params):
    done = config_map.compare_and_swap(wanted, as_step, _via(wanted, params))
    proven = done["left"] == done["sha256_after"]
    reason = "" if proven else "%s was changed, but somebody else changed it at once: it holds %s, not %s; find out who" % (
        wanted["path"], done["left"] or "nothing", done["sha256_after"])
    return {"proven": proven, "reason": reason, "changed": done["changed"], "entry": done["entry"]}


def _cleaned(wanted, as_step, params):
    done = clean_up.Done()
    try:
        with config_map.reached(_via(wanted, params), read_only=False, seconds=SECONDS[CLEAN_UP]) as (api, dummy):
            clean_up.clean(api, wanted["pods"], as_step, done)
    except ApiError as error:
        told = "those that were deleted are in the journal of this run; run again for the rest" if done.sent else "none was deleted; run again"
        raise ChangeError("not every pod was looked at, because the API does not answer as it should (%s); %s" % (error, told), changed=bool(done.sent))
    told = "%d pods deleted" % len(done.gone) + "".join("; %s stays: %s" % one for one in sorted(list(done.kept.items()) + list(done.stuck.items())))
    return {"proven": not done.stuck, "reason": told, "changed": bool(done.sent), "entry": None}


def _probed(wanted, as_step, params):
    try:
        with config_map.reached(_via(wanted, params), read_only=False, seconds=SECONDS[PROBE]) as (api, dummy):
            names = probe.probe(api, as_step.run_id)
    except ApiError as error:  # a Job may be left: the record stays open, and recover removes it
        raise ChangeError("the probe did not come to an end (%s); let kubemend remove what it left (KM902)" % error, changed=True)
    if not names:
        reason = ("the Job got no pod within %d s: no controller manager is at work, or something refuses its pods; look at its log and at "
                  "kubectl -n %s get events" % (probe.PATIENCE, probe.NAMESPACE))
    else:
        reason = "the Job got %d pods instead of one (%s): two controller managers are at work" % (len(names), ", ".join(names))
    return {"proven": len(names) == 1, "reason": "" if len(names) == 1 else reason, "changed": True, "entry": None}


def resumed(record, params):
    """(state of the proof, what is told) of a step whose program is gone, after its change was ended; state None: not yet known."""
    if record["remedy"] == PROBE:
        try:
            with config_map.reached(_via({}, params), read_only=False, seconds=SECONDS[PROBE]) as (api, dummy):
                probe.sweep(api)
        except ApiError as error:
            return None, "whether its Job is left is not known, because the API does not answer as it should (%s); run again when it does" % error
        return "not_done", "nothing of the probe is left"
    if record["remedy"] == CLEAN_UP:
        return "not_done", "what it deleted is in its journal; the rest is as it was"
    item = record["entry"]
    if item and not item["end"]:
        return None, "its change of %s is still open" % record["path"]
    result = item["end"]["result"] if item else journal.NOT_DONE
    return {journal.COMMITTED: ("proven", "it was written"), journal.SUPERSEDED: ("not_done", "somebody else's text was left")}.get(
        result, ("not_done", "nothing of it was written"))


def _via(wanted, params):
    return {"kubectl": params.get("kubectl"), "kubeconfig": params.get("kubeconfig"), "cluster_uid": wanted.get("cluster_uid")}
