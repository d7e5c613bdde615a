# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both parsers of YAML, for edits."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.safe_io import yaml_nodes


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def both_parsers(request, monkeypatch):
    """Libyaml is not everywhere, and both must know the same places."""
    monkeypatch.setattr(yaml_nodes, "_LOADER", getattr(yaml_nodes.yaml, request.param))
    return request.param
