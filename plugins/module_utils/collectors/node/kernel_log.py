# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector kernel_log: what the kernel said in the last hour of what keeps a node from its work.

/dev/kmsg has it without a program and without a journal. The kernel log of a container is that of
its machine, so a node that is a container has none.
"""

import errno
import os
import re
import time

from ...logs import crash_files, repeated_lines
from ...logs import lines as log_lines
from ...logs.call_traces import CallTraces
from ...logs.memory_kills import MemoryKills
from ...system import files
from ..base import Absent, Denied, Failed

KMSG = "/dev/kmsg"
CONTAINER = ("/run/systemd/container", "/run/.containerenv", "/.dockerenv")
WINDOW = 3600  # seconds
# Before auditd runs, the kernel's own queue of a boot is short.
BOOTING, AUDIT = 300, "audit"
# Below lines of these kinds the kernel prints the functions that it was in.
OOPS, TRACED = "oops", frozenset(("hang", "oops"))
RECORD_BYTES, MAX_RECORDS, MAX_ROWS, LONGEST = 8192, 50000, 40, 400
# Programs without which a node has no pods. The kernel names 15 characters of a program.
_OWN = rb"kubelet|crio|kube-(?:apiserver|scheduler|controller|proxy|router|vip)"
# These also run in pods of users, such as those of a CI, or in the cgroups of such pods.
_ANYWHERE = (
    rb"containerd[\w-]{0,20}|conmon|systemd|dockerd|docker|runc|crun|etcd|k3s[\w-]{0,12}"
    rb"|rke2[\w-]{0,12}"
)
PROGRAMS = rb"(?:" + _OWN + rb"|" + _ANYWHERE + rb")"
# What writes the rules of packets, on the host and in the images of kube-proxy and of networks.
_OF_RULES = rb"(?:ip6?|x|eb|arp)tables[\w-]{0,12}|nft|ipset|conntrack"
# A denial under a profile of these is what the profile is for: a pod was kept from something.
_CONTAINERS = rb'profile="(?:cri-containerd|docker-default|containers-default|crio-default)'
# Each class has what only a kernel writes that it is about; drivers' words are those of their
# sources.
CLASSES = (
    ("oom", rb"^Out of memory: Kill(?:ed)? process \d+ \("),
    ("oom", rb"^Memory cgroup out of memory: Kill(?:ed)? process \d+ \((?:" + _OWN + rb")\)"),
    (
        "oom",
        rb"^oom-kill:constraint=CONSTRAINT_MEMCG,.{0,300},oom_memcg=/system\.slice/[^/,]{1,100}"
        rb"\.service,.{1,300},task=(?:" + _ANYWHERE + rb"),",
    ),
    # All pods of a node, or of a class of them: the limit is that of the kubelet.
    (
        "oom",
        rb"^oom-kill:constraint=CONSTRAINT_MEMCG,.{0,300},oom_memcg=/kubepods(?:\.slice)?"
        rb"(?:/(?:kubepods-)?(?:burstable|besteffort)(?:\.slice)?)?,",
    ),
    ("disk", rb"I/O error, dev (?!loop|sr\d|fd\d)|^Buffer I/O error on dev|critical medium error"),
    ("disk", rb"^EXT4-fs error |^XFS \([^)]{1,60}\): .{0,60}(?:[Cc]orruption|I/O error|[Ss]hut)"),
    ("disk", rb"^BTRFS (?:error|critical) |[Rr]emounting filesystem read-only"),
    ("disk", rb"^nvme nvme\d+: (?:I/O .{0,40}timeout|controller is down)|rejecting I/O to offline"),
    ("disk", rb"detected conn error \(\d+\)|^device-mapper: multipath: .{0,40}Failing path"),
    # What lies between the machine and a disk: a controller, a cable, a card, a bridge of USB.
    ("disk", rb"^ata\d+(?:\.\d+)?: failed command: (?:(?:READ|WRITE)(?! LOG)|FLUSH)"),
    ("disk", rb"^megaraid_sas .{1,40}waiting for \d+ commands to complete|_cm\d+: fault_state\("),
    ("disk", rb"^sd .{1,60} (?:timing out command, waited|uas_eh_abort_handler )"),
    ("disk", rb"^mmcblk\d+: .{0,40}error -\d+|^mmc\d+: Timeout waiting for hardware interrupt"),
    ("disk", rb"^md/raid.{1,40}: (?:Disk failure on|not enough operational|Cannot continue)"),
    ("disk", rb"Sense Key : (?:Medium|Hardware) Error|attempting (?:\w+ reset|task abort)!"),
    ("disk", rb"^critical space allocation error, dev |^Aborting journal on device "),
    ("disk", rb"^EXT4-fs warning .{0,120}ndex full|^BTRFS: error "),
    (
        "disk",
        rb"^XFS \((?!loop)[^)]{1,60}\): (?:Metadata CRC error|Internal error|Unmount and run xfs_"
        rb"|log mount/recovery failed)",
    ),
    # A disk behind a network, and what is left of one that did not come back.
    ("disk", rb"^ ?(?:session|connection)\d+(?::\d+)?: (?:session recovery timed|ping timeout of)"),
    ("disk", rb"blocked FC remote port time out|^nvme nvme\d+: (?:Removing after probe failure)"),
    (
        "disk",
        rb"^nvme nvme\d+: (?:Device not ready; abort|starting error rec|Failed reconnect att)",
    ),
    ("disk", rb"^nvme nvme\d+: failed nvme_keep_alive|^nvme\w+: .{1,90}\(sct 0x2 / sc 0x"),
    ("disk", rb"host controller not responding, assume dead|^xhci\S{1,40} \S{1,20}: HC died"),
    ("disk", rb"^device-mapper: (?:snapshots: Invalidating|verity: .{1,60} is corrupted)"),
    ("disk", rb"^drbd .{1,120}(?:Split-Brain detected|quorum\( yes -> no \))"),
    ("disk", rb"^WARNING: Pool '.{1,80}' has encountered an uncorrectable I/O failure"),
    # A volume that is not mounted: a copy of one that is, or made for a newer kernel.
    (
        "disk",
        rb"^XFS \((?!loop)[^)]{1,60}\): (?:Filesystem has duplicate UUID|Superblock has unknown )",
    ),
    (
        "disk",
        rb"^EXT4-fs \((?!loop)[^)]{1,60}\): couldn't mount .{0,20}unsupported optional features",
    ),
    (
        "disk",
        rb"^device-mapper: thin: .{0,20}(?:switching pool to (?:out-of-data-space|read-only)"
        rb"|no free (?:data|metadata) space)",
    ),
    ("hang", rb"^INFO: task .{1,40} blocked for more than|soft lockup - CPU#|hard LOCKUP"),
    ("hang", rb"^(?:rcu: )?INFO: rcu_\w+ .{0,20}detected (?:expedited )?stall"),
    (
        OOPS,
        rb"^kernel BUG at |^BUG: (?:unable to handle |kernel NULL )|^Unable to handle kernel "
        rb"|^general protection fault[:,]|^Internal error: Oops",
    ),
    ("interface", rb"^unregister_netdevice: waiting for "),
    ("neighbours", rb"neigh(?:bou?r)?: .{1,40}neighbou?r table overflow|^Neighbour table overflow"),
    ("connections", rb"nf_conntrack: table full, dropping packet"),
    ("checksum", rb"^(?:UDP|TCP): bad checksum\. "),
    ("session", rb"^TCP: (?:Unexpected )?MD5 [Hh]ash "),
    # The ends of pods' own cables hear themselves where a bridge sends back what it gets.
    (
        "address",
        rb"received packet on (?!veth|cali|lxc)[\w.@-]{1,40} with own address as source"
        rb"|^IPv6: (?!veth|cali|lxc)[\w.@-]{1,40}: IPv6 duplicate address .{1,120}detected",
    ),
    (
        "card",
        rb"^NETDEV WATCHDOG: |Detected (?:Tx|Hardware) Unit Hang|transmit queue \d+ timed out",
    ),
    ("card", rb"^ena .{1,60}Keep alive watchdog timeout"),
    ("card", rb"^\w{2,10} [0-9a-f:.]{7,15}.{0,20}: (?:PCIe link lost|Adapter removed|tx hang)"),
    ("card", rb"^mlx5_core .{1,100}(?:health compromised|Fatal error \d|health recovery failed)"),
    ("card", rb"^i40e .{1,80}(?:TX driver issue detected|Malicious Driver Detection event)"),
    ("card", rb"^bnxt_en .{1,80}(?:TX timeout detected|Error \(timeout: )"),
    ("card", rb"^tg3 .{1,60}: transmit timed out, resetting"),
    ("bond", rb"Warning: No 802\.3ad response from the link partner for any adapters"),
    # Tunnels and interfaces of pods: on others a scan of a network leads to the same.
    (
        "route",
        rb"martian source .{1,40}, on dev (?:cali|flannel|cni|vxlan|tunl|cilium|lxc|weave|genev)",
    ),
    ("backlog", rb"Possible SYN flooding on port (?:\S{1,45}:)?(?:6443|2379|2380|10250)\."),
    ("dns", rb"^IPVS: \w{2,10}: \w{2,4} \S{3,45}:53 - no destination available"),
    ("files", rb"^VFS: file-max limit \d+ reached"),
    ("heat", rb"temperature (?:is )?above threshold, cpu clock (?:is )?throttled"),
    ("pcie", rb"PCIe Bus Error: severity=Correct"),
    ("hardware", rb"PCIe Bus Error: severity=Uncorrect(?:ed|able) \((?:Non-)?Fatal\)"),
    ("hardware", rb"\[Hardware Error\]: (?!Machine check events logged)|^EDAC .{1,30}: \d+ [CU]E "),
    ("hardware", rb"^(?:\S{1,30} hwmon\d+: )?Under-?voltage detected!"),
    ("gpu", rb"^NVRM: (?:Xid |API mismatch|GPU .{1,60}has fallen off|.{0,60}[Ff]ailed to init)"),
    ("gpu", rb"^NVRM: .{0,60}RmInitAdapter failed|^NVRM: The NVIDIA .{1,300}(?:GSP\)|Legacy)"),
    ("gpu", rb"^NVRM: The NVIDIA probe routine was not called for \d+ device"),
    ("gpu", rb"^NVRM: (?:No NVIDIA (?:GPU|graphics adapter) found|This PCI I/O region assigned)"),
    ("gpu", rb"^amdgpu .{1,60}(?:timeout|GPU reset)"),
    ("storage", rb"^lockd: (?:server \S{1,200} not responding|cannot monitor )"),
    ("storage", rb"^nfs: server \S{1,200} not responding|^CIFS: .{0,60}has not responded"),
    (
        "client",
        rb"^libceph: .{0,120}(?:feature set mismatch|missing required protocol features"
        rb"|authentication failed|no secret set|error -\d+ on auth)",
    ),
    ("client", rb"^rbd: image .{1,200}unsupported features|^rbd: .{0,80}(?:block|black)listed"),
    ("client", rb"^ceph: .{0,80}(?:reconnect denied|(?:block|black)listed|denied access)"),
    ("client", rb"^CIFS:? .{0,80}(?:Send error in SessSetup|cifs_mount failed|STATUS_LOGON)"),
    ("storage", rb"^ceph: .{0,60}(?:session lost|hung)|^libceph: .{0,80}(?:connect error|closed)"),
    # A pod cannot set a limit of processes: it has that of its kubelet or of its runtime.
    (
        "pod-processes",
        rb"^cgroup: fork rejected by pids controller in /[^\n]{0,200}?kubepods[^/\n]{0,60}/",
    ),
    (
        "processes",
        rb"^cgroup: fork rejected by pids controller in /(?:system\.slice|kubepods[^/]*$)",
    ),
    (
        "apparmor",
        rb'apparmor="DENIED"(?!.{1,300} ' + _CONTAINERS + rb').{1,300} comm="' + PROGRAMS + rb'"',
    ),
    # In complain mode what has no path (disconnected) is denied nevertheless, by the error EACCES.
    (
        "apparmor",
        rb'apparmor="ALLOWED"(?=.{1,300} error=-13 )(?!.{1,300} '
        + _CONTAINERS
        + rb').{1,300} comm="'
        + PROGRAMS
        + rb'"',
    ),
    # The profiles that runtimes give their containers allow these sockets: none is for that.
    (
        "sockets",
        rb'apparmor="DENIED" operation="create" class="net"'
        rb'(?=.{1,300} family="(?:inet6?|unix)").{0,300} ' + _CONTAINERS,
    ),
    # The runtime cannot stop a container whose profile does not let it receive a signal.
    (
        "apparmor",
        rb'apparmor="DENIED" operation="signal".{1,300} comm="' + PROGRAMS + rb'"'
        rb' requested_mask="receive"',
    ),
    ("memory", rb"page allocation failure: order:|^SLUB: Unable to allocate memory"),
    ("memory", rb"^TCP: (?:out of memory|too many orphaned sockets)"),
    ("memory", rb"^XFS: (?:.{1,60} )?possible memory allocation deadlock"),
    ("crash", rb"^" + PROGRAMS + rb"\[\d+\]: segfault at |^traps: " + PROGRAMS + rb"\[\d+\]"),
    ("rules", rb"^(?:traps: )?(?:" + _OF_RULES + rb")\[\d+\](?:: segfault at | .{0,20}trap )"),
    (
        "filter",
        rb"^x_tables: .{1,40} (?:match|target): |^xt_[A-Za-z_]{1,30}: .{0,80}(?:invalid|fail)",
    ),
    ("module", rb"disagrees about version of symbol|: Unknown symbol |version magic '"),
    ("selinux", rb"^SELinux: .{0,60}:container_\w{2,30}_t:s0.{0,100}(?:errno=-22|is not valid)"),
    ("module", rb"Loading of module with unavailable key is rejected"),
    ("module", rb"Loading of unsigned module is rejected|^Lockdown: .{1,40}unsigned module"),
    (
        "overlay",
        rb"^overlayfs: (?:maximum fs stacking|filesystem on .{1,200}not supported as upper"
        rb"|upper fs needs to support d_type|unrecognized mount option )"
        rb"|^overlay: Unknown parameter '",
    ),
    (AUDIT, rb"^audit: (?:audit_backlog=\d+ > audit_backlog_limit|backlog limit exceeded)"),
)
_ANY = b"|".join(b"(?:" + pattern + b")" for _dummy, pattern in CLASSES)
# The first lines of a kernel that ends.
_PANIC = (
    b"|".join(pattern for name, pattern in CLASSES if name == OOPS)
    + rb"|^Kernel panic - not syncing|soft lockup - CPU#|hard LOCKUP"
)
MAX_ENDS, END_SECONDS = 3, 60.0
# The bus of an SD card or eMMC, or of a chip: the line is the same.
SDIO, BUSES = "sdio", "/sys/class/mmc_host"
_BUS = re.compile(rb"^(mmc\d{1,3}): ")
# What differs between lines about the same.
_VARIES = re.compile(rb"0x[0-9a-f]+|[0-9a-f]{8,}|\d+")


def collect(context):
    """Return {since, cut, rows, kills, panic} of what the kernel said in the last hour.

    A row is {kind, count, first, last, line, trace}: kind one of CLASSES, line the newest one;
    times are seconds since the epoch; trace: the functions that the kernel was in, innermost first.
    since: from when on the log was read; cut: whether it was not all read. kills: {pid, program,
    at, scope} of what it killed for want of memory, since the log begins. panic: {path, at, lines,
    trace} of the kernel that ended before this boot, where something kept its words; else None.
    """
    context.source = KMSG
    if any(map(os.path.exists, CONTAINER)):
        raise Absent("a container has no kernel log of its own")
    now, uptime, kills = time.time(), _uptime(), MemoryKills()
    rows, oldest, is_cut = read(_records(KMSG), now - uptime, now - WINDOW, kills)
    return {
        "since": round(max(now - WINDOW, oldest or now - uptime), 3),
        "cut": is_cut or len(rows) > MAX_ROWS,
        "rows": rows[:MAX_ROWS],
        "kills": kills.rows,
        "panic": panic(now - uptime),
    }


def panic(booted):
    """Return {path, at, lines, trace} of a kernel that ended before this boot, or None."""
    path, at = crash_files.newest(booted)
    if path is None:
        return None
    rows = _ends(crash_files.lines(path))
    if not rows:
        return None
    traced = next((row["trace"] for row in rows if row["trace"]), [])
    return {
        "path": files.one_line(path, 300),
        "at": round(at, 3),
        "lines": [row["line"] for row in rows],
        "trace": traced,
    }


def _ends(lines):
    """Return the rows of a kernel's very last lines; lines that it survived do not count."""
    rows, traces, now = [], CallTraces(), 0.0
    for moment, text in lines:
        now = moment
        if re.search(_PANIC, text):
            rows.append({"at": moment, "line": _cleaned(text), "trace": []})
            traces.begin(rows[-1], moment)
        else:
            traces.take(moment, text)
    return [row for row in rows if row["at"] >= now - END_SECONDS][:MAX_ENDS]


def _uptime():
    """Return the clock by which the kernel stamps its log, in seconds since its boot."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _records(path):
    """Yield the records of the kernel's log that are there, oldest first."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        _refuse(error)
    try:
        for _record in range(MAX_RECORDS):
            try:
                raw = os.read(descriptor, RECORD_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # the oldest were overwritten meanwhile
                    continue
                _refuse(error)
            if not raw:
                return
            yield raw
    finally:
        os.close(descriptor)


def _refuse(error):
    """Raise the answer of a log that cannot be read."""
    text = files.reason(error)
    if error.errno in (errno.EPERM, errno.EACCES):
        raise Denied(text)
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV):
        raise Absent(text)
    raise Failed(text)


def read(records, booted, since, kills=None):
    """Return (rows, when the oldest record was written, whether there are more records).

    booted: when the machine started, in seconds since the epoch
    kills: takes what the kernel killed for want of memory
    """
    rows, oldest, count, traces = {}, None, 0, CallTraces()
    is_one = re.compile(_ANY).search  # 5 ms, which a node without a log does not need
    for raw in records:
        count += 1
        moment, text = _record(raw, booted)
        if moment is None:
            continue
        if oldest is None:
            oldest = moment
        if kills is not None:
            kills.take(moment, text)
        if moment >= since and is_one(text):
            row = _add(rows, moment, text, moment - booted < BOOTING)
            if row is not None and row["kind"] in TRACED:
                traces.begin(row, moment)
        else:
            traces.take(moment, text)
    newest = sorted(rows.values(), key=lambda row: (-row["last"], row["kind"]))
    return newest, oldest, count >= MAX_RECORDS


def _record(raw, booted):
    """Return (when it was written, its text) of a record, whose head has priority, number, time."""
    head, _dummy, text = raw.partition(b";")
    fields = head.split(b",")
    if len(fields) < 3 or not fields[2].isdigit():
        return None, b""
    return booted + int(fields[2]) / 1e6, text.partition(b"\n")[0]


def _add(rows, moment, text, is_booting):
    """Add a line to its row, and return that."""
    kind = next((name for name, pattern in CLASSES if re.search(pattern, text)), None)
    if is_booting and kind == AUDIT:
        return None
    if kind == "disk" and _is_of_chip(text):
        kind = SDIO
    key = (kind, _VARIES.sub(b"#", text[:LONGEST]))
    row = rows.setdefault(key, {"kind": kind, "count": 0, "first": round(moment, 3)})
    row["count"] += 1
    row["last"], row["line"] = round(moment, 3), _cleaned(text)
    return row


def _is_of_chip(text):
    """Return whether a line is about a bus that has a chip (SDIO), as that of WLAN, and no disk."""
    bus = _BUS.match(text)
    if bus is None:
        return False
    folder = os.path.join(BUSES, bus.group(1).decode("ascii"))
    places = [os.path.join(folder, name, "type") for name in files.names(folder) if ":" in name]
    return any((files.text(place, 64) or "").strip().upper() == "SDIO" for place in places)


def _cleaned(raw):
    text = log_lines.Cleaner().clean(raw[: log_lines.LONGEST], False)
    return repeated_lines.printable(log_lines.ends(text, len(raw), LONGEST))
