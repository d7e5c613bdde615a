# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet whose folder is not the usual one, which drivers of volumes have in their manifests.

Pure. A driver serves and registers where its DaemonSet says, by hostPaths below /var/lib/kubelet.
MicroK8s, k0s and --root-dir have the kubelet elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..evidence.document import one_line
from ..parsers import pod_start_message
from .cluster import Cluster, Host
from .kubelet.config import USUAL_ROOT
from .pod_start import Waiting
from .result import EvidenceRef

_DRIVER = re.compile(r"driver name (?P<name>[\w.-]{1,63}) not found in the list")
_FOLDER = re.compile(
    r"hostPath type check failed: (?P<path>/var/lib/kubelet(?:/[\w./@-]{0,160})?) "
)
# What a driver of volumes tells of its registration.
_BELOW = re.compile(
    r"/var/lib/kubelet/plugins(?:_registry)?/[\w./@-]{1,160}(?=:|\s+(?:doesn't exist|connect))"
)


@dataclass(frozen=True)
class Root:
    """What the other folder of a kubelet means for pods that wait.

    clause: the folder, and what that keeps from working
    """

    clause: str
    advice: str
    proof: EvidenceRef


def of_driver(cluster: Cluster, node: str | None, text: str) -> Root | None:
    """Return why a driver that runs is not registered: it names the usual folder, or None."""
    host = cluster.hosts_by_node().get(node or "")
    path = _BELOW.search(text)
    if host is None or not host.kubelet_root or path is None:
        return None
    root = one_line(host.kubelet_root, 200)
    return Root(
        f"the kubelet of that node has its folder at {root} (--root-dir), and the driver has its"
        f" socket and {path.group()} below {USUAL_ROOT}",
        _advice(root),
        _proof(host, root),
    )


def elsewhere(cluster: Cluster, row: Waiting) -> Root | None:
    """Return why pods wait for what is below the usual folder of a kubelet, or None."""
    host = cluster.hosts_by_node().get(row.node)
    if host is None or not host.kubelet_root:
        return None
    root = one_line(host.kubelet_root, 200)
    folder = _FOLDER.search(row.text)
    if folder is not None:
        return Root(
            f"the kubelet of that node has its folder at {root} (--root-dir), and these pods want"
            f" {folder.group('path')} of the host",
            _advice(root),
            _proof(host, root),
        )
    if row.trouble is None or row.trouble.kind != pod_start_message.NO_DRIVER:
        return None
    name = _DRIVER.search(row.text)
    driver = "the driver" if name is None else name.group("name")
    return Root(
        f"the kubelet of that node has its folder at {root} (--root-dir), where it looks for"
        f" drivers: {driver} does not run there, or its pods mount {USUAL_ROOT} of the host and"
        " register below that",
        _advice(root),
        _proof(host, root),
    )


def _advice(root: str) -> str:
    return (
        f"give the driver the folder {root}: its chart has a value for it (kubeletDir, kubeletPath,"
        f" node.kubeletPath), in a manifest replace {USUAL_ROOT} by it in hostPaths, in mountPaths"
        " and in --kubelet-registration-path; a driver that is right has its socket in"
        f" {root}/plugins_registry"
    )


def _proof(host: Host, root: str) -> EvidenceRef:
    return EvidenceRef("process", host.host, object="kubelet", text=f"its folder: {root}")
