# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose code a call trace was in."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import call_trace


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (
            ["bpf_probe_read_str", "bpf_prog_6deef7357e7b4530_sys_enter", "bpf_trace_run2"],
            ["a BPF program sys_enter (bpf_prog_6deef7357e7b4530_sys_enter)", "bpf_probe_read_str"],
        ),
        (["page_fault", "bpf_trace_run2"], ["a BPF program (bpf_trace_run2)"]),
        (["record_event falco"], ["the module falco of Falco", "record_event"]),
        (
            ["__schedule", "schedule", "nfs_wait nfs", "__rpc_execute sunrpc"],
            ["the module nfs, sunrpc", "nfs_wait < __rpc_execute"],
        ),
        (["skb_segment", "tcp_gso_segment"], ["call trace was in skb_segment < tcp_gso_segment"]),
    ],
)
def test_what_a_trace_shows(trace, words):
    clause = call_trace.read(trace).clause
    for word in words:
        assert word in clause


@pytest.mark.parametrize(
    "trace", [[], ["__schedule", "schedule", "do_syscall_64"], ["native_safe_halt", "do_idle"]]
)
def test_a_trace_that_shows_nothing(trace):
    found = call_trace.read(trace)
    assert (found.clause, found.advice) == ("", "")


def test_the_advice_is_about_whose_code_it_was():
    assert "bpftool" in call_trace.read(["bpf_trace_run2", "f nfs"]).advice
    assert "modinfo nfs" in call_trace.read(["f nfs"]).advice
    assert call_trace.read(["skb_segment"]).advice == ""


def test_functions_of_bpf_themselves_are_no_program():
    """A system call of an agent, as one that loads a program."""
    assert call_trace.read(["bpf_check", "__sys_bpf"]).bpf == ""


def test_what_a_node_says_is_bounded():
    found = call_trace.read([f"call_{number} module_{number}" for number in range(100)])
    assert len(found.calls) == len(found.modules) == call_trace.SHOWN
    assert "\x1b" not in call_trace.read(["a\x1b[31m b"]).clause


def test_a_program_of_bpf_has_no_module():
    found = call_trace.read(
        ["bpf_prog_6deef7357e7b4530_x falco", "bpf_trace_run2 other", "ff falco"]
    )
    assert (found.bpf, found.programs) == ("bpf_prog_6deef7357e7b4530_x", ("x",))
    assert found.modules == ("other", "falco")
