# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses KM602, two network plugins KM603, and missing programs KM604."""

from __future__ import annotations

import pytest

from tests.unit.support.cni_evidence import cni, file, of_w1, reserve
from tests.unit.support.cri_evidence import cri

CALICO = file("10-calico.conflist", "k8s-pod-network", "calico", "portmap")
FLANNEL = file("10-flannel.conflist", "cbr0", "flannel", "portmap")
PODMAN = file("87-podman-bridge.conflist", "podman", "bridge", "portmap")
CRIO = file("100-crio-bridge.conflist", "crio", "bridge")


@pytest.mark.parametrize("code", ["KM602", "KM603", "KM604"])
@pytest.mark.parametrize(
    ("status", "verdict"),
    [("not_asked", "not judged"), ("error", "unknown"), ("absent", "not_applicable")],
)
def test_without_an_answer(world, code, status, verdict):
    world.documents["w1"]["collectors"]["cni"] = {"status": status, "data": None}
    assert of_w1(world, code) == (verdict, [])


@pytest.mark.parametrize("code", ["KM602", "KM603", "KM604"])
def test_a_node_without_a_configuration_is_not_judged(world, code):
    cni(world, files=[file("99-loopback.conf", "lo", "loopback"), file("a.conf", "", error="x")])
    assert of_w1(world, code) == ("not_applicable", [])


@pytest.mark.parametrize(
    ("row", "verdict", "severity"),
    [
        ({"addresses": 110}, "clear", None),
        ({"addresses": 110, "leaked": 30}, "present", "warning"),
        ({"addresses": 110, "leaked": 20, "empty": 10}, "present", "warning"),
        ({"addresses": 110, "leaked": 4}, "clear", None),
        ({"addresses": 253, "leaked": 200}, "present", "critical"),
        ({"addresses": 253}, "present", "critical"),
        ({"addresses": 253, "leaked": None}, "present", "critical"),
    ],
)
def test_addresses(world, row, verdict, severity):
    reserve(cni(world), **row)
    found, findings = of_w1(world, "KM602")
    assert found == verdict
    assert [finding.severity for finding in findings] == [severity] * (severity is not None)
    for finding in findings:
        assert (finding.host, finding.node, finding.component) == ("w1", "w1", "lab")
        assert f"{row['addresses']} of 253 addresses" in finding.summary
        lost = (row.get("leaked") or 0) + row.get("empty", 0)
        assert ("flock" in finding.remedy) == bool(lost)


def test_where_the_sandboxes_are_not_known_nothing_is_clear(world):
    reserve(cni(world), leaked=None)
    world.documents["w1"]["collectors"]["cri"] = {"status": "error", "data": None}
    assert of_w1(world, "KM602")[0] == "unknown"
    cri(world, sandboxes=None)
    assert of_w1(world, "KM602")[0] == "unknown"


def test_another_management_of_addresses_is_not_judged(world):
    cni(world, files=[CALICO])
    assert of_w1(world, "KM602") == ("not_applicable", [])


@pytest.mark.parametrize("subnets", [[], ["fd00::/64"], ["10.0.0.0/24", "fd00::/64"], ["x"]])
def test_a_range_that_is_not_known_is_never_full(world, subnets):
    data = cni(world)
    data["files"][0]["ipam"][0]["subnets"] = subnets
    reserve(data, addresses=5000)
    assert of_w1(world, "KM602")[0] == "clear"


@pytest.mark.parametrize(
    ("files", "verdict", "severity"),
    [
        ([CALICO], "clear", None),
        ([CALICO, PODMAN], "clear", None),
        ([CALICO, file("99-loopback.conf", "lo", "loopback")], "clear", None),
        ([CALICO, {**CALICO, "name": "20-calico.conflist"}], "clear", None),
        ([CALICO, {**FLANNEL, "error": "it is no JSON object"}], "clear", None),
        ([file("00-multus.conf", "multus", "multus"), CALICO], "clear", None),
        ([CALICO, FLANNEL], "present", "warning"),
        ([CRIO, FLANNEL], "present", "critical"),
    ],
)
def test_two_plugins(world, files, verdict, severity):
    cni(world, files=files)
    found, findings = of_w1(world, "KM603")
    assert found == verdict
    assert [finding.severity for finding in findings] == [severity] * (severity is not None)
    for finding in findings:
        assert f"uses {files[0]['name']}" in finding.summary
        assert "10-flannel.conflist (Flannel)" in finding.summary
        assert len(finding.evidence) == 2


@pytest.mark.parametrize(
    ("other", "reserved", "verdict"),
    [
        (CRIO, {"addresses": 2}, "present"),
        (CRIO, {"addresses": 2, "leaked": None}, "present"),
        (CRIO, {"addresses": 2, "leaked": 1, "empty": 1}, "clear"),
        (CRIO, {"addresses": 2, "held": 1, "leaked": 1}, "present"),
        (CRIO, {"addresses": 0, "leaked": None}, "clear"),
        (CRIO, None, "clear"),
        (PODMAN, {"addresses": 2, "held": 2}, "present"),
        # a container that has just been made is not of a pod, either
        (PODMAN, {"addresses": 2, "held": 0}, "clear"),
        (PODMAN, {"addresses": 2}, "clear"),
        # podman has containers of its own, which the runtime of pods does not know
        (PODMAN, {"addresses": 2, "leaked": 2}, "clear"),
        (PODMAN, {"addresses": 2, "leaked": None}, "clear"),
    ],
)
def test_pods_that_came_before_the_network_plugin_s_file(world, other, reserved, verdict):
    ipam = {"type": "host-local", "data_dir": "", "subnets": ["10.85.0.0/16"]}
    data = cni(world, files=[CALICO, {**other, "ipam": [ipam]}])
    if reserved is not None:
        reserve(data, network=other["network"], folder="/var/lib/cni/networks/x", **reserved)
    found, findings = of_w1(world, "KM603")
    assert found == verdict
    assert [finding.severity for finding in findings] == ["warning"] * (verdict == "present")
    for finding in findings:
        assert f"have addresses of {other['name']}" in finding.summary
        assert "10-calico.conflist (Calico) was not there" in finding.summary
        assert f"mv /etc/cni/net.d/{other['name']} " in finding.remedy
        assert "10.85.0.0/16" in finding.remedy
        told = 'cni_default_network = "k8s-pod-network"'
        assert (told in finding.remedy) == (other is CRIO)
        assert len(finding.evidence) == 3


def test_addresses_of_another_plugin_s_network_are_its_own(world):
    data = cni(world, files=[CALICO, {**CRIO, "name": "99-own.conflist", "network": "own"}])
    reserve(data, network="own")
    ((finding,),) = (of_w1(world, "KM603")[1],)
    assert "not 99-own.conflist" in finding.summary


@pytest.mark.parametrize(
    ("programs", "absent"),
    [
        (["bridge", "host-local", "portmap"], ""),
        (["bridge", "host-local"], "portmap"),
        (["portmap"], "bridge and host-local"),
    ],
)
def test_programs(world, programs, absent):
    cni(world, programs=programs)
    verdict, findings = of_w1(world, "KM604")
    assert verdict == ("present" if absent else "clear")
    for finding in findings:
        assert finding.severity == "critical"
        assert f"does not find {absent} in /opt/cni/bin" in finding.summary


@pytest.mark.parametrize(
    ("emptied", "because"), [("/etc/containerd/config.toml", ("KM508",)), (None, ())]
)
def test_a_runtime_whose_configuration_was_emptied_looks_elsewhere(world, emptied, because):
    cni(world, programs=["portmap"])
    runtime = {"kind": "containerd", "emptied": emptied}
    world.documents["w1"]["collectors"]["runtime"] = {"status": "ok", "data": runtime}
    _verdict, (found,) = of_w1(world, "KM604")
    assert found.because == because


def test_a_network_that_is_not_set_up_without_its_programs_follows_from_that(world):
    cni(world, programs=["portmap"])
    node = next(one for one in world.data("api", "nodes")["items"] if one["name"] == "w1")
    message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
    condition = {"type": "Ready", "status": "False", "since": "2027-01-15T07:00:00Z"}
    node.update(ready="False", conditions=[{**condition, "message": message}])
    found = {one.code: one for one in world.judge(faults={"KM519", "KM604"}).findings}
    assert found["KM519"].because == ("KM604",)


def test_what_may_not_be_read_leaves_the_order_unknown(world):
    cni(world, files=[file("05-x.conflist", "", error="denied"), CALICO, FLANNEL])
    assert {of_w1(world, code)[0] for code in ("KM602", "KM603", "KM604")} == {"unknown"}
    cni(world, programs=None)
    assert of_w1(world, "KM604")[0] == "unknown"


def test_a_runtime_that_loads_all_configurations_has_no_first_one(world):
    cni(world, files=[CALICO, FLANNEL])
    cri(world)["config"]["max_conf_num"] = 0
    assert of_w1(world, "KM603")[0] == "clear"


def test_a_runtime_that_is_told_its_network_uses_that_one(world):
    cni(world, files=[CRIO, CALICO], programs=["bridge", "host-local"])
    cri(world)["config"]["default_network"] = CALICO["network"]
    assert of_w1(world, "KM603")[0] == "clear"
    _verdict, (found,) = of_w1(world, "KM604")
    assert CALICO["name"] in found.summary


@pytest.mark.parametrize("rest", [[], [FLANNEL]])
def test_a_configuration_whose_own_files_are_gone(world, rest):
    key = "/ucp-volume-mounts/ucp-node-certs/key.pem"
    cni(world, programs=["calico"], files=[{**CALICO, "missing": [key]}, *rest])
    verdict, (found,) = of_w1(world, "KM604")
    assert (verdict, found.severity) == ("present", "critical")
    for words in (key, "10-calico.conflist (Calico)"):
        assert words in found.summary
    assert key in [proof.path for proof in found.evidence]
    assert ("the runtime takes 10-flannel.conflist then" in found.remedy) is bool(rest)


def test_files_of_a_configuration_that_is_not_used_do_not_count(world):
    cni(world, programs=["calico", "portmap", "flannel"])
    world.data("w1", "cni")["files"] = [FLANNEL, {**CALICO, "name": "99-x.conf", "missing": ["/k"]}]
    assert of_w1(world, "KM604")[0] == "clear"


def test_a_folder_of_a_release_of_k3s_is_of_a_template(world):
    cni(world, programs=[], bin_dirs=["/var/lib/rancher/k3s/data/2e877cf/bin"])
    _verdict, (found,) = of_w1(world, "KM604")
    assert "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl" in found.summary
    assert "config.toml.tmpl" in found.remedy


def test_where_programs_lie_may_be_unknown(world):
    cni(world, bin_dirs=None, programs=None)
    assert of_w1(world, "KM604") == ("not_applicable", [])


@pytest.mark.parametrize(
    ("unit", "kind", "command"),
    [
        ("kubelet.service", "containerd", "compare with crictl pods -q,"),
        ("k3s-agent.service", "embedded", "k3s crictl pods -q"),
        ("rke2-server.service", "embedded", "/var/lib/rancher/rke2/bin/crictl pods -q"),
        ("kubelet.service", "docker", "docker ps -aq --no-trunc"),
    ],
)
def test_each_runtime_has_its_command(world, unit, kind, command):
    world.data("w1", "kubelet")["unit"]["name"] = unit
    world.documents["w1"]["collectors"]["runtime"] = {"status": "ok", "data": {"kind": kind}}
    reserve(cni(world), addresses=110, leaked=30)
    (finding,) = of_w1(world, "KM602")[1]
    assert command in finding.remedy
    assert "/var/lib/cni/networks/lab" in finding.summary


CILIUM = file("05-cilium.conflist", "cilium", "cilium-cni")
BAK = "00-multus.conf.cilium_bak"


@pytest.mark.parametrize(
    ("files", "aside", "multus", "verdict"),
    [
        ([CILIUM], [BAK], True, "present"),
        # Multus was removed, or has its file again
        ([CILIUM], [BAK], False, "clear"),
        ([CILIUM], [BAK], None, "clear"),
        ([file("00-multus.conf", "multus", "multus"), CILIUM], [BAK], True, "clear"),
        ([CILIUM], ["87-podman-bridge.conflist.cilium_bak"], True, "clear"),
        ([CILIUM], [], True, "clear"),
        ([CALICO], [BAK], True, "clear"),
    ],
)
def test_cilium_that_put_multus_aside(world, files, aside, multus, verdict):
    cni(world, files=files, aside=aside, multus=multus)
    found, findings = of_w1(world, "KM603")
    assert found == verdict
    for finding in findings:
        assert "Cilium put 00-multus.conf aside" in finding.summary
        assert "cni.exclusive=false" in finding.remedy
        assert finding.severity == "warning"
