# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real components of a release refuse what the table of before_upgrade says, and nothing else.

It needs no cluster: each program is started with one setting, and ends at once.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pflag,
    release_table,
)
from tests.lab.cluster import gobuild

SECONDS = 60
NO_FILE = "--config=/nonexistent/config.yaml"
K8S = os.environ.get("KUBEMEND_K8S", "v1.36.3")


def rows(kind: str) -> list[tuple[str, str, tuple[int, int], str]]:
    """Return component, name, release and value of each row of a kind."""
    lines = release_table.PATH.read_text(encoding="utf-8").splitlines()[1:]
    table = [line.split("\t") for line in lines]
    return [
        (row[1], row[2], pflag.parse_version(row[3]), row[4]) for row in table if row[0] == kind
    ]


def said(*arguments: str) -> str:
    """Return what the real kubelet says of these arguments."""
    program = str(gobuild.kubernetes(K8S) / "kubelet")
    answer = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    return answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def release() -> tuple[int, int]:
    return pflag.parse_version(K8S)


def test_the_kubelet_refuses_the_flags_that_are_gone_and_takes_its_last_ones(release):
    flags = [
        (name, last) for component, name, last, _value in rows("flag") if component == "kubelet"
    ]
    judged = [(name, last) for name, last in flags if last <= release]
    wrong = [
        (name, last)
        for name, last in judged
        if ("unknown flag" in said(f"--{name}=1", "--version")) != (last < release)
    ]
    assert judged
    assert wrong == []


def test_the_kubelet_refuses_the_gates_that_are_gone_and_takes_its_last_ones(release):
    gates = [(name, last) for _component, name, last, _value in rows("gate") if last <= release]
    wrong = [
        (name, last)
        for name, last in gates
        if ("unrecognized feature gate" in said(f"--feature-gates={name}=true", NO_FILE))
        != (last < release)
    ]
    assert gates
    assert wrong == []


def test_the_kubelet_refuses_the_other_value_of_a_gate_from_the_release_that_locks_it(release):
    gone = {name for _component, name, last, _value in rows("gate") if last < release}
    locks = [row for row in rows("lock") if row[1] not in gone and abs(row[2][1] - release[1]) < 3]
    wrong = []
    for _component, name, since, value in locks:
        other = {"true": "false", "false": "true"}[value]
        refused = "locked to" in said(f"--feature-gates={name}={other}", NO_FILE)
        if refused != (since <= release):
            wrong.append((name, since))
    assert locks
    assert wrong == []
