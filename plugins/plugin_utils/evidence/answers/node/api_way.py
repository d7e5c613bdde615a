# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `api_way`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiWay:
    """Whether the node reaches the API server of its kubelet."""

    server: str | None = None
    address: str | None = None
    failed: str | None = None
    error: str | None = None
