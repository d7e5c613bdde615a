# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of what a playbook prints: its report, and no skipped play or task."""

from __future__ import annotations

import re

import pytest

LAST = re.compile(r"^kubemend: .*$", re.MULTILINE)


def following(stdout):
    """Return the banners of Ansible behind the last line of the report."""
    [match] = LAST.finditer(stdout)
    return re.findall(r"^(PLAY|TASK)\b", stdout[match.end() :], re.MULTILINE)


@pytest.mark.parametrize(
    ("playbook", "args"),
    [
        ("audit", ()),
        ("before_reboot", ()),
        ("remediate", ()),
        ("remediate", ("-e", "kubemend_max_risk=2")),
        ("remediate", ("-e", "kubemend_max_risk=2", "--check")),
        ("duplicate_pods", ()),
    ],
)
def test_nothing_but_the_recap_follows_a_report(operator, playbook, args):
    done = operator.run(playbook, *args)
    assert done.rc == 0, done.output
    assert following(done.stdout) == ["PLAY"]
    assert "PLAY RECAP" in LAST.split(done.stdout)[-1]
    assert "skipping" not in done.stdout


def test_a_list_of_what_can_be_reverted_skips_nothing(operator):
    done = operator.run("revert")
    assert done.rc == 0, done.output
    assert re.findall(r"^PLAY (?:\[([^]]+)\]|RECAP)", done.stdout, re.MULTILINE)[-2:] == [
        "Report",
        "",
    ]
    assert "skipping" not in done.stdout
