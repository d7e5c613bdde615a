# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers whose CPUs differ from the kubelet's state, and freezers that do not freeze."""

from __future__ import annotations

import re

import pytest

from tests.unit.support.managed_node import (
    CLOCK,
    OTHER,
    POD,
    Node,
    container,
    state,
)


@pytest.fixture(autouse=True)
def a_healthy_worker(world):
    Node.healthy = world.documents["w1"]


@pytest.mark.parametrize(
    ("containers", "present"),
    [
        (
            [
                container(POD, "app", "1"),
                container(POD, None, "0-3"),
                container(OTHER, "side", "0,2-3"),
            ],
            [],
        ),
        ([container(POD, "app", "0-3")], ["KM308"]),
        ([container(OTHER, "side", "0-3")], ["KM308"]),
        ([container(POD, "init", "0-3"), container(OTHER, "side", None)], []),
    ],
)
def test_drift(containers, present):
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen["containers"] = containers
    assert node.present() == present


@pytest.mark.parametrize(
    ("sets", "present"),
    [
        ([("1", "a", POD), ("0,2-3", "b", OTHER)], []),
        ([("0-3", "a", POD), ("0,2-3", "b", OTHER)], ["KM308"]),
        ([("1", "a", POD), ("0-3", "b", OTHER)], ["KM308"]),
        ([("1", "a", POD), ("0-3", "b", POD)], []),
    ],
)
def test_drift_from_a_state_by_container(sets, present):
    node = Node(state(default="0,2-3", entries={"a" * 64: "1"}))
    node.seen.update(
        containers=[container(pod, "work", cpus, container_id=one * 64) for cpus, one, pod in sets],
        logged=[],
        kubelet_version="Kubernetes v1.16.2",
    )
    assert node.present() == present
    assert not present or "where it stays so, the write fails" in node.findings()[0].remedy


def test_a_set_decided_a_moment_ago_is_on_its_way():
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen["containers"] = [container(POD, "app", "0-3")]
    node.seen["cpu_state"]["mtime"] = CLOCK - 5
    assert node.verdicts()["KM308"] == "unknown"
    node.kubelet["process"] = None
    assert node.present() == ["KM308"]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("Kubernetes v1.18.4", "where it stays so, the write fails"),
        ("Kubernetes v1.30.1", "does not heal"),
        (None, "does not heal"),
        ("Kubernetes v1.22.17", "is not known here"),
    ],
)
def test_who_heals_drift(version, words):
    node = Node(state(default="0,2-3", entries={POD: {"app": "1"}}))
    node.seen.update(containers=[container(POD, "app", "0-3")], kubelet_version=version)
    assert words in node.findings()[0].remedy


# What runc 1.1.5 (logged by the runtime) and 1.1.12 (returned to the kubelet) say.
LOGGED = (
    'Nov 21 20:01:02 w1 containerd[412]: time="2026-11-21T20:01:02Z" level=warning msg="unable to'
    ' freeze"'
)
RETURNED = (
    "Nov 21 20:01:02 w1 kubelet[500]: E1121 20:01:02.000000     500 cpu_manager.go:440]"
    ' "ReconcileState: failed to update container" err="rpc error: code = Unknown desc = failed to'
    " update resources: runc did not terminate successfully: exit status 1: unable to freeze:"
    ' unknown"'
)


@pytest.mark.parametrize("line", [LOGGED, RETURNED])
def test_a_freezer_that_does_not_freeze_is_no_stale_state(line):
    node = Node(state(default="0-3"))
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [line]
    node.seen["frozen"] = [
        {
            "pod_uid": POD,
            "container_id": "c" * 64,
            "path": "/sys/fs/cgroup/freezer/x",
            "state": "FREEZING",
            "tasks": [[9, "stuck", "D"]],
        }
    ]
    (finding,) = node.findings()
    assert finding.code == "KM311"
    assert "a reset of it cures nothing" in finding.summary
    assert "move" not in (finding.remedy or "")
    assert any("stuck (pid 9, D)" in (proof.text or "") for proof in finding.evidence)


def stuck(identity, name):
    return {
        "pod_uid": POD,
        "pod": "shop/" + name,
        "name": "app",
        "container_id": identity * 64,
        "tasks": [[9, "nfs-" + name, "D"]],
    }


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (RETURNED.replace("update container", "update container " + "a" * 64), ["nfs-one"]),
        (LOGGED, ["nfs-one", "nfs-two"]),
    ],
)
def test_the_tasks_that_do_not_freeze_are_named_of_the_container_that_the_line_names_or_of_all(
    line, shown
):
    """Runc thaws the cgroup again once it has given up.

    What is left to see is the task in state D.
    """
    node = Node(state(default="0-3"))
    node.seen["stuck"] = [stuck("a", "one"), stuck("b", "two")]
    assert node.present() == []  # a task waits for its disk: no fault
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [line]
    texts = " ".join(proof.text or "" for proof in node.findings()[0].evidence)
    assert [
        name
        for name in ("nfs-one", "nfs-two")
        if re.search(rf"{name} \(pid 9, D\)[^(]* app\b[^(]* shop/{name[4:]}\b", texts)
    ] == shown


@pytest.mark.parametrize(
    ("runc", "words"),
    [
        ("runc version 1.1.7", "it only logs that"),
        ("runc version 1.1.5+ds1", "it only logs that"),
        ("runc version 1.1.8", "it returns the error (since"),
        ("runc version 1.3.0-rc.1", "it returns the error (since"),
        ("runc by hand", "(since 1.1.8 it returns the error, before it only logged it)"),
    ],
)
def test_which_runc_returns_the_error(runc, words):
    node = Node(state(default="0-3"))
    node.document["collectors"]["kubelet_log"]["data"]["lines"] = [RETURNED]
    node.seen["runc"] = runc
    assert any(words in (proof.text or "") for proof in node.findings()[0].evidence)
