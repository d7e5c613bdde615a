# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that share one kernel.

One finding for what is the kernel's, and the holder named for all of them.
"""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    FILE_MAX,
    INSTANCES,
    PID_MAX,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    kernel_settings,
)
from tests.unit.support.fake_limits import holder, record, well

BOOT, OTHER = "0b5c7a1e-1f0e-4d4e-9d53-0d5a3c1f2b11", "9f5c7a1e-1f0e-4d4e-9d53-0d5a3c1f2b99"
SPACE = "user:[4026531837]"
HOSTS = ("m1", "m2", "m3", "w1")


def put(world, host, name, data):
    world.documents[host]["collectors"][name] = {
        "status": "ok",
        "data": data,
        "truncated": False,
        "source": None,
        "duration_ms": 1,
        "error": None,
    }


@pytest.fixture(name="nodes")
def _nodes(world):
    """{host: what its collector limits says}.

    Containers of one machine on which nothing is wrong.
    """
    found = {}
    for host in HOSTS:
        found[host] = {**copy.deepcopy(well()), "user_ns": SPACE, "used_up": []}
        put(world, host, "limits", found[host])
        world.data(host, "system")["boot_id"] = BOOT
    return found


def used_up(nodes, *hosts):
    for host in hosts or HOSTS:
        nodes[host]["inotify"] = {"instance": "EMFILE", "opened": 0, "watch": "untried", "uid": 0}
        nodes[host]["used_up"] = ["inotify"]


def walked(world, host, *holders):
    put(
        world,
        host,
        "descriptors",
        {
            "processes": 9,
            "denied": 0,
            "complete": True,
            "uids": [],
            "inotify": list(holders),
            "nofile": [],
        },
    )


def judged(world, *codes, deep=False):
    result = world.judge(faults=frozenset(codes), deep=deep)
    return result, [(item.code, item.host, item.hosts) for item in result.findings]


def test_one_finding_for_all_hosts_of_a_kernel(world, nodes):
    used_up(nodes)
    result, found = judged(world, "KM402")
    assert found == [("KM402", "m1", HOSTS)]
    assert {(item.host, item.verdict) for item in result.verdicts} == {
        (host, "present") for host in HOSTS
    }


def test_the_holder_is_named_for_all_of_them_without_the_deep_tier(world, nodes):
    used_up(nodes)
    for host in HOSTS:
        walked(
            world,
            host,
            (
                holder(77, "python3", instances=100)
                if host == "w1"
                else holder(5, "systemd", instances=9)
            ),
        )
    result, found = judged(world, "KM401", "KM402")
    assert found == [("KM401", "w1", ("w1", "m1", "m2", "m3"))]
    assert "python3" in result.findings[0].summary
    assert {(item.code, item.verdict) for item in result.verdicts} == {
        ("KM401", "present"),
        ("KM402", "not_applicable"),
    }
    assert result.not_judged == ()


@pytest.mark.parametrize("change", ["boot", "space", "no space", "limit"])
def test_what_is_not_shared(world, nodes, change):
    used_up(nodes, "m1", "m2")
    if change == "boot":
        world.data("m2", "system")["boot_id"] = OTHER
    elif change == "space":
        nodes["m2"]["user_ns"] = "user:[4026532901]"
    elif change == "no space":
        del nodes["m2"]["user_ns"]  # an older release collected it
    else:
        nodes["m2"]["kernel"][INSTANCES] = "129"
    assert judged(world, "KM402")[1] == [("KM402", "m1", ()), ("KM402", "m2", ())]


@pytest.mark.parametrize("boot", [None, "", "x", 7, []])
def test_a_boot_without_an_id(world, nodes, boot):
    used_up(nodes, "m1", "m2")
    for host in HOSTS:
        world.data(host, "system")["boot_id"] = boot
    assert len(judged(world, "KM402")[1]) == 2


def test_file_handles_and_process_ids_are_the_whole_machines(world, nodes):
    for host, one in nodes.items():
        one["user_ns"] = None
        one["file_nr"], one["kernel"][FILE_MAX], one["threads"] = (
            [995, 1000],
            "1000",
            int(one["kernel"]["kernel.threads-max"]),
        )
        put(
            world,
            host,
            "descriptors",
            {
                "processes": 9,
                "denied": 0,
                "complete": True,
                "uids": [],
                "inotify": [],
                "nofile": [],
                "open": [{**holder(7, "leak"), "open": 900}] if host == "m3" else [],
                "threads": [{**holder(8, "forks"), "threads": 99000}] if host == "m2" else [],
            },
        )
    result, found = judged(world, "KM405", "KM411")
    assert [(code, host, len(hosts)) for code, host, hosts in found] == [
        ("KM405", "m3", 4),
        ("KM411", "m2", 4),
    ]
    assert "leak" in result.findings[0].summary
    assert "forks" in result.findings[1].summary
    assert all(item.evidence[-1].pid or item.evidence[1].pid for item in result.findings)


def raised(nodes, value="4096"):
    for one in nodes.values():
        one["kernel"][INSTANCES] = value


def test_a_setting_that_no_file_says_is_one_finding(world, nodes):
    raised(nodes)
    assert judged(world, "KM407")[1] == [("KM407", "m1", HOSTS)]


def test_the_file_of_one_host_is_enough_for_its_kernel(world, nodes):
    raised(nodes)
    nodes["w1"]["sysctl_files"].append(
        record("/etc/sysctl.d/99-zz-kubemend.conf", f"{INSTANCES} = 8192\n")
    )
    nodes["w1"]["kernel"][INSTANCES] = "4096"
    result, found = judged(world, "KM407")
    # 8192 is a wish of w1's own, which the kernel does not have
    assert found == [("KM407", "w1", ())]
    assert {item.verdict for item in result.verdicts if item.host != "w1"} == {"not_applicable"}


def test_files_that_contradict_each_other_stay_their_hosts(world, nodes):
    raised(nodes)
    nodes["m1"]["sysctl_files"].append(record("/etc/sysctl.d/50-a.conf", f"{INSTANCES} = 4096\n"))
    nodes["w1"]["sysctl_files"] += [
        record("/etc/sysctl.d/50-a.conf", f"{INSTANCES} = 4096\n"),
        record("/etc/sysctl.d/60-b.conf", f"{INSTANCES} = 128\n"),
    ]
    assert judged(world, "KM407")[1] == [("KM407", "w1", ())]


def test_a_plan_has_one_step(world, nodes):
    used_up(nodes)
    result, clusters = fault_engine.evaluate_clusters(
        [*copy.deepcopy(list(world.documents.values())), world.api], frozenset({"KM402"})
    )
    steps = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        plan.Consent(max_risk=1),
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert [(step.host, step.component) for step in steps] == [("m1", INSTANCES)]
    assert set(steps[0].nodes) == {"m2", "m3", "w1"}


def test_what_is_used_up_and_does_not_last_is_one_step(world, nodes):
    raised(nodes, "200")
    used_up(nodes)
    walked(world, "w1", holder(77, "python3", instances=90))
    result, clusters = fault_engine.evaluate_clusters(
        [*copy.deepcopy(list(world.documents.values())), world.api], frozenset({"KM402", "KM407"})
    )
    assert {(item.code, item.host) for item in result.findings} == {
        ("KM402", "w1"),
        ("KM407", "w1"),
    }
    steps = plan.plan(
        result.findings,
        clusters,
        world.documents.__getitem__,
        plan.Consent(max_risk=1),
        kernel_settings.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    assert [step.host for step in steps] == ["w1"]


def test_what_one_host_alone_says_is_its_own(world, nodes):
    nodes["m1"]["threads"] = 10**7
    nodes["m1"]["kernel"][PID_MAX] = "4194304"
    assert judged(world, "KM411")[1] == [("KM411", "m1", ())]
