# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM724 and KM725: check whether the next release runs with a node's runtime and cgroups."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.api_node import NodeView, views
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ...models.upgrade_target import Target
from ...parsers import pflag
from ..base import (
    CLEAR,
    CheckResult,
    Detection,
    cluster_check,
    not_applicable,
    present,
    unknown,
)
from ..node import wording
from . import UPGRADE_OF, WITHOUT_DOCKERSHIM, judged_release

# The first kubelet without CRI v1alpha2, so that the runtime must serve v1; and the first that
# refuses cgroup v1 by default.
WITH_CRI_V1, WITHOUT_CGROUP_V1 = (1, 26), (1, 35)
CONTAINERD_WITH_V1 = (1, 6)
# Releases of these bring a containerd with them. That of k3s names k3s in its version; another one
# is the operator's own. k3s has cri-dockerd inside since 1.24, and so goes on with Docker.
_K3S, _BUNDLED = "+k3s", re.compile(r"\+(rke2r|k0s)")


@cluster_check(
    "KM724",
    "Next release does not work with the container runtime",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=("kubelet",),
    cluster_needs=("server", "nodes"),
)
def runtimes(cluster: Cluster) -> Iterator[CheckResult]:
    """KM724: report nodes whose runtime the next release's kubelet cannot use."""
    target = judged_release.find(cluster, *cluster.missing("nodes"))
    if isinstance(target, CheckResult):
        yield target
        return
    hits, gaps = [], []
    for view in views(cluster):
        reason = _old_runtime(target, view)
        if reason is None:
            name = wording.host_name(view) or view.name
            gaps.append(Missing(name, "kubelet", "error"))
        elif reason:
            hits.append(_runtime_hit(cluster, target, view, reason))
    yield CheckResult(tuple(hits), tuple(gaps))


def _old_runtime(target: Target, view: NodeView) -> str | None:
    """Return why a node's runtime is too old, "" where it is not, None where it is not known."""
    name, _space, version = view.runtime.partition(" ")
    release = pflag.parse_version(version)
    if name == "docker" and target.release >= WITHOUT_DOCKERSHIM:
        return _dockershim(view)
    if name != "containerd" or target.release < WITH_CRI_V1 or _brings_runtime(view):
        return ""
    if release is None:
        return None
    if release < CONTAINERD_WITH_V1:
        return "serves no CRI v1 before 1.6, and the kubelet since 1.26 speaks nothing older"
    return ""


def _brings_runtime(view: NodeView) -> bool:
    """Tell whether the installer upgrades a node's containerd with its own release."""
    if _K3S in view.kubelet:
        return "-k3s" in view.runtime
    if _BUNDLED.search(view.kubelet):
        return True
    return view.host is not None and bool(view.host.next_release.owner)


def _dockershim(view: NodeView) -> str | None:
    if _K3S in view.kubelet:
        return ""
    kubelet = pflag.parse_version(view.kubelet)
    if kubelet is not None and kubelet >= WITHOUT_DOCKERSHIM:
        return ""  # it runs already, with cri-dockerd
    if kubelet is None or view.host is None or view.host.next_release.dockershim is None:
        return None
    if view.host.next_release.dockershim:
        return "is used through dockershim, which the kubelet does not have since 1.24"
    return ""


def _runtime_hit(cluster: Cluster, target: Target, view: NodeView, reason: str) -> Detection:
    remedy = (
        "drain the node, install containerd 1.7 or newer, and restart the kubelet, before the"
        " upgrade"
    )
    if view.runtime.startswith("docker "):
        remedy = (
            "drain the node, move it to containerd"
            " (--container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/"
            "containerd.sock in /var/lib/kubelet/kubeadm-flags.env, and the annotation"
            " kubeadm.alpha.kubernetes.io/cri-socket of its Node) or to cri-dockerd, and restart"
            " the kubelet, before the upgrade"
        )
    return Detection(
        f"the kubelet of {target.name} cannot use {view.runtime}: it {reason}",
        (EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=view.runtime),),
        remedy,
        host=wording.host_name(view),
        node=view.name,
        component=view.runtime.partition(" ")[0],
    )


@cluster_check(
    "KM725",
    "Next release refuses cgroup v1",
    severity="critical",
    applies=UPGRADE_OF,
    tier="upgrade",
    needs=("system", "kubelet"),
    cluster_needs=("server",),
    component="kubelet",
)
def cgroup_v1(cluster: Cluster) -> Iterator[CheckResult]:
    """KM725: report nodes with cgroup v1, which kubelets refuse from 1.35 on by default."""
    target = judged_release.find(cluster)
    if isinstance(target, CheckResult):
        yield target
        return
    if target.release < WITHOUT_CGROUP_V1:
        yield not_applicable(f"kubelets of {target.name} run with cgroup v1")
        return
    for host in cluster.hosts:
        yield _cgroup(target, host)


def _cgroup(target: Target, host: Host) -> CheckResult:
    missing = host.missing("system", absent_is_answer=False)
    facts = host.next_release
    if missing or not facts.cgroup:
        gap = missing or (Missing(host.host, "system", "error"),)
        return unknown(*gap, host=host.host)
    if facts.cgroup == "v2" or facts.takes_v1:  # hybrid counts as v1
        return CLEAR._replace(host=host.host)
    if facts.takes_v1 is None:
        return unknown(Missing(host.host, "kubelet", "error"), host=host.host)
    return present(
        Detection(
            f"the kubelet of {target.name} does not start: this machine has cgroup v1, and"
            " failCgroupV1 is true by default since 1.35",
            (EvidenceRef("file", host.host, path="/sys/fs/cgroup", text=f"cgroup {facts.cgroup}"),),
            "boot the machine with cgroup v2 (systemd.unified_cgroup_hierarchy=1 on the kernel's"
            " command line, then a reboot of the drained node); until then set failCgroupV1: false"
            " in the kubelet's configuration and in the kubelet-config ConfigMap",
            host=host.host,
            node=host.node,
            component="kubelet",
        ),
        host=host.host,
    )
