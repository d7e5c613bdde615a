# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets as an eviction meets them, and the meaning of an eviction's result.

The module is pure. A refused eviction names its budget in a cause, but without the numbers of
allowed disruptions and expected pods. These are in the budget's own status.
"""

from ...kubeapi.client import one_line
from ...shared.text import counted

# What became of an eviction that was requested.
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
BY_CODE = {404: GONE, 409: CHANGED}  # where the HTTP status alone decides
FINAL = (CROSSING, REFUSED)  # another request ends in the same way until something is changed
RETRY = 5.0  # seconds, where the API server does not say when to ask again
CROSSED = "more than one PodDisruptionBudget"
ALWAYS = "AlwaysAllow"


class Budget:
    """One PodDisruptionBudget: its pods, and its numbers, None until its controller writes them."""

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
        self.failed = _failure(status)

    @property
    def full_name(self):
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"

    def selects(self, namespace, labels):
        """Return whether it selects a pod with these labels."""
        return self.namespace == namespace and selects(self.selector, labels, self.all_if_empty)

    def numbers(self):
        """Return what shows an operator why it allows nothing."""
        if self.failed:
            return f"its controller cannot count its pods: {self.failed}"
        if self.allowed is None or not self.fresh:
            return "its controller has not counted its pods yet"
        return (
            f"disruptionsAllowed {self.allowed}: {self.healthy} of"
            f" {counted(self.expected, 'expected pod is', 'expected pods are')}"
            f" healthy, {self.desired} must be"
        )


def _failure(status):
    """Return why the budget's controller cannot count its pods, or None."""
    for condition in status.get("conditions") or []:
        if condition.get("type") == "DisruptionAllowed" and condition.get("reason") == "SyncFailed":
            return one_line(condition.get("message"), 120)
    return None


def selects(selector, labels, all_if_empty=True):
    """Return whether a label selector of the API matches.

    A missing selector matches nothing, and neither does an invalid one.
    """
    if not isinstance(selector, dict):
        return False
    expected, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions")
    if not expected and not expressions:
        return all_if_empty
    if any(labels.get(key) != value for key, value in expected.items()):
        return False
    return all(_meets(expression, labels) for expression in expressions or [])


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
    """Return the budgets that count this pod (of drain_plan.Pod)."""
    return [budget for budget in budgets if budget.selects(pod.namespace, pod.labels)]


def crossing(pod, budgets):
    """Return the sentence about a pod that several budgets select, None where they do not.

    The Eviction API answers the eviction of such a pod with an error.
    """
    pod_budgets = covering(pod, budgets)
    if len(pod_budgets) < 2 or pod.ignores_budgets:
        return None
    names = ", ".join(sorted(budget.full_name for budget in pod_budgets))
    return (
        f"{pod.name} is selected by {len(pod_budgets):d} PodDisruptionBudgets ({names}), and the"
        " Eviction API evicts no such pod: let only one of them select it"
    )


def would_block(pod, budgets):
    """Return the sentence about a budget whose numbers alone refuse this pod, or None."""
    if pod.ignores_budgets:
        return None
    for budget in covering(pod, budgets):
        if not pod.ready and (budget.policy == ALWAYS or _has_enough(budget)):
            continue
        if not budget.allowed or budget.allowed < 0 or not budget.fresh:
            return blocked(pod, budgets)
    return None


def _has_enough(budget):
    """Return whether as many pods are healthy as the budget wants, by numbers that count."""
    if not budget.fresh or (budget.desired or 0) <= 0:
        return False
    return (budget.healthy or 0) >= budget.desired


def blocked(pod, budgets, message=None):
    """Return why a budget keeps the pod.

    The reason names the budget with its numbers. It is the API server's message where no budget is
    known.
    """
    pod_budgets = covering(pod, budgets)
    if not pod_budgets:
        return "{}: {}".format(pod.name, message or "a PodDisruptionBudget does not let it go")
    text = "{}: PodDisruptionBudget {} does not let it go ({})".format(
        pod.name,
        " and ".join(budget.full_name for budget in pod_budgets),
        "; ".join(budget.numbers() for budget in pod_budgets),
    )
    if not pod.ready and not any(budget.policy == ALWAYS for budget in pod_budgets):
        text += (
            "; the pod itself is not ready, unhealthyPodEvictionPolicy: AlwaysAllow (1.26 and"
            " newer) would let it go"
        )
    return text


def tight(pods, budgets):
    """Return sentences about budgets that let only some of these pods go at a time.

    Each batch waits for the replacements of the previous one.
    """
    sentences = []
    for budget in budgets:
        covered = [pod for pod in pods if _counts(budget, pod)]
        if budget.allowed and budget.allowed < len(covered):
            sentences.append(
                f"PodDisruptionBudget {budget.full_name} covers {len(covered):d} of these pods and"
                f" allows {int(budget.allowed)} at a time: the others wait until replacements are"
                " ready"
            )
    return sentences


def _counts(budget, pod):
    if not pod.ready or pod.ignores_budgets:
        return False
    return budget.selects(pod.namespace, pod.labels)


def meaning(error):
    """Return (result, seconds until the next request, message) of an eviction that was refused.

    error: the ApiError of the eviction request.
    """
    body = error.body if isinstance(error.body, dict) else {}
    causes = [
        cause
        for cause in (body.get("details") or {}).get("causes") or []
        if isinstance(cause, dict)
    ]
    messages = [str(cause.get("message")) for cause in causes if cause.get("message")]
    message = one_line("; ".join(messages) or body.get("message") or error)
    result = _result(error, message, [cause.get("reason") for cause in causes])
    seconds = 0 if result == GONE else retry_after(error, body)
    return result, seconds, message


def _result(error, message, reasons):
    """Return the result of an eviction that was refused."""
    if error.code in BY_CODE:
        return BY_CODE[error.code]
    if error.code == 429:
        return BUDGET if _names_budget(message, reasons) else BUSY
    if error.code == 500 and CROSSED in message:
        return CROSSING
    if error.code == 403 and "NamespaceTerminating" in reasons:
        return CLOSING
    if denied(error):
        return DENIED
    return UNSURE if _has_no_answer(error) else REFUSED


def _names_budget(message, reasons):
    return "DisruptionBudget" in reasons or "disruption budget" in message


def _has_no_answer(error):
    return error.code is None or error.code >= 500 or error.code == 408


def denied(error):
    """Return whether the user may not, or is not known, rather than the object must not."""
    if error.code == 401:
        return True
    body = error.body if isinstance(error.body, dict) else {}
    message = str(body.get("message") or error)
    return error.code == 403 and 'User "' in message and " cannot " in message


def retry_after(error, body=None):
    """Return the seconds that the API server asks to wait, by its header or its Status.

    The result is RETRY where it asks for none.
    """
    details = (body or {}).get("details") or {}
    for value in (error.retry_after, details.get("retryAfterSeconds")):
        try:
            seconds = float(value or 0)
        except (TypeError, ValueError):
            continue
        if 0 < seconds < float("inf"):
            return seconds
    return RETRY
