# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of clusters: the operator's, else kubeadm's, never one that two clusters share."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_names,
)


def cluster(key, text=None, hosts=("m1",)):
    return SimpleNamespace(
        key=key,
        hosts=[SimpleNamespace(host=name) for name in hosts],
        typed=lambda _kind: SimpleNamespace(text=text),
    )


ONE, TWO = "1" * 64, "2" * 64


def test_kubeadms_name_counts_unless_it_is_the_default():
    named = cluster(ONE, "apiServer: {}\nclusterName: prod-a\nx: 1\n")
    assert cluster_names.names([named]) == {ONE[:16]: "prod-a"}
    default = cluster(ONE, "clusterName: kubernetes\n")
    assert cluster_names.names([default]) == {ONE[:16]: "kubernetes (11111111)"}
    assert cluster_names.names([cluster(ONE), cluster(None, "clusterName: x\n")]) == {}


def test_the_operators_name_comes_first_and_belongs_to_the_cluster_of_its_host():
    both = [cluster(ONE, "clusterName: x\n"), cluster(TWO, hosts=("m2",))]
    assert cluster_names.names(both, {"m1": "a", "m2": "b"}) == {ONE[:16]: "a", TWO[:16]: "b"}


def test_a_name_of_two_clusters_has_the_key_behind_it():
    both = [cluster(ONE), cluster(TWO, hosts=("m2",))]
    found = cluster_names.names(both, {cluster_names.EVERY_HOST: "prod"})
    assert found == {ONE[:16]: "prod (11111111)", TWO[:16]: "prod (22222222)"}
