# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next power loss makes of a kubelet: KM501 and KM503."""

from __future__ import annotations

import pytest

from tests.unit.support.facts import facts

CODES = frozenset(("KM501", "KM503"))


def judged(world, unit=None, **changes):
    kubelet = world.data("w1", "kubelet")
    kubelet["unit"] = (
        {**kubelet["unit"], "sub_state": "running", **changes} if unit is None else unit
    )
    result = world.judge(faults=CODES)
    return {item.code: item.verdict for item in result.verdicts if item.host == "w1"}, [
        item for item in result.findings if item.host == "w1"
    ]


def test_a_kubelet_that_is_enabled_is_well(world):
    assert judged(world) == ({"KM501": "clear", "KM503": "clear"}, [])


@pytest.mark.parametrize(
    ("active", "state", "severity", "stated", "commands"),
    [
        (
            "active",
            "disabled",
            "warning",
            ("runs", "next boot", "disabled"),
            ("systemctl enable --no-reload kubelet.service",),
        ),
        (
            "inactive",
            "disabled",
            "critical",
            ("not running", "next boot", "disabled"),
            (
                "systemctl enable --no-reload kubelet.service",
                "systemctl start kubelet.service",
            ),
        ),
        (
            "active",
            "enabled-runtime",
            "warning",
            ("runs", "next boot", "/run"),
            ("systemctl enable --no-reload kubelet.service",),
        ),
        (
            "active",
            "linked",
            "warning",
            ("runs", "next boot", "linked", "not enabled"),
            ("systemctl enable --no-reload kubelet.service",),
        ),
    ],
)
def test_a_kubelet_that_the_next_boot_does_not_bring_back(
    world, active, state, severity, stated, commands
):
    verdicts, (found,) = judged(world, active_state=active, unit_file_state=state)
    assert verdicts == {"KM501": "present", "KM503": "clear"}
    assert (found.code, found.severity) == ("KM501", severity)
    facts(found.remedy, *commands)
    assert found.remedy.count("systemctl") == len(commands)
    facts(found.summary, "kubelet", *stated)
    assert found.evidence[0].object == "kubelet.service"
    assert state in found.evidence[0].text


def test_a_unit_that_systemd_does_not_find_is_brought_back_first(world):
    _dummy, (found,) = judged(world, load_state="not-found", unit_file_state="")
    assert (found.code, found.severity) == ("KM501", "warning")
    assert found.remedy.startswith("see whether its file is there")
    assert "restorecon -v" in found.remedy
    assert found.remedy.index("daemon-reload") < found.remedy.index("systemctl enable")


@pytest.mark.parametrize("state", ["static", "indirect", "generated", "", None])
def test_where_another_unit_decides_nobody_knows(world, state):
    verdicts, found = judged(world, unit_file_state=state)
    assert verdicts == {"KM501": "unknown", "KM503": "clear"}
    assert not found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"unit_file_state": "masked", "load_state": "masked", "active_state": "inactive"},
            "is masked: the node was taken out on purpose",
        ),
        (
            {"unit_file_state": "masked", "load_state": "masked"},
            "is masked: the node was taken out on purpose; its process runs on until it ends",
        ),
        (
            {
                "unit_file_state": "masked-runtime",
                "load_state": "masked",
                "active_state": "inactive",
            },
            "is masked until the next boot",
        ),
    ],
)
def test_one_that_is_masked_is_not_merely_disabled(world, changes, said):
    verdicts, (found,) = judged(world, **changes)
    assert verdicts == {"KM501": "not_applicable", "KM503": "present"}
    assert found.code == "KM503"
    assert said in found.summary
    assert "fenced" in found.remedy


@pytest.mark.parametrize(
    ("status", "data", "verdict"),
    [
        ("absent", None, "not_applicable"),
        ("denied", None, "unknown"),
        ("error", None, "unknown"),
        ("ok", {"unit": None}, "not_applicable"),
        ("ok", {"unit": ["disabled"]}, "unknown"),
        ("ok", {"unit": {"unit_file_state": 7}}, "unknown"),
        ("ok", {"unit": {}}, "unknown"),
    ],
)
def test_evidence_that_lacks_the_unit(world, status, data, verdict):
    world.documents["w1"]["collectors"]["kubelet"] = {"status": status, "data": data}
    result = world.judge(faults=CODES)
    assert {
        item.verdict for item in result.verdicts if item.host == "w1" and item.code == "KM501"
    } == {verdict}
    assert not result.findings


def test_a_name_of_a_unit_that_is_hostile_is_not_printed(world):
    _dummy, (found,) = judged(
        world, name="kubelet.service; reboot\x1b[31m", unit_file_state="disabled"
    )
    assert "reboot" not in found.remedy
    assert found.remedy.endswith("UNIT")
