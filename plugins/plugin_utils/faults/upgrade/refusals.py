# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM720 to KM723: check what the next release refuses of flags, gates, plugins and versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ...models import kubeadm_arguments, upgrade_target
from ...models.api_node import views
from ...models.cluster import Cluster, Host
from ...models.release_refusal import KUBELET, Refusal
from ...models.result import EvidenceRef, Missing
from ...models.upgrade_target import Target
from ...parsers import pflag, pod_manifest, release_table
from ...parsers.release_table import API, FLAG, GATE, GROUP, LOCK, PLUGIN
from ..base import CheckResult, Detection, cluster_check
from . import UPGRADE_OF, WITHOUT_DOCKERSHIM, judged_release

SHOWN = 5
KUBEADM_FLAGS, KUBESPRAY_ENVIRONMENT = "/kubeadm-flags.env", "/etc/kubernetes/kubelet.env"
NODE = ("kubelet", "manifests", "instances", "installer")
API_READS = ("server", "kubeadm_config")
# A kubelet that still has dockershim uses these for the network of its pods, and takes Docker where
# it has no --container-runtime: without them it breaks the node before the upgrade.
OF_DOCKERSHIM = frozenset(
    {
        "network-plugin",
        "network-plugin-mtu",
        "non-masquerade-cidr",
        "cni-bin-dir",
        "cni-cache-dir",
        "cni-conf-dir",
        "container-runtime",
        "docker-endpoint",
    }
)


class Place(NamedTuple):
    """Where a refused setting stands: a host, or no host where it is the API's."""

    host: Host | None
    refusal: Refusal

    @property
    def host_name(self) -> str | None:
        """Return the name of the host, if it stands on one."""
        return getattr(self.host, "host", None)


@cluster_check(
    "KM720",
    "Next release does not know a flag that is set",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=NODE,
    cluster_needs=(*API_READS, "nodes"),
)
def flags(cluster: Cluster) -> Iterator[CheckResult]:
    """KM720: report flags that the next release no longer has."""
    yield from _results(cluster, FLAG)


@cluster_check(
    "KM721",
    "Next release refuses a feature gate that is set",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=NODE,
    cluster_needs=API_READS,
)
def feature_gates(cluster: Cluster) -> Iterator[CheckResult]:
    """KM721: report feature gates that the next release no longer knows, or locks."""
    yield from _results(cluster, GATE, LOCK)


@cluster_check(
    "KM722",
    "Next release lacks an admission plugin or API group that is set",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=("manifests", "instances", "installer"),
    cluster_needs=API_READS,
)
def plugins(cluster: Cluster) -> Iterator[CheckResult]:
    """KM722: report plugins, groups and versions of APIs that the next release no longer has."""
    yield from _results(cluster, PLUGIN, GROUP)


@cluster_check(
    "KM723",
    "Next release does not read a configuration of this version",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=("instances",),
    cluster_needs=API_READS,
)
def versions(cluster: Cluster) -> Iterator[CheckResult]:
    """KM723: report configurations whose version the next release does not read."""
    yield from _results(cluster, API)


def _results(cluster: Cluster, *kinds: str) -> Iterator[CheckResult]:
    target = judged_release.find(cluster)
    if isinstance(target, CheckResult):
        yield target
        return
    places, gaps = _found(cluster, target)
    hits = _hits(cluster, target, [place for place in places if place.refusal.kind in kinds])
    if FLAG in kinds or GATE in kinds:
        gaps += _unread(cluster)
    gaps += _unseen(cluster)
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(gaps)))


def _found(cluster: Cluster, target: Target) -> tuple[list[Place], list[Missing]]:
    """Return every setting that the release refuses, and what of the API is missing."""
    places, gaps = [], list(cluster.missing("kubeadm_config", absent_is_answer=True))
    by_kubeadm = upgrade_target.by_kubeadm(cluster)
    if by_kubeadm:
        try:
            record = cluster.typed(KubeadmConfig)
            rows = [*kubeadm_arguments.refused(record), *kubeadm_arguments.old_version(record)]
            places += [Place(None, row) for row in rows]
        except pod_manifest.ManifestError:
            gaps.append(cluster.missing_answer("kubeadm_config", "error"))
    for host in cluster.hosts:
        places += [Place(host, row) for row in _of_host(host, by_kubeadm)]
    return [place for place in places if _counts(place, target)], gaps


def _of_host(host: Host, by_kubeadm: bool) -> Iterator[Refusal]:
    """Yield what later releases refuse of a host, apart from what its upgrade writes again."""
    for row in host.next_release.refused:
        if row.component == KUBELET or row.kind == API or not by_kubeadm:
            yield row
    if host.control_plane is not None and not by_kubeadm and not host.next_release.owner:
        for file in host.control_plane.files:
            yield from file.refused


def _counts(place: Place, target: Target) -> bool:
    """Tell whether a setting is refused, and kubeadm does not take it out by itself."""
    row = place.refusal
    of_kubeadm = row.kind == FLAG and (row.path or "").endswith(KUBEADM_FLAGS)
    if of_kubeadm and any(release_table.is_tidied(row.name, step) for step in target.steps()):
        return False
    return target.refuses(row)


def _unread(cluster: Cluster) -> Iterator[Missing]:
    """Yield the hosts of whose kubelets not all settings are known."""
    for host in cluster.hosts:
        missing = host.missing("kubelet")
        yield from missing
        if not missing and host.next_release.unread and host.statuses.get("kubelet") == "ok":
            yield Missing(host.host, "kubelet", "error")


def _unseen(cluster: Cluster) -> Iterator[Missing]:
    """Yield the members of whose control plane not all settings are known."""
    if upgrade_target.by_kubeadm(cluster):
        return
    for host in cluster.members:
        yield from host.missing("instances")
        yield from host.missing("manifests")


def _hits(cluster: Cluster, target: Target, places: Iterable[Place]) -> Iterator[Detection]:
    newer = _without_dockershim(cluster)
    groups: dict[tuple[str | None, str], list[Place]] = {}
    for place in places:
        groups.setdefault((place.host_name, place.refusal.component), []).append(place)
    for (name, component), group in groups.items():
        yield _hit(target, component, group, name in newer)


def _without_dockershim(cluster: Cluster) -> frozenset[str]:
    """Return the hosts whose kubelet, as it runs, has no dockershim any more."""
    releases = ((view.host, pflag.parse_version(view.kubelet)) for view in views(cluster))
    return frozenset(
        host.host
        for host, release in releases
        if host is not None and release is not None and release >= WITHOUT_DOCKERSHIM
    )


def _hit(target: Target, component: str, places: list[Place], is_newer: bool) -> Detection:
    host = places[0].host
    rows = [place.refusal for place in places]
    distinct = list({row.key: row for row in rows}.values())
    clauses = [_said(row) for row in distinct[:SHOWN]]
    if len(distinct) > SHOWN:
        clauses.append(f"and {len(distinct) - SHOWN} more")
    return Detection(
        f"{component} {target.name} {_consequence(rows)}: {'; '.join(clauses)}",
        tuple(_proof(place) for place in places[: 2 * SHOWN]),
        _remedy(component, host, rows, is_newer) + _order(target, rows),
        host=places[0].host_name,
        node=getattr(host, "node", None),
        component=component,
        severity=_severity(rows),
    )


def _consequence(rows: list[Refusal]) -> str:
    if rows[0].component == release_table.KUBEADM:
        return "does not read the record of this cluster"
    return "does not start with this"


def _said(row: Refusal) -> str:
    since = upgrade_target.text_of(row.since)
    if row.kind == LOCK:
        return f"feature gate {row.name} is locked since {since}, and set to {row.value}"
    names = {
        FLAG: f"flag --{row.name}",
        GATE: f"feature gate {row.name}",
        PLUGIN: f"admission plugin {row.name}",
        GROUP: f"API {_part_of_api(row)} {row.name}",
        API: f"version {row.name}",
    }
    return f"{names[row.kind]} is gone since {since}"


def _part_of_api(row: Refusal) -> str:
    if "/" in row.name:
        return "version"
    return "group"


def _proof(place: Place) -> EvidenceRef:
    if place.host is not None:
        return place.refusal.proof(place.host.host)
    row = place.refusal
    return EvidenceRef(
        "api", object=kubeadm_arguments.OBJECT, path=row.path, line=row.line, text=row.text
    )


def _severity(rows: list[Refusal]) -> str | None:
    """Return the severity where it is not the fault's own.

    kubespray writes its file of the kubelet again with the release that it installs.
    """
    if all(row.path == KUBESPRAY_ENVIRONMENT for row in rows):
        return "info"
    if rows[0].component == release_table.KUBEADM:
        return "warning"
    return None


def _remedy(component: str, host: Host | None, rows: list[Refusal], is_newer: bool) -> str:
    """Return what to change before the upgrade.

    is_newer: whether the kubelet of that host has no dockershim any more
    """
    if component == release_table.KUBEADM:
        return (
            "write the record again with the kubeadm of the present release: kubectl -n kube-system"
            " get cm kubeadm-config -o jsonpath='{.data.ClusterConfiguration}' >old.yaml, kubeadm"
            " config migrate --old-config old.yaml --new-config new.yaml, and put its"
            " ClusterConfiguration into the ConfigMap"
        )
    if rows[0].kind == API:
        return (
            "write the file with a version that both releases read, and start the component with"
            " it before the upgrade"
        )
    if host is None:
        return (
            f"take these out of extraArgs with kubectl -n kube-system edit cm kubeadm-config, and"
            f" out of /etc/kubernetes/manifests/{component}.yaml on each control-plane node"
        )
    return _host_remedy(component, host, rows, is_newer)


def _host_remedy(component: str, host: Host, rows: list[Refusal], is_newer: bool) -> str:
    if host.next_release.owner:
        return "take these out of that file, and restart its service, before the upgrade"
    if any(row.path == KUBESPRAY_ENVIRONMENT for row in rows):
        return (
            "kubespray writes this file again with the release that it installs: take the flags"
            " out of kubelet_custom_flags in its inventory if they stand there"
        )
    if component == KUBELET:
        return _kubelet_remedy(rows, is_newer)
    return "take these out of the manifest or the unit of the component before the upgrade"


def _kubelet_remedy(rows: list[Refusal], is_newer: bool) -> str:
    """Return when to take what out of the kubelet's files."""
    files = (
        "the kubelet's files (kubeadm-flags.env, KUBELET_EXTRA_ARGS in /etc/default/kubelet or"
        " /etc/sysconfig/kubelet, its unit, its configuration, and the kubelet-config ConfigMap"
        " from which kubeadm writes it)"
    )
    used = {row.name for row in rows if row.kind == FLAG} & OF_DOCKERSHIM
    if is_newer or not used:
        return f"take these out of {files}, then systemctl restart kubelet, before the upgrade"
    named = ", ".join(f"--{name}" for name in sorted(used))
    parts = [
        f"leave {named} as long as the kubelet is of 1.23 or older: it runs the pods' network and"
        " its runtime with them. Move a node with Docker to containerd or cri-dockerd first"
        f" (KM724). Then drain the node, install the new kubelet, take these flags out of {files},"
        " systemctl daemon-reload, systemctl restart kubelet, and uncordon it"
    ]
    if any(row.kind != FLAG or row.name not in OF_DOCKERSHIM for row in rows):
        parts.append("take the others out before the upgrade, and systemctl restart kubelet")
    return "; ".join(parts)


def _order(target: Target, rows: list[Refusal]) -> str:
    """Return which step of an upgrade over several releases a change belongs to.

    An older release may still use a setting: --insecure-port=0 shuts a port up to 1.19.
    """
    major, minor = target.servers[0]
    later = any(row.since > (major, minor + 1) for row in rows)
    if rows[0].kind == API or not later:
        return ""
    return (
        "; this upgrade has several steps: change each of these once the cluster runs the release"
        " just before the one named with it, because older ones may still use it"
    )
