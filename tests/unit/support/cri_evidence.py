# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container runtime says of itself, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any

CONFIG = "/etc/containerd/config.toml"
TABLE = "plugins.io.containerd.grpc.v1.cri.containerd.runtimes.runc.options"


def cri(world: Any, host: str = "w1", **more: Any) -> dict[str, Any]:
    """Give a host containerd 1.6, with the systemd driver unless that is changed."""
    data = {
        "name": "containerd",
        "version": "v1.6.36",
        "driver": None,
        "conditions": [],
        "config": {
            "default_runtime": "runc",
            "systemd_cgroup": True,
            "sandbox_image": "registry.k8s.io/pause:3.6",
            "sandbox_image_present": True,
            "snapshotter": "overlayfs",
            "conf_dir": "/etc/cni/net.d",
            "bin_dirs": ["/opt/cni/bin"],
            "max_conf_num": 1,
            "default_network": "",
        },
        "cni_error": "",
        "sandboxes": [],
        "files": [{"path": CONFIG, "version": 2, "error": None, "lines": []}],
        **more,
    }
    world.documents[host]["collectors"]["cri"] = {"status": "ok", "data": data}
    return data


def kubelet_driver(world: Any, driver: str | None, host: str = "w1", version: str = "") -> None:
    """Set cgroupDriver in a kubelet's configuration, and its version."""
    text = "kind: KubeletConfiguration\n"
    if driver:
        text += f"cgroupDriver: {driver}\n"
    world.data(host, "kubelet")["config"] = {
        "path": "/var/lib/kubelet/config.yaml",
        "name": "config.yaml",
        "kind": "file",
        "text": text,
        "error": None,
    }
    world.documents[host]["collectors"]["pinning"] = {
        "status": "ok",
        "data": {"kubelet_version": f"Kubernetes {version or 'v1.30.1'}"},
    }
