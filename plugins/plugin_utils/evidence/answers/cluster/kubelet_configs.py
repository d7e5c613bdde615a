# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `kubelet_configs`."""

from __future__ import annotations

from dataclasses import dataclass

from .kubeadm_config import ConfigText


@dataclass(frozen=True)
class KubeletConfig(ConfigText):
    """A ConfigMap from which kubeadm writes a kubelet's configuration."""

    name: str | None = None


@dataclass(frozen=True)
class KubeletConfigs:
    """The kubelet configurations of kubeadm."""

    items: tuple[KubeletConfig, ...] = ()
