# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release of an upgrade is known, or no check judges it."""

from __future__ import annotations

import pytest

from tests.unit.support.upgrade import judge, server, verdicts

CODES = [f"KM{number}" for number in range(720, 728)]


@pytest.mark.parametrize("code", CODES)
def test_a_release_that_nobody_has_read_is_unknown(world, code):
    server(world, "v1.98.0")
    (verdict,) = judge(world, code).verdicts
    assert verdict.verdict == "unknown"
    assert "1.99" in verdict.note


@pytest.mark.parametrize("code", CODES)
def test_without_the_release_of_the_api_server_nothing_is_claimed(world, code):
    server(world, None)
    assert verdicts(world, code) == ["unknown"]
