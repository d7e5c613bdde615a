# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version that evidence and reports state is the one of the release."""

from pathlib import Path

import yaml

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.version import (
    TOOL_VERSION,
)

GALAXY = Path(__file__).resolve().parents[5] / "galaxy.yml"


def test_it_is_the_version_of_the_collection():
    assert yaml.safe_load(GALAXY.read_text(encoding="utf-8"))["version"] == TOOL_VERSION
