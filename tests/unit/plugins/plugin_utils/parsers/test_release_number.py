# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of releases as programs print them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.release_number import (
    FINAL,
    is_within,
    parse,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("runc version 1.0.0-rc93", (1, 0, 0, 93)),
        ("runc version 1.0.0~rc93+ds1", (1, 0, 0, 93)),
        ("1.0.0-rc.1", (1, 0, 0, 1)),
        ("v1.21.1+k3s1", (1, 21, 1, FINAL)),
        ("1.4.4-0ubuntu1~18.04.2", (1, 4, 4, FINAL)),
        ("2.41", (2, 41, 0, FINAL)),
        ("237", (237, 0, 0, FINAL)),
        ("none", None),
        ("", None),
        (None, None),
    ],
)
def test_a_number_is_read(text, number):
    assert parse(text) == number


@pytest.mark.parametrize(
    ("text", "is_in"),
    [
        ("1.0.0-rc92", False),
        ("1.0.0-rc93", True),
        ("1.0.0-rc94", False),
        ("1.0.0", False),
        ("none", False),
    ],
)
def test_a_candidate_precedes_its_release(text, is_in):
    assert is_within(text, "1.0.0-rc93", "1.0.0-rc94") is is_in
