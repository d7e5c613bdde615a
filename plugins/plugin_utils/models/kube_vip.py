# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a static pod of kube-vip reaches the API, whose address it has to hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.node.manifests import Manifests
from ..evidence.document import one_line
from ..parsers import pflag, pod_manifest

NAME = "kube-vip"
ADMIN = "/etc/kubernetes/admin.conf"  # kube-vip's own default
MAX_TEXT = 300
# Takes the server of a kubeconfig at its default path as it is: kube-vip/kube-vip#1658. Releases
# before and after ask the node's own API server as kubernetes:PORT.
TAKES_SERVER = "v1.2.2"


@dataclass(frozen=True)
class KubeVip:
    """One static pod of kube-vip.

    path: of its manifest
    address: that it holds
    own_server: the API server that it is told to ask, "" where that is not told
    kubeconfig: the file with which it asks, as its container has it; "" where that is not mounted
    tag: of its image
    """

    path: str
    address: str
    own_server: str = ""
    kubeconfig: str = ""
    tag: str = ""

    @property
    def takes_server(self) -> bool:
        """Tell whether its release takes the server of the usual kubeconfig as it is."""
        return self.kubeconfig == ADMIN and self.tag.partition("-")[0] == TAKES_SERVER


def extract(document: Mapping[str, Any]) -> KubeVip | None:
    """Return the kube-vip of a host's static pods, or None."""
    files = contract.answer(document, Manifests).files
    return next((pod for file in files for pod in _pods(file)), None)


def _pods(file: FileRecord) -> Iterator[KubeVip]:
    text = file.text or ""
    if file.truncated or NAME not in text:
        return
    try:
        parsed = pod_manifest.parse(pod_manifest.parseable(text, file.masked))
        for container in parsed.containers:
            if NAME in container.image:
                yield _pod(file, container)
    except pod_manifest.ManifestError:
        return


def _pod(file: FileRecord, container: pod_manifest.Container) -> KubeVip:
    words, _places = container.words
    settings = container.env
    address = settings.get("address") or settings.get("vip_address")
    kubeconfig = settings.get("k8s_config_file") or pflag.string_flag(words, "k8sConfigPath")
    kubeconfig = kubeconfig or ADMIN
    if all(mount.path != kubeconfig for mount in container.mounts):
        kubeconfig = ""
    return KubeVip(
        one_line(file.path, MAX_TEXT),
        one_line(address or pflag.string_flag(words, "address") or "", MAX_TEXT),
        one_line(settings.get("kubernetes_addr", ""), MAX_TEXT),
        one_line(kubeconfig, MAX_TEXT),
        one_line(container.tag or "", MAX_TEXT),
    )
