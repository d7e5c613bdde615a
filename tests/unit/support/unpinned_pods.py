# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of a cluster with pods that no CPU is pinned to."""

from __future__ import annotations

STATE = {
    "none": '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
    "static": '{"policyName":"static","defaultCpuSet":"0-3","checksum":611748604}',
}
FILE = "/var/lib/kubelet/config.yaml"


def container(name="app", kind="app", cpu="1", memory="64Mi", **more):
    return {
        "name": name,
        "kind": kind,
        "cpu_request": None,
        "cpu_limit": cpu,
        "memory_request": None,
        "memory_limit": memory,
        **more,
    }


def item(kind="Deployment", name="d", node=None, owner=None, **more):
    return {
        "kind": kind,
        "api_version": "apps/v1",
        "namespace": "n",
        "name": name,
        "uid": "u",
        "node": node,
        "phase": None,
        "qos": "Burstable" if node else None,
        "owner": owner,
        "manager": None,
        "expected": False,
        "pod_level": None,
        "containers": [container(), container("init", "init", None, None)],
        **more,
    }


def pod(name="d-77-x", node="w1", owner=("Deployment", "d"), **more):
    return item(
        "Pod", name, node, {"kind": owner[0], "name": owner[1]} if owner else None, alike=1, **more
    )


def find(world, *items, **record):
    world.api["collectors"]["pinnable"] = {"status": "ok", "data": {"items": list(items)}, **record}
    return [one for one in world.judge(deep=True).findings if one.code == "KM313"]


def configure_kubelets(world, **hosts):
    """Give hosts kubelets as kubeadm configures them.

    hosts: for each, the policy of its file, that of its state file, and flags that override both
    """
    for host, (policy, state, *argv) in hosts.items():
        kubelet = world.data(host, "kubelet")
        kubelet["argv"] = ["kubelet", f"--config={FILE}", *argv]
        kubelet["config"] = {
            "path": FILE,
            "text": (
                "kind: KubeletConfiguration\n" + (f"cpuManagerPolicy: {policy}\n" if policy else "")
            ),
        }
        record = (
            {"path": "/var/lib/kubelet/cpu_manager_state", "text": STATE[state]} if state else None
        )
        world.documents[host]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {"cpu_state": record},
        }
    return world
