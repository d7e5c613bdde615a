# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/catalogue.json, the catalogue of faults for programs."""

from __future__ import annotations

import json

from tests.docs import ROOT

PAGE = ROOT / "docs" / "catalogue.json"


def page() -> str:
    """Return docs/catalogue.json."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
        fault_catalogue,
    )

    return json.dumps(fault_catalogue.document(), indent=1) + "\n"
