# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel that has as many memory cgroups as it can have, KM601."""

from __future__ import annotations

import pytest

from tests.unit.support.cni_evidence import of_w1

OLD, NEW = "3.10.0-514.el7.x86_64", "5.10.0-9-amd64"


def count(world, number, kernel=OLD, cgroup="v1"):
    data = {"filesystems": [], "cgroups": {"memory": number}}
    world.documents["w1"]["collectors"]["pressure"] = {"status": "ok", "data": data}
    world.data("w1", "system").update(kernel=kernel, cgroup=cgroup)


@pytest.mark.parametrize(
    ("number", "kernel", "cgroup", "verdict", "severity"),
    [
        (65535, OLD, "v1", "present", "critical"),
        (65530, NEW, "v1", "present", "critical"),
        (60000, OLD, "v1", "present", "warning"),
        (60000, NEW, "v1", "clear", None),
        (70000, NEW, "v1", "clear", None),
        (300, OLD, "v1", "clear", None),
        (60000, "?", "hybrid", "clear", None),
        (65519, NEW, "v2", "present", "critical"),
        (65558, NEW, "v2", "present", "critical"),
        (65000, NEW, "v2", "clear", None),
        (None, OLD, "v1", "not_applicable", None),
        (None, NEW, "v2", "not_applicable", None),
    ],
)
def test_the_number_of_memory_cgroups(world, number, kernel, cgroup, verdict, severity):
    count(world, number, kernel, cgroup)
    found, findings = of_w1(world, "KM601")
    assert found == verdict
    assert [finding.severity for finding in findings] == [severity] * (severity is not None)
    for finding in findings:
        assert str(number) in finding.summary
        assert "65535" in finding.summary
        assert finding.evidence[0].path == "/proc/cgroups"


def test_without_an_answer(world):
    world.documents["w1"]["collectors"]["pressure"] = {"status": "error", "data": None}
    assert of_w1(world, "KM601") == ("unknown", [])
    world.documents["w1"]["collectors"]["pressure"] = {"status": "absent", "data": None}
    assert of_w1(world, "KM601") == ("not_applicable", [])
    data = {"filesystems": []}
    world.documents["w1"]["collectors"]["pressure"] = {"status": "ok", "data": data}
    assert of_w1(world, "KM601") == ("not judged", [])
