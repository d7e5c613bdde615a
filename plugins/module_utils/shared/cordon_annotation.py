# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cordons of a node are managed, and which are foreign.

The module is pure and small because every audit sends it to each node.
"""

import json

CORDON = "kubemend.io/cordon"


def cordoned(node):
    """Return whether a Node was cordoned."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def cordon_of(node):
    """Return the managed cordon as its annotation describes it ({run, reason, at, held}), or None.

    held: an operator requested the cordon and removes it later. Other runs treat it as foreign.
    """
    text = ((node.get("metadata") or {}).get("annotations") or {}).get(CORDON)
    try:
        cordon = json.loads(text or "")
        if not cordoned(node) or not isinstance(cordon["run"], str):
            return None
        return {
            "run": cordon["run"][:80],
            "reason": str(cordon.get("reason") or "")[:200],
            "at": str(cordon.get("at") or "")[:40],
            "held": cordon.get("held") is True,
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def has_foreign_cordon(node, manages_held=False):
    """Return whether the node has a foreign cordon.

    manages_held: the caller also manages cordons that an operator requested, so that these are not
        foreign.
    """
    cordon = cordon_of(node)
    return cordoned(node) and (cordon is None or (cordon["held"] and not manages_held))
