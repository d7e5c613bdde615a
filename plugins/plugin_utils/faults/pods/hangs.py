# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM607: check for mounts that do not answer, and processes that cannot end because of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.hangs import Hangs, RemoteMount, SilentDevice, Task
from ...evidence.answers.node.system import System
from ...evidence.document import one_line
from ...models import remote_mounts
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, node_check, present, unknown

SHOWN = 5
# Where a process waits for a server, a program or a file system that is frozen. A process that
# waits for a busy disk is in others (io_schedule, folio_wait_bit).
_REMOTE = re.compile(
    r"^_*(?:rpc_|nfs|cifs|smb|ceph|fuse_|request_wait_answer|p9_|v9fs|gluster|sb_start|"
    r"percpu_rwsem_wait|percpu_down_write|wait_on_freeze|vfs_freeze)",
)
# Each mount of a new container puts itself on the kernel's list of what gives memory back. Who
# walks through that list for the cgroups of all containers holds its lock.
_SHRINKERS = re.compile(r"^_*(?:(?:un)?register_shrinker|prealloc_shrinker|shrink_slab)")
STARTERS = ("runc", "crun", "containerd-shim", "conmon", "mount", "umount", "systemd", "kubelet")
# Each command of LVM opens all disks that its filter lets through.
_LVM = re.compile(r"lvm|(?:pv|vg|lv)(?:s|scan|create|remove|change|display|extend|reduce|resize)")
MANY = 2  # of them; one may have its turn in a moment
_SERVER = (
    "bring the server back, or the program that serves the mount: the processes go on by"
    " themselves then; where it is gone for good, umount -f, then umount -l of the mount, and a"
    " reboot for what still waits"
)


@node_check(
    "KM607",
    "Mounts do not answer, or processes cannot end",
    severity="warning",
    applies="hosts that answer",
    needs=("hangs", "system"),
    tier="deep",
    sooner=True,
)
def hanging(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM607: report dead mounts and silent disks, and processes that wait for what is away."""
    missing = host.missing("hangs")
    if missing:
        yield unknown(*missing)
        return
    answer = contract.answer(document, Hangs)
    hits = list(_hits(host, answer, contract.answer(document, System).cgroup or ""))
    yield present(*hits) if hits else CheckResult()


def _hits(host: Host, answer: Hangs, cgroup: str) -> Iterator[Detection]:
    """Yield what hangs, with what it waits for."""
    dead = list(filter(remote_mounts.is_silent, answer.mounts))
    failed = list(filter(remote_mounts.reason, answer.mounts))
    locked = [task for task in answer.tasks if _is_locked(task)]
    tasks = _waiting(answer, locked)
    if dead or tasks:
        yield _hit(host, dead, answer.devices if tasks else (), tasks)
    if failed:
        yield _failed(host, failed)
    if len(locked) >= MANY:
        yield _locked(host, locked, cgroup)
    commands = [task for task in answer.tasks if _LVM.fullmatch(task.name) and task not in tasks]
    if len(commands) >= MANY:
        yield _of_lvm(host, commands)


def _waiting(answer: Hangs, locked: Sequence[Task]) -> list[Task]:
    """Return the processes that wait for a server, or that may wait for a silent disk."""
    if answer.devices:
        return [task for task in answer.tasks if task not in locked]
    return [task for task in answer.tasks if _REMOTE.match(task.wchan)]


def _hit(
    host: Host,
    dead: Sequence[RemoteMount],
    devices: Sequence[SilentDevice],
    tasks: Sequence[Task],
) -> Detection:
    clauses = _clauses(dead, devices, tasks)
    return Detection(
        f"{' and '.join(clauses)}; pods that use them do not start or end, and a kubelet"
        " or runtime that touches them hangs",
        (
            *(_answer(host, item) for item in dead[:SHOWN]),
            *(_counters(host, item) for item in devices[:SHOWN]),
            *(_proof(host, task) for task in tasks[:SHOWN]),
        ),
        _remedy(dead, devices),
        host=host.host,
        node=host.node,
    )


def _failed(host: Host, mounts: Sequence[RemoteMount]) -> Detection:
    """Report mounts that answer with an error, because nothing serves them any more."""
    named = and_others([_with_volume(mount) for mount in mounts])
    return Detection(
        f"has mounts that are dead and still there: {named}; what reads them gets that error, and"
        " containers that use them do not start",
        tuple(_error(host, mount) for mount in mounts[:SHOWN]),
        _remedy_of_failed(mounts),
        host=host.host,
        node=host.node,
        component="mounts",
    )


def _with_volume(mount: RemoteMount) -> str:
    """Return a dead mount with its volume and its error."""
    parts = [remote_mounts.described(mount), remote_mounts.volume(mount)]
    text = ", ".join(part for part in parts if part)
    return f"{text}: {remote_mounts.reason(mount)}"


def _error(host: Host, mount: RemoteMount) -> EvidenceRef:
    path = one_line(mount.point, 300)
    return EvidenceRef("file", host.host, path=path, text=f"statvfs: {mount.error}")


def _remedy_of_failed(mounts: Sequence[RemoteMount]) -> str:
    """Return what takes dead mounts away, and what has to be looked at first."""
    paths = [remote_mounts.in_shell(mount) for mount in mounts[:SHOWN]]
    first = "see that the server of the file system is back"
    if any(remote_mounts.is_unserved(mount) for mount in mounts):
        first = (
            "see why the program that served them ended (the pod of the volume's driver was started"
            " again or reached its memory limit), and that it runs"
        )
    return (
        f"{first}; on the node umount -l {' '.join(dict.fromkeys(paths))}, then delete the pods"
        " that use them, so that the driver mounts the volumes again"
    )


def _clauses(
    dead: Sequence[RemoteMount], devices: Sequence[SilentDevice], tasks: Sequence[Task]
) -> list[str]:
    """Return what does not answer and what waits, for a summary."""
    parts = []
    if dead:
        silent = and_others([remote_mounts.described(item) for item in dead])
        parts.append(f"does not get an answer from {silent}")
    if devices:
        named = and_others([_device(item) for item in devices])
        parts.append(f"waits for disks that complete no request: {named}")
    if tasks:
        names = and_others([f"{one_line(task.name, 64)} (pid {task.pid})" for task in tasks])
        parts.append(f"has processes in state D: {names}")
    return parts


def _answer(host: Host, mount: RemoteMount) -> EvidenceRef:
    text = f"no answer: {remote_mounts.described(mount)}"
    return EvidenceRef("file", host.host, path=one_line(mount.point, 300), text=text)


def _remedy(dead: Sequence[RemoteMount], devices: Sequence[SilentDevice]) -> str:
    """Return what brings back what does not answer: a suspended disk, a lost one, a server."""
    suspended = [item for item in devices if item.suspended]
    lost = [item for item in devices if not item.suspended]
    parts = []
    if suspended:
        names = " ".join(one_line(item.mapped or item.name, 128) for item in suspended)
        parts.append(
            "see who suspended the device (dmsetup info; LVM, multipath, or a backup that makes a"
            f" snapshot and was ended), and dmsetup resume {names} if nothing of it runs any more"
        )
    if lost:
        parts.append(
            "see the disk and the way to it: journalctl -k, multipath -ll, iscsiadm -m session, and"
            " the storage of the host of a virtual machine; a reboot for what still waits"
        )
    if dead or not devices:
        parts.append(_SERVER)
    return "; ".join(parts)


def _is_locked(task: Task) -> bool:
    """Tell whether a process that starts or ends containers waits for that list."""
    return task.name.startswith(STARTERS) and _SHRINKERS.match(task.wchan) is not None


def _locked(host: Host, tasks: Sequence[Task], cgroup: str) -> Detection:
    names = and_others([f"{one_line(task.name, 64)} (pid {task.pid})" for task in tasks])
    cause = "the search for memory that is short, in many cgroups"
    cure = "see free -m and num_cgroups of memory in /proc/cgroups, and reboot the drained node"
    if cgroup != "v2":
        cause = "the accounting of kernel memory of cgroup v1, which cgroup.memory=nokmem ends"
        cure = (
            "where grep -c nokmem /proc/cmdline says 0, boot the drained node with"
            " cgroup.memory=nokmem (grubby --update-kernel=ALL --args=cgroup.memory=nokmem), or"
            " with cgroup v2 (systemd.unified_cgroup_hierarchy=1); a newer kernel walks through"
            " that list without the lock"
        )
    return Detection(
        f"processes that start containers wait in the kernel for the lock of its list of shrinkers:"
        f" {names}; no mount is made meanwhile, and pods do not start. What holds it for so long is"
        f" usually {cause}",
        tuple(_proof(host, task) for task in tasks[:SHOWN]),
        cure,
        host=host.host,
        node=host.node,
        component="shrinkers",
    )


def _of_lvm(host: Host, tasks: Sequence[Task]) -> Detection:
    """Report commands of LVM that wait for a disk which is none of LVM's, most likely."""
    names = and_others([f"{one_line(task.name, 64)} (pid {task.pid})" for task in tasks])
    return Detection(
        f"commands of LVM wait in the kernel: {names}. They open each disk that the filter of LVM"
        " lets through, and one of them is held by another program or does not answer; volumes of"
        " LVM are neither made nor removed meanwhile",
        tuple(_proof(host, task) for task in tasks[:SHOWN]),
        "find that disk: dmsetup info -c (suspended), lsblk, fuser -v of the disks that are not"
        " LVM's (spdk_tgt or reactor_0 is Longhorn's second engine; rbd and nbd devices whose"
        " server is away), cat /proc/PID/stack. Reject it by each of its names (ls -l"
        " /dev/disk/by-id): global_filter in the section devices of /etc/lvm/lvmlocal.conf. What"
        " waits already goes on when the disk answers, otherwise only a reboot of the drained node"
        " ends it",
        host=host.host,
        node=host.node,
        component="lvm",
    )


def _device(item: SilentDevice) -> str:
    name = one_line(item.name, 64)
    if item.mapped:
        name = f"{one_line(item.mapped, 128)} ({name})"
    state = ", suspended" if item.suspended else ""
    at = and_others([one_line(point, 200) for point in item.points])
    return f"{name}{state}, mounted at {at}" if at else f"{name}{state}"


def _counters(host: Host, item: SilentDevice) -> EvidenceRef:
    path = f"/sys/block/{one_line(item.name, 64)}/stat"
    text = f"{counted(item.in_flight, 'request')} under way, none completed"
    if item.suspended:
        path, text = f"/sys/block/{one_line(item.name, 64)}/dm/suspended", "1"
    return EvidenceRef("file", host.host, path=path, text=text)


def _proof(host: Host, task: Task) -> EvidenceRef:
    text = f"{one_line(task.name, 64)} waits in {one_line(task.wchan, 80)}"
    if task.pod_uid:
        text += f", of the pod with UID {one_line(task.pod_uid, 40)}"
    return EvidenceRef("process", host.host, pid=task.pid, text=text)
