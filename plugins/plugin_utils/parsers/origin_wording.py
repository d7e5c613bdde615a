# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of a machine means, and where to look on that node. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from . import error_origin
from .error_origin import Origin

_CLAUSES: Mapping[str, str] = {
    error_origin.NODE: "for a reason of the node itself, and not of the workload",
    error_origin.RUNTIME: "within the container runtime of the node",
    error_origin.NETWORK: "within the network plugin",
    error_origin.STORAGE: "at the volume's device or its driver",
}
_NAMES: Mapping[str, str] = {
    "": "a step of the kubelet or of its runtime",
    "the OCI runtime": "the OCI runtime (runc or crun)",
}
_REPLAY = "needs to be replayed"
_KERNEL = "journalctl -k on that node has more about it at that time"
# Words of the kernel, and where to look for what stands behind them.
_BY_ERRNO: Mapping[str, str] = {
    error_origin.NOT_PERMITTED: (
        "root is not kept out by owner and mode: on that node see lsattr and findmnt -T of that"
        " path, systemctl is-active fapolicyd, ausearch -m fanotify,avc -ts recent, and other"
        " programs that decide on each access (protection against malware); let them leave out the"
        " folders of the runtime and of the kubelet"
    ),
    error_origin.DENIED: (
        "root is not kept out by owner and mode: on that node see getenforce and ausearch -m avc"
        " -ts recent (SELinux), journalctl -k -g 'apparmor=\"DENIED\"' (AppArmor), and namei -l of"
        " that path; a node that is a container itself has fewer rights"
    ),
    error_origin.READ_ONLY: (
        "findmnt -T of that path on that node shows how it is mounted, journalctl -k whether the"
        " kernel made it read-only after an error"
    ),
    error_origin.INPUT_OUTPUT: (
        "the device below that path fails: journalctl -k and smartctl -a on that node; move the"
        " pods away before it is replaced"
    ),
    error_origin.UNCLEAN: (
        "the file system is damaged: journalctl -k on that node names the device; repair it while"
        " it is not mounted, after a copy"
    ),
    error_origin.STALE: "the server of that mount lost it: unmount it on that node, then try again",
    error_origin.UNCONNECTED: (
        "the process behind that mount (FUSE) ended: umount -l of that path on that node, and see"
        " the driver's pod there"
    ),
    error_origin.NO_FUNCTION: (
        "the kernel of that node, or a filter of system calls around the runtime, does not have"
        " what the program calls: compare uname -r and the release of the program"
    ),
}
_CGROUP = (
    "see on that node whether the cgroup is there (ls of that path, /proc/self/cgroup), whether"
    " kubelet and runtime have the same cgroup driver, and which release of runc or crun and of the"
    " runtime it has (runc --version): where this began with an update, take the former or a newer"
    " one"
)
_BY_PROGRAM: Mapping[str, str] = {
    "fsck": "device",
    "e2fsck": "device",
    "xfs_repair": "device",
    "mount": "mount",
    "iscsiadm": "iscsi",
    "modprobe": "module",
    "nvidia-container-cli": "gpu",
    "the storage driver": "driver",
    "runc": "oci",
    "crun": "oci",
    "the OCI runtime": "oci",
}
_LOOKS: Mapping[str, str] = {
    "device": (
        "stop what uses the volume, and look at the file system on that node (lsblk -f, journalctl"
        " -k): a log that has to be replayed is replayed by one mount by hand and an unmount, which"
        " loses nothing; repair only after a copy of the volume (fsck -y, xfs_repair; its -L throws"
        " changes away), then let the driver mount it"
    ),
    "replay": (
        "the changes in the log of that file system are replayed by one mount by hand on that node"
        " and an unmount, which loses nothing; then the driver mounts it. A driver that runs"
        " xfs_repair before it mounts does this again after each node that is lost: update it. Do"
        " not run xfs_repair -L, which throws the changes away"
    ),
    "mount": (
        f"{_KERNEL}: a device that is gone, a damaged file system, or one with features that its"
        " kernel does not have"
    ),
    "iscsi": (
        "on that node systemctl status iscsid, modprobe iscsi_tcp, and the package of the initiator"
        " (open-iscsi, iscsi-initiator-utils)"
    ),
    "module": (
        "run that modprobe on the node: install the modules of the kernel that runs (uname -r)"
        " where it has them in a package of their own, or boot a kernel that has them"
    ),
    "gpu": (
        "nvidia-smi and nvidia-container-cli info on that node, and journalctl -k -g NVRM: the"
        " driver that is loaded, its libraries and the toolkit have to be of one release"
    ),
    "driver": (
        "see kubectl get volumeattachments, the driver's pod on that node and its controller, and"
        " their logs; a driver that attaches by iSCSI or NVMe needs modules and programs of the"
        " node: modprobe iscsi_tcp, modprobe nvme_tcp, systemctl status iscsid multipathd"
    ),
    "oci": (
        "see the journal of the runtime on that node, and the releases of runc or crun, of the"
        " runtime and of the kernel, which may not fit each other"
    ),
}


def party(origin: Origin) -> str:
    """Return what fails and whose it is, as a clause."""
    name = _NAMES.get(origin.program, origin.program)
    device = f" on {origin.path}" if origin.path.startswith("/dev/") else ""
    return f"{name} fails{device} {_CLAUSES[origin.owner]}"


def clause(origin: Origin) -> str:
    """Return what fails, whose it is, and the innermost reason, as a clause."""
    return f"{party(origin)}: {origin.reason}"


def advice(origin: Origin) -> str:
    """Return where to look on the node."""
    if origin.path.startswith("/sys/fs/cgroup"):
        return _CGROUP
    if origin.owner == error_origin.NETWORK:
        return "see the network plugin's pod on that node, and what it logs"
    look = _LOOKS.get(_BY_PROGRAM.get(origin.program, ""), "")
    if _REPLAY in origin.reason:
        look = _LOOKS["replay"]
    if look and origin.owner in (error_origin.STORAGE, error_origin.RUNTIME):
        return look
    return _BY_ERRNO.get(origin.errno) or look or _KERNEL
