# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events about killed processes, compared with the kernel's own log."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    object_events,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kernel_log,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import memory_kills

CLOCK = 1800000000.0
OOM = "System OOM encountered, victim process: java, pid: 7"
DETECTED = "Out of memory: Killed process 7 (java) total-vm:9kB"
OF_OLD_KUBELETS = "System OOM encountered"


def document(**log):
    collectors = {
        "kernel_log": {"status": "ok", "data": {"since": CLOCK - 3600, "cut": False, **log}},
        "system": {"status": "ok", "data": {"clock": CLOCK}},
    }
    return {"host": "w1", "status": "ok", "collectors": collectors}


def test_only_a_log_that_was_read_says_what_was_killed():
    assert memory_kills.extract(document()) is None
    assert memory_kills.extract({"host": "w1", "collectors": {}}) is None
    kernel = memory_kills.extract(document(kills=[]))
    assert (kernel.kills, kernel.clock, kernel.begins) == ((), CLOCK, None)
    assert memory_kills.extract(document(kills=[], since=CLOCK - 60)).begins == CLOCK - 60


@pytest.mark.parametrize("message", [OOM, DETECTED, OF_OLD_KUBELETS])
@pytest.mark.parametrize(("program", "is_over"), [("java", False), ("python", True)])
def test_the_program_that_a_message_names(message, program, is_over):
    if message == OF_OLD_KUBELETS:
        is_over = False
    kill = kernel_log.MemoryKill(7, program, CLOCK - 60, "machine")
    event = object_events.ObjectEvent(reason="SystemOOM", message=message, count=5, texts=1)
    kernel = memory_kills.KernelKills((kill,), CLOCK, None, False)
    told = memory_kills.compare(event, kernel)
    assert told.is_over == is_over
    assert bool(told.when) != is_over


def test_an_event_of_an_older_release_has_no_count():
    event = object_events.ObjectEvent(reason="SystemOOM", message=OOM, count=5)
    told = memory_kills.compare(event, None)
    assert told.when.startswith("(SystemOOM), first at an unknown time")


@pytest.mark.parametrize(
    ("oldest", "cut"),
    [
        (60, True),  # more may have been killed before them in this hour
        (4000, False),  # the hour has no other
    ],
)
def test_a_node_sends_no_more_than_the_newest_kills(oldest, cut):
    kills = [{"pid": n, "program": "web", "at": CLOCK - 30, "scope": "cgroup"} for n in range(39)]
    kills.insert(0, {"pid": 99, "program": "web", "at": CLOCK - oldest, "scope": "cgroup"})
    kernel = memory_kills.extract(document(kills=kills))
    assert kernel.cut == cut
    assert not memory_kills.extract(document(kills=kills[1:])).cut
    event = object_events.ObjectEvent(reason="SystemOOM", message=OOM, count=1, texts=1)
    assert memory_kills.compare(event, kernel).is_over != cut
