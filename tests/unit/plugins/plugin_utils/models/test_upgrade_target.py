# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that an upgrade is to bring."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import upgrade_target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import Cluster


def cluster(version, target=None):
    api = {"server": {"status": "ok", "data": {"git_version": version}}}
    return Cluster("k", [], api, upgrade_to=target)


@pytest.mark.parametrize(
    ("version", "named", "release"),
    [("v1.30.1", None, (1, 31)), ("v1.30.1", (1, 33), (1, 33)), ("v1.30.4+k3s1", None, (1, 31))],
)
def test_the_next_release_or_the_one_that_is_named(version, named, release):
    target = upgrade_target.find(cluster(version, named))
    assert (target.release, target.servers, target.is_known) == (release, ((1, 30),), True)
    assert list(target.steps()) == [(1, minor) for minor in range(31, release[1] + 1)]


def test_a_release_that_was_not_read_is_unknown_with_the_reason():
    api = cluster("v1.98.0")
    target = upgrade_target.find(api)
    missing, note = upgrade_target.unknown_release(api, target)
    assert missing
    assert "1.99" in note
    assert upgrade_target.unknown_release(api, None)[0]


def test_without_an_answer_there_is_no_target():
    assert upgrade_target.find(cluster(None)) is None
