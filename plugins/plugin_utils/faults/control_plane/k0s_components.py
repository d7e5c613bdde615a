# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM116 of k0s: a component that its unit, which runs, starts again and again."""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.document import ends, one_line, shell_name
from ...models import k0s_children
from ...models.cluster import Host
from ...models.component_unit import Service
from ...models.k0s_children import Child
from ...models.result import EvidenceRef
from ...parsers import component_log, message_class
from ...parsers.component_log import Telling
from ..base import CheckResult, Detection, present
from ..known_causes import explained

# Where k0s takes the flags of a component from.
_SETTINGS = {
    "kube-apiserver": "spec.api.extraArgs of /etc/k0s/k0s.yaml",
    "kube-controller-manager": "spec.controllerManager.extraArgs of /etc/k0s/k0s.yaml",
    "kube-scheduler": "spec.scheduler.extraArgs of /etc/k0s/k0s.yaml",
    "etcd": "spec.storage.etcd.extraArgs of /etc/k0s/k0s.yaml",
    "kubelet": "--kubelet-extra-args of the unit, and spec.workerProfiles of /etc/k0s/k0s.yaml",
    "containerd": "/etc/k0s/containerd.toml and /etc/k0s/containerd.d",
}


def results(host: Host, service: Service, clock: float | None) -> Iterator[CheckResult]:
    """Yield the components of a k0s that runs which end again and again."""
    for child in k0s_children.find(service.row, clock):
        hit = _hit(host, service, child)
        yield present(hit, host=host.host, component=child.component)


def _hit(host: Host, service: Service, child: Child) -> Detection:
    name, count, telling = shell_name(service.row.name, "UNIT"), len(child.times), child.telling
    often = f"ended {count} times within {k0s_children.LOOP_SECONDS // 60} minutes"
    if count < k0s_children.ENDS:
        often = "ended just now"
    settings = _SETTINGS.get(child.component, "/etc/k0s/k0s.yaml")
    proofs = [
        EvidenceRef("log", host.host, object=one_line(service.row.name, 80), text=line)
        for line in dict.fromkeys(filter(None, (ends(telling.line, 600),)))
    ]
    hit = Detection(
        one_line(
            f"{child.component} of k0s {often}, and {name}, which starts it again, runs"
            f"{_message(telling)}",
            900,
        ),
        tuple(proofs),
        f"{_cure(telling)} (its settings: {settings}); k0s starts it again by itself within"
        f" seconds, and takes another configuration after systemctl restart {name}. The whole log:"
        f" journalctl -u {name} | grep component={one_line(child.component, 40)}",
        host=host.host,
        node=host.node,
        component=child.component,
        severity="critical" if count >= k0s_children.ENDS else "warning",
    )
    places = (child.component, k0s_children.PROGRAM)
    texts = (telling.line, *telling.before(child.lines))
    return explained(hit, places, texts, is_of_program=True)


def _message(telling: Telling) -> str:
    """Return the line that tells why it ended, with its meaning, as a clause."""
    message = ends(component_log.text(telling.line) or telling.line, 300)
    if not message:
        return ""
    if telling.reading is None:
        return f"; its last line: {message}"
    return f": {message} ({message_class.CLASSES[telling.reading.meaning].clause})"


def _cure(telling: Telling) -> str:
    if telling.reading is None:
        return "fix what its last log lines name"
    return message_class.CLASSES[telling.reading.meaning].advice
