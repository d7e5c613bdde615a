# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults KM520 to KM522: what a reboot undid on a node, and what the next one will."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence.document import one_line
from ...models import boot as node_boot
from ...models.boot import Lost, NodeBoot, Problem
from ...models.cluster import Host
from ...models.result import Missing, Proof
from ..base import Fault, Hit, Outcome

NO_KUBELET = "no kubelet"
SWITCHED = {"1": "enforcing", "0": "permissive"}


def missing_setting(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM520: a module or kernel setting that is not there, or that the next boot takes away."""
    if host.statuses.get("kubelet") == "absent":
        yield Outcome((), host=host.host, applies=False, note=NO_KUBELET)
        return
    node = node_boot.read(document)
    hits = tuple(_hit(host, one) for one in node_boot.problems(node))
    missing, note = (
        host.missing("kubelet")
        + host.missing("boot", absent_is_answer=False)
        + host.missing("limits"),
        "",
    )
    if not missing and node.ipv4 is None:
        missing = host.missing("system") or (Missing(host.host, "system", "error"),)
    if not missing and node.unknown():
        missing, note = (Missing(host.host, "boot", "error"),), node.unknown()
    if not missing and node.unread():
        missing, note = (
            (Missing(host.host, "limits", "error"),),
            one_line(f"{node.unread()[0]} could not be read", 300),
        )
    yield Outcome(hits, missing, host=host.host, note=note)


def _hit(host: Host, one: Problem) -> Hit:
    name = host.node or host.host
    said = (
        "is not as Kubernetes needs it"
        if one.now and one.wanted is not None
        else "is missing"
        if one.now
        else "will not outlive a reboot"
    )
    proofs = [
        Proof("file", host.host, path=path, line=line, text=one_line(text, 200))
        for path, line, text in one.places
    ]
    if one.wanted is not None:
        proofs.append(
            Proof(
                "process",
                host.host,
                text=one_line(
                    f"/proc/sys/{one.name.replace('.', '/')}: {one.why.partition(';')[0]}", 300
                ),
            )
        )
    return Hit(
        f"{one.name} {said} on {name}: {one_line(one.why, 400)}",
        tuple(proofs) or (Proof("file", host.host, path="/proc/modules", text=one.why),),
        node_boot.cure(one),
        host=host.host,
        node=host.node,
        component=one.name,
        severity="critical" if one.severe else "warning",
        risk=None if node_boot.mends(one) else 0,
    )


def lost_filesystem(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM521: a file system of kubelet, runtime or etcd that is not mounted, or read-only."""
    if host.statuses.get("kubelet") == "absent":
        yield Outcome((), host=host.host, applies=False, note=NO_KUBELET)
        return
    node = node_boot.read(document)
    missing = host.missing("boot", absent_is_answer=False) + host.missing(
        "swap", absent_is_answer=False
    )
    if not missing and node_boot.mounted(node) is None:
        missing = (Missing(host.host, "boot", "error"),)
    if not missing and not node.container and not node_boot.fstab_known(node):
        missing = (Missing(host.host, "swap", "error"),)
    yield Outcome(
        tuple(_lost(host, node, one) for one in node_boot.lost(node)), missing, host=host.host
    )


def _lost(host: Host, node: NodeBoot, one: Lost) -> Hit:
    name, of = (
        host.node or host.host,
        (f" ({one_line(', '.join(one.folders), 300)})" if one.folders else ""),
    )
    point = one_line(one.point, 120)
    if one.line is None:
        return Hit(
            f"{point} of {name} is read-only{of}: nothing there can write",
            (Proof("file", host.host, path="/proc/self/mounts", text=one.mounted),),
            "find out why: the kernel makes a file system read-only when its disk fails"
            " (journalctl -k), or a boot could not check it (fsck); then mount -o remount,rw"
            f" {point}, and restart what lies there once it is whole",
            host=host.host,
            node=host.node,
            component=point,
        )
    later = (
        "; the kubelet answers nevertheless: the line may be newer than the boot"
        if node.answers
        else ""
    )
    return Hit(
        f"{point} of {name} is not mounted{of}, although fstab mounts it at boot{later}",
        (
            Proof(
                "file",
                host.host,
                path=one.line.path,
                line=one.line.line,
                text=one_line(one.line.text, 200),
            ),
        ),
        f"find out why (systemctl status the unit of {point}, findmnt --verify, whether"
        f" {one_line(one.line.what, 120)} is there). What lies in the folder now is not what lay on"
        " that file system: stop kubelet and runtime, move it away, mount it, start them",
        host=host.host,
        node=host.node,
        component=point,
        severity="warning" if node.answers else None,
    )


def selinux(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM522: SELinux runs in one mode, and a boot makes another."""
    missing, node = host.missing("boot", absent_is_answer=False), node_boot.read(document)
    told = node.seen.get("selinux")
    runs, config = (
        (SWITCHED.get(str(told.get("enforce"))), told.get("config"))
        if isinstance(told, Mapping)
        else (None, None)
    )
    words = [
        pair
        for pair in node.seen.get("cmdline") or ()
        if isinstance(pair, (list, tuple)) and pair and pair[0] in ("selinux", "enforcing")
    ]
    if (
        missing
        or runs is None
        or node.container
        or words
        or config not in ("enforcing", "permissive", "disabled")
        or runs == config
    ):
        yield Outcome((), missing, host=host.host, applies=bool(missing or runs))
        return
    name = host.node or host.host
    means = (
        "it will deny what it only reports now"
        if config == "enforcing"
        else "somebody switched it on by hand"
    )
    if runs == "permissive" and config == "disabled":
        means = "it will be gone, and with it the labels of files that are written then"
    yield Outcome(
        (
            Hit(
                f"SELinux of {name} is {runs}, and the next boot makes it {config}: {means}",
                (
                    Proof("file", host.host, path="/sys/fs/selinux/enforce", text=runs),
                    Proof("file", host.host, path="/etc/selinux/config", text=f"SELINUX={config}"),
                ),
                "decide which of both it is to be: setenforce for now, /etc/selinux/config for the"
                " next boot (ausearch -m avc tells what it denies)",
                host=host.host,
                node=host.node,
                component="selinux",
            ),
        ),
        host=host.host,
    )


FAULTS = (
    Fault(
        code="KM520",
        title="A module or kernel setting that Kubernetes needs is missing, or will be",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "net.ipv4.ip_forward is 0, and the node forwards no packet of its pods (critical; nodes"
            " without an address of IPv4, or of which a file asks for the forwarding of IPv6 alone,"
            " are left out). Or net.bridge.bridge-nf-call-iptables is 0, or br_netfilter or overlay"
            " is not loaded, although a file of this node asks for it (a warning: a network plugin"
            " such as Cilium needs no br_netfilter, and where no file asks for it nothing is said)."
            " As a warning, too, what is right now and will not be after the next boot: a file of"
            " sysctl.d says 0, no file says 1 (k3s and the like, and docker, set it themselves and"
            " are left out), or br_netfilter is loaded and no file of modules-load.d names it. A"
            " node that is a container has the modules of its machine: of them, and of what made"
            " its settings, nothing is said. What ufw's own sysctl.conf, systemd-networkd and the"
            " profile of tuned set after sysctl.d counts; firewalld, which switches forwarding on"
            " where a zone masquerades, is not read."
        ),
        remedy=(
            "The plan writes the setting into one file of ours in /etc/sysctl.d, which is read"
            " after the others, and tells the kernel; a module into one in /etc/modules-load.d, and"
            " loads it. Nothing restarts. Where a line of /etc is read later still and says less"
            " (one of ufw too), its number is changed there, and nothing else of that file; what"
            " tuned or a vendor's file says is named, and nothing is written. A revert takes the"
            " lines away, or gives the file its former bytes back, and leaves what runs."
        ),
        risk=1,
        needs=("system", "kubelet", "boot", "limits"),
        node=missing_setting,
        references=(
            "https://kubernetes.io/docs/setup/production-environment/container-runtimes/#install-and-configure-prerequisites",
            "https://www.freedesktop.org/software/systemd/man/latest/modules-load.d.html",
        ),
    ),
    Fault(
        code="KM521",
        title="A file system of the node is read-only or not mounted",
        severity="critical",
        applies="nodes with a kubelet",
        explanation=(
            "The folder of the kubelet, of a container runtime or of etcd lies on a file system"
            " that is mounted read-only, as the kernel makes one whose disk fails; or fstab mounts"
            " one there at boot and it is not mounted, which with nofail stops no boot: kubelet and"
            " runtime then begin anew in an empty folder, and etcd as a new cluster. A line with"
            " noauto or automount is left out, and so are mount units without a line. A warning"
            " where the kubelet answers: the line may be newer than the boot. In a container only"
            " read-only counts."
        ),
        remedy=(
            "Find out why, and mount it while kubelet and runtime are stopped. Nothing here"
            " does it."
        ),
        risk=0,
        needs=("system", "kubelet", "boot", "swap"),
        node=lost_filesystem,
        references=("https://www.freedesktop.org/software/systemd/man/latest/systemd.mount.html",),
    ),
    Fault(
        code="KM522",
        title="SELinux will not be after a boot what it is now",
        severity="info",
        applies="nodes with SELinux",
        explanation=(
            "SELinux enforces, and /etc/selinux/config says permissive or disabled, or the other"
            " way round: a reboot changes what it denies. Often setenforce 0 was said when the node"
            " was made, and after a power loss containers meet an SELinux that enforces. The"
            " kernel's command line decides before the file; where it speaks of SELinux nothing is"
            " said."
        ),
        remedy="Decide which it is to be, now and in the file. Nothing here does it.",
        risk=0,
        needs=("system", "boot"),
        node=selinux,
        references=(
            "https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/using_selinux/changing-selinux-states-and-modes_using-selinux",
        ),
    ),
)
