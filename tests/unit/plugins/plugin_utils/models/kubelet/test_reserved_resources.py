# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reserved CPUs and memory that a kubelet refuses, by what its machine has."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    reserved_resources,
)
from tests.unit.support.configured_kubelet import MEMORY, configure, found


@pytest.fixture
def configured(world):
    return configure(world)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ("reservedSystemCPUs: 0-1\n", None),
        ("reservedSystemCPUs: 0-9\n", "reservedSystemCPUs"),
        ("reservedSystemCPUs: zero\n", "reservedSystemCPUs"),
        ("kubeReserved: {cpu: 500m, memory: 1Gi}\n", None),
        ("kubeReserved: {cpu: many}\n", "kubeReserved"),
        ("systemReserved: {disk: 1Gi}\n", "systemReserved"),
        (MEMORY % "100Mi", None),
        (MEMORY % "1Gi", "reservedMemory"),
        (MEMORY % "1Gi" + "kubeReserved: {memory: 924Mi}\n", None),
        (MEMORY % "1Gi" + "evictionHard: {memory.available: 1Gi}\n", None),
    ],
)
def test_reservations_that_fit_the_machine_are_taken(configured, config, key):
    refused = found(configured(config, release="v1.36.0")).refused
    assert [one.key for one in refused] == ([key] if key else [])


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(1024**3), "1Gi"),
        (Fraction(300 * 1024**2), "300Mi"),
        (Fraction(1025 * 1024), "1025Ki"),
        (Fraction(1000), "1000"),
        (Fraction(0), "0"),
    ],
)
def test_an_amount_is_shown_in_the_largest_unit(amount, text):
    assert reserved_resources.shown(amount) == text
