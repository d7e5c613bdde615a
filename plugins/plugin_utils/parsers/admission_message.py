# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet's words say when it rejects a pod, in every generation of its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# In order: the first that is found in reason and message counts. Texts of 1.14 to 1.36.
_TEXTS = tuple(
    (kind, re.compile(text))
    for kind, text in (
        (
            "devices",
            (
                r"requested number of devices unavailable for (?P<resource>\S+?)\. Requested:"
                r" (?P<requested>\d+), Available: (?P<available>\d+)"
            ),
        ),
        ("unregistered", r"can(?:no|')t allocate unregistered device (?P<resource>[^\s,]+)"),
        (
            "unhealthy",
            r"(?:no healthy devices present|previously allocated devices are no longer healthy);"
            r" cannot allocate unhealthy devices (?P<resource>[^\s,]+)",
        ),
        (
            "resource",
            r"Node didn't have enough (?:resource|capacity): (?P<resource>[^\s,]+?),? requested:"
            r" (?P<requested>\d+),"
            r" used: (?P<used>\d+), capacity: (?P<capacity>\d+)",
        ),
        (
            "smt",
            (
                r"SMT Alignment Error: not enough free physical CPUs: available physical CPUs ="
                r" (?P<available>\d+), requested CPUs = (?P<requested>\d+)"
            ),
        ),
        ("smt", r"SMT Alignment Error: requested (?P<requested>\d+) cpus"),
        ("smt", r"SMTAlignmentError|SMT Alignment Error"),
        (
            "topology",
            # up to 1.17 "Topology Affinity Error" and "Topology Locality"
            r"Topology ?Affinity ?Error|Resources cannot be allocated with Topology [lL]ocality",
        ),
        (
            "cpu",
            (
                r"not enough cpus available(?: to satisfy request: requested=(?P<requested>\d+),"
                r" available=(?P<available>\d+))?"
            ),
        ),
        ("memory", r"\[memorymanager\]|memory manager"),
        ("resource", r"Out[oO]f(?P<resource>\S+)"),
    )
)
DEVICE_KINDS = frozenset(("devices", "unregistered", "unhealthy"))


@dataclass(frozen=True)
class Refusal:
    """Rejection of a pod.

    kind: devices, unregistered, unhealthy, resource, smt, topology, cpu, memory or other
    capacity: all that the node may allocate, where kind is resource

    Numbers are None where the message has none. They are in the unit of the kubelet: devices, pods,
    millicores or bytes, and whole CPUs where kind is cpu or smt.
    """

    kind: str
    resource: str | None = None
    requested: int | None = None
    available: int | None = None
    capacity: int | None = None


def refusal(reason: str | None, message: str | None) -> Refusal:
    """Return the rejection that the status of a Failed pod describes."""
    text = f"{reason or ''} {message or ''}"
    for kind, pattern in _TEXTS:
        match = pattern.search(text)
        if match:
            return _parsed(kind, match.groupdict())
    return Refusal("other")


def _parsed(kind: str, groups: Mapping[str, str | None]) -> Refusal:
    numbers = {name: int(value) for name, value in groups.items() if value and name != "resource"}
    available = numbers.get("available")
    if "capacity" in numbers:
        available = max(0, numbers["capacity"] - numbers["used"])
    return Refusal(
        kind,
        groups.get("resource"),
        numbers.get("requested"),
        available,
        numbers.get("capacity"),
    )
