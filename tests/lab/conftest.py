# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A continuous integration's machine gets its clusters taken away; a developer's keeps them, because the next run is quicker."""

from __future__ import annotations

import json

import pytest

from tests.gate import machine
from tests.lab import playbook
from tests.lab.cluster import Cluster


@pytest.fixture
def play(cluster, tmp_path):
    """Run a playbook on the module's cluster; its process and its report."""
    def run(*arguments, name="remediate"):
        folder = tmp_path / "report"
        done = playbook.run(name, cluster.inventory, *arguments, report=str(folder))
        assert (folder / "report.json").exists(), done.stdout[-3000:]
        return done, json.loads((folder / "report.json").read_text(encoding="utf-8"))

    return run


def pytest_sessionfinish():
    if machine.in_ci():
        for name in Cluster.known():
            Cluster.find(name, name).down()
