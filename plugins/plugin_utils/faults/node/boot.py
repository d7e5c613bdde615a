# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what a reboot changed on a node, and what the next one will change: KM520 to KM522."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....module_utils.shared.kernel_modules import ABSENT, XTABLES
from ...evidence import contract
from ...evidence.answers.node.boot import Selinux
from ...evidence.answers.node.next_start import NextStart
from ...evidence.answers.node.space import Spaces, Store
from ...evidence.document import one_line
from ...models import boot as model_boot
from ...models import store as model_store
from ...models.boot import Lost, NodeBoot, Problem
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...models.store import Unwritable
from ...parsers.modules_load_fstab import Mount
from ..base import CheckResult, Detection, node_check, not_applicable, present, unknown
from .wording import MORE_MODULES

NO_KUBELET = "no kubelet"
SWITCHED = {"1": "enforcing", "0": "permissive"}


@node_check(
    "KM520",
    "A module or kernel setting that Kubernetes needs is missing, or will be",
    severity="critical",
    applies="nodes with a kubelet",
    risk=1,
    needs=("system", "kubelet", "boot", "limits", "network"),
)
def missing_setting(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM520: report a module or kernel setting that is missing now or after the next boot."""
    if host.statuses.get("kubelet") == "absent":
        yield not_applicable(NO_KUBELET, host=host.host)
        return
    node = model_boot.read(document)
    hits = [_hit(host, problem) for problem in model_boot.problems(node)]
    hits += _lacking_modules(host)
    missing, note = _unread(host, node)
    # An older release did not read which modules the kernel has: only that is not judged.
    missing += tuple(item for item in host.missing("network") if item.status != "not_asked")
    yield CheckResult(tuple(hits), missing, host=host.host, note=note)


def _lacking_modules(host: Host) -> Iterator[Detection]:
    """Report a kernel without modules for rules of Services, where no network plugin works yet.

    A cluster whose kube-proxy and network plugin speak nftables needs none of them.
    """
    states, networks = host.network.answer.modules or {}, host.identity.networks
    absent = [name for name in XTABLES if states.get(name) == ABSENT]
    if not absent or networks is None or networks.names:
        return
    names = " and ".join(absent)
    yield Detection(
        f"{names} {_are(absent)} not there for the kernel of the node: neither kube-proxy nor the"
        " network plugin can make their rules, and no network plugin has written its configuration",
        (
            EvidenceRef("file", host.host, path="/proc/modules", text=f"not loaded: {names}"),
            EvidenceRef(
                "file",
                host.host,
                path="/lib/modules/$(uname -r)/modules.dep",
                text="has none of them",
            ),
        ),
        f"{MORE_MODULES}; then restart the node's pods of kube-proxy and of the network plugin",
        host=host.host,
        node=host.node,
        component=absent[0],
        severity="critical",
        risk=0,
    )


def _are(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "is"
    return "are"


def _unread(host: Host, node: NodeBoot) -> tuple[tuple[Missing, ...], str]:
    """Return what is missing to know a node's modules and settings, with a note."""
    missing = (
        host.missing("kubelet")
        + host.missing("boot", absent_is_answer=False)
        + host.missing("limits")
    )
    if missing:
        return missing, ""
    if node.ipv4 is None:
        return host.missing("system") or (Missing(host.host, "system", "error"),), ""
    if node.unknown():
        return (Missing(host.host, "boot", "error"),), node.unknown()
    if node.unread():
        note = one_line(f"{node.unread()[0]} could not be read", 300)
        return (Missing(host.host, "limits", "error"),), note
    return (), ""


def _hit(host: Host, problem: Problem) -> Detection:
    state = "will not outlive a reboot"
    if problem.now and problem.wanted is not None:
        state = "is not as Kubernetes needs it"
    elif problem.now:
        state = "is missing"
    proofs = [
        EvidenceRef("file", host.host, path=path, line=line or None, text=one_line(text, 200))
        for path, line, text in problem.places
    ]
    if problem.wanted is not None:
        value = problem.why.partition(";")[0]
        text = f"/proc/sys/{problem.name.replace('.', '/')}: {value}"
        proofs.append(EvidenceRef("process", host.host, text=one_line(text, 300)))
    if not proofs:
        proofs.append(EvidenceRef("file", host.host, path="/proc/modules", text=problem.why))
    severity, risk = "warning", None
    if problem.severe:
        severity = "critical"
    if not model_boot.is_repairable(problem):
        risk = 0
    return Detection(
        f"{problem.name} {state}: {one_line(problem.why, 400)}",
        tuple(proofs),
        model_boot.cure(problem),
        host=host.host,
        node=host.node,
        component=problem.name,
        severity=severity,
        risk=risk,
    )


@node_check(
    "KM521",
    "A file system of the node is full, read-only or not mounted",
    severity="critical",
    applies="nodes with a kubelet, and hosts of etcd",
    needs=("system", "kubelet", "boot", "swap", "space"),
)
def lost_filesystem(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM521: report a file system that a node needs and that takes no writes, or is not there."""
    spaces = _spaces(host, document)
    if host.statuses.get("kubelet") == "absent":
        note = "" if spaces.hits else NO_KUBELET
        yield CheckResult(spaces.hits, applies=bool(spaces.hits), host=host.host, note=note)
        return
    node = model_boot.read(document)
    hits = tuple(_lost(host, node, lost) for lost in model_boot.lost(node))
    if not _is_next_boot_read(document):
        hits += tuple(_stops_boot(host, line) for line in model_boot.stopping(node))
    missing = _unknown_mounts(host, node) + spaces.missing
    yield CheckResult(hits + spaces.hits, missing, host=host.host, note=spaces.note)
    if contract.answer(document, Spaces).stores is None and not spaces.missing:
        # An older release did not read what is free: only that is not judged.
        yield unknown(Missing(host.host, "space", "not_asked"), host=host.host)


def _is_next_boot_read(document: Mapping[str, Any]) -> bool:
    """Tell whether KM704 has evidence of the lines of fstab that stop a boot, and reports them."""
    mounts = contract.answer(document, NextStart).mounts
    return mounts is not None and not mounts.error


def _unknown_mounts(host: Host, node: NodeBoot) -> tuple[Missing, ...]:
    """Return what is missing to know which file systems are mounted, and how."""
    missing = host.missing("boot", absent_is_answer=False) + host.missing(
        "swap", absent_is_answer=False
    )
    if not missing and model_boot.mounted(node) is None:
        missing = (Missing(host.host, "boot", "error"),)
    if not missing and not node.container and not model_boot.fstab_known(node):
        missing = (Missing(host.host, "swap", "error"),)
    return missing


def _spaces(host: Host, document: Mapping[str, Any]) -> CheckResult:
    """Return the file systems that are full or read-only, and what is not known of them."""
    stores = contract.answer(document, Spaces).stores or ()
    missing = host.missing("space", absent_is_answer=False)
    if missing:
        unanswered = tuple(item for item in missing if item.status != "not_asked")
        return CheckResult((), unanswered)
    read_only = _read_only_folders(host, document)
    hits = tuple(
        _full_or_read_only(host, unwritable)
        for unwritable in model_store.unwritable(stores)
        if read_only.isdisjoint(store.path for store in unwritable.stores)
    )
    unread = [store for store in stores if store.error]
    if not unread:
        return CheckResult(hits)
    note = one_line(f"what is free on {unread[0].path} is not known", 200)
    return CheckResult(hits, (Missing(host.host, "space", _reason(unread[0])),), note=note)


def _read_only_folders(host: Host, document: Mapping[str, Any]) -> set[str]:
    """Return the folders whose file system the collector boot tells to be read-only."""
    if host.statuses.get("kubelet") == "absent":
        return set()
    losses = model_boot.lost(model_boot.read(document))
    return {path for lost in losses for path in lost.folders}


def _reason(store: Store) -> str:
    """Return the status of evidence for a folder that was not read."""
    if store.error == "denied":
        return "denied"
    return "error"


def _full_or_read_only(host: Host, unwritable: Unwritable) -> Detection:
    path, name = one_line(unwritable.stores[0].path, 120), host.node or host.host
    advice = (
        "find out why: the kernel makes a file system read-only when its disk fails (journalctl"
        f" -k); findmnt -T {path} shows how it is mounted"
    )
    if unwritable.full:
        advice = f"find what fills it, and make room: {_room(unwritable, path)}"
    severity = None
    if not unwritable.severe:
        severity = "warning"
    return Detection(
        f"the file system of {path} of {name} {unwritable.why}; no program can write there:"
        f" {one_line(unwritable.uses, 400)}",
        (EvidenceRef("file", host.host, path=path, text=unwritable.why),),
        advice,
        host=host.host,
        node=host.node,
        component=path,
        severity=severity,
    )


def _room(unwritable: Unwritable, path: str) -> str:
    """Return how space is found and freed, by what lies there."""
    uses = {store.use for store in unwritable.stores}
    command = f"du -xh --max-depth=3 {path} | sort -h | tail -20 (of inodes: du -x --inodes)"
    if "run" in uses:
        command += (
            "; compare the sandboxes below /run/containerd or /run/crio with crictl pods: some"
            " releases of a runtime leave those of ended pods there until a reboot"
        )
    if "journal" in uses:
        command += "; journalctl --vacuum-size=500M shortens the journal"
    if "etcd" in uses:
        command += "; delete no file below etcd's data folder by hand"
    return command


def _lost(host: Host, node: NodeBoot, lost: Lost) -> Detection:
    point, used_by = one_line(lost.point, 120), ""
    if lost.folders:
        used_by = f" ({one_line(', '.join(lost.folders), 300)})"
    if lost.line is None:
        return Detection(
            f"{point} {lost.why}{used_by}: no program can write there",
            (EvidenceRef("file", host.host, path="/proc/self/mounts", text=lost.mounted),),
            "find out why: the kernel makes a file system read-only when its disk fails"
            " (journalctl -k), or a boot could not check it. Once the disk is whole, stop what"
            f" writes there, umount {point}, fsck, and mount it (a reboot does that for /); one"
            f" that has no error needs mount -o remount,rw {point} only",
            host=host.host,
            node=host.node,
            component=point,
        )
    later, severity = "", None
    if node.answers:
        later = "; the kubelet answers nevertheless: the line may be newer than the boot"
        severity = "warning"
    text = one_line(lost.line.text, 200)
    return Detection(
        f"{point} is not mounted{used_by}, although fstab mounts it at boot{later}",
        (EvidenceRef("file", host.host, path=lost.line.path, line=lost.line.line, text=text),),
        f"find out why (systemctl status the unit of {point}, findmnt --verify, whether"
        f" {one_line(lost.line.what, 120)} is there). What lies in the folder now is not what lay"
        " on that file system: stop kubelet and runtime, move it away, mount it, start them",
        host=host.host,
        node=host.node,
        component=point,
        severity=severity,
    )


def _stops_boot(host: Host, line: Mount) -> Detection:
    """Foretell a boot that ends in systemd's emergency mode."""
    point, device = one_line(line.point, 120), one_line(line.what, 120)
    return Detection(
        f"{device} is not there, and fstab mounts it on {point} without nofail: the next boot waits"
        " for it and ends in the emergency mode, without ssh and kubelet",
        (
            EvidenceRef(
                "file", host.host, path=line.path, line=line.line, text=one_line(line.text, 200)
            ),
        ),
        "before any reboot: lsblk -f shows the names of the disks that are there; correct the"
        " line, take it out if the disk is gone, or add nofail to its options; then systemctl"
        " daemon-reload, and findmnt --verify",
        host=host.host,
        node=host.node,
        component=point,
        severity="warning",
    )


@node_check(
    "KM522",
    "SELinux mode changes at the next boot",
    severity="info",
    applies="nodes with SELinux",
    needs=("system", "boot"),
)
def selinux(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM522: report SELinux if it runs in one mode, and a boot makes another."""
    missing, node = host.missing("boot", absent_is_answer=False), model_boot.read(document)
    modes = selinux_modes(node)
    running, config = SWITCHED.get(modes.enforce or ""), modes.config
    decided = node.container or _selinux_words(node)
    changes = running is not None and not decided and _differs(running, config)
    if missing or running is None or not changes:
        yield CheckResult((), missing, host=host.host, applies=bool(missing or running))
        return
    yield present(_selinux_hit(host, running, config), host=host.host)


def selinux_modes(node: NodeBoot) -> Selinux:
    """Return the mode of SELinux now (enforce) and after a boot (config), as far as known."""
    return node.answer.selinux or Selinux()


def _selinux_words(node: NodeBoot) -> list[str]:
    """Return the words of the kernel's command line that decide the mode."""
    return [key for key, _value in node.answer.cmdline or () if key in ("selinux", "enforcing")]


def _differs(running: str, config: str | None) -> bool:
    return config in ("enforcing", "permissive", "disabled") and running != config


def _selinux_hit(host: Host, running: str, config: str | None) -> Detection:
    effect = "it was switched on by hand"
    if config == "enforcing":
        effect = "it will deny what it only reports now"
    elif running == "permissive" and config == "disabled":
        effect = "it will be gone, and with it the labels of files that are written then"
    return Detection(
        f"SELinux is {running}, and the next boot makes it {config}: {effect}",
        (
            EvidenceRef("file", host.host, path="/sys/fs/selinux/enforce", text=running),
            EvidenceRef("file", host.host, path="/etc/selinux/config", text=f"SELINUX={config}"),
        ),
        "decide which of both it is to be: setenforce for now, /etc/selinux/config for the"
        " next boot (ausearch -m avc shows what it denies)",
        host=host.host,
        node=host.node,
        component="selinux",
    )
