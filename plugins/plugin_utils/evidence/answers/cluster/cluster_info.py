# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `cluster_info`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterInfo:
    """How new nodes find the cluster; key: the key of a cluster with this authority."""

    server: str | None = None
    pem: str | None = None
    key: str | None = None
