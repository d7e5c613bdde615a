# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter node_tree: which nodes a scheduler lost, replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.models.scheduling import node_tree as scheduling_node_tree

DOCUMENTATION = r"""
name: node_tree
short_description: Replay a scheduler's node tree and say which nodes it lost
version_added: 0.1.0
author: The kubemend authors (@kubemend)
description:
  - Schedulers up to 1.18.6 can lose nodes in clusters of several zones, because the cursors of
    their node tree are not set back. With 1.18.0 to 1.18.6 the loss lasts until nodes come or go,
    or the scheduler is restarted.
  - From the order in which nodes joined and left, and the rounds of scheduling in between, this
    derives which list of nodes the last round was given. Upstream's algorithms are replayed
    exactly.
  - The order is in the scheduler's log (C(Added node) at level 2, at level 5 up to 1.15). The order
    of the nodes that were there when it was started is not known from anything else.
options:
  _input:
    description:
      - The events in their order. Each has one of C(add) (a node's name), C(remove) (a node's
        name), C(move) (a node's name whose labels name
        another zone from now on) and C(round) (how many rounds of scheduling; a Pending pod makes
          one with each attempt).
      - C(add) and C(move) have a C(zone) as well, any text that distinguishes the zones; without it
        the node has no labels of a zone.
      - C(round) may have C(looked), how many nodes each round looked at. Only 1.16 and older depend
        on it; without it all of them.
    type: list
    elements: dict
    required: true
  version:
    description:
      - The version of the scheduler, such as V(v1.18.4). A build of a vendor (V(v1.18.4-tke.5)) may
        have the cure or not, which is an error here.
      - Or an algorithm by its name, one of V(1.16) (1.14 to 1.16), V(1.17), V(1.18) (1.18.0 to
        1.18.6) and V(fixed).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show which master is lost once a worker of another zone joins
  vars:
    history:
      - {add: ss-stg-ma-01, zone: "200002"}
      - {add: ss-stg-ma-02, zone: "200002"}
      - {add: ss-stg-ma-03, zone: "200002"}
      - {round: 1}
      - {add: ss-stg-test-01, zone: "200004"}
      - {round: 1}
  ansible.builtin.debug:
    msg: "{{ (history | kubemend.remediation.node_tree('v1.18.4')).lost }}"
  # [ss-stg-ma-03]
"""

RETURN = r"""
_value:
  description: What the last round saw.
  type: dict
  contains:
    algorithm:
      description: Which algorithm was replayed.
      type: str
    snapshot:
      description: The list of nodes that the last round was given. With 1.16 and older, the nodes
        that it looked at.
      type: list
      elements: str
    nodes:
      description: The nodes that were there then, zone by zone.
      type: list
      elements: str
    lost:
      description: Nodes that are not in the list, so that no pod can get there.
      type: list
      elements: str
    doubled:
      description: Nodes that are in the list more than once.
      type: list
      elements: str
    rounds:
      description: How many rounds there were. Without any nothing was seen, and nothing is lost.
      type: int
"""


def node_tree(events: Iterable[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """Return the replay as plain data."""
    algorithm = version
    if version not in scheduling_node_tree.ALGORITHMS:
        algorithm = scheduling_node_tree.algorithm(version) or ""
    if not algorithm:
        raise AnsibleFilterError(
            "node_tree: it is not known which algorithm a scheduler of version"
            f" {version!r} has; name one of {', '.join(scheduling_node_tree.ALGORITHMS)}"
        )
    try:
        replay = scheduling_node_tree.replay(events, algorithm)
    except scheduling_node_tree.HistoryError as problem:
        raise AnsibleFilterError(f"node_tree: {problem}") from problem
    return {
        "algorithm": algorithm,
        "snapshot": list(replay.snapshot),
        "nodes": list(replay.nodes),
        "lost": list(replay.lost),
        "doubled": list(replay.doubled),
        "rounds": replay.rounds,
    }


class FilterModule:
    """The plugin that Ansible loads."""

    def filters(self) -> dict[str, Any]:
        """Return the one filter of this file."""
        return {"node_tree": node_tree}
