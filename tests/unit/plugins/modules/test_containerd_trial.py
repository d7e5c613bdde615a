# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of containerd's trial start: it hands on, and starts nothing in check mode."""

import pytest

from ansible_collections.kubemend.remediation.plugins.modules import containerd_trial
from tests.unit.support import fake_module


@pytest.fixture
def trial(monkeypatch):
    entry = fake_module.Entry({"trial": {"state": "served"}})
    monkeypatch.setattr(containerd_trial.containerd_trial, "run", entry)
    return entry


def test_it_starts_it_and_changes_nothing(monkeypatch, trial):
    ended = fake_module.run(monkeypatch, containerd_trial, evidence_dir="x", timeout=7)
    assert [params["timeout"] for params in trial.calls] == [7]
    assert ended.result == {"changed": False, "document": {"trial": {"state": "served"}}}


def test_check_mode(monkeypatch, trial):
    ended = fake_module.run(monkeypatch, containerd_trial, True, evidence_dir="x")
    assert trial.calls == []
    assert ended.result == {"changed": False, "document": {}}
