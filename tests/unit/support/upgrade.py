# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster before an upgrade, in evidence that is written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def judge(world: Any, *codes: str, **options: Any) -> Any:
    """Evaluate these codes."""
    return world.judge(faults=frozenset(codes), **options)


def verdicts(world: Any, *codes: str, **options: Any) -> list[str]:
    """Return the verdicts of these codes, each once."""
    return sorted({row.verdict for row in judge(world, *codes, **options).verdicts})


def server(world: Any, version: str | None) -> None:
    """Give the API server and every kubelet a release."""
    world.data("api", "server")["git_version"] = version
    for node in world.data("api", "nodes")["items"]:
        node["kubelet_version"] = version


def kubelet_words(world: Any, host: str, *words: str) -> None:
    """Give the kubelet of a host these arguments."""
    kubelet = world.data(host, "kubelet")
    kubelet["argv"] = kubelet["process"]["argv"] = ["/usr/bin/kubelet", *words]


def kubeadm(world: Any, version: str, section: str, arguments: Mapping[str, str]) -> None:
    """Give kubeadm's ClusterConfiguration extraArgs in one section."""
    if version >= "v1beta4":
        rows = "".join(f"  - name: {key}\n    value: {value}\n" for key, value in arguments.items())
    else:
        rows = "".join(f"    {key}: {value}\n" for key, value in arguments.items())
    text = (
        f"apiVersion: kubeadm.k8s.io/{version}\nkind: ClusterConfiguration\n"
        f"{section}:\n  extraArgs:{' {}' if not rows else ''}\n{rows}"
    )
    world.api["collectors"]["kubeadm_config"] = {"status": "ok", "data": {"text": text}}
