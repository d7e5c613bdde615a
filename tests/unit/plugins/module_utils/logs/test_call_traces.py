# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of a call trace, as kernels of several releases print them."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import call_traces

FALCO = (
    "Modules linked in: falco(OE) xt_nat",
    "CPU: 7 PID: 7899 Comm: dracut-install Tainted: G OE 4.19.82",
    "RIP: 0010:bpf_probe_read_str+0x12/0x80",
    "RSP: 0018:ffffa3f2cce08728 EFLAGS: 00010293",
    "Call Trace:",
    " ? page_fault+0x8/0x30",
    " bpf_prog_6deef7357e7b4530_sys_enter+0x3f7/0x1000",
    " bpf_trace_run2+0x55/0xa0",
    " syscall_trace_enter+0x1d3/0x2c0",
)


def take(lines, moment=10.0):
    row, traces = {}, call_traces.CallTraces()
    traces.begin(row, 10.0)
    for line in lines:
        traces.take(moment, line.encode())
    return row.get("trace")


def test_a_bpf_program():
    assert take(FALCO) == [
        "bpf_probe_read_str",
        "bpf_prog_6deef7357e7b4530_sys_enter",
        "bpf_trace_run2",
        "syscall_trace_enter",
    ]


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (" nfs_wait_bit_killable+0x1e/0x90 [nfs]", "nfs_wait_bit_killable nfs"),
        (
            " [<ffffffff810b1d3b>] __rpc_execute+0x2b/0x40 [sunrpc]",
            "__rpc_execute sunrpc",
        ),
        ("RIP: 0010:[<ffffffff8155>]  [<ffffffff8155>] skb_segment+0x1/0x2", "skb_segment"),
        ("pc : f_sys_open_x+0x1c/0x200 [falco]", "f_sys_open_x falco"),
        (" record_event+0x8f/0x1a0 [falco 0a1b2c]", "record_event falco"),
    ],
)
def test_forms_of_a_function(line, call):
    assert take([line]) == [call]


@pytest.mark.parametrize(
    "line",
    [
        " ? irq_exit+0xb0/0xc0",
        "Code: 01 e9 41 89",
        "RAX: 000000000000007d RBX: 00000000fffff7b3",
        "eth0: link up",
        "",
    ],
)
def test_other_lines(line):
    assert take([line]) is None


def test_a_trace_ends(monkeypatch):
    assert take([" a_call+0x1/0x2"], moment=20.0) is None
    assert take(["---[ end trace 0 ]---", " a_call+0x1/0x2"]) is None
    assert take(["x"] * call_traces.MAX_LINES + [" a_call+0x1/0x2"]) is None
    many = [f" call_{number}+0x1/0x2" for number in range(60)]
    assert len(take(many + many)) == call_traces.MAX_CALLS


def test_a_line_without_a_trace_keeps_that_of_the_one_before():
    row, traces = {}, call_traces.CallTraces()
    traces.take(1.0, b" early+0x1/0x2")
    traces.begin(row, 1.0)
    traces.take(1.0, b" first+0x1/0x2")
    traces.begin(row, 5.0)
    assert row["trace"] == ["first"]
    traces.take(5.0, b" second+0x1/0x2")
    assert row["trace"] == ["second"]


def test_a_function_that_calls_itself_is_told_once():
    assert take([" a_call+0x1/0x2", " b_call+0x1/0x2", " a_call+0x1/0x2"]) == ["a_call", "b_call"]
