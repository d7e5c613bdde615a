# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps pods from being Guaranteed that look meant for pinning, and what would cure it. Pure.

Every container counts, init containers too: CPU and memory limits, and requests that equal them. A
plain init container runs before the app's, and of the two requests the larger counts: with the
app's own values it costs nothing. For any other container only what it asks for already is known.
If it asks for nothing, the operator has to choose.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...module_utils.shared import quantity
from ...module_utils.shared.container_kinds import APP, INIT, SIDECAR, meant, unequal
from ..evidence.answers.cluster.pinnable import (
    ContainerResources,
    Manager,
    Owner,
    Pinnable,
    PinnableItem,
    PodResources,
)

_LABELS = {APP: "container", INIT: "init container", SIDECAR: "sidecar"}
# Kinds whose template a patch may change, and where it lies.
PATCHED = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Lack:
    """A field that keeps the pod from being pinned.

    container: what it is and its name
    text: what is wrong with it
    """

    container: str
    field: str
    text: str
    injected: bool = False


@dataclass(frozen=True)
class Cure:
    """What makes a pod Guaranteed.

    values: {(kind, name) of a container: {resource: request and limit}}
    choose: what only the operator knows
    notes: what it costs
    """

    values: Mapping[tuple[str, str], Mapping[str, str]]
    choose: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """An owner with its pods that are not pinned: kind Pod where nothing owns it.

    template: the owner's own, where that is at fault.
    """

    kind: str
    namespace: str
    name: str
    template: PinnableItem | None
    pods: tuple[PinnableItem, ...]
    manager: Manager | None

    @property
    def title(self) -> str:
        """Kind namespace/name."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Advice:
    """One sentence, a patch, and the command that applies it, where the template may be patched."""

    text: str
    patch: Mapping[str, Any] | None = None
    command: str | None = None


def subjects(answer: Pinnable) -> list[Subject]:
    """Owner by owner what the collector pinnable found."""
    templates: dict[tuple[str, str, str], PinnableItem] = {}
    pods: dict[tuple[str, str, str], list[PinnableItem]] = {}
    for item in answer.items:
        named: PinnableItem | Owner = item
        # A static pod's owner is its node, where its manifest lies.
        if item.owner is not None and item.owner.kind not in (None, "Node"):
            named = item.owner
        key = (str(named.kind), str(item.namespace), str(named.name))
        if item.kind == "Pod":
            pods.setdefault(key, []).append(item)
        else:
            templates[key] = item
    all_subjects = []
    for key in sorted({*templates, *pods}):
        template, own_pods = templates.get(key), tuple(pods.get(key, ()))
        all_subjects.append(Subject(*key, template, own_pods, (template or own_pods[0]).manager))
    return all_subjects


def label(container: ContainerResources) -> str:
    """Return what a container is, and its name."""
    return f"{_LABELS.get(str(container.kind), 'container')} {container.name}"


def _is_meant(container: ContainerResources) -> bool:
    return bool(meant(asdict(container)))


def _unequal(container: PodResources) -> list[str]:
    """Return the resources of a container that keep its pod from being Guaranteed."""
    return list(unequal(asdict(container)))


def _amounts(container: PodResources, resource: str) -> tuple[str | None, str | None]:
    """Return request and limit of CPU or memory."""
    if resource == "cpu":
        return container.cpu_request, container.cpu_limit
    return container.memory_request, container.memory_limit


def lacks(item: PinnableItem) -> tuple[Lack, ...]:
    """Return every field of a pod or template that keeps it from being pinned."""
    if item.pod_level is not None:  # it decides alone, whatever the containers say
        return tuple(_lacks(item.pod_level, "the pod as a whole", False))
    gaps = [
        lack
        for container in item.containers
        for lack in _lacks(container, label(container), bool(container.injected))
    ]
    if item.expected and not any(map(_is_meant, item.containers)):
        gaps += [
            Lack(label(app), "limits.cpu", f"limits.cpu {app.cpu_limit} is no whole number")
            for app in item.containers
            if app.kind == APP
            and quantity.positive(app.cpu_limit)
            and not quantity.whole(app.cpu_limit)
        ]
    return tuple(gaps)


def _lacks(container: PodResources, name: str, injected: bool) -> Iterator[Lack]:
    for resource in _unequal(container):
        request, limit = _amounts(container, resource)
        if not quantity.positive(limit):
            yield Lack(
                name,
                f"limits.{resource}",
                f"no limits.{resource}" if limit is None else f"limits.{resource} is {limit}",
                injected,
            )
        else:
            yield Lack(
                name,
                f"requests.{resource}",
                f"requests.{resource} {request} is not limits.{resource} {limit}",
                injected,
            )


def describe_lacks(gaps: Iterable[Lack]) -> str:
    """Lacks in words, container by container."""
    by: dict[str, list[str]] = {}
    for lack in gaps:
        by.setdefault(lack.container + (" (injected)" if lack.injected else ""), []).append(
            lack.text
        )
    return "; ".join(f"{container}: {', '.join(texts)}" for container, texts in by.items())


def target(item: PinnableItem) -> ContainerResources | None:
    """Return the app container to be pinned: the first whose memory is known, else the first.

    The result is None where no container asks for whole CPUs.
    """
    candidates = [
        container
        for container in item.containers
        if _is_meant(container) and not container.injected
    ]
    return next(
        (container for container in candidates if _own(container, "memory")),
        candidates[0] if candidates else None,
    )


def cure(item: PinnableItem) -> Cure:
    """Return the values that would make it Guaranteed, as far as they are known.

    Injected containers are excluded.
    """
    if item.pod_level is not None:
        return Cure(
            {},
            ("give spec.resources of the pod CPU and memory limits, and requests that equal them",),
        )
    goal = target(item)
    if goal is None:
        return Cure(
            {},
            (
                (
                    "give the container that is to be pinned a whole number of CPUs, and every"
                    " container requests that equal its limits"
                ),
            ),
        )
    values: dict[tuple[str, str], dict[str, str]] = {}
    choose, notes = [], []
    for container in item.containers:
        for resource in () if container.injected else _unequal(container):
            value, note = _settled(container, resource, goal)
            if value is None:
                choose.append(
                    f"choose {'CPUs' if resource == 'cpu' else 'memory'} for {label(container)}, as"
                    " request and limit"
                )
                continue
            values.setdefault((str(container.kind), str(container.name)), {})[resource] = value
            notes += [note] if note else []
    return Cure(values, tuple(choose), tuple(notes))


def _own(container: ContainerResources, resource: str) -> str | None:
    """Return what a container asks for itself.

    Its limit, so that it loses nothing, else its request.
    """
    request, limit = _amounts(container, resource)
    return next((value for value in (limit, request) if quantity.positive(value)), None)


def _settled(
    container: ContainerResources, resource: str, goal: ContainerResources
) -> tuple[str | None, str]:
    """(value, what it costs) of a resource that is not equal yet."""
    own_value = _own(container, resource)
    request, limit = _amounts(container, resource)
    if container.kind == INIT:
        goal_value = _own(goal, resource)
        if goal_value is None or own_value is None or _units(own_value) <= _units(goal_value):
            return goal_value, ""
        return (
            own_value,
            (
                f"{label(container)} asks for more {resource} than {label(goal)}: the pod needs"
                f" {own_value} to start"
            ),
        )
    if own_value is None:
        return None, ""
    if not quantity.positive(limit):
        return (
            own_value,
            f"{label(container)} gets a limit of {own_value} {resource}, what it requests now",
        )
    if resource == "cpu" and quantity.whole(limit):
        alone = ", and with a whole number CPUs of its own"
    else:
        alone = ""
    return (
        own_value,
        f"{label(container)} requests {own_value} {resource} instead of {request or 'none'}{alone}",
    )


def _units(text: str) -> Any:
    return quantity.parse(text) or 0


def patch(kind: str, values: Mapping[tuple[str, str], Mapping[str, str]]) -> dict[str, Any]:
    """Return the strategic merge patch of a workload of this kind, by names of containers.

    Raises KeyError for a kind without a template.
    """
    spec: dict[str, Any] = {}
    for (role, name), resources in sorted(values.items()):
        if role == APP:
            section = "containers"
        else:
            section = "initContainers"
        spec.setdefault(section, []).append(
            {"name": name, "resources": {"requests": dict(resources), "limits": dict(resources)}}
        )
    body: dict[str, Any] = {"spec": spec}
    for key in reversed(PATCHED[kind]):
        body = {key: body}
    return body


def command(subject: Subject, body: Mapping[str, Any]) -> str | None:
    """Return the command that applies a patch; None for a name that Kubernetes does not allow.

    A shell would read it as something else.
    """
    if not (_NAME.fullmatch(subject.namespace) and _NAME.fullmatch(subject.name)):
        return None
    words = [
        "kubectl",
        "-n",
        subject.namespace,
        "patch",
        subject.kind.lower(),
        subject.name,
        "--type=strategic",
        "-p",
        json.dumps(body, separators=(",", ":")),
    ]
    return " ".join(shlex.quote(word) for word in words)


def advise(subject: Subject) -> Advice:
    """Return what to do about it: the patch, or why there is none."""
    item = subject.template or subject.pods[0]
    remedy = cure(item)
    more = _injection((item, *subject.pods))
    elsewhere = _elsewhere(subject)
    if remedy.choose:
        return Advice(_at_place(elsewhere, "; ".join([*remedy.choose, *more])))
    if not remedy.values:
        return Advice(
            "; ".join(more)
            or "see what set the class of the pod: nothing of it says why it is not Guaranteed"
        )
    text = "; ".join([_wanted(remedy.values), *remedy.notes, *more])
    if elsewhere:
        return Advice(_at_place(elsewhere, text))
    body = patch(subject.kind, remedy.values)
    if subject.kind == "CronJob":
        effect = "for the Jobs that it makes from then on"
    else:
        effect = "which rolls its pods out again"
    return Advice(f"patch {subject.title}, {effect}: {text}", body, command(subject, body))


def _injection(pods: Iterable[PinnableItem]) -> list[str]:
    """Return what to do about injected containers that keep a pod from being Guaranteed."""
    containers = itertools.chain.from_iterable(pod.containers for pod in pods)
    injected = {
        label(container) for container in containers if container.injected and _unequal(container)
    }
    if not injected:
        return []
    return [
        f"{', '.join(sorted(injected))} is in the pods and not in the template: give it requests"
        " that equal its limits where it is injected (a mesh's configuration or annotations, a"
        " webhook)"
    ]


def _at_place(place: str, text: str) -> str:
    """Return an advice with the place where it is to be followed, if that is another one."""
    if place:
        return f"{place}: {text}"
    return text


def _wanted(values: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return in words the requests and limits that make a pod Guaranteed."""
    containers = []
    for (role, name), resources in values.items():
        amounts = " and ".join(f"{resource} {value}" for resource, value in resources.items())
        containers.append(f"{label(ContainerResources(kind=role, name=name))} {amounts}")
    return f"give as requests and limits {'; '.join(containers)}"


def _is_static(subject: Subject) -> bool:
    """Tell whether a pod's manifest lies on its node."""
    owners = [pod.owner for pod in subject.pods if pod.owner is not None]
    return subject.kind == "Pod" and any(owner.kind == "Node" for owner in owners)


def _elsewhere(subject: Subject) -> str:
    """Return why a patch of the owner's template is not the way, and what is; empty where it is."""
    if subject.manager is not None:
        manager = " ".join(filter(None, (subject.manager.tool, subject.manager.name)))
        return f"{manager} owns {subject.title} and would undo a patch, so change it there"
    if _is_static(subject):
        return "a static pod, so change its manifest on its node"
    if subject.kind in ("Pod", "Job"):
        return (
            f"a {'bare pod' if subject.kind == 'Pod' else 'Job'} cannot be changed, so create it"
            " again"
        )
    if subject.kind not in PATCHED:
        return f"change {subject.title} where it is defined"
    if subject.template is None:
        return (
            f"the template of {subject.title} is not at fault, so look for a LimitRange or webhook"
            " that made its pods so, or wait for its rollout"
        )
    return ""
