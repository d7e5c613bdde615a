#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action diagnose."""

DOCUMENTATION = r"""
module: diagnose
short_description: Judge evidence of hosts and clusters, and report
version_added: 0.1.0
description:
  - Judges the evidence that M(kubemend.remediation.node_evidence_info) and
    M(kubemend.remediation.cluster_evidence_info)
    wrote, over all hosts of a cluster at once, writes C(report.json), C(report.txt) and
      C(report.html), and prints C(report.txt).
  - With O(bundle) it packs evidence and findings into one file that can be given away. It is read
    again and judged before it is
    written; where it would not give the same verdicts, there is none and the task fails.
  - Where a finding of KM313 has a patch, it is a file in C(patches) too.
  - It runs on the controller and connects to no host. Use it with C(run_once=true).
  - The result holds codes, names and paths only; what a node said stays in the reports.
  - Where the callback for standard output writes JSON there, the report is printed to standard
    error.
author: The kubemend authors (@kubemend)
options:
  evidence:
    description:
      - Folders of evidence, and bundles. Those of several runs or controllers are merged.
    type: list
    elements: path
    required: true
  report_dir:
    description:
      - Folder for the reports. It has to exist.
    type: path
    required: true
  run_id:
    description:
      - Identity of the run, as the reports name it.
    type: str
    required: true
  started:
    description:
      - When the run began, in UTC and RFC 3339. The time of judging when it is not given.
    type: str
  mode:
    description:
      - What the reports say about the run.
      - V(shown) evaluates nothing. It prints the report that an earlier task of the run held.
    type: str
    choices: [observe, plan, repair, verify, replay, shown]
    default: observe
  max_risk:
    description:
      - The highest risk of a step that the operator consents to, as C(kubemend_max_risk). The plan
        shows every step.
    type: int
    default: 0
  drain_timeout:
    description:
      - Seconds that the drain of a node may take, as C(kubemend_drain_timeout).
    type: int
    default: 900
  max_unavailable:
    description:
      - Nodes that may be out at the same time, as C(kubemend_max_unavailable).
    type: int
    default: 1
  cpu_manager:
    description:
      - What kubelets are to be configured with, by inventory name - C(cpuManagerPolicy) and
        C(reservedSystemCPUs). A host that is named without either
        is reset where a fault calls for it, or where O(allow) has C(force_reset).
    type: dict
  limits:
    description:
      - What kernel settings are raised to, by their names - C(kubemend_file_max),
        C(kubemend_inotify_instances) and the like. The usual where it
        is not given.
    type: dict
  profile:
    description:
      - Hosts, by inventory name, on which every kernel setting and limit of logins of O(limits) is
        raised, whether or not it is used up.
    type: list
    elements: str
    default: []
  allow:
    description:
      - Refusals that the operator lifts by name, as C(kubemend_allow).
    type: list
    elements: str
    default: []
  take:
    description:
      - A run whose lock counts for nothing, as C(kubemend_take_lock). That of a process of this
        controller which has ended never does.
    type: str
  asked:
    description:
      - Without effect but where O(mode=plan). With V(false), and where hosts can be asked what
        steps of the plan look at last, nothing is reported yet,
        and the steps are returned as C(looks). M(kubemend.remediation.apply_step) asks their hosts
          in check mode, and the same task with V(true) reports.
    type: bool
    default: true
  held:
    description:
      - Leave the report to a later task with O(mode=shown), which prints it. A report that comes
        before steps of a repair, and that of a run which fails, is printed at once.
    type: bool
    default: false
  probe:
    description:
      - Whether the plan ends with a Job that must get exactly one pod, as C(kubemend_probe).
    type: bool
    default: false
  patch_workloads:
    description:
      - Whether the plan gives workloads that C(kubemend_expect_pinning) selects what keeps their
        pods from being pinned, as
        C(kubemend_patch_workloads).
    type: bool
    default: false
  prove_pinning:
    description:
      - Whether a reset of a node's CPU manager state proves, before the node takes pods again, that
        a pod gets CPUs alone, as C(kubemend_prove_pinning).
    type: bool
    default: false
  cleanup_rejected:
    description:
      - Whether the plan deletes pods that a kubelet rejected, as C(kubemend_cleanup_rejected).
    type: bool
    default: false
  symptom:
    description:
      - Reports each possible cause of this symptom with its verdict.
    type: str
  faults:
    description:
      - Codes to judge. All when it is not given.
    type: list
    elements: str
  deep:
    description:
      - Whether the expensive collectors were asked too. Faults that need them are otherwise not
        judged.
    type: bool
    default: false
  part:
    description:
      - Whether the evidence is of some hosts of their clusters only, as C(kubemend_slice). Faults
        of whole clusters are not judged then.
    type: bool
    default: false
  upgrade_to:
    description:
      - The minor release that an upgrade is to bring, as C(kubemend_upgrade_to). Without it, the
        one that follows that of the API server.
    type: str
  fail_on:
    description:
      - Fails the task when something as bad as this was found. V(unknown) counts unknown verdicts,
        warnings and critical
        findings, V(warning) the latter two.
    type: str
    choices: [never, unknown, warning, critical]
    default: never
  formats:
    description:
      - With V(terminal) the report is printed, with V(html) C(report.html) is written, with
        V(junit) C(junit.xml), with V(prometheus) C(kubemend.prom), with V(sarif) C(report.sarif).
        V(github) prints annotations of a workflow. C(report.json) and C(report.txt) always are.
    type: list
    elements: str
    choices: [terminal, json, html, junit, prometheus, sarif, github]
    default: [terminal, json, html]
  notices:
    description:
      - Lines for the operator at the head of the report.
    type: list
    elements: str
    default: []
  bundle:
    description:
      - A file to pack the run into, as C(kubemend_bundle). Its folder has to exist, it itself must
        not.
    type: path
  bundle_anonymous:
    description:
      - Whether names of hosts and people, and addresses, are replaced in the bundle, as
        C(kubemend_bundle_anonymous).
        Secrets are never in it.
    type: bool
    default: false
  compare_to:
    description:
      - An earlier C(report.json), or the folder of its run. The report then says what is new, gone
        and unchanged, and O(fail_on) counts only what
        is new.
    type: path
  waivers:
    description:
      - A YAML file of findings that are accepted until a day, as C(kubemend_waivers). The reports
        show them as waived, O(fail_on) does not count them, and no step is planned for them.
    type: path
  severity:
    description:
      - Severities by fault codes, as C(kubemend_severity). They count in place of the catalogue's.
    type: dict
    default: {}
  keep_runs:
    description:
      - How many runs stay in C(~/.kubemend/runs), as C(kubemend_keep_runs); V(all) removes none.
        The run of O(report_dir) stays always, and a folder with a foreign file.
    type: str
    default: all
  cluster_names:
    description:
      - The name of the cluster of each host that has C(kubemend_cluster_name); the empty name
        stands for every host.
    type: dict
    default: {}
  hosts:
    description:
      - Every host of the run, with its roles (C(control_plane), C(node)), as
        M(kubemend.remediation.prepare_run) returns them in C(groups).
        A host without a file of evidence is one with which Ansible could not begin. It gets one
          that says so, with Ansible's message where
        the task that asked it was registered as C(_kubemend_asked). Without effect where
          O(mode=replay).
    type: dict
    default: {}
  outside:
    description:
      - Hosts of the inventory that do not belong to the run, each with why (C(reason)) and its
        C(address), as M(kubemend.remediation.prepare_run) returns
        them. The report names them.
    type: dict
    default: {}
  api_hosts:
    description:
      - The hosts through which the API was asked. Those of them with which Ansible could not begin
        are counted too.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.info
attributes:
  check_mode:
    support: full
    details: Writes its reports on the controller, in check mode too.
  action:
    support: full
seealso:
  - module: kubemend.remediation.prepare_run
"""

EXAMPLES = r"""
- name: Judge and report
  kubemend.remediation.diagnose:
    evidence: ["{{ run.evidence_dir }}"]
    report_dir: "{{ run.report_dir }}"
    run_id: "{{ run.run_id }}"
    fail_on: critical
  run_once: true
"""

RETURN = r"""
report_dir:
  description: Folder of the reports.
  returned: when the evidence could be judged
  type: str
  sample: /home/ops/.kubemend/runs/20261121T090000Z-1a2b3c
run_id:
  description: Identity of the run.
  returned: when the evidence could be judged
  type: str
  sample: 20261121T090000Z-1a2b3c
exit_reason:
  description: V(ok), V(threshold) when O(fail_on) is reached, or V(input) when the evidence cannot
    be read
    or O(bundle) not be written.
  returned: always
  type: str
  sample: ok
codes:
  description: Codes of the faults that are present, and of those that stay unknown.
  returned: when the evidence could be judged
  type: dict
  sample: {"present": ["KM101"], "unknown": []}
summary:
  description: Findings by severity and verdicts by kind.
  returned: when the evidence could be judged
  type: dict
  sample:
    {"critical": 2, "warning": 0, "present": 2, "unknown": 0, "clear": 14, "not_applicable": 1}
looks:
  description: The steps whose hosts are to be asked before there is a report. Codes, summary and
    bundle are returned by the second task alone.
  returned: where O(asked=false) and there are such
  type: list
  elements: dict
  sample: [{"id": "01-m2-kube-scheduler-edit-manifest", "host": "m2"}]
bundle:
  description: The file that the run was packed into, null without O(bundle) and where it could not
    be written.
  returned: when the evidence could be judged
  type: str
  sample: /home/ops/case.tar.gz
bundle_reason:
  description: Why there is no bundle. The task fails then, but where a repair follows; that goes on
    without it.
  returned: when O(bundle) could not be written
  type: str
  sample: "No bundle was written: /home/ops/case.tar.gz cannot be used: No space left on device."
"""
