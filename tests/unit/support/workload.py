# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Deployment whose pod is not Guaranteed, and the resources that would make it so."""

from typing import Any

PATH = "/apis/apps/v1/namespaces/shop/deployments/db"
APP = {
    "name": "app",
    "image": "x",
    "resources": {
        "limits": {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1"},
        "requests": {"cpu": "2"},
    },
}
ITEM: "dict[str, Any]" = {
    "metadata": {"name": "db", "generation": 4},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "initContainers": [{"name": "prepare", "env": [{"name": "A", "value": "b"}]}],
                "containers": [APP],
            }
        },
    },
    "status": {"observedGeneration": 4, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2},
}
WANTED = {
    "initContainers": {"prepare": {"cpu": "2", "memory": "1Gi"}},
    "containers": {"app": {"memory": "1Gi"}},
}
