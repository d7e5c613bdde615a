# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook history: the trend on the terminal, without a cluster and without an inventory."""

from __future__ import annotations

import json

import pytest

NAME = "20261101T090000Z-1a2b3c"


@pytest.fixture(name="home")
def _home(tmp_path):
    """Return the home of a user with one run."""
    report = {
        "schema": "kubemend.report/1",
        "run_id": NAME,
        "started": "2026-11-01T09:00:00Z",
        "mode": "observe",
        "clusters": [{"key": "0123456789abcdef", "name": "prod"}],
        "hosts": [{"host": "w1", "status": "ok", "cluster": "0123456789abcdef"}],
        "findings": [],
        "verdicts": [],
    }
    folder = tmp_path / ".kubemend" / "runs" / NAME
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "inventory"), [((), None), (("--check", "--limit", "w1"), "inventory.ini")]
)
def test_the_trend_is_printed_once(operator, home, arguments, inventory):
    done = operator.run(
        "history", *arguments, env={"HOME": home}, inventory=inventory, report_dir=None
    )
    assert done.rc == 0, done.output
    assert done.stdout.count("prod: 1 run\n") == 1
    assert f"  {NAME}  observe    1/1  " in done.stdout
