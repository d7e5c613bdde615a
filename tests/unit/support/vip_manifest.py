# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static pod of kube-vip, as its generator writes it."""

from __future__ import annotations

import json
from typing import Any

from . import file_evidence

PATH = "/etc/kubernetes/manifests/kube-vip.yaml"


def text(tag: str = "v1.2.2", **settings: str) -> str:
    """Return a manifest with these variables of its environment, in JSON, which YAML includes."""
    env = {"cp_enable": "true", "address": "192.0.2.10", **settings}
    container = {
        "name": "kube-vip",
        "image": f"ghcr.io/kube-vip/kube-vip:{tag}",
        "args": ["manager"],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": "kubeconfig", "mountPath": "/etc/kubernetes/admin.conf"}],
    }
    volume = {"name": "kubeconfig", "hostPath": {"path": "/etc/kubernetes/admin.conf"}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "kube-vip", "namespace": "kube-system"},
            "spec": {"containers": [container], "volumes": [volume]},
        }
    )


def record(content: str | None, **more: Any) -> dict[str, Any]:
    """Return the file of that manifest as evidence holds it."""
    return file_evidence.named_record(PATH, content, **{"masked": [], "mtime": 1, **more})
