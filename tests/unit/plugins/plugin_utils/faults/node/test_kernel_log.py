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
    say(world, "disk", "Buffer I/O error on dev sda1")
    assert len(judged(world, "KM562")[1]) == 1


def test_each_kind_of_the_collector_has_a_meaning():
    assert {kind for kind, _pattern in collector.CLASSES} == set(kernel_log.KINDS)


def test_packets_with_a_wrong_checksum(world):
    say(world, "checksum", CHECKSUM, count=30)
    (found,) = judged(world, "KM562")[1]
    assert (found.host, found.severity, found.component) == ("w1", "warning", "checksum")
    assert "30 times" in found.summary
    assert CHECKSUM in found.summary
    assert "tx-checksum-ip-generic off" in found.remedy
    assert found.evidence[0].path == "/dev/kmsg"


def test_lines_of_one_kind_are_one_finding_of_the_newest(world):
    say(world, "oom", "Out of memory: Killed process 1 (java)", last=600)
    say(world, "oom", "Out of memory: Killed process 2 (etcd)", last=30)
    say(world, "disk", "Buffer I/O error on dev sda1")
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
