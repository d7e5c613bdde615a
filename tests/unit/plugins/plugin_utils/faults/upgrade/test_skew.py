# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM726 and KM727: releases of members, and of an external etcd, before an upgrade."""

from __future__ import annotations

import pytest

from tests.unit.support.upgrade import judge, kubeadm, server, verdicts


def kubelet(world, name, version):
    nodes = world.data("api", "nodes")["items"]
    next(node for node in nodes if node["name"] == name)["kubelet_version"] = version


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (None, None),
        ((1, 31), None),
        ((1, 32), "one minor release at a time"),
        ((1, 30), "no upgrade"),
        ((1, 29), "no upgrade"),
    ],
)
def test_control_planes_go_one_release_at_a_time(world, target, text):
    server(world, "v1.30.1")
    findings = judge(world, "KM726", upgrade_to=target).findings
    assert len(findings) == (text is not None)
    for finding in findings:
        assert (finding.component, finding.severity) == ("kube-apiserver", "warning")
        assert text in finding.summary


def test_an_upgrade_that_is_under_way_is_to_be_finished(world):
    server(world, "v1.30.1")
    text = "--advertise-address=10.0.0.2"
    world.manifest("m2", "kube-apiserver", text)
    assert verdicts(world, "KM726") == ["clear"]
    files = world.data("m2", "manifests")["files"]
    files[-1]["text"] = files[-1]["text"].replace("v1.30.1", "v1.31.0")
    (finding,) = judge(world, "KM726").findings
    assert "1.30, 1.31" in finding.summary


@pytest.mark.parametrize(
    ("version", "release", "managed", "verdict"),
    [
        ("v1.28.0", "v1.30.1", True, "clear"),
        ("v1.27.9", "v1.30.1", True, "present"),
        ("v1.25.0", "v1.26.1", True, "present"),
        ("v1.25.0", "v1.26.1", False, "clear"),
        ("v1.24.0", "v1.26.1", False, "present"),
        (None, "v1.30.1", True, "clear"),
    ],
)
def test_a_kubelet_that_would_be_too_old(world, version, release, managed, verdict):
    server(world, release)
    if managed:
        kubeadm(world, "v1beta3", "scheduler", {})
    kubelet(world, "w1", version)
    assert verdicts(world, "KM726") == [verdict]
    for finding in judge(world, "KM726").findings:
        assert (finding.node, finding.component) == ("w1", "kubelet")


def test_a_record_of_kubeadm_that_is_denied_is_not_clear(world):
    server(world, "v1.26.1")
    kubelet(world, "w1", "v1.25.0")
    world.api["collectors"]["kubeadm_config"] = {"status": "denied", "data": None}
    assert verdicts(world, "KM726") == ["unknown"]
    world.api["collectors"]["kubeadm_config"] = {"status": "absent", "data": None}
    assert verdicts(world, "KM726") == ["clear"]


@pytest.mark.parametrize(
    ("etcd", "verdict"),
    [("3.4.13", "present"), ("3.5.23", "present"), ("3.5.24", "clear"), ("3.6.4", "clear")],
)
def test_an_external_etcd_that_kubeadm_init_refuses(world, etcd, verdict):
    server(world, "v1.30.1")
    assert verdicts(world, "KM727") == ["not_applicable"]
    kubeadm(world, "v1beta3", "scheduler", {})
    assert verdicts(world, "KM727") == ["not_applicable"]
    world.api["collectors"]["kubeadm_config"]["data"]["text"] += (
        "etcd:\n  external:\n    endpoints: [https://10.0.0.9:2379]\n"
    )
    for host in ("m1", "m2", "m3"):
        world.data(host, "etcd")["status"]["version"] = etcd
    assert verdicts(world, "KM727") == [verdict]
    for finding in judge(world, "KM727").findings:
        assert finding.severity == "info"
        assert "kubeadm init of 1.31 takes an external etcd from 3.5.24" in finding.summary
        assert "kubeadm upgrade does not ask" in finding.summary


def test_an_external_etcd_of_which_nothing_is_known(world):
    server(world, "v1.30.1")
    kubeadm(world, "v1beta3", "scheduler", {})
    world.api["collectors"]["kubeadm_config"]["data"]["text"] += "etcd:\n  external: {a: b}\n"
    for host in ("m1", "m2", "m3"):
        world.documents[host]["collectors"]["etcd"] = {"status": "denied", "data": None}
    assert verdicts(world, "KM727") == ["unknown"]
