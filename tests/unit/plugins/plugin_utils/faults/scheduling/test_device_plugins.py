# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What device plugins say of a resource that no node offers: a part of KM210."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.saying_pods import say

POOL = (
    "I0614 14:44:34.514448 1 manager.go:138] no devices in device pool, skipping creating resource"
)
POOL += " server for {}"
NVIDIA = "No devices found. Waiting indefinitely."
SRIOV = {"pod": "kube-sriov-device-plugin-xk4vn", "container": "kube-sriovdp"}
GPU = {"pod": "nvidia-device-plugin-daemonset-bcdfg", "container": "nvidia-device-plugin-ctr"}


def asks(world: Any, name: str) -> None:
    world.data("api", "pending")["items"].append(
        {
            "namespace": "shop",
            "names": ["cart-1"],
            "pods": 1,
            "since": "2027-01-15T07:40:00Z",
            "owner": None,
            "scheduler": "default-scheduler",
            "message": f"0/4 nodes are available: 1 Insufficient {name}, 3 node(s) had untolerated"
            " taint {node-role.kubernetes.io/control-plane: }.",
            "tolerations": [],
            "targets": [],
            "asks": {name: 1},
        }
    )


def told(world: Any, pod: dict[str, str], *lines: str, host: str = "w1") -> None:
    say(world, host=host, entries=[], told=list(lines), **pod)


def found(world: Any) -> Any:
    (one,) = [row for row in world.judge(faults={"KM210"}).findings if row.code == "KM210"]
    return one


@pytest.mark.parametrize(
    "line",
    [
        POOL.format("intel_sriov_netdevice"),
        "Warning: no devices in device pool, creating empty resource server for"
        " intel_sriov_netdevice",
    ],
)
def test_a_plugin_whose_selectors_find_no_device(world, line):
    asks(world, "intel.com/intel_sriov_netdevice")
    told(world, SRIOV, line)
    one = found(world)
    assert "kube-system/kube-sriov-device-plugin on w1 says: " in one.summary
    assert "its selectors for intel_sriov_netdevice name" in one.summary
    assert "manager.go:138" not in one.summary
    assert one.remedy.startswith("lspci -nn")
    assert (one.evidence[-1].host, one.evidence[-1].text) == ("w1", line)


def test_a_plugin_of_the_vendor_that_finds_nothing(world):
    asks(world, "nvidia.com/gpu")
    told(world, GPU, NVIDIA)
    one = found(world)
    assert NVIDIA in one.summary
    assert "Known cause: The NVIDIA plugin sees no GPU" in one.summary


def test_what_a_plugin_says_of_a_resource_and_has_no_known_cause(world):
    asks(world, "squat.ai/capture_card")
    pod = {"pod": "generic-device-plugin-bcdfg", "container": "generic-device-plugin"}
    told(world, pod, "error: no such device for squat.ai/capture_card")
    one = found(world)
    assert "says: error: no such device for squat.ai/capture_card" in one.summary
    assert "Known cause" not in one.summary


@pytest.mark.parametrize(
    ("name", "pod", "line"),
    [
        ("intel.com/intel_sriov_netdevice", SRIOV, POOL.format("mlnx_sriov_rdma")),
        ("intel.com/intel_sriov", SRIOV, POOL.format("intel_sriov_netdevice")),
        ("amd.com/gpu", GPU, NVIDIA),  # of another vendor
        ("nvidia.com/gpu", GPU, "failed to reload configuration: not found"),  # of no known cause
        ("nvidia.com/gpu", {"pod": "cart-1", "container": "cart"}, "no gpu: " + NVIDIA),
        ("example.org/card", SRIOV, "error: no card"),  # a word of any line
        ("cpu", SRIOV, "cpu not found"),
    ],
)
def test_what_is_about_another_resource(world, name, pod, line):
    asks(world, name)
    told(world, pod, line)
    for one in world.judge(faults={"KM210"}).findings:
        assert "says" not in one.summary


def test_a_node_that_is_left_out_for_another_reason(world):
    asks(world, "intel.com/intel_sriov_netdevice")
    told(world, SRIOV, POOL.format("intel_sriov_netdevice"), host="m1")
    assert "says" not in found(world).summary


def test_plugins_that_say_the_same_are_one_clause(world):
    asks(world, "intel.com/intel_sriov_netdevice")
    item = world.data("api", "pending")["items"][0]
    item["message"] = "0/4 nodes are available: 4 Insufficient intel.com/intel_sriov_netdevice."
    for host in ("m1", "w1"):
        told(world, SRIOV, POOL.format("intel_sriov_netdevice"), host=host)
    one = found(world)
    assert "on m1, w1 says" in one.summary
    assert one.summary.count("no devices in device pool") == 1


def test_a_pod_that_is_no_device_plugin_or_says_nothing(world):
    asks(world, "intel.com/intel_sriov_netdevice")
    told(world, SRIOV)
    told(world, {"pod": "cart-1", "container": "cart"}, "no intel_sriov_netdevice for me")
    assert "says" not in found(world).summary
