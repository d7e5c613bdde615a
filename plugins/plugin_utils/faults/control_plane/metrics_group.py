# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find why metrics-server gets no numbers of kubelets; a part of KM177.

A kubelet without a certificate of the cluster signs one itself, for a year, and never again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.answers.cluster.api_services import ApiService
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.moments import timestamp
from ...models.result import EvidenceRef
from ...parsers.x509_certificate import Certificate

GROUP = ".metrics.k8s.io"
SELF_SIGNED = "-ca@"  # in the name of the authority that a kubelet makes for itself
SHOWN = 3
ADVICE = (
    "where the log of metrics-server says x509, let the kubelets get their certificates from the"
    " cluster: serverTLSBootstrap: true in the configuration of each kubelet, systemctl restart"
    " kubelet, then kubectl get csr and kubectl certificate approve NAME for those of"
    " kubernetes.io/kubelet-serving; --kubelet-insecure-tls of metrics-server verifies no kubelet"
)


def clause(cluster: Cluster, item: ApiService) -> str:
    """Return which kubelets serve a certificate of their own that has ended, for a summary."""
    names = [host.host for host, leaf in _self_signed(cluster, item) if _has_ended(cluster, leaf)]
    if not names:
        return ""
    return (
        f"; the certificates that the kubelets of {and_others(names)} made for themselves have"
        " ended, so that metrics-server reads none of them unless it verifies no kubelet"
    )


def advice(cluster: Cluster, item: ApiService) -> str:
    """Return what to do about the certificates of kubelets, for a remedy."""
    if any(True for _row in _self_signed(cluster, item)):
        return f"; {ADVICE}"
    return ""


def proofs(cluster: Cluster, item: ApiService) -> Iterator[EvidenceRef]:
    """Yield the certificates that have ended."""
    rows = [row for row in _self_signed(cluster, item) if _has_ended(cluster, row[1])]
    for host, leaf in rows[:SHOWN]:
        place = host.kubelet_serving.place if host.kubelet_serving else ""
        text = f"issuer {leaf.issuer}, valid to {leaf.ends:%Y-%m-%dT%H:%M:%SZ}"
        yield EvidenceRef("http", host.host, object=place, text=text)


def _self_signed(cluster: Cluster, item: ApiService) -> Iterator[tuple[Host, Certificate]]:
    if not item.name.endswith(GROUP) or item.name.count(".") != GROUP.count("."):
        return
    for host in cluster.hosts:
        serving = host.kubelet_serving
        if serving is not None and serving.chain and SELF_SIGNED in serving.chain[0].issuer:
            yield host, serving.chain[0]


def _has_ended(cluster: Cluster, leaf: Certificate) -> bool:
    now = timestamp(cluster.collected_at)
    return now is not None and leaf.ends <= now
