#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs left on a node, and one of them taken back, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: revert_run
short_description: List what repairing runs changed on a node, or take one of them back
version_added: 0.1.0
description:
  - Reads the journal of the node and says what a revert of each run would do to each file now, or
    restores the bytes from before
    a run and waits until the component runs again with its former command line.
  - Restores a file only where it still is exactly what the run left; one that was changed since
    is refused for itself, with
    the digests of what it is, what the run left and what was before, and stops neither the other
      files nor the other hosts. State files
    are never put back.
  - The guards are those of a repair. Where they refuse, the files of that component stay as they
    are. A component that is not
    proven ends the work on its host.
  - The work goes on when the connection is lost. What happened is in the node's journal.
  - What each host says is written into the folder C(revert) of O(report_dir). The task's result
    says no more than states and
    counts.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
options:
  state:
    description:
      - V(listed) reads the host's journal and changes nothing. A host that cannot be reached is a
        result.
      - V(chosen) finds, on the controller alone, the run that is meant and the O(hosts) that know
        it; none in check mode.
      - V(reverted) takes the run back on the host of the task, and refuses unless every host before
        it is done and the run holds
        the cluster's lock.
      - V(reported) prints, on the controller alone, what became of it, and fails where not all of
        it was done.
    type: str
    choices: [listed, chosen, reverted, reported]
    default: listed
  report_dir:
    description:
      - The report folder of this run on the controller.
    type: path
    required: true
  run_id:
    description:
      - The id of this run, which does the reverting, and under which it is journalled.
    type: str
    required: true
  reverts:
    description:
      - The id of the run to take back, or V(last) for the newest that has anything left to restore.
        Without it there is a list only.
    type: str
  hosts:
    description:
      - All hosts of the cluster, in the order in which they are taken.
    type: list
    elements: str
    default: []
  asked:
    description:
      - With O(state=chosen), the hosts that were asked for their list. One without it is a host
        with which Ansible could not begin.
    type: list
    elements: str
    default: []
  ttl:
    description:
      - Seconds for which the node stays locked beyond the time that the work itself may take.
    type: int
    default: 900
  locked:
    description:
      - Whether the run must hold the cluster's lock, as M(kubemend.remediation.cluster_lock) takes
        it.
    type: bool
    default: true
  allow:
    description:
      - Refusals that the operator lifted, for example V(pending_changes).
    type: list
    elements: str
    default: []
  kubeconfig:
    description:
      - Kubeconfig on the node whose client certificate asks components. By default the ones that
        installers leave.
    type: path
  timeout:
    description:
      - Seconds that a node may take for its list.
    type: int
    default: 30
  formats:
    description:
      - With V(html) O(state=reported) writes C(report.html) too, with V(junit) C(junit.xml).
    type: list
    elements: str
    choices: [terminal, json, html, junit, prometheus, sarif, github]
    default: []
  terminal:
    description:
      - Whether the report is printed, as V(terminal) among C(kubemend_report_formats) says. It is
        written in any case.
    type: bool
    default: true
  _host:
    description:
      - Set by the action itself.
    type: str
  _lock:
    description:
      - Set by the action itself.
    type: dict
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
attributes:
  check_mode:
    support: full
    details: Lists and reports what would be done. V(reverted) is skipped.
  diff_mode:
    support: none
    details: The bytes stay on the node, where they may hold secrets. Digests are shown.
  idempotent:
    support: full
    details: What holds its former bytes already is not written again.
  action:
    support: full
seealso:
  - module: kubemend.remediation.apply_step
  - module: kubemend.remediation.cluster_lock
"""

EXAMPLES = r"""
- name: Read the journal of each host
  kubemend.remediation.revert_run:
    report_dir: "{{ run.report_dir }}"
    run_id: "{{ run.run_id }}"
  become: true

- name: Take a run back on one host
  kubemend.remediation.revert_run:
    state: reverted
    report_dir: "{{ run.report_dir }}"
    run_id: "{{ run.run_id }}"
    reverts: 20261121T090000Z-1a2b3c
    hosts: [m1, m2, m3]
  become: true
  delegate_to: m2
  run_once: true
"""

RETURN = r"""
host:
  description: The host, where one was asked.
  returned: when O(state=listed) or O(state=reverted)
  type: str
  sample: m2
state:
  description:
    - V(listed), V(chosen) or V(reported).
    - With O(state=reverted) V(done), V(refused), V(failed), or V(skipped) in check mode.
  returned: success
  type: str
  sample: done
status:
  description: V(ok), V(unreachable) or V(error).
  returned: when O(state=listed)
  type: str
  sample: ok
hosts:
  description: The hosts on which there is something to do.
  returned: when O(state=chosen)
  type: list
  elements: str
  sample: [m2]
run:
  description: The run that is meant.
  returned: when O(state=chosen) or O(state=reported)
  type: str
  sample: 20261121T090000Z-1a2b3c
restored:
  description: How many files got their former bytes. Likewise C(already), C(refused) and C(kept).
  returned: when O(state=reverted)
  type: int
  sample: 2
exit_reason:
  description: V(ok), V(input) where no such run is known, V(locked), V(refused) or V(failed).
  returned: when O(state=reported)
  type: str
  sample: ok
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import named_modules
from ..module_utils.shared import argument_specs
from ..module_utils.steps.revert import run as revert_run

# Ansible's packer follows imports, and these are imported by name.
SHIPPED = named_modules.MODULES


def main() -> None:
    """Do it and give the whole answer to the action, which keeps it out of the task's result."""
    module = AnsibleModule(
        argument_spec=dict(argument_specs.REVERT_RUN, **argument_specs.REVERT_OF_ACTION),
        supports_check_mode=True,
    )
    params = argument_specs.unhidden(module.params)
    state = params["state"]
    if state in ("chosen", "reported") or (
        state == "reverted" and (module.check_mode or not params["host"])
    ):
        module.fail_json(msg="This module does its work through the action of the same name.")
    answer = revert_run.run(params)
    module.exit_json(changed=bool(answer.get("changed")), document=answer)


if __name__ == "__main__":
    main()
