# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checksum of the kubelet's state files."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import checksum


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)]
)
def test_the_published_values_of_fnv_1a(data: bytes, value: int) -> None:
    assert checksum.fnv32a(data) == value
