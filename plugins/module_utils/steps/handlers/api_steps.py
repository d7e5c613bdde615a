# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps whose effect lies in the API, done through a control-plane node: nothing restarts there."""

import time

from ...kubeapi.client import ApiError
from ...shared import cordon_annotation as cordon_mark
from ...shared import workload_resources as workload
from ...state import journal, lock
from ...state import step_record as proof
from ...state.storage import ChangeError
from .. import api_object_change as config_map
from ..drain import cordon
from ..drain import eviction as drain
from ..drain import plan as drain_plan
from ..revert import files as revert
from . import delete_rejected_pods as clean_up
from . import job_probe as probe

KUBEADM_CONFIG, PROBE, CLEAN_UP, DRAIN, UNCORDON, PATCH = (
    "kubeadm_config",
    "probe",
    "clean_up",
    "drain",
    "uncordon",
    "patch_workload",
)
# a drain's own time comes on top
SECONDS = {KUBEADM_CONFIG: 60, PROBE: 180, CLEAN_UP: 120, DRAIN: 120, UNCORDON: 60, PATCH: 720}
ROLLOUT_SECONDS = 300
DELETED = "those that were deleted are in the journal of this run; run again for the rest"
READY_SECONDS = 40  # in which a Node says that its kubelet is well again


def seconds_of(step):
    """Seconds after which the step has ended, whatever happens."""
    more = (step.get("change") or {}).get("timeout") or drain.TIMEOUT
    return SECONDS[step["remedy"]] + (more if step["remedy"] == DRAIN else 0)


def do(step, as_step, params):
    """{proven, reason, changed, entry}; ChangeError as for a file."""
    if step["remedy"] == DRAIN:
        return _drained(step, as_step, params)
    return {PROBE: _probed, CLEAN_UP: _cleaned, UNCORDON: _uncordoned, PATCH: _patched}.get(
        step["remedy"], _written
    )(step["change"], as_step, params)


def predict(step, as_step, params):
    """(whether it would change anything, what it would do), asked of the API without a change.

    None where only the plan can tell.
    """
    if step["remedy"] in (KUBEADM_CONFIG, PATCH):
        compared = config_map.give if step["remedy"] == PATCH else config_map.compare_and_swap
        return (
            compared(step["change"], as_step, _via(step["change"], params))["changed"],
            "nothing was changed",
        )
    if step["remedy"] not in (DRAIN, UNCORDON):
        return None
    try:
        with config_map.reached(
            _via(step["change"], params), read_only=False, seconds=SECONDS[DRAIN]
        ) as (api, _dummy):
            if step["remedy"] == UNCORDON:
                node, held = step["change"]["node"], bool(step["change"].get("held"))
                found = cordon.node_of(api, node)
                ours = cordon_mark.cordoned(found) and not cordon_mark.theirs(found, held)
                return ours, (
                    f"{node} would take pods again" if ours else f"no cordon of ours is on {node}"
                )
            return drain.Drain(api, step["change"], as_step.run_id).predict()
    except ApiError as error:
        raise ChangeError(
            "what the step would do is not known, because the API does not answer as it should"
            f" ({error})"
        )


def _drained(step, as_step, params):
    def tell(text):
        proof.tell(as_step.run_id, as_step.step, text, as_step.root)

    def ended(run_id):
        return (
            bool(lock.RUN_ID.match(run_id))
            and (proof.read(run_id, as_step.step, as_step.root) or {}).get("state") == proof.PROVEN
        )

    try:
        with config_map.reached(
            _via(step["change"], params), read_only=False, seconds=seconds_of(step)
        ) as (api, _dummy):
            made = drain.Drain(api, step["change"], as_step.run_id, tell, ended)
            proven, reason = made.run()
    except ApiError as error:  # the drain itself says what it left: here nothing was begun
        raise ChangeError(
            f"nothing was evicted, because the API does not answer as it should ({error}); run"
            " again"
        )
    return {
        "proven": proven,
        "reason": reason,
        "changed": made.changed or bool(made.evicted),
        "entry": None,
    }


def _uncordoned(wanted, as_step, params):
    """Our cordon away, once the node is well: until then it stays, and says whose it is."""
    node = wanted["node"]
    try:
        with config_map.reached(
            _via(wanted, params), read_only=False, seconds=SECONDS[UNCORDON]
        ) as (api, _dummy):
            end = time.monotonic() + READY_SECONDS
            while (
                drain_plan.ready_of(cordon.node_of(api, node))[0] != "True"
                and time.monotonic() < end
            ):
                time.sleep(1)
            status, why = drain_plan.ready_of(cordon.node_of(api, node))
            if status != "True":
                return {
                    "proven": False,
                    "changed": False,
                    "entry": None,
                    "reason": (
                        f"{node} stays cordoned, because it is not ready ({status}, {why}); bring"
                        " it back, and the next run takes the cordon away (KM903)"
                    ),
                }
            state, changed = cordon.lift(api, node, held=bool(wanted.get("held")))
    except ApiError as error:
        raise ChangeError(
            f"whether {node} is still cordoned is not known, because the API does not answer as it"
            f" should ({error}); run again when it does",
            changed=True,
        )
    told = {
        cordon.MINE: "",
        cordon.THEIRS: f"the cordon of {node} is somebody else's and stays",
        cordon.NONE: f"{node} was not cordoned any more",
    }
    return {"proven": True, "changed": changed, "entry": None, "reason": told[state]}


def _written(wanted, as_step, params):
    done = config_map.compare_and_swap(wanted, as_step, _via(wanted, params))
    proven = done["left"] == done["sha256_after"]
    reason = (
        ""
        if proven
        else (
            "{} was changed, but somebody else changed it at once: it holds {}, not {}; find"
            " out who"
        ).format(wanted["path"], done["left"] or "nothing", done["sha256_after"])
    )
    return {"proven": proven, "reason": reason, "changed": done["changed"], "entry": done["entry"]}


def _patched(wanted, as_step, params):
    """The resources of a workload's containers, proven by the rollout.

    Those that it had come back where it does not end in time.
    """
    via = _via(wanted, params)
    done = config_map.give(wanted, as_step, via)
    if done["left"] != done["sha256_after"]:
        reason = "{} was changed, but somebody else changed it at once; find out who".format(
            wanted["path"]
        )
        return {
            "proven": False,
            "reason": reason,
            "changed": done["changed"],
            "entry": done["entry"],
        }
    try:
        with config_map.reached(via, seconds=ROLLOUT_SECONDS + 30) as (api, _dummy):
            why = _waited(api, wanted["real"][len(journal.WORKLOAD) :])
    except ApiError as error:
        raise ChangeError(
            "{} was changed, and whether its pods came up is not known, because the API does not"
            " answer as it should ({})".format(wanted["path"], error),
            changed=True,
        )
    if why is None:
        return {"proven": True, "reason": "", "changed": done["changed"], "entry": done["entry"]}
    back = revert.revert(
        as_step.run_id,
        as_step.also(what="roll back: {}".format(wanted["path"])),
        only=[wanted["path"]],
    )
    trouble = "; ".join(one["reason"] for one in back if one["result"] == "refused")
    reason = "the rollout of %s did not end within %d s: %s; %s" % (
        wanted["path"],
        ROLLOUT_SECONDS,
        why,
        f"not put back: {trouble}" if trouble else "it has its former resources again",
    )
    return {
        "proven": False,
        "reason": reason,
        "changed": True,
        "entry": done["entry"],
        "rolled_back": not trouble,
    }


def _waited(api, path):
    """Why the rollout has not ended in time, or None."""
    end = time.monotonic() + ROLLOUT_SECONDS
    why = workload.rolled_out(api.get(path))
    while why and time.monotonic() < end:
        time.sleep(1)
        try:
            why = workload.rolled_out(api.get(path))
        except ApiError as error:
            if error.code == 404:
                return "it is gone"
            if time.monotonic() >= end:
                raise
    return why


def _cleaned(wanted, as_step, params):
    done = clean_up.Done()
    try:
        with config_map.reached(
            _via(wanted, params), read_only=False, seconds=SECONDS[CLEAN_UP]
        ) as (api, _dummy):
            clean_up.clean(api, wanted["pods"], as_step, done)
    except ApiError as error:
        told = DELETED if done.sent else "none was deleted; run again"
        raise ChangeError(
            f"not every pod was looked at, because the API does not answer as it should ({error});"
            f" {told}",
            changed=bool(done.sent),
        )
    except ChangeError as error:  # the lock or the journal, which are looked at before each of them
        if not done.sent:
            raise
        raise ChangeError(
            "{}; {}".format(
                str(error).replace("nothing was changed", "nothing more was deleted", 1), DELETED
            ),
            changed=True,
        )
    return {
        "proven": not done.stuck,
        "reason": clean_up.told(done),
        "changed": bool(done.sent),
        "entry": None,
    }


def _probed(wanted, as_step, params):
    try:
        with config_map.reached(_via(wanted, params), read_only=False, seconds=SECONDS[PROBE]) as (
            api,
            _dummy,
        ):
            names = probe.probe(api, as_step.run_id)
    except ApiError as error:  # a Job may be left: the record stays open, and recover removes it
        raise ChangeError(
            f"the probe did not come to an end ({error}); let kubemend remove what it left (KM902)",
            changed=True,
        )
    if not names:
        reason = (
            "the Job got no pod within %d s: no controller manager is at work, or something refuses"
            " its pods; look at its log and at kubectl -n %s get events"
            % (probe.PATIENCE, probe.NAMESPACE)
        )
    else:
        reason = "the Job got %d pods instead of one (%s): two controller managers are at work" % (
            len(names),
            ", ".join(names),
        )
    return {
        "proven": len(names) == 1,
        "reason": "" if len(names) == 1 else reason,
        "changed": True,
        "entry": None,
    }


def resumed(record, params):
    """(state of the proof, what is told) of a step whose program is gone, after its change was
    ended; state None: not yet known.
    """
    if record["remedy"] == PROBE:
        try:
            with config_map.reached(_via({}, params), read_only=False, seconds=SECONDS[PROBE]) as (
                api,
                _dummy,
            ):
                probe.sweep(api)
        except ApiError as error:
            return (
                None,
                (
                    "whether its Job is left is not known, because the API does not answer as it"
                    f" should ({error}); run again when it does"
                ),
            )
        return "not_done", "nothing of the probe is left"
    if record["remedy"] in (DRAIN, UNCORDON):
        return _undrained(record, params)
    if record["remedy"] == CLEAN_UP:
        return "not_done", "what it deleted is in its journal; the rest is as it was"
    item = record["entry"]
    if item and not item["end"]:
        return None, "its change of {} is still open".format(record["path"])
    result = item["end"]["result"] if item else journal.NOT_DONE
    return {
        journal.COMMITTED: ("proven", "it was written"),
        journal.SUPERSEDED: ("not_done", "somebody else's text was left"),
    }.get(result, ("not_done", "nothing of it was written"))


def _undrained(record, params):
    """What an interrupted drain left.

    The cordon of its run goes, the pods that went make themselves at home elsewhere.
    """
    node = record.get("node")
    try:
        with config_map.reached(
            _via(record, params), read_only=False, seconds=SECONDS[UNCORDON]
        ) as (api, dummy):
            if record["remedy"] == DRAIN and drain_plan.KEEP in (record.get("allow") or []):
                return "not_done", f"{node} stays cordoned (kubemend_allow: [{drain_plan.KEEP}])"
            if drain_plan.ready_of(cordon.node_of(api, node))[0] != "True":
                if record["remedy"] == DRAIN:
                    cordon.release(api, node, record["run_id"])
                return (
                    "not_done",
                    f"{node} is not ready: a cordon of that run stays until it is (KM903)",
                )
            state, _dummy = cordon.lift(
                api,
                node,
                record["run_id"] if record["remedy"] == DRAIN else None,
                bool(record.get("held")),
            )
    except ApiError as error:
        if error.code == 404:
            return "not_done", f"there is no Node {node} any more"
        return (
            None,
            (
                f"whether {node} is cordoned is not known, because the API does not answer as it"
                f" should ({error}); run again when it does"
            ),
        )
    return "not_done", (
        f"{node} takes pods again"
        if state == cordon.MINE
        else f"no cordon of that run is on {node}"
    )


def _via(wanted, params):
    return {
        "kubectl": params.get("kubectl"),
        "kubeconfig": params.get("kubeconfig"),
        "cluster_uid": wanted.get("cluster_uid"),
    }
