# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe an entry of the pods that wait: how many of one owner, and which."""

from __future__ import annotations

from collections.abc import Iterable

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.pending import BoundPods, GatedPods, PendingPods, UnseenPods
from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.pod_start import qualified


def count(entry: PendingPods | UnseenPods | GatedPods | BoundPods) -> int:
    """Return how many pods an entry stands for."""
    if entry.pods is None:
        return 1
    return entry.pods


def wait(number: int) -> str:
    """Return the subject and verb of a summary about so many pods."""
    return counted(number, "pod waits", "pods wait")


def first_name(entry: PendingPods) -> str:
    """Return the name of the first of an entry's pods."""
    return (entry.names or ("?",))[0]


def owners(entries: Iterable[PendingPods]) -> str:
    """Return the first owners of the pods of these entries, and how many more there are."""
    return and_others(list(dict.fromkeys(_owner(entry) for entry in entries)))


def _owner(entry: PendingPods) -> str:
    owner = entry.owner or f"Pod/{first_name(entry)}"
    return qualified(one_line(owner, 300), one_line(entry.namespace, 80))
