# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package of the command, with the collection of the checkout in place of the carried one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT / "command"))


@pytest.fixture(autouse=True)
def _carried(monkeypatch, tmp_path):
    from kubemend import collection

    root = Path(settings.__file__).parents[3]
    monkeypatch.setattr(collection, "ROOT", root.parents[2])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
