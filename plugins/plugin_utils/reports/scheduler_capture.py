# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture of a leading scheduler in plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.scheduling import cache_dump
from .text_page import Page

KINDS = {cache_dump.SHORT: "present", cache_dump.UNKNOWN: "unknown"}
FILES = {"dump": "the dump of its cache", "matters": "the lines that matter", "lines": "all lines"}


def render(page: Page, capture: Mapping[str, Any]) -> None:
    """Write one capture: its conclusion first, then what failed, then its files."""
    page.line(
        f"capture of the scheduler that leads: kube-scheduler of {capture['host']} (pid"
        f" {capture['pid']}, {capture['version']}), not restarted"
    )
    kind = KINDS.get(capture["verdict"], "info")
    page.prose(capture["sentence"], label="nodes: ", kind=kind)
    page.prose(_counts(capture["nodes"]), indent=4)
    if capture["message"]:
        page.prose(_message(capture), indent=4)
    for line in capture["mismatch"]:
        page.prose(f"its own comparison: {line}", indent=4)
    if capture["dump"]["reason"]:
        page.prose(f"the dump: {capture['dump']['reason']}")
    page.prose(_level(capture["level"]))
    for name, title in FILES.items():
        if name in capture["files"]:
            page.line(f"  {title}: {capture['files'][name]}")


def _counts(nodes: Mapping[str, int | None]) -> str:
    return (
        f"{_number(nodes['api'])} in the API, {_number(nodes['cached'])} in its cache,"
        f" {_number(nodes['counted'])} in its message, whose reasons speak of"
        f" {_number(nodes['reasons'])}"
    )


def _message(capture: Mapping[str, Any]) -> str:
    if not capture["waiting"]:
        return f"it says: {capture['message']}"
    return f"it says ({', '.join(capture['waiting'])}): {capture['message']}"


def _level(level: Mapping[str, Any]) -> str:
    if level["raised"] and level["restored"] and not level["reason"]:
        return (
            f"its log level was {level['level']} meanwhile, and is {level['former']} again (what"
            " its command line says; it cannot be read)"
        )
    return f"its log level: {level['reason'] or 'not raised'}"


def _number(value: int | None) -> str:
    if value is None:
        return "not known"
    return str(value)
