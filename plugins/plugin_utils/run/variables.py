# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubemend_* variables: kind, default, topic and meaning of each, in one table.

docs/variables.md, the table of the README and the argument specs of roles are generated from it:
`python -m tests.docs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...module_utils.shared import argument_specs, consent
from .variable_kinds import (
    BOOLEAN,
    CPUS,
    EXPRESSION,
    FAULTS,
    GROUP,
    HOST_PATTERN,
    KEEP,
    LOCK_OWNER,
    MINOR_RELEASE,
    NAME,
    NODE_PATH,
    PATH,
    PATHS,
    POD,
    RUN_ID,
    SELECTOR,
    SEVERITY_OF,
    Kind,
    number,
    one_of,
    some_of,
)

FAIL_ON = ("never", "unknown", "warning", "critical")
FORMATS = argument_specs.REPORT_FORMATS
DEFAULT_FORMATS = ("terminal", "json", "html")
REFUSALS = consent.WORDS
TRANSPORTS = ("task", "ssh", "auto")
COMPONENTS = ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver")

# The headings of docs/variables.md, in this order.
HOSTS = "Hosts and connection"
SCOPE = "What is checked"
REPORT = "Report"
REPAIR = "Repair"
UNDO = "Undo and lock"
MANAGERS = "CPU manager"
LIMITS = "Limits"
CAPTURE = "Log capture"
TOPICS = (HOSTS, SCOPE, REPORT, REPAIR, UNDO, MANAGERS, LIMITS, CAPTURE)


@dataclass(frozen=True)
class Variable:
    """One kubemend_* variable.

    meaning: Markdown; its first sentence stands alone in the README
    run_wide: whether it must not differ between hosts
    """

    kind: Kind
    default: Any
    topic: str
    meaning: str
    run_wide: bool = True


VARIABLES: dict[str, Variable] = {
    "kubemend_hosts": Variable(
        HOST_PATTERN,
        None,
        HOSTS,
        (
            "The hosts that a run reads. Only as an extra variable (`-e`). Without it, the "
            "hosts of the two groups below, or all hosts where the inventory has neither "
            "group."
        ),
    ),
    "kubemend_control_plane_group": Variable(
        GROUP,
        "kube_control_plane",
        HOSTS,
        "The inventory group of the control plane nodes.",
    ),
    "kubemend_node_group": Variable(
        GROUP,
        "kube_node",
        HOSTS,
        "The inventory group of the other nodes.",
    ),
    "kubemend_become": Variable(
        BOOLEAN,
        True,
        HOSTS,
        "Read nodes as root. Without root, what only root can read is unknown.",
        run_wide=False,
    ),
    "kubemend_kubeconfig": Variable(
        NODE_PATH,
        None,
        HOSTS,
        (
            "An administrator's kubeconfig on the control plane nodes. Without it, kubemend "
            "looks for the installer's own."
        ),
        run_wide=False,
    ),
    "kubemend_kubectl": Variable(
        NODE_PATH,
        None,
        HOSTS,
        (
            "The kubectl program on the control plane nodes. Without it, kubemend looks for "
            "the installer's own."
        ),
        run_wide=False,
    ),
    "kubemend_timeout": Variable(
        number(1, 3600),
        30,
        HOSTS,
        (
            "Seconds in which a host must return its evidence. With 60, each part of it has twice "
            "the time that it has with 30."
        ),
        run_wide=False,
    ),
    "kubemend_transport": Variable(
        one_of(*TRANSPORTS),
        "task",
        HOSTS,
        (
            "How hosts are read. With `task`, each host has a task of Ansible's own. With `ssh`, "
            "one task reads all hosts, with less time of the controller for each. It reads them by "
            "clients of ssh, and hosts of other connections by their plugins. With `auto`, "
            "asyncssh reads those hosts whose options of ssh it honours. It must be installed for "
            "the Python of Ansible. All other hosts are read as with `ssh`. Ansible's own output "
            "then has one result for all of them. Only as an extra variable (`-e`). Repairs are "
            "always done by a task per host."
        ),
    ),
    "kubemend_parallel": Variable(
        number(1, 512),
        None,
        HOSTS,
        (
            "How many hosts are read at once with `kubemend_transport` `ssh` or `auto`. Without "
            "it, as many as Ansible's `forks`, and at least 32. Hosts behind a jump host that the "
            "arguments of ssh name, and hosts that need a process of their own, are limited by "
            "`forks`."
        ),
    ),
    "kubemend_faults": Variable(
        FAULTS,
        None,
        SCOPE,
        "The faults to check. Without it, all faults of the playbook.",
    ),
    "kubemend_pod": Variable(
        POD,
        None,
        SCOPE,
        (
            "A pod whose timeline the report shows. `pods_stay_pending` then also says why "
            "that pod waits, without the usual five minutes. `capture_logs` then reads what "
            "is about the pod and its siblings."
        ),
    ),
    "kubemend_deep": Variable(
        BOOLEAN,
        False,
        SCOPE,
        (
            "Run the expensive collectors too. Symptom playbooks that need them run them "
            "anyway. `lower_limits` needs it for inotify."
        ),
    ),
    "kubemend_slice": Variable(
        BOOLEAN,
        False,
        SCOPE,
        (
            "The inventory is one part of its clusters, as in AWX's job slicing. Faults of "
            "whole clusters are then left to `replay` of all slices."
        ),
    ),
    "kubemend_expect_pinning": Variable(
        SELECTOR,
        None,
        SCOPE,
        ("Selects pods that must have CPUs of their own, regardless of their requests (KM313)."),
    ),
    "kubemend_upgrade_to": Variable(
        MINOR_RELEASE,
        None,
        SCOPE,
        (
            "The release that an upgrade is to bring, for `before_upgrade`. Without it, the minor "
            "release that follows that of the API server."
        ),
    ),
    "kubemend_evidence": Variable(
        PATHS,
        (),
        SCOPE,
        (
            "Recorded evidence for `replay`. A folder of a run, a bundle, or a list of them, "
            "which are merged."
        ),
    ),
    "kubemend_report_dir": Variable(
        PATH,
        None,
        REPORT,
        "The folder of the report. Without it, `~/.kubemend/runs/<run id>`.",
    ),
    "kubemend_keep_runs": Variable(
        KEEP,
        "all",
        REPORT,
        (
            "How many runs stay in `~/.kubemend/runs`. Older ones are removed at the end of a run "
            "that judges evidence; a folder with a file that is not of kubemend stays."
        ),
    ),
    "kubemend_report_formats": Variable(
        some_of(*FORMATS, empty=False),
        DEFAULT_FORMATS,
        REPORT,
        "The formats of the report. `report.json` and `report.txt` are always written.",
    ),
    "kubemend_fail_on": Variable(
        one_of(*FAIL_ON),
        "never",
        REPORT,
        (
            "The severity from which a finding makes the run exit with 2. `unknown` also counts "
            "faults whose evidence is missing. After a repair, only what remains counts."
        ),
    ),
    "kubemend_compare_to": Variable(
        PATH,
        None,
        REPORT,
        (
            "An earlier `report.json`, or the folder of its run. The report then says what is "
            "new, worse, unchanged or gone, and `kubemend_fail_on` counts only what is new or "
            "worse."
        ),
    ),
    "kubemend_waivers": Variable(
        PATH,
        None,
        REPORT,
        (
            "A YAML file of findings that are accepted until a day. Reports show them as waived, "
            "`kubemend_fail_on` does not count them, and no repair is planned for them "
            "(docs/waivers.md)."
        ),
    ),
    "kubemend_severity": Variable(
        SEVERITY_OF,
        {},
        REPORT,
        (
            "The severities of your own for fault codes. They count in place of the catalogue's "
            "everywhere, also for `kubemend_fail_on` (docs/waivers.md)."
        ),
    ),
    "kubemend_cluster_name": Variable(
        NAME,
        None,
        REPORT,
        (
            "The name of the cluster in reports. Without it, the `clusterName` of kubeadm. Set it "
            "in `group_vars` where an inventory holds several clusters."
        ),
        run_wide=False,
    ),
    "kubemend_bundle": Variable(
        PATH,
        None,
        REPORT,
        (
            "A file that the run is packed into, without secrets. An existing file is never "
            "overwritten."
        ),
    ),
    "kubemend_bundle_anonymous": Variable(
        BOOLEAN,
        False,
        REPORT,
        "Replace the names of hosts and people, and addresses, in the bundle.",
    ),
    "kubemend_max_risk": Variable(
        number(0, 3),
        0,
        REPAIR,
        (
            "Your consent to repairs up to this risk. 0 only observes, 1 restarts nothing, 2 "
            "restarts one component, 3 evicts pods. It has no effect in `audit` and `replay`."
        ),
    ),
    "kubemend_allow": Variable(
        some_of(*REFUSALS),
        (),
        REPAIR,
        "Refusals to lift, by name. Each word is explained in docs/repairs.md.",
    ),
    "kubemend_max_unavailable": Variable(
        number(1, 1000),
        1,
        REPAIR,
        (
            "How many nodes may be out of service at a time. kubemend drains no node while "
            "this many others are cordoned or not ready."
        ),
    ),
    "kubemend_drain_timeout": Variable(
        number(1, 86400),
        900,
        REPAIR,
        "Seconds that the drain of a node may take. Then the node takes pods again.",
    ),
    "kubemend_probe": Variable(
        BOOLEAN,
        False,
        REPAIR,
        (
            "Prove a repair with a short Job. It must get exactly one pod, and is removed "
            "again (risk 1). `before_reboot` starts the containerd of the disk in a trial "
            "instead, apart from the one that runs (risk 1)."
        ),
    ),
    "kubemend_cleanup_rejected": Variable(
        BOOLEAN,
        False,
        REPAIR,
        (
            "Delete pods that a kubelet rejected and that no controller would retry (risk 1). "
            "Each pod is kept in the journal."
        ),
    ),
    "kubemend_patch_workloads": Variable(
        BOOLEAN,
        False,
        REPAIR,
        (
            "Give the workloads of `kubemend_expect_pinning` the requests that pinning needs "
            "(risk 3, a rollout)."
        ),
    ),
    "kubemend_prove_pinning": Variable(
        BOOLEAN,
        False,
        REPAIR,
        (
            "Prove a reset to the static policy with a test pod. It must get whole CPUs of "
            "its own before the node takes pods again."
        ),
    ),
    "kubemend_run_id": Variable(
        RUN_ID,
        None,
        UNDO,
        ("The run that `revert` takes back. Without it, `revert` only lists what can be undone."),
    ),
    "kubemend_take_lock": Variable(
        LOCK_OWNER,
        None,
        UNDO,
        "The run whose lock on the cluster is taken over. The refusal names its id.",
    ),
    "kubemend_lock_ttl": Variable(
        number(1, 86400),
        900,
        UNDO,
        (
            "Seconds that the cluster stays locked after the time limit of a step, if the "
            "controller is gone."
        ),
    ),
    "kubemend_cpu_manager_policy": Variable(
        one_of("none", "static"),
        None,
        MANAGERS,
        (
            "The `cpuManagerPolicy` that the role `cpu_manager_reset` sets. Without it, each "
            "kubelet keeps its own."
        ),
        run_wide=False,
    ),
    "kubemend_reserved_cpus": Variable(
        CPUS,
        None,
        MANAGERS,
        (
            "The `reservedSystemCPUs` that the role `cpu_manager_reset` sets. Without it, "
            "each kubelet keeps its own; `none` removes the setting."
        ),
        run_wide=False,
    ),
    "kubemend_file_max": Variable(
        number(8192, 2**62),
        None,
        LIMITS,
        "The target of `fs.file-max`. Without it, 2097152.",
    ),
    "kubemend_inotify_instances": Variable(
        number(128, 2**31 - 1),
        None,
        LIMITS,
        "The target of `fs.inotify.max_user_instances`. Without it, 8192.",
    ),
    "kubemend_inotify_watches": Variable(
        number(8192, 2**31 - 1),
        None,
        LIMITS,
        "The target of `fs.inotify.max_user_watches`. Without it, 524288.",
    ),
    "kubemend_inotify_queued_events": Variable(
        number(16384, 2**31 - 1),
        None,
        LIMITS,
        "The target of `fs.inotify.max_queued_events`. Without it, 16384.",
    ),
    "kubemend_nofile": Variable(
        number(1024, 2**31 - 1),
        None,
        LIMITS,
        (
            "The hard limit of open files of logins, and of a service or login at its limit "
            "(KM404). Without it, 655360. A number above what a process can have is refused."
        ),
    ),
    "kubemend_nproc": Variable(
        number(1024, 2**31 - 1),
        None,
        LIMITS,
        (
            "The hard limit of processes of logins. Without it, 655360, and never more than "
            "`kernel.pid_max`."
        ),
    ),
    "kubemend_capture_components": Variable(
        some_of(*COMPONENTS, empty=False),
        COMPONENTS[:3],
        CAPTURE,
        "The components whose log level `capture_logs` raises, and whose logs it reads.",
    ),
    "kubemend_capture_level": Variable(
        number(0, 10),
        4,
        CAPTURE,
        (
            "The log level to raise them to. Above 6 (above 7 for the scheduler) the bodies "
            "of requests are logged, which needs `body_logging` in `kubemend_allow`."
        ),
    ),
    "kubemend_capture_seconds": Variable(
        number(1, 86400),
        60,
        CAPTURE,
        "Seconds for which the log levels are raised.",
    ),
    "kubemend_capture_match": Variable(
        EXPRESSION,
        None,
        CAPTURE,
        "Capture the lines in which this expression is found.",
    ),
    "kubemend_capture": Variable(
        BOOLEAN,
        False,
        CAPTURE,
        (
            "Let the leading scheduler write its cache into its log, for `pods_stay_pending` "
            "(risk 1)."
        ),
    ),
}
