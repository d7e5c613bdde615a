# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the table of known messages, as tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message
from tests.docs import known_messages as page


def of_a_later_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no program whose release is known have a message of the table."""
    rows = {
        name: tuple(replace(row, since="99.0", until="") for row in rows)
        for name, rows in known_message.files().items()
    }
    monkeypatch.setattr(known_message, "files", lambda: rows)
    for name in ("_of_places", "_find"):
        function = getattr(known_message, name).__wrapped__  # without what it remembers
        monkeypatch.setattr(known_message, name, function)


def give_kubelet(document: dict[str, Any], version: str | None) -> None:
    """Let the evidence of a host tell this version of its kubelet."""
    said = version and f"Kubernetes {version}"
    record = {"status": "ok", "truncated": False, "data": {"kubelet_version": said}}
    document["collectors"]["pinning"] = record


def of_workloads() -> list[tuple[str, str, str]]:
    """Return the messages about what workloads themselves bring about: id, place and an example."""
    lines = (line for name in known_message.files() for line in page.examples(name))
    return [line for line in lines if line[0] in known_message.OF_WORKLOADS]
