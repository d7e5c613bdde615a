# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import known_causes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import (
    Known,
)

HIT = Detection("it says x", (), "look at x")
ROW = Known("x", "The disk is gone", "put the disk back (see https://example.com)")
LINE = "F1124 main.go:85] listen unix /run/kms.sock: bind: address already in use"


@pytest.mark.parametrize(
    ("severity", "expected"),
    [(None, None), ("info", "warning"), ("warning", "warning"), ("critical", "critical")],
)
def test_a_known_cause_is_in_the_finding(severity: str | None, expected: str | None) -> None:
    found = known_causes.with_cause(replace(HIT, severity=severity), ROW)
    assert found.summary == "it says x. Known cause: The disk is gone"
    assert found.remedy == "put the disk back (see https://example.com); look at x"
    assert found.severity == expected


def test_nothing_is_said_twice() -> None:
    assert known_causes.with_cause(HIT, None) is HIT
    hit = replace(HIT, summary="it says x, as the disk is gone")
    assert known_causes.with_cause(hit, ROW) is hit
    once = known_causes.with_cause(HIT, ROW)
    assert known_causes.with_cause(once, ROW) is once


def test_the_first_text_with_a_known_cause_counts() -> None:
    found = known_causes.explained(HIT, ("csi",), ["", "nothing", LINE])
    assert "Known cause: A file is at the place of its socket /run/kms.sock" in found.summary
    assert known_causes.explained(HIT, ("csi",), ["nothing"]) is HIT


TAKEN = (
    'E0101 10:00:00.000000 1 proxier.go:1223] can\'t open "nodePort for default/web:http"'
    " (:30080/tcp), skipping this nodePort: listen tcp4 :30080: bind: address already in use"
)


@pytest.mark.parametrize(
    ("release", "is_told"), [(None, True), ("v1.23.0", True), ("v1.24.0", False)]
)
def test_a_release_without_the_message_for_this_cause(release: str | None, is_told: bool) -> None:
    found = known_causes.explained(HIT, ("kube-proxy",), [TAKEN], release)
    assert ("Known cause: " in found.summary) is is_told


MISSING = "F1124 main.go:85] open /etc/kubernetes/x.conf: no such file or directory"


def test_an_error_about_a_file_is_told_with_the_flag_that_names_it() -> None:
    argv = ["kube-scheduler", "--kubeconfig=/etc/kubernetes/x.conf"]
    found = known_causes.explained(
        HIT,
        ("kube-scheduler",),
        ["", MISSING],
        is_of_program=True,
        source=known_causes.Source(argv),
    )
    assert "/etc/kubernetes/x.conf is not there (--kubeconfig names it)" in found.summary
    assert found.remedy.endswith("; look at x")
    # of a workload, and of another line than the last line
    assert known_causes.explained(HIT, ("kube-scheduler",), [MISSING]) is HIT
    other = known_causes.explained(HIT, ("kube-scheduler",), ["x", MISSING], is_of_program=True)
    assert other is HIT


def test_an_error_of_a_decoder_is_told_by_its_rule() -> None:
    text = "yaml: line 12: did not find expected key"
    assert "line 12" in known_causes.with_rule(HIT, [text]).summary


def test_a_rule_says_nothing_beside_a_known_cause() -> None:
    told = known_causes.with_cause(HIT, ROW)
    assert known_causes.with_rule(told, [MISSING]) is told
    assert known_causes.with_rule(HIT, []) is HIT
