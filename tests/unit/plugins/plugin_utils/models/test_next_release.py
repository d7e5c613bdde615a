# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has that a later release refuses."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import next_release
from tests.unit.support.upgrade import kubelet_words


def extract(world, host="w1"):
    return next_release.extract(copy.deepcopy(world.documents[host]))


def test_each_setting_once_with_its_file_where_one_has_it(world):
    kubelet_words(world, "w1", "--network-plugin=cni", "--docker-root=/x")
    unit = world.data("w1", "kubelet")["unit"]
    unit["start_words"] = ["/usr/bin/kubelet", "--docker-root=/x", "$KUBELET_EXTRA_ARGS"]
    text = "KUBELET_EXTRA_ARGS=--network-plugin=cni"
    unit["environment_files"] = [{"path": "/etc/default/kubelet", "text": text}]
    rows = [(row.name, row.path) for row in extract(world).refused]
    assert rows == [("network-plugin", "/etc/default/kubelet"), ("docker-root", None)]


def test_a_component_of_a_nested_cluster_does_not_count(world):
    running = world.data("m1", "instances")["processes"]
    running[0]["argv"] = ["kube-scheduler", "--port=0"]
    running[0]["component"] = "kube-scheduler"
    assert [row.name for row in extract(world, "m1").refused] == ["port"]
    running[0]["static"] = False
    assert extract(world, "m1").refused == ()


@pytest.mark.parametrize(
    ("words", "dockershim"),
    [((), True), (("--container-runtime=docker",), True), (("--container-runtime=remote",), False)],
)
def test_dockershim_is_the_default_of_the_kubelets_that_have_it(world, words, dockershim):
    kubelet_words(world, "w1", *words)
    assert extract(world).dockershim is dockershim


def test_a_kubelet_within_another_program_is_not_read(world):
    kubelet = world.data("w1", "kubelet")
    kubelet["argv"] = kubelet["process"]["argv"] = ["/snap/kubelite", "--network-plugin=cni"]
    found = extract(world)
    assert (found.refused, found.dockershim, found.takes_v1) == ((), None, None)
    assert found.unread


def test_hostile_texts_are_cut_and_bounded(world):
    text = "\n".join(f"A{number}=--network-plugin=\x1b[2J" for number in range(2000))
    unit = world.data("w1", "kubelet")["unit"]
    unit["environment_files"] = [{"path": "/etc/default/kubelet", "text": text}]
    assert len(extract(world).refused) <= next_release.MAX_REFUSALS
