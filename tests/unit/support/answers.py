# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded answers of collectors, typed, whole or with one value replaced."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any, TypeVar

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"

Answer = TypeVar("Answer")


def recorded(case: str, document: str, collector: str) -> Any:
    """Return what a collector answered in a recorded case; callers must not change it."""
    return _collectors(case, document)[collector]["data"]


@functools.cache
def _collectors(case: str, document: str) -> Any:
    path = RECORDED / case / "evidence" / f"{document}.json"
    return json.loads(path.read_text(encoding="utf-8"))["collectors"]


def typed(kind: type[Answer], raw: Any) -> Answer:
    """Decode an answer in which no value is of another type."""
    decoded = decode.decode(kind, raw)
    assert decoded.malformed == ()
    return decoded.answer


def changed(kind: type[Answer], raw: Any, *path: str | int, value: Any) -> decode.Decoded[Answer]:
    """Decode a copy of an answer, one value of it replaced."""
    copied = copy.deepcopy(raw)
    *parents, last = path
    place = copied
    for key in parents:
        place = place[key]
    place[last] = value
    return decode.decode(kind, copied)
