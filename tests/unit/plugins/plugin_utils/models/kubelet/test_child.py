# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ends of a kubelet that RKE2 starts, by its journal and the kubelet's own log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet_end,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import child

STAMP = "2026-11-22T18:31:29+0000 w1 "
FLAG = "unknown flag: --no-such"


def exited(words: str) -> str:
    text = f'time="2026-11-22T18:31:29Z" level=error msg="Kubelet exited: {words}"'
    return f"{STAMP}rke2[77]: {text}"


def end(lines: list[str], log: list[str] | None = None) -> kubelet_end.KubeletEnd:
    file = kubelet_end.KubeletFile("/l", None, tuple(log)) if log is not None else None
    return kubelet_end.KubeletEnd("rke2-agent.service", tuple(lines), file)


def failed(error: str, pid: int = 20288) -> str:
    return f'E1122 18:31:29.346075   {pid} run.go:72] "command failed" err="{error}"'


@pytest.mark.parametrize(
    ("words", "log", "cause", "certain"),
    [
        ("exit status 1", [failed(FLAG)], "unknown_flag", True),
        # another start's line: the kubelet of this end ended otherwise
        ("exit status 2", [failed(FLAG)], "unknown_flag", False),
        ("exit status 1", ["nothing"], "unknown", False),
        ("exit status 1", None, "unknown", False),
        ("signal: killed", [failed(FLAG)], "unknown", False),
    ],
)
def test_the_cause_is_that_of_its_own_log(words, log, cause, certain):
    found = child.find(end([exited(words)], log))
    assert found is not None
    assert (found.words, found.count) == (words, 1)
    assert (found.death.cause, found.death.certain) == (cause, certain)
    assert found.repeats is certain


def test_two_ends_need_no_cause():
    found = child.find(end([exited("signal: killed")] * 2))
    assert found is not None
    assert found.repeats


def test_without_an_end_there_is_none():
    assert child.find(end([])) is None
    assert child.find(end([STAMP + "rke2[77]: nothing"], [failed(FLAG)])) is None


@settings(deadline=None, database=None, derandomize=True, max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=4), st.lists(st.text(max_size=60), max_size=4))
def test_nothing_makes_it_raise(lines, log):
    child.find(end([*lines, exited("exit status 1")], log))
    child.find(end(lines, log))
