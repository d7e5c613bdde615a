#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action fleet_evidence_info."""

DOCUMENTATION = r"""
module: fleet_evidence_info
short_description: Collect evidence of all hosts of a play in one task
version_added: 0.1.0
description:
  - Does for all hosts of the play what M(kubemend.remediation.node_evidence_info) does for one, and
    writes the same files, without a process of Ansible for each host.
  - A host whose connection is ssh, without a password, is read by an ssh client with the arguments
    of Ansible's ssh plugin, but without a ControlMaster of its own. Any other one is read by a
    forked process that uses its connection and become plugins. Each host has its own connection
    variables, C(kubemend_become), C(kubemend_kubeconfig) and C(kubemend_timeout).
  - It leaves all hosts to M(kubemend.remediation.node_evidence_info) where one task is not able to
    read them. These are a password on the command line (C(-k), C(-K), a password file, a password
    in C(-e)), because that is meant for all hosts, and an ansible-core whose internal names are
    different.
  - Ansible shows one result, of the play's first host. A line for each host is printed instead.
  - Use it with C(run_once=true) and C(delegate_to=localhost).
author: The kubemend authors (@kubemend)
options:
  evidence_dir:
    description:
      - Folder on the controller into which the documents are written, each as C(<host>.json) with
        the host's name percent-encoded.
    type: path
    required: true
  groups:
    description:
      - What the inventory calls each host, V(control_plane) or V(node); a list for each host.
    type: dict
    default: {}
  parallel:
    description:
      - How many hosts are read at once by ssh clients. By default Ansible's forks, and at least 32.
        Hosts behind a jump host that the arguments of ssh name, and hosts that a process reads, are
        read as many at once as Ansible has forks.
    type: int
  terminal:
    description:
      - Whether a line for each host is printed when it is read, and the progress at most every 10
        seconds. Goes to standard error where the callback writes JSON.
    type: bool
    default: true
  transport:
    description:
      - With V(auto), asyncssh reads the hosts whose options of ssh it honours, in one process,
        where it is installed for the Python of Ansible. Every other host is read as with V(ssh),
        and one that asyncssh cannot log in to is read again by an ssh client.
      - With V(ssh), asyncssh is never used.
    type: str
    choices: [ssh, auto]
    default: ssh
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.info
  - kubemend.remediation.collectors
attributes:
  action:
    support: full
seealso:
  - module: kubemend.remediation.node_evidence_info
"""

EXAMPLES = r"""
- name: Collect evidence of all hosts in one task
  kubemend.remediation.fleet_evidence_info:
    evidence_dir: /tmp/evidence
  delegate_to: localhost
  run_once: true
  register: collected
"""

RETURN = r"""
hosts:
  description: For each host the result that M(kubemend.remediation.node_evidence_info) has, as far
    as it is known.
  returned: success
  type: dict
  sample:
    m1: {"status": "ok", "reason": "", "role": "control_plane", "path": "/tmp/evidence/m1.json"}
broken:
  description: Hosts with which Ansible could not begin. Their files say why.
  returned: success
  type: list
  elements: str
  sample: []
workers:
  description: Hosts on which no component of the control plane runs.
  returned: success
  type: list
  elements: str
  sample: ["w1"]
left:
  description: Hosts that were not read, because no process could be started or a plugin of theirs
    is unknown. A task for each host reads them.
  returned: success
  type: list
  elements: str
  sample: []
"""
