# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: the hosts that they are of, and the identity by which reports are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Finding

FOUND = Finding("KM101", "critical", "c0ffee", "m1", "kube-scheduler", "off", node="n1")


@pytest.mark.parametrize(
    ("changes", "identity"),
    [
        ({}, "KM101/c0ffee/m1/kube-scheduler"),
        ({"host": None}, "KM101/c0ffee/n1/kube-scheduler"),
        ({"host": None, "node": None}, "KM101/c0ffee/-/kube-scheduler"),
        ({"cluster": None, "component": None}, "KM101/-/m1/-"),
        ({"summary": "another wording", "severity": "info", "risk": 4}, FOUND.id),
    ],
)
def test_the_identity_is_of_code_and_place_and_never_of_the_wording(changes, identity):
    assert replace(FOUND, **changes).id == identity


@pytest.mark.parametrize(
    ("changes", "hosts"),
    [
        ({}, ("m1",)),
        ({"hosts": ("m1", "m2")}, ("m1", "m2")),
        ({"host": None}, ()),
    ],
)
def test_a_finding_of_a_shared_kernel_is_of_all_its_hosts(changes, hosts):
    assert replace(FOUND, **changes).everywhere == hosts


def test_the_page_of_a_fault_is_in_the_collection():
    assert FOUND.docs == "docs/faults/KM101.md"
