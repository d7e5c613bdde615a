# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `server`."""

from __future__ import annotations

from dataclasses import dataclass

from ..http_answer import Clock


@dataclass(frozen=True)
class Server:
    """The API server that answered, and its version."""

    url: str | None = None
    git_version: str | None = None
    major: str | None = None
    minor: str | None = None
    kube_system_uid: str | None = None
    kubectl: str | None = None
    kubeconfig: str | None = None
    clock: Clock | None = None
