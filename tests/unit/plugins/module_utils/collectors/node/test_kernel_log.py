# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector kernel_log: which lines it takes, of which kind, and where it has no answer."""

import errno
import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kernel_log
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import memory_kills
from tests.docs import known_messages

BOOTED, NOW = 1795000000.0, 1795090000.0
# As kernels of public threads wrote them.
LINES = (
    ("oom", "Out of memory: Killed process 1234 (java) total-vm:9000kB, anon-rss:8000kB"),
    ("oom", "Memory cgroup out of memory: Killed process 77 (kubelet) total-vm:9000kB"),
    ("oom", "Memory cgroup out of memory: Killed process 77 (kube-apiserver) total-vm:9000kB"),
    (
        "oom",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg="
        "/system.slice/k3s.service,task_memcg=/system.slice/k3s.service,task=k3s-server,pid=7",
    ),
    (
        "oom",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg="
        "/system.slice/containerd.service,task_memcg=/system.slice/containerd.service,task="
        "containerd-shim,pid=7",
    ),
    ("disk", "blk_update_request: I/O error, dev sda, sector 123456 op 0x0:(READ)"),
    ("disk", "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #262: comm etcd: reading"),
    ("disk", 'XFS (dm-0): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x1'),
    ("disk", "EXT4-fs (sda1): Remounting filesystem read-only"),
    ("disk", "nvme nvme0: I/O 26 QID 3 timeout, aborting"),
    ("disk", "ata1.00: failed command: WRITE FPDMA QUEUED"),
    ("disk", "megaraid_sas 0000:5a:00.0: [30]waiting for 65 commands to complete for scsi0"),
    ("disk", "mpt3sas_cm0: fault_state(0x7e23)!"),
    ("disk", "sd 0:0:1:0: [sdb] tag#10 timing out command, waited 180s"),
    ("disk", "sd 2:0:0:0: [sda] tag#0 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD OUT"),
    ("disk", "mmcblk0: error -110 transferring data, sector 1234, nr 8, cmd response 0x900"),
    ("disk", "mmc0: Timeout waiting for hardware interrupt."),
    ("disk", "md/raid1:md0: Disk failure on sdb1, disabling device."),
    ("hang", "INFO: task dockerd:1234 blocked for more than 120 seconds."),
    ("hang", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:1234]"),
    ("hang", "rcu: INFO: rcu_sched self-detected stall on CPU"),
    ("hang", "INFO: rcu_sched self-detected stall on CPU"),
    ("oops", "kernel BUG at net/core/skbuff.c:4082!"),
    ("oops", "BUG: unable to handle page fault for address: ffff9d5f890ff6c0"),
    ("oops", "BUG: kernel NULL pointer dereference, address: 0000000000000008"),
    ("oops", "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP"),
    ("oops", "Unable to handle kernel paging request at virtual address ffff8000"),
    ("interface", "unregister_netdevice: waiting for lo to become free. Usage count = 1"),
    ("neighbours", "neighbour: arp_cache: neighbor table overflow!"),
    ("connections", "nf_conntrack: nf_conntrack: table full, dropping packet"),
    ("checksum", "UDP: bad checksum. From 192.0.2.11:46932 to 192.0.2.101:8472 ulen 82"),
    ("session", "TCP: MD5 Hash failed for (192.0.2.1, 41823)->(192.0.2.11, 179) L3 index 0"),
    ("session", "TCP: MD5 Hash mismatch for 192.0.2.1.179->192.0.2.11.52333 [S] L3 index 0"),
    ("session", "TCP: Unexpected MD5 Hash found for 192.0.2.1.179->192.0.2.11.52333 [S]"),
    ("address", "weave: received packet on vxlan-6784 with own address as source address"),
    ("address", "br0: received packet on eth0 with own address as source address (addr:52:54:00)"),
    (
        "address",
        "IPv6: ens3: IPv6 duplicate address fe80::5054:ff:fe12:1 used by 52:54:00:12:00:01"
        " detected!",
    ),
    ("card", "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 3 timed out"),
    ("card", "e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:"),
    ("card", "ena 0000:00:05.0: Keep alive watchdog timeout."),
    (
        "overlay",
        "overlayfs: filesystem on '/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"
        "/snapshots/12/fs' not supported as upperdir",
    ),
    ("hardware", "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 8: cc00008000010090"),
    ("hardware", "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0"),
    ("hardware", "Under-voltage detected! (0x00050005)"),
    ("hardware", "hwmon hwmon1: Undervoltage detected!"),
    ("memory", "XFS: runc:[1:CHILD](3580) possible memory allocation deadlock in kmem_zone_alloc"),
    ("memory", "XFS: possible memory allocation deadlock in kmem_alloc (mode:0x250)"),
    ("disk", "ata1.00: failed command: FLUSH CACHE EXT"),
    ("gpu", "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"),
    ("gpu", "NVRM: API mismatch: the client has the version 535.54.03, but"),
    ("storage", "nfs: server 192.0.2.9 not responding, still trying"),
    ("storage", "libceph: mon0 (1)192.0.2.9:6789 socket closed (con state OPEN)"),
    ("client", "libceph: mon0 192.0.2.9:6789 feature set mismatch, my 10 < server's 40, missing 4"),
    ("client", "libceph: mon0 192.0.2.9:6789 missing required protocol features"),
    ("client", "rbd: image a: image uses unsupported features: 0x38"),
    ("client", "ceph: mds0 reconnect denied"),
    ("client", "CIFS: VFS: \\\\192.0.2.9 Send error in SessSetup = -13"),
    ("processes", "cgroup: fork rejected by pids controller in /system.slice/containerd.service"),
    (
        "apparmor",
        'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="signal" class="signal"'
        ' profile="cri-containerd.apparmor.d" pid=1 comm="runc" requested_mask="receive"',
    ),
    (
        "apparmor",
        'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="open" class="file"'
        ' profile="runc" name="/run/x" pid=1 comm="runc" requested_mask="r" denied_mask="r"',
    ),
    (
        "apparmor",
        'audit: type=1400 audit(1.0:1): apparmor="ALLOWED" operation="getattr" class="file"'
        ' info="Failed name lookup - disconnected path" error=-13 profile="runc" name="" pid=1'
        ' comm="runc" requested_mask="r" denied_mask="r"',
    ),
    (
        "sockets",
        'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="create" class="net"'
        ' profile="cri-containerd.apparmor.d" family="inet" sock_type="stream"'
        ' requested="create" denied="create"',
    ),
    (
        "sockets",
        'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="create" class="net" info="a"'
        ' error=-13 profile="docker-default" pid=1 comm="web" family="unix" sock_type="dgram"',
    ),
    ("memory", "kubelet: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP)"),
    ("memory", "TCP: out of memory -- consider tuning tcp_mem"),
    ("crash", "containerd[1234]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6"),
    ("filter", "x_tables: ip_tables: MASQUERADE.0 target: invalid size 24 (kernel) != (user) 0"),
    ("module", "nvidia: disagrees about version of symbol module_layout"),
    (
        "module",
        "Lockdown: insmod: unsigned module loading is restricted; see man kernel_lockdown.7",
    ),
    ("overlay", "overlayfs: filesystem on '/var/lib/a' not supported as upperdir"),
    ("overlay", "overlayfs: upper fs needs to support d_type."),
    ("overlay", 'overlayfs: unrecognized mount option "metacopy=on" or missing value'),
    ("overlay", "overlay: Unknown parameter 'metacop'"),
    (
        "disk",
        "XFS (rbd2): Filesystem has duplicate UUID 359fa82b-a536-4068-adf0-3d9950d03d80 - can't",
    ),
    ("disk", "XFS (sdc): Superblock has unknown read-only compatible features (0x8) enabled."),
    ("disk", "EXT4-fs (sdb): couldn't mount RDWR because of unsupported optional features (10000)"),
    ("disk", "EXT4-fs (sdb): couldn't mount because of unsupported optional features (10000)"),
    ("disk", "device-mapper: thin: 253:4: switching pool to out-of-data-space (queue IO) mode"),
    ("disk", "device-mapper: thin: 253:4: no free metadata space available."),
    ("gpu", "NVRM: GPU 0000:05:00.0: RmInitAdapter failed! (0x24:0x72:1447)"),
    ("gpu", "NVRM: The NVIDIA probe routine was not called for 1 device(s)."),
    (
        "gpu",
        "NVRM: The NVIDIA GPU 0000:05:00.0 (PCI ID: 10de:1d81)\\x0aNVRM: installed in this system"
        " is not supported by open\\x0aNVRM: nvidia.ko because it does not include the required GPU"
        "\\x0aNVRM: System Processor (GSP).",
    ),
    (
        "client",
        "libceph: mon2 10.205.92.13:6789 feature set mismatch, my 106b84a842a42 < server's"
        " 40106b84a842a42, missing 400000000000000",
    ),
    (
        "pod-processes",
        "cgroup: fork rejected by pids controller in /kubepods.slice/kubepods-pod1.slice/cri-1",
    ),
    ("pod-processes", "cgroup: fork rejected by pids controller in /kubepods/burstable/pod1/0d6"),
    (
        "pod-processes",
        "cgroup: fork rejected by pids controller in /system.slice/docker-1.scope/kubelet.slice/"
        "kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/cri-1.scope",
    ),
    (
        "rules",
        "iptables[51388]: segfault at 88 ip 00007fe6cd937e47 sp 00007ffe58e4ed68 error 4 in"
        " libnftnl.so.11.3.0[7fe6cd933000+16000]",
    ),
    ("rules", "traps: iptables-nft-re[77] trap invalid opcode ip:5581 sp:7ffd error:0 in xtables"),
    ("rules", "xtables-nft-mul[7]: segfault at 0 ip 00007f sp 00007f error 4 in libnftnl.so.11"),
    ("rules", "nft[77]: segfault at 0 ip 00007f sp 00007f error 4 in libnftables.so.1"),
    ("audit", "audit: audit_backlog=8193 > audit_backlog_limit=8192"),
    ("audit", "audit: backlog limit exceeded"),
)
QUIET = (
    # libata reads the log of a disk, which not every disk has
    "ata1.00: failed command: READ LOG DMA EXT",
    # a workload at its own limit
    "Memory cgroup out of memory: Killed process 77 (java) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (kube-state-metr) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (dockerd) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (etcd) total-vm:9000kB",
    # docker-in-docker and kind in a pod, and the monitor of a container
    "Memory cgroup out of memory: Killed process 77 (containerd) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (containerd-shim) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (conmon) total-vm:9000kB",
    "Memory cgroup out of memory: Killed process 77 (systemd) total-vm:9000kB",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-1,mems_allowed=0,oom_memcg="
    "/kubepods.slice/kubepods-pod1.slice,task_memcg=/kubepods.slice/kubepods-pod1.slice/cri-1.scope"
    ",task=dockerd,pid=7,uid=0",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=1,mems_allowed=0,oom_memcg="
    "/system.slice/docker-1.scope,task_memcg=/system.slice/docker-1.scope,task=dockerd,pid=7,uid=0",
    "blk_update_request: I/O error, dev sr0, sector 0",
    "mce: [Hardware Error]: Machine check events logged",
    "cgroup: fork rejected by pids controller in /user.slice/user-1000.slice/session-1.scope",
    "cgroup: fork rejected by pids controller in /docker/0d6c1f0a",
    "nftool[77]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6",
    "java[77]: segfault at 0 ip 00007f sp 00007f error 4 in libjvm.so",
    'audit: apparmor="DENIED" operation="open" profile="snap.x" name="/proc" comm="chromium"',
    'audit: type=1400 audit(1.0:1): apparmor="ALLOWED" operation="open" class="file" profile="runc"'
    ' name="/run/x" pid=1 comm="runc" requested_mask="r" denied_mask="r"',
    "kube-state-metr[77]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6",
    # the profile of a container did its work on a pod
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="mount" class="mount" info="failed'
    ' flags match" error=-13 profile="cri-containerd.apparmor.d" name="/" pid=1 comm="crun"',
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="ptrace" profile="docker-default"'
    ' pid=1 comm="dockerd" requested_mask="trace" denied_mask="trace" peer="unconfined"',
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="signal" class="signal"'
    ' profile="crio-default" pid=1 comm="systemd" requested_mask="send" peer="unconfined"',
    # a family of sockets that a container is not to have, and a profile of a workload's own
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="create" class="net"'
    ' profile="cri-containerd.apparmor.d" pid=1 comm="web" family="packet" sock_type="raw"',
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="create" class="net"'
    ' profile="web" pid=1 comm="web" family="inet" sock_type="stream"',
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="open" class="file"'
    ' profile="containers-default-0.57.4" name="/x" pid=1 comm="runc" requested_mask="r"',
    # what a pod with loop devices mounts, and what overlayfs goes on without
    "XFS (loop0): Filesystem has duplicate UUID 359fa82b-a536-4068-adf0-3d9950d03d80 - can't mount",
    "overlayfs: upper fs does not support tmpfile.",
    "device-mapper: thin: 253:4: growing the data device from 100 to 200 blocks",
    "audit: type=1400 audit(1.0:1): audit_backlog=1",
    # a Service of users without endpoints, a scan of a network, a port of a workload
    "IPVS: rr: TCP 10.96.5.5:80 - no destination available",
    "IPv4: martian source 192.0.2.5 from 198.51.100.1, on dev eth0",
    "TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:8080. Sending cookies.",
    "cni0: received packet on veth1 with own address as source address (addr:aa, vlan:0)",
    "XFS (loop0): Metadata CRC error detected at xfs_agf_read_verify+0xcb/0xf0 [xfs]",
    "SELinux:  Context system_u:object_r:httpd_x_t:s0 is not valid (left unmapped).",
    "drbd pvc-1/0 drbd1000: quorum( no -> yes )",
    "cni0: port 4(veth1) entered forwarding state",
    # a bridge in hairpin mode, and the interface of a pod
    "cni0: received packet on veth1a2b with own address as source address (addr:0a:58:00, vlan:0)",
    "IPv6: cali1a2b: IPv6 duplicate address fe80::1 used by ee:ee:ee:ee:ee:ee detected!",
    "TCP: request_sock_TCP: Possible SYN flooding on port 179. Sending cookies.",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode",
    "libceph: mon0 (1)192.0.2.9:6789 session established",
    # a server that started again: the client gets the new map by itself
    "libceph: wrong peer, want (1)192.0.2.9:6801/17, got (1)192.0.2.9:6801/23",
    "libceph: osd0 (1)192.0.2.9:6801 wrong peer at address",
    "rbd: rbd0: capacity 1073741824 features 0x1",
    "traps: web[77] general protection fault ip:7f sp:7f error:0 in libc.so.6",
    "WARNING: CPU: 3 PID: 77 at net/core/dev.c:3000 skb_warn_bad_offload+0xb0/0x110",
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.54.03",
)


EXAMPLES = [
    text
    for row, place, text in known_messages.examples("kernel")
    # a volume of a pod that uses loop devices
    if place == "kernel" and row != "ext4-newer-than-kernel"
]


def record(text, ago=60.0, number=1):
    stamp = int((NOW - ago - BOOTED) * 1e6)
    return f"4,{number},{stamp},-;{text}\n SUBSYSTEM=x\n".encode()


def read(*records):
    return kernel_log.read(iter(records), BOOTED, NOW - kernel_log.WINDOW)


@pytest.mark.parametrize(("kind", "line"), LINES)
def test_a_line_of_each_kind(kind, line):
    (row,), oldest, is_cut = read(record(line))
    assert (row["kind"], row["count"], row["line"]) == (kind, 1, line)
    assert (row["first"], oldest, is_cut) == (NOW - 60, NOW - 60, False)


@pytest.mark.parametrize("line", EXAMPLES)
def test_a_line_with_a_known_cause_is_taken(line):
    assert len(read(record(line))[0]) == 1


@pytest.mark.parametrize("line", QUIET)
def test_what_a_healthy_kernel_says(line):
    assert read(record(line))[0] == []


@pytest.mark.parametrize(("type_", "kind"), [("SDIO", "sdio"), ("SD", "disk"), (None, "disk")])
def test_the_bus_of_a_chip_is_no_disk(tmp_path, monkeypatch, type_, kind):
    """A Raspberry Pi has its card at one bus and its WLAN at another."""
    monkeypatch.setattr(kernel_log, "BUSES", str(tmp_path))
    if type_ is not None:
        device = tmp_path / "mmc1" / "mmc1:0001"
        device.mkdir(parents=True)
        (device / "type").write_text(type_ + "\n", encoding="utf-8")
    rows = read(
        record("mmc1: Timeout waiting for hardware interrupt."),
        record("mmc0: Timeout waiting for hardware interrupt."),
    )[0]
    assert sorted(row["kind"] for row in rows) == sorted({"disk", kind})


def test_lines_that_differ_in_numbers_are_one_row():
    text = "UDP: bad checksum. From 192.0.2.11:{} to 192.0.2.101:8472 ulen 82"
    rows, _oldest, _cut = read(*(record(text.format(n), ago=90 - n) for n in range(9)))
    assert [(row["count"], row["last"] - row["first"]) for row in rows] == [(9, 8.0)]


@pytest.mark.parametrize(("age", "count"), [(299, 0), (301, 1)])
def test_the_queue_of_audit_is_short_while_a_machine_boots(age, count):
    records = iter([record("audit: backlog limit exceeded", ago=NOW - BOOTED - age)])
    rows, _oldest, _cut = kernel_log.read(records, BOOTED, BOOTED)
    assert len(rows) == count


def test_what_is_older_than_an_hour_and_what_is_no_record():
    rows, oldest, _cut = read(record(LINES[0][1], ago=4000), b"", b"x;y\n", b"1,2,x,-;y")
    assert (rows, oldest) == ([], NOW - 4000)


def test_what_leaves_the_node_is_bounded_and_without_secrets():
    text = "INFO: task x:1 blocked for more than 120 seconds. token=abcdefghijklmnopqrstuvwxyz\x1b"
    (row,), _oldest, _cut = read(record(text + "y" * 3000))
    assert len(row["line"]) < 600
    assert "abcdefghijklmnopqrstuvwxyz" not in row["line"]
    assert "\x1b" not in row["line"]


@pytest.fixture
def machine(monkeypatch):
    """Let the machine be none that is a container."""
    monkeypatch.setattr(kernel_log, "CONTAINER", ())
    return lambda: kernel_log.collect(base.Context({}, [], {}))


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (errno.EPERM, base.Denied),
        (errno.EACCES, base.Denied),
        (errno.ENOENT, base.Absent),
        (errno.EIO, base.Failed),
    ],
)
def test_a_log_that_cannot_be_read(machine, monkeypatch, number, answer):
    def refuse(*_arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(kernel_log.os, "open", refuse)
    with pytest.raises(answer):
        machine()


def test_a_container_has_no_log_of_its_own(monkeypatch):
    monkeypatch.setattr(kernel_log, "CONTAINER", ("/proc",))
    with pytest.raises(base.Absent):
        kernel_log.collect(base.Context({}, [], {}))


def test_records_that_were_overwritten_are_passed_over(machine, monkeypatch):
    answers = [OSError(errno.EPIPE, "x"), b"4,1,1000000,-;hello\n", BlockingIOError()]

    def answer(*_arguments):
        given = answers.pop(0)
        if isinstance(given, OSError):
            raise given
        return given

    real = os.open
    monkeypatch.setattr(kernel_log.os, "open", lambda *_arguments: real("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(kernel_log.os, "read", answer)
    data = machine()
    assert (data["rows"], data["cut"], answers) == ([], False, [])


def test_kills_are_read_also_where_they_are_older_than_an_hour():
    kills = memory_kills.MemoryKills()
    killed = "Memory cgroup out of memory: Killed process 77 (java) total-vm:9000kB"
    rows, _oldest, _is_cut = kernel_log.read(
        iter([record(killed, ago=7200.0), record(killed, ago=60.0)]), BOOTED, NOW - 3600, kills
    )
    assert rows == []
    assert [row["at"] for row in kills.rows] == [NOW - 7200, NOW - 60]


def test_the_trace_below_a_lockup():
    head = "watchdog: BUG: soft lockup - CPU#7 stuck for 22s! [dracut-install:7899]"
    calls = [" ? page_fault+0x8/0x30", " bpf_trace_run2+0x55/0xa0", " f_sys_enter+0x1/0x2 [falco]"]
    (row,), _oldest, _cut = read(*map(record, [head, "Call Trace:", *calls]))
    assert row["trace"] == ["bpf_trace_run2", "f_sys_enter falco"]
    (row,), _oldest, _cut = read(
        *map(record, ["EXT4-fs (sda1): Remounting filesystem read-only", *calls])
    )
    assert "trace" not in row


DUMP = """\
[  100.000000] BUG: unable to handle page fault for address: ffff
[  100.000001]  survived+0x1/0x2
[90000.100000] kernel BUG at net/core/skbuff.c:4082!
[90000.100001] invalid opcode: 0000 [#1] SMP
[90000.100002] RIP: 0010:skb_segment+0xbda/0xe20
[90000.100003] Call Trace:
[90000.100004]  tcp_gso_segment+0x1/0x2
[90000.100005]  vxlan_xmit+0x1/0x2 [vxlan]
[90000.100006] ---[ end trace 0 ]---
[90000.200000] Kernel panic - not syncing: Fatal exception in interrupt
"""


@pytest.fixture
def crash(tmp_path, monkeypatch):
    def keep(text, ago=60):
        path = tmp_path / "127.0.0.1-2026-11-29-10:00:00" / "vmcore-dmesg.txt"
        path.parent.mkdir()
        path.write_text(text)
        os.utime(path, (BOOTED - ago, BOOTED - ago))
        return str(path)

    monkeypatch.setattr(kernel_log.crash_files, "FOLDERS", (str(tmp_path),))
    return keep


def test_a_kernel_that_ended_before_this_boot(crash):
    path = crash(DUMP)
    assert kernel_log.panic(BOOTED) == {
        "path": path,
        "at": BOOTED - 60,
        "lines": [
            "kernel BUG at net/core/skbuff.c:4082!",
            "Kernel panic - not syncing: Fatal exception in interrupt",
        ],
        "trace": ["skb_segment", "tcp_gso_segment", "vxlan_xmit vxlan"],
    }


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        (DUMP, 86400),
        ("", 60),
        ("[ 1.5] reboot: Restarting system\n", 60),
        # what it survived for a day
        ("[ 1.5] kernel BUG at a.c:1!\n[90000.5] reboot: Restarting system\n", 60),
    ],
)
def test_no_kernel_that_ended(crash, text, ago):
    crash(text, ago)
    assert kernel_log.panic(BOOTED) is None


@pytest.mark.parametrize(
    ("text", "count", "trace"),
    [
        ("".join(f"[ 9.{number}] kernel BUG at a.c:1!\n" for number in range(5)), 3, []),
        (
            "[ 9.1] kernel BUG at a.c:1!\n[ 9.2] Kernel panic - not syncing: x\n[ 9.3]  ff+0x1/0x2",
            2,
            ["ff"],
        ),
    ],
)
def test_of_several_words_of_an_end_the_first_are_kept_and_one_trace(crash, text, count, trace):
    crash(text)
    data = kernel_log.panic(BOOTED)
    assert (len(data["lines"]), data["trace"]) == (count, trace)


def test_what_else_the_kernel_said_at_its_end_is_none_of_the_reasons(crash):
    crash(
        "[ 9.1] EXT4-fs error (device sda1): x\n[ 9.2] Out of memory: Killed process 7 (a)\n"
        "[ 9.3] INFO: task x:1 blocked for more than 120 seconds.\n[ 9.4] kernel BUG at a.c:1!\n"
    )
    assert kernel_log.panic(BOOTED)["lines"] == ["kernel BUG at a.c:1!"]


def test_the_trace_below_an_oops():
    head = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
    (row,), _oldest, _cut = read(*map(record, [head, "RIP: 0010:f_g+0x1/0x2 [falco]"]))
    assert (row["kind"], row["trace"]) == ("oops", ["f_g falco"])
