#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action prepare_run."""

DOCUMENTATION = r"""
module: prepare_run
short_description: Check the settings of a run and open its report folder
version_added: 0.1.0
description:
  - The first task of every playbook of this collection. It checks all C(kubemend_*) variables of
    the hosts that the run
    asks, before any of them is touched. An unknown name or a value that is not allowed fails the
      task with one sentence.
  - It makes the run's identity and the folder of its reports, which only its owner can read,
    removes the evidence of an
    earlier run in the same folder, and notes the hosts of the inventory that this run does not ask.
  - It runs on the controller and connects to no host. Use it with C(run_once=true).
author: The kubemend authors (@kubemend)
options:
  mode:
    description:
      - V(observe) prepares a run that asks hosts; V(repair) one that may change them, V(revert) one
        that reverts a run, V(capture) one that raises log levels for a time, and V(replay) one that
        evaluates recorded evidence.
    type: str
    choices: [observe, repair, replay, revert, capture]
    default: observe
  symptom:
    description:
      - What the operator sees, for example V(duplicate_pods). The run then judges that symptom's
        faults only.
    type: str
  faults:
    description:
      - Codes of the faults that the run judges, as a role fixes them; C(kubemend_faults) may narrow
        them.
    type: list
    elements: str
  max_risk:
    description:
      - The consent that a role fixes in the place of C(kubemend_max_risk), because calling it by
        name is the consent.
    type: int
  cpu_manager:
    description:
      - Whether kubelets are to be configured with what C(kubemend_cpu_manager_policy) and
        C(kubemend_reserved_cpus) of their hosts say.
    type: bool
    default: false
  profile:
    description:
      - Whether every kernel setting and limit of logins is raised to what C(kubemend_file_max),
        C(kubemend_nofile) and the like say.
    type: bool
    default: false
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.info
attributes:
  check_mode:
    support: full
    details: Writes files of its own on the controller, in check mode too.
  action:
    support: full
seealso:
  - module: kubemend.remediation.diagnose
"""

EXAMPLES = r"""
- name: Check the settings and open the report folder
  kubemend.remediation.prepare_run:
    mode: observe
  run_once: true
  register: run
"""

RETURN = r"""
run_id:
  description: Identity of the run.
  returned: success
  type: str
  sample: 20261121T090000Z-1a2b3c
started:
  description: When the run began, in UTC.
  returned: success
  type: str
  sample: "2026-11-21T09:00:00Z"
mode:
  description: The mode asked for.
  returned: success
  type: str
  sample: observe
report_dir:
  description: Folder of the reports, on the controller.
  returned: success
  type: str
  sample: /home/ops/.kubemend/runs/20261121T090000Z-1a2b3c
evidence_dir:
  description: Folder that takes this run's evidence.
  returned: success
  type: str
  sample: /home/ops/.kubemend/runs/20261121T090000Z-1a2b3c/evidence
evidence:
  description: Folders of evidence to judge.
  returned: success
  type: list
  elements: str
  sample: ["/home/ops/.kubemend/runs/20261121T090000Z-1a2b3c/evidence"]
pattern:
  description: Host pattern of the hosts that belong to the run.
  returned: success
  type: str
  sample: kube_control_plane:kube_node
control_plane_hosts:
  description: Hosts through which the API of the cluster can be asked, also those that C(--limit)
    leaves out.
  returned: success
  type: list
  elements: str
  sample: [m1, m2, m3]
groups:
  description: What the inventory's groups say of each expected host.
  returned: success
  type: dict
  sample: {"m1": ["control_plane"], "w1": ["node"]}
outside:
  description:
    - Hosts of the inventory that do not belong to the run. C(reason) is C(group) where they are in
      no group that kubemend uses, C(pattern) where
      C(kubemend_hosts) does not name them. C(address) is where the inventory says that they are.
  returned: when O(mode=observe) or O(mode=repair)
  type: dict
  sample: {"lb1": {"reason": "group", "address": "192.0.2.7"}}
reverts:
  description: The run to take back, or V(last), as C(kubemend_run_id) names it.
  returned: when O(mode=revert)
  type: str
  sample: 20261121T090000Z-1a2b3c
settings:
  description: The checked settings that M(kubemend.remediation.diagnose) takes.
  returned: success
  type: dict
  sample:
    deep: false
    fail_on: never
    faults: null
    formats: [terminal, json, html]
    notices: []
    symptom: null
bundle:
  description: The file that the run is packed into, null where none is asked for. It did not exist
    when the run began.
  returned: when the run judges evidence
  type: str
  sample: /home/ops/case.tar.gz
bundle_anonymous:
  description: Whether names and addresses are replaced in the bundle.
  returned: when the run judges evidence
  type: bool
  sample: false
exit_reason:
  description: V(input) when the settings or the inventory are not usable; C(msg) then says why in
    one sentence.
  returned: failure
  type: str
  sample: input
"""
