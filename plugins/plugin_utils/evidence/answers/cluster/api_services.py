# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `api_services`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiService:
    """An API group that another server serves and that is not available."""

    name: str = ""
    namespace: str = ""
    service: str = ""
    reason: str = ""
    message: str = ""
    since: str | None = None


@dataclass(frozen=True)
class ApiServices:
    """The API groups that other servers serve.

    listed: how many there are; items: those that are not available
    """

    listed: int = 0
    items: tuple[ApiService, ...] = ()
