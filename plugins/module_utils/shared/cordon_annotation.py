# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tells our cordon of a node from everybody else's. Pure, and small.

Every audit brings it along.
"""

import json

CORDON = "kubemend.io/cordon"


def cordoned(node):
    """Return whether a Node was cordoned."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def cordon_of(node):
    """Return kubemend's own cordon as its annotation has it ({run, reason, at, held}), or None.

    held: an operator requested it and ends it later; to other runs it is foreign.
    """
    text = ((node.get("metadata") or {}).get("annotations") or {}).get(CORDON)
    try:
        found = json.loads(text or "")
        if not cordoned(node) or not isinstance(found["run"], str):
            return None
        return {
            "run": found["run"][:80],
            "reason": str(found.get("reason") or "")[:200],
            "at": str(found.get("at") or "")[:40],
            "held": found.get("held") is True,
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def theirs(node, held=False):
    """Return whether the node is cordoned and not by us.

    held: on behalf of who asks for cordons and ends them.
    """
    found = cordon_of(node)
    return cordoned(node) and (found is None or (found["held"] and not held))
