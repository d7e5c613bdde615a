# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waivers: which findings they cover, until when, and what the operator's severities change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    waivers,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Finding,
    Result,
    Waived,
)

TODAY = "2026-11-27"


def waiver(code="KM4*", hosts="gpu-*", component=None, expires="2027-01-31", reason="known"):
    return waivers.Waiver(code, hosts, reason, "platform", expires, component, 7)


def finding(code="KM407", host="gpu-1", component="kubelet", **more):
    return Finding(code, "warning", "k", host, component, "x", **more)


@pytest.mark.parametrize(
    ("patterns", "fields", "covered"),
    [
        ({}, {}, True),
        ({"code": "KM407"}, {}, True),
        ({"code": "KM40[1-6]"}, {}, False),
        ({"code": "km407"}, {}, False),
        ({"hosts": "gpu-?"}, {"host": "gpu-12"}, False),
        ({"hosts": "GPU-*"}, {}, False),
        ({"component": "kube*"}, {}, True),
        ({"component": "etcd"}, {}, False),
        ({"component": "kubelet"}, {"component": None}, False),
        ({"component": "*"}, {"component": None}, True),
        ({}, {"host": None, "node": "gpu-7"}, True),
        ({}, {"host": "w1", "node": "gpu-7"}, False),
        ({}, {"host": None}, False),
        ({"hosts": "*"}, {"host": None}, True),
        ({}, {"hosts": ("gpu-1", "gpu-2")}, True),
        ({}, {"hosts": ("gpu-1", "w1")}, False),
        ({"code": "KM9*"}, {"code": "KM901"}, True),
        ({"code": "KM9*"}, {"code": "KM902"}, False),
        ({"code": "KM902"}, {"code": "KM902"}, False),
    ],
)
def test_a_waiver_covers_what_all_its_patterns_fit(patterns, fields, covered):
    assert waiver(**patterns).covers(finding(**fields)) is covered


@pytest.mark.parametrize(
    ("expires", "has_effect"),
    [("2026-11-26", False), ("2026-11-27", True), ("2026-11-28", True)],
)
def test_the_last_day_counts(expires, has_effect):
    result = waivers.apply(Result(findings=(finding(),)), [waiver(expires=expires)], TODAY)
    assert (result.findings[0].waived is not None) is has_effect
    assert len(waivers.expired([waiver(expires=expires)], TODAY)) == (not has_effect)


def test_the_first_waiver_with_effect_counts_and_changes_nothing_else():
    entries = [
        waiver(reason="over", expires="2026-01-01"),
        waiver(reason="first"),
        waiver(reason="second"),
    ]
    found = (finding(), finding("KM502"))
    result = waivers.apply(Result(findings=found), entries, TODAY)
    assert result.findings == (
        replace(found[0], waived=Waived("first", "platform", "2027-01-31")),
        found[1],
    )
    assert [item.state for item in result.findings] == ["waived", "warning"]
    assert [item.id for item in result.findings] == [item.id for item in found]


def test_an_expired_waiver_names_its_place_and_the_way_out():
    sentence = waiver(component="kubelet", expires="2026-01-01").end
    for part in ("line 7", "KM4* on gpu-* kubelet", "platform", "2026-01-01", "remove it"):
        assert part in sentence


def test_severities_replace_those_of_their_codes_and_are_told():
    before = Result(findings=(finding(), finding("KM502"), finding("KM410")))
    after = waivers.with_severities(before, {"KM407": "critical", "KM410": "warning"})
    assert [item.severity for item in after.findings] == ["critical", "warning", "warning"]
    assert waivers.changed_severities(before, after) == {"KM407": "critical"}
    assert waivers.with_severities(before, {}) is before
