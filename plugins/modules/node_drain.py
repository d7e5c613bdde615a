#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain, as an ordinary module: what the action of the same name falls back to."""

DOCUMENTATION = r"""
module: node_drain
short_description: Drain a node by the Eviction API, and let it take pods again
version_added: 0.1.0
description:
  - Runs on a control-plane host, cordons the Node O(name) and evicts its pods side by side, as
    their disruption budgets allow. An
    eviction that is refused is asked for again, after as many seconds as the API server says and
      otherwise every 5, until O(drain_timeout).
  - Pods of DaemonSets and static pods stay and are named. Finished pods go, but for those of a Job
    that has not ended.
  - Refuses, before anything is touched and naming all of them, pods that no controller owns, pods
    with emptyDir volumes, and pods that
    several disruption budgets select; a Node whose kubelet does not post its status; one that is
      fenced, or that another client cordoned;
    and one beyond O(max_unavailable).
  - Nothing is ever deleted past a budget, no grace period is shortened and no finalizer removed. A
    pod that only a finalizer holds, and
    that has ended, is named and does not keep the Node from being drained.
  - At the time limit it stops, takes its own cordon away, says which pods went and which budget,
    with its numbers, or finalizer holds the
    others, and fails. Run again, it goes on.
  - A Node whose kubelet falls silent meanwhile stays cordoned. That is fault KM903 until it is
    back, and the next repairing run takes the
    cordon away then.
  - Its cordon carries the annotation C(kubemend.io/cordon). A cordon without it is another client's
    and stays in any case.
  - The work goes on when the connection is lost. A drain whose program was killed is fault KM902,
    and the next repairing run ends it.
author: The kubemend authors (@kubemend)
requirements:
  - kubectl and an admin kubeconfig on the host of the task, and Python 3.6 or newer. Where the
    program cannot travel on standard input,
    the version that ansible-core needs.
options:
  name:
    description:
      - The name of the Node, which need not be an inventory name.
    type: str
    required: true
  state:
    description:
      - V(drained) leaves the Node cordoned and without the pods that a drain evicts.
      - V(uncordoned) takes kubemend's cordon away, once the Node is ready. Another client's stays.
    type: str
    choices: [drained, uncordoned]
    default: drained
  drain_timeout:
    description:
      - Seconds after which a drain stops.
    type: int
    default: 900
  max_unavailable:
    description:
      - The Node is refused where this many others are already cordoned or not ready.
    type: int
    default: 1
  allow:
    description:
      - Refusals that are lifted, by name.
    type: list
    elements: str
    choices: [drain_bare_pods, drain_local_storage, fenced, keep_cordon]
    default: []
  reason:
    description:
      - The reason, for readers of the annotation.
    type: str
    default: node_drain
  kubeconfig:
    description:
      - An admin kubeconfig on the host; found where it is not set.
    type: path
  kubectl:
    description:
      - kubectl on the host; found where it is not set.
    type: path
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
  - kubemend.remediation.node_step
attributes:
  check_mode:
    support: full
    details: Asks the API server about each eviction by a dry run, and says which would be blocked.
      Before 1.18 the numbers of the budgets decide.
  diff_mode:
    support: none
    details: What changes lies in no file.
  idempotent:
    support: full
    details: A Node that was drained by this module and still is does not change.
  action:
    support: full
seealso:
  - module: kubemend.remediation.apply_step
"""

EXAMPLES = r"""
- name: Drain w1 through the first control-plane host
  kubemend.remediation.node_drain:
    name: w1
    drain_timeout: 1800
    reason: kernel update
  become: true
  delegate_to: "{{ groups['kube_control_plane'][0] }}"

- name: Let it take pods again
  kubemend.remediation.node_drain:
    name: w1
    state: uncordoned
  become: true
  delegate_to: "{{ groups['kube_control_plane'][0] }}"
"""

RETURN = r"""
host:
  description: Inventory name of the host that asked the API.
  returned: always
  type: str
  sample: m1
name:
  description: The Node.
  returned: always
  type: str
  sample: w1
run_id:
  description: The id under which the journal of that host has it, and which the cordon's annotation
    names.
  returned: always
  type: str
  sample: 20261121T090000Z-1a2b3c
reason:
  description: What became of it, in one line.
  returned: always
  type: str
  sample: "w1 is drained: 12 pods evicted in 34 s; pods of DaemonSets stay, they would come back at
    once: kube-system/kube-proxy-x7lkp"
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import named_modules
from ..module_utils.shared import argument_specs
from ..module_utils.steps import executor

# Ansible's packer follows imports, and these are imported by name.
SHIPPED = named_modules.MODULES


def main() -> None:
    """Do the step that the action made of the options, and give it the whole answer."""
    module = AnsibleModule(
        argument_spec=dict(argument_specs.STEP_OF_ACTION, **argument_specs.NODE_DRAIN),
        supports_check_mode=True,
    )
    params = argument_specs.unhidden(module.params)
    if not params["step"] or not params["run_id"]:
        module.fail_json(
            msg=(
                "This module does its work through the action of the same name, which gives it the"
                " step."
            )
        )
    answer = executor.run(dict(params, check=params["check"] or module.check_mode))
    module.exit_json(changed=answer["changed"], document=answer)


if __name__ == "__main__":
    main()
