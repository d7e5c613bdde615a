# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remedies, by fault: a finding and its evidence become a step, or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ....module_utils.shared import restart_impact, step_kinds
from ....module_utils.shared.consent import PENDING_CHANGES
from ....module_utils.shared.step_kinds import EDIT_CONFIG, EDIT_MANIFEST, MOVE_OUT, RESTART
from ...editing import argument as editing_argument
from ...editing import scalar as editing_scalar
from ...editing.draft import EditRefused, Source
from ...evidence import contract
from ...evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ...evidence.answers.cluster.locks import Locks
from ...evidence.answers.cluster.server import Server
from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.component_http import ComponentAnswer, ComponentHttp
from ...evidence.answers.node.instances import ComponentProcess, ConfigFile, GivenFile, Instances
from ...evidence.answers.node.manifests import Manifests
from ...faults.control_plane import members
from ...models import control_plane, installer, membership
from ...parsers import pflag, pod_manifest
from .. import fencing
from ..plan import Remedy, RemedyContext, Step, all_of, label, left_out

# As the node's journal names it.
KUBEADM_CONFIG = "configmap:kube-system/kubeadm-config#ClusterConfiguration"

# What the kubelet itself needs: components that are systemd's, as steps name them.
BELOW = ("containerd", "crio", "docker", "cri-docker", "cri-dockerd")

# Forms in which editors, packagers and tools leave a former file beside the new one.
SHELLS = ("sh", "bash", "dash", "ash")
BACKUP = re.compile(
    r"(~|\.(bak|old|orig|save|saved|backup|swp"
    r"|rpmsave|rpmorig|dpkg-old|dpkg-bak|ucf-old)([.-]?\d+)?"
    r"|\.\d+\.\d{4}-\d{2}-\d{2}@\d{2}:\d{2}:\d{2}~|[._-]\d{8}([T_-]?\d{4,6})?)$"
)


def new_step(
    scene: RemedyContext,
    remedy: str,
    target: str,
    blocked_by: str | None,
    risk: int = 2,
    **more: Any,
) -> Step:
    """Return a step on the finding's host, blocked where the host or its files are excluded."""
    finding = scene.finding
    component, concerned = (
        more.pop("component", finding.component),
        more.pop("concerned", [finding.component]),
    )
    # Where another tool owns the files this comes first, whatever else stands in the way: it names
    # the place to change.
    blocked_by = installer.foreign(scene.document) or blocked_by
    installer_paths = [path for host in scene.cluster.hosts for path in host.installer]
    notes = [
        more.pop("note", ""),
        *(installer.note(scene.document, remedy, name, installer_paths) for name in concerned),
    ]
    gone = membership.lost(scene.cluster)
    if gone:
        notes.append(
            f"the control plane has lost redundancy already: {', '.join(gone)}; this step risks no"
            " quorum"
        )
    host_name = finding.host or scene.cluster.api_host or ""
    blocked_by = all_of(left_out(scene, host_name), blocked_by)
    return Step(
        label(finding.host, component, remedy.replace("_", "-")),
        host_name,
        finding.code,
        remedy,
        risk,
        target,
        component,
        finding.node,
        blocked_by=blocked_by,
        note="; ".join(filter(None, notes)),
        **more,
    )


def _not_now(scene: RemedyContext) -> str | None:
    """Return what forbids changes of a component on this host.

    Nothing would start it again, or the node was taken out on purpose.
    """
    return all_of(
        no_way_back(scene), fencing.refusal(scene) if scene.cluster.api_status == "ok" else None
    )


def no_way_back(scene: RemedyContext) -> str | None:
    """Return what forbids any restart on this host: no kubelet would start the component again."""
    refusal = kubelet_in_the_way(scene)
    if refusal is not None:
        return refusal
    if scene.cluster.api_status != "ok":
        reason = f" ({scene.cluster.api_reason})" if scene.cluster.api_reason else ""
        return (
            f"no API server answers{reason}: manifests and running components stay untouched until"
            " one does"
        )
    return None


def kubelet_in_the_way(scene: RemedyContext) -> str | None:
    """Return why the kubelet of this host would not start a component again, or None."""
    plane = control_plane.extract(scene.document)
    if plane is not None and plane.kubelet_problem:
        return (
            f"{plane.kubelet_problem}: repair the kubelet of {scene.finding.host} first, it has to"
            " bring the component back"
        )
    if plane is not None and plane.kubelet_unproven:
        return (
            f"{plane.kubelet_unproven}, and it has to bring the component back: give the kubelet of"
            f" {scene.finding.host} another healthzPort (10248 is its own), restart it, and run"
            " again"
        )
    return None


def edit_manifest(scene: RemedyContext) -> Step | None:
    """KM101, KM103, KM105: --leader-elect=true in the manifest.

    The kubelet restarts the component.
    """
    finding = scene.finding
    path = next(
        (proof.path for proof in finding.evidence if proof.kind == "file" and proof.path), None
    )
    if path is None:
        reason = (
            "this instance runs from no manifest of the static pod folder: change it where it is"
            " defined"
        )
        return new_step(scene, EDIT_MANIFEST, finding.component or "", reason)
    return set_flag(scene, path, "leader-elect", "true", elect=True)


def set_flag(scene: RemedyContext, path: str, flag: str, value: str, elect: bool = False) -> Step:
    """Return a step that sets one flag of a component in its manifest, which the kubelet restarts.

    elect: whether the new process must prove that it elects
    """
    file = _manifest(scene.document, path)
    try:
        edit = editing_argument.set_argument(
            Source.from_record(asdict(file)), scene.finding.component or "", flag, value
        )
    except EditRefused as refused:
        return new_step(scene, EDIT_MANIFEST, path, str(refused))
    expect = {**_expectation(scene, "kubelet", {flag: value}, elect), "words": _words(scene, path)}
    return new_step(
        scene,
        EDIT_MANIFEST,
        path,
        all_of(_not_now(scene), _stray(scene, path), _pending(scene, expect, [path])),
        diff=edit.diff,
        change=edit.change(),
        expect=expect,
        guard=node_guard(scene, path),
    )


def edit_config(scene: RemedyContext) -> Step | None:
    """Set leaderElect: true in the scheduler's configuration file, and restart it (KM104)."""
    file = _instance(scene).config or ConfigFile()
    path = file.host_path
    if not path:
        return new_step(
            scene,
            EDIT_CONFIG,
            file.path or "its --config file",
            "the file could not be found on the host: it lives in the container or in a volume that"
            " is not a host path",
        )
    source = {**asdict(file), "path": path}
    try:
        edit = editing_scalar.set_scalar(
            Source.from_record(source), ["leaderElection", "leaderElect"], True
        )
    except EditRefused as refused:
        return new_step(scene, EDIT_CONFIG, path, str(refused))
    expect = _expectation(scene, "signal")
    return new_step(
        scene,
        EDIT_CONFIG,
        path,
        all_of(_not_now(scene), _pending(scene, expect, [])),
        diff=edit.diff,
        change=edit.change(),
        expect=expect,
        guard=node_guard(scene),
    )


def restart(scene: RemedyContext, config: bool = True) -> Step:
    """KM102: restart a component whose file is right and whose process is old.

    A restart cures only what a configuration file says.

    config: whether a change of that file is what the restart is for; else it is a foreign change
    """
    process = _instance(scene)
    target = f"pid {process.pid}"
    running = _flags(process.argv)
    if not any(_flags(use.words) == running for use in _uses(scene)):
        return new_step(
            scene,
            RESTART,
            target,
            _not_now(scene)
            or "the kubelet holds an older manifest than the file: a restart of the component would"
            " run the old one again; find out why the kubelet did not take it (its log), a restart"
            " of the kubelet is risk 3",
        )
    expect, loads = _expectation(scene, "signal"), []
    path = pflag.string_flag(process.argv, "config")
    if path and config:
        loads.append(path)
    return new_step(
        scene,
        RESTART,
        target,
        all_of(_not_now(scene), _pending(scene, expect, loads)),
        expect=expect,
        guard={**node_guard(scene), "loads": loads},
        diff=f"restart of {scene.finding.component} {target}\n",
    )


def move_out(scene: RemedyContext) -> Step | None:
    """KM109: move a backup out of the folder, where it is beyond doubt which file is right.

    The running component must follow the right file; of other pods nothing shows which file runs.
    """
    finding = scene.finding
    if finding.component is None:
        return None
    uses = {use.path: use for use in _uses(scene)}
    paths = _files(scene)
    right = [path for path in paths if path in uses and uses[path].usual]
    stray = [path for path in paths if path not in right]
    refusal = _immovable(scene, paths, right, stray)
    if refusal is None:
        refusal = _undecided(scene, uses, right[0], stray[0])
    if refusal:
        return new_step(scene, MOVE_OUT, ", ".join(stray), refusal)
    file = _manifest(scene.document, stray[0])
    diff = "".join(f"-{line}\n" for line in (file.text or "").splitlines())
    return new_step(
        scene,
        MOVE_OUT,
        stray[0],
        _not_now(scene),
        diff=f"--- {stray[0]}\n+++ kept in the journal\n{diff}",
        change={
            "kind": MOVE_OUT,
            "path": stray[0],
            "sha256": file.sha256,
            "splices": [],
        },
        expect=_expectation(scene, None),
        guard=node_guard(scene, right[0]),
    )


def _files(scene: RemedyContext) -> list[str]:
    """Return the paths of the files that the finding's evidence names."""
    proofs = scene.finding.evidence
    return [proof.path for proof in proofs if proof.kind == "file" and proof.path]


def _uses(scene: RemedyContext) -> list[Any]:
    """Return the manifests of the finding's component."""
    plane = control_plane.extract(scene.document)
    if plane is None:
        return []
    return [use for use in plane.files if use.component == scene.finding.component]


def _flags(argv: Iterable[str]) -> list[str]:
    return [word for word in argv if word.startswith("--")]


def _immovable(
    scene: RemedyContext, paths: Sequence[str], right: Sequence[str], stray: Sequence[str]
) -> str | None:
    """Return why no file is moved by its name, or None."""
    component = scene.finding.component
    if component in ("etcd", "kube-apiserver"):
        return f"manifests of {component} are never moved automatically"
    if len(right) != 1 or len(stray) != 1 or not BACKUP.search(stray[0]):
        return (
            "which of these files is the right one is not beyond doubt: "
            f"compare {' and '.join(paths)} and move the wrong one out of the folder"
        )
    return None


def _undecided(scene: RemedyContext, uses: Mapping[str, Any], right: str, stray: str) -> str | None:
    """Return why the running component does not show which file is right, or None."""
    running = _flags(_instance(scene).argv)
    expected, other = _flags(uses[right].words), _flags(uses[stray].words)
    if expected == other:
        return (
            f"{right} and {stray} have the same arguments, so that which of them runs cannot"
            " be determined: compare the rest of them, and move the wrong one out of the"
            " folder; where"
            " nothing differs, the backup"
        )
    if running != expected:
        return (
            f"the running {scene.finding.component} does not follow {right} alone: compare "
            f"it with {stray} and move the wrong one out of the folder"
        )
    return None


def _stray(scene: RemedyContext, path: str) -> str | None:
    other_paths = sorted({use.path for use in _uses(scene) if use.path != path})
    if other_paths and not all(BACKUP.search(other) for other in other_paths):
        return (
            f"{', '.join(other_paths)} holds a manifest of the same component: settle which one"
            " counts first (KM109)"
        )
    return None


def _words(scene: RemedyContext, path: str) -> list[str] | None:
    """Return the command line that the manifest asks for.

    The result is None where the manifest starts a shell or has no command line, so that there is
    nothing to compare.
    """
    uses = [use for use in _uses(scene) if use.path == path]
    if len(uses) != 1 or not uses[0].words:
        return None
    if uses[0].words[0].rsplit("/", 1)[-1] in SHELLS:
        return None
    return list(uses[0].words)


def _pending(scene: RemedyContext, expect: Mapping[str, Any], own_paths: list[str]) -> str | None:
    """Return what a restart would load besides the planned change (the node looks again).

    own_paths: the files of the planned change
    """
    process = _instance(scene)
    if process.pid is None or PENDING_CHANGES in scene.consent.allow:
        return None
    given_files, config = process.given, process.config
    if given_files is None and config is not None:  # evidence of before it was collected
        given_files = (GivenFile(config.path, config.mtime),)
    impacts = restart_impact.changes(
        asdict(process),
        [asdict(file) for file in given_files or ()],
        expect.get("words"),
        sorted(expect.get("flags") or ()),
        own_paths,
    )
    return (
        restart_impact.sentence(scene.finding.host, scene.finding.component, impacts)
        if impacts
        else None
    )


def _manifest(document: Mapping[str, Any], path: str) -> FileRecord:
    files = contract.answer(document, Manifests).files
    missing = FileRecord(path=path, error="missing")
    return next((file for file in files if file.path == path), missing)


def _instance(scene: RemedyContext) -> ComponentProcess:
    """Return the running instance that the finding speaks of, or any of its component.

    The result is empty when none runs.
    """
    pids = {proof.pid for proof in scene.finding.evidence if proof.pid is not None}
    running = [
        process
        for process in contract.answer(scene.document, Instances).processes
        if process.component == scene.finding.component
    ]
    meant = [process for process in running if process.pid in pids]
    return next(iter(meant or running), ComponentProcess())


def _expectation(
    scene: RemedyContext,
    restart: str | None,
    flags: Mapping[str, str] | None = None,
    elect: bool = True,
) -> dict[str, Any]:
    process = _instance(scene)
    answers = contract.answer(scene.document, ComponentHttp).components
    answer = next((each for each in answers if each.pid == process.pid), ComponentAnswer())
    return {
        "component": scene.finding.component,
        "restart": restart,
        "flags": dict(flags or {}),
        "elect": elect,
        "pid": process.pid,
        "started_at": process.started_at,
        "address": answer.address,
        "port": answer.port,
        "image": _image(scene),
    }


def _image(scene: RemedyContext) -> str | None:
    for file in contract.answer(scene.document, Manifests).files:
        try:
            text = pod_manifest.parseable(file.text or "", file.masked)
            containers = pod_manifest.parse(text).containers
        except pod_manifest.ManifestError:
            continue
        for container in containers:
            if container.component == scene.finding.component:
                return container.image
    return None


def node_guard(scene: RemedyContext, path: str | None = None) -> dict[str, Any]:
    """Return what the node checks again at the last moment.

    path: the component's manifest, the one of the usual name if not given.
    """
    uses = sorted(_uses(scene), key=lambda use: not use.usual)
    path = path or next((use.path for use in uses), None)
    servers = [server.address for server in scene.cluster.typed(Locks).servers]
    return {
        "manifest": path,
        "folder": contract.answer(scene.document, Manifests).folder,
        "api_servers": [server for server in servers if server],
        "allow": sorted(scene.consent.allow),
    }


def kubeadm_config(scene: RemedyContext) -> Step | None:
    """KM110: leader-elect true in kubeadm-config's extraArgs.

    Nothing restarts, the next upgrade keeps election on.

    One text, one step: it repairs every component that the text switches off, whichever of them the
    finding names.
    """
    record = scene.cluster.typed(KubeadmConfig)
    target = members.KUBEADM_CONFIG
    source, edits = {**asdict(record), "path": target}, []
    try:
        sections = members.switched_off(record)
        for section in sections:
            # Secrets in it are masked byte for byte: the splice is done on the true text, where the
            # API is.
            edits.append(
                editing_scalar.set_extra_arg(
                    Source.from_record(source), section, "leader-elect", "true"
                )
            )
    except (EditRefused, pod_manifest.ManifestError) as refused:
        return new_step(
            scene, step_kinds.KUBEADM_CONFIG, target, str(refused), risk=1, component=None
        )
    splices = sorted(splice for edit in edits for splice in edit.change()["splices"])
    return new_step(
        scene,
        step_kinds.KUBEADM_CONFIG,
        target,
        None,
        risk=1,
        component=None,
        concerned=list(sections.values()),
        limit=60,
        diff="".join(edit.diff for edit in edits),
        change={
            "kind": step_kinds.KUBEADM_CONFIG,
            "path": target,
            "real": KUBEADM_CONFIG,
            "sha256": record.sha256,
            "splices": splices,
            "resource_version": record.resource_version,
            "cluster_uid": scene.cluster.typed(Server).kube_system_uid,
        },
    )


REMEDIES: dict[str, Remedy] = {
    "KM101": edit_manifest,
    "KM102": restart,
    "KM103": edit_manifest,
    "KM104": edit_config,
    "KM105": edit_manifest,
    "KM109": move_out,
    "KM110": kubeadm_config,
}
