# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe each cause of a kubelet's exit, and advise what an operator does about it."""

from __future__ import annotations

import re

from ...evidence.document import ends, one_line
from ...models import unit_start as model_unit_start
from ...models.kubelet import exit_cause
from ...models.kubelet.exit_cause import Death
from ...models.kubelet.status import KubeletStatus
from ...models.kubelet.supervisor import Supervisor
from ...parsers import message_class, message_form, release_table, systemd_unit, unit_journal
from . import kubelet_supervisor

# Of a program that a program runs, by Go's os/exec and the kernel.
_CRASH = re.compile(
    r"signal: (?:segmentation fault|illegal instruction|bus error)|SIG(?:ILL|BUS)\b"
)
CRASHED = (
    "a program that crashes at once is damaged, is for another processor, or meets damaged data"
)
_CRASH_CURE = (
    "install that program again: k3s and RKE2 unpack theirs again where the folder data below"
    " /var/lib/rancher/k3s or /var/lib/rancher/rke2 was moved away while they are stopped; see"
    " journalctl -k for errors of the disk and of memory"
)
MICROK8S_ARGS = "/var/snap/microk8s/current/args"
_IN_KUBELITE = (
    *("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"),
)
WATCHES = "max_user_watches"
SPRAYED = "/etc/kubernetes/"  # where kubespray has a kubelet's configuration and its flags
# The values that a kubelet with protectKernelDefaults requires: setupKernelTunables of
# pkg/kubelet/cm/container_manager_linux.go
WANTED = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# cause: (its clause, the advice if KM502 reports it); {what} is what the log line names
_KNOWN = {
    exit_cause.SWAP: (
        "swap is on (KM504)",
        (
            "swapoff -a, and take the swap out of /etc/fstab; or failSwapOn: false in its"
            " configuration"
        ),
    ),
    exit_cause.UNKNOWN_FLAG: ("it does not know the flag {what}", ""),
    exit_cause.REMOVED_GATE: ("it does not know the feature gate {what}, or may not change it", ""),
    exit_cause.BAD_CONFIGURATION: ("it refuses its configuration ({what})", ""),
    exit_cause.SUPERVISOR: (
        "the program that runs it (k3s, RKE2) refuses its configuration ({what})",
        (
            "correct what that line names, in /etc/rancher/k3s/config.yaml or"
            " /etc/rancher/rke2/config.yaml, in config.yaml.d next to it, or in the arguments and"
            " the environment of its unit (systemctl cat); what concerns the whole cluster must be"
            " the same on each server"
        ),
    ),
    exit_cause.CPU_MANAGER_STATE: (
        "its CPU manager refuses its state ({what}): KM301 to KM307 and KM309 show why",
        "the playbook cpu_pinning shows the cause, and resets the state after a drain",
    ),
    exit_cause.MEMORY_MANAGER_STATE: (
        "its memory manager refuses its state, or has no memory reserved ({what}): KM310",
        (
            "compare reservedMemory with systemReserved, kubeReserved and evictionHard; the state"
            " file goes away after a drain only"
        ),
    ),
    exit_cause.STATE_FILE: ("{what} is empty or damaged", ""),
    exit_cause.CLIENT_CERTIFICATE: (
        "it has no valid client certificate, and no bootstrap kubeconfig to get another ({what})",
        "",
    ),
    exit_cause.CGROUP_V1: ("this machine has cgroup v1, which it refuses from 1.35 on", ""),
    exit_cause.KERNEL_DEFAULTS: (
        "protectKernelDefaults is on, and the kernel has other values of {what}",
        "",
    ),
    exit_cause.CGROUP_DRIVER: ("its cgroup driver differs from the runtime's ({what})", ""),
    exit_cause.RUNTIME: (
        (
            "the container runtime does not answer as it needs ({what}): KM508 shows why, where it"
            " can be determined"
        ),
        (
            "systemctl status and journalctl of the runtime (containerd, crio); crictl info;"
            " compare --container-runtime-endpoint with its socket, and disabled_plugins of"
            " /etc/containerd/config.toml, which must not hold cri"
        ),
    ),
    exit_cause.INOTIFY: (
        "inotify is used up, {what} (KM401, KM402)",
        "the playbook too_many_open_files shows who holds them, and raises the limit",
    ),
    exit_cause.LIMITS: (
        "a limit of its unit is above what it can have, 205/LIMITS (KM409)",
        "lower LimitNOFILE= and its like where systemctl cat shows them",
    ),
    exit_cause.PORT_IN_USE: (
        "its address {what} is used by another process",
        "see who listens there (ss -ltnp), often a second kubelet, and end that",
    ),
    exit_cause.NODE_NAME: (
        "its certificate is of another node ({what})",
        "give the host its former name, or --hostname-override",
    ),
    exit_cause.DISK_FULL: (
        "a disk is full ({what})",
        "df -h and df -i of /var/lib/kubelet and /etc/kubernetes; make room",
    ),
    exit_cause.CGROUP: (
        "a cgroup operation failed ({what}); this is not a disk problem",
        (
            "see how many cgroups there are (num_cgroups of /proc/cgroups; 65535 memory cgroups is"
            " the most), whether that folder is there and writable, and journalctl -k; cgroups that"
            " a kernel of 3.10 leaks go with a reboot, and a newer kernel; where grep cgroup"
            " /proc/self/mountinfo names cgroups below another folder too, such as a container's,"
            " unmount those"
        ),
    ),
    exit_cause.UNIT_CGROUPS: (
        "its unit has one cgroup for cpu and another for memory ({what}), because systemd accounts"
        " only one of them (CPUAccounting=, MemoryAccounting=)",
        (
            "write [Service], CPUAccounting=true and MemoryAccounting=true into"
            " /etc/systemd/system/kubelet.service.d/11-cgroups.conf (of another unit: the folder of"
            " its name), then systemctl daemon-reload and a restart of the unit"
        ),
    ),
    exit_cause.CONTROLLER: (
        "the cgroup controller {what} is not mounted: the kernel does not have it, or it is"
        " switched off",
        (
            "cat /proc/cgroups: a controller that is not listed is not in this kernel (pids came"
            " with Linux 4.3): boot a newer one; one with 0 below enabled is switched off on the"
            " kernel's command line (cgroup_disable=); one with 1 is to be mounted below"
            " /sys/fs/cgroup, which systemd does at boot"
        ),
    ),
    exit_cause.ORPHAN: (
        "the runtime has a container whose sandbox is gone ({what}), which this kubelet takes for"
        " an error",
        (
            "remove that container: crictl ps -a -o json shows podSandboxId of each, crictl rm -f"
            " CONTAINER; with docker, docker ps -a --filter label=io.kubernetes.sandbox.id=SANDBOX."
            " Its pod is started again. Kubelets from 1.24 on log it and go on"
        ),
    ),
    exit_cause.KERNEL_FILE: (
        "it has no stats of its machine, because the kernel has no {what}",
        (
            "compare uname -r with the kernel of the boot before (journalctl -k -b -1 -g 'Linux"
            " version'): a newer one may have dropped the file, as 6.1.54 and 6.5 did with"
            " memory.kmem.limit_in_bytes of cgroup v1. Update the kubelet to the last patch release"
            " of its minor (pull request 4018 of runc), boot the former kernel, or use cgroup v2"
        ),
    ),
    exit_cause.STEP: (
        "systemd ends its start itself ({what})",
        "see systemctl cat of the unit and journalctl -u, and correct what they name",
    ),
    exit_cause.RESOURCES: (
        "systemd could not set up its start (result resources)",
        "see journalctl -u of the unit: a file of EnvironmentFile=, memory, or a cgroup",
    ),
    exit_cause.OOM_KILL: (
        "it ran out of memory and was killed",
        (
            "see what takes the memory (journalctl -k; MemoryMax= of its unit or slice), and"
            " reserve some for it with systemReserved and kubeReserved"
        ),
    ),
    exit_cause.EXECUTABLE: (
        "systemd cannot execute its program (203/EXEC)",
        (
            "see whether the program of ExecStart is there, for this machine, and may be executed "
            "(ls -lZ, file), and install it again"
        ),
    ),
    exit_cause.UNKNOWN: ("it ended with {what}", ""),
}
# The causes that the table of messages tells.
_OF_TABLE = {
    cause: (f"{message_class.CLASSES[name].clause} ({{what}})", message_class.CLASSES[name].advice)
    for name, cause in exit_cause.OF_CLASS.items()
    if cause not in _KNOWN
}


# the advice for causes that are faults of their own
_ADVICE = {
    exit_cause.CGROUP_V1: (
        "boot the node with cgroup v2 (systemd.unified_cgroup_hierarchy=1 on the kernel's"
        " command line, or a newer distribution); until then failCgroupV1: false in its"
        " configuration"
    ),
    exit_cause.CGROUP_DRIVER: (
        "make both the same, systemd where systemd is: cgroupDriver in the kubelet's"
        " configuration, native.cgroupdriver of exec-opts in /etc/docker/daemon.json; drain the"
        " node first"
    ),
}


def words(cause: str, subject: str) -> str:
    """Return a cause as a clause.

    subject: what the log line names, or ""
    """
    if cause == exit_cause.INOTIFY and subject == WATCHES:
        return f"inotify is used up, {subject} (KM403)"
    clause = _advised(cause)[0] or cause
    if subject:
        return clause.replace("{what}", subject)
    for part in (" ({what})", ", {what}"):
        clause = clause.replace(part, "")
    return clause.replace("{what}", "?")


def _advised(cause: str) -> tuple[str, str]:
    """Return the clause of a cause and its advice."""
    return _KNOWN.get(cause) or _OF_TABLE.get(cause) or ("", "")


def remedy(status: KubeletStatus, unit: str, owner: Supervisor | None = None) -> str:
    """Return what to do about a kubelet that does not run.

    owner: k3s or RKE2, where it runs the kubelet
    """
    start = then(status, unit, owner)
    refused = next((refusal for refusal in status.refused if refusal.now), None)
    if refused is not None and not _own(status):
        return f"{refused.cure}; then {start}"
    advice = _of_death(status.death, owner)
    if advice:
        return f"{advice}; then {start}"
    if status.state.kind == systemd_unit.STOPPED:
        return f"systemctl start {unit}; find out who stopped it, and why (journalctl -u {unit})"
    if status.death is not None and _CRASH.search(status.death.line):
        return f"{_CRASH_CURE}; then {start}"
    log = f"journalctl -u {unit} -n 200"
    if status.child is not None and status.log:
        log = f"tail -n 50 {one_line(status.log, 200)}"
    return f"read its last log lines ({log}), and fix what they name; then {start}"


def _of_death(death: Death | None, owner: Supervisor | None) -> str:
    """Return what to do about an exit cause, "" where it is not certain, or nothing is known."""
    if death is not None and other_component(death) and death.final:
        return _of_component(death.keys[0])
    if death is None or not death.certain:
        return ""
    return _of_owner(death, owner) or _advised(death.cause)[1]


def other_component(death: Death) -> str:
    """Return which other component of the same process ended a kubelet, with its words, or ""."""
    if death.cause != exit_cause.UNKNOWN or not death.keys:
        return ""
    component, reading = death.keys[0], message_form.read(death.message, death.keys[0])
    text = f"{component} within the same process ended: {ends(death.message, 240)}"
    if reading is None:
        return text
    return f"{text} ({message_class.CLASSES[reading.meaning].clause})"


def whose_flag(flag: str) -> str:
    """Return which component within kubelite does not know a flag, as a clause."""
    name = flag.lstrip("-")
    lost = [
        component
        for component in _IN_KUBELITE
        if release_table.last_release(release_table.FLAG, component, name) is not None
    ]
    component = " or ".join(lost) or "one"
    return f"of the components in the same process {component} does not know the flag {flag}"


def of_kubelite(flag: str) -> str:
    """Return where a flag is that a component of MicroK8s does not know."""
    return (
        f"grep -n -e {flag} {MICROK8S_ARGS}/kube* names the file: take that line out of it. A"
        " refresh of the snap keeps the flags that an operator or an older release wrote there"
    )


def _of_component(component: str) -> str:
    """Return what to do about a component that ended, with the kubelet in the same process."""
    return f"correct what {component} names: its flags are in {MICROK8S_ARGS}/{component}"


def _own(status: KubeletStatus) -> bool:
    """Tell whether the cause explains more than systemd's step: its limits, or memory."""
    if status.death is None or not status.death.certain:
        return False
    return status.death.cause in (exit_cause.LIMITS, exit_cause.OOM_KILL)


def quoted(status: KubeletStatus) -> str:
    """Return the last log line of a kubelet whose cause is not known, with the log's name."""
    if status.death is None or status.death.cause != exit_cause.UNKNOWN or not status.death.line:
        return ""
    text = f"; {unit_journal.quoted(status.death.line, status.unit.name)}"
    if _CRASH.search(status.death.line):
        text += f" ({CRASHED})"
    return text


def causes(status: KubeletStatus, owner: Supervisor | None = None) -> str:
    """Return why a kubelet does not run, as clauses that follow its state.

    What systemd refused comes first, else the kubelet's last log lines.

    owner: k3s or RKE2, where it runs the kubelet
    """
    refused, coming = model_unit_start.past(status.refused), model_unit_start.future(status.refused)
    clauses = _died(status, refused is not None, owner)
    if refused is not None and refused.what != status.state.why and not _own(status):
        clauses = f"; {refused.what}{clauses}"
    if coming is not None:
        clauses += f"; {model_unit_start.WOULD_NOT}{coming.what}"
    return clauses


def _died(status: KubeletStatus, refused: bool, owner: Supervisor | None) -> str:
    """Return the last log lines as clauses.

    refused: whether systemd's refusal precedes them
    """
    if status.death is None:
        return ""
    cause = status.death.cause
    if refused and cause in (exit_cause.STEP, exit_cause.EXECUTABLE, exit_cause.RESOURCES):
        return ""
    clause = _clause(status.death, owner)
    other = other_component(status.death)
    if other:
        return f"; {other}"
    if cause == exit_cause.UNKNOWN:
        end = status.death.what
        if refused or end in status.state.why or not end.startswith(("status ", "signal ")):
            return quoted(status)
        return f"; {clause}{quoted(status)}"
    if status.death.certain:
        return f"; {clause}"
    return f"; its last log lines may mean: {clause}"


def _of_owner(death: Death, owner: Supervisor | None) -> str:
    """Return what to change of k3s or RKE2 about a cause, "" where that is the usual."""
    if owner is None:
        return ""
    return kubelet_supervisor.cure(owner, death)


def then(status: KubeletStatus, unit: str, owner: Supervisor | None) -> str:
    """Return how this kubelet is started once the cause is gone.

    owner: k3s or RKE2, where it runs the kubelet
    """
    if status.child is not None and owner is not None:
        return kubelet_supervisor.started(owner)
    return started(status.state.kind, unit)


def _clause(death: Death, owner: Supervisor | None) -> str:
    if death.cause == exit_cause.SUPERVISOR and owner is not None:
        return kubelet_supervisor.clause(owner, death)
    return words(death.cause, death.what)


def started(kind: str, unit: str) -> str:
    """Return how a kubelet is started once the cause is gone."""
    if kind == systemd_unit.LOOPING:
        return (
            f"systemd starts it again by itself within seconds, or systemctl restart {unit} at once"
        )
    if kind == systemd_unit.STOPPED:
        return f"systemctl start {unit}"
    return f"systemctl reset-failed {unit} and systemctl start {unit}"


def lasting(cause: str, subject: str, node: str) -> str:
    """Return why another start would end as the last one did, and what to do first."""
    advice = _advised(cause)[1] or cure(cause, subject, node, "")
    return (
        f"another start would end as the last one did: {words(cause, subject)}; {advice}; once that"
        " is done, start it by hand, because its last log lines stay the same until then"
    )


def advice(death: Death, node: str, place: str, owner: Supervisor | None) -> str:
    """Return what to do about an exit cause that is a fault of its own.

    owner: k3s or RKE2, where it runs the kubelet
    """
    return _of_owner(death, owner) or cure(death.cause, death.what, node, place)


def cure(cause: str, subject: str, node: str, place: str) -> str:
    """Return what to do about a cause that is a fault of its own.

    subject: what the log line names, or ""; place: the file in which it is configured, or "".
    """
    if cause == exit_cause.UNKNOWN_FLAG:
        return _unknown_flag(subject or "the flag", place)
    if cause == exit_cause.REMOVED_GATE:
        return (
            f"take {subject or 'the gate'} out of featureGates or --feature-gates in"
            f" {place or 'its configuration file or its command line'}"
        )
    if cause == exit_cause.BAD_CONFIGURATION:
        return _bad_configuration(subject)
    if cause == exit_cause.CLIENT_CERTIFICATE:
        return credentials(node)
    if cause == exit_cause.STATE_FILE:
        return emptied(subject.partition(": ")[0], node)
    if cause in _ADVICE:
        return _ADVICE[cause]
    return _kernel_defaults(subject)


def _unknown_flag(flag: str, place: str) -> str:
    path = place or (
        "the file where systemctl cat kubelet and its EnvironmentFile= show it"
        " (/var/lib/kubelet/kubeadm-flags.env, /etc/default/kubelet, with kubespray"
        f" {SPRAYED}kubelet.env)"
    )
    return (
        f"take {flag} out of {path}; what it set has often become a field of the kubelet's"
        " configuration file"
    )


def _bad_configuration(subject: str) -> str:
    path = "its configuration file, or the flag that is named"
    if subject.startswith("/"):
        path = subject.partition(": ")[0]
    return f"correct {path}; {_writer(path)}, and takes back what was set on this node alone"


def _kernel_defaults(subject: str) -> str:
    names = [name for name in subject.split(", ") if name in WANTED]
    values = " ".join(f"{name.replace('/', '.')}={WANTED[name]}" for name in names)
    return (
        f"set {values or 'the values that its last log lines expect'}"
        " in a file of /etc/sysctl.d, and sysctl --system; or protectKernelDefaults: false in its"
        " configuration"
    )


def credentials(node: str) -> str:
    """Return how a kubelet gets a client certificate again."""
    return (
        "on a control-plane node: kubeadm kubeconfig user --org system:nodes --client-name"
        f" system:node:{node} > kubelet.conf; put that in the place of the node's kubelet.conf"
        " (keep the old one and /var/lib/kubelet/pki/kubelet-client* aside); where that node has"
        " no CA's key, or the node never joined, kubeadm join with a new token"
    )


def emptied(path: str, node: str) -> str:
    """Return how a file that was lost is restored, by its contents."""
    name = path.rpartition("/")[2]
    if name in ("kubelet.conf", "kubelet-client-current.pem") or name.startswith("kubelet-client"):
        return credentials(node)
    if name.startswith("kubelet-server"):
        return (
            f"move {path} away: it makes another, and its request may have to be approved (kubectl"
            " get csr)"
        )
    if name.endswith("_state"):
        return f"drain the node, and move {path} away: it writes another"
    if name.endswith((".crt", ".pem")):
        return f"copy {path} from a node of the same cluster"
    return (
        f"write {path} again: {_writer(path)}; else copy that of a like node, and compare what is"
        " set for each node alone"
    )


def _writer(path: str) -> str:
    """Return which tool writes this configuration.

    Kubespray's is elsewhere, and the file that kubeadm would write is not read there.
    """
    if path.startswith(SPRAYED):
        return (
            "kubespray's cluster.yml with --tags node and --limit of this host writes it from the"
            " inventory"
        )
    return (
        "with kubeadm, `kubeadm upgrade node phase kubelet-config`, which asks the API, writes"
        " /var/lib/kubelet/config.yaml"
    )
