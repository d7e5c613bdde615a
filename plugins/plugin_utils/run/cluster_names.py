# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of clusters in reports: the operator's, else the one in kubeadm's configuration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from ..evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ..faults.engine import KEY_DIGITS
from ..models.cluster import Cluster

KUBEADM_DEFAULT = "kubernetes"  # what most clusters are called: no name to tell them apart
SHORT_KEY = 8
EVERY_HOST = ""  # for whose cluster a replay has a name: it has no inventory
_CLUSTER_NAME = re.compile(r"^clusterName:[ ]*[\"']?([^\s\"'#]{1,63})", re.MULTILINE)


def names(
    clusters: Iterable[Cluster], name_by_host: Mapping[str, str] | None = None
) -> dict[str | None, str]:
    """Return the name of each cluster that has one, by its key in reports.

    A name that several clusters share, or that kubeadm gives every cluster, has the key behind it.

    Args:
        clusters: of the run.
        name_by_host: the operator's name for the cluster of a host.
    """
    names_by_key = {
        cluster.key[:KEY_DIGITS]: _given(cluster, name_by_host or {}) or _of_kubeadm(cluster)
        for cluster in clusters
        if cluster.key
    }
    used = Counter(names_by_key.values())
    return {key: _unique(name, key, used[name]) for key, name in names_by_key.items() if name}


def _given(cluster: Cluster, name_by_host: Mapping[str, str]) -> str:
    names = (name_by_host.get(host.host) for host in cluster.hosts)
    return next(filter(None, names), name_by_host.get(EVERY_HOST, ""))


def _unique(name: str, key: str, clusters: int) -> str:
    if clusters > 1 or name == KUBEADM_DEFAULT:
        return f"{name} ({key[:SHORT_KEY]})"
    return name


def _of_kubeadm(cluster: Cluster) -> str:
    match = _CLUSTER_NAME.search(cluster.typed(KubeadmConfig).text or "")
    if match is None:
        return ""
    return match[1]
