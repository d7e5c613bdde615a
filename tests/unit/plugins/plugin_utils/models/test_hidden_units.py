# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units whose file hides another one."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import hidden_units

PATH, OTHER = "/etc/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service"


def extract(world, *rows):
    world.documents["w1"]["collectors"]["unit_start"] = {
        "status": "ok",
        "data": {"units": [{"name": "kubelet.service", **row} for row in rows]},
    }
    return hidden_units.extract(world.documents["w1"])


def test_a_unit_with_two_files(world):
    found = extract(world, {"fragment_path": PATH, "hidden": [OTHER]})
    assert found == {"kubelet": ("kubelet.service", PATH, (OTHER,))}


def test_a_unit_with_one_file(world):
    assert extract(world, {"fragment_path": PATH, "hidden": []}) == {}
    assert extract(world, {}) == {}
