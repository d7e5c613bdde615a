# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that name who has the port at which a program could not listen."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    address_holders as answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import address_holders
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import EvidenceRef
from tests.unit.support import answers, taken_ports

LINE = "listen tcp 0.0.0.0:10250: bind: address already in use"
CONTAINER = "c0ffee" + "0" * 58
HOLDER = {"pid": 812, "comm": "node-agent"}


def told(*rows, line=LINE, summary="it ended"):
    hit = Detection(summary, (EvidenceRef("log", "w1", text=line),), "see its log", "w1")
    data = {"addresses": [dict(row) for row in rows]}
    return address_holders.with_holder(hit, answers.typed(answer.AddressHolders, data))


def test_without_an_answer_nothing_changes():
    assert told().summary == "it ended"
    assert told(taken_ports.row(10250, **HOLDER), line="well").summary == "it ended"
    assert told(taken_ports.row(10259, **HOLDER)).summary == "it ended"
    assert told(dict(taken_ports.row(10250, **HOLDER), unseen=True)).summary == "it ended"


@pytest.mark.parametrize(
    ("holder", "words", "advice"),
    [
        ({"unit": "agent.service"}, ("agent.service",), "systemctl disable --now agent.service"),
        ({}, ("no unit",), "kill 812"),
        (
            {"pod_uid": "a" * 32, "static": True, "container_id": CONTAINER},
            ("static pod", CONTAINER[:12]),
            f"crictl stop {CONTAINER[:13]}",
        ),
        ({"container_id": CONTAINER}, ("of no pod",), "crictl ps --id"),
        ({"unit": "a.service;reboot"}, ("a.service;reboot",), "ps -fp 812"),
        ({"started_at": 1800000000.0}, ("2027-01-15T08:00:00Z",), "ps -fp 812"),
    ],
)
def test_the_program_that_listens_is_named(holder, words, advice):
    hit = told(taken_ports.row(10250, **HOLDER, **holder))
    for word in ("10250", "node-agent", "pid 812", *words):
        assert word in hit.summary
    assert hit.remedy.partition("; see its log")[0].count(advice)
    assert [ref.pid for ref in hit.evidence if ref.kind == "process"] == [812]


def test_a_connection_that_has_the_port():
    row = taken_ports.row(10250, **HOLDER, kind="connection", peer="10.0.0.9:443")
    hit = told(row)
    assert "10.0.0.9:443" in hit.summary
    assert "pid 812" in hit.summary
    assert "ip_local_reserved_ports" in hit.remedy
    assert told(taken_ports.row(10250, pid=None, kind="connection")).summary == "it ended"


def test_the_kernel_has_the_port_of_a_tunnel():
    line = "listen udp 0.0.0.0:8472: bind: address already in use"
    row = taken_ports.row(8472, protocol="udp", kind="datagram", pid=None)
    hit = told(row, line=line)
    assert "kernel" in hit.summary
    assert "8472" in hit.summary
    assert "ip -d link" in hit.remedy
    assert "rpcinfo" in told(taken_ports.row(10250, pid=None)).remedy


def test_nothing_has_the_port_any_more():
    hit = told(taken_ports.row(10250))
    assert "nothing has port 10250" in hit.summary
    assert told(taken_ports.row(10250), summary=hit.summary).summary == hit.summary


def test_a_process_that_is_named_already_is_not_named_twice():
    hit = told(taken_ports.row(10250, **HOLDER), summary="node-agent (pid 812) has it")
    assert hit.summary == "node-agent (pid 812) has it"
