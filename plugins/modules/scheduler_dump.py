#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of the scheduler that leads, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: scheduler_dump
short_description: Make the kube-scheduler that leads log its cache, and compare that with the API
version_added: 0.1.0
description:
  - Sends C(SIGUSR2) to the kube-scheduler that leads, which handles it by logging its cache and its
    queue. Nothing restarts, and no file
    is changed.
  - The signal goes to the process that the evidence names and to no other. Its number, its start
    and its command line must be the same,
    its name and its first word those of a kube-scheduler of 1.14 or newer, it must run as a static
      pod, and it must have a handler for
    that signal, which may end a program that has none.
  - What the host says is kept in the folder C(capture) of O(report_dir). Whatever fails is a note
    of the report, never a failed task.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on control-plane hosts. Where the program cannot travel on standard input,
    the Python that ansible-core needs.
options:
  state:
    description:
      - V(planned) finds, on the controller alone and from the evidence in O(report_dir), the
        scheduler of each cluster that leads.
      - V(ready) asks the host of the task whether that process still runs, whether there is room
        for logs, and whether its log level can be
        raised while it runs. It changes nothing.
      - V(dumped) sends the signal from the host of the task, and refuses unless the run holds the
        cluster's lock.
      - V(noted) keeps why the capture was not finished as a note of the report, on the controller
        alone.
      - V(compared) writes the captured lines and the dump as files, and what they prove, on the
        controller alone.
    type: str
    choices: [planned, ready, dumped, noted, compared]
    required: true
  report_dir:
    description:
      - The report folder of the run on the controller.
    type: path
    required: true
  run_id:
    description:
      - The id of the run.
    type: str
    required: true
  consent:
    description:
      - What the operator consented to. V(observe) and V(check) say what would be done, V(go) does
        it.
    type: str
    choices: [observe, check, go]
    default: observe
  level:
    description:
      - The log level that is raised meanwhile.
    type: int
    default: 4
  seconds:
    description:
      - For how long.
    type: int
    default: 60
  reason:
    description:
      - With state V(noted) what the task that failed said.
    type: str
  kubeconfig:
    description:
      - An admin kubeconfig on the host; found where it is not set.
    type: path
  kubectl:
    description:
      - kubectl on the host; found where it is not set.
    type: path
  timeout:
    description:
      - Seconds that the host may take.
    type: int
    default: 30
  _process:
    description:
      - Set by the action. The process that leads, as the evidence has it.
    type: dict
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
attributes:
  check_mode:
    support: full
    details: V(dumped) is skipped.
  diff_mode:
    support: none
    details: Nothing is changed.
  idempotent:
    support: full
    details: A second dump is one more in the log.
  action:
    support: full
seealso:
  - module: kubemend.remediation.log_level
  - module: kubemend.remediation.pod_logs_info
"""

EXAMPLES = r"""
- name: Make it log its cache
  kubemend.remediation.scheduler_dump:
    state: dumped
    report_dir: "{{ run.report_dir }}"
    run_id: "{{ run.run_id }}"
  become: true
  delegate_to: "{{ item }}"
  loop: "{{ leading.hosts }}"
"""

RETURN = r"""
host:
  description: Inventory name of the host that was asked.
  returned: states ready and dumped
  type: str
  sample: m1
hosts:
  description: The hosts whose schedulers lead, and are captured.
  returned: states planned, noted and compared
  type: list
  elements: str
  sample: [m1]
ready:
  description: Whether the process is the one that leads.
  returned: state ready
  type: bool
  sample: true
raises:
  description: Whether its level will be raised.
  returned: state ready
  type: bool
  sample: true
sent:
  description: Whether the signal was sent.
  returned: state dumped
  type: bool
  sample: true
note:
  description: Why nothing came of it.
  returned: where something failed
  type: str
  sample: "kubemend_capture: ready: no such file"
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import scheduler_dump
from ..module_utils.shared import argument_specs


def main() -> None:
    """Do what the state says on this host, and give the whole answer to the action, which keeps
    it out of the task's result.
    """
    module = AnsibleModule(
        argument_spec=dict(argument_specs.SCHEDULER_DUMP, **argument_specs.DUMP_OF_ACTION),
        supports_check_mode=True,
    )
    params = argument_specs.unhidden(module.params)
    if params["state"] not in ("ready", "dumped") or not params["process"]:
        module.fail_json(
            msg="state {} is done by the action on the controller".format(params["state"])
        )
    if module.check_mode and params["state"] == "dumped":
        module.exit_json(changed=False, document={"sent": False, "reason": "check mode"})
    module.exit_json(changed=False, document=scheduler_dump.run(params))


if __name__ == "__main__":
    main()
