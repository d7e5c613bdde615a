# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which installer owns a host's files, and the place where its users change them.

The kubelet that runs decides: folders stay behind when a host changes hands, and /etc/rancher on a
running kubespray node is a leftover. Folders count only where the kubelet's command line says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..evidence import contract, memoize
from ..evidence.answers.node.installer import Installer
from ..evidence.answers.node.kubelet import Kubelet, KubeletProcess, KubeletUnit
from ..parsers import pflag

_RANCHER = "kube-scheduler-arg and kube-controller-manager-arg in /etc/rancher/{0}/config.yaml"
# Installers that rewrite the files from their own source: an edit of kubemend's would be lost, or
# be fought over.
PLACES = {
    "RKE2": _RANCHER.format("rke2"),
    "k3s": _RANCHER.format("k3s"),
    "kOps": "spec.kubeScheduler and spec.kubeControllerManager of the cluster's spec",
    "OpenShift": "the KubeScheduler and KubeControllerManager resources of its operators",
    "microk8s": "the args files under /var/snap/microk8s/current/args",
}
# What one word of the kubelet's unit, program or command line says. OpenShift's kubeconfig lies
# where kOps' does: it comes first.
_SIGNS = (
    ("RKE2", re.compile(r"^rke2-(server|agent)\.service$|/rancher/rke2/")),
    ("k3s", re.compile(r"^k3s(-agent)?\.service$|/rancher/k3s/|(^|/)k3s(-server|-agent)?$")),
    ("microk8s", re.compile(r"^snap\.microk8s\.|/snap/microk8s/|(^|/)kubelite$")),
    (
        "OpenShift",
        re.compile(r"\bnode\.openshift\.io/|^--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig$"),
    ),
    ("kOps", re.compile(r"\bkops\.k8s\.io/|^--kubeconfig=/var/lib/kubelet/kubeconfig$")),
)
# kubeadm writes this file, for itself and for kubespray; none of the others uses it.
_KUBEADM = "/etc/kubernetes/kubelet.conf"
_KUBEADM_CONFIG = "/var/lib/kubelet/config.yaml"
_FOLDERS = {
    "/etc/rancher/rke2": "RKE2",
    "/var/lib/rancher/rke2": "RKE2",
    "/etc/rancher/k3s": "k3s",
    "/var/lib/rancher/k3s": "k3s",
    "/opt/kops": "kOps",
    "/var/cache/nodeup": "kOps",
    "/etc/machine-config-daemon": "OpenShift",
    "/etc/kubernetes/static-pod-resources": "OpenShift",
    "/var/snap/microk8s": "microk8s",
    "/snap/microk8s": "microk8s",
}
_OURS = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/kubernetes/kubelet.env")
_EXTRA_ARGS = (
    "kubespray writes this again from its inventory when it upgrades the cluster: keep"
    ' leader-elect: "true" there in {0} (group_vars of k8s_cluster), and no patch in'
    " kubeadm_patches that says otherwise"
)
_SCHEDULER_FILE = (
    "kubespray writes this file again from its inventory at every run of cluster.yml: keep"
    " leaderElect: true there in kube_scheduler_leader_elect_extra_opts (group_vars of k8s_cluster)"
)
_VARIABLES = {
    "kube-scheduler": "kube_kubeadm_scheduler_extra_args",
    "kube-controller-manager": "kube_kubeadm_controller_extra_args",
}


def foreign(document: Mapping[str, Any]) -> str | None:
    """Return why another tool's files are not edited on this host, with the place to edit instead.

    The result is None for kubeadm and kubespray.
    """
    name = owner_of(document)
    if name:
        return f"{name} owns these files and writes them again: change {PLACES[name]}"
    return None


def note(
    document: Mapping[str, Any], remedy: str, component: str | None, paths: Iterable[str] = ()
) -> str:
    """Return what to set in kubespray's inventory, so that its next run does not undo this step.

    The result is empty for other hosts and remedies.

    paths: what installers left on the hosts of the cluster, for a step that belongs to none of them
    """
    if component not in _VARIABLES or not (_kubespray(document) if document else _sprayed(paths)):
        return ""
    if remedy == "edit_config":
        return _SCHEDULER_FILE
    if remedy in ("edit_manifest", "kubeadm_config"):
        return _EXTRA_ARGS.format(_VARIABLES[component])
    return ""


@memoize.last
def owner_of(document: Mapping[str, Any]) -> str | None:
    """Return the installer that rewrites this host's files from its own source.

    The result is None for kubeadm and kubespray.
    """
    argv, words = _kubelet(document)
    for name, sign in _SIGNS:
        if any(sign.search(word) for word in words):
            return name
    paths = contract.answer(document, Installer).paths
    if pflag.string_flag(argv, "kubeconfig") == _KUBEADM or any(path in paths for path in _OURS):
        return None
    return next((name for folder, name in _FOLDERS.items() if folder in paths), None)


def is_config_of_kubeadm(document: Mapping[str, Any], path: str | None) -> bool:
    """Tell whether kubeadm writes this configuration of the kubelet again.

    Kubespray's is elsewhere. kubeadm writes no drop-in.
    """
    argv, _words = _kubelet(document)
    is_kubeadm = pflag.string_flag(argv, "kubeconfig") == _KUBEADM and not owner_of(document)
    return is_kubeadm and path == _KUBEADM_CONFIG


def _kubespray(document: Mapping[str, Any]) -> bool:
    if owner_of(document):
        return False
    config = pflag.string_flag(_kubelet(document)[0], "config")
    if config:
        return config.endswith("/kubelet-config.yaml")
    return _sprayed(contract.answer(document, Installer).paths)


def _sprayed(paths: Iterable[str]) -> bool:
    return any(path.endswith(("/kubelet.env", "/kubelet-config.yaml")) for path in paths)


def _kubelet(document: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Return the kubelet's command line, and all text that shows its installer."""
    kubelet = contract.answer(document, Kubelet)
    process, unit = kubelet.process or KubeletProcess(), kubelet.unit or KubeletUnit()
    argv = process.argv or kubelet.argv
    exe = process.exe or contract.answer(document, Installer).kubelet_exe
    return argv, [word for word in (exe, unit.name, *argv) if word]
