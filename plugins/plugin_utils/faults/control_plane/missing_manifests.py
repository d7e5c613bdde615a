# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a control-plane node of kubeadm whose kubelet reads no manifest of a component.

A kubelet ends the static pods of a folder that it does not read any more, and logs nothing of it.
Components belong on a host where their manifests lie in kubeadm's own folder, or where the kubelet
asks this very host for its API, and nothing listens there. admin.conf alone is no proof, because
operators copy it to workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.manifests import Manifests
from ...evidence.answers.node.system import System
from ...evidence.document import COMPONENTS, one_line
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.result import EvidenceRef
from ..base import Detection

USUAL = "/etc/kubernetes/manifests"
API_SERVER, ETCD = "kube-apiserver", "etcd"
ADMIN = "/etc/kubernetes/admin.conf"
_FILES = tuple(f"{component}.yaml" for component in (*COMPONENTS, ETCD))
_REFUSED = "connection"


def of_host(host: Host, document: Mapping[str, Any]) -> Detection | None:
    """Return the hit of a host that should run a control plane and has no manifest of it."""
    kubelet, manifests = contract.answer(document, Kubelet), contract.answer(document, Manifests)
    is_known = host.statuses.get("instances") == "ok" and not host.missing("manifests")
    if not is_known or kubelet.process is None or _has_components(host):
        return None
    if ADMIN not in host.installer:
        return None
    unread = tuple(name for name in manifests.usual or () if name in _FILES)
    server = _own_server(host, document)
    if not unread and not server:
        return None
    return _hit(host, document, unread, server)


def _has_components(host: Host) -> bool:
    """Tell whether a component runs here, or has a manifest or a unit of systemd."""
    plane = host.control_plane
    if plane is None:
        return bool(host.unit_components)
    return any((plane.files, plane.processes, plane.broken, plane.unread, host.unit_components))


def _own_server(host: Host, document: Mapping[str, Any]) -> str:
    """Return the kubelet's server where it is this machine, and nothing listens there; else ""."""
    way, system = host.api_way, contract.answer(document, System)
    if way is None or way.failed != _REFUSED or "refused" not in (way.error or ""):
        return ""
    if way.address is None or way.address not in (system.addresses or ()):
        return ""
    return one_line(way.server or way.address, 200)


def _hit(
    host: Host, document: Mapping[str, Any], unread: tuple[str, ...], server: str
) -> Detection:
    folder = one_line(contract.answer(document, Kubelet).static_pod_path or "", 200)
    return Detection(
        "no component of the control plane runs. The kubelet"
        f" {_reads(host, folder)}. A kubelet ends the static pods of a folder that it does not read"
        f"{_reason(unread, server)}",
        tuple(_proofs(host, document, folder, unread)),
        _advice(folder, unread),
        host=host.host,
        node=host.node,
        # The others need etcd: where its manifest is one of them, their findings follow from that.
        component=ETCD if f"{ETCD}.yaml" in unread else API_SERVER,
    )


def _reads(host: Host, folder: str) -> str:
    if not folder:
        return "has no folder of static pods (staticPodPath is not set)"
    state = "which has no manifest of a component"
    if host.statuses.get("manifests") == "absent":
        state = "which does not exist"
    return f"reads static pods from {folder} (staticPodPath), {state}"


def _reason(unread: tuple[str, ...], server: str) -> str:
    """Return what shows that components belong on this host, as a sentence."""
    if unread:
        return f". {', '.join(unread)} lie in {USUAL}"
    return f". This kubelet's API server is {server}, this very machine. Nothing listens there"


def _proofs(
    host: Host, document: Mapping[str, Any], folder: str, unread: tuple[str, ...]
) -> Iterator[EvidenceRef]:
    config = kubelet_config.read(contract.answer(document, Kubelet))
    setting = config.setting("staticPodPath", "pod-manifest-path")
    if setting is not None:
        yield setting.proof(host.host)
    if folder:
        text = "no manifest of a component of the control plane"
        yield EvidenceRef("file", host.host, path=folder, text=text)
    if unread:
        yield EvidenceRef("file", host.host, path=USUAL, text=", ".join(unread))
    yield EvidenceRef("file", host.host, path=ADMIN, text="kubeadm made a control plane here")


def _advice(folder: str, unread: tuple[str, ...]) -> str:
    if folder == USUAL:
        return (
            f"on that node bring the manifests back to {USUAL}: ls -la /etc/kubernetes /root shows"
            " whether someone moved them away; /etc/kubernetes/tmp has those before an upgrade by"
            " kubeadm. The kubelet starts them at once: crictl ps shows etcd and kube-apiserver"
            " within a minute"
        )
    reason = "where the manifests lie" if unread else "kubeadm's folder, where the manifests belong"
    return (
        f"on that node set staticPodPath: {USUAL} ({reason}) in the kubelet's configuration"
        " (kubeadm: /var/lib/kubelet/config.yaml; --pod-manifest-path where it is a flag), then"
        " systemctl restart kubelet; crictl ps shows etcd and kube-apiserver within a minute. Move"
        f" static pods of your own to {USUAL} too: a kubelet reads one folder"
    )
