# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What RKE2 logs of static pods that do not start, and of what it makes containerd's file. Pure.

RKE2 compares each static pod with its manifest, and each sandbox as a kubelet does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Template
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.document import one_line, shell_name
from .supervisor import Supervisor

RKE2 = "rke2"
_STATE = re.compile(
    r"Pod for (?P<component>[a-z-]{1,40}) (?:is synced|not synced \((?P<reason>[^()\n]{1,160})\))"
)
_MEANINGS = {"pod sandbox has changed": " (its newest sandbox does not run)"}
_THREAD = "https://github.com/NVIDIA/gpu-operator/issues/992"


@dataclass(frozen=True)
class StaticPods:
    """What RKE2 said last of each static pod, and the templates that are whole configurations."""

    reasons: Mapping[str, str]
    templates: tuple[Template, ...] = ()
    unit: str = ""

    def clause(self, component: str) -> str:
        """Return what is known of a component that has no log, as the end of a sentence."""
        reason = self.reasons.get(component, "")
        if not reason:
            return ""
        text = f"; RKE2 says of it: {reason}{_MEANINGS.get(reason, '')}"
        return text + "".join(map(_whole, self.templates[:1]))

    def advice(self, component: str) -> str:
        """Return what to do first, or ""."""
        if not self.reasons.get(component):
            return ""
        if not self.templates:
            return (
                "tail -n 50 /var/lib/rancher/rke2/agent/containerd/containerd.log shows what ends"
                " its sandbox"
            )
        word = "TEMPLATE"
        if shell_name(self.templates[0].path.replace("/", "."), ""):
            word = self.templates[0].path
        return (
            f"compare {word} with config.toml next to it on a node that works; where it came from"
            f" an installation of GPUs, mv {word} {word}.bak and systemctl restart"
            f" {shell_name(self.unit, 'UNIT')}: RKE2 finds NVIDIA's runtimes itself, and the GPU"
            " operator is to leave its template alone (CONTAINERD_CONFIG in toolkit.env; see"
            f" {_THREAD})"
        )


NONE = StaticPods({})


def _whole(template: Template) -> str:
    """Return that containerd's configuration is made of a file that is no template."""
    runtimes = ""
    if template.nvidia:
        runtimes = " with NVIDIA's runtimes, as the GPU operator writes it"
    return (
        f". containerd's configuration is made of {one_line(template.path, 200)}, which is no"
        f" template but a whole configuration{runtimes}: what RKE2 itself sets may be missing in it"
    )


def read(document: Mapping[str, Any], owner: Supervisor | None) -> StaticPods:
    """Return what RKE2 said last of its static pods; nothing of another kubelet.

    owner: the program that runs the kubelet
    """
    if owner is None or owner.program != RKE2:
        return NONE
    lines = contract.answer(document, KubeletEnd).lines
    matches = filter(None, map(_STATE.search, lines))
    reasons = {match.group("component"): match.group("reason") or "" for match in matches}
    templates: tuple[Template, ...] = ()
    if owner.distribution is not None:
        templates = owner.distribution.templates
    return StaticPods(reasons, tuple(row for row in templates if not row.expressions), owner.unit)
