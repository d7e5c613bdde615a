# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that change objects through the API of a control-plane node; nothing restarts there."""

import time

from ...changes import step_claim
from ...kubeapi.client import ApiError
from ...shared import cordon_annotation, step_times, workload_resources
from ...shared.consent import KEEP_CORDON
from ...shared.step_kinds import CLEAN_UP, DRAIN, PROBE, UNCHANGED, UNCORDON, kind_of
from ...shared.text import counted
from ...state import journal, lock, step_record
from ...state.storage import ChangeError
from .. import api_object_change
from ..base import StepHandler
from ..drain import cordon, eviction
from ..drain import plan as drain_plan
from ..revert import files as revert_files
from . import delete_rejected_pods, job_probe

ROLLOUT_SECONDS = 300
DELETED = "those that were deleted are in the journal of this run; run again for the rest"
READY_SECONDS = 40  # in which a Node says that its kubelet is well again


class ApiStepHandler(StepHandler):
    """A step whose record, claim and end the executor writes."""

    def do(self, step):
        """Do the step, and return {proven, reason, changed, entry}.

        ChangeError is raised as for a file.
        """
        raise NotImplementedError

    def predict(self, _step):
        """Return (whether the step would change anything, what it would do), without a change.

        The result is None where only the plan has the answer.
        """
        return


def _result(proven, reason, changed, entry=None, **more):
    return dict({"proven": proven, "reason": reason, "changed": changed, "entry": entry}, **more)


def _via(change, params):
    return {
        "kubectl": params.get("kubectl"),
        "kubeconfig": params.get("kubeconfig"),
        "cluster_uid": change.get("cluster_uid"),
    }


def _way(step):
    return _via(step.change, step.params)


def _writable(via, kind, seconds=None):
    """Return the way to an API that may be written to."""
    return api_object_change.reached(via, read_only=False, seconds=seconds or kind_of(kind).seconds)


class _ObjectHandler(ApiStepHandler):
    """A change of one object, which is compared and swapped."""

    def compare_and_swap(self, step):
        """Write the object; in check mode only compare it."""
        raise NotImplementedError

    def predict(self, step):
        """Return whether the object would change."""
        return self.compare_and_swap(step)["changed"], UNCHANGED

    def recover(self, record, context=None, params=None):
        """Return how it ended by its entry of the journal."""
        item = record["entry"]
        if item and not item["end"]:
            return None, "its change of {} is still open".format(record["path"])
        result = item["end"]["result"] if item else journal.NOT_DONE
        if result == journal.COMMITTED:
            return step_record.PROVEN, "it was written"
        if result == journal.SUPERSEDED:
            return step_record.NOT_DONE, "another text was left"
        return step_record.NOT_DONE, "nothing of it was written"


class EditKubeadmConfig(_ObjectHandler):
    """Changes the text of kubeadm's ConfigMap."""

    def compare_and_swap(self, step):
        """Write the text; in check mode only compare it."""
        return api_object_change.compare_and_swap(step.change, step.context, _way(step))

    def do(self, step):
        """Write the text, and compare what the API has then."""
        done = self.compare_and_swap(step)
        if done["left"] == done["sha256_after"]:
            return _result(True, "", done["changed"], done["entry"])
        reason = (
            "{} was changed, but something else changed it at once: it holds {}, not {}; find"
            " out who"
        ).format(step.path, done["left"] or "nothing", done["sha256_after"])
        return _result(False, reason, done["changed"], done["entry"])


class PatchWorkload(_ObjectHandler):
    """Sets the resources of a workload's containers, verified by its rollout.

    The former resources are restored where the rollout does not end in time.
    """

    def compare_and_swap(self, step):
        """Write the resources; in check mode only compare them."""
        return api_object_change.give(step.change, step.context, _way(step))

    def do(self, step):
        """Write the resources, and wait for the rollout."""
        done = self.compare_and_swap(step)
        if done["left"] != done["sha256_after"]:
            reason = f"{step.path} was changed, but something else changed it at once; find out who"
            return _result(False, reason, done["changed"], done["entry"])
        try:
            with api_object_change.reached(_way(step), seconds=ROLLOUT_SECONDS + 30) as (
                api,
                _dummy,
            ):
                failure = _wait_for_rollout(api, step.change["real"][len(journal.WORKLOAD) :])
        except ApiError as error:
            raise ChangeError(
                f"{step.path} was changed, and whether its pods came up is not known, because the"
                f" API does not answer as it should ({error})",
                changed=True,
            ) from error
        if failure is None:
            return _result(True, "", done["changed"], done["entry"])
        return self._restored(step, done["entry"], failure)

    def _restored(self, step, entry, failure):
        context = step.context.also(what=f"roll back: {step.path}")
        rows = revert_files.revert(step.context.run_id, context, only=[step.path])
        trouble = "; ".join(row["reason"] for row in rows if row["result"] == "refused")
        effect = "it has its former resources again"
        if trouble:
            effect = f"not put back: {trouble}"
        reason = (
            f"the rollout of {step.path} did not end within {int(ROLLOUT_SECONDS)} s: {failure};"
            f" {effect}"
        )
        return _result(False, reason, True, entry, rolled_back=not trouble)


def _wait_for_rollout(api, path):
    """Return why the rollout has not ended in time, or None."""
    end = time.monotonic() + ROLLOUT_SECONDS
    reason = workload_resources.rolled_out(api.get(path))
    while reason and time.monotonic() < end:
        time.sleep(1)
        try:
            reason = workload_resources.rolled_out(api.get(path))
        except ApiError as error:
            if error.code == 404:
                return "it is gone"
            if time.monotonic() >= end:
                raise
    return reason


class _NodeHandler(ApiStepHandler):
    """A step that cordons a Node, or takes the cordon away."""

    def predict(self, step):
        """Return what the step would do, by the present state of the API."""
        try:
            with _writable(_way(step), DRAIN) as (api, _dummy):
                return self.predict_at(api, step)
        except ApiError as error:
            raise ChangeError(
                "what the step would do is not known, because the API does not answer as it should"
                f" ({error})"
            ) from error

    def predict_at(self, api, step):
        """Return the prediction by this API."""
        raise NotImplementedError

    def recover(self, record, context=None, params=None):
        """End what an interrupted drain left: the cordon of its run is removed."""
        node = record.get("node")
        try:
            with _writable(_via(record, params), UNCORDON) as (api, _dummy):
                return step_record.NOT_DONE, self.lift_cordon(api, node, record)
        except ApiError as error:
            if error.code == 404:
                return step_record.NOT_DONE, f"there is no Node {node} any more"
            return (
                None,
                f"whether {node} is cordoned is not known, because the API does not answer as it"
                f" should ({error}); run again when it does",
            )

    def lift_cordon(self, api, node, record):
        """Remove the cordon where the node is ready; return a sentence about the cordon."""
        if drain_plan.ready_of(cordon.node_of(api, node))[0] != "True":
            self.release(api, node, record)
            return f"{node} is not ready: a cordon of that run stays until it is (KM903)"
        state, _changed = cordon.lift(
            api, node, self.run_of_cordon(record), bool(record.get("held"))
        )
        if state == cordon.MINE:
            return f"{node} takes pods again"
        return f"no cordon of that run is on {node}"

    def release(self, api, node, record):
        """Mark the cordon of a node that is not ready as no longer held."""

    def run_of_cordon(self, _record):
        """Return the run whose cordon is removed, None for that of any run."""
        return


class DrainNode(_NodeHandler):
    """Cordons a node, and evicts its pods."""

    def predict_at(self, api, step):
        """Return what the drain would evict."""
        return eviction.Drain(api, step.change, step.context.run_id).predict()

    def do(self, step):
        """Drain the node."""
        context = step.context

        def tell(text):
            step_claim.tell(context.run_id, context.step, text, context.root)

        def ended(run_id):
            if not lock.RUN_ID.match(run_id):
                return False
            record = step_record.read(run_id, context.step, context.root) or {}
            return record.get("state") == step_record.PROVEN

        seconds = step_times.api_seconds_of(step.plan)
        try:
            with _writable(_way(step), DRAIN, seconds) as (api, _dummy):
                drain = eviction.Drain(api, step.change, context.run_id, tell, ended)
                proven, reason = drain.run()
        except ApiError as error:  # the drain itself says what it left: here nothing was begun
            raise ChangeError(
                f"nothing was evicted, because the API does not answer as it should ({error}); run"
                " again"
            ) from error
        return _result(proven, reason, drain.changed or bool(drain.evicted))

    def lift_cordon(self, api, node, record):
        """Keep the cordon where the operator asked for that; remove it otherwise."""
        if KEEP_CORDON in (record.get("allow") or []):
            return f"{node} stays cordoned (kubemend_allow: [{KEEP_CORDON}])"
        return super().lift_cordon(api, node, record)

    def release(self, api, node, record):
        """Mark the cordon as no longer held."""
        cordon.release(api, node, record["run_id"])

    def run_of_cordon(self, record):
        """Return the run of the drain: only its own cordon is removed."""
        return record["run_id"]


class UncordonNode(_NodeHandler):
    """Removes the cordon of a run once the node is ready: until then it stays."""

    def predict_at(self, api, step):
        """Return whether a cordon of a run is on the node."""
        node, is_held = step.change["node"], bool(step.change.get("held"))
        item = cordon.node_of(api, node)
        if cordon_annotation.cordoned(item) and not cordon_annotation.has_foreign_cordon(
            item, is_held
        ):
            return True, f"{node} would take pods again"
        return False, f"no cordon of this tool is on {node}"

    def do(self, step):
        """Wait until the node is ready, and remove the cordon."""
        node = step.change["node"]
        try:
            with _writable(_way(step), UNCORDON) as (api, _dummy):
                status, reason = _wait_until_ready(api, node)
                if status != "True":
                    return _result(
                        False,
                        f"{node} stays cordoned, because it is not ready ({status}, {reason});"
                        " bring it back, and the next run takes the cordon away (KM903)",
                        False,
                    )
                state, changed = cordon.lift(api, node, is_held=bool(step.change.get("held")))
        except ApiError as error:
            raise ChangeError(
                f"whether {node} is still cordoned is not known, because the API does not answer as"
                f" it should ({error}); run again when it does",
                changed=True,
            ) from error
        reasons = {
            cordon.MINE: "",
            cordon.THEIRS: f"the cordon of {node} is not of this tool and stays",
            cordon.NONE: f"{node} was not cordoned any more",
        }
        return _result(True, reasons[state], changed)


def _wait_until_ready(api, node):
    """Return (status, reason) of the Node's Ready, once it is True or the time is over."""
    end = time.monotonic() + READY_SECONDS
    while True:
        is_late = time.monotonic() >= end
        status, reason = drain_plan.ready_of(cordon.node_of(api, node))
        if status == "True" or is_late:
            return status, reason
        time.sleep(1)


class DeleteRejectedPods(ApiStepHandler):
    """Deletes pods that their node rejected."""

    def do(self, step):
        """Delete the pods, each after one more look at it."""
        done = delete_rejected_pods.Done()
        try:
            with _writable(_way(step), CLEAN_UP) as (api, _dummy):
                delete_rejected_pods.clean(api, step.change["pods"], step.context, done)
        except ApiError as error:
            effect = DELETED if done.sent else "none was deleted; run again"
            raise ChangeError(
                "not every pod was looked at, because the API does not answer as it should"
                f" ({error}); {effect}",
                changed=bool(done.sent),
            ) from error
        except ChangeError as error:  # the lock or the journal, which precede each of them
            if not done.sent:
                raise
            reason = str(error).replace("nothing was changed", "nothing more was deleted", 1)
            raise ChangeError(f"{reason}; {DELETED}", changed=True) from error
        return _result(not done.stuck, delete_rejected_pods.sentence(done), bool(done.sent))

    def recover(self, record, context=None, params=None):
        """Return that the journal has what was deleted."""
        return (
            step_record.NOT_DONE,
            "what it deleted is in its journal; the rest is as it was",
        )


class ProbeControllerManager(ApiStepHandler):
    """Counts the pods that one Job gets: two controller managers make two."""

    def do(self, step):
        """Make the Job, and count its pods."""
        try:
            with _writable(_way(step), PROBE) as (api, _dummy):
                names = job_probe.probe(api, step.context.run_id)
        except (
            ApiError
        ) as error:  # a Job may be left: the record stays open, and recover removes it
            raise ChangeError(
                f"the probe did not come to an end ({error}); let kubemend remove what it left"
                " (KM902)",
                changed=True,
            ) from error
        if len(names) == 1:
            return _result(True, "", True)
        if names:
            reason = (
                f"the Job got {counted(len(names), 'pod')} instead of one ({', '.join(names)}): two"
                " controller managers are at work"
            )
        else:
            reason = (
                f"the Job got no pod within {int(job_probe.PATIENCE)} s: no controller manager"
                f" is at work, or something"
                f" refuses its pods; look at its log and at kubectl -n {job_probe.NAMESPACE} get"
                f" events"
            )
        return _result(False, reason, True)

    def recover(self, record, context=None, params=None):
        """Remove the Job that an interrupted probe left."""
        try:
            with _writable(_via({}, params), PROBE) as (api, _dummy):
                job_probe.sweep(api)
        except ApiError as error:
            return (
                None,
                "whether its Job is left is not known, because the API does not answer as it"
                f" should ({error}); run again when it does",
            )
        return step_record.NOT_DONE, "nothing of the probe is left"
