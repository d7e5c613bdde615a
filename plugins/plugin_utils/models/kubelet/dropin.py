# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary arguments of a kubelet, in a drop-in of kubemend under /run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....module_utils.shared import systemd_output
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit

# For a reset; a capture has files of its own.
DROPIN, ENVIRONMENT = (
    "/run/systemd/system/kubelet.service.d/zz-kubemend-reset.conf",
    "/run/kubemend/kubelet-reset.env",
)
ADDS = re.compile(r"(?m)^# adds: (.*)$")


def behind(unit: KubeletUnit, variable: str) -> list[str]:
    """Return the arguments behind the last place where ExecStart has the variable."""
    words, values = unit.start_words, dict(unit.split_variables)
    last = max((place for place, word in enumerate(words) if word == f"${variable}"), default=-1)
    return [argument for word in words[last + 1 :] for argument in _expanded(word, values)]


def _expanded(word: str, values: Mapping[str, str | None]) -> list[str]:
    if word.startswith("$") and word[1:] in values:
        words: list[str] = systemd_output.words(values[word[1:]] or "")
        return words
    return [word]


def lent(kubelet: Kubelet) -> tuple[str, ...]:
    """Return the temporary arguments that an unfinished reset left to this kubelet."""
    for text in _environments(kubelet.unit or KubeletUnit()):
        match = ADDS.search(text)
        if match:
            return tuple(match.group(1).split())
    return ()


def _environments(unit: KubeletUnit) -> Iterator[str]:
    for file in unit.environment_files:
        if file.path == ENVIRONMENT:
            yield file.text or ""
