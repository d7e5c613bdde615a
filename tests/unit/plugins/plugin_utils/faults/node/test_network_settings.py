# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a host that work against its network plugin: KM534. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import ended_pods, network_evidence
from tests.unit.support.api_nodes import node
from tests.unit.support.network_evidence import interface, service

STARTED = 1799990000.0
LEAVES = ("[keyfile]", "unmanaged-devices", "interface-name:cali*;interface-name:flannel*")
DEVICE = (("[device-a]", "match-device", "interface-name:cali*,interface-name:flannel.1"),)
OFF = (
    ("[Network]", "ManageForeignRoutes", "no"),
    ("[Network]", "ManageForeignRoutingPolicyRules", "no"),
)


@pytest.fixture
def answered(world):
    network_evidence.network(world)
    world.data("w1", "kubelet")["process"] = {
        "pid": 7,
        "argv": ["kubelet"],
        "started_at": STARTED,
    }
    return world


def judged(world):
    result = world.judge(faults={"KM534"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    found = [item for item in result.findings if item.host == "w1"]
    return verdicts.get("w1", "not judged"), found


def has(world, *rows):
    world.data("w1", "network")["interfaces"] = [interface("eth0"), *rows]


def test_a_node_without_anything_of_note(answered):
    assert judged(answered) == ("clear", [])


@pytest.mark.parametrize(
    ("pods", "plugin", "everywhere", "verdict"),
    [
        (2, "cilium_host", 0, "present"),
        (1, "cilium_host", 0, "present"),
        (0, "cilium_host", 2, "present"),
        (0, "cilium_host", 0, "clear"),
        (2, "lxcbr0", 0, "clear"),  # containers of LXC
    ],
)
def test_the_filter_of_ciliums_pods(answered, pods, plugin, everywhere, verdict):
    has(answered, interface(plugin), interface("lxc*", rp_filter=pods))
    answered.data("w1", "network")["rp_filter"] = everywhere
    assert judged(answered)[0] == verdict


def test_the_filter_that_calico_wants(answered):
    has(answered, interface("cali*", rp_filter=1))
    answered.data("w1", "network")["rp_filter"] = 1
    assert judged(answered) == ("clear", [])


@pytest.mark.parametrize(
    ("plugin", "rows", "since", "severity"),
    [
        ("eni*", (), STARTED + 600, "warning"),
        ("eni*", (), STARTED - 600, "info"),
        ("eni*", (), None, "info"),
        ("eni*", OFF[:1], STARTED + 600, "warning"),
        ("eni*", OFF, STARTED + 600, None),
        ("cilium_host", (), STARTED + 600, "info"),
        ("flannel.1", (), STARTED + 600, None),
    ],
)
def test_what_networkd_removes(answered, plugin, rows, since, severity):
    has(answered, interface(plugin, mtu=1450))
    answered.data("w1", "network")["networkd"] = service(*rows, since=since)
    _verdict, found = judged(answered)
    assert [item.severity for item in found] == [severity] * bool(severity)
    assert all("ManageForeignRoutingPolicyRules" in item.summary for item in found)


def test_a_networkd_that_does_not_run(answered):
    has(answered, interface("eni*"))
    answered.data("w1", "network")["networkd"] = service(active=False, since=STARTED + 600)
    assert judged(answered) == ("clear", [])


@pytest.fixture
def canal(answered):
    """Return a world in which NetworkManager runs beside Canal."""
    has(answered, interface("cali*"), interface("flannel.1", mtu=1450))
    for number, name in enumerate(("m1", "m2", "m3", "w1")):
        node(answered, name).update(
            pod_cidrs=[f"10.244.{number}.0/24"], created="2027-01-14T08:00:00Z"
        )
    answered.data("w1", "system")["addresses"] += ["10.244.3.0"]
    answered.data("w1", "network").update(
        network_manager=service(),
        routes=[{"to": f"10.244.{number}.0/24", "dev": "flannel.1"} for number in range(3)],
    )
    return answered


def test_network_manager_does_no_harm_yet(canal):
    _verdict, (found,) = judged(canal)
    assert (found.severity, found.component) == ("info", "NetworkManager")


def test_a_route_that_is_gone(canal):
    del canal.data("w1", "network")["routes"][1]
    _verdict, (found,) = judged(canal)
    assert found.severity == "warning"
    assert "10.244.1.0/24 (m2)" in found.summary


@pytest.mark.parametrize(
    "change",
    [
        {"routes": None},
        {"routes": [], "routes_cut": True},
    ],
)
def test_routes_that_are_not_known_prove_nothing(canal, change):
    canal.data("w1", "network").update(change)
    _verdict, (found,) = judged(canal)
    assert found.severity == "info"


def test_a_flannel_with_networks_of_its_own(canal):
    canal.data("w1", "network")["routes"] = []
    canal.data("w1", "system")["addresses"].remove("10.244.3.0")
    _verdict, (found,) = judged(canal)
    assert found.severity == "info"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ((LEAVES,), "clear"),
        ((("[keyfile]", "unmanaged-devices", "*"),), "clear"),
        ((*DEVICE, ("[device-a]", "managed", "0")), "clear"),
        ((*DEVICE, ("[device-a]", "managed", "1")), "present"),
        ((("[keyfile]", "unmanaged-devices", "interface-name:cali*"),), "present"),
    ],
)
def test_what_network_manager_leaves_alone(canal, rows, verdict):
    canal.data("w1", "network")["network_manager"] = service(*rows)
    assert judged(canal)[0] == verdict


@pytest.mark.parametrize(
    ("legacy", "nft", "verdict"),
    [
        (True, True, "present"),
        (True, False, "clear"),
        (True, None, "clear"),
        (False, None, "clear"),
        (None, None, "unknown"),
    ],
)
def test_two_backends_of_iptables(answered, legacy, nft, verdict):
    rules = {"tables": ["nat"], "legacy": legacy, "nft": nft}
    answered.data("w1", "network")["iptables"] = rules
    assert judged(answered)[0] == verdict


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([interface("flannel.1", 1450, kind="vxlan")], "clear"),
        ([interface("flannel.1", 1500, kind="vxlan")], "present"),
        ([interface("flannel.1", 1500, kind="vxlan"), interface("eth1", 9000)], "clear"),
        ([interface("vxlan.calico", 1480, kind="vxlan"), interface("cni0", 9000)], "present"),
        ([interface("tunl0", 1500)], "clear"),  # the kernel makes it with the module ipip
        ([interface("cilium_vxlan", 1500, kind="vxlan")], "clear"),
    ],
)
def test_a_tunnel_that_takes_too_large_packets(answered, rows, verdict):
    has(answered, *rows)
    assert judged(answered)[0] == verdict


def test_a_collector_that_failed_is_unknown(answered):
    answered.documents["w1"]["collectors"]["network"] = {"status": "error", "data": None}
    assert judged(answered) == ("unknown", [])


def test_older_evidence_is_not_judged(answered):
    for document in answered.documents.values():
        document["collectors"].pop("network", None)
    assert judged(answered) == ("not judged", [])


WAITING = {
    "node": "w1",
    "namespace": "kube-system",
    "owner": "DaemonSet/antrea-agent",
    "state": "Init:CrashLoopBackOff",
    "pods": 1,
    "names": ["antrea-agent-7xk2p"],
}


@pytest.mark.parametrize(
    ("pods", "modules", "severity"),
    [
        ({}, {"openvswitch": "available"}, "warning"),
        ({}, {"openvswitch": "absent"}, "critical"),
        ({}, {"openvswitch": "loaded"}, None),
        ({}, {"openvswitch": "builtin"}, None),
        ({}, {"openvswitch": None}, None),
        ({}, {}, None),
        ({"node": "m1"}, {"openvswitch": "absent"}, None),
        ({"owner": "Deployment/web"}, {"openvswitch": "absent"}, None),
        ({"owner": "DaemonSet/kube-proxy"}, {"xt_conntrack": "absent"}, "critical"),
        ({"owner": "DaemonSet/kube-proxy"}, {"xt_conntrack": "available"}, None),
    ],
)
def test_modules_of_a_plugin_that_does_not_start(answered, pods, modules, severity):
    answered.data("w1", "network")["modules"] = modules
    answered.data("api", "pod_start")["pods"] = [{**WAITING, **pods}]
    _verdict, found = judged(answered)
    assert [item.severity for item in found] == [severity] * bool(severity)


def test_modules_matter_where_a_plugin_does_not_start(answered):
    answered.data("w1", "network")["modules"] = {"openvswitch": "absent", "xt_mark": "absent"}
    assert judged(answered) == ("clear", [])


@pytest.mark.parametrize(
    ("pods", "tunnel", "name", "verdict"),
    [
        (1500, 1450, "vxlan.calico", "present"),
        (1450, 1450, "vxlan.calico", "clear"),
        (1500, None, "vxlan.calico", "clear"),
        # flannel.1 may be left of a backend that is no longer used
        (1500, 1450, "flannel.1", "clear"),
    ],
)
def test_packets_of_pods_that_their_tunnel_does_not_take(answered, pods, tunnel, name, verdict):
    has(answered, interface("cali*", mtu=pods), interface(name, mtu=tunnel), interface("eth0"))
    assert judged(answered)[0] == verdict


RPF = "2019-04-19 [FATAL][1436] int_dataplane.go 824: Kernel's RPF check is set to 'loose'."


@pytest.mark.parametrize(
    ("value", "line", "verdict"),
    [
        (2, RPF, "present"),
        (1, RPF, "clear"),  # it was set since
        (2, "level=fatal msg=Unauthorized", "clear"),  # Calico is told to accept it
    ],
)
def test_the_filter_that_calico_refuses(answered, value, line, verdict):
    answered.data("w1", "network")["rp_filter"] = value
    ended_pods.end(answered, pod="canal-bcdfg", container="calico-node", line=line)
    told, found = judged(answered)
    assert told == verdict
    assert [(item.component, item.severity) for item in found] == [
        ("rp_filter", "critical") for _item in found
    ]
    assert all("rp_filter = 1" in item.remedy for item in found)
