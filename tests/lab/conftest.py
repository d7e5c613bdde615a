# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A continuous integration's machine gets its clusters taken away; a developer's keeps them, because the next run is quicker."""

from __future__ import annotations

from tests.gate import machine
from tests.lab.cluster import Cluster


def pytest_sessionfinish():
    if machine.in_ci():
        for name in Cluster.known():
            Cluster.find(name, name).down()
