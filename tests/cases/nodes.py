# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of nodes: the Node in the API, the machine, the layout, a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from . import bare, clock, quiet
from .cluster import Evidence

TAINTS = {"Unknown": "unreachable", "False": "not-ready"}
REASONS = {"Unknown": "NodeStatusUnknown", "False": "KubeletNotReady", "True": "KubeletReady"}
NODE_USER = "system:node:"
SILENT = 40  # seconds of a lease before a Node is Unknown
RANCHER = "/var/lib/rancher/rke2"


def node(
    evidence: Evidence, name: str, ready: str, message: str | None = None, since: int = 600
) -> None:
    """Set a Node's condition Ready since so many seconds, with the taints that follow."""
    at = clock.iso(evidence.now - since)
    item = evidence.node(name)
    condition = {"type": "Ready", "status": ready, "reason": REASONS[ready], "since": at}
    if message:
        condition["message"] = message
    taints = [row for row in item["taints"] or [] if "node.kubernetes.io/" not in row["key"]]
    if ready in TAINTS:
        key = f"node.kubernetes.io/{TAINTS[ready]}"
        taints += [{"key": key, "effect": effect, "added": at} for effect in EFFECTS]
    item.update(ready=ready, conditions=[condition], taints=taints)
    if ready == "Unknown":
        item["lease"] = clock.iso(evidence.now - since - SILENT)


EFFECTS = ("NoSchedule", "NoExecute")


def machine(
    evidence: Evidence,
    kernel: str | None = None,
    system: Iterable[str] = (),
    cgroup: str | None = None,
    hosts: Iterable[str] = (),
) -> None:
    """Set kernel, distribution (id, version, name) and cgroup version of hosts, or of all."""
    for host in hosts or evidence.hosts:
        data = evidence.data(host, "system")
        data["kernel"] = kernel or data["kernel"]
        data["cgroup"] = cgroup or data["cgroup"]
        keys = ("id", "version_id", "pretty_name")
        data["os_release"] = dict(zip(keys, system, strict=False)) or data["os_release"]


def sysctl(
    evidence: Evidence, host: str, values: Mapping[str, str], files: Mapping[str, str] | None = None
) -> None:
    """Set kernel settings of limits or boot, and the files of sysctl.d that a host has."""
    limits, boot = evidence.data(host, "limits"), evidence.data(host, "boot")
    for key, value in values.items():
        known = limits["kernel"] if key in limits["kernel"] else boot["running"]
        known[key] = value
    if files is not None:
        limits["sysctl_files"] = [
            quiet.file_record(path, text, evidence.now - quiet.MONTH)
            for path, text in files.items()
        ]


def inotify_full(evidence: Evidence, host: str, holders: Iterable[list[Any]] = ()) -> None:
    """Let no further inotify instance be made; holders: program, unit, instances."""
    limits = evidence.data(host, "limits")
    limits["inotify"].update(instance="EMFILE", opened=0)
    limits["used_up"] = ["inotify instances"]
    rows = evidence.data(host, "descriptors")["inotify"]
    for pid, (comm, unit, instances) in enumerate(holders, 4000):
        rows.append(
            {"pid": pid, "comm": comm, "uid": 0, "unit": unit, "instances": instances}
            | {"pod_uid": None, "container_id": None, "watches": 3 * instances}
        )


def certificate(
    evidence: Evidence, host: str, expired: int, valid: int = 365, common_name: str | None = None
) -> None:
    """Give the kubelet a client certificate that expired so many days ago."""
    end = datetime.fromtimestamp(evidence.now, timezone.utc) - timedelta(days=expired)
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, common_name or f"system:node:{host}")]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - timedelta(days=valid))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM).decode("ascii")
    kubelet = evidence.data(host, "kubelet")
    kubelet["client_certificate"].update(pem=pem)
    if common_name and common_name.startswith(NODE_USER):  # by which a host is known as a Node
        evidence.hosts[host]["node"] = common_name[len(NODE_USER) :]


def rke2(evidence: Evidence, servers: Iterable[str] = ("m1", "m2", "m3")) -> None:
    """Make the cluster one of RKE2: kubelet and containerd are children of its service."""
    for host in evidence.hosts:
        role = "server" if host in servers else "agent"
        _rke2_kubelet(evidence, host, f"rke2-{role}.service")
        evidence.data(host, "installer").update(
            paths=["/etc/rancher/rke2", RANCHER], kubelet_exe=f"{RANCHER}/bin/kubelet"
        )
        bare.embedded_runtime(evidence, host, "/run/k3s/containerd/containerd.sock")
        record = evidence.record(host, "manifests")
        if record["status"] == "ok":
            record["data"]["folder"] = f"{RANCHER}/agent/pod-manifests"


def _rke2_kubelet(evidence: Evidence, host: str, unit: str) -> None:
    kubelet = evidence.data(host, "kubelet")
    argv = [
        "kubelet",
        f"--config-dir={RANCHER}/agent/etc/kubelet.conf.d",
        "--container-runtime-endpoint=unix:///run/k3s/containerd/containerd.sock",
        f"--hostname-override={host}",
        f"--kubeconfig={RANCHER}/agent/kubelet.kubeconfig",
    ]
    manifests = f"{RANCHER}/agent/pod-manifests"
    kubelet.update(argv=argv, config=None, static_pod_path=manifests)
    kubelet["kubeconfig"]["path"] = f"{RANCHER}/agent/kubelet.kubeconfig"
    kubelet["process"].update(argv=argv, exe=f"{RANCHER}/bin/kubelet")
    fragment = f"/usr/local/lib/systemd/system/{unit}"
    kubelet["unit"].update(name=unit, fragment_path=fragment, drop_in_paths=[])
    kubelet["unit"].update(start_words=[], split_variables=[], environment_files=[])
    limits = evidence.data(host, "limits")
    for row in limits["units"] + limits["processes"]:
        if row.get("name") == "kubelet.service":
            row.update(name=unit, fragment_path=fragment, drop_in_paths=[])
        if row.get("unit") in ("kubelet.service", "containerd.service"):
            row["unit"] = unit
    limits["units"] = [row for row in limits["units"] if row["name"] != "containerd.service"]
