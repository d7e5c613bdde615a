# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was captured of a scheduler that leads, in plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.scheduling import cache_dump
from .text_page import Page

KINDS = {cache_dump.SHORT: "present", cache_dump.UNKNOWN: "unknown"}
FILES = {"dump": "the dump of its cache", "matters": "the lines that matter", "lines": "all lines"}


def render(page: Page, one: Mapping[str, Any]) -> None:
    """One capture: what it proves first, what did not work, where the files are."""
    level, nodes = one["level"], one["nodes"]
    page.line(
        f"capture of the scheduler that leads: kube-scheduler of {one['host']} (pid {one['pid']},"
        f" {one['version']}), not restarted"
    )
    page.prose(one["sentence"], label="nodes: ", kind=KINDS.get(one["verdict"], "info"))
    page.prose(
        f"{_number(nodes['api'])} in the API, {_number(nodes['cached'])} in its cache,"
        f" {_number(nodes['counted'])} in its message, whose reasons speak of"
        f" {_number(nodes['reasons'])}",
        indent=4,
    )
    if one["message"]:
        waiting = f" ({', '.join(one['waiting'])})" if one["waiting"] else ""
        page.prose(f"it says{waiting}: {one['message']}", indent=4)
    for line in one["mismatch"]:
        page.prose(f"its own comparison: {line}", indent=4)
    if one["dump"]["reason"]:
        page.prose(f"the dump: {one['dump']['reason']}")
    if level["raised"] and level["restored"] and not level["reason"]:
        page.prose(
            f"its log level was {level['level']} meanwhile, and is {level['former']} again (what"
            " its command line says; it cannot be read)"
        )
    else:
        page.prose(f"its log level: {level['reason'] or 'not raised'}")
    for name, title in FILES.items():
        if name in one["files"]:
            page.line(f"  {title}: {one['files'][name]}")


def _number(value: int | None) -> str:
    return "not known" if value is None else str(value)
