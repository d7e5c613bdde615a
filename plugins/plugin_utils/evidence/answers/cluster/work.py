# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `work`."""

from __future__ import annotations

from dataclasses import dataclass

from ..kubemend_journal import Lock, OpenStep


@dataclass(frozen=True)
class Work:
    """The runs of kubemend that may change the node which asked the API."""

    lock: Lock | None = None
    unproven: tuple[OpenStep, ...] = ()
