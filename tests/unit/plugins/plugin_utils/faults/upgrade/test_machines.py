# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM724 and KM725: runtimes and cgroups that the next release does not run with."""

from __future__ import annotations

import pytest

from tests.unit.support.upgrade import judge, kubelet_words, server, verdicts


def run_with(world, name, runtime):
    nodes = world.data("api", "nodes")["items"]
    next(node for node in nodes if node["name"] == name)["runtime_version"] = runtime


@pytest.mark.parametrize(
    ("version", "runtime", "verdict"),
    [
        ("v1.25.3", "containerd://1.5.18", "present"),
        ("v1.25.3", "containerd://1.6.36", "clear"),
        ("v1.24.3", "containerd://1.5.18", "clear"),
        ("v1.25.3", "containerd://?", "unknown"),
        ("v1.25.3", "cri-o://1.20.9", "clear"),
        ("v1.25.3", None, "clear"),
        # a kubelet of 1.24 or newer runs Docker by cri-dockerd
        ("v1.25.3", "docker://20.10.7", "clear"),
        ("v1.22.3", "docker://20.10.7", "clear"),
        ("v1.23.3", "docker://20.10.7", "present"),
    ],
)
def test_a_runtime_that_the_next_kubelet_cannot_use(world, version, runtime, verdict):
    server(world, version)
    run_with(world, "w1", runtime)
    assert verdicts(world, "KM724") == [verdict]
    for finding in judge(world, "KM724").findings:
        assert (finding.node, finding.component) == ("w1", runtime.partition(":")[0])


def test_docker_behind_cri_dockerd_is_no_dockershim(world):
    server(world, "v1.23.3")
    run_with(world, "w1", "docker://20.10.7")
    kubelet_words(world, "w1", "--container-runtime=remote")
    assert verdicts(world, "KM724") == ["clear"]
    world.silence("w1")
    assert verdicts(world, "KM724") == ["unknown"]


@pytest.mark.parametrize(
    ("kubelet", "runtime", "verdict"),
    [
        ("v1.25.3+k3s1", "containerd://1.5.18-k3s1", "clear"),
        ("v1.25.3+k3s1", "containerd://1.5.18", "present"),
        ("v1.25.3+rke2r1", "containerd://1.5.18-k3s1", "clear"),
        ("v1.25.3+k0s.0", "containerd://1.5.18", "clear"),
    ],
)
def test_a_distribution_brings_its_own_containerd(world, kubelet, runtime, verdict):
    server(world, kubelet)
    run_with(world, "w1", runtime)
    world.silence("w1")
    assert verdicts(world, "KM724") == [verdict]


def test_microk8s_brings_its_own_containerd(world):
    server(world, "v1.25.3")
    run_with(world, "w1", "containerd://1.5.18")
    world.data("w1", "kubelet")["unit"]["name"] = "snap.microk8s.daemon-kubelite.service"
    assert verdicts(world, "KM724") == ["clear"]


def test_docker_of_k3s_is_not_sent_to_another_containerd(world):
    server(world, "v1.23.3+k3s1")
    run_with(world, "w1", "docker://20.10.7")
    assert verdicts(world, "KM724") == ["clear"]


@pytest.mark.parametrize(
    ("version", "cgroup", "text", "verdict"),
    [
        ("v1.34.1", "v1", "kind: KubeletConfiguration\n", "present"),
        ("v1.34.1", "hybrid", "kind: KubeletConfiguration\n", "present"),
        ("v1.34.1", "v2", "kind: KubeletConfiguration\n", "clear"),
        ("v1.34.1", "v1", "failCgroupV1: false\n", "clear"),
        ("v1.34.1", "v1", "failCgroupV1: true\n", "present"),
        ("v1.34.1", "v1", "failCgroupV1: maybe\n", "unknown"),
        ("v1.34.1", None, "kind: KubeletConfiguration\n", "unknown"),
        ("v1.33.1", "v1", "kind: KubeletConfiguration\n", "not_applicable"),
    ],
)
def test_cgroup_v1_ends_with_135_unless_it_is_taken(world, version, cgroup, text, verdict):
    server(world, version)
    for host in world.documents:
        world.data(host, "system")["cgroup"] = "v2"
    world.data("w1", "system")["cgroup"] = cgroup
    kubelet_words(world, "w1", "--config=/c")
    world.data("w1", "kubelet")["config"] = {"path": "/c", "text": text}
    found = {row.host: row.verdict for row in judge(world, "KM725").verdicts}
    assert found.get("w1", found.get(None)) == verdict
    assert [row.host for row in judge(world, "KM725").findings] == ["w1"] * (verdict == "present")


@pytest.mark.parametrize(
    ("word", "text", "verdict"),
    [
        ("--fail-cgroupv1=false", "kind: KubeletConfiguration\n", "clear"),
        ("--fail-cgroupv1=false", "failCgroupV1: true\n", "clear"),
        ("--fail-cgroupv1=true", "failCgroupV1: false\n", "present"),
        ("--fail-cgroupv1", "failCgroupV1: false\n", "present"),
        ("--fail-cgroupv1=maybe", "failCgroupV1: false\n", "unknown"),
        ("--fail-cgroupv1=false", None, "clear"),
        ("--v=2", None, "unknown"),
    ],
)
def test_the_flag_of_cgroup_v1_wins_over_the_file(world, word, text, verdict):
    server(world, "v1.34.1")
    world.data("w1", "system")["cgroup"] = "v1"
    kubelet_words(world, "w1", "--config=/c", word)
    world.data("w1", "kubelet")["config"] = {"path": "/c", "text": text}
    found = {row.host: row.verdict for row in judge(world, "KM725").verdicts}
    assert found["w1"] == verdict
