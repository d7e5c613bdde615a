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
from ..base import Hit, Outcome, node_check

NO_KUBELET = "no kubelet"
SWITCHED = {"1": "enforcing", "0": "permissive"}


@node_check(
    "KM520",
    "A module or kernel setting that Kubernetes needs is missing, or will be",
    severity="critical",
    applies="nodes with a kubelet",
    risk=1,
    needs=("system", "kubelet", "boot", "limits"),
)
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


@node_check(
    "KM521",
    "A file system of the node is read-only or not mounted",
    severity="critical",
    applies="nodes with a kubelet",
    needs=("system", "kubelet", "boot", "swap"),
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


@node_check(
    "KM522",
    "SELinux will not be after a boot what it is now",
    severity="info",
    applies="nodes with SELinux",
    needs=("system", "boot"),
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
