# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a recorded cluster of the lab a quiet cluster of machines.

The lab's nodes are containers of one kernel, and a recording was made minutes after something
broke. A case starts from machines of their own that have run for a day, with nothing in their logs.
"""

from __future__ import annotations

import copy
import uuid
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import cpuset

from . import clock, paths
from .cluster import Evidence

DAY = 86400
MONTH = 30 * DAY
GIBIBYTE = 1024**3
WATCHES = "524288"
FILES = {
    "/etc/modules-load.d/k8s.conf": "overlay\nbr_netfilter\n",
    "/etc/sysctl.d/k8s.conf": (
        "net.bridge.bridge-nf-call-iptables = 1\n"
        "net.bridge.bridge-nf-call-ip6tables = 1\n"
        "net.ipv4.ip_forward = 1\n"
    ),
}
# A node whose network plugin is not looked at.
NETWORK: dict[str, Any] = {
    "resolvers": [{"path": "/etc/resolv.conf", "nameservers": ["192.0.2.53"], "search": []}],
    "interfaces": [{"name": "eth0", "count": 1, "mtu": 1500, "rp_filters": [0]}],
    "rp_filter": 0,
    "routes": [],
    "iptables": {"tables": [], "legacy": False, "nft": None},
    "conntrack": {"count": 900, "max": 131072},
}
BEFORE = {"mtime": MONTH, "started_at": DAY, "made": DAY, "begun": DAY}


def settle(evidence: Evidence) -> None:
    """Change every host and Node of the evidence."""
    for name in evidence.hosts:
        _machine(evidence, name)
        _lasting(evidence, name)
        _logs(evidence, name)
        _room(evidence, name)
        _runtime(evidence, name)
        _age(evidence.hosts[name]["collectors"], evidence.now)
    _pods(evidence)
    for number, item in enumerate(evidence.data(paths.API, "nodes")["items"]):
        item.update(
            boot_id=evidence.data(item["name"], "system")["boot_id"],
            created=clock.iso(evidence.now - MONTH),
            capacity=_capacity(evidence, item["name"]),
            pod_cidrs=[f"10.244.{number}.0/24"],
        )
        for condition in item["conditions"]:
            condition["since"] = clock.iso(evidence.now - DAY)


def _capacity(evidence: Evidence, name: str) -> dict[str, int]:
    """Return what a kubelet counts of its machine, which older recordings do not tell."""
    cpus = len(cpuset.parse(evidence.data(name, "pinning")["cpus"]["online"]))
    return {"cpu": 1000 * cpus, "memory": evidence.data(name, "pressure")["memory"]["total"]}


def file_record(path: str, text: str, mtime: float) -> dict[str, Any]:
    """Return a file as a collector reads it."""
    return {
        "path": path,
        "name": path.rpartition("/")[2],
        "kind": "file",
        "link": None,
        "size": len(text),
        "mode": "0644",
        "uid": 0,
        "gid": 0,
        "mtime": mtime,
        "sha256": "0" * 64,
        "text": text,
        "masked": [],
        "truncated": False,
        "binary": False,
        "error": None,
    }


def _machine(evidence: Evidence, name: str) -> None:
    """Give a host a kernel of its own that has run for a day."""
    system = evidence.data(name, "system")
    system.update(boot_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), uptime_s=DAY + 60.0)
    evidence.data(name, "boot").update(
        container=False,
        tree=True,
        modules={"br_netfilter": "loaded", "overlay": "loaded"},
        mounts=[{"point": "/", "source": "/dev/vda1", "type": "ext4", "options": "rw,relatime"}],
    )
    evidence.data(name, "swap")["container"] = False
    limits = evidence.data(name, "limits")
    limits["init"] = {"nofile": [1048576, 1048576], "nproc": [96000, 96000]}
    limits["init"]["cap_sys_resource"] = True
    limits["inotify"] = {"instance": None, "watch": None, "uid": 0, "opened": 8}
    limits["kernel"]["fs.inotify.max_user_watches"] = WATCHES
    limits["used_up"] = []


def _lasting(evidence: Evidence, name: str) -> None:
    """Let files set what the kernel has, as on a node that kubeadm's documentation prepares."""
    records = {path: file_record(path, text, evidence.now - MONTH) for path, text in FILES.items()}
    modules, sysctls = list(records.values())
    evidence.data(name, "boot")["modules_files"] = [modules]
    limits = evidence.data(name, "limits")
    instances = limits["kernel"]["fs.inotify.max_user_instances"]
    text = f"fs.inotify.max_user_watches = {WATCHES}\nfs.inotify.max_user_instances = {instances}\n"
    inotify = file_record("/etc/sysctl.d/60-inotify.conf", text, evidence.now - MONTH)
    limits["sysctl_files"] = [inotify, sysctls]


def _logs(evidence: Evidence, name: str) -> None:
    """Empty what was logged, and the journal of earlier repairs."""
    evidence.data(name, "kubelet_log")["lines"] = []
    evidence.answer(name, "kubelet_end", "absent", "the kubelet runs")
    evidence.answer(name, "component_end", "absent", "each of them runs")
    evidence.answer(name, "component_restart", "absent", "each of them runs")
    evidence.answer(name, "component_units", "absent", "no unit of a control plane component")
    evidence.answer(name, "unit_start", "absent", "kubelet and runtime run")
    silent = {"pods": [], "more": 0, "running": [], "unread": 0}
    evidence.data(name, "system_pods").update(silent)
    evidence.data(name, "kernel_log").update(rows=[], since=evidence.now - 3600, cut=False)
    evidence.answer(name, "journal", "absent", "/var/lib/kubemend does not exist")
    evidence.data(name, "kubelet")["unit"]["n_restarts"] = 0


def _room(evidence: Evidence, name: str) -> None:
    """Give a host free space, memory and process ids, which older recordings do not tell."""
    room = {"mount": "/", "type": "ext4", "device": "/dev/vda1", "error": None}
    room |= {"total": 100 * GIBIBYTE, "free": 60 * GIBIBYTE}
    room |= {"inodes": 6553600, "inodes_free": 6000000}
    folders = {"nodefs": "/var/lib/kubelet", "imagefs": "/var/lib/containerd"}
    evidence.data(name, "pressure").update(
        filesystems=[{"name": key, "path": path, **room} for key, path in folders.items()],
        memory={"total": 16 * GIBIBYTE, "available": 10 * GIBIBYTE},
        pids={"threads": 800, "max": 4194304},
        used_up=[],
        cgroups={"memory": 300},
    )
    evidence.answer(name, "largest", "absent", "nothing is nearly used up")
    evidence.data(name, "space").update(folders=[], stores=[])


def _runtime(evidence: Evidence, name: str) -> None:
    """Let a host's runtime and mounts answer, which older recordings do not tell."""
    cri = {"name": "containerd", "version": "", "driver": None, "conditions": [], "config": None}
    evidence.data(name, "cri").update(cri, cni_error="", sandboxes=[], files=[])
    evidence.answer(name, "cni", "absent", "the network plugin is not looked at")
    evidence.data(name, "network").update(copy.deepcopy(NETWORK))
    evidence.data(name, "hangs").update(tasks=[], mounts=[], zombies=[])


def _pods(evidence: Evidence) -> None:
    """Let every pod of the cluster run, which older recordings do not tell."""
    empty: dict[str, Any] = {"read": 0, "pods": [], "events": [], "nodes": [], "attachments": None}
    evidence.data(paths.API, "pod_start").update(empty, unhealthy=[])
    states = [{"node": name, "states": {"Running": 20}} for name in evidence.hosts]
    evidence.data(paths.API, "pod_states").update(nodes=states, ending=[])


def _age(value: Any, now: float) -> None:
    """Make every file a month old, and every process a day."""
    if isinstance(value, list):
        for item in value:
            _age(item, now)
    if isinstance(value, dict):
        for key, item in value.items():
            if key in BEFORE and isinstance(item, (int, float)):
                value[key] = now - BEFORE[key]
            _age(item, now)
