# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel's log has of processes that it killed for want of memory."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import memory_kills


def taken(*lines):
    kills = memory_kills.MemoryKills()
    for moment, text in lines:
        kills.take(moment, text.encode())
    return [(row["pid"], row["program"], row["at"], row["scope"]) for row in kills.rows]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Out of memory: Killed process 1234 (java) total-vm:9kB, anon-rss:8kB",
            (1234, "java", 5.0, "machine"),
        ),
        (
            "Memory cgroup out of memory: Killed process 77 (kube-a) b) total-vm:9kB",
            (77, "kube-a) b", 5.0, "cgroup"),
        ),
        (
            "Out of memory (oom_kill_allocating_task): Killed process 7 (x) total-vm:9kB",
            (7, "x", 5.0, "machine"),
        ),
        ("Killed process 7 (x), UID 0, total-vm:9kB, anon-rss:8kB", (7, "x", 5.0, "")),
        ("Killed process 7, UID 0, (x) total-vm:9kB, anon-rss:8kB", (7, "x", 5.0, "")),
    ],
)
def test_a_kill(line, expected):
    assert taken((5.0, line)) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "oom_reaper: reaped process 1234 (java), now anon-rss:0kB",
        "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "x: Out of memory: Killed process 1234 (java) total-vm:9kB",
    ],
)
def test_what_is_no_kill(line):
    assert taken((5.0, line)) == []


@pytest.mark.parametrize(("seconds", "scope"), [(1.0, "cgroup"), (60.0, "")])
def test_the_line_of_an_older_kernel_before_a_kill_has_its_scope(seconds, scope):
    chosen = "Memory cgroup out of memory: Kill process 1 (a) score 9 or sacrifice child"
    killed = "Killed process 2 (b) total-vm:9kB, anon-rss:8kB, file-rss:0kB"
    assert taken((5.0, chosen), (5.0 + seconds, killed)) == [(2, "b", 5.0 + seconds, scope)]


def test_the_newest_are_kept_and_what_cannot_be_shown_is_blank():
    line = "Out of memory: Killed process %d (a\x1b) total-vm:9kB"
    rows = taken(*((float(number), line % number) for number in range(100)))
    assert len(rows) == memory_kills.MAX_KILLS
    assert rows[-1] == (99, "a ", 99.0, "machine")
