# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which image sandboxes are made of, and what sets it."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import sandbox_setting
from tests.unit.support.cri_evidence import CONFIG, cri

CRI_2, CRI_3 = "plugins.io.containerd.grpc.v1.cri", "plugins.io.containerd.cri.v1.images"
PAUSE = "mirror.local/pause:3.9"


def line(number, table, key, value):
    return {"line": number, "table": table, "key": key, "value": value}


def of(world):
    return sandbox_setting.extract(world.documents["w1"])


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([line(3, CRI_2, "sandbox_image", f'"{PAUSE}"')], f"{CONFIG}:3"),
        ([line(4, f"{CRI_3}.pinned_images", "sandbox", f"'{PAUSE}'")], f"{CONFIG}:4"),
        ([line(5, CRI_3, "sandbox", f"'{PAUSE}'")], ""),  # no such key there
        ([line(3, CRI_2, "sandbox_image", "'a'"), line(6, CRI_2, "sandbox_image", "'b'")], ":6"),
        ([], ""),
    ],
)
def test_a_line_of_containerd(world, rows, place):
    data = cri(world, files=[{"path": CONFIG, "version": 2, "lines": rows}])
    data["config"]["sandbox_image"] = ""  # containerd 2 does not tell
    found = of(world)
    assert found.place.endswith(place)
    assert bool(found.place) == bool(place)
    assert bool(found.image) == bool(place)


def test_what_the_runtime_tells_counts(world):
    data = cri(world)
    data["config"].update(sandbox_image=PAUSE, sandbox_image_present=False)
    assert of(world) == (PAUSE, "", False)


def test_without_evidence_it_is_unknown(world):
    assert of(world) == ("", "", None)
