# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Number and owners of pods that wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pending,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.scheduling import (
    waiting_pods,
)


@pytest.mark.parametrize(
    ("entry", "number"), [({}, 1), ({"pods": 3}, 3), ({"pods": "3"}, 1), ({"pods": None}, 1)]
)
def test_an_entry_without_a_number_stands_for_one_pod(entry: dict, number: int) -> None:
    assert waiting_pods.count(decode(pending.PendingPods, entry).answer) == number


@pytest.mark.parametrize(("number", "clause"), [(1, "1 pod waits"), (2, "2 pods wait")])
def test_verb_and_number_agree(number: int, clause: str) -> None:
    assert waiting_pods.wait(number) == clause


def test_each_owner_is_named_once() -> None:
    entry = pending.PendingPods(owner="Job/a", namespace="n")
    assert waiting_pods.owners([entry, replace(entry)]) == "Job n/a"


def test_a_pod_without_an_owner_is_named_itself() -> None:
    entry = pending.PendingPods(names=("alone", "other"), namespace="n")
    assert waiting_pods.owners([entry]) == "n/alone"


def test_more_owners_than_are_shown_are_counted() -> None:
    entries = [pending.PendingPods("n", owner=f"Job/{number}") for number in range(20)]
    text = waiting_pods.owners(entries)
    assert text.startswith("Job n/0")
    assert "Job/19" not in text
    assert "more" in text or "others" in text
