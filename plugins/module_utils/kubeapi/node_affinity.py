# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that a pod's nodeSelector and required node affinity exclude.

The functions are pure. They run where the API is read, because the labels of nodes stay there: few
of them matter to a report.
"""

import json

from .client import dicts

# Of more nodes than these only the pod that was asked for is compared with each; of other pods
# names are of no use then.
MAX_NODES, MAX_SELECTORS = 200, 100


def fits(spec, name, labels):
    """Return whether a pod's selectors accept a node; None where that is unknown."""
    if not _is_selected(spec.get("nodeSelector") or {}, labels):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    results = [_term(term, name, labels) for term in dicts(affinity.get("nodeSelectorTerms"))]
    if True in results:
        return True
    return None if None in results else False


def _is_selected(selector, labels):
    if not isinstance(selector, dict):
        return False
    return all(labels.get(key) == value for key, value in selector.items())


def _term(term, name, labels):
    """Return whether one term accepts the node; an empty term accepts none.

    Each expression and field of it has to accept the node.
    """
    parts = [_meets(part, labels) for part in dicts(term.get("matchExpressions"))]
    parts += [_meets(part, {"metadata.name": name}) for part in dicts(term.get("matchFields"))]
    if not parts or False in parts:
        return False
    return None if None in parts else True


def _meets(expression, labels):
    key, operator = expression.get("key"), expression.get("operator")
    values = expression.get("values") or []
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (key in labels and labels[key] in values) is (operator == "In")
    if operator in ("Gt", "Lt"):
        try:
            number, limit = int(labels[key]), int(values[0])
        except (KeyError, IndexError, ValueError):
            return False
        return number > limit if operator == "Gt" else number < limit
    return None


class Matcher:
    """The nodes of one list against many pods; pods that ask for the same are compared once.

    labels: {node: its labels}, or None.
    """

    def __init__(self, labels):
        self.labels, self.known = labels, {}

    def left_out(self, spec, always=False):
        """Return the names of the nodes that this pod excludes; None if unknown or too many."""
        if self.labels is None or (len(self.labels) > MAX_NODES and not always):
            return None
        request = {
            "nodeSelector": spec.get("nodeSelector"),
            "affinity": {"nodeAffinity": (spec.get("affinity") or {}).get("nodeAffinity")},
        }
        key = json.dumps(request, sort_keys=True)
        if key not in self.known:
            if len(self.known) >= MAX_SELECTORS and not always:
                return None
            self.known[key] = self._excluded(request)
        return self.known[key]

    def _excluded(self, request):
        results = {name: fits(request, name, labels) for name, labels in self.labels.items()}
        if None in results.values():
            return None
        return sorted(name for name, is_fit in results.items() if not is_fit)

    def refuses(self, spec, names):
        """Return whether a pod meant for one of these nodes asks for what that node does not have.

        A label that was removed meanwhile is an example.
        """
        return any(
            fits(spec, name, self.labels[name]) is False
            for name in names
            if name in (self.labels or ())
        )
