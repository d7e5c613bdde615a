# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel said of what keeps a node from its work, KM562."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    kernel_log as collector,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import kernel_log
from tests.unit.support.waiting_pods import judged, note_of

CHECKSUM = "UDP: bad checksum. From 192.0.2.11:46932 to 192.0.2.101:8472 ulen 82"


def say(world, kind, line, count=1, last=60):
    clock = world.data("w1", "system")["clock"]
    row = {"kind": kind, "count": count, "first": clock - 900, "last": clock - last, "line": line}
    world.data("w1", "kernel_log")["rows"].append(row)


def test_a_healthy_cluster_and_missing_evidence(world):
    verdicts, found = judged(world, "KM562")
    assert (set(verdicts), found) == ({"clear"}, [])
    world.documents["w1"]["collectors"]["kernel_log"] = {"status": "denied", "data": None}
    assert "unknown" in judged(world, "KM562")[0]


def test_a_log_that_was_not_read_to_its_end(world):
    world.data("w1", "kernel_log")["cut"] = True
    verdicts, found = judged(world, "KM562")
    assert ("unknown" in verdicts, found) == (True, [])
    assert note_of(world, "KM562").startswith("0 different lines of the kernel's log ")
    assert "journalctl -k --since -1h" in note_of(world, "KM562")
    say(world, "disk", "Buffer I/O error on dev sda1, logical block 0, async page read")
    assert len(judged(world, "KM562")[1]) == 1


def test_each_kind_of_the_collector_has_a_meaning():
    kinds = {kind for kind, _pattern in collector.CLASSES}
    assert kinds | {collector.SDIO} == set(kernel_log.KINDS)
    assert kernel_log.PANIC not in kinds


@pytest.mark.parametrize(("kind", "is_disk"), [("sdio", False), ("disk", True)])
def test_a_chip_of_wlan_is_no_card(world, kind, is_disk):
    say(world, kind, "mmc1: Timeout waiting for hardware interrupt.", count=5)
    (found,) = judged(world, "KM562")[1]
    assert found.component == kind
    assert ("dd to another one" in found.remedy) == is_disk
    assert ("disable-wifi" in found.remedy) != is_disk


def test_packets_with_a_wrong_checksum(world):
    say(world, "checksum", CHECKSUM, count=30)
    (found,) = judged(world, "KM562")[1]
    assert (found.host, found.severity, found.component) == ("w1", "warning", "checksum")
    assert "30 times" in found.summary
    assert CHECKSUM in found.summary
    assert "tx-checksum-ip-generic off" in found.remedy
    assert found.evidence[0].path == "/dev/kmsg"


@pytest.mark.parametrize(
    ("kind", "line", "least", "known"),
    [
        (
            "session",
            "TCP: MD5 Hash failed for (192.0.2.1, 41823)->(192.0.2.11, 179) L3 index 0",
            5,
            "BGPPeer",
        ),
        (
            "address",
            "weave: received packet on vxlan-6784 with own address as source address",
            3,
            "/etc/machine-id",
        ),
    ],
)
def test_a_session_or_an_address_of_another_counts_where_it_goes_on(
    world, kind, line, least, known
):
    say(world, kind, line, count=least - 1)
    assert judged(world, "KM562")[1] == []
    say(world, kind, line, count=least)
    (found,) = judged(world, "KM562")[1]
    assert (found.host, found.severity, found.component) == ("w1", "warning", kind)
    assert line in found.summary
    assert known in found.remedy


def test_lines_of_one_kind_are_one_finding_of_the_newest(world):
    say(world, "oom", "Out of memory: Killed process 1 (java)", last=600)
    say(world, "oom", "Out of memory: Killed process 2 (etcd)", last=30)
    say(world, "disk", "Buffer I/O error on dev sda1, logical block 0, async page read")
    by_kind = {found.component: found for found in judged(world, "KM562")[1]}
    assert set(by_kind) == {"oom", "disk"}
    assert "2 times" in by_kind["oom"].summary
    assert "(etcd)" in by_kind["oom"].summary
    assert "(java)" not in by_kind["oom"].summary


@pytest.mark.parametrize(("count", "is_present"), [(4, False), (5, True)])
def test_a_few_may_be_chance(world, count, is_present):
    say(world, "checksum", CHECKSUM, count=count)
    assert bool(judged(world, "KM562")[1]) == is_present


def test_a_kind_that_is_not_known_is_no_finding(world):
    say(world, "else", "x", count=99)
    assert judged(world, "KM562")[1] == []


def test_what_a_node_says_is_bounded(world):
    say(world, "oom", "\x1b" + "x" * 9000)
    (found,) = judged(world, "KM562")[1]
    assert "\x1b" not in found.summary
    assert len(found.summary) < 900


def test_the_cause_of_a_known_message_is_told(world):
    say(world, "gpu", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.")
    (found,) = judged(world, "KM562")[1]
    assert "Known cause: A GPU does not answer at its bus any more" in found.summary
    assert "power the machine off and on" in found.remedy


def test_what_a_disk_says_counts_before_its_file_system(world):
    say(world, "disk", "Aborting journal on device sda1-8.", last=10)
    say(world, "disk", "sd 0:0:0:0: [sda] tag#5 Sense Key : Medium Error [current]", last=90)
    (found,) = judged(world, "KM562")[1]
    assert "smartctl -a /dev/sda" in found.remedy
    assert "e2fsck" not in found.remedy


def test_a_file_system_alone_is_told(world):
    say(world, "disk", "Aborting journal on device sda1-8.")
    (found,) = judged(world, "KM562")[1]
    assert "e2fsck -f" in found.remedy


@pytest.mark.parametrize(
    ("kind", "line", "count"),
    [
        ("route", "IPv4: martian source 10.244.1.5 from 10.244.2.7, on dev flannel.1", 20),
        ("pcie", "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical", 20),
        ("heat", "mce: CPU3: Core temperature above threshold, cpu clock throttled", 20),
        ("dns", "IPVS: rr: UDP 10.96.0.10:53 - no destination available", 5),
        ("backlog", "TCP: Possible SYN flooding on port 6443. Sending cookies.", 3),
    ],
)
def test_what_is_said_now_and_then_is_no_fault(world, kind, line, count):
    say(world, kind, line, count=count - 1)
    assert judged(world, "KM562")[1] == []
    say(world, kind, line)
    (found,) = judged(world, "KM562")[1]
    assert "Known cause: " in found.summary


FORK = (
    "cgroup: fork rejected by pids controller in /kubepods.slice/"
    "kubepods-pod0d6c1f0a_5a57_4a0b_8b5e_0b8f7f1c2d11.slice/crio-5a84.scope"
)


def test_a_pod_at_the_limit_of_its_kubelet(world):
    say(world, "pod-processes", FORK)
    config = {"path": "/var/lib/kubelet/config.yaml", "text": "podPidsLimit: 1024\n"}
    world.data("w1", "kubelet")["config"] = config
    (found,) = judged(world, "KM562")[1]
    assert (found.severity, found.component) == ("warning", "pod-processes")
    assert "podPidsLimit, " + config["path"] in found.summary
    assert found.evidence[-1].text == "podPidsLimit: 1024"
    assert "grep 0d6c1f0a-5a57-4a0b-8b5e-0b8f7f1c2d11" in found.remedy


@pytest.mark.parametrize(
    ("version", "config", "is_named"),
    [
        ("1.20.2", {"pids_limit": None}, True),
        ("1.20.2", None, True),
        ("1.30.0", {"pids_limit": None}, False),
        ("1.30.0", {"pids_limit": 2048, "pids_limit_path": "/etc/crio/crio.conf:9"}, True),
        ("1.20.2", {"pids_limit": -1, "pids_limit_path": "/etc/crio/crio.conf:9"}, False),
    ],
)
def test_a_container_at_the_limit_of_cri_o(world, version, config, is_named):
    say(world, "pod-processes", FORK)
    for name, data in (("runtime", {"kind": "crio"}), ("cri", {"version": version})):
        world.documents["w1"]["collectors"][name] = {"status": "ok", "data": data}
    world.data("w1", "cri")["config"] = config
    (found,) = judged(world, "KM562")[1]
    assert ("CRI-O allows" in found.summary) == is_named
    assert ("crio.conf:9" in found.summary) == bool(config and (config["pids_limit"] or 0) > 0)


def test_a_limit_that_is_not_known(world):
    say(world, "pod-processes", FORK)
    for name in ("kubelet", "cri", "runtime"):
        world.documents["w1"]["collectors"][name] = {"status": "error", "data": None}
    (found,) = judged(world, "KM562")[1]
    assert found.summary.endswith(".scope")


@pytest.mark.parametrize(("count", "is_present"), [(2, False), (3, True)])
def test_a_program_of_rules_that_crashes(world, count, is_present):
    say(world, "rules", "iptables[1]: segfault at 88 error 4 in libnftnl.so.11.3.0", count=count)
    assert bool(judged(world, "KM562")[1]) == is_present


@pytest.mark.parametrize(("kind", "is_named"), [("hang", True), ("disk", False)])
def test_the_kernel_is_named_where_another_one_may_not_have_it(world, kind, is_named):
    world.data("w1", "system")["kernel"] = "6.17.0-1008-raspi"
    say(world, kind, "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks")
    (found,) = judged(world, "KM562")[1]
    assert ("(kernel 6.17.0-1008-raspi)" in found.summary) is is_named


def ended(world, lines, trace=(), ago=900):
    clock = world.data("w1", "system")["clock"]
    path = "/var/crash/127.0.0.1-2026-11-29-10:00:00/vmcore-dmesg.txt"
    panic = {"path": path, "at": clock - ago, "lines": list(lines), "trace": list(trace)}
    world.data("w1", "kernel_log")["panic"] = panic
    return path


def test_a_lockup_in_a_bpf_program(world):
    say(world, "hang", "watchdog: BUG: soft lockup - CPU#7 stuck for 22s! [dracut:7899]")
    world.data("w1", "kernel_log")["rows"][-1]["trace"] = ["page_fault", "bpf_trace_run2"]
    (found,) = judged(world, "KM562")[1]
    assert "a BPF program (bpf_trace_run2)" in found.summary
    assert found.remedy.startswith("see on that node which agent loaded the BPF program")


def test_an_oops_in_a_module(world):
    say(world, "oops", "BUG: kernel NULL pointer dereference, address: 0000000000000008")
    world.data("w1", "kernel_log")["rows"][-1]["trace"] = ["record_event falco"]
    (found,) = judged(world, "KM562")[1]
    assert (found.component, found.severity) == ("oops", "warning")
    assert "the module falco of Falco" in found.summary


def test_a_machine_that_was_booted_because_its_kernel_ended(world):
    lines = ["kernel BUG at net/core/skbuff.c:4082!", "Kernel panic - not syncing: Fatal exception"]
    path = ended(world, lines, ["skb_segment", "tcp_gso_segment", "vxlan_xmit vxlan"])
    (found,) = judged(world, "KM562")[1]
    assert (found.host, found.component, found.severity) == ("w1", "panic", "warning")
    for word in (lines[0], "skb_segment", "Known cause", "BPF"):
        assert word in found.summary
    assert "gro off" in found.remedy
    assert [proof.path for proof in found.evidence] == [path, path]


def test_another_end_in_the_same_file_of_the_kernel_has_no_known_cause(world):
    ended(world, ["kernel BUG at net/core/skbuff.c:100!"], ["skb_panic", "skb_put"])
    (found,) = judged(world, "KM562")[1]
    assert "Known cause" not in found.summary


def test_a_kernel_that_ended_long_ago_or_did_not(world):
    ended(world, ["Kernel panic - not syncing: x"], ago=2 * 86400)
    assert judged(world, "KM562")[1] == []
    world.data("w1", "kernel_log")["panic"] = None
    assert judged(world, "KM562")[1] == []


@pytest.mark.parametrize("lacks", ["lines", "at", "clock"])
def test_the_end_of_a_kernel_without_a_line_or_a_time(world, lacks):
    ended(world, ["Kernel panic - not syncing: x"])
    if lacks == "clock":
        world.data("w1", "system")["clock"] = None
    else:
        world.data("w1", "kernel_log")["panic"][lacks] = [] if lacks == "lines" else None
    verdicts, found = judged(world, "KM562")
    assert (set(verdicts), found) == ({"clear"}, [])


@pytest.mark.parametrize(
    ("trace", "has_bpf"),
    [(["bpf_trace_run2"], True), (["skb_panic"], False)],
)
def test_what_to_do_about_a_kernel_that_ended(world, trace, has_bpf):
    path = ended(world, ["Kernel panic - not syncing: x"], trace)
    (found,) = judged(world, "KM562")[1]
    assert ("bpftool" in found.remedy) is has_bpf
    assert found.remedy.endswith(path)
    assert "(about 20" in found.summary


def test_a_kind_without_advice_of_its_trace_has_its_own_alone(world):
    say(world, "hang", "INFO: task x:1 blocked for more than 120 seconds.")
    (found,) = judged(world, "KM562")[1]
    assert not found.remedy.startswith(";")
