# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What RKE2 logs of static pods that do not start."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    rke2_static_pods,
    supervisor,
)

Template = kubelet.Template
LINE = 'm1 rke2[7]: time="x" level=info msg="Pod for {} {}"'
CHANGED = LINE.format("etcd", "not synced (pod sandbox has changed), retrying")
SYNCED = LINE.format("etcd", "is synced")
PATH = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl"


def document(*lines: str) -> dict[str, Any]:
    end = {"unit": "rke2-server.service", "lines": list(lines)}
    return {"host": "m1", "collectors": {"kubelet_end": {"status": "ok", "data": end}}}


def owner(*templates: Template, program: str = "rke2") -> supervisor.Supervisor:
    files = kubelet.Distribution(program, templates=templates)
    return supervisor.Supervisor(program, "rke2-server.service", None, (), files)


@pytest.mark.parametrize(
    ("lines", "component", "is_told"),
    [
        ([CHANGED], "etcd", True),
        ([SYNCED, CHANGED], "etcd", True),
        ([CHANGED, SYNCED], "etcd", False),
        ([CHANGED], "kube-apiserver", False),
        ([], "etcd", False),
    ],
)
def test_the_last_word_about_a_static_pod(lines: list[str], component: str, is_told: bool) -> None:
    found = rke2_static_pods.read(document(*lines), owner())
    assert ("pod sandbox has changed" in found.clause(component)) is is_told
    assert ("containerd.log" in found.advice(component)) is is_told


@pytest.mark.parametrize(
    ("template", "is_whole", "is_nvidia"),
    [
        (Template(PATH, expressions=False, nvidia=True), True, True),
        (Template(PATH, expressions=False), True, False),
        (Template(PATH, expressions=True, nvidia=True), False, False),
    ],
)
def test_a_whole_configuration_in_the_place_of_the_template(
    template: Template, is_whole: bool, is_nvidia: bool
) -> None:
    found = rke2_static_pods.read(document(CHANGED), owner(template))
    clause, advice = found.clause("etcd"), found.advice("etcd")
    assert (PATH in clause) is is_whole
    assert ("NVIDIA" in clause) is is_nvidia
    assert (f"mv {PATH} {PATH}.bak" in advice) is is_whole


def test_k3s_has_no_static_pods() -> None:
    assert rke2_static_pods.read(document(CHANGED), owner(program="k3s")) == rke2_static_pods.NONE
    assert rke2_static_pods.read(document(CHANGED), None) == rke2_static_pods.NONE
