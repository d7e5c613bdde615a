# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawing of causes: a cause left of what it leads to."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    cause_graph,
    groups,
)
from tests.unit.plugins.plugin_utils.reports.test_groups import finding


def drawing(*findings):
    titles = {"KM107": "x" * 99, "KM115": "Node is cordoned, fenced or not initialised"}
    return cause_graph.draw(groups.chain(groups.group(findings)), titles, {})


def test_nothing_is_drawn_where_nothing_explains_anything():
    assert drawing(finding("KM101", "m1"), finding("KM502", "w1")) is None


def test_a_cause_is_left_of_its_consequences_and_no_box_covers_another():
    picture = drawing(
        finding("KM107", "m1"),
        finding("KM115", because=("KM107",)),
        finding("KM203", because=("KM107", "KM115")),
        finding("KM511", because=("KM107", "KM115")),
    )
    left = {box.code: box.left for box in picture.boxes}
    assert left["KM107"] < left["KM115"] < left["KM203"] == left["KM511"]
    assert len({(box.left, box.top) for box in picture.boxes}) == len(picture.boxes) == 4
    assert len(picture.paths) == 5
    titles = {box.code: box.title for box in picture.boxes}
    assert " ".join(titles["KM115"]) == "Node is cordoned, fenced or not initialised"
    assert len(titles["KM107"]) == cause_graph.TITLE_LINES
    assert titles["KM107"][-1].endswith("…")
    assert max(len(line) for title in titles.values() for line in title) <= (
        cause_graph.TITLE_LENGTH
    )


def test_a_circle_is_drawn_in_finite_time():
    picture = drawing(
        finding("KM107", "m1", because=("KM115",)), finding("KM115", because=("KM107",))
    )
    assert len(picture.boxes) == 2
