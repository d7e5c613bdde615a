# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM726 and KM727: check whether the releases of a cluster's members allow its upgrade."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ...evidence.document import one_line
from ...models import kubeadm_arguments, upgrade_target
from ...models.api_node import views
from ...models.cluster import Cluster, Host
from ...models.release_refusal import API_SERVER, KUBELET
from ...models.result import EvidenceRef
from ...models.upgrade_target import Target, text_of
from ...parsers import pflag, pod_manifest, release_table
from ...parsers.release_number import parse
from ...parsers.release_table import Release
from ..base import (
    CheckResult,
    Detection,
    cluster_check,
    not_applicable,
    unknown,
    without_kubernetes,
)
from ..node import wording
from . import UPGRADE_OF, judged_release

# Kubernetes' own rule since 1.28, and before; kubeadm of 1.28 and older allows one.
SKEW, SKEW_SINCE, OLDER_SKEW = 3, (1, 28), 2
ETCD = "etcd"


@cluster_check(
    "KM726",
    "Releases of the members do not allow the upgrade",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=("manifests",),
    cluster_needs=("server", "nodes", "kubeadm_config"),
)
def releases(cluster: Cluster) -> Iterator[CheckResult]:
    """KM726: report an upgrade over several releases, and kubelets that are too old for it."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    target = upgrade_target.find(cluster)
    missing, note = upgrade_target.unknown_release(cluster, target)
    if target is None:
        yield unknown(*missing, note=note)
        return
    hits = [*_path(cluster, target), *_old_kubelets(cluster, target)]
    gaps = (*missing, *cluster.missing("nodes"))
    gaps += cluster.missing("kubeadm_config", absent_is_answer=True)
    yield CheckResult(tuple(hits), gaps, note=note)


def _path(cluster: Cluster, target: Target) -> Iterator[Detection]:
    """Yield why the API servers cannot go to this release in one step."""
    oldest, newest = target.servers[0], target.servers[-1]
    text = ", ".join(text_of(release) for release in target.servers)
    proof = (EvidenceRef("api", cluster.api_host, object="API servers", text=text),)
    if target.release < newest or (target.release == oldest and len(target.servers) == 1):
        yield Detection(
            f"the API servers have {text} already: {target.name} is no upgrade, and Kubernetes"
            " supports no downgrade",
            proof,
            "name a newer release with -e kubemend_upgrade_to, or leave it out for the next one",
            component=API_SERVER,
            severity="warning",
        )
    elif len(target.servers) > 1:
        yield Detection(
            f"an upgrade is under way: the API servers have {text}",
            proof,
            f"finish the upgrade to {text_of(newest)} on every control-plane node, then on the"
            " workers, before the next one begins",
            component=API_SERVER,
            severity="warning",
        )
    elif target.release[1] > newest[1] + 1:
        steps = ", ".join(text_of(release) for release in target.steps())
        yield Detection(
            f"{target.name} is more than one minor release above {text}: control planes are"
            " upgraded one minor release at a time",
            proof,
            f"upgrade to {steps}, one after the other, and run before_upgrade before each",
            component=API_SERVER,
            severity="warning",
        )


def _old_kubelets(cluster: Cluster, target: Target) -> Iterator[Detection]:
    """Yield kubelets that are too old for API servers of this release."""
    allowed = _allowed(cluster, target.release)
    for view in views(cluster):
        kubelet = pflag.parse_version(view.kubelet)
        if kubelet is None or target.release[1] - kubelet[1] <= allowed:
            continue
        yield Detection(
            f"the kubelet ({view.kubelet}) is {target.release[1] - kubelet[1]} minor releases older"
            f" than {target.name}, and {allowed} is the limit",
            (
                EvidenceRef(
                    "api",
                    cluster.api_host,
                    object=f"Node {view.name}",
                    text=f"kubelet {view.kubelet}",
                ),
            ),
            f"upgrade this kubelet to {text_of(target.servers[0])} first: drain the node, install"
            " the packages of that release, kubeadm upgrade node, systemctl restart kubelet,"
            " uncordon it",
            host=wording.host_name(view),
            node=view.name,
            component=KUBELET,
        )


def _allowed(cluster: Cluster, release: Release) -> int:
    """Return by how many minor releases a kubelet may be older than API servers of a release."""
    if upgrade_target.by_kubeadm(cluster) and release <= release_table.newest():
        return release_table.kubelet_skew(release)
    if release < SKEW_SINCE:
        return OLDER_SKEW
    return SKEW


@cluster_check(
    "KM727",
    "External etcd is older than kubeadm init of the next release accepts",
    severity="info",
    applies="clusters of kubeadm with an etcd of their own, in `before_upgrade`",
    tier="upgrade",
    needs=("etcd",),
    cluster_needs=("server", "kubeadm_config"),
    component=ETCD,
)
def external_etcd(cluster: Cluster) -> Iterator[CheckResult]:
    """KM727: report an external etcd with which the next kubeadm starts no new cluster."""
    gaps = cluster.missing("kubeadm_config", absent_is_answer=True)
    target = judged_release.find(cluster, *gaps)
    if isinstance(target, CheckResult):
        yield target
        return
    try:
        is_external = kubeadm_arguments.external_etcd(cluster.typed(KubeadmConfig))
    except pod_manifest.ManifestError:
        yield unknown(cluster.missing_answer("kubeadm_config", "error"))
        return
    if not is_external:
        yield not_applicable("kubeadm upgrades etcd itself, or does not run this cluster")
        return
    yield _etcd_result(cluster, release_table.external_etcd(target.release), target)


def _etcd_result(cluster: Cluster, oldest: str, target: Target) -> CheckResult:
    answers = [(host, _etcd_version(host)) for host in cluster.hosts if _etcd_version(host)]
    if not answers:
        gaps = [gap for host in cluster.members for gap in host.missing("etcd")]
        return unknown(*gaps or [cluster.missing_answer("etcd", "error")])
    old = [(host, text) for host, text in answers if _is_older(text, oldest)]
    return CheckResult(tuple(_etcd_hit(*row, oldest, target) for row in old[:1]))


def _is_older(version: str, oldest: str) -> bool:
    number, lowest = parse(version), parse(oldest)
    return number is not None and lowest is not None and number < lowest


def _etcd_version(host: Host) -> str:
    if host.etcd.status is None:
        return ""
    match = re.match(r"\d+\.\d+\.\d+", one_line(host.etcd.status.version or "", 40))
    return match.group() if match else ""


def _etcd_hit(host: Host, version: str, oldest: str, target: Target) -> Detection:
    return Detection(
        f"etcd is {version}: kubeadm init of {target.name} takes an external etcd from {oldest} on;"
        " kubeadm upgrade does not ask, and is not stopped by it",
        (EvidenceRef("http", host.host, object=ETCD, text=f"version {version}"),),
        f"upgrade etcd to {oldest} or newer, member by member, at a time of your own: with older"
        " ones kubeadm init cannot build this cluster's first control plane again",
        component=ETCD,
    )
