# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that static pods have what they need: the files of flags (KM174), a manifest (KM179)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.component_units import ComponentUnits
from ...evidence.answers.node.manifests import Manifests
from ...evidence.document import one_line
from ...models import static_pod_files
from ...models.cluster import Host
from ...models.control_plane import ControlPlane
from ...models.result import EvidenceRef, Missing
from ...models.static_pod_files import Problem
from ..base import CheckResult, Detection, node_check

SERVER = "kube-apiserver"
BESIDE = ("kube-controller-manager", "kube-scheduler")
MAX_PATH = 200


@node_check(
    "KM174",
    "File that a flag names is not mounted in the static pod",
    severity="critical",
    applies="manifests of control-plane components in the folder of a kubelet",
    needs=("kubelet", "manifests", "instances", "static_pod_paths", "component_end"),
)
def not_there(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM174: report a path that a flag or a volume names and the component does not get."""
    plane = host.control_plane
    missing = host.missing("manifests") + host.missing("instances")
    if plane is None or missing:
        yield CheckResult((), missing, bool(missing), host=host.host)
        return
    hits = tuple(_hit(host, problem) for problem in static_pod_files.problems(document, plane))
    lacking = [*host.missing("static_pod_paths")]
    if plane.unread:
        lacking.append(Missing(host.host, "manifests", "denied"))
    yield CheckResult(hits, tuple(lacking), bool(plane.files), host=host.host)


def _hit(host: Host, problem: Problem) -> Detection:
    effect, severity = "so that it cannot start", None
    if problem.runs:
        effect, severity = "so that it will not start again once it ends", "warning"
    flag = ""
    if problem.flag:
        flag = f"--{problem.flag}={_path(problem.path)}"
    return Detection(
        f"{_what(problem, flag)}, {effect}",
        (
            EvidenceRef(
                "file",
                host.host,
                path=problem.use.path,
                text=flag or f"mountPath: {_path(problem.path)}",
            ),
            *_on_host(host, problem),
        ),
        _advice(problem),
        host.host,
        host.node,
        problem.use.component,
        severity=severity,
    )


def _path(path: str) -> str:
    return one_line(path, MAX_PATH)


def _on_host(host: Host, problem: Problem) -> Iterator[EvidenceRef]:
    if problem.host_path:
        text = f"on the host: {problem.kind}"
        yield EvidenceRef("file", host.host, path=_path(problem.host_path), text=text)


def _what(problem: Problem, flag: str) -> str:
    host_path = _path(problem.host_path)
    if problem.reason == static_pod_files.NOT_MOUNTED:
        return f"{flag} names a file that no volume of {problem.use.path} mounts"
    if not flag:
        if problem.reason == static_pod_files.MISSING:
            return f"a volume of {problem.use.path} needs {host_path}, which this machine lacks"
        return (
            f"a volume of {problem.use.path} needs another type of path: {host_path} is a"
            f" {problem.kind}"
        )
    if problem.reason == static_pod_files.MISSING:
        return f"{flag} names a file that is not on this machine ({host_path})"
    return f"{flag} names a file, and {host_path} is a directory"


def _advice(problem: Problem) -> str:
    path, manifest = _path(problem.path), problem.use.path
    folder = path.rpartition("/")[0] or "/"
    end = (
        f"in {manifest}; the kubelet starts the pod again by itself. With kubeadm, write it to"
        " extraVolumes of ClusterConfiguration too (kubectl -n kube-system edit configmap"
        " kubeadm-config), or the next upgrade loses it"
    )
    if problem.reason == static_pod_files.NOT_MOUNTED:
        return (
            f"add a hostPath volume with path {folder} and a volumeMount with mountPath {folder},"
            f" readOnly, or take the flag away, {end}"
        )
    if problem.reason == static_pod_files.MISSING:
        return (
            f"put the file back at {_path(problem.host_path)} (compare another control-plane node:"
            f" ls -l {_path(problem.host_path)}), or correct flag and volume {end}"
        )
    if problem.kind == "directory" and problem.flag:
        return (
            "a runtime makes a directory where the path of a volume is missing: remove it if it is"
            f" empty (rmdir {_path(problem.host_path)}), and put the file there; type: File in the"
            f" volume of {manifest} keeps that from happening again"
        )
    return f"correct the path or the type of the volume {end}"


@node_check(
    "KM179",
    "Control-plane node has no manifest of an API server",
    severity="critical",
    applies="hosts whose static pods are a scheduler or a controller manager",
    needs=("kubelet", "manifests", "instances", "component_units"),
)
def no_manifest(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM179: report a folder of static pods that has a control plane without an API server."""
    plane = host.control_plane
    missing = host.missing("manifests") + host.missing("instances")
    missing += host.missing("component_units")
    if plane is None or missing:
        yield CheckResult((), missing, bool(missing), SERVER, host.host)
        return
    names = sorted({use.component for use in plane.files if use.component in BESIDE})
    if not names:
        yield CheckResult((), (), False, SERVER, host.host)
        return
    unread: tuple[Missing, ...] = ()
    if plane.unread:
        unread = (Missing(host.host, "manifests", "denied"),)
    hits: tuple[Detection, ...] = ()
    if not unread and not _has_server(plane, document):
        hits = (_manifest_hit(host, document, names),)
    yield CheckResult(hits, unread, True, SERVER, host.host)


def _has_server(plane: ControlPlane, document: Mapping[str, Any]) -> bool:
    """Tell whether an API server has a manifest, a broken one too, a process or a unit."""
    components: set[str | None] = {use.component for use in plane.files}
    components.update(file.component for file in plane.broken)
    components.update(process.component for process in plane.processes)
    units = contract.answer(document, ComponentUnits).units
    return SERVER in components.union(unit.component for unit in units)


def _manifest_hit(host: Host, document: Mapping[str, Any], names: list[str]) -> Detection:
    answer = contract.answer(document, Manifests)
    folder = one_line(answer.folder or "/etc/kubernetes/manifests", MAX_PATH)
    hidden = [one_line(name, 80) for name in answer.ignored if SERVER in name]
    remark = ""
    if hidden:
        remark = f". A kubelet does not read {hidden[0]}, which is there"
    return Detection(
        f"{folder} has manifests of {', '.join(names)} and none of {SERVER}: no API server is"
        f" started here{remark}",
        (EvidenceRef("file", host.host, path=folder, text=f"manifests of {', '.join(names)}"),),
        "if it was moved away for some work, put it back: find /etc/kubernetes /root /tmp -name"
        f" '*apiserver*.y*ml*', then mv FILE {folder}/{SERVER}.yaml. kubeadm can make it again:"
        " kubeadm init phase control-plane apiserver --config FILE, with the ClusterConfiguration"
        " of this cluster; compare the manifest of another control-plane node before. There is"
        " nothing to do where this node is to serve no API",
        host.host,
        host.node,
        SERVER,
    )
