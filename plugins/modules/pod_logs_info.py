#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of one node's components, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: pod_logs_info
short_description: Collect what Kubernetes components logged on a node
version_added: 0.1.0
description:
  - Reads what the kubelet, the scheduler, the controller manager and the API server logged on one
    node in the last
    O(seconds_back) seconds on the node's own clock, and writes one JSON document into
      O(evidence_dir) on the controller.
  - The kubelet is read from journald, the others from the files in which the container runtime
    keeps the logs of static
    pods, of every restart, rotated and packed ones too, in the format of containerd and CRI-O or of
      Docker.
  - Lines are chosen on the node, and secrets in them are replaced by asterisks before they leave
    it.
  - What the node says never becomes an Ansible variable. The result holds counts. A host that
    cannot be reached is a result
    with status V(unreachable), not a failed task.
  - The document says of every source whether it was read, how many lines it had and what is missing
    from it, because of
    journald's rate limit, of rotation or of O(max_bytes). Each component is read in a process of
      its own; one that hangs
    costs only itself.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
options:
  evidence_dir:
    description:
      - Folder on the controller into which the document is written, as C(<host>.json) with the
        host's name percent-encoded.
        Not the folder of M(kubemend.remediation.node_evidence_info), whose files have the same
          names. Without it nothing is
        written.
    type: path
  components:
    description:
      - The components whose logs are read.
    type: list
    elements: str
    choices: [kubelet, kube-scheduler, kube-controller-manager, kube-apiserver]
    default: [kubelet, kube-scheduler, kube-controller-manager, kube-apiserver]
  seconds_back:
    description:
      - Seconds before now at which the window begins.
    type: float
    default: 600
  needles:
    description:
      - Literal texts. A line is kept if it holds one of them, or if O(match) is found in it; where
        neither is given, all are.
    type: list
    elements: str
    default: []
  match:
    description:
      - A regular expression of Python's, searched for in each line as it was before secrets were
        replaced.
    type: str
  max_bytes:
    description:
      - Bytes that the lines of one node may take in the document, at most 16777216. The components
        share them; what one does
        not need goes to the others. The first lines are kept, and the document says where they end.
    type: int
    default: 8388608
  max_line:
    description:
      - Bytes after which a line is cut, at most 65536. A cut line says how much is missing.
    type: int
    default: 8192
  timeout:
    description:
      - Seconds that the node may take altogether. What was read until then is kept.
    type: int
    default: 30
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.info
attributes:
  action:
    support: full
notes:
  - Without root most logs are V(denied).
  - Masking prefers to hide too much. What follows C(token:) or C(secret:) in a sentence is hidden
    as well.
seealso:
  - module: kubemend.remediation.node_evidence_info
"""

EXAMPLES = r"""
- name: Collect what was logged about one pod in the last two minutes
  kubemend.remediation.pod_logs_info:
    evidence_dir: /tmp/capture
    components: [kubelet, kube-scheduler]
    seconds_back: 120
    needles:
      - 6a3f1c0e-2d5b-4a57-9d43-0f6f3a2f7c11
  become: true

- name: Collect every line of leader election
  kubemend.remediation.pod_logs_info:
    evidence_dir: /tmp/capture
    match: leaderelection\.go|became leader
  become: true
"""

RETURN = r"""
host:
  description: Inventory name of the host.
  returned: always
  type: str
  sample: m1
status:
  description: V(ok), V(unreachable) or V(error).
  returned: always
  type: str
  sample: ok
reason:
  description: One line, why there are no logs. Empty when there are.
  returned: always
  type: str
  sample: ""
path:
  description: The file that was written; null where nothing was.
  returned: always
  type: str
  sample: /tmp/capture/m1.json
sha256:
  description: Digest of that file.
  returned: always
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
size:
  description: Its size in bytes.
  returned: always
  type: int
  sample: 41003
duration_ms:
  description: Milliseconds that the whole question took.
  returned: always
  type: int
  sample: 310
lines:
  description: How many lines were kept.
  returned: always
  type: int
  sample: 128
sources:
  description: How many sources (a unit, a file) had which status, of V(ok), V(absent), V(denied),
    V(error) and V(timeout).
  returned: always
  type: dict
  sample: {"absent": 1, "ok": 3}
truncated:
  description: Whether O(max_bytes) left lines out.
  returned: always
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.logs import components as log_components
from ..module_utils.shared import argument_specs


def main() -> None:
    """Read the logs and give the whole document to the action, which keeps it out of the task's
    result.
    """
    module = AnsibleModule(
        argument_spec=dict(argument_specs.POD_LOGS_INFO, **argument_specs.DOCUMENT),
        supports_check_mode=True,
    )
    module.exit_json(changed=False, document=log_components.read(module.params))


if __name__ == "__main__":
    main()
