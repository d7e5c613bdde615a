# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary arguments of a kubelet, in a drop-in of kubemend under /run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared import systemd_output
from ...parsers import json_values

# For a reset; a capture has files of its own.
DROPIN, ENVIRONMENT = (
    "/run/systemd/system/kubelet.service.d/zz-kubemend-reset.conf",
    "/run/kubemend/kubelet-reset.env",
)
ADDS = re.compile(r"(?m)^# adds: (.*)$")


def behind(unit: Mapping[str, Any], variable: str) -> list[str]:
    """Return the arguments behind the last place where ExecStart has the variable."""
    words = [str(word) for word in unit.get("start_words") or ()]
    values = dict(unit.get("split_variables") or ())
    last = max((place for place, word in enumerate(words) if word == f"${variable}"), default=-1)
    return [argument for word in words[last + 1 :] for argument in _expanded(word, values)]


def _expanded(word: str, values: Mapping[str, str | None]) -> list[str]:
    if word.startswith("$") and word[1:] in values:
        words: list[str] = systemd_output.words(values[word[1:]] or "")
        return words
    return [word]


def lent(kubelet: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the temporary arguments that an unfinished reset left to this kubelet."""
    for text in _environments(json_values.mapping(kubelet.get("unit"))):
        match = ADDS.search(text)
        if match:
            return tuple(match.group(1).split())
    return ()


def _environments(unit: Mapping[str, Any]) -> Iterator[str]:
    for record in unit.get("environment_files") or ():
        if record.get("path") == ENVIRONMENT:
            yield record.get("text") or ""
