# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets as an eviction meets them, and what an answer to an eviction means. Pure.

An eviction names the budget that refuses it in a cause, without its numbers of allowed disruptions
and expected pods: those are in the budget's own status.
"""

from ...kubeapi.client import one_line

# What became of an eviction that was asked for.
GONE, BUDGET, CROSSING, BUSY, CHANGED, CLOSING, UNSURE, DENIED, REFUSED = (
    "gone",
    "budget",
    "crossing",
    "busy",
    "changed",
    "closing",
    "unsure",
    "denied",
    "refused",
)
FINAL = (CROSSING, REFUSED)  # asking again brings the same until somebody changes something
RETRY = 5.0  # seconds, where the API server does not say when to ask again
CROSSED = "more than one PodDisruptionBudget"
ALWAYS = "AlwaysAllow"


class Budget:
    """One PodDisruptionBudget: whom it selects, and its numbers (None where its controller has
    written none yet).
    """

    def __init__(self, item, version="v1"):
        meta, spec, status = (
            item.get("metadata") or {},
            item.get("spec") or {},
            item.get("status") or {},
        )
        self.namespace, self.name = meta.get("namespace"), meta.get("name")
        self.selector = spec.get("selector")
        self.all_if_empty = version != "v1beta1"
        self.policy = spec.get("unhealthyPodEvictionPolicy")  # 1.26+; None is IfHealthyBudget
        self.allowed, self.expected = status.get("disruptionsAllowed"), status.get("expectedPods")
        self.healthy, self.desired = status.get("currentHealthy"), status.get("desiredHealthy")
        self.fresh = (status.get("observedGeneration") or 0) >= (meta.get("generation") or 0)
        self.failed = next(
            (
                one_line(one.get("message"), 120)
                for one in status.get("conditions") or []
                if one.get("type") == "DisruptionAllowed" and one.get("reason") == "SyncFailed"
            ),
            None,
        )

    @property
    def full_name(self):
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    def selects(self, namespace, labels):
        """Whether a pod with these labels is its concern."""
        return self.namespace == namespace and selects(self.selector, labels, self.all_if_empty)

    def numbers(self):
        """What an operator needs to see why it allows nothing."""
        if self.failed:
            return f"its controller cannot count its pods: {self.failed}"
        if self.allowed is None or not self.fresh:
            return "its controller has not counted its pods yet"
        return (
            f"disruptionsAllowed {self.allowed}: {self.healthy} of {self.expected} expected pods"
            f" are healthy, {self.desired} must be"
        )


def selects(selector, labels, all_if_empty=True):
    """Whether a label selector of the API matches.

    One that is missing matches nothing, as does one that nobody understands.
    """
    if not isinstance(selector, dict):
        return False
    wanted, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    if not wanted and not expressions:
        return all_if_empty
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(one, labels) for one in expressions
    )


def _meets(expression, labels):
    key, values = expression.get("key"), expression.get("values") or []
    meets = {
        "In": key in labels and labels[key] in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return meets.get(expression.get("operator"), False)


def covering(pod, budgets):
    """The budgets that count this pod (of drain_plan.Pod)."""
    return [budget for budget in budgets if budget.selects(pod.namespace, pod.labels)]


def crossing(pod, budgets):
    """The sentence about a pod that several budgets select, None where they do not.

    The Eviction API has no answer to it but an error.
    """
    found = covering(pod, budgets)
    if len(found) < 2 or pod.ignores_budgets:
        return None
    return (
        "%s is selected by %d PodDisruptionBudgets (%s), and the Eviction API evicts no such pod:"
        " let only one of them select it"
        % (pod.name, len(found), ", ".join(sorted(budget.full_name for budget in found)))
    )


def would_block(pod, budgets):
    """The sentence about the budget that refuses this pod by its numbers alone, None when none
    does.
    """
    if pod.ignores_budgets:
        return None
    for budget in covering(pod, budgets):
        healthy_enough = (
            budget.fresh and (budget.desired or 0) > 0 and (budget.healthy or 0) >= budget.desired
        )
        if not pod.ready and (budget.policy == ALWAYS or healthy_enough):
            continue
        if not budget.allowed or budget.allowed < 0 or not budget.fresh:
            return blocked(pod, budgets)
    return None


def blocked(pod, budgets, said=None):
    """Why a budget keeps the pod.

    The budget with its numbers, or what the API server said where none is known.
    """
    found = covering(pod, budgets)
    if not found:
        return "{}: {}".format(pod.name, said or "a PodDisruptionBudget does not let it go")
    text = "{}: PodDisruptionBudget {} does not let it go ({})".format(
        pod.name,
        " and ".join(budget.full_name for budget in found),
        "; ".join(budget.numbers() for budget in found),
    )
    if not pod.ready and not any(budget.policy == ALWAYS for budget in found):
        text += (
            "; the pod itself is not ready, unhealthyPodEvictionPolicy: AlwaysAllow (1.26 and"
            " newer) would let it go"
        )
    return text


def tight(pods, budgets):
    """[sentence] about budgets that let these pods go only some at a time, so that each batch
    waits for its replacements.
    """
    found = []
    for budget in budgets:
        mine = [
            pod
            for pod in pods
            if pod.ready and not pod.ignores_budgets and budget.selects(pod.namespace, pod.labels)
        ]
        if budget.allowed and budget.allowed < len(mine):
            found.append(
                "PodDisruptionBudget %s covers %d of these pods and allows %d at a time: the others"
                " wait until replacements are ready" % (budget.full_name, len(mine), budget.allowed)
            )
    return found


def meaning(error):
    """(what became of it, seconds until it may be asked again, what was said) of an eviction
    that was refused (api.ApiError).
    """
    body = error.body if isinstance(error.body, dict) else {}
    causes = [
        cause
        for cause in (body.get("details") or {}).get("causes") or []
        if isinstance(cause, dict)
    ]
    said = one_line(
        "; ".join(str(cause.get("message")) for cause in causes if cause.get("message"))
        or body.get("message")
        or error
    )
    seconds = retry_after(error, body)
    reasons = [cause.get("reason") for cause in causes]
    if error.code == 404:
        return GONE, 0, said
    if error.code == 409:
        return CHANGED, seconds, said
    if error.code == 429:
        return (
            BUDGET if "DisruptionBudget" in reasons or "disruption budget" in said else BUSY,
            seconds,
            said,
        )
    if error.code == 500 and CROSSED in said:
        return CROSSING, seconds, said
    if error.code == 403 and "NamespaceTerminating" in reasons:
        return CLOSING, seconds, said
    if denied(error):
        return DENIED, seconds, said
    if error.code is None or error.code >= 500 or error.code == 408:
        return UNSURE, seconds, said
    return REFUSED, seconds, said


def denied(error):
    """Whether it is the user who may not, or is not known, rather than the object that must not."""
    said = str((error.body if isinstance(error.body, dict) else {}).get("message") or error)
    return error.code == 401 or (error.code == 403 and 'User "' in said and " cannot " in said)


def retry_after(error, body=None):
    """Seconds that the API server asks to wait, by its header or its Status.

    RETRY where it asks nothing.
    """
    details = (body or {}).get("details") or {}
    for value in (error.retry_after, details.get("retryAfterSeconds")):
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            continue
        if 0 < seconds < float("inf"):
            return seconds
    return RETRY
