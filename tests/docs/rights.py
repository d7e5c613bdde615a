# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/rights.md: what root and the API's roles are needed for, collector by collector.

Its texts stand in the page, its tables are made here.
"""

from __future__ import annotations

import json

from tests.docs import ROOT, between

PAGE = ROOT / "docs" / "rights.md"
# What an ordinary user was seen to read: tests/fresh/test_without_become.py.
TOLD = ROOT / "tests" / "fresh" / "without_become.json"


def page() -> str:
    from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
        registry,
    )

    told = json.loads(TOLD.read_text(encoding="utf-8"))
    strange = set(registry.BY_NAME) ^ set(told["collectors"])
    if strange:
        raise SystemExit(
            f"{TOLD.name} and the table of collectors differ: {', '.join(sorted(strange))}"
        )
    rows = [
        f"| `{one.name}` | {one.tier} | {one.reads} | {told['collectors'][one.name]} |"
        for one in registry.COLLECTORS
    ]
    table = "\n".join(
        ["| collector | tier | reads | as an ordinary user |", "|---|---|---|---|", *rows]
    )
    asked = [
        f"| `{collector.name}` | {collector.tier} | {collector.reads} |"
        for collector in registry.API_COLLECTORS
    ]
    api = "\n".join(["| collector | tier | reads |", "|---|---|---|", *asked])
    text = between(PAGE, "collectors", table)
    for name, part in (("api", api), ("unknown", ", ".join(told["unknown"]) + ".")):
        text = between(PAGE, name, part, text)
    return text
