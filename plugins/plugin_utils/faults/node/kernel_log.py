# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the kernel said of what keeps a node from its work (KM562)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ....module_utils.shared.text import times
from ...evidence import contract
from ...evidence.answers.node.kernel_log import KernelLine, KernelLog, Panic
from ...evidence.answers.node.system import System
from ...evidence.document import ends, one_line
from ...models import pod_process_limit
from ...models.cluster import Host
from ...models.moments import moment
from ...models.result import EvidenceRef, Missing
from ...parsers import call_trace, known_message
from ..base import CheckResult, Detection, causes, node_check, unknown
from ..known_causes import Source, explained

SHOWN, QUOTED = 5, 300
POD_PROCESSES, SDIO = "pod-processes", "sdio"
# What another release of the kernel often does not have.
OOPS, PANIC = "oops", "panic"
OF_KERNEL = frozenset(("hang", "interface", OOPS))
RECENT_SECONDS = 86400.0  # since a boot after a panic
_FILE_SYSTEM = re.compile(r"EXT4-fs|XFS|BTRFS|JBD2|Aborting journal|Buffer I/O error")
_POD = re.compile(r"pod([0-9a-f]{8}(?:[_-][0-9a-f]{4}){3}[_-][0-9a-f]{12})")


@dataclass(frozen=True)
class _Kind:
    """What lines of one kind mean.

    clause: what is wrong, about the machine
    count: how many lines in an hour are a fault; a single one may be chance
    """

    clause: str
    advice: str
    count: int = 1


KINDS: Mapping[str, _Kind] = {
    "oom": _Kind(
        "it killed a process for want of memory",
        "see what takes the memory (the lines around it in journalctl -k list all processes; free"
        " -m; systemd-cgtop -m), give pods limits of memory, and the kubelet systemReserved and"
        " kubeReserved; MemoryMax= of the unit where the unit's own limit was reached",
    ),
    "disk": _Kind(
        "a disk or its file system fails",
        "save what is on it, and look at the disk (smartctl -a, nvme smart-log, multipath -ll,"
        " dmesg) and at its file system (fsck or xfs_repair while it is not mounted)",
    ),
    "hang": _Kind(
        "a processor or a process does not go on for many seconds",
        "see what it waits for (the trace below the line in journalctl -k): a disk or a remote file"
        " system that does not answer, a driver, or a virtual machine that its host does not run;"
        " another kernel, newer or the one before, where the trace is in the kernel itself",
    ),
    OOPS: _Kind(
        "its own code failed (oops): the process that it ran ends or hangs, and may hold locks for"
        " which other processes wait",
        "reboot the drained node, because what that process held stays as it is. It is a defect of"
        " the kernel or of a module: install a newer kernel, or boot the one before; where the"
        " functions differ each time, test the memory (memtest86+, rasdaemon)",
    ),
    "interface": _Kind(
        "a network interface of a pod that ended is still in use, so that its namespace stays and"
        " new ones wait",
        "a defect of the kernel: drain the node, install a newer kernel and reboot; see"
        " which hooks of pods use hairpin mode or UDP sockets that stay",
        3,
    ),
    "neighbours": _Kind(
        "its table of neighbours (ARP) is full, so that packets to addresses that it does not have"
        " are dropped",
        "raise net.ipv4.neigh.default.gc_thresh1 to gc_thresh3 (and those of ipv6) in a file of"
        " /etc/sysctl.d, such as 80000, 90000 and 100000, and load it (sysctl --system)",
    ),
    "connections": _Kind(
        "its table of connections is full, and packets are dropped",
        "see who has so many (conntrack -S, cat /proc/sys/net/netfilter/nf_conntrack_count), and"
        " raise net.netfilter.nf_conntrack_max; kube-proxy sets it too (conntrack.maxPerCore)",
    ),
    "checksum": _Kind(
        "packets arrive with a wrong checksum and are dropped, as of a tunnel (vxlan, geneve) whose"
        " checksums the sender leaves to a card or a driver that does not make them",
        "switch that off on the tunnel's interface of the nodes that send (ethtool -K flannel.1"
        " tx-checksum-ip-generic off; cilium_vxlan, vxlan.calico), and for each boot by a rule of"
        " udev or the plugin's own setting; a newer kernel or driver corrects it",
        5,
    ),
    "session": _Kind(
        "packets of a BGP session are dropped, because its two ends do not have the same password"
        " (the MD5 option of TCP)",
        "give both ends the same password, or none: the node's router (BIRD of Calico, kube-router,"
        " MetalLB, Cilium) and the one whose address the line has",
        5,
    ),
    "address": _Kind(
        "another machine has an address of this node, or its own packets come back to it",
        "compare the addresses of the machines: ip -br link and ip -br addr on the nodes; a machine"
        " that was cloned needs its own MAC addresses and its own /etc/machine-id, from which"
        " tunnels and bridges get theirs; else look for a loop in the switch or the bonding",
        3,
    ),
    "card": _Kind(
        "a network card does not send what it is given",
        "see ethtool -S, ethtool -i of that card, its cable and switch; a newer driver or firmware",
    ),
    "bond": _Kind(
        "the switch does not answer a bond of network cards",
        "see cat /proc/net/bonding/BOND, and the ports of the switch",
    ),
    "route": _Kind(
        "it drops packets of pods, as the route back to their source leads to another interface",
        "see net.ipv4.conf.all.rp_filter and that of the interface, and ip route get SOURCE",
        20,
    ),
    "backlog": _Kind(
        "connections to a component come faster than it takes them",
        "see ss -lnt, and whether the component gets processor time",
        3,
    ),
    "dns": _Kind(
        "a Service at port 53 has no endpoint",
        "see the pods of the cluster DNS, and ipvsadm -Ln on the node",
        5,
    ),
    "files": _Kind(
        "all programs together have as many files open as the kernel allows",
        "see cat /proc/sys/fs/file-nr, and which process has most (ls /proc/PID/fd)",
    ),
    "heat": _Kind(
        "a processor is too hot and lowers its clock",
        "see sensors, ipmitool sdr type Temperature, the fans and the air",
        20,
    ),
    "pcie": _Kind(
        "a device at the PCIe bus has errors that are corrected",
        "see lspci -s DEVICE, and boot with pcie_aspm=off",
        20,
    ),
    "selinux": _Kind(
        "the policy of SELinux does not know the types of containers",
        "see rpm -q container-selinux, and semodule -l",
    ),
    SDIO: _Kind(
        "a chip on a bus like that of an SD card (SDIO), mostly the one of WLAN, does not answer;"
        " no disk is at that bus",
        "see which chip it is (cat /sys/class/mmc_host/mmc*/mmc*:*/uevent names its driver), the"
        " power supply of the board (journalctl -k -g voltage) and the chip's firmware; where the"
        " node is connected by a cable, switch WLAN off (dtoverlay=disable-wifi in config.txt of a"
        " Raspberry Pi) and reboot",
        3,
    ),
    "hardware": _Kind(
        "the hardware reports errors",
        "see rasdaemon or mcelog, and the events of the machine's management (ipmitool sel list);"
        " drain the node and have memory or processor replaced where they go on",
    ),
    "gpu": _Kind(
        "a GPU or its driver fails",
        "see nvidia-smi -q and the meaning of that Xid in NVIDIA's documentation: 13, 31, 43 and 45"
        " are a program's, 48, 63, 64, 74, 79, 92 and 94 the card's or its link's (drain the node,"
        " reset or reboot it, replace the card); API mismatch is a driver that was upgraded under"
        " the module that runs (reboot, or reload the module)",
    ),
    "storage": _Kind(
        "a remote file system does not answer",
        "see whether its server runs and is reached from this node (findmnt -t nfs4,cifs,ceph, nc"
        " -vz SERVER 2049); processes that use it cannot end before it answers",
    ),
    "client": _Kind(
        "a remote storage does not take its client: the kernel lacks what the storage requires, or"
        " the client may not use it",
        "features that are missing or unsupported: boot a newer kernel (uname -r; Ceph's"
        " documents name the releases that it supports), or take them from the image (rbd feature"
        " disable) or from the cluster (ceph features, ceph osd crush tunables);"
        " authentication: compare user and key with those of the StorageClass; blocklisted: ceph"
        " osd blocklist ls, and reboot the node where it holds old mounts",
        3,
    ),
    "processes": _Kind(
        "a cgroup of the node has as many processes as it may",
        "see pids.max and pids.current of that cgroup, TasksMax= of the unit, podPidsLimit of the"
        " kubelet, and who starts so many",
    ),
    POD_PROCESSES: _Kind(
        "a pod has as many processes and threads as the node allows it, so that it starts no more",
        "raise the limit where that workload needs as many (podPidsLimit in the kubelet's"
        " configuration, and a restart of the kubelet; pids_limit = -1 below [crio.runtime] in a"
        " file of /etc/crio/crio.conf.d, and a restart of CRI-O), then delete the pod; or let it"
        " start fewer",
    ),
    "rules": _Kind(
        "a program that writes the rules of packets crashed, so that rules of kube-proxy or of the"
        " network plugin may be missing",
        "see who runs it (the program of the host, or the one in an image: nsenter, ps), and"
        " install another release of iptables, nftables or of that image",
        3,
    ),
    "apparmor": _Kind(
        "AppArmor denies a program of the node what it needs",
        "see the profile that the line names (aa-status); correct it or remove the local change,"
        " and load it again (apparmor_parser -r); a newer runtime where its own profile is wrong",
    ),
    "sockets": _Kind(
        "AppArmor does not let containers open sockets, by the profile that their runtime gives"
        " them",
        "see the profile that the line names (aa-status, journalctl -k -g 'class=\"net\"'); pods"
        " that open sockets end again and again on this node until it allows them",
        3,
    ),
    "memory": _Kind(
        "it finds no memory for its own work",
        "see free -m, /proc/buddyinfo, /proc/slabinfo and vm.min_free_kbytes; of TCP net.ipv4."
        "tcp_mem against /proc/net/sockstat",
        3,
    ),
    "crash": _Kind(
        "a program of the node crashed",
        "see coredumpctl and the program's release; compare with its known issues, and test the"
        " memory where different programs crash",
    ),
    "filter": _Kind(
        "it refuses a rule of iptables",
        "compare the kernel with the programs that write rules (iptables --version on the host and"
        " in the images of kube-proxy and of the network plugin): a match or target may be of"
        " another revision, or its module is missing",
        3,
    ),
    "module": _Kind(
        "a kernel module does not load",
        "install the module that is built for the kernel that runs (uname -r, dkms status), signed"
        " where Secure Boot asks for it (mokutil --sb-state), or boot the kernel that it is for",
    ),
    "overlay": _Kind(
        "overlayfs, which containers stand on, refuses a mount",
        "see the file system below the runtime's folder (findmnt -T /var/lib/containerd): overlayfs"
        " over overlayfs, and XFS without ftype=1, cannot hold it",
    ),
    "audit": _Kind(
        "its audit records come faster than auditd writes them, so that programs wait or records"
        " are lost",
        "see auditctl -s (backlog, lost), and which rule of /etc/audit/rules.d records so much"
        " (aureport -x --summary): narrow it, or raise -b and --backlog_wait_time",
        3,
    ),
}


@node_check(
    "KM562",
    "Kernel reports a failure of the node",
    severity="warning",
    applies="nodes with a kernel of their own",
    needs=("system", "kernel_log", "kubelet", "runtime", "cri"),
    explained_by=causes("KM535", "KM411", "KM405", "KM528"),
    same_node=True,
)
def reported(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM562: report what the kernel said in the last hour, one finding for each kind."""
    missing = host.missing("kernel_log")
    if missing:
        yield unknown(*missing)
        return
    rows: dict[str, list[KernelLine]] = {}
    log = contract.answer(document, KernelLog)
    for row in log.rows:
        if row.kind in KINDS:
            rows.setdefault(row.kind, []).append(row)
    hits = [
        _with_limits(_hit(host, kind, lines), document)
        for kind, lines in rows.items()
        if _is_enough(kind, lines)
    ]
    hits += _panic_hits(host, document, log.panic)
    unread: tuple[Missing, ...] = ()
    note = ""
    if log.cut:
        unread = (Missing(host.host, "kernel_log", "error"),)
        note = (
            f"{len(log.rows)} different lines of the kernel's log of the last hour were judged, and"
            " it has more: see journalctl -k --since -1h -p warning"
        )
    yield CheckResult(tuple(hits), unread, note=note)


def _with_limits(hit: Detection, document: Mapping[str, Any]) -> Detection:
    """Return a finding with what limits the processes of a pod, where it is about them."""
    if hit.component != POD_PROCESSES:
        return hit
    limits = pod_process_limit.read(str(hit.host), document)
    proofs = tuple(limit.proof for limit in limits if limit.proof is not None)
    pod = _POD.search(hit.summary)
    look = ""
    if pod is not None:
        look = (
            "; which pod it is: kubectl get pods -A -o"
            " custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,UID:.metadata.uid"
            f" | grep {pod.group(1).replace('_', '-')}"
        )
    return replace(
        hit,
        summary="; ".join((hit.summary, *(limit.clause for limit in limits))),
        evidence=(*hit.evidence, *proofs),
        remedy=f"{hit.remedy}{look}",
    )


def _is_enough(kind: str, lines: list[KernelLine]) -> bool:
    return sum(line.count for line in lines) >= KINDS[kind].count


def _hit(host: Host, kind: str, lines: list[KernelLine]) -> Detection:
    meaning = KINDS[kind]
    lines = sorted(lines, key=lambda line: line.last or 0.0, reverse=True)
    count = sum(line.count for line in lines)
    newest = lines[0]
    last = moment(newest.last)
    when = ""
    if last is not None:
        when = f", last at {last:%Y-%m-%dT%H:%M:%SZ}"
    often = times(count)
    text = ends(one_line(newest.line, 2000), QUOTED)
    clause = meaning.clause
    if kind in OF_KERNEL and host.machine.kernel:
        clause += f" (kernel {one_line(host.machine.kernel, 80)})"
    trace = call_trace.read(newest.trace)
    advice = "; ".join(part for part in (trace.advice, meaning.advice) if part)
    hit = Detection(
        f"the kernel says {often} in the last hour that {clause}{when}: {text}{trace.clause}",
        tuple(
            EvidenceRef(
                "log", host.host, path="/dev/kmsg", text=ends(one_line(line.line, 2000), 600)
            )
            for line in lines[:SHOWN]
        ),
        f"{advice}. The log: journalctl -k",
        host=host.host,
        node=host.node,
        component=kind,
    )
    if kind == SDIO:  # known messages of that bus are about a disk
        return hit
    texts = sorted((_with_trace(line) for line in lines), key=_is_of_file_system)
    source = Source(versions=host.releases.of_node)
    return explained(hit, (known_message.KERNEL,), texts, source=source)


def _with_trace(line: KernelLine) -> str:
    """Return a line with its trace, because known messages name functions of it."""
    return " ".join((line.line, *line.trace))


def _panic_hits(
    host: Host, document: Mapping[str, Any], panic: Panic | None
) -> Iterator[Detection]:
    """Yield the hit of a kernel that ended before this boot, where its last lines were kept."""
    clock = contract.answer(document, System).clock
    if panic is None or not panic.lines:
        return
    if clock is None or panic.at is None or clock - panic.at > RECENT_SECONDS:
        return
    trace, at = call_trace.read(panic.trace), moment(panic.at)
    kernel = ""
    if host.machine.kernel:
        kernel = f"; it now runs {one_line(host.machine.kernel, 80)}"
    when = f" (about {at:%Y-%m-%dT%H:%M:%SZ})" if at is not None else ""
    text = ends(one_line(panic.lines[0], 2000), QUOTED)
    path = one_line(panic.path, 300)
    advice = trace.advice or (
        "install a newer kernel, or boot the one before; where it ends in other functions each"
        " time, test the memory, and read the event log of the machine's hardware (ipmitool sel"
        " list)"
    )
    hit = Detection(
        f"the kernel ended{when}, and the machine was booted again{kernel}. The kernel's last"
        f" lines: {text}{trace.clause}",
        tuple(
            EvidenceRef("log", host.host, path=path, text=ends(one_line(line, 2000), 600))
            for line in panic.lines
        ),
        f"{advice}. These lines are on that node in {path}",
        host=host.host,
        node=host.node,
        component=PANIC,
    )
    texts = [" ".join((panic.lines[0], *panic.trace)), *panic.lines]
    yield explained(
        hit, (known_message.KERNEL,), texts, source=Source(versions=host.releases.of_node)
    )


def _is_of_file_system(text: str) -> bool:
    """Tell whether a file system says it, which suffers from what its disk said before."""
    return _FILE_SYSTEM.match(text) is not None
