# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter scheduling_reasons: the clauses of a scheduler's message."""

from __future__ import annotations

from typing import Any

from ..plugin_utils.models.scheduling.message import parse, plain

DOCUMENTATION = r"""
name: scheduling_reasons
short_description: Take a scheduler's message of a pod that stays Pending apart
version_added: 0.1.0
author: The kubemend authors (@kubemend)
description:
  - Reads C(0/N nodes are available), as kube-scheduler 1.14 to 1.36 says it in the condition
    C(PodScheduled) of a pod and in events C(FailedScheduling).
  - It never fails. What is no such message gives no reasons, and C(nodes) is none.
options:
  _input:
    description:
      - The message.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show which nodes a scheduler does not speak of
  vars:
    said: "0/4 nodes are available: 3 node(s) didn't match node selector."
  ansible.builtin.debug:
    msg: "{{ (said | kubemend.remediation.scheduling_reasons).missing }}"
  # 1
"""

RETURN = r"""
_value:
  description: What the message says.
  type: dict
  contains:
    nodes:
      description: How many nodes the scheduler knows of; none where the message does not say.
      type: int
    whole:
      description: Whether all reasons are there. The message of an event may be cut off.
      type: bool
    total:
      description: The sum of the counts.
      type: int
    missing:
      description:
        - How many nodes at least have no reason; none where that is not known. One node may have
          several reasons, so that V(0) proves nothing.
        - Above V(0), a scheduler with the defect of its node tree (1.18.0 to 1.18.6) may have lost
          a node. Of others it proves nothing.
      type: int
    reasons:
      description: A reason for each clause, in the order of the message.
      type: list
      elements: dict
      contains:
        kind:
          description: >-
            One of V(resource), V(pods), V(taint), V(cordon), V(unready), V(affinity), V(node_name),
            V(pod_affinity), V(spread), V(port), V(volume), V(claim), V(gates), V(prefilter) and
            V(unknown).
          type: str
        nodes:
          description: Of how many nodes it is; none where it is of the pod as such.
          type: int
        name:
          description: The resource or the taint, where the clause names one.
          type: str
        text:
          description: The words.
          type: str
    preemption:
      description: What it says of preemption, in the same form.
      type: list
      elements: dict
"""


def scheduling_reasons(message: Any) -> dict[str, Any]:
    """Return the message as plain data."""
    return plain(parse(message))


class FilterModule:
    """The plugin that Ansible loads."""

    def filters(self) -> dict[str, Any]:
        """Return the one filter of this file."""
        return {"scheduling_reasons": scheduling_reasons}
