# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ConfigMaps of kubeadm: from which it writes files, and by which new nodes find the cluster.

Their secrets are masked.
"""

import hashlib
import re

from ...kubeapi.client import ApiError
from ...shared import redaction
from ...shared.cluster_key import cluster_key
from ...shared.text import one_line
from ...system import files, yaml_scalars

CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps/"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
# From this minor release on kubeadm gives the kubelets' ConfigMap no version in its name.
UNVERSIONED = 24


def kubeadm(api):
    """Return kubeadm's ClusterConfiguration.

    The next upgrade writes the manifests again from it.
    """
    return _text(api, "kubeadm-config", "ClusterConfiguration")


def kubelet(api, version):
    """Return {items: [ConfigMap]}, from which `kubeadm upgrade node` configures kubelets.

    The ConfigMap is the one that this release uses.
    """
    minor = re.match(r"\d+", str(version.get("minor") or ""))
    old = (
        minor is not None and str(version.get("major")) == "1" and int(minor.group()) < UNVERSIONED
    )
    if old:
        name = f"kubelet-config-1.{int(minor.group())}"
    else:
        name = "kubelet-config"
    return {"items": [dict(_text(api, name, "kubelet"), name=name)]}


def cluster_info(api):
    """Return {server, pem, key} of the kubeconfig by which new nodes find the cluster."""
    item = api.get(CLUSTER_INFO)
    text = (item.get("data") or {}).get("kubeconfig")
    if not isinstance(text, str):
        raise ApiError("absent", "cluster-info holds no kubeconfig")
    embedded = yaml_scalars.anywhere(text, "certificate-authority-data") or ""
    pem = files.certificates(yaml_scalars.decoded(embedded) or "")
    server = yaml_scalars.anywhere(text, "server") or ""
    return {"server": one_line(server, 200) or None, "pem": pem, "key": cluster_key(pem)}


def _text(api, name, key):
    """Return the text of one key with the digest and size of its true bytes.

    It raises ApiError.
    """
    item = api.get(CONFIG_MAPS + name)
    text = (item.get("data") or {}).get(key)
    if text is None:
        raise ApiError("absent", f"{name} holds no {key}")
    true = text.encode("utf-8")
    hidden, spans = redaction.data(true)[:2]
    return {
        "text": hidden.decode("utf-8", "replace"),
        "masked": spans,
        "sha256": hashlib.sha256(true).hexdigest(),
        "size": len(true),
        "resource_version": item["metadata"].get("resourceVersion"),
    }
