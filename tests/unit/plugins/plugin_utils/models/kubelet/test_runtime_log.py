# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last words of the containerd that k3s runs, from a file of its own."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet_end,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import runtime_log

STAMP = "2027-01-15T07:59:00+0000 w1"
STARTED = f"{STAMP} systemd[1]: Starting Lightweight Kubernetes..."
EXITED = f'{STAMP} k3s[70]: time="x" level=error msg="containerd exited: exit status 1"'
PRINTED = f"{STAMP} k3s[70]: containerd: exit status 1"  # v1.21
ENDED = f"{STAMP} systemd[1]: k3s.service: Main process exited, code=exited, status=1/FAILURE"
FATAL = (
    'time="2025-03-15T12:07:55Z" level=fatal msg="Failed to run CRI service" error="failed to'
    ' recover state: failed to get metadata for stored sandbox \\"4ea7\\": not found"'
)
INFO = 'time="2025-03-15T12:07:55Z" level=info msg="Start recovering state"'


def end(journal, lines):
    file = kubelet_end.KubeletFile("/var/lib/x/containerd.log", None, tuple(lines))
    return kubelet_end.KubeletEnd("k3s.service", tuple(journal), runtime_file=file)


@pytest.mark.parametrize(
    ("journal", "lines", "found"),
    [
        ((STARTED, EXITED), (INFO, FATAL), True),
        ((STARTED, PRINTED), (INFO, FATAL), True),
        # it runs, or says nothing of its end, or k3s did not end for it
        ((STARTED, EXITED), (INFO,), False),
        ((STARTED, EXITED), (), False),
        ((STARTED,), (INFO, FATAL), False),
        ((STARTED, EXITED, ENDED, STARTED, f"{STAMP} k3s[71]: begins"), (INFO, FATAL), False),
    ],
)
def test_what_ended_it(journal, lines, found):
    words = runtime_log.find(end(journal, lines))
    assert (words is not None) is found
    if words is not None:
        assert runtime_log.line_of(words) == FATAL
        clause = runtime_log.clause(words, "/var/lib/x/containerd.log")
        assert "/var/lib/x/containerd.log" in clause
        assert "stored sandbox" in clause


def test_a_panic_of_no_known_cause_is_quoted():
    panic = "panic: runtime error: invalid memory address or nil pointer dereference"
    lines = (INFO, panic, "[signal SIGSEGV: segmentation violation]", "goroutine 1 [running]:")
    words = runtime_log.find(end((STARTED, EXITED), lines))
    assert words is not None
    assert runtime_log.line_of(words) == panic
    assert words.ends


def test_an_older_release_did_not_collect_it():
    assert runtime_log.find(None) is None
    assert runtime_log.find(kubelet_end.KubeletEnd("k3s.service", (STARTED, EXITED))) is None
