# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence written by hand, for what no recorded cluster shows.

Three masters and a worker, healthy unless changed.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

CA = "-----BEGIN CERTIFICATE-----\nMIIBkubemendCA\n-----END CERTIFICATE-----\n"
KEY = "c0ffee" + "0" * 58
CLOCK = 1_800_000_000.0
PORTS = {"kube-scheduler": 10259, "kube-controller-manager": 10257}
# What each has to sign with.
KEYS = {
    "kube-controller-manager": (
        "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
        "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
        "--service-account-private-key-file=/etc/kubernetes/pki/sa.key",
    )
}


def manifest_text(component: str, *arguments: str, version: str = "v1.30.1") -> str:
    words = (*arguments, *KEYS.get(component, ()))
    volumes = ""
    if component in KEYS:
        volumes = (
            "    volumeMounts:\n    - {mountPath: /etc/kubernetes/pki, name: pki}\n"
            "  volumes:\n  - {hostPath: {path: /etc/kubernetes/pki}, name: pki}\n"
        )
    lines = "".join(f"    - {argument}\n" for argument in words)
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {component}\n  namespace:"
        f" kube-system\nspec:\n  containers:\n  - command:\n    - {component}\n{lines}    image:"
        f" registry/{component}:{version}\n    name: {component}\n{volumes}"
    )


def file_record(
    name: str, text: str | None, mtime: float = CLOCK - 86400, **more: Any
) -> dict[str, Any]:
    return {
        "path": f"/etc/kubernetes/manifests/{name}",
        "name": name,
        "kind": "file",
        "link": None,
        "size": len(text or ""),
        "mode": "0600",
        "uid": 0,
        "gid": 0,
        "mtime": mtime,
        "sha256": "0" * 64,
        "text": text,
        "masked": [],
        "truncated": False,
        "binary": False,
        "error": None,
        **more,
    }


def process(component: str, pid: int, *arguments: str, **more: Any) -> dict[str, Any]:
    return {
        "component": component,
        "pid": pid,
        "started_at": CLOCK - 3600,
        "argv": [component, *arguments, *KEYS.get(component, ())],
        "exe": f"/usr/local/bin/{component}",
        "pod_uid": "0" * 31 + "a",
        "static": True,
        "container_id": "c",
        "unit": None,
        "host_network": True,
        "kubeconfig": {"text": None},
        "authority": {"pem": CA},
        "config": None,
        **more,
    }


def answer(
    component: str, pid: int, elect: bool | None, version: str = "v1.30.1"
) -> dict[str, Any]:
    told = (
        {}
        if elect is None
        else {
            "leaderElect": elect,
            "resourceLock": "leases",
            "resourceName": component,
            "resourceNamespace": "kube-system",
        }
    )
    return {
        "component": component,
        "pid": pid,
        "address": "127.0.0.1",
        "port": PORTS[component],
        "healthz": {"status": 200, "body": "", "error": None},
        "leader_election_check": elect,
        "configz": {"status": 200, "leader_election": told or None, "error": None},
        "metrics": {
            "status": 200,
            "git_version": version,
            "leader_election_master_status": None,
            "error": None,
        },
        "credential": None,
    }


def no_swap() -> dict[str, Any]:
    """Return a machine of which everything that could activate swap is known, and nothing does."""
    from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import swap

    paths = (*swap.FILES, *swap.ZRAM, *(f"{folder}/zram-generator" for folder in swap.GENERATORS))
    return {
        "swaps": "Filename\tType\tSize\tUsed\tPriority\n",
        "fstab": {"path": "/etc/fstab", "kind": "file", "text": "", "error": None},
        "units": [],
        "cmdline": "-",
        "files": [{"path": path, "error": "missing"} for path in paths],
        "links": {},
        "own": [],
        "container": False,
        "systemd": 252,
        "memory": {"swap_total_kib": 0, "swap_free_kib": 0, "mem_available_kib": 4000000},
    }


def booted() -> dict[str, Any]:
    """Return a machine that a boot leaves as it is."""
    folders = {
        "/var/lib/kubelet": "/var/lib/kubelet",
        "/var/lib/containerd": "/var/lib/containerd",
        "/var/lib/docker": None,
        "/var/lib/containers": None,
        "/var/lib/etcd": None,
    }
    return {
        "running": {
            "net.ipv4.ip_forward": "1",
            "net.bridge.bridge-nf-call-iptables": "1",
            "net.bridge.bridge-nf-call-ip6tables": "1",
        },
        "modules": {"br_netfilter": "loaded", "overlay": "loaded"},
        "tree": True,
        "modules_files": [],
        "cmdline": [],
        "devices": {},
        "folders": folders,
        "mounts": [{"point": "/", "source": "/dev/sda1", "type": "ext4", "options": "rw,relatime"}],
        "selinux": {"enforce": None, "config": None},
        "container": False,
        "firewall": {},
        "denials": None,
        "fapolicyd": False,
    }


def starts_again() -> dict[str, Any]:
    """Return a machine whose next start reads what runs now."""
    kubelet = {"name": "kubelet", "pid": 1, "path": "/usr/bin/kubelet", "replaced": False}
    config = "/etc/containerd/config.toml"
    return {
        "programs": [kubelet, {**kubelet, "name": "containerd", "path": "/usr/bin/containerd"}],
        "runtime_files": {
            "path": config,
            "files": [{"path": config, "newer": False}],
            "asked": False,
            "error": "",
            "conflicts": [],
        },
        "mounts": {"rows": [], "unknown": 0, "error": None},
        "kernels": {"running": "6.1.0-25-amd64", "kernels": []},
        "gpu": None,
        "upgrades": None,
        "rpm_upgrades": None,
    }


class World:
    """A cluster whose evidence a test changes before it judges it."""

    def __init__(self, masters: int = 3) -> None:
        self.documents = {f"m{n}": self._master(n, f"10.0.0.{n}") for n in range(1, masters + 1)}
        self.documents["w1"] = self._host("w1", "10.0.0.100", ["node"])
        self.api = self._api(masters)

    def _host(self, name: str, ip: str, groups: list[str]) -> dict[str, Any]:
        unit = {
            "name": "kubelet.service",
            "load_state": "loaded",
            "active_state": "active",
            "unit_file_state": "enabled",
            "programs": [["/usr/lib/systemd/system/kubelet.service", "/usr/bin/kubelet"]],
        }
        kubelet = {
            "process": {"pid": 1, "argv": ["kubelet"]},
            "argv": ["kubelet"],
            "unit": unit,
            "ca": {"pem": CA},
            "kubeconfig": {"text": "clusters: []"},
            "healthz": {"status": 200, "body": "ok", "error": None},
        }
        collectors = {
            "system": {"hostname": name, "addresses": [ip, "127.0.0.1"], "clock": CLOCK},
            "kubelet": kubelet,
            "swap": no_swap(),
            "failed_units": {"failed": 0, "units": []},
            "package_changes": {"since": CLOCK - 604800, "items": []},
            "boot": booted(),
            "kernel_log": {"since": CLOCK - 3600, "cut": False, "rows": []},
            "system_pods": {"pods": [], "more": 0, "running": [], "unread": 0},
            "next_start": starts_again(),
        }
        return {
            "schema": "kubemend.evidence/1",
            "host": name,
            "node": name,
            "cluster_key": KEY,
            "status": "ok",
            "reason": "",
            "groups": groups,
            "collected_at": "2027-01-15T08:00:00Z",
            "asked_at": CLOCK - 0.5,
            "received_at": CLOCK + 0.5,
            "collectors": {
                **{key: {"status": "ok", "data": value} for key, value in collectors.items()},
                **{
                    key: {"status": "absent", "data": None}
                    for key in (
                        "manifests",
                        "instances",
                        "component_http",
                        "component_units",
                        "etcd",
                        "certificates",
                        "installer",
                        "devices",
                        "pinning",
                        "kubelet_log",
                        "limits",
                        "descriptors",
                        "runtime",
                        "cri",
                        "cni",
                        "pressure",
                        "hangs",
                        "network",
                        "repeated_errors",
                        "api_server",
                        "api_load",
                        "static_pod_paths",
                        "component_restart",
                        "api_way",
                    )
                },
            },
        }

    def _master(self, number: int, ip: str) -> dict[str, Any]:
        document = self._host(f"m{number}", ip, ["control_plane"])
        running = [
            process(component, 100 + index, "--leader-elect=true")
            for index, component in enumerate(PORTS)
        ]
        running += [process("kube-apiserver", 90, f"--advertise-address={ip}"), process("etcd", 80)]
        members = [
            {
                "id": str(n),
                "name": f"m{n}",
                "peer_urls": [f"https://10.0.0.{n}:2380"],
                "client_urls": [],
            }
            for n in (1, 2, 3)
        ]
        found = {
            "manifests": {
                "folder": "/etc/kubernetes/manifests",
                "ignored": [],
                "is_mount": False,
                "files": [
                    file_record(
                        f"{component}.yaml", manifest_text(component, "--leader-elect=true")
                    )
                    for component in PORTS
                ],
            },
            "instances": {"processes": running, "unreadable": []},
            "component_http": {
                "components": [
                    answer(component, 100 + index, True) for index, component in enumerate(PORTS)
                ]
            },
            "etcd": {
                "api_server": {
                    "etcd_servers": ["https://127.0.0.1:2379"],
                    "etcd_prefix": "/registry",
                },
                "endpoint": "https://127.0.0.1:2379",
                "cluster_id": "77",
                "members": members,
                "error": None,
                "status": {
                    "version": "3.6.4",
                    "member_id": str(number),
                    "leader": "1",
                    "db_size": 20971520,
                    "db_size_in_use": 15728640,
                    "quota": 2147483648,
                    "endpoint": "https://127.0.0.1:2379",
                },
                "alarms": [],
                "local": {
                    "pid": 80,
                    "uptime_s": 3600.0,
                    "static": True,
                    "settings": {"name": f"m{number}", "data-dir": "/var/lib/etcd"},
                    "metrics": {
                        "member_id": str(number),
                        "version": "3.6.4",
                        "has_leader": 1.0,
                        "peers": [{"id": str(n), "active": True} for n in (1, 2, 3) if n != number],
                    },
                },
            },
        }
        document["collectors"].update(
            {key: {"status": "ok", "data": value} for key, value in found.items()}
        )
        return document

    def _api(self, masters: int) -> dict[str, Any]:
        lock = [
            {
                "kind": "Lease",
                "namespace": "kube-system",
                "name": name,
                "uid": f"uid-{name}",
                "holder": "m1_x",
                "renew_time": "2027-01-15T08:00:00Z",
                "transitions": 0,
            }
            for name in PORTS
        ]
        well = {
            "ready": "True",
            "unschedulable": False,
            "cordon": None,
            "pod_cidrs": [],
            "lease": "2027-01-15T08:00:00.000000Z",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "since": "2027-01-14T08:00:00Z",
                }
            ],
        }
        master = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
        nodes = [
            {
                "name": f"m{n}",
                "control_plane": True,
                "devices": {},
                "addresses": [{"type": "InternalIP", "address": f"10.0.0.{n}"}],
                "taints": [dict(master)],
                **copy.deepcopy(well),
            }
            for n in range(1, masters + 1)
        ]
        nodes.append(
            {
                "name": "w1",
                "control_plane": False,
                "devices": {},
                "addresses": [],
                "taints": [],
                **copy.deepcopy(well),
            }
        )
        found = {
            "server": {"git_version": "v1.30.1", "kube_system_uid": "ks"},
            "nodes": {"items": nodes},
            "endpoints": {"addresses": [f"10.0.0.{n}:6443" for n in range(1, masters + 1)]},
            "locks": {
                "servers": [
                    {
                        "address": f"10.0.0.{n}:6443",
                        "error": None,
                        "kube_system_uid": "ks",
                        "objects": copy.deepcopy(lock),
                    }
                    for n in range(1, masters + 1)
                ]
            },
            "jobs": {"listed": 0, "events_oldest": None, "items": []},
            "rejected": {"items": [], "total": 0, "nodes": {}},
            "pending": {
                "items": [],
                "total": 0,
                "unseen": [],
                "gated": [],
                "bound": [],
                "read": 0,
                "taken": 0,
            },
            "unmade": {"refused": [], "daemonsets": []},
            "pod_start": {
                "read": 0,
                "pods": [],
                "events": [],
                "nodes": [],
                "attachments": None,
                "unhealthy": [],
            },
            "pod_states": {"nodes": [], "ending": []},
            "pinnable": {"items": []},
            "webhooks": {"listed": 0, "items": []},
            "api_services": {"listed": 0, "items": []},
            "object_events": {"items": []},
            "disruption_budgets": {"listed": 0, "items": []},
        }
        return {
            "schema": "kubemend.evidence/1",
            "kind": "cluster",
            "host": "m1",
            "cluster_key": KEY,
            "status": "ok",
            "reason": "",
            "collected_at": "2027-01-15T08:00:00Z",
            "collectors": {
                **{key: {"status": "ok", "data": value} for key, value in found.items()},
                **{
                    key: {"status": "absent", "data": None}
                    for key in ("kubeadm_config", "kubelet_configs", "cluster_info")
                },
            },
        }

    def data(self, host: str, collector: str) -> dict[str, Any]:
        document = self.api if host == "api" else self.documents[host]
        return document["collectors"][collector]["data"]

    def manifest(self, host: str, component: str, *arguments: str, **more: Any) -> None:
        files = self.data(host, "manifests")["files"]
        files[:] = [item for item in files if item["name"] != f"{component}.yaml"]
        files.append(file_record(f"{component}.yaml", manifest_text(component, *arguments), **more))

    def run(
        self, host: str, component: str, *arguments: str, elect: bool | None, **more: Any
    ) -> None:
        pid = 100 + list(PORTS).index(component)
        running = self.data(host, "instances")["processes"]
        running[:] = [item for item in running if item["component"] != component]
        running.append(process(component, pid, *arguments, **more))
        spoken = self.data(host, "component_http")["components"]
        spoken[:] = [item for item in spoken if item["component"] != component]
        spoken.append(answer(component, pid, elect))

    def silence(self, host: str, status: str = "unreachable") -> None:
        old = self.documents[host]
        self.documents[host] = {
            **old,
            "node": None,
            "cluster_key": None,
            "status": status,
            "reason": "timed out",
            "collectors": {},
        }

    def leave_kubernetes(self) -> None:
        """Machines that belong to no cluster."""
        for document in self.documents.values():
            document["cluster_key"] = None
            document["collectors"] = {
                name: {"status": "absent", "data": None} for name in document["collectors"]
            }
        self.api = {}

    def judge(self, **options: Any):
        from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import (
            evaluate,
        )

        api = [self.api] if self.api else []
        return evaluate([*copy.deepcopy(list(self.documents.values())), *api], **options)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def single() -> World:
    return World(masters=1)
