# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose clock is wrong: found by an audit, which blames no other host."""

from __future__ import annotations

import pytest

from tests.lab.support.report import findings


@pytest.mark.parametrize("seconds", [-600, 600])
def test_a_wrong_clock_is_found(cluster, play, node, seconds):
    cluster.exec(node, f'date -s "@$(($(date +%s) + {seconds}))"')

    done, report = play(name="audit")
    assert done.returncode == 0, done.stdout[-4000:]
    seen = {(finding["code"], finding["host"]) for finding in findings(report)}
    assert seen == {("KM526", node)}
