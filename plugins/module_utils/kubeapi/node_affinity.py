# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a pod's nodeSelector and required node affinity leave out. Pure.

Judged where the API is asked, because the labels of nodes stay there: most are nobody's business.
"""

import json

from .client import dicts

# Of more nodes than these only the pod that was asked for is compared with each; of other pods
# names are of no use then.
MAX_NODES, MAX_SELECTORS = 200, 100


def fits(spec, name, labels):
    """Whether a node is one that the pod asks for; None where that cannot be told."""
    wanted = spec.get("nodeSelector") or {}
    if not isinstance(wanted, dict) or any(
        labels.get(key) != value for key, value in wanted.items()
    ):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    told = [_term(one, name, labels) for one in dicts(affinity.get("nodeSelectorTerms"))]
    return True if True in told else None if None in told else False


def _term(term, name, labels):
    """Whether one term takes the node: all that it has must; an empty one takes none."""
    parts = [_meets(one, labels) for one in dicts(term.get("matchExpressions"))]
    parts += [_meets(one, {"metadata.name": name}) for one in dicts(term.get("matchFields"))]
    return False if not parts or False in parts else None if None in parts else True


def _meets(one, labels):
    key, operator, values = one.get("key"), one.get("operator"), one.get("values") or []
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    if operator in ("In", "NotIn"):
        return (key in labels and labels[key] in values) is (operator == "In")
    if operator in ("Gt", "Lt"):
        try:
            has, limit = int(labels[key]), int(values[0])
        except (KeyError, IndexError, ValueError):
            return False
        return has > limit if operator == "Gt" else has < limit
    return None


class Matcher:
    """The nodes of one list against many pods: those that ask for the same are compared once.

    Labels: {node: its labels}, or None.
    """

    def __init__(self, labels):
        self.labels, self.known = labels, {}

    def left_out(self, spec, always=False):
        """Names of the nodes that this pod does not ask for.

        None where they are not known, or too many.
        """
        if self.labels is None or (len(self.labels) > MAX_NODES and not always):
            return None
        wanted = {
            "nodeSelector": spec.get("nodeSelector"),
            "affinity": {"nodeAffinity": (spec.get("affinity") or {}).get("nodeAffinity")},
        }
        key = json.dumps(wanted, sort_keys=True)
        if key not in self.known:
            if len(self.known) >= MAX_SELECTORS and not always:
                return None
            told = {name: fits(wanted, name, labels) for name, labels in self.labels.items()}
            self.known[key] = (
                None
                if None in told.values()
                else sorted(name for name, one in told.items() if not one)
            )
        return self.known[key]

    def refuses(self, spec, names):
        """Whether a pod that is meant for one of these nodes asks for what that node does not
        have, as one whose label went meanwhile.
        """
        return any(
            fits(spec, name, self.labels[name]) is False
            for name in names
            if name in (self.labels or ())
        )
