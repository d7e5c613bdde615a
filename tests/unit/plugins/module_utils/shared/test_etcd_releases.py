# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of etcd of which a member must not be defragmented by a program."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import etcd_releases


@pytest.mark.parametrize(
    ("version", "is_safe"),
    [
        ("3.6.16", True),
        ("3.6.0", True),
        ("4.0.0", True),
        ("3.5.6", True),
        ("3.5.5", False),
        ("3.5.0-rc.1", False),
        ("3.4.4", True),
        ("3.4.3", False),
        ("3.3.25", False),
        ("", False),
        (None, False),
        ("v3", False),
    ],
)
def test_only_releases_that_survive_an_end_are_defragmented(version, is_safe):
    assert (etcd_releases.unsafe(version, "m1") is None) is is_safe


@pytest.mark.parametrize(
    ("versions", "is_mixed"),
    [(["3.6.4", "3.6.16"], False), (["3.5.26", "3.6.4", None], True), ([None], False)],
)
def test_members_have_one_minor_release(versions, is_mixed):
    assert (etcd_releases.mixed(versions) is not None) is is_mixed
