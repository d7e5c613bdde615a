# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components of k0s that end again and again."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_units,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import k0s_children

CLOCK = 1_800_000_000.0
DENIED = "Error: open /var/lib/k0s/pki/etcd/ca.crt: permission denied"


def line(age: float, message: str, component: str = "kube-apiserver", level: str = "info") -> str:
    when = datetime.fromtimestamp(CLOCK - age, tz=timezone.utc)
    text = message.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'{when:%Y-%m-%dT%H:%M:%S}+0000 m1 k0s[77]: time="2027-01-15 07:59:00" level={level}'
        f' msg="{text}" component={component}'
    )


def unit(
    *lines: str, started: float = 90000, component: str = "k0s"
) -> component_units.ComponentUnit:
    return component_units.ComponentUnit(
        component=component, started_at=CLOCK - started, lines=lines
    )


def ends(*ages: float, message: str = DENIED) -> list[str]:
    return [
        text
        for age in ages
        for text in (
            line(age, message),
            line(age, "exit status 1", level="warning"),
            line(age, "respawning in 5s"),
        )
    ]


def test_three_ends_are_a_loop_also_behind_a_start():
    (child,) = k0s_children.find(unit(*ends(40, 30, 20), started=60), CLOCK)
    assert (child.component, len(child.times)) == ("kube-apiserver", 3)
    assert child.telling.line == DENIED
    assert child.telling.reading is not None


def test_a_program_that_may_not_be_executed():
    lines = [
        line(age, "Failed to start: fork/exec /var/lib/k0s/bin/etcd: permission denied", "etcd")
        for age in (15, 10, 5)
    ]
    (child,) = k0s_children.find(unit(*lines), CLOCK)
    assert "fork/exec" in child.telling.line


@pytest.mark.parametrize(
    ("found", "clock"),
    [
        (unit(), CLOCK),
        (unit(*ends(40, 30, 20)), None),
        (unit(*ends(40, 30, 20), component="k3s"), CLOCK),
        # it runs by now
        (unit(*ends(500, 400, 300)), CLOCK),
        (unit(*ends(4000, 3000)), CLOCK),
        # it waits for what k0s has not started yet
        (unit(*ends(20, message="Error: context deadline exceeded"), started=60), CLOCK),
        # what it says while it runs
        (unit(line(5, "E0115 07:59:00.1 9 a.go:1] open /x: permission denied")), CLOCK),
    ],
)
def test_what_is_no_loop(found, clock):
    assert k0s_children.find(found, clock) == []


def test_a_lasting_reason_counts_at_its_first_end():
    assert k0s_children.find(unit(*ends(20), started=60), CLOCK)


def test_hostile_lines_do_not_make_it_raise():
    texts = ('"' * 5000, "\\" * 5001, "component=" * 900, 'msg="' * 900)
    assert k0s_children.find(unit(*(line(5, text) for text in texts)), CLOCK) == []
