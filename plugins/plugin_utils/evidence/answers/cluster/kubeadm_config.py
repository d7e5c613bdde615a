# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kubeadm_config`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConfigText:
    """The text of a ConfigMap, without secrets."""

    text: str | None = None
    masked: tuple[tuple[int, int], ...] = ()
    sha256: str | None = None
    size: int | None = None
    resource_version: str | None = None


@dataclass(frozen=True)
class KubeadmConfig(ConfigText):
    """The record from which kubeadm writes the manifests."""
