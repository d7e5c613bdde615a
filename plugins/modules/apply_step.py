#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a plan on its node, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: apply_step
short_description: Do one step of a repair on its node, prove it, or put the former bytes back
version_added: 0.1.0
description:
  - Takes one step of the plan in O(report_dir) and does it on the host of the task. In one program
    on the node, immediately
    after each other, come the guards, the write, the wait for the component's proof, and if that
      does not come in time, the
    former bytes and the wait for the component to run again.
  - The work goes on when the connection is lost. What happened is in the node's journal, and the
    next run finds it there.
  - Refuses while any step before it in this run is not done, whatever the play does, and while the
    run does not hold the
    cluster's lock.
  - Appends what became of the step to C(steps.jsonl) in O(report_dir). The task's result says no
    more than its state.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
options:
  id:
    description:
      - The step's id in C(plan.json).
    type: str
    required: true
  report_dir:
    description:
      - The run's report folder on the controller, which holds C(plan.json).
    type: path
    required: true
  ttl:
    description:
      - Seconds for which the node stays locked beyond the time that the step itself may take.
    type: int
    default: 900
  locked:
    description:
      - Whether the run must hold the cluster's lock, as M(kubemend.remediation.cluster_lock) takes
        it.
    type: bool
    default: true
  terminal:
    description:
      - Whether it is printed what a step waits for that takes long, how long at most, and what its
        interruption leaves behind. Goes to standard error
        where the callback writes JSON.
    type: bool
    default: true
  kubeconfig:
    description:
      - Kubeconfig on the node whose client certificate asks components, and with which the API is
        written to. By default the ones
        that installers leave.
    type: path
  kubectl:
    description:
      - kubectl on the node. By default the one in the usual folders.
    type: path
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
  - kubemend.remediation.node_step
attributes:
  check_mode:
    support: partial
    details:
      - In check mode the host is asked what the step looks at last before it changes anything, and
        nothing is changed. The answer goes to
        C(looks.jsonl) in O(report_dir) and never fails the task. Skipped are steps that would find
          what one before them left, and those that can
        be refused by nothing that is there now.
  diff_mode:
    support: none
    details: The plan shows the difference.
  idempotent:
    support: full
    details: A step that was begun once in a run is not begun again.
  action:
    support: full
seealso:
  - module: kubemend.remediation.diagnose
  - module: kubemend.remediation.cluster_lock
"""

EXAMPLES = r"""
- name: Apply the plan, one step at a time
  kubemend.remediation.apply_step:
    id: "{{ item.id }}"
    report_dir: "{{ run.report_dir }}"
  become: true
  delegate_to: "{{ item.host }}"
  loop: "{{ judged.steps }}"
  run_once: true
"""

RETURN = r"""
host:
  description: The host of the step.
  returned: always
  type: str
  sample: m2
id:
  description: The step.
  returned: always
  type: str
  sample: 01-m2-kube-scheduler-edit-manifest
state:
  description: V(done), V(rolled_back), V(refused) or V(failed), anything but V(done) fails the
    task. In check mode V(skipped), or how the step would end.
  returned: always
  type: str
  sample: done
reason:
  description: Why, in one sentence, when it is not done.
  returned: always
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import named_modules
from ..module_utils.shared import argument_specs
from ..module_utils.steps import executor

# Ansible's packer follows imports, and these are imported by name.
SHIPPED = named_modules.MODULES


def main() -> None:
    """Do the step and give the whole answer to the action, which keeps it out of the task's
    result.
    """
    module = AnsibleModule(
        argument_spec=dict(argument_specs.STEP_OF_ACTION, **argument_specs.APPLY_STEP),
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
