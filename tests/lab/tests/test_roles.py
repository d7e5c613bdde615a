# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule's scenarios of the roles that need a cluster: the lab is their platform."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.gate import machine, venvs
from tests.lab.cluster import host
from tests.lab.support.repairing import RELEASES


@pytest.mark.parametrize("role", ["leader_election", "log_capture"])
def test_molecule(role, tmp_path):
    reason = host.unavailable_reason()
    if reason and not machine.in_ci():
        pytest.skip(reason)
    home = venvs.ensure("test")
    env = machine.environment(
        KUBEMEND_LAB_K8S=RELEASES[0],
        KUBEMEND_ROOT=str(machine.ROOT),
        KUBEMEND_REPORTS=str(tmp_path),
        KUBEMEND_INVENTORY="localhost,",
        ANSIBLE_COLLECTIONS_PATH=os.pathsep.join(
            [str(venvs.collections()), str(venvs.bundled("containers.podman"))]
        ),
        ANSIBLE_HOME=str(tmp_path / "ansible"),
        NO_COLOR="1",
        ANSIBLE_NOCOLOR="1",
        PY_COLORS="0",
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    done = subprocess.run(
        [home / "bin" / "molecule", "test", "-s", role],
        env=env,
        cwd=machine.ROOT / "extensions",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
