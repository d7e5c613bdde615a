# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of the sandbox that a node lacks, KM605."""

from __future__ import annotations

from tests.unit.support.waiting_pods import judged, wait

EVENT = (
    "FailedCreatePodSandBox",
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image"
    ' "registry.k8s.io/pause:3.6": failed to pull image: dial tcp: lookup registry.k8s.io: no such'
    " host",
)


def test_the_image_and_why_it_cannot_be_pulled(world):
    wait(world, event=EVENT)
    verdicts, (finding,) = judged(world, "KM605")
    assert verdicts == ["present"]
    assert (finding.host, finding.node, finding.severity) == ("w1", "w1", "critical")
    assert "(registry.k8s.io/pause:3.6)" in finding.summary
    assert "cannot resolve the registry's name" in finding.summary
    assert "crictl pull registry.k8s.io/pause:3.6" in finding.remedy
    found = {row.code: row for row in world.judge(faults={"KM600", "KM605"}).findings}
    assert found["KM600"].because == ("KM605",)


def test_what_is_over_or_of_another_image_is_clear(world):
    wait(world, event=("Failed", 'Failed to pull image "a": no such host'))
    assert judged(world, "KM605") == (["clear"], [])
    wait(world, event=EVENT)
    event = world.data("api", "pod_start")["events"][1]
    event["count"] = 2
    assert judged(world, "KM605") == (["clear"], [])
    event.update(count=45, last="2027-01-15T07:50:00Z")
    assert judged(world, "KM605") == (["clear"], [])
    event["last"] = None
    assert judged(world, "KM605") == (["unknown"], [])
    event.update(last="2027-01-15T07:59:00Z", waiting=0)
    assert judged(world, "KM605") == (["clear"], [])
    del world.api["collectors"]["pod_start"]
    assert judged(world, "KM605") == (["not judged"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM605")[0]) <= {"not_applicable"}
