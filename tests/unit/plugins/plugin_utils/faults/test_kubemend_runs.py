# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubemend's own runs left, and machines that are no node: KM903 and KM905."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer


def verdict(result, code, host=None):
    return next(
        (item.verdict for item in result.verdicts if (item.code, item.host) == (code, host)), None
    )


def found(result, code):
    return [item.host or item.node for item in result.findings if item.code == code]


def bare(world, host="x1", **more):
    """Give a machine without any trace of Kubernetes, put into the run."""
    traces = {"status": "ok", "data": {"paths": [], "kubelet_exe": None, "traces": []}}
    absent = {
        name: {"status": "absent", "data": None}
        for name in ("kubelet", "manifests", "instances", "etcd", "journal")
    }
    system = {"status": "ok", "data": {"hostname": host, "addresses": ["10.0.9.9"]}}
    world.documents[host] = {
        **copy.deepcopy(world.documents["w1"]),
        "host": host,
        "node": None,
        "cluster_key": None,
        "groups": [],
        "collectors": {**absent, "installer": traces, "system": system, **more},
    }
    return world.documents[host]["collectors"]


def test_a_machine_that_is_no_node_gets_one_verdict(world):
    bare(world)
    result = world.judge()
    assert [(item.code, item.verdict) for item in result.verdicts if item.host == "x1"] == [
        ("KM905", "present")
    ]
    assert [item.code for item in result.findings] == ["KM905"]
    assert all(lack.host != "x1" for item in result.verdicts for lack in item.missing)


def test_alone_it_is_all_that_is_said(world):
    bare(world)
    world.documents, world.api = {"x1": world.documents["x1"]}, {}
    for chosen in (None, frozenset(["KM101"])):
        result = world.judge(faults=chosen)
        assert [(item.code, item.verdict, item.host) for item in result.verdicts] == [
            ("KM905", "present", "x1")
        ]


def test_also_where_no_systemd_answers_and_a_cluster_in_a_container_runs(world):
    bare(
        world,
        kubelet={
            "status": "error",
            "error": "System has not been booted with systemd",
            "data": None,
        },
    )
    assert found(world.judge(), "KM905") == ["x1"]
    bare(
        world,
        kubelet={
            "status": "ok",
            "data": {"process": {"pid": 7, "argv": ["kubelet"]}, "argv": ["kubelet"], "unit": None},
        },
        instances={"status": "ok", "data": {"processes": []}},
    )
    assert found(world.judge(), "KM905") == ["x1"]


@pytest.mark.parametrize(
    "trace",
    [
        "/var/lib/kubelet",
        "/etc/rancher",
        "/var/lib/k0s",
        "/var/lib/etcd",
        "/usr/local/bin/kubelet",
        "/etc/systemd/system/kubelet.service.d",
        "/var/lib/kubemend/journal",
        installer.PROCESS,
    ],
)
def test_a_broken_node_is_a_node(world, trace):
    collectors = bare(world)
    assert trace in (*installer.TRACES, installer.PROCESS)
    collectors["installer"]["data"]["traces"] = [trace]
    result = world.judge()
    assert found(result, "KM905") == []
    assert any(item.host == "x1" for item in result.verdicts)


def test_a_host_with_a_unit_or_that_the_api_or_etcd_names_is_a_node(world):
    bare(
        world,
        kubelet={
            "status": "ok",
            "data": {"process": None, "argv": [], "unit": {"name": "kubelet.service"}},
        },
    )
    assert found(world.judge(), "KM905") == []
    bare(world)
    world.data("api", "nodes")["items"][-1]["name"] = "x1"
    assert found(world.judge(), "KM905") == []
    assert verdict(world.judge(), "KM905", "x1") == "clear"


def test_evidence_that_does_not_say_makes_no_stranger(world):
    collectors = bare(world)
    del collectors["installer"]["data"]["traces"]  # as an older release has it
    assert found(world.judge(), "KM905") == []
    assert verdict(world.judge(), "KM905", "x1") is None
    collectors["installer"] = {"status": "timeout", "error": "5 s", "data": None}
    assert verdict(world.judge(), "KM905", "x1") == "unknown"
