# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector package_changes: what it has, and where it has no answer."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    package_changes,
)


def collect(monkeypatch, rows, problem):
    asked = []
    monkeypatch.setattr(
        package_changes.package_log, "changes", lambda since: asked.append(since) or (rows, problem)
    )
    monkeypatch.setattr(package_changes.time, "time", lambda: 8 * 86400.0)
    return package_changes.collect(base.Context({}, [], {})), asked


def test_the_last_week(monkeypatch):
    data, asked = collect(monkeypatch, [{"name": "runc"}], "denied")
    assert (data, asked) == ({"since": 86400.0, "items": [{"name": "runc"}]}, [86400.0])


@pytest.mark.parametrize(
    ("problem", "error"), [("denied", base.Denied), ("neither has a log", base.Absent)]
)
def test_without_a_log(monkeypatch, problem, error):
    with pytest.raises(error):
        collect(monkeypatch, [], problem)
