# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A volume that is still attached to another node, KM606."""

from __future__ import annotations

import pytest

from tests.unit.support.waiting_pods import judged, node_of, wait

EVENT = (
    "FailedAttachVolume",
    'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and'
    " can't be attached to another",
)


def attached(world, node, volume="pvc-1", **more):
    row = {"name": "csi-1", "node": node, "attacher": "ebs.csi.aws.com", "volume": volume}
    data = world.data("api", "pod_start")
    data["attachments"] = [*(data["attachments"] or []), {**row, "attached": True, **more}]


@pytest.mark.parametrize(
    ("holder", "ready", "state", "advice"),
    [
        (
            "w7",
            None,
            "no longer a node of this cluster",
            "delete volumeattachment csi-1",
        ),
        ("m1", "Unknown", "Ready is Unknown", "out-of-service=nodeshutdown"),
        ("m1", "True", "Ready", "strategy Recreate"),
    ],
)
def test_the_node_that_holds_it_is_named(world, holder, ready, state, advice):
    wait(world, event=EVENT)
    attached(world, "w1", "another")
    attached(world, holder, deleted="2027-01-15T07:40:00Z", error="refused")
    if ready:
        node_of(world, holder)["ready"] = ready
    verdicts, (finding,) = judged(world, "KM606")
    assert verdicts == ["present"]
    assert (finding.node, finding.component, finding.severity) == ("w1", "pvc-1", "warning")
    assert f"the volume pvc-1. It is still attached to {holder} ({state})" in finding.summary
    assert advice in finding.remedy
    assert [proof.object for proof in finding.evidence] == [
        "Pod default/pod-0",
        "VolumeAttachment csi-1",
    ]


def test_why_it_is_not_detached_is_named_where_that_is_known(world):
    wait(world, event=EVENT)
    attached(
        world,
        "m1",
        deleted="2027-01-15T07:40:00Z",
        error="rpc error: code = Internal desc = ServerFaultCode: NoPermission",
    )
    (finding,) = judged(world, "KM606")[1]
    assert "Known cause: The user of the cluster in vCenter may not" in finding.summary
    assert finding.remedy.startswith("the events of that user in vCenter")


def test_where_attachments_may_not_be_read_it_is_present_without_the_node(world):
    wait(world, event=EVENT)
    _verdicts, (finding,) = judged(world, "KM606")
    assert "still attached to another node" in finding.summary


def test_a_volume_that_was_detached_meanwhile_is_clear(world):
    wait(world, event=EVENT)
    attached(world, "w1")
    attached(world, "m1", attached=False)
    assert judged(world, "KM606") == (["clear"], [])
    world.api["collectors"]["pod_start"]["truncated"] = True
    assert len(judged(world, "KM606")[1]) == 1


def test_what_is_young_or_of_no_pod_that_waits_is_clear(world):
    wait(world, event=EVENT)
    data = world.data("api", "pod_start")
    data["events"][0]["first"] = "2027-01-15T07:55:00Z"
    assert judged(world, "KM606") == (["clear"], [])
    data["events"][0].update(first="2027-01-15T07:00:00Z", waiting=0)
    assert judged(world, "KM606") == (["clear"], [])
    data["events"][0].update(first=None, waiting=1)
    assert judged(world, "KM606") == (["unknown"], [])
    del world.api["collectors"]["pod_start"]
    assert judged(world, "KM606") == (["not judged"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM606")[0]) <= {"not_applicable"}
