# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exit cause of a kubelet, from the last lines of its journal and systemd's unit. Pure.

Only a line that its process does not survive is searched for a cause (unit_journal): the same
words stand in harmless lines. "too many open files" is a watch of a CA file that is tried again,
"unrecognized feature gate" a warning of some distributions, "address already in use" the healthz
server, "Invalid kernel flag" a flag that the kubelet then sets, "using lenient decoding as strict
decoding failed" no failure.

`m` marks texts measured with kubelets v1.18.4 or v1.36.3, by running them or in their strings;
others name their source. What none of them knows is read with the table of all texts that kubelets
have (parsers/message_form.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....module_utils.shared import systemd_results
from ....module_utils.shared.text import without_middle
from ...parsers import (
    go_error,
    manager_error,
    message_class,
    message_form,
    message_table,
    systemd_unit,
    unit_journal,
)
from ...parsers.message_form import Reading
from ...parsers.systemd_unit import Unit
from ...parsers.unit_journal import Last, Start

SWAP, UNKNOWN_FLAG, REMOVED_GATE, BAD_CONFIGURATION = (
    "swap",
    "unknown_flag",
    "removed_gate",
    "bad_configuration",
)
CPU_MANAGER_STATE, MEMORY_MANAGER_STATE, STATE_FILE = (
    "cpu_manager_state",
    "memory_manager_state",
    "state_file",
)
CLIENT_CERTIFICATE, CGROUP_V1, KERNEL_DEFAULTS, CGROUP_DRIVER = (
    "client_certificate",
    "cgroup_v1",
    "kernel_defaults",
    "cgroup_driver",
)
RUNTIME, INOTIFY, LIMITS, PORT_IN_USE, NODE_NAME = (
    "runtime",
    "inotify",
    "limits",
    "port_in_use",
    "node_name",
)
DISK_FULL, OOM_KILL, EXECUTABLE, UNKNOWN = "disk_full", "oom_kill", "executable", "unknown"
CGROUP, STEP, RESOURCES = "cgroup", "step", "resources"
CONTROLLER, ORPHAN, KERNEL_FILE = "controller", "orphan", "kernel_file"
UNIT_CGROUPS = "unit_cgroups"
SUPERVISOR = "supervisor"  # the configuration of k3s or RKE2, which runs the kubelet
# Causes that the table tells: its classes, where no cause above is one of them.
CREDENTIAL, API, DEVICE, DISK, PORT, KERNEL = (
    "credential",
    "api",
    "device",
    "disk",
    "port",
    "kernel",
)
MODULE, STATE, DEPENDENCY, NETWORK, SHORTAGE, DEFECT = (
    "module",
    "state",
    "dependency",
    "network",
    "shortage",
    "defect",
)
OF_CLASS = {
    "configuration": BAD_CONFIGURATION,
    "credential": CREDENTIAL,
    "api": API,
    "cgroup": CGROUP,
    "device": DEVICE,
    "disk": DISK,
    "port": PORT,
    "kernel": KERNEL,
    "module": MODULE,
    "runtime": RUNTIME,
    "state_file": STATE,
    "dependency": DEPENDENCY,
    "network": NETWORK,
    "resources": SHORTAGE,
    message_table.DEFECT: DEFECT,
}
# Causes that another start need not meet again: what did not answer may do so now, memory may be
# there, and what systemd itself refuses is asked again (unit_start).
PASSING = frozenset(
    (
        *(UNKNOWN, OOM_KILL, STEP, EXECUTABLE, RESOURCES, RUNTIME),
        *(OF_CLASS[meaning] for meaning in message_class.PASSING),
    )
)
KUBELET, K3S = "kubelet", "k3s"
# What k3s writes before the error of its kubelet; any other is its own, or that of a server in it.
_OF_KUBELET = "kubelet exited: "

# How kubelite of MicroK8s, k3s and RKE2 tell of another component that runs in their process.
_OF_OTHERS = re.compile(
    r"(?:kube-?)?(?P<name>api[ -]?server|scheduler|controller[ -]manager|proxy"
    r"|cloud[ -]controller[ -]manager|etcd|flannel) exited:? ",
    re.IGNORECASE,
)
# kubelite, cmd/kubelite/app/daemons/daemon.go of MicroK8s
_KUBELITE = re.compile(r"^Kubelet exited:? ")
# What any component of the process may find on the machine.
_OF_MACHINE = frozenset((DISK, DISK_FULL, CGROUP, INOTIFY, KERNEL, SHORTAGE))
_COMPONENTS = {
    "apiserver": "kube-apiserver",
    "scheduler": "kube-scheduler",
    "controllermanager": "kube-controller-manager",
    "proxy": "kube-proxy",
}
# What is said of a configuration, a flag or a certificate of a kubelet alone.
_OF_OWN = frozenset((UNKNOWN_FLAG, REMOVED_GATE, BAD_CONFIGURATION, CLIENT_CERTIFICATE, STATE_FILE))

FOLLOW = 20  # lines that other goroutines may still write between the last one and the exit
# Statuses of systemd's own, before the program begins: no kubelet ends with them.
_STATUS = {
    **dict.fromkeys(systemd_results.STEPS, STEP),
    203: EXECUTABLE,
    205: LIMITS,
}

# (cause, text, subject). A text begins where the line does, or behind a colon, a comma or a
# bracket; "(?P<q…>\d+)" stands for a quoted part.
_TEXTS = tuple(
    (cause, re.compile(r"(?:^|[:,] |\[)(?:" + text + ")"), subject)
    for cause, text, subject in (
        # m both; "Running" up to 1.15 (kubernetes-facts 7, k/k#50373, AKSFlexNode#67)
        (SWAP, r"[Rr]unning with swap on is not supported", ""),
        # m 1.36.3; from 1.35 on by default (OpenShell#360, k0s#7264)
        (CGROUP_V1, r"kubelet is configured to not run on a host using cgroup v1", ""),
        # m both; with 1.22 behind "Failed to parse kubelet flag"
        (UNKNOWN_FLAG, r"unknown flag: (?P<w>--[\w.-]+)", "{w}"),
        (UNKNOWN_FLAG, r"unknown shorthand flag: '.' in (?P<w>-\S+)", "{w}"),
        (BAD_CONFIGURATION, r'invalid argument "(?P<q1>\d+)" for "(?P<q2>\d+)" flag', "{q2}={q1}"),
        (
            BAD_CONFIGURATION,
            r'(?:flag needs an argument|bad flag syntax|unknown command):? (?:"(?P<q1>\d+)"'
            r"|(?P<w>\S+))",
            "{q1}{w}",
        ),
        (BAD_CONFIGURATION, r"Unknown command", ""),
        # m both: klog in 1.18.4, "command failed" in 1.36.3, and there a panic where it stands in
        # the configuration's file
        (REMOVED_GATE, r"unrecognized feature gate: (?P<w>[\w.-]+)", "{w}"),
        # m 1.36.3
        (
            REMOVED_GATE,
            r"cannot set feature gate (?P<w>[\w.-]+) to (?:true|false), feature is locked",
            "{w}",
        ),
        # m both: what a power cut leaves of a configuration
        (
            STATE_FILE,
            (
                r'failed to load Kubelet config file \S+ error kubelet config file "(?P<q1>\d+)"'
                r" was empty"
            ),
            "{q1}",
        ),
        # m both; older ones "Invalid" (k/k#66241 of 2018; microk8s#3091 with 1.22)
        (
            KERNEL_DEFAULTS,
            r"[Ii]nvalid kernel flag: (?P<w>\S+), expected value: \d+, actual value: -?\d+",
            "{w}",
        ),
        # m both; kubernetes-facts 5
        (
            CPU_MANAGER_STATE,
            r'please drain this node and delete the CPU manager checkpoint file "(?P<q1>\d+)"',
            "{q1}",
        ),
        (
            MEMORY_MANAGER_STATE,
            r'please drain this node and delete the memory manager checkpoint file "(?P<q1>\d+)"',
            "{q1}",
        ),
        # k/k#135711, a panic; m 1.36.3 "pod resource information checkpoint file"
        (
            STATE_FILE,
            (
                r"please drain this node and delete (?:the )?pod [a-z ]{1,40}checkpoint file"
                r' "(?P<q1>\d+)"'
            ),
            "{q1}",
        ),
        # m both: the certificate is expired, unreadable or gone, and there is no token to get
        # another (k/k#98150, minikube#11966)
        (CLIENT_CERTIFICATE, r"unable to load bootstrap kubeconfig: ", ""),
        # m both (strings): a certificate store that cannot read its file, of the client or of the
        # server
        (
            CLIENT_CERTIFICATE,
            r'could not convert data from "(?P<q1>\d+)" into cert/key pair',
            "{q1}",
        ),
        (
            CLIENT_CERTIFICATE,
            r"failed to (?:load client cert|initialize client certificate manager)",
            "",
        ),
        # m 1.18.4; dockershim, up to 1.23 (k/k#89682, sealer#1447)
        (
            CGROUP_DRIVER,
            (
                r'misconfiguration: kubelet cgroup driver: "(?P<q1>\d+)" is different from docker'
                r' cgroup driver: "(?P<q2>\d+)"'
            ),
            "kubelet {q1}, docker {q2}",
        ),
        # m 1.36.3; from 1.26 on (k/website#38385)
        (
            RUNTIME,
            (
                r"validate service connection: (?:validate )?CRI v1 \w+ API (?:is not \w+ )?for"
                r' endpoint "(?P<q1>\d+)": rpc error: code = (?P<w>\w+)'
            ),
            "{q1}: {w}",
        ),
        # m 1.36.3, where the runtime does not answer in time
        (RUNTIME, r"validate service connection: context deadline exceeded", ""),
        # kubeadm#2945 with 1.24.7
        (RUNTIME, r"unable to determine runtime API version: ", ""),
        # m 1.18.4 (k/k#66457, k/k#73189, kubernetes-the-hard-way#304)
        (RUNTIME, r"failed to get docker version: ", "docker"),
        (
            RUNTIME,
            (
                r"get remote runtime typed version failed: |failed to create kubelet: rpc error:"
                r" code = "
            ),
            "",
        ),
        # k/k#58081, tarmak#756, seen with v1.18.4 and v1.36.3 (kubernetes-facts 6): instances, and
        # watches, whose end reads like that of a disk
        (INOTIFY, r"inotify_init1?: too many open files", "max_user_instances"),
        (
            INOTIFY,
            r"(?:failed to create|error creating) fsnotify watcher: too many open files",
            "max_user_instances",
        ),
        (
            INOTIFY,
            r"(?:inotify_add_watch|couldn't watch|failed to watch) \S+: no space left on device",
            "max_user_watches",
        ),
        # k/k#112364, minikube#4500
        (PORT_IN_USE, r"listen (?:tcp|udp)[46]? (?P<w>\S+): bind: address already in use", "{w}"),
        # k/k#95488, k/k#91023: mounts of cgroups that a pod left on the host
        (
            CGROUP,
            r"root container \[(?P<w>[\w.,/ -]{1,80})\] doesn't exist",
            "root container [{w}] doesn't exist: cgroups may be mounted a second time",
        ),
        # k/k#79046, k3s#335: 1.14 to 1.20; a kernel before 4.3 has no pids
        (
            CONTROLLER,
            r"[Ff]ailed to find subsystem mount for required subsystem: (?P<w>[\w,=.-]{1,40})",
            "{w}",
        ),
        # k/k#98218, up to 1.23: the static CPU manager makes a list of the runtime's containers
        (ORPHAN, r"no PodsandBox found with Id '(?P<w>[\w.-]{1,80})'", "sandbox {w}"),
        # cri-o#2632, microk8s#519: 1.14 to 1.18; systemd accounts only one of them for the unit
        (
            UNIT_CGROUPS,
            r"cpu and memory cgroup hierarchy not unified\. +cpu: (?P<w>[\w./:@-]{1,200}), memory:"
            r" (?P<v>[\w./:@-]{1,200})",
            "cpu: {w}, memory: {v}",
        ),
        # k/k#61937, k/k#96701: the errno is of the cgroup file system, and no disk is full
        (
            CGROUP,
            r"(?P<v>\w{1,40}) (?P<w>/sys/fs/cgroup\S*): (?P<x>no space left on device|cannot"
            r" allocate memory|read-only file system|permission denied"
            r"|operation not permitted|device or resource busy|no such file or directory|invalid"
            r" argument|input/output error)",
            "{v} {w}: {x}",
        ),
        # Only with the path that it is about, on a file system that is on a disk or in memory
        (
            DISK_FULL,
            r"(?:mkdir|mkdirat|open|openat|write|rename|symlink|link|create|truncate|sync|fsync"
            r"|close|copy) "
            r"(?P<w>/(?!sys/|proc/|dev/(?!shm))[^:]+): (?:no space left on device|disk quota"
            r" exceeded)",
            "{w}",
        ),
    )
)
# m both: what stands around the error of a configuration. What it names is the file and the field.
_CONFIGURATION = re.compile(
    r"(?:^|[:,] |\[)(?:failed to load [Kk]ubelet (?:config|dropin) file|failed to validate kubelet"
    r" (?:configuration|flags)|invalid configuration: |strict decoding error: "
    r"|Failed to load kubelet config file: |Failed to validate kubelet (?:configuration|flags): )"
)
# Managers whose state has a fault of its own, by what stands around or in their errors.
_OF_MANAGERS = (
    (CPU_MANAGER_STATE, re.compile(r"start cpu manager error: |\[?cpumanager\] |CPU manager")),
    (
        MEMORY_MANAGER_STATE,
        re.compile(r"start memory manager error: |\[?memorymanager\] |memory manager"),
    ),
)
_KEYS_OF_FILES = frozenset(("config", "config-dir"))
_OF_CLIENT = re.compile(
    r"client[ -](?:cert|key)|clientcert|kubelet-client|bootstrap|valid client cert", re.IGNORECASE
)
_PATH = re.compile(r"(?:^|[\s\"'=])(/[^\s\"',:;)\]]+)")
# Written before klog was structured: "Failed to start cAdvisor inotify_init: …" has no colon.
_GLUED = re.compile(r"^(Failed to start (?:ContainerManager|cAdvisor)) (?!:)")
_FILE = re.compile(
    # the error may stand between these words and the path
    r"(?:[Kk]ubelet (?:config|dropin) file,? (?:path: )?|config file |, path: (?=/|\"))"
    r'(?:"(?P<q1>\d+)"|(?P<w>(?!error\b)[^\s",]+?)(?=:?(?:[\s,]|$)))'
)
_FIELD = re.compile(
    r'KubeletConfiguration\.(?P<w>[\w.]+)|unknown field "(?P<q1>\d+)"|invalid configuration:'
    r" (?P<x>\w+) \(--|yaml: (?P<y>line \d+)"
)
_EXPIRED = re.compile(
    r"[Pp]art of the existing bootstrap client certificate(?: in (?P<w>\S+))? is expired:"
    r" (?P<x>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4})"
)
# k/k#47695 "cannot modify"; microshift#761 (1.21) "is not allowed to modify"; 1.7 did not quote the
# names
_NAME = re.compile(
    r'nodes "\d+" is forbidden: node "(?P<q1>\d+)" (?:is not allowed to|cannot) modify node'
    r' "(?P<q2>\d+)"'
)
# m 1.36.3, whose API server, since selectors distinguish nodes (beta with 1.32), does not
# even let it look whether there is such a Node
_UNSEEN = re.compile(
    r'nodes "(?P<q2>\d+)" is forbidden: User "(?P<q1>\d+)" cannot get resource "\d+" in API group'
    r' "\d+" at the cluster scope: '
    r"node '[^']{1,253}' cannot read '[^']{1,253}', only its own Node object"
)
# cAdvisor has no stats of / as long as it cannot read them, and says why beforehand.
_NO_STATS = re.compile(r"unable to find data in memory cache")
_STATS = 'Failed to update stats for container "/":'
_STATS_REASON = re.compile(r'Failed to update stats for container "/": (?P<w>[^\n]{1,400})')
_GOES_ON = ", continuing to push stats"
# A file that kernels no longer have: 6.1.54, 6.5 and later (k/k#120813).
_KERNEL_FILE = re.compile(r"(?P<w>/sys/fs/cgroup/\S{1,200}): no such file or directory")
# An address of another machine that a client waited for before the last line. What is of this
# machine itself (127.0.0.1) starts later, and never answers at first.
_DIALLED = re.compile(
    r"\bdial tcp[46]? (?P<w>(?!127\.|\[::1\])\S{3,255}:\d{1,5}): "
    r"(?P<x>i/o timeout|connect: [a-z ]{4,40}[a-z])"
)
# What a kubelet says of addresses of pods and of images, which do not keep it from its own work.
_OF_PODS = re.compile(r"[Pp]robe|[Pp]ull|[Ii]mage|[Pp]ort ?forward|[Ll]ifecycle")
_USER = "system:node:"
# What a server of k3s or RKE2 answers to a token that is not its own.
_REFUSED = re.compile(
    r"https://\S{1,400}/v1-(?:k3s|rke2)/\S{1,200}: (?:401 Unauthorized|403 Forbidden)\Z"
)
TOKEN = ("token", "token-file", "agent-token", "agent-token-file")
_NUMBER = re.compile(r'"(\d{1,5})"')


@dataclass(frozen=True)
class Death:
    """Exit cause of a kubelet.

    cause: a constant above
    what: the flag, gate, file, port … if any
    line: the line that shows it
    certain: whether the process ended within the same start, with the status that such a line ends
    with, and systemd's unit shows the same
    final: the same, also where the line names no cause
    message: the part of the line that the table of messages tells the cause by, if it does
    keys: the keys of the configuration that it names, one of which is meant; of an unknown cause
    the component of the same process that ended, whose words the message is
    form: the form of that part
    """

    cause: str
    what: str = ""
    line: str = ""
    certain: bool = False
    final: bool = False
    message: str = ""
    keys: tuple[str, ...] = ()
    form: str = ""


def death(lines: Sequence[str], unit: Unit) -> Death | None:
    """Return why this kubelet ends, by the newest start that ended, or None.

    It is None where none has ended, or where the kubelet runs without having been started again.

    lines: as `journalctl -u UNIT -o short-iso` prints them. While a newer process runs nothing is
    certain. A kubelet that runs and may not register its node is `node_name`, which does not end
    it.
    """
    starts = unit_journal.starts(lines)
    if unit.active == "inactive" and unit.result == "success":  # stopped, or never started
        return None
    if not starts:
        return _by_unit(None, unit)
    if unit.runs and starts[-1].exit is None:
        return _name(starts[-1]) or _death_before(starts, unit)
    return _death(_ended(starts), unit)


def _ended(starts: Sequence[Start]) -> Start:
    """Return the newest start, or the one before where the newest has only begun.

    The journal is read later than the state of the unit: it may show the next start already, with
    nothing but what commands of ExecStartPre wrote.
    """
    newest = starts[-1]
    has_begun = newest.exit is None and not newest.result and unit_journal.last(newest) is None
    if has_begun and len(starts) > 1 and starts[-2].exit is not None:
        return starts[-2]
    return newest


def _death_before(starts: Sequence[Start], unit: Unit) -> Death | None:
    """Return the exit cause of the start before the running one, if systemd started that again."""
    if unit.restarts == 0 or len(starts) < 2 or starts[-2].exit is None:
        return None
    return _death(starts[-2], unit)


def repeated(lines: Sequence[str], unit: Unit) -> Death | None:
    """Return the common exit cause of the last two starts that ended, if both are certain.

    It is judged by systemd's own lines about these ends: between two ends of a kubelet that is
    started again and again its unit shows the new process, so that death() is not certain.
    """
    starts = unit_journal.starts(lines)
    exits = [(start, start.exit) for start in starts if start.exit is not None]
    deaths = [
        _death(start, replace(unit, status=end[1], result=start.result))
        for start, end in exits[-2:]
    ]
    proven = [death for death in deaths if death is not None and (death.certain or death.final)]
    if len(proven) < 2 or _key(proven[0]) != _key(proven[1]):
        return None
    return proven[1]


def _key(death: Death) -> tuple[str, str]:
    """Return what two ends of the same cause have in common: their texts may have times."""
    return death.cause, death.form or death.what


def newest_death(lines: Sequence[str]) -> Death | None:
    """Return the exit cause in the newest start, whatever systemd shows of the unit now.

    A kubelet that was stopped later had ended before.
    """
    starts = unit_journal.starts(lines)
    if not starts:
        return None
    final = unit_journal.last(starts[-1])
    if final is None:
        return None
    return _by_line(final)


def of_start(start: Start, unit: Unit) -> Death | None:
    """Return the exit cause in one start, that its unit shows the end of; None of an orderly one.

    unit: what systemd shows of that end
    """
    return _death(start, unit)


def _death(start: Start, unit: Unit) -> Death | None:
    if start.exit == ("exited", 0):
        return None
    unit_death = _by_unit(start, unit)
    if unit_death is not None:
        return unit_death
    final = unit_journal.last(start)
    if final is None:
        return _name(start) or _nameless(start, unit)
    death, agrees = _with_reason(_by_line(final), start, final.text), _agrees(start, final, unit)
    return replace(death, certain=agrees and death.cause != UNKNOWN, final=agrees)


def _with_reason(death: Death, start: Start, text: str) -> Death:
    """Return an exit cause with what only the lines before the last one tell."""
    if death.cause == UNKNOWN and _NO_STATS.search(text):
        return _of_stats(start) or death
    if death.cause == CLIENT_CERTIFICATE and not death.what:
        return replace(death, what=_clean(_expired(start)))
    if death.cause == UNKNOWN and message_form.is_vague(text):
        return _unanswered(start) or death
    return death


def _unanswered(start: Start) -> Death | None:
    """Return which address did not answer, by the lines before one that tells only of a time."""
    for line in reversed(start.lines):
        dialled = _DIALLED.search(line.text)
        if dialled is not None and not _OF_PODS.search(line.raw):
            subject = _clean(f"{dialled.group('w')}: {dialled.group('x')}")
            return Death(NETWORK, subject, _clean(line.raw, 400), form=dialled.group("w"))
    return None


def _of_stats(start: Start) -> Death | None:
    """Return why a kubelet has no stats of its machine, by the lines before its last one."""
    for _line, raw in unit_journal.about(start, _STATS):
        reason = _STATS_REASON.search(raw)
        if reason is None:
            continue
        text = reason.group("w").removesuffix(_GOES_ON)
        file = _KERNEL_FILE.search(text)
        if file is not None:
            return Death(KERNEL_FILE, _clean(file.group("w")), _clean(raw, 400))
        return Death(CGROUP, _clean(text), _clean(raw, 400))
    return None


def _by_unit(start: Start | None, unit: Unit) -> Death | None:
    """Return the exit cause that systemd itself knows, or None."""
    if start is None:
        start = Start()
    line = _clean(_step_line(start), 400)
    if "oom-kill" in (unit.result, start.result):
        return Death(OOM_KILL, "", line, unit.result == "oom-kill")
    if unit.result == "resources":  # systemd came to no process, whatever an earlier one logged
        return Death(RESOURCES, "", "", True)
    failed, status = unit.result in systemd_unit.ENDED_ITSELF, _exit_status(start)
    if status is not None:
        return _of_status(status, line, failed and unit.status == status)
    if start.exit is None and failed:
        return _of_status(unit.status, line, True)
    return None


def _exit_status(start: Start) -> int | None:
    if start.exit is not None and start.exit[0] == "exited":
        return start.exit[1]
    return None


def _of_status(status: int | None, line: str, certain: bool) -> Death | None:
    """Return the exit cause of one of systemd's own statuses, or None."""
    if status is None or status not in _STATUS:
        return None
    return Death(_STATUS[status], _step(status), line, certain)


def _step_line(start: Start) -> str:
    lines = (line.raw for line in start.lines if "Failed at step " in line.text)
    return next(lines, start.exit_line)


def _step(status: int) -> str:
    """Return the step that systemd could not make, as it writes it.

    It is empty for those that have a cause of their own.
    """
    if _STATUS[status] != STEP:
        return ""
    if status not in systemd_results.STEPS:
        return str(status)
    return f"{status}/{systemd_results.STEPS[status][0]}"


def _nameless(start: Start, unit: Unit) -> Death | None:
    """Return the end of a kubelet without a last log line: killed, or silent."""
    line = unit_journal.last_error(start) or _last_line(start)
    if start.exit is not None:
        kind = "signal"
        if start.exit[0] == "exited":
            kind = "status"
        return Death(UNKNOWN, f"{kind} {start.exit[1]}", _clean(line, 400))
    if unit.result in ("", "success"):
        return None
    return Death(UNKNOWN, unit.result, _clean(line, 400))


def _last_line(start: Start) -> str:
    if start.lines:
        return start.lines[-1].raw
    return start.exit_line


def _by_line(final: Last) -> Death:
    """Return the exit cause by the last line of a start alone.

    A line of another component in the same process tells nothing of the kubelet's own files.
    """
    if unit_journal.is_logrus(final.line):
        death = _of_any_component(final)
    else:
        death = _of_any_component(replace(final, text=_KUBELITE.sub("", final.text)))
        other = None if death.cause in _OF_MACHINE else _of_component(final)
        if other is not None:
            return other
    if death.cause in _OF_OWN and _OF_OTHERS.match(final.text):
        return Death(UNKNOWN, "", death.line)
    return death


def _of_component(final: Last) -> Death | None:
    """Return that another component of the same process ended, with what it says of that."""
    named = _OF_OTHERS.match(final.text)
    word = re.sub(r"[ -]", "", named.group("name").lower()) if named is not None else ""
    if named is None or word not in _COMPONENTS:
        return None
    message = _clean(_unmasked(final.text[named.end() :], final.quoted), 300)
    component = _COMPONENTS[word]
    form = f"{component}: {message}"
    return Death(
        UNKNOWN, "", _clean(final.line, 400), message=message, keys=(component,), form=form
    )


def _of_any_component(final: Last) -> Death:
    line, table = _clean(final.line, 400), KUBELET
    if unit_journal.is_logrus(final.line) and not final.text.startswith(_OF_KUBELET):
        table = K3S
        supervisor = _of_supervisor(final, line)
        if supervisor is not None:
            return supervisor
    cause, subject = _cause(final)
    if cause != UNKNOWN:
        return Death(cause, _clean(subject), line)
    text = _GLUED.sub(r"\1: ", final.text)
    reading = message_form.read(_unmasked(text, final.quoted), table)
    is_configuration = _CONFIGURATION.search(text) is not None
    if reading is not None and not (is_configuration and reading.meaning == "configuration"):
        return _by_table(reading, line)
    if not is_configuration:
        return Death(UNKNOWN, "", line)
    return _of_configuration(final, text, reading, line)


def _of_supervisor(final: Last, line: str) -> Death | None:
    """Return that k3s or RKE2 refuses its own configuration, or None."""
    text = _unmasked(final.text, final.quoted)
    if _REFUSED.search(text) is not None:
        return Death(SUPERVISOR, _clean(f"token: {text}"), line, message=_clean(text), keys=TOKEN)
    reading = message_form.read(text, K3S)
    if reading is None or reading.meaning != "configuration":
        return None
    return replace(_by_table(reading, line), cause=SUPERVISOR)


def _of_configuration(final: Last, text: str, reading: Reading | None, line: str) -> Death:
    """Return the exit cause by a line about a configuration, with its file and field."""
    file, field = (_named(part.search(text), final.quoted) for part in (_FILE, _FIELD))
    subject = _clean(": ".join(filter(None, (file, field))))
    if reading is None:
        return Death(BAD_CONFIGURATION, subject, line)
    subject = subject or _clean(reading.text)
    keys = tuple(key for key in reading.key.split() if key not in _KEYS_OF_FILES)
    if field and " " not in field:
        keys = (field,)
    return Death(
        BAD_CONFIGURATION,
        subject,
        line,
        message=_clean(reading.text, 300),
        keys=tuple(map(_clean, keys)),
        form=f"{reading.chain[-1:]}{subject}",
    )


def _by_table(reading: Reading, line: str) -> Death:
    """Return the exit cause by the meaning of the last line."""
    cause, message = OF_CLASS[reading.meaning], _clean(reading.text, 300)
    keys = tuple(_clean(key) for key in reading.key.split())
    subject = message
    if reading.error and reading.error not in _clean(message):
        subject = f"{_clean(message, 100)}… {reading.error}"
    if cause == STATE:
        cause = _manager(reading)
    elif cause == CREDENTIAL and _OF_CLIENT.search(go_error.unquoted(reading.text)):
        cause = CLIENT_CERTIFICATE
        path = _PATH.search(reading.text)
        subject = path.group(1) if path else message
    elif cause == BAD_CONFIGURATION and len(keys) == 1:
        subject = f"{keys[0]}: {message}"
    form = "|".join((reading.meaning, *reading.chain[-1:]))
    return Death(cause, _clean(subject), line, message=message, keys=keys, form=form)


def _manager(reading: Reading) -> str:
    """Return whose state a kubelet refuses."""
    texts = (*reading.chain, reading.text)
    managers = (cause for cause, words in _OF_MANAGERS if any(words.search(text) for text in texts))
    return next(managers, STATE)


def _unmasked(text: str, quoted: Sequence[str]) -> str:
    """Return a text with its quoted parts."""
    return _NUMBER.sub(lambda number: f'"{_part(number.group(1), quoted)}"', text)


def _cause(final: Last) -> tuple[str, str]:
    """Return (cause, what it names) of the last line of a start, by the measured texts."""
    text = _GLUED.sub(r"\1: ", final.text)
    setting = manager_error.meant(text, final.quoted)
    if setting is not None:
        return BAD_CONFIGURATION, setting
    for cause, pattern, template in _TEXTS:
        match = pattern.search(text)
        if match is None:
            continue
        if cause == KERNEL_DEFAULTS:
            return cause, ", ".join(sorted({flag.group("w") for flag in pattern.finditer(text)}))
        subject = template.format(**_values(match, final.quoted))
        # the server's certificate is the kubelet's own: it makes another where the file is gone
        if cause == CLIENT_CERTIFICATE and "kubelet-server" in subject:
            return STATE_FILE, subject
        return cause, subject
    return UNKNOWN, ""


def _values(match: re.Match[str], quoted: Sequence[str]) -> dict[str, str]:
    return {name: _value(name, value or "", quoted) for name, value in match.groupdict().items()}


def _value(group: str, text: str, quoted: Sequence[str]) -> str:
    if group.startswith("q"):
        return _part(text, quoted)
    return text


def _agrees(start: Start, final: Last, unit: Unit) -> bool:
    """Return whether the process ended in the way that such a line has."""
    if not final.own or final.followed > FOLLOW or unit.result not in systemd_unit.ENDED_ITSELF:
        return False
    return start.exit == ("exited", final.status) and unit.status == final.status


def _expired(start: Start) -> str:
    """Return the end of the client certificate's time, from the lines before the last one."""
    for line, _raw in unit_journal.about(start, "existing bootstrap client certificate"):
        match = _EXPIRED.search(unit_journal.masked(line.get("err") or line.text)[0])
        if match:
            return ": ".join(filter(None, (match.group("w"), f"expired {match.group('x')}")))
    return ""


def _name(start: Start) -> Death | None:
    """Return the API server's refusal of the name, where the certificate is another node's."""
    names = misnamed(start)
    if names is None:
        return None
    return Death(NODE_NAME, f"certificate of {names[0]}, node {names[1]}", names[2])


def misnamed(start: Start) -> tuple[str, str, str] | None:
    """Return (node of the certificate, refused name, line) of a refused registration, or None."""
    for line, raw in unit_journal.about(start, "register"):
        if line.message.startswith("Successfully registered node"):
            return None
        if line.message.startswith("Unable to register node"):
            names = _refused_names(line.get("err") or line.text)
            if names:
                return (*names, _clean(raw, 400))
    return None


def _refused_names(error: str) -> tuple[str, str] | None:
    text, quoted = unit_journal.masked(error)
    match = _NAME.search(text) or _UNSEEN.search(text)
    if match is None:
        return None
    user, node = _part(match.group("q1"), quoted), _part(match.group("q2"), quoted)
    return _clean(user.removeprefix(_USER)), _clean(node)


def _named(match: re.Match[str] | None, quoted: Sequence[str]) -> str:
    if match is None:
        return ""
    groups = ((name, value) for name, value in match.groupdict().items() if value)
    return next((_value(name, value, quoted) for name, value in groups), "")


def _part(number: str, quoted: Sequence[str]) -> str:
    """Return the quoted part of this number, or "" without one."""
    if not number or len(number) >= 6:
        return ""
    return next(iter(quoted[int(number) :][:1]), "")


def _clean(text: str, longest: int = 200) -> str:
    """Return one line of printable characters for a report."""
    line: str = without_middle("".join(map(_printable, text)).strip(), longest)
    return line


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return " "
