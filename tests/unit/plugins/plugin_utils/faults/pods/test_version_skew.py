# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that is newer than the API server, KM608."""

from __future__ import annotations

import pytest

from tests.unit.support.waiting_pods import judged, node_of, wait

UNREAD = "services have not yet been read at least once, cannot construct envvars"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("v1.31.1", "present"),
        ("v1.31.0-rc.1+vendor", "present"),
        ("v1.30.9", "clear"),
        ("v1.29.0", "clear"),
        (None, "clear"),
        ("?", "clear"),
    ],
)
def test_a_newer_minor_release_counts(world, version, verdict):
    node_of(world, "w1")["kubelet_version"] = version
    verdicts, findings = judged(world, "KM608")
    assert verdicts == [verdict]
    for finding in findings:
        assert (finding.node, finding.host, finding.severity) == ("w1", "w1", "warning")
        assert version in finding.summary
        assert "v1.30.1" in finding.summary
        # An API without a known address is none of this name.
        assert not [proof for proof in finding.evidence if proof.object == "None"]


def test_pods_that_wait_for_it_make_it_critical(world):
    node_of(world, "w1")["kubelet_version"] = "v1.31.1"
    wait(world, pods=7, state="CreateContainerConfigError", message=UNREAD)
    _verdicts, (finding,) = judged(world, "KM608")
    assert finding.severity == "critical"
    assert "7 of its pods do not start (ReplicaSet default/app-1)" in finding.summary
    assert UNREAD in finding.evidence[-1].text
    found = {row.code: row for row in world.judge(faults={"KM600", "KM608"}).findings}
    assert found["KM600"].because == ("KM608",)


def test_an_upgrade_that_is_under_way_is_no_fault(world):
    node_of(world, "w1")["kubelet_version"] = "v1.31.1"
    text = (
        "kind: Pod\nspec:\n  containers:\n  - name: kube-apiserver\n    command: [kube-apiserver]\n"
        "    image: registry.k8s.io/kube-apiserver:v1.31.1\n"
    )
    world.data("m1", "manifests")["files"].append(
        {
            "path": "/m/kube-apiserver.yaml",
            "name": "kube-apiserver.yaml",
            "kind": "file",
            "text": text,
            "mtime": 1.0,
        }
    )
    assert judged(world, "KM608") == (["clear"], [])


def test_without_a_version_it_is_unknown(world):
    world.data("api", "server")["git_version"] = None
    assert judged(world, "KM608") == (["unknown"], [])
    del world.api["collectors"]["server"]
    assert judged(world, "KM608") == (["not judged"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM608")[0]) <= {"not_applicable"}
