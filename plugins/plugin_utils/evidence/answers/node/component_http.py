# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `component_http`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..http_answer import HttpAnswer


@dataclass(frozen=True)
class Configz:
    """The leader election of /configz; its keys are those of the version."""

    status: int | None = None
    leader_election: Mapping[str, str | int | float | bool | None] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Metrics:
    """The lines of /metrics that are kept."""

    status: int | None = None
    leader_election_master_status: Mapping[str, int] | None = None
    git_version: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class ComponentAnswer:
    """What one component reports about itself."""

    component: str = ""
    pid: int | None = None
    address: str | None = None
    port: int | None = None
    healthz: HttpAnswer | None = None
    leader_election_check: bool | None = None
    configz: Configz | None = None
    metrics: Metrics | None = None
    credential: str | None = None


@dataclass(frozen=True)
class ComponentHttp:
    """The answers of schedulers and controller managers."""

    components: tuple[ComponentAnswer, ...] = ()
