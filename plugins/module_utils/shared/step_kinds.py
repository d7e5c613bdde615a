# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of step, in one table, and the states in which a step ends.

The planner, check mode, the action and the node's executor read this table. A new kind of step is
one row here and one handler.
"""

# How a step ends, as steps.jsonl and the result of a task have it.
DONE, ROLLED_BACK, REFUSED, FAILED, SKIPPED = "done", "rolled_back", "refused", "failed", "skipped"
RUNNING = "at_work"  # It has not ended. Who sends the same step again waits for it again.
STATES = (DONE, ROLLED_BACK, REFUSED, FAILED, SKIPPED)

# What the executor answers in check mode where the step would change nothing yet.
CHECK_MODE_LEAD = "check mode: "
UNCHANGED = "nothing was changed"

LAST_RISK = 4  # No step has a higher risk.


class StepKind:
    """The properties of one kind of step.

    order: the place of the kind among the steps of one host; 0 precedes every other host.
    handler: `package.module:Class` below module_utils; None for recover and for the steps of a
        component's file (steps/handlers/manifest.py).
    seconds: the time limit of the step; None where each step has its own.
    check_mode: the treatment in check mode, one of the words below.
    settles_at_once: the step waits for nothing, and reading the file again verifies the write.
    through_api: the step changes objects of the API, and no host restarts anything.
    brings_back: a node may count as available again after the step.
    starts_kubelet: a kubelet that was down may run after the step.
    local_up_to: the risk up to which the step changes nothing but its host and ends nothing.
    in_plan: whether a plan has such steps; otherwise another entry point runs them.
    revertible: whether the playbook revert takes back what the step wrote.
    """

    __slots__ = (
        "brings_back",
        "check_mode",
        "handler",
        "in_plan",
        "local_up_to",
        "name",
        "order",
        "revertible",
        "seconds",
        "settles_at_once",
        "starts_kubelet",
        "through_api",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - one row of a table
        self,
        name,
        order=5,
        handler=None,
        seconds=None,
        check_mode="host",
        settles_at_once=False,
        through_api=False,
        brings_back=False,
        starts_kubelet=False,
        local_up_to=None,
        in_plan=True,
        revertible=False,
    ):
        self.name = name
        self.order = order
        self.handler = handler
        self.seconds = seconds
        self.check_mode = check_mode
        self.settles_at_once = settles_at_once
        self.through_api = through_api
        self.brings_back = brings_back
        self.starts_kubelet = starts_kubelet
        self.local_up_to = local_up_to
        self.in_plan = in_plan
        self.revertible = revertible

    def is_local(self, risk):
        """Return whether a step of this kind and risk changes nothing but its own host."""
        return self.local_up_to is not None and risk <= self.local_up_to


# What check mode asks of a host before a step, and what the step changes for those after it.
ON_HOST = "host"  # Everything of its host.
COMPONENT = "component"  # One component of its host.
API_OBJECT = "object"  # One object of the API.
NODE = "node"  # The Node in the API.
MANAGERS = "managers"  # The kubelet's resource managers: host, Node and all other Nodes.
NEXT_BOOT = "next_boot"  # It counts from the next boot, and no other step reads it.
PREDICTED = "predicted"  # Nothing refuses it now, or only the repair finds out.
PREDICTED_NODE = "predicted_node"  # The same, and it changes the Node.
PREDICTED_UNREAD = "predicted_unread"  # The same, and no other step reads what it changes.

RECOVER, RESTORE_LEVELS, RAISE_KUBELET = "recover", "restore_levels", "raise_kubelet"
EDIT_MANIFEST, EDIT_CONFIG = "edit_manifest", "edit_config"
MOVE_OUT, RESTART = "move_out", "restart"
ENABLE_KUBELET, START_KUBELET = "enable_kubelet", "start_kubelet"
ENABLE_RUNTIME, START_RUNTIME = "enable_runtime", "start_runtime"
UNMASK_KUBELET = "unmask_kubelet"
KERNEL_SETTING, KERNEL_MODULE = "kernel_setting", "kernel_module"
FILE_LIMIT, UNIT_LIMIT = "file_limit", "unit_limit"
SWAP_PERSISTENCE, SWAP_OFF = "swap_persistence", "swap_off"
HOLD_PACKAGES, NETWORKD_ROUTES = "hold_packages", "networkd_routes"
START_FORMER, RESET_STATE, UNLEND = "start_former", "reset_state", "unlend"
PINNED_POD, RESTART_LEADER = "pinned_pod", "restart_leader"
RENEW_CERTIFICATES, LOAD_CERTIFICATES = "renew_certificates", "load_certificates"
KUBEADM_CONFIG, PATCH_WORKLOAD = "kubeadm_config", "patch_workload"
DRAIN, UNCORDON = "drain", "uncordon"
CLEAN_UP, PROBE = "clean_up", "probe"
ETCD_SNAPSHOT, ETCD_COMPACT = "etcd_snapshot", "etcd_compact"
ETCD_DEFRAGMENT, ETCD_ALARM = "etcd_defragment", "etcd_alarm"
ETCD_KINDS = (ETCD_SNAPSHOT, ETCD_COMPACT, ETCD_DEFRAGMENT, ETCD_ALARM)
REVERT = "revert"  # What records of a revert say in place of a kind.

_SERVICE_START = "steps.handlers.service_start:StartService"
_SERVICE_ENABLE = "steps.handlers.service_start:EnableService"
_API = "steps.handlers.api_steps:"
_ETCD = "steps.handlers.etcd_space:"

_ROWS = (
    StepKind(RECOVER, 0),
    StepKind(
        RESTORE_LEVELS,
        1,
        "capture.step_handlers:RestoreVerbosity",
        check_mode=PREDICTED,
        local_up_to=1,
    ),
    StepKind(
        RAISE_KUBELET,
        handler="capture.step_handlers:RaiseKubeletVerbosity",
        in_plan=False,
    ),
    StepKind(
        RENEW_CERTIFICATES,
        1,
        "steps.handlers.certificate_renewal:RenewCertificates",
        150,
        local_up_to=LAST_RISK,
    ),
    # an API server may wait for the kubelet's back-off, and then what needs it, too
    StepKind(
        LOAD_CERTIFICATES,
        2,
        "steps.handlers.certificate_load:LoadCertificates",
        520,
        local_up_to=LAST_RISK,
    ),
    StepKind(MOVE_OUT, 1, check_mode=COMPONENT, revertible=True),
    StepKind(EDIT_MANIFEST, 2, check_mode=COMPONENT, revertible=True),
    StepKind(EDIT_CONFIG, 2, check_mode=COMPONENT, revertible=True),
    StepKind(RESTART, 2, check_mode=COMPONENT),
    StepKind(
        ENABLE_RUNTIME,
        1,
        _SERVICE_ENABLE,
        60,
        check_mode=NEXT_BOOT,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    # a server of k3s takes a minute
    StepKind(
        START_RUNTIME,
        1,
        _SERVICE_START,
        150,
        brings_back=True,
        starts_kubelet=True,
        local_up_to=LAST_RISK,
    ),
    StepKind(
        ENABLE_KUBELET,
        4,
        _SERVICE_ENABLE,
        60,
        check_mode=NEXT_BOOT,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        UNMASK_KUBELET,
        4,
        "steps.handlers.service_unmask:UnmaskKubelet",
        60,
        brings_back=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        START_KUBELET,
        5,
        _SERVICE_START,
        150,
        brings_back=True,
        starts_kubelet=True,
        local_up_to=LAST_RISK,
    ),
    StepKind(
        KERNEL_SETTING,
        5,
        "steps.handlers.kernel_setting:SetKernelSetting",
        30,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        KERNEL_MODULE,
        5,
        "steps.handlers.kernel_module:LoadKernelModule",
        30,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        FILE_LIMIT,
        5,
        "steps.handlers.login_limit:SetLoginLimit",
        30,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        UNIT_LIMIT,
        5,
        "steps.handlers.service_limit:SetServiceLimit",
        30,
        local_up_to=1,
        revertible=True,
    ),
    StepKind(
        SWAP_PERSISTENCE,
        5,
        "steps.handlers.swap_off:KeepSwapOff",
        300,
        check_mode=NEXT_BOOT,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        NETWORKD_ROUTES,
        5,
        "steps.handlers.networkd_routes:KeepForeignRoutes",
        30,
        check_mode=NEXT_BOOT,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    # another program may hold dpkg's lock for a moment
    StepKind(
        HOLD_PACKAGES,
        5,
        "steps.handlers.package_hold:HoldPackages",
        60,
        check_mode=NEXT_BOOT,
        settles_at_once=True,
        local_up_to=LAST_RISK,
        revertible=True,
    ),
    StepKind(
        SWAP_OFF,
        5,
        "steps.handlers.swap_off:SwitchSwapOff",
        300,
        brings_back=True,
        starts_kubelet=True,
        local_up_to=LAST_RISK,
    ),
    StepKind(
        START_FORMER,
        5,
        "steps.handlers.cpu_manager_reset:StartUnderFormerPolicy",
        check_mode=MANAGERS,
        brings_back=True,
    ),
    StepKind(RESET_STATE, 5, "steps.handlers.cpu_manager_reset:ResetState", check_mode=MANAGERS),
    StepKind(
        UNLEND,
        5,
        "steps.handlers.cpu_manager_reset:RemoveTemporaryArguments",
        check_mode=MANAGERS,
    ),
    # it runs for 90 s at most, is gone after 60 s, and the rest takes 30 s
    StepKind(PINNED_POD, 5, "steps.handlers.pinning_probe:ProbePinning", 180),
    StepKind(
        RESTART_LEADER,
        5,
        "steps.handlers.scheduler_restart:RestartLeader",
        check_mode=PREDICTED,
    ),
    # the time limit of the drain itself comes on top
    StepKind(DRAIN, 5, _API + "DrainNode", 120, check_mode=NODE, through_api=True),
    # Those of etcd come behind every other repair of a host: certificates are renewed before them.
    # The plan puts the loads of certificates behind the end of an alarm.
    StepKind(ETCD_SNAPSHOT, 9, _ETCD + "SaveSnapshot", 960, local_up_to=LAST_RISK),
    StepKind(
        ETCD_COMPACT,
        9,
        _ETCD + "CompactHistory",
        330,
        check_mode=PREDICTED,
        local_up_to=LAST_RISK,
    ),
    StepKind(ETCD_DEFRAGMENT, 9, _ETCD + "DefragmentMember", 900, local_up_to=LAST_RISK),
    StepKind(
        ETCD_ALARM,
        9,
        _ETCD + "TakeBackAlarm",
        420,
        check_mode=PREDICTED,
        local_up_to=LAST_RISK,
    ),
    StepKind(
        KUBEADM_CONFIG,
        9,
        _API + "EditKubeadmConfig",
        60,
        check_mode=API_OBJECT,
        settles_at_once=True,
        through_api=True,
        revertible=True,
    ),
    StepKind(
        UNCORDON,
        9,
        _API + "UncordonNode",
        60,
        check_mode=PREDICTED_NODE,
        settles_at_once=True,
        through_api=True,
    ),
    StepKind(
        PATCH_WORKLOAD,
        9,
        _API + "PatchWorkload",
        720,
        check_mode=API_OBJECT,
        through_api=True,
        revertible=True,
    ),
    StepKind(
        CLEAN_UP,
        10,
        _API + "DeleteRejectedPods",
        120,
        check_mode=PREDICTED_UNREAD,
        through_api=True,
    ),
    StepKind(
        PROBE,
        11,
        _API + "ProbeControllerManager",
        180,
        check_mode=PREDICTED_UNREAD,
        through_api=True,
    ),
)
KINDS = {kind.name: kind for kind in _ROWS}
# What a plan calls a finding for which no step could be made.
UNKNOWN = StepKind("none", in_plan=False)


def kind_of(name):
    """Return the row of a kind; UNKNOWN where this version has no such kind."""
    return KINDS.get(name, UNKNOWN)


def in_plans():
    """Return the names of all kinds of steps that a plan may have."""
    return tuple(kind.name for kind in _ROWS if kind.in_plan)
