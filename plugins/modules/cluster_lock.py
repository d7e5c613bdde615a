#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster on one node, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: cluster_lock
short_description: Hold a cluster for a run, one control-plane node at a time
version_added: 0.1.0
description:
  - Takes, renews or gives back the lock of a run on the host of the task. Run it for every
    control-plane node of the inventory,
    delegated in a loop. A majority of them decides who holds a cluster.
  - What each node said goes into O(report_dir). With O(state=decided) no node is asked; the task
    fails with one sentence when
    the run does not hold every cluster. M(kubemend.remediation.apply_step) asks the same before
      each step.
  - A host that cannot be reached is a result, not a failed task. So is a lock of another run.
  - A lock whose owner was a process of this same machine that is gone is taken at once. Any other
    must run out, or be taken by
    its run's id with O(take).
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
options:
  state:
    description:
      - V(acquired) takes the lock, V(renewed) sets its time again, V(released) gives it back,
        V(decided) only judges what the
        nodes said.
    type: str
    choices: [acquired, renewed, released, decided]
    default: acquired
  report_dir:
    description:
      - The run's report folder on the controller.
    type: path
    required: true
  run_id:
    description:
      - The run. By default the one of C(plan.json) in O(report_dir).
    type: str
  ttl:
    description:
      - Seconds for which the node stays locked, beyond the time that steps may take.
    type: int
    default: 900
  step:
    description:
      - The step that is about to be done, whose time counts. By default all that the plan allows.
    type: str
  take:
    description:
      - Take the lock of this run, though its time is not over.
    type: str
  cluster:
    description:
      - With O(state=decided), the one cluster to judge.
    type: str
  members:
    description:
      - The control-plane hosts, whose majority decides; a host that is none of them and is only
        changed has a lock of its own.
      - Without it every host that is asked counts.
    type: list
    elements: str
  unable:
    description:
      - Those of the control-plane hosts with which Ansible could not begin. They count like hosts
        that do not answer.
    type: list
    elements: str
    default: []
  timeout:
    description:
      - Seconds that a node has for its answer.
    type: int
    default: 40
  _controller:
    description:
      - Set by the action itself.
    type: dict
  _seconds:
    description:
      - Set by the action itself.
    type: int
  _check:
    description:
      - Set by the action itself.
    type: bool
    default: false
extends_documentation_fragment:
  - kubemend.remediation.attributes
attributes:
  check_mode:
    support: full
    details: Says whose lock lies on the node and takes none.
  diff_mode:
    support: none
    details: A lock has no difference to show.
  idempotent:
    support: full
    details: A lock that the run holds already is only renewed.
  action:
    support: full
seealso:
  - module: kubemend.remediation.apply_step
"""

EXAMPLES = r"""
- name: Lock the control-plane nodes
  kubemend.remediation.cluster_lock:
    state: acquired
    report_dir: "{{ run.report_dir }}"
  become: true
  delegate_to: "{{ item }}"
  loop: "{{ run.control_plane_hosts }}"
  run_once: true

- name: Go on only where a majority is locked
  kubemend.remediation.cluster_lock:
    state: decided
    report_dir: "{{ run.report_dir }}"
  run_once: true
"""

RETURN = r"""
host:
  description: The host that was asked.
  returned: when O(state) is not V(decided)
  type: str
  sample: m1
held:
  description: Whether the run holds this node, or with V(decided) every cluster.
  returned: always
  type: bool
  sample: true
by:
  description: The run whose lock lies on the node.
  returned: when O(state) is not V(decided)
  type: str
  sample: 20261121T090000Z-1a2b3c
status:
  description: V(ok), V(unreachable) or V(error).
  returned: when O(state) is not V(decided)
  type: str
  sample: ok
notes:
  description: What the operator should know, although the cluster is held.
  returned: when O(state=decided)
  type: list
  elements: str
  sample: []
exit_reason:
  description: V(locked) when another run holds a cluster.
  returned: failure
  type: str
  sample: locked
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import cluster_lock
from ..module_utils.shared import argument_specs


def main() -> None:
    """Ask for the lock and give the whole answer to the action."""
    module = AnsibleModule(
        argument_spec=dict(argument_specs.CLUSTER_LOCK, **argument_specs.LOCK_OF_ACTION),
        supports_check_mode=True,
    )
    params = argument_specs.unhidden(module.params)
    if not params["run_id"] or (params["state"] != "released" and not params["seconds"]):
        module.fail_json(
            msg=(
                "This module does its work through the action of the same name, which gives it the"
                " run."
            )
        )
    answer = cluster_lock.run(dict(params, check=params["check"] or module.check_mode))
    module.exit_json(changed=answer["changed"], document=answer)


if __name__ == "__main__":
    main()
