# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Word why a control-plane component ended, and what is done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....module_utils.shared import quantity
from ...evidence.document import ends, one_line
from ...models import component_restart
from ...models.cluster import Host
from ...models.component_restart import End
from ...models.control_plane import FileUse
from ...models.moments import moment
from ...models.pressure import size
from ...models.result import EvidenceRef
from ...parsers import component_log
from ...parsers.component_log import Telling

_BESIDE = {
    "runtime": "the runtime's journal",
    "kernel": "the kernel's journal",
    "kubelet": "why the kubelet stopped it at its own start, which it logs from --v=2 on",
    "log": "its log",
    "containers": "the ended container, which the runtime has no more",
}
_REACHED, _EMPTY = "it reached its memory limit", "the machine had no memory left"
# 64Mi: one that people read
_WITH_UNIT = re.compile(r"[0-9.]+[KMGTPE]i?")
_PROBES = ("liveness", "startup")
_SHORT = {
    component_restart.EXIT: "its own exit",
    component_restart.LOCK: "its lock was lost",
    component_restart.PROBE: "the kubelet's probe",
    component_restart.OOM: "the OOM killer",
    component_restart.KILLED: "SIGKILL",
    component_restart.TERMINATED: "SIGTERM of an operator or a program",
    component_restart.MANIFEST: "a manifest that is new, was changed or was put back",
    component_restart.DEFINITION: "a kubelet that reads another definition from its manifest",
    component_restart.REMOVED: "its member was removed from the etcd cluster",
    component_restart.REBOOT: "the machine booted",
    component_restart.RUNTIME: "the runtime was restarted",
    component_restart.SANDBOX: "its pod got another sandbox",
    component_restart.UNKNOWN: "not known",
}


def short(end: End) -> str:
    """Return the reason of an end in a few words, for a list."""
    excuse = ""
    if end.excused:
        excuse = f" (follows: {end.excused})"
    return f"{_SHORT[end.kind]}{excuse}{at(end)}"


def at(end: End, word: str = "at") -> str:
    """Return when it ended, for a summary."""
    time = moment(end.at)
    if time is None:
        return ""
    return f" {word} {time:%Y-%m-%dT%H:%M:%SZ}"


def clause(end: End, use: FileUse) -> str:
    """Return why a component ended, as a clause."""
    words = _CLAUSES.get(end.kind)
    if words is None:
        return f"{_SHORT[end.kind]}{at(end)}"
    return words(end, use)


def _exit(end: End, use: FileUse) -> str:
    code = ""
    if end.code is not None:
        code = f" with exit code {end.code}"
    return f"it exited by itself{at(end)}{code}"


def _lock(end: End, use: FileUse) -> str:
    return f"it could not renew its lock and exited{at(end)}"


def _probe(end: End, use: FileUse) -> str:
    urls = _asked(end, use)
    if not end.probe:
        return (
            f"the kubelet stopped it{at(end)} and kept its pod, which it does where a"
            f" {_probes(use)} probe fails{urls}"
        )
    output = one_line(end.output, 200)
    answer = ""
    if output:
        answer = f": {output}"
    return f"the kubelet stopped it{at(end)}, because its {end.probe} probe failed{urls}{answer}"


def _probes(use: FileUse) -> str:
    """Return which probes of the manifest may stop the container."""
    kinds = [kind for kind in _PROBES if f"{kind}Probe" in dict(use.probes)]
    return " or ".join(kinds or _PROBES)


def _asked(end: End, use: FileUse) -> str:
    """Return what the probe asks, by the manifest."""
    names = [f"{kind}Probe" for kind in _PROBES]
    if end.probe:
        names = [f"{end.probe}Probe"]
    urls = [f"{name} {url}" for name, url in use.probes if name in names]
    if not urls:
        return ""
    return f" ({one_line(', '.join(urls), 300)})"


def _oom(end: End, use: FileUse) -> str:
    limit = _limit(end, use)
    reason = ""
    if end.of_group is False:
        reason = f": {_EMPTY}"
    elif end.of_group and limit:
        reason = f": {_REACHED} of {limit}"
    elif end.of_group:
        reason = f": {_REACHED}"
    elif limit:
        reason = f" (its memory limit: {limit})"
    guess = ""
    if end.by_name:
        guess = (
            "; only the name of the killed process shows that, because the kernel's line names no"
            " control group"
        )
    return f"the kernel's OOM killer ended it{at(end)}{reason}{guess}"


def _limit(end: End, use: FileUse) -> str:
    """Return the memory limit of the container, or an empty text."""
    if end.limit:
        return _bytes(end.limit)
    if not use.memory_limit or _WITH_UNIT.fullmatch(use.memory_limit):
        return one_line(use.memory_limit, 40)
    count = quantity.parse(use.memory_limit)
    if count is None or count <= 0:
        return ""
    return _bytes(int(count))


def _bytes(count: int) -> str:
    return size(count).replace(".0 ", " ")


def _removed(end: End, use: FileUse) -> str:
    return f"its member was removed from the etcd cluster, and it exited{at(end)}"


def _killed(end: End, use: FileUse) -> str:
    return (
        f"another process killed it (SIGKILL){at(end)}: neither the kubelet nor the kernel's OOM"
        " killer did"
    )


def _unknown(end: End, use: FileUse) -> str:
    code = ""
    if end.code is not None:
        code = f" with exit code {end.code}"
    unread = ", ".join(_BESIDE.get(name, one_line(name, 120)) for name in end.unread)
    if unread:
        unread = f" (not read: {unread})"
    word = "at"
    if "containers" in end.unread:  # only the start of the next container is known
        word = "before"
    return f"it ended{at(end, word)}{code}, and why is not known{unread}"


_CLAUSES = {
    component_restart.EXIT: _exit,
    component_restart.LOCK: _lock,
    component_restart.PROBE: _probe,
    component_restart.REMOVED: _removed,
    component_restart.OOM: _oom,
    component_restart.KILLED: _killed,
    component_restart.UNKNOWN: _unknown,
}


def advice(end: End, use: FileUse, node: str | None) -> str:
    """Return what an operator does about an end, an empty text where the log tells it."""
    pod = f"{use.pod.rpartition('/')[2]}-{node or 'NODE'}"
    if end.kind == component_restart.OOM:
        return (
            f"give it more memory: raise or remove resources.limits.memory in {use.path}, or, where"
            " the machine itself had none left, find what took it (journalctl -k | grep -i oom,"
            " kubectl top pod -A, free -m); see too why it needs so much (large lists, many"
            " objects)"
        )
    if end.kind == component_restart.PROBE:
        return (
            f"compare the probes of {use.path} with the address and the port at which it listens,"
            " and see why it answers late or with an error: its own log (crictl logs of the former"
            " container), the load of the machine, and of kube-apiserver etcd too; the last answers"
            f" of the probe: kubectl -n kube-system get events --field-selector"
            f" involvedObject.name={pod},reason=Unhealthy"
        )
    if end.kind == component_restart.REMOVED:
        return (
            "compare etcdctl member list of another member. If this node is to be a member again,"
            " move its data folder away, then etcdctl member add, and start it with"
            " --initial-cluster-state=existing (kubeadm join --control-plane does that); else"
            f" remove {use.path}"
        )
    if end.kind == component_restart.KILLED:
        return (
            "find who sends SIGKILL: a user or a script (history, cron), earlyoom or systemd-oomd"
            " (journalctl -u earlyoom -u systemd-oomd), a security agent"
        )
    if end.kind in (component_restart.SANDBOX, component_restart.RUNTIME):
        return (
            "see why the runtime lost it: journalctl of the runtime and of the kubelet at that"
            " time, and whether both use the same cgroup driver (KM524)"
        )
    if end.kind == component_restart.UNKNOWN:
        return (
            f"see crictl ps -a --name {use.component} and crictl inspect of the ended container"
            " (exitCode, reason), the end of its log, and journalctl of kubelet, runtime and kernel"
            " at that time"
        )
    return ""


def message(line: str) -> str:
    """Return the message of a klog line, bounded."""
    text = re.sub(r"^[IWEF]\d{4} \S+ +\d+ [\w.-]+:\d+\] ", "", line)
    return ends(text, 240)


def beside(end: End | None, telling: Telling) -> str:
    """Return what its log tells in addition to why it ended, for a summary.

    The log of a program that was killed knows nothing of it, and one that was asked to end only
    says that it ends.
    """
    if end is None or end.kind in (component_restart.OOM, component_restart.KILLED):
        return ""
    if end.kind == component_restart.PROBE and component_log.is_information(telling.line):
        return ""
    text = message(telling.line)
    if not text:
        return ""
    return f"; its log: {text}"


def proofs(host: Host, end: End) -> Iterator[EvidenceRef]:
    """Yield what tells the end."""
    if end.proof is not None:
        source, text = end.proof
        yield EvidenceRef("log", host.host, object=source, text=one_line(text, 600))
