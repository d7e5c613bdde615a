#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster collector as an ordinary module, for connections that take no program on standard
input.
"""

DOCUMENTATION = r"""
module: cluster_evidence_info
short_description: Read a cluster's API from one of its control-plane nodes
version_added: 0.1.0
description:
  - Reads what the API says about the cluster as a whole, with the C(kubectl) and the
    administrator's kubeconfig that a
    control-plane node already has, through C(kubectl proxy) on a unix socket that only root can
      reach and that refuses
    everything but reading.
  - When the server of the kubeconfig, often a load balancer, does not answer, the node's own API
    server is asked. Lock
    objects are read through the address of every API server, because one that stores elsewhere
      shows another holder.
  - Writes the answer to a file on the controller. The task's result holds nothing of it. A host
    that cannot be reached,
    an API that does not answer, and a host without C(kubectl) are results too, never a failed task.
  - Call it in a loop over the control-plane hosts with C(delegate_to) and C(run_once). The first
    host of each cluster
    that answers is enough, the others return status V(skipped) at once. An inventory may hold
      several clusters.
author: The kubemend authors (@kubemend)
options:
  evidence_dir:
    description:
      - Folder on the controller. The answer goes to C(HOST.cluster.json) there.
      - The evidence already in it shows which clusters were answered and which hosts cannot be
        reached.
      - Without it nothing is kept.
    type: path
  collectors:
    description:
      - What to read. Everything by default, V(pod) only where O(pod) names one, V(pod_states) and
        V(pinnable) only with O(deep).
    type: list
    elements: str
    choices:
      - server
      - endpoints
      - nodes
      - kubeadm_config
      - kubelet_configs
      - cluster_info
      - locks
      - jobs
      - rejected
      - pending
      - pod_start
      - pod_states
      - pinnable
      - pod
      - work
      - webhooks
      - api_services
      - unmade
      - object_events
      - disruption_budgets
  deep:
    description:
      - Reads also what takes a list of all pods, V(pod_states) and V(pinnable).
    type: bool
    default: false
  expect_pinning:
    description:
      - A label selector, as C(kubemend_expect_pinning). V(pinnable) names the pods that it selects
        and that get no CPUs of their own,
        whatever they ask for.
    type: str
  pod:
    description:
      - The pod to read with its owner, the other pods of that owner and the events about all of
        them, as C(kubemend_pod). Its
        C(namespace/name), its UID, or V(rejected) for the newest pod that a kubelet rejected.
    type: str
  kubeconfig:
    description:
      - Kubeconfig on the host. By default the first one of the places where installers put them
        whose API answers.
    type: str
  kubectl:
    description:
      - Path of C(kubectl) on the host. By default the first one in E(PATH) and the places where
        installers put it.
    type: str
  timeout:
    description:
      - Seconds for everything. What was not read by then is reported so.
    type: int
    default: 30
  request_timeout:
    description:
      - Seconds for each request. A server that gives no answer by then is asked for nothing else,
        and what was not read is reported so.
      - With O(evidence_dir) it is 4 at most where the evidence of the host says that its own API
        server is not ready or gives no answer.
    type: int
    default: 15
    version_added: 0.1.0
  skip_clusters:
    description:
      - Keys of clusters that need no answer any more, in addition to those that O(evidence_dir)
        shows.
    type: list
    elements: str
    default: []
  settle:
    description:
      - Report folder of a run that repaired. Where one of its steps brought a kubelet back, the API
        is asked again and again until its Node is
        Ready and without the taints C(node.kubernetes.io/not-ready) and
          C(node.kubernetes.io/unreachable), for two minutes after the last step
        at most. Where none did, the API is not asked and the status is V(skipped).
      - Use it with O(collectors) V(nodes), and without O(evidence_dir).
    type: path
  patient:
    description:
      - With O(settle), whether to wait too for an API that does not answer yet. For the last host
        of a loop.
    type: bool
    default: false
  terminal:
    description:
      - Whether it is printed what O(settle) waits for. Goes to standard error where the callback
        writes JSON.
    type: bool
    default: true
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
  - kubemend.remediation.attributes.info
attributes:
  action:
    support: full
    details: Runs as a program on standard input where the connection allows it, else as this
      module.
requirements:
  - Python 3.6 or newer on the host
  - C(kubectl) on the host
seealso:
  - module: kubemend.remediation.diagnose
"""

EXAMPLES = r"""
- name: Ask the API of each cluster once
  kubemend.remediation.cluster_evidence_info:
    evidence_dir: /tmp/evidence
  become: true
  delegate_to: "{{ item }}"
  loop: "{{ groups['kube_control_plane'] }}"
  run_once: true
"""

RETURN = r"""
host:
  description: The host that was asked.
  returned: always
  type: str
  sample: m1
status:
  description: V(ok), V(error), V(unreachable), or V(skipped) where another host answered for the
    same cluster, or there is nothing to wait for.
  returned: always
  type: str
  sample: ok
reason:
  description: Why there is no answer; empty when there is one.
  returned: always
  type: str
  sample: ""
path:
  description: The file that holds the answer; null where nothing was written.
  returned: always
  type: str
  sample: /tmp/evidence/m1.cluster.json
sha256:
  description: Digest of that file.
  returned: always
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
size:
  description: Bytes of that file.
  returned: always
  type: int
  sample: 14210
duration_ms:
  description: Milliseconds that the question took.
  returned: always
  type: int
  sample: 480
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.collectors.cluster.runner import collect
from ..module_utils.shared import argument_specs


def main() -> None:
    """Return the document to the action, which writes it."""
    module = AnsibleModule(
        argument_spec=dict(argument_specs.CLUSTER_EVIDENCE_INFO, **argument_specs.DOCUMENT),
        supports_check_mode=True,
    )
    module.exit_json(changed=False, document=collect(module.params))


if __name__ == "__main__":
    main()
