# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM116 of a component that k0s starts again and again."""

from __future__ import annotations

from tests.unit.plugins.plugin_utils.faults.control_plane.test_services import (
    found,
    give,
    line,
    row,
)

DENIED = "open /var/lib/k0s/pki/etcd/ca.crt: permission denied"


def k0s(*ages: float) -> dict:
    lines = [
        line(
            age,
            f'k0s[77]: time="2027-01-15 07:59:00" level=info msg="Error: {DENIED}"'
            " component=kube-apiserver",
        )
        for age in ages
    ]
    return row("k0s", name="k0scontroller.service", lines=lines, wanted_by=["multi-user.target"])


def install(world, *ages: float) -> None:
    """Let k0s run everything on m1."""
    give(world, k0s(*ages))
    world.data("m1", "kubelet")["unit"]["name"] = "k0scontroller.service"


def test_a_component_that_ends_again_and_again_while_k0s_runs(world):
    install(world, 20, 15, 10, 5)
    (finding,) = found(world)
    assert (finding.host, finding.component, finding.severity) == (
        "m1",
        "kube-apiserver",
        "critical",
    )
    assert "k0scontroller.service" in finding.summary
    assert "/var/lib/k0s/pki/etcd/ca.crt" in finding.summary.partition("Known cause")[2]
    assert "k0s.yaml" in finding.remedy
    assert [item.kind for item in finding.evidence] == ["log"]


def test_one_that_ended_once_is_a_warning(world):
    install(world, 10)
    (finding,) = found(world)
    assert finding.severity == "warning"


def test_one_that_runs_again_is_well(world):
    install(world, 500, 450, 400)
    assert found(world) == []
