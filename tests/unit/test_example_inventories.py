# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventories of examples/inventory: Ansible reads them, and a run finds its groups there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "inventory"
INVENTORIES = {
    "kubeadm": ("hosts.yml", ["m1", "m2", "m3"], ["w1", "w2"]),
    "kubespray": ("inventory.ini", ["m1", "m2", "m3"], ["w1", "w2"]),
    "rke2": ("hosts.yml", ["s1", "s2", "s3"], ["a1", "a2"]),
}


def inventory(name: str, tmp_path: Path) -> dict[str, Any]:
    """Return what ansible-inventory reads of an example."""
    file, _control_plane, _nodes = INVENTORIES[name]
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "inventory", "-i", str(FOLDER / name / file), "--list"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "false"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "WARNING" not in done.stderr
    return json.loads(done.stdout)


def test_each_example_is_tested():
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(INVENTORIES)


@pytest.mark.parametrize("name", INVENTORIES)
def test_a_run_finds_its_groups(name, tmp_path):
    _file, control_plane, nodes = INVENTORIES[name]
    read = inventory(name, tmp_path)
    for host in (*control_plane, *nodes):
        variables = read["_meta"]["hostvars"][host]
        found = settings.check(variables)
        assert read[found.control_plane_group]["hosts"] == control_plane
        assert read[found.node_group]["hosts"] == nodes
        assert found.max_risk == 0
        assert {"kubemend_max_risk", "kubemend_fail_on"} <= set(variables)
