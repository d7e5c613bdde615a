# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reset of a node's CPU and memory manager state as steps of a plan. Pure, from evidence.

The steps are drain, reset and uncordon. A kubelet that its state keeps down first gets the policy
of that state, because only a kubelet that runs ends pods. If no such policy would let it start,
nothing is drained, and the plan says what that does to running pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ....module_utils.shared import consent, restart_impact
from ....module_utils.shared.managed_files import PINNED_POD as PINNED_POD_FILE
from ....module_utils.shared.step_kinds import DRAIN, PINNED_POD, UNCORDON, kind_of
from ....module_utils.shared.step_kinds import RESET_STATE as RESET
from ....module_utils.shared.step_kinds import START_FORMER as START
from ...editing import draft as editing_draft
from ...editing import kubelet_config
from ...evidence import contract, decode
from ...evidence.answers.cluster.server import Server
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ...models import cpu_manager, membership
from ...models import installer as model_installer
from ...models.cluster import Cluster, Host
from ...models.cpu_manager import Node
from ...models.kubelet import (
    dropin as kubelet_dropin,
)
from ...models.kubelet import (
    refused_configuration,
    start_state,
)
from ...models.result import Finding
from ...models.swap import node as swap_node
from ...parsers import cpu_manager_state
from .. import fencing, plan
from ..plan import RemedyContext, Step
from . import control_plane as remedie_control_plane
from .kubelet_dropin import argument_files

RISK = 3
READY_SECONDS = 60  # until a Node is ready whose kubelet was started
UNIT = "kubelet.service"
KUBESPRAY_FILE = "/etc/kubernetes/kubelet-config.yaml"
WITHOUT = consent.RESET_WITHOUT_DRAIN
DRAIN_WORDS = {
    consent.DRAIN_BARE_PODS,
    consent.DRAIN_LOCAL_STORAGE,
    consent.FENCED,
    consent.KUBELET_RESTART,
}
LEFT = (
    "pods that a drain leaves (static ones, and those of DaemonSets) run on, and are given their"
    " CPUs again"
)
FORCE = consent.FORCE_RESET


def requested_reset(scene: RemedyContext) -> Sequence[Step]:
    """Return the reset of a host whose kubelet is to have other settings.

    The result is empty where the kubelet has them, and no fault calls for a reset.
    """
    try:
        same = not _edited(scene).changes
    except editing_draft.EditRefused:
        same = False
    return [] if same and FORCE not in scene.consent.allow else reset(scene)


def _edited(scene: RemedyContext) -> kubelet_config.Edited:
    settings = scene.consent.cpu_manager.get(scene.finding.host or "") or {}
    return kubelet_config.edited(contract.answer(scene.document, Kubelet), settings)


def reset(scene: RemedyContext) -> Sequence[Step]:
    """KM301 to KM306 and KM310: return the steps for this host, with the requested settings.

    They are the same whichever of its faults the finding names.
    """
    node = cpu_manager.read(scene.document)
    if node is None:
        return [_step(scene, RESET, "its state", "its kubelet was not found")]
    if scene.finding.node is None:
        reason = (
            "which Node this host is could not be proven, so that nothing is done through the API"
        )
        return [_step(scene, RESET, "its state", reason)]
    try:
        edited = _edited(scene)
    except editing_draft.EditRefused as refused:
        return [_step(scene, RESET, refused.path, str(refused))]
    after = cpu_manager.read(_with_kubelet(scene.document, edited.kubelet)) or node
    unfit = _never_starts(scene, after)
    if unfit:
        return [_step(scene, RESET, "its state", unfit)]
    return _steps(scene, node, after, edited)


def _never_starts(scene: RemedyContext, after: Node) -> str | None:
    """Return why no kubelet would start after the reset, where it may be reset at all."""
    if _not_ours(scene):
        return None
    host = scene.finding.host or ""
    return _unfit(host, after) or refused_configuration.other_end(host, scene.document)


def _steps(
    scene: RemedyContext, node: Node, after: Node, edited: kubelet_config.Edited
) -> Sequence[Step]:
    """Return start, drain, reset, probe and uncordon, as far as this host needs each of them."""
    healthy = start_state.stands(scene.document, node) or start_state.comes_back(
        scene.document, node
    )
    words, start, undrainable = _way_to_drain(scene, node, healthy)
    blocked = _blocked(scene, healthy)
    if not undrainable and (healthy or WITHOUT not in scene.consent.allow):
        steps = [start] if start else []
        steps += _around_drain(scene, after, edited, words)
    else:
        blocked = blocked or _undrained(scene, node, undrainable)
        steps = [_reset(scene, after, False, edited)]
    return _with_block(scene, steps, blocked)


def _with_block(scene: RemedyContext, steps: list[Step], blocked: str | None) -> list[Step]:
    """Return the steps with what forbids them all."""
    steps = [replace(step, blocked_by=blocked or step.blocked_by) for step in steps]
    if _other_starter(scene):
        # No consent allows it: without a change the report says that the fix is manual.
        return [replace(step, change=None, expect=None, guard=None) for step in steps]
    return steps


def _way_to_drain(
    scene: RemedyContext, node: Node, healthy: bool
) -> tuple[Sequence[str], Step | None, str]:
    """Return (temporary arguments, the start with them, why there is no drain)."""
    silent = _api_down(scene)
    if healthy:
        return (), None, silent
    words, undrainable = start_state.lend(node)
    if not words:
        return (), None, silent or undrainable
    start, no_room = _start(scene, words)
    obstacle = silent or undrainable or no_room
    return words, start, obstacle or _unlent(scene, words)


def _around_drain(
    scene: RemedyContext, after: Node, edited: kubelet_config.Edited, words: Sequence[str]
) -> list[Step]:
    """Return drain, reset, probe where it is asked for, and uncordon."""
    steps = [_drain(scene, bool(words or after.lent)), _reset(scene, after, True, edited)]
    if plan.PINNED in scene.consent.wishes and after.policy == cpu_manager_state.STATIC:
        steps.append(_pinned(scene, after))
    return [*steps, _uncordon(scene)]


def _unlent(scene: RemedyContext, words: Sequence[str]) -> str:
    """Return why no kubelet starts with the temporary arguments, or an empty text."""
    if not words:
        return ""
    kubelet = contract.answer(scene.document, Kubelet)
    document = _with_kubelet(scene.document, replace(kubelet, argv=(*kubelet.argv, *words)))
    refused = refused_configuration.read(document).reason
    if not refused:
        return ""
    return f"with {' '.join(words)} its kubelet would refuse its configuration ({refused})"


def _blocked(scene: RemedyContext, healthy: bool) -> str | None:
    """Return what forbids it by the evidence; the node checks again at the last moment."""
    foreign = _not_ours(scene)
    if foreign:
        return foreign
    silent = _api_down(scene)
    if silent and healthy:
        return silent
    if silent and consent.API_DOWN not in scene.consent.allow:
        return (
            f"{silent}; with -e kubemend_allow=api_down,{WITHOUT} a state that keeps the kubelet"
            " down is reset all the same"
        )
    # The drain checks again, but a kubelet that is down would have been started by then, on a node
    # that may have been taken out for good.
    blocked = fencing.refusal(scene) or _swap(scene)
    if blocked or not healthy:
        return blocked
    return _lonely(scene) or _loaded(scene)


def _other_starter(scene: RemedyContext) -> str | None:
    """Return why no step restarts a kubelet that another program starts, or None."""
    host, unit = scene.finding.host or "", contract.answer(scene.document, Kubelet).unit
    starter = model_installer.owner_of(scene.document) or (unit and unit.name)
    if starter != UNIT:
        return (
            f"the kubelet of {host} is started by {starter}, which kubemend does not stop and"
            " start; the finding names the steps by hand"
        )
    return None


def _not_ours(scene: RemedyContext) -> str | None:
    """Return why this kubelet is not one that a step may stop and start."""
    other = _other_starter(scene)
    if other:
        return other
    host = scene.finding.host or ""
    if fencing.masked(scene.document):
        return (
            f"the kubelet of {host} is masked, which was done on purpose: unmask it first, or"
            " leave the node alone"
        )
    return None


def _unfit(host: str, node: Node) -> str | None:
    """Return why no kubelet starts with these settings, or serves any pod."""
    if node.policy is None or node.config.problem:
        return (
            f"what the kubelet of {host} is configured with cannot be read"
            f" ({node.config.problem}), so that it"
            " may not start again"
        )
    kept = node.reservation()
    if node.policy == cpu_manager_state.STATIC and kept.number == 0:
        return (
            f"with the static policy and no CPU reserved the kubelet of {host} would not start:"
            " reserve some first (KM309)"
        )
    refused = refused_configuration.cannot_start(host, node)
    if refused:
        return refused
    if kept.number is not None and node.online is not None and kept.number >= len(node.online):
        return (
            f"{kept.number} CPUs are reserved on {host}, which has {len(node.online)}: no pod would"
            " get any; reserve fewer"
        )
    return None


def _swap(scene: RemedyContext) -> str | None:
    """Swap for which no kubelet starts.

    One that runs was started before it was switched on, and would not come up again behind its
    drain.
    """
    node = swap_node.read(scene.document)
    if not node.on or not node.refused:
        return None
    host = scene.finding.host or ""
    return (
        f"swap is on at {host} ({node.on[0].active.path}), and its kubelet would not start: switch"
        " it off first (KM504)"
    )


def _loaded(scene: RemedyContext) -> str | None:
    """Return what else the start of a running kubelet would load, before its node is drained.

    Its configuration is what the reset is for.
    """
    if consent.PENDING_CHANGES in scene.consent.allow:
        return None
    kubelet = contract.answer(scene.document, Kubelet)
    own_paths = [config.path for config in (kubelet.config, *kubelet.config_dropins) if config]
    waiting = restart_impact.of_kubelet(asdict(kubelet), [*own_paths, kubelet_dropin.ENVIRONMENT])
    if not waiting:
        return None
    return str(restart_impact.sentence(scene.finding.host or "", "the kubelet", waiting))


def _lonely(scene: RemedyContext) -> str | None:
    """Return why no control-plane node is whole that would serve meanwhile, or None.

    What ends on this one while its kubelet is stopped is not started again.
    """
    if consent.SINGLE_CONTROL_PLANE in scene.consent.allow:
        return None
    member = next((host for host in scene.cluster.hosts if host.host == scene.finding.host), None)
    if (
        member is None
        or not member.control_plane
        or not member.control_plane.processes_of("kube-apiserver")
    ):
        return None
    gone = [
        *membership.lost(scene.cluster),
        *(f"{name} was not looked at" for name in membership.unseen(scene.cluster)),
    ]
    if membership.beside(scene.cluster, member.host) and not gone:
        return None
    return (
        f"{member.host} is a control-plane node, and {', '.join(gone) or 'no other one is known'}:"
        " a kubelet is stopped there only while the others are whole; allow it with -e"
        " kubemend_allow=single_control_plane"
    )


def _api_down(scene: RemedyContext) -> str:
    """Return that no API server answers, or an empty text."""
    cluster = scene.cluster
    if cluster.api_status == "ok":
        return ""
    return f"no API server answers ({cluster.api_reason or cluster.api_status})"


def _undrained(scene: RemedyContext, node: Node, reason: str) -> str | None:
    if WITHOUT in scene.consent.allow:
        return None
    return (
        f"{reason}, so that its kubelet cannot be started for a drain: {harmed(node)}; allow it"
        f" with -e kubemend_allow={WITHOUT}"
    )


def harmed(node: Node) -> str:
    """Return what a reset does to the pods that run on; the plan's diff names all of them."""
    names = _running(node)
    if names is None:
        return "the pods that run on it get other CPUs while they run"
    if names:
        return f"these pods {_fate(node)}: {_first(names)}"
    if node.containers():
        return "no pod that runs on it has CPUs alone"
    return "no pod runs on it"


def _first(names: Sequence[str]) -> str:
    """Return the first ten names, and how many more there are."""
    text = ", ".join(names[:10])
    if len(names) > 10:
        text += f" and {len(names) - 10} more"
    return text


def _is_up_to_1_17(node: Node) -> bool:
    return node.release is not None and node.release <= (1, 17)


def _fate(node: Node) -> str:
    if _is_up_to_1_17(node):
        return "lose the CPUs that they have alone"
    return "get other CPUs while they run"


def _running(node: Node) -> list[str] | None:
    """Return the pods of its containers, None where they were not inspected.

    Up to 1.17 only those that have CPUs of their own change, where the state names them.
    """
    containers = node.seen.containers
    if containers is None:
        return None
    # a pod's sandbox has no name
    names = {item.pod_uid: item.pod for item in containers if item.pod}
    entries = _entries(node)
    if entries is not None:
        containers = tuple(item for item in containers if ("", item.container_id) in entries)
    return sorted({str(names.get(item.pod_uid) or item.pod_uid) for item in containers})


def _entries(node: Node) -> Collection[tuple[str, str]] | None:
    """Return the containers that a state of up to 1.17 names, None for other states."""
    state = node.state
    if state is None or state.problem:
        return None
    if state.generation != 1 or not _is_up_to_1_17(node):
        return None
    return state.entries


def _start(scene: RemedyContext, words: Sequence[str]) -> tuple[Step | None, str]:
    """Return (the step, why the unit leaves no room for it)."""
    header = (
        "# Made by kubemend for the reset of its state; it takes it away again, and so does a"
        f" reboot.\n# adds: {' '.join(words)}\n"
    )
    unit = contract.answer(scene.document, Kubelet).unit or KubeletUnit()
    try:
        files, diff = argument_files(
            unit, words, header, kubelet_dropin.DROPIN, kubelet_dropin.ENVIRONMENT
        )
    except editing_draft.EditRefused as refused:
        return None, str(refused)
    return (
        _step(
            scene,
            START,
            kubelet_dropin.DROPIN,
            diff=diff,
            change={"kind": "files", "path": kubelet_dropin.DROPIN, "files": files, "reload": True},
            expect={"component": "kubelet", "words": list(words)},
            note=(
                "only a kubelet that runs can end pods: this one starts over its state as it is"
                " with "
            )
            + " ".join(words),
        ),
        "",
    )


def _drain(scene: RemedyContext, lent: bool) -> Step:
    """Return the step that drains the node.

    lent: whether its kubelet runs for this drain only; the drain then takes no node out that was
    there, and other nodes that are out do not hold it
    """
    # Not keep_cordon: what a repair cordons is its own to take away, or the next one's (KM903).
    name, lifted = (
        str(scene.finding.node),
        sorted(scene.consent.allow & DRAIN_WORDS),
    )
    change = {
        "kind": DRAIN,
        "node": name,
        "timeout": scene.consent.drain_timeout,
        "max_unavailable": None if lent else scene.consent.max_unavailable,
        "allow": lifted,
        "reason": f"reset of the CPU manager's state ({scene.finding.code})",
        "ready_seconds": READY_SECONDS,
        "restarts": True,
        "cluster_uid": _uid(scene),
    }
    return _through_api(
        scene,
        DRAIN,
        f"pods of {name}",
        change,
        f"{name} is cordoned and its pods are evicted, as their budgets allow\n",
    )


def _with_kubelet(document: Mapping[str, Any], kubelet: Kubelet) -> dict[str, Any]:
    """Return the evidence as if the collector kubelet had found this."""
    collectors = document["collectors"]
    record = {**collectors["kubelet"], "data": decode.encode(kubelet)}
    return {**document, "collectors": {**collectors, "kubelet": record}}


def _reset(scene: RemedyContext, node: Node, drained: bool, edited: kubelet_config.Edited) -> Step:
    """Return the reset itself.

    node: the node as its kubelet's next start reads its configuration, edits included
    """
    memory, folder = node.seen.memory_state, node.seen.root_dir
    paths = [f"{folder}/cpu_manager_state"]
    policies = {paths[0]: node.policy}
    # where an interrupted reset moved them out, the kubelet that is back has written others
    if memory or node.file is None:
        paths.append(f"{folder}/memory_manager_state")
    if memory:
        policies[paths[-1]] = cpu_manager.memory_policy(node)[0]
    files = [{"path": path} for path in (kubelet_dropin.DROPIN, kubelet_dropin.ENVIRONMENT)]
    diff = "".join(f"--- {path}\n+++ kept in the journal\n" for path in paths)
    diff += f"the kubelet is stopped before, and started with the policy {node.policy}\n"
    note = LEFT
    if not drained:
        note = f"nothing is drained: {harmed(node)}"
        staying = _running(node) or []
        if staying:
            diff += f"not drained, these pods {_fate(node)}:\n"
            diff += "".join(f"  {name}\n" for name in staying)
    return _step(
        scene,
        RESET,
        " and ".join(paths),
        diff=edited.diff + diff,
        note="; ".join(filter(None, [edited.told, _lasts(edited), note])),
        change={
            "kind": "reset",
            "path": paths[0],
            "states": paths,
            "files": files,
            "edits": list(edited.changes),
            "reload": True,
        },
        expect={"component": "kubelet", "policies": policies, "down": not drained},
    )


def _lasts(edited: kubelet_config.Edited) -> str:
    """Return which tools would overwrite what was changed.

    The kubelet-config ConfigMap is never named as the place to keep it, because it is every node's.
    """
    paths = {change["path"] for change in edited.changes}
    sentences = {
        cpu_manager.KUBEADM_FILE: (
            "kubeadm upgrade node writes it again: keep it in a kubeletconfiguration patch"
            " (--patches, since 1.25), not in the kubelet-config ConfigMap, which is every node's"
        ),
        KUBESPRAY_FILE: (
            "kubespray writes it again: keep it in this host's variables"
            " (kubelet_cpu_manager_policy)"
        ),
    }
    return "; ".join(f"in {path}: {sentences[path]}" for path in sorted(paths & set(sentences)))


def _pinned(scene: RemedyContext, node: Node) -> Step:
    """Before the cordon ends: a pod that has whole CPUs gets them alone."""
    folder = contract.answer(scene.document, Kubelet).static_pod_path
    blocked = (
        None
        if folder
        else (
            f"the kubelet of {scene.finding.host} starts no static pods, and nothing else proves it"
            " on a cordoned node"
        )
    )
    path = f"{folder or ''}/{PINNED_POD_FILE}"
    return _step(
        scene,
        PINNED_POD,
        path,
        blocked,
        diff="a static pod of kubemend gets CPUs alone, and is removed again\n",
        limit=kind_of(PINNED_POD).seconds,
        expect={"component": None},
        change={
            "kind": PINNED_POD,
            "path": path,
            "whole_cores": "full-pcpus-only" in node.options,
            "state": f"{node.seen.root_dir}/cpu_manager_state",
        },
    )


def _uncordon(scene: RemedyContext) -> Step:
    name = str(scene.finding.node)
    change = {"kind": UNCORDON, "node": name, "cluster_uid": _uid(scene)}
    effect = (
        f"the cordon of {name} is another client's and stays"
        if fencing.is_held(scene)
        else f"{name} takes pods again"
    )
    return _through_api(
        scene,
        UNCORDON,
        f"cordon of {name}",
        change,
        effect + "\n",
        note="only once the node is ready",
    )


def _step(
    scene: RemedyContext, remedy: str, target: str, blocked_by: str | None = None, **more: Any
) -> Step:
    return remedie_control_plane.new_step(
        scene,
        remedy,
        target,
        blocked_by,
        risk=RISK,
        component="kubelet",
        concerned=[],
        guard=remedie_control_plane.node_guard(scene),
        **more,
    )


def _through_api(
    scene: RemedyContext,
    remedy: str,
    target: str,
    change: Mapping[str, Any],
    diff: str,
    note: str = "",
) -> Step:
    """Return a step through the API server, also by a host that --limit leaves out.

    Nothing of that host changes but its journal.
    """
    cluster = scene.cluster
    return Step(
        plan.label(cluster.api_host or "cluster", remedy, scene.finding.node),
        cluster.api_host or "",
        scene.finding.code,
        remedy,
        RISK,
        target,
        node=scene.finding.node,
        diff=diff,
        note=note,
        change=change,
    )


def _uid(scene: RemedyContext) -> str | None:
    return scene.cluster.typed(Server).kube_system_uid


ASKED = "asked"
REMEDIES = {
    **dict.fromkeys(("KM301", "KM302", "KM303", "KM304", "KM305", "KM306", "KM310"), reset),
    ASKED: requested_reset,
}


def wishes(clusters: Iterable[Cluster], hosts: Iterable[str], digits: int) -> Iterator[Finding]:
    """Yield a finding for each of these hosts, for a plan to answer as it answers a fault's."""
    for cluster in clusters:
        for host in cluster.hosts:
            if host.host in hosts:
                yield Finding(
                    ASKED,
                    "info",
                    cluster.key[:digits] if cluster.key else None,
                    host.host,
                    None,
                    "asked for",
                    host.node,
                )


def uncalled(
    clusters: Iterable[Cluster], hosts: Iterable[str], planned: Iterable[Step]
) -> tuple[str, ...]:
    """Return a sentence about those of these hosts that are well and get no reset, if any."""
    members = [host for cluster in clusters for host in cluster.hosts]
    known_hosts = {host.host for host in members if _is_known(host)}
    resets = {step.host for step in planned if step.remedy == RESET}
    names = sorted(known_hosts.intersection(hosts) - resets)
    if not names:
        return ()
    return (
        f"No state is reset on {_first(names)}: no fault calls for it, and the kubelet's settings"
        f" are as they are to be; -e kubemend_allow={FORCE} resets it all the same.",
    )


def _is_known(host: Host) -> bool:
    """Return whether the host's settings and state were read."""
    return host.pinning.policy is not None and host.pinning.state_policy is not None
