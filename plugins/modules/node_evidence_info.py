#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of one node, as an ordinary module: what the action of the same name falls back to."""

DOCUMENTATION = r"""
module: node_evidence_info
short_description: Collect evidence about the Kubernetes components of a node
version_added: 0.1.0
description:
  - Reads everything that the catalogue of faults needs from one node, in one task and without a
    change to it, and writes
    one JSON document into O(evidence_dir) on the controller.
  - What the node says never becomes an Ansible variable. The result names the file, its digest and
    size, and whether the
    host answered. A host that cannot be reached is a result with status V(unreachable), not a
      failed task.
  - Secrets are masked on the node, before anything leaves it. Of certificate files only the
    certificates are taken.
  - Every collector has limits of its own for its time and its answer. One that hangs or fails
    costs only itself.
  - The collector's program travels to the node's Python on standard input and leaves no file there.
    Where the connection
    or the become plugin takes no standard input, the same task runs it as an ordinary module.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer on the node. Where the program cannot travel on standard input, the version
    that ansible-core needs.
options:
  evidence_dir:
    description:
      - Folder on the controller into which the document is written, as C(<host>.json) with the
        host's name percent-encoded.
        Without it nothing is written.
    type: path
  timeout:
    description:
      - Seconds that the node may take altogether.
    type: int
    default: 30
  kubeconfig:
    description:
      - Kubeconfig on the node whose client certificate is shown to the scheduler and the controller
        manager. By default the
        one that kubeadm writes, then the API server's own client certificate.
    type: path
  kubectl:
    description:
      - Not used by this module; accepted so that both collectors take the same options.
    type: path
  groups:
    description:
      - What the inventory calls this host, V(control_plane) or V(node); written into the document
        as it is.
    type: list
    elements: str
    default: []
  terminal:
    description:
      - Whether the progress of all hosts is printed while this one is waited for, at most every 10
        seconds; only with O(evidence_dir). Goes to standard error where the callback writes JSON.
    type: bool
    default: true
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
  - kubemend.remediation.attributes.info
  - kubemend.remediation.collectors
attributes:
  action:
    support: full
notes:
  - Without root some collectors say V(denied) or leave fields empty, and what depends on them is
    judged as unknown.
seealso:
  - module: kubemend.remediation.diagnose
"""

EXAMPLES = r"""
- name: Collect evidence of each host
  kubemend.remediation.node_evidence_info:
    evidence_dir: /tmp/evidence
  become: true
  register: collected

- name: Ask only what the kubelet is
  kubemend.remediation.node_evidence_info:
    evidence_dir: /tmp/evidence
    collectors: [system, kubelet]
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
  description: One line, why there is no evidence. Empty when there is.
  returned: always
  type: str
  sample: ""
path:
  description: The file that was written.
  returned: always
  type: str
  sample: /tmp/evidence/m1.json
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
  sample: 61
role:
  description: V(control_plane), V(worker), or V(unknown) where it could not be read.
  returned: always
  type: str
  sample: control_plane
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.collectors import runner
from ..module_utils.collectors.node import (
    address_holders,
    api_load,
    api_server,
    api_way,
    boot,
    certificates,
    cni,
    component_end,
    component_http,
    component_restart,
    component_units,
    cri,
    descriptors,
    devices,
    etcd,
    failed_units,
    hangs,
    installer,
    instances,
    journal,
    kernel_log,
    kubelet,
    kubelet_end,
    kubelet_log,
    largest,
    limits,
    manifests,
    network,
    next_start,
    package_changes,
    path_states,
    pinning,
    pressure,
    repeated_errors,
    runtime,
    scheduler_log,
    space,
    static_pod_paths,
    swap,
    system,
    system_pods,
    unit_start,
)
from ..module_utils.shared import argument_specs

# The runner imports collectors by name, which Ansible's packer does not see.
SHIPPED = (
    address_holders,
    api_load,
    api_server,
    api_way,
    boot,
    certificates,
    cni,
    component_end,
    component_http,
    component_restart,
    component_units,
    cri,
    descriptors,
    devices,
    etcd,
    failed_units,
    hangs,
    installer,
    instances,
    journal,
    kernel_log,
    kubelet,
    kubelet_end,
    kubelet_log,
    largest,
    limits,
    manifests,
    network,
    next_start,
    package_changes,
    path_states,
    pinning,
    pressure,
    repeated_errors,
    runtime,
    scheduler_log,
    space,
    static_pod_paths,
    swap,
    system,
    system_pods,
    unit_start,
)


def main() -> None:
    """Run the collectors and give the whole document to the action, which keeps it out of the
    task's result.
    """
    module = AnsibleModule(
        argument_spec=dict(argument_specs.NODE_EVIDENCE_INFO, **argument_specs.DOCUMENT),
        supports_check_mode=True,
    )
    module.exit_json(changed=False, document=runner.gather(module.params))


if __name__ == "__main__":
    main()
