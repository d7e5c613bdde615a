#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels raised for a limited time, as an ordinary module.

What the action of the same name falls back to.
"""

DOCUMENTATION = r"""
module: log_level
short_description: Raise log levels of Kubernetes components for a limited time, without a restart
version_added: 0.1.0
description:
  - Sets the log level of kube-scheduler, kube-controller-manager and kube-apiserver at their own
    port, and of kubelets through the
    API server, by C(PUT /debug/flags/v). Nothing restarts, and no file of a component is touched.
  - Before the first level is raised, a service of this collection is written to the disk of the
    host that raises it, enabled and
    started. It puts the levels back when the time is over, whatever became of the controller, and
      at once after a reboot of that host;
    then it removes itself. It holds no credential.
  - The endpoint cannot be read. What is put back is the level that the component's command line and
    configuration give.
  - Every level is journalled, so that C(kubemend.remediation.revert) can put it back too, and a
    level that is left behind is fault KM903.
  - What each host says is written into the folder C(capture) of O(report_dir). The task's result
    says no more than states and counts.
author: The kubemend authors (@kubemend)
requirements:
  - Python 3.6 or newer and systemd on control-plane hosts. Where the program cannot travel on
    standard input, the Python that
    ansible-core needs.
options:
  state:
    description:
      - V(planned) works out, on the controller alone and from the evidence in O(report_dir), which
        levels are raised from which host.
      - V(probed) asks, from the host of the task, whether each of them can be set while it runs. It
        changes nothing.
      - V(shown) prints what will be raised, on the controller alone, and fails where nothing can
        be.
      - V(raised) raises them from the host of the task, and refuses unless the run holds the
        cluster's lock.
      - V(restored) puts back what the run raised from the host of the task.
      - V(reported) merges what was captured and reports, on the controller alone; it fails where a
        level was not put back.
    type: str
    choices: [planned, probed, shown, raised, restored, reported]
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
  components:
    description:
      - Whose levels are raised.
    type: list
    elements: str
    default: [kubelet, kube-scheduler, kube-controller-manager]
  level:
    description:
      - The level to raise them to. A component that has this level or a higher one stays as it is.
    type: int
    default: 4
  seconds:
    description:
      - For how long.
    type: int
    default: 60
  pod:
    description:
      - C(namespace/name) or UID of the pod that the capture is about. Only kubelets of its Node and
        its siblings' are raised.
    type: str
  allow:
    description:
      - Refusals that were lifted by name.
    type: list
    elements: str
    default: []
  notices:
    description:
      - Sentences about the settings, for the report.
    type: list
    elements: str
    default: []
  ttl:
    description:
      - Seconds for which the host stays locked after the capture's own time, should the controller
        vanish.
    type: int
    default: 900
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
      - Seconds that the host may take, in addition to those for each level.
    type: int
    default: 30
  formats:
    description:
      - With V(html) C(report.html) is written next to C(report.txt), with V(junit) C(junit.xml).
    type: list
    elements: str
    choices: [terminal, json, html, junit, prometheus, sarif, github]
    default: []
  hosts:
    description:
      - Every host of the run with its roles, for V(planned). One without a file of evidence is one
        with which Ansible could not begin, and gets one that
        says so.
    type: dict
    default: {}
  api_hosts:
    description:
      - The hosts through which the API was asked.
    type: list
    elements: str
    default: []
  terminal:
    description:
      - Whether the report is printed, as V(terminal) among C(kubemend_report_formats) says. It is
        written in any case.
    type: bool
    default: true
  _targets:
    description:
      - Set by the action. What to raise or to put back.
    type: list
    elements: dict
    default: []
  _program:
    description:
      - Set by the action. What the service runs.
    type: str
  _lock:
    description:
      - Set by the action. For how long the run's lock is kept.
    type: dict
  _halt:
    description:
      - Set by the action. Why nothing is restarted here, where a restart on a host before this one
        was not proven.
    type: str
  _cluster_uid:
    description:
      - Set by the action. The cluster that the kubeconfig must lead to.
    type: str
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.action_group
attributes:
  check_mode:
    support: full
    details: Shows what would be raised. V(raised) and V(restored) are skipped.
  diff_mode:
    support: none
    details: A level of a running process lies in no file.
  idempotent:
    support: partial
    details: V(restored) is; a level that was raised is not raised again.
  action:
    support: full
seealso:
  - module: kubemend.remediation.pod_logs_info
"""

EXAMPLES = r"""
- name: Put the levels back that this host raised
  kubemend.remediation.log_level:
    state: restored
    report_dir: "{{ run.report_dir }}"
    run_id: "{{ run.run_id }}"
  become: true
"""

RETURN = r"""
host:
  description: Inventory name of the host that was asked.
  returned: states probed, raised and restored
  type: str
  sample: m1
hosts:
  description: The hosts from which levels are raised.
  returned: states planned and shown
  type: list
  elements: str
  sample: [m1, m2, m3]
go:
  description: Whether to go on; not in check mode.
  returned: state shown
  type: bool
  sample: true
raised:
  description: How many levels were raised.
  returned: state raised
  type: int
  sample: 3
restored:
  description: How many levels were put back.
  returned: state restored
  type: int
  sample: 3
lines:
  description: How many lines were captured.
  returned: state reported
  type: int
  sample: 412
exit_reason:
  description: V(ok), V(refused), V(failed) or V(input).
  returned: state reported, or failure
  type: str
  sample: ok
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.capture import level_window, named_modules
from ..module_utils.shared import argument_specs

# Ansible's packer follows imports, and these are imported by name.
SHIPPED = named_modules.MODULES


def main() -> None:
    """Do what the state says on this host, and give the whole answer to the action, which keeps
    it out of the task's result.
    """
    module = AnsibleModule(
        argument_spec=dict(argument_specs.LOG_LEVEL, **argument_specs.LEVEL_OF_ACTION),
        supports_check_mode=True,
    )
    params = argument_specs.unhidden(module.params)
    if params["state"] not in ("probed", "raised", "restored"):
        module.fail_json(
            msg="state {} is done by the action on the controller".format(params["state"])
        )
    if module.check_mode and params["state"] != "probed":
        module.exit_json(changed=False, document={"targets": []})
    document = level_window.run(params)
    changed = any(target.get("state") in ("raised", "restored") for target in document["targets"])
    module.exit_json(changed=changed, document=document)


if __name__ == "__main__":
    main()
