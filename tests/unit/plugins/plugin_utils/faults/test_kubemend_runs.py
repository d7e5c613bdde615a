# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubemend's own runs left, and machines that are no node: KM903 and KM905."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests.unit.support.run_leftovers import CORDON, RUN, cordon_worker, raised_level


def km903(world):
    """(hosts found, verdicts, whether it was not judged)."""
    result = fault_engine.evaluate_clusters([*world.documents.values(), world.api])[0]
    verdicts = {item.verdict for item in result.verdicts if item.code == "KM903"} - {
        "not_applicable"
    }
    return (
        [item.host for item in result.findings if item.code == "KM903"],
        verdicts,
        "KM903" in {item.code for item in result.not_judged},
    )


WORK = {"lock": None, "unproven": []}


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


@pytest.mark.parametrize(
    ("status", "journal", "verdict"),
    [
        ("ok", {"levels": [raised_level(True)]}, "present"),
        ("ok", {"levels": [raised_level(False), raised_level(True)]}, "present"),
        ("ok", {"levels": [raised_level(False)]}, "clear"),
        ("ok", {"levels": []}, "clear"),
        ("ok", {"pending": []}, None),
        ("absent", None, "not_applicable"),
        ("denied", None, "unknown"),
        ("timeout", None, "unknown"),
        ("error", None, "unknown"),
        ("not_asked", None, None),
        (None, None, "not_applicable"),
    ],
)
def test_left_behind(world, status, journal, verdict):
    if status:
        world.documents["m2"]["collectors"]["journal"] = {"status": status, "data": journal}
    result = world.judge(deep=True)
    assert {item.host: item.verdict for item in result.verdicts if item.code == "KM903"}.get(
        "m2"
    ) == verdict
    assert [item.code for item in result.not_judged] == (
        [] if verdict else ["KM903"] if status == "ok" else ["KM902", "KM903"]
    )
    found = [finding for finding in result.findings if finding.code == "KM903"]
    assert len(found) == (verdict == "present")
    for finding in found:
        assert finding.host == "m2"
        assert (
            f"the log level of kubelet of w1 is still 6 instead of 0 since run {RUN}"
            in finding.summary
        )
        assert finding.evidence[0].path == f"/var/lib/kubemend/journal/{RUN}/001-raise.json"
        assert f"kubemend_run_id={RUN}" in finding.remedy


def test_left_behind_of_a_host_that_does_not_answer(world):
    world.silence("m2")
    assert [
        item.verdict
        for item in world.judge().verdicts
        if item.code == "KM903" and item.host == "m2"
    ] == ["unknown"]


@pytest.mark.parametrize(
    ("work", "wanted"),
    [
        (None, ([], set(), True)),  # evidence of before it was asked
        (WORK, (["w1"], {"present"}, False)),
        ({**WORK, "lock": {"run_id": CORDON["run"], "held": True}}, ([], {"unknown"}, False)),
    ],
)
def test_where_masters_were_left_out_the_one_that_asked_the_api_speaks_for_them(
    world, work, wanted
):
    cordon_worker(world)
    for name in ("m1", "m2", "m3"):
        world.silence(name, "not_asked")
    if work:
        world.api["collectors"]["work"] = {"status": "ok", "data": work}
    assert km903(world) == wanted


@pytest.mark.parametrize(
    "journal",
    [
        {"lock": {"run_id": CORDON["run"], "held": True}},
        {"unproven": [{"run_id": CORDON["run"], "step": "x", "running": True}]},
    ],
)
def test_whose_cordon_it_is_while_its_run_may_be_at_work(world, journal):
    """The verdict is not clear, because no later run would look at the node again."""
    cordon_worker(world)
    world.documents["m1"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {"levels": [], **journal},
    }
    found, verdicts, _dummy = km903(world)
    assert not found
    assert "unknown" in verdicts


def test_a_cordon_that_somebody_comes_back_for_is_no_fault(world):
    cordon_worker(world, held=True)
    assert not km903(world)[0]
