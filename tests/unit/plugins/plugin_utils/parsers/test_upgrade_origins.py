# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patterns of unattended-upgrades as its files have them, against names of Release files."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    next_start,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import upgrade_origins

DEBIAN = next_start.Distribution("Debian", "bookworm")
UBUNTU = next_start.Distribution("Ubuntu", "jammy")
STABLE = next_start.PackageSource("Debian", "stable", "bookworm", "Debian", "main", "d.org")
SECURITY = next_start.PackageSource(
    "Debian", "stable-security", "bookworm-security", "Debian-Security", "main", "d.org"
)
POCKET = next_start.PackageSource("Ubuntu", "jammy-security", "jammy", "Ubuntu", "main", "u.com")
UPDATES = next_start.PackageSource("Ubuntu", "jammy-updates", "jammy", "Ubuntu", "main", "u.com")
DOCKER = next_start.PackageSource("Docker", "jammy", "jammy", "Docker CE", "stable", "docker.com")


@pytest.mark.parametrize(
    ("old", "text", "system", "taken"),
    [
        (
            False,
            "origin=Debian,codename=${distro_codename}-security,label=Debian-Security",
            DEBIAN,
            [SECURITY],
        ),
        (False, "origin=Debian,codename=${distro_codename},label=Debian", DEBIAN, [STABLE]),
        (False, "o=Debian, a=stable", DEBIAN, [STABLE]),
        (False, "origin=*", DEBIAN, [STABLE, SECURITY, POCKET, UPDATES, DOCKER]),
        (False, "site=docker.com", UBUNTU, [DOCKER]),
        (False, "component=stable", UBUNTU, [DOCKER]),
        (True, "${distro_id}:${distro_codename}-security", UBUNTU, [POCKET]),
        (True, "${distro_id}:${distro_codename}", UBUNTU, []),
        (True, "Docker:${distro_codename}", UBUNTU, [DOCKER]),
        (True, "Docker", UBUNTU, []),
        (False, "vendor=Debian", DEBIAN, []),
        (False, "Debian", DEBIAN, []),
        (False, "", DEBIAN, []),
    ],
)
def test_what_a_pattern_takes(old, text, system, taken):
    pattern = next_start.OriginPattern(old, text)
    sources = [STABLE, SECURITY, POCKET, UPDATES, DOCKER]
    assert [one for one in sources if upgrade_origins.matches(pattern, one, system)] == taken
