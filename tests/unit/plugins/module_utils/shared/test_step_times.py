# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a step may take on its node."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    step_kinds,
    step_times,
)


def test_a_restart_by_a_signal_waits_for_the_back_off() -> None:
    assert step_times.limit_of({}) == step_times.LIMIT
    assert step_times.limit_of({"limit": 7}) == 7
    signal = {"expect": {"restart": "signal"}}
    assert step_times.limit_of(signal) == step_times.BACK_OFF
    assert step_times.limit_of(dict(signal, limit=1000)) == 1000
    assert step_times.limit_of({"limit": 7, "expect": {"restart": "kubelet"}}) == 7


def test_a_drain_takes_its_own_time_besides() -> None:
    drain = {"remedy": step_kinds.DRAIN}
    uncordon = {"remedy": step_kinds.UNCORDON, "change": {"timeout": 50}}
    own = step_kinds.kind_of(step_kinds.DRAIN).seconds
    assert step_times.api_seconds_of(drain) == own + step_times.DRAIN_TIMEOUT
    assert step_times.api_seconds_of(dict(drain, change={"timeout": 50})) == own + 50
    assert step_times.api_seconds_of(uncordon) == step_kinds.kind_of(step_kinds.UNCORDON).seconds


@pytest.mark.parametrize("name", [kind.name for kind in step_kinds.KINDS.values()])
def test_no_step_ends_before_it_may(name: str) -> None:
    """The budget covers the preconditions and the time in which the step is verified."""
    kind = step_kinds.kind_of(name)
    step = {"remedy": name, "limit": 200}
    least = step_times.api_seconds_of(step) if kind.through_api else 200
    assert step_times.budget(step) >= least
    if name != step_kinds.RESTORE_LEVELS:
        assert step_times.budget(step) >= step_times.PRECONDITIONS + least


def test_a_rollback_gets_the_same_time_again() -> None:
    step = {"remedy": "edit_manifest", "limit": 1000}
    assert step_times.budget(step) == step_times.PRECONDITIONS + 2000 + step_times.WATCHED
