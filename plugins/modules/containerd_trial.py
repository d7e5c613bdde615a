#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trial start of containerd, as an ordinary module: what its action falls back to."""

DOCUMENTATION = r"""
module: containerd_trial
short_description: Start the containerd of the disk in a trial, apart from the one that runs
version_added: 0.1.0
description:
  - Starts the program and the configuration that the unit C(containerd.service) has on the disk, in
    namespaces of its own, and ends it as soon as it serves, at most after 20 seconds.
  - The program sees the node's file systems without a way to write to them. Its root, its state and
    its sockets are in memory, and it has no network, no device and no socket of the node. The
    containerd that runs is not touched.
  - The answer is added to the evidence of the host in O(evidence_dir). Whatever fails is evidence
    too, never a failed task.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
  - root on the node, and a kernel that has loaded overlay.
options:
  evidence_dir:
    description:
      - Folder on the controller with the evidence of M(kubemend.remediation.node_evidence_info),
        which has to have the collector C(next_start).
    type: path
    required: true
  timeout:
    description:
      - Seconds that the node may take altogether.
    type: int
    default: 30
extends_documentation_fragment:
  - kubemend.remediation.attributes
attributes:
  check_mode:
    support: full
    details: Nothing is started.
  diff_mode:
    support: none
    details: Nothing is changed.
  idempotent:
    support: full
    details: Each call starts it again, and leaves nothing.
  action:
    support: full
seealso:
  - module: kubemend.remediation.node_evidence_info
"""

EXAMPLES = r"""
- name: Start containerd in a trial
  kubemend.remediation.containerd_trial:
    evidence_dir: /tmp/evidence
  become: true
"""

RETURN = r"""
host:
  description: Inventory name of the host.
  returned: always
  type: str
  sample: w1
state:
  description: V(served), V(ended), V(silent) or V(refused); empty where nothing was asked.
  returned: always
  type: str
  sample: served
reason:
  description: One line, why nothing was started. Empty when it was.
  returned: always
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import containerd_trial
from ..module_utils.shared import argument_specs


def main() -> None:
    """Start it, and give the whole answer to the action, which keeps it out of the task's
    result.
    """
    module = AnsibleModule(argument_spec=argument_specs.CONTAINERD_TRIAL, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, document={})
    module.exit_json(changed=False, document=containerd_trial.run(module.params))


if __name__ == "__main__":
    main()
