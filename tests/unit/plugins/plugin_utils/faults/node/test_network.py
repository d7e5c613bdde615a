# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet posts of its node: no network for pods, KM519, and pressure, KM523. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence, waiting_pods
from tests.unit.support.ended_pods import end

CONTAINERD = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
    " message:Network plugin returns error: cni plugin not initialized"
)
DOCKER = (
    "runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:docker:"
    " network plugin is not ready: cni config uninitialized"
)
CRIO = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
    " message:Network plugin returns error: No CNI configuration file in"
    " /etc/kubernetes/cni/net.d/. Has your network provider started?"
)
SINCE = "2027-01-15T07:55:00Z"
REASONS = {
    "MemoryPressure": "KubeletHasInsufficientMemory",
    "DiskPressure": "KubeletHasDiskPressure",
    "PIDPressure": "KubeletHasInsufficientPID",
}


def judged(world, code):
    result = world.judge(faults=frozenset((code,)))
    return [item.verdict for item in result.verdicts] or ["not judged"], list(result.findings)


def node(world, name="w1"):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def ready(world, status, message=None):
    one = {"type": "Ready", "status": status, "reason": "KubeletNotReady", "since": SINCE}
    node(world).update(
        ready=status, conditions=[one if message is None else {**one, "message": message}]
    )


def networks(world, host="w1", *names, error=None, folder="/etc/cni/net.d", size=300):
    world.data(host, "kubelet")["cni"] = {
        "folder": folder,
        "files": [{"name": name, "size": size} for name in names],
        "error": error,
    }


@pytest.mark.parametrize("code", ["KM519", "KM523"])
def test_nothing_to_say(world, code):
    assert judged(world, code) == (["clear"], [])
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world, code) == (["unknown"], [])
    world.api = None
    for document in world.documents.values():
        document.update(
            cluster_key=None, node=None, collectors={"kubelet": {"status": "absent", "data": None}}
        )
    assert set(judged(world, code)[0]) <= {"not_applicable"}


@pytest.mark.parametrize(
    ("status", "message", "verdict"),
    [
        ("False", CONTAINERD, "present"),
        ("False", DOCKER, "present"),
        ("False", CRIO, "present"),
        ("False", f"[PLEG is not healthy, {CONTAINERD}]", "present"),
        ("False", "PLEG is not healthy: pleg was last seen active 3m ago", "clear"),
        ("False", "", "clear"),
        ("False", None, "not judged"),
        ("True", CONTAINERD, "clear"),
        ("Unknown", "Kubelet stopped posting node status.", "clear"),
        ("Unknown", None, "clear"),
    ],
)
def test_what_a_kubelet_posts(world, status, message, verdict):
    ready(world, status, message)
    verdicts, found = judged(world, "KM519")
    assert verdicts == [verdict]
    assert len(found) == (verdict == "present")
    for one in found:
        assert (one.host, one.node, one.severity, one.risk) == ("w1", "w1", "critical", 0)
        assert one.summary.startswith(
            f"the node is NotReady since {SINCE} because it has no network for pods"
        )
        assert message[:60] in one.evidence[0].text
        assert "--field-selector spec.nodeName=w1" in one.remedy


@pytest.mark.parametrize(
    ("given", "words", "advice"),
    [
        ({}, "is empty (/etc/cni/net.d)", "was a network plugin ever installed?"),
        (
            {"error": "missing"},
            "is not there (/etc/cni/net.d)",
            "was a network plugin ever installed?",
        ),
        (
            {"error": "denied"},
            "(/etc/cni/net.d) could not be listed: denied",
            "network plugin's pod",
        ),
        ({"folder": "/opt/cni/conf"}, "is empty (/opt/cni/conf)", ""),
        (
            {"names": ["10-calico.conflist"]},
            "holds 10-calico.conflist (/etc/cni/net.d)",
            "calico-node (Calico)",
        ),
        ({"names": ["10-calico.conflist"]}, "holds 10-calico.conflist", "see the runtime's log"),
        (
            {"names": ["05-cilium.conflist"], "size": 0},
            "has only empty files: 05-cilium.conflist (/etc/cni/net.d)",
            "cilium (Cilium)",
        ),
        ({"names": ["87-podman.conflist"]}, "holds 87-podman.conflist", "see the runtime's log"),
        (None, "is not known here", "network plugin's pod"),
    ],
)
def test_what_its_folder_holds(world, given, words, advice):
    ready(world, "False", CONTAINERD)
    if given is not None:
        networks(world, "w1", *given.pop("names", ()), **given)
    if "ever installed" in advice:
        networks(world, "m1")
    _dummy, (found,) = judged(world, "KM519")
    assert (
        found.summary.endswith(f"its folder of CNI configuration {words}") or words in found.summary
    )
    assert advice in found.remedy


def test_other_hosts_tell_which_plugin_it_is(world):
    ready(world, "False", CONTAINERD)
    networks(world)
    networks(world, "m2", "10-flannel.conflist")
    _verdict, (found,) = judged(world, "KM519")
    assert "the pod of kube-flannel-ds (Flannel)" in found.remedy
    assert "ever installed" not in found.remedy
    networks(world, "m2", "10-own.conflist")
    _dummy, (found,) = judged(world, "KM519")
    assert found.remedy.endswith("; others have 10-own.conflist (m2)")


def test_a_host_whose_kubelet_is_part_of_another_program_reads_another_folder(world):
    ready(world, "False", CONTAINERD)
    networks(world, "w1", "87-podman.conflist")
    world.data("w1", "kubelet")["argv"] = ["/usr/local/bin/k3s", "agent"]
    assert "is not known here" in judged(world, "KM519")[1][0].summary


def test_a_node_that_is_no_host(world):
    ready(world, "False", CONTAINERD)
    node(world)["name"] = "stranger"
    _dummy, (found,) = judged(world, "KM519")
    assert (found.host, found.node) == (None, "stranger")
    assert "is not known here" in found.summary


@pytest.mark.parametrize(
    ("kinds", "status", "verdict"),
    [
        (["MemoryPressure"], "True", "present"),
        (["DiskPressure"], "True", "present"),
        (["PIDPressure"], "True", "present"),
        (["DiskPressure", "PIDPressure"], "True", "present"),
        (["DiskPressure"], "Unknown", "clear"),
        (["NetworkUnavailable"], "True", "clear"),
        ([], "", "clear"),
    ],
)
def test_pressure(world, kinds, status, verdict):
    node(world)["conditions"] += [
        {"type": kind, "status": status, "reason": REASONS.get(kind, "Kubelet"), "since": SINCE}
        for kind in kinds
    ]
    node(world)["taints"] = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    verdicts, found = judged(world, "KM523")
    assert verdicts == [verdict]
    assert len(found) == (verdict == "present")
    for one in found:
        assert (one.host, one.severity, one.risk) == ("w1", "warning", 0)
        assert all(f"{kind} since {SINCE}" in one.summary for kind in kinds)
        assert any(
            "carries node.kubernetes.io/disk-pressure:NoSchedule" in proof.text
            for proof in one.evidence
        ) == ("DiskPressure" in kinds)


def test_an_older_release_did_not_collect_conditions(world):
    for name in ("conditions", "taints"):
        del node(world)[name]
    assert judged(world, "KM523")[0] == ["not judged"]


def test_what_other_hosts_have_is_said_only_where_somebody_looked(world):
    ready(world, "False", CONTAINERD)
    networks(world, "w1")
    _dummy, (found,) = judged(world, "KM519")
    assert "ever installed" not in found.remedy
    assert "others have" not in found.remedy


@pytest.mark.parametrize(
    ("created", "verdict"),
    [("2027-01-15T07:58:30Z", "clear"), ("2027-01-15T07:57:00Z", "present"), (None, "present")],
)
def test_a_node_that_has_just_joined_has_time(world, created, verdict):
    ready(world, "False", CONTAINERD)
    next(item for item in world.data("api", "nodes")["items"] if item["name"] == "w1")[
        "created"
    ] = created
    assert judged(world, "KM519")[0] == [verdict]


@pytest.mark.parametrize(("state", "causes"), [("absent", ("KM520",)), ("loaded", ())])
def test_a_kernel_without_modules_explains_it(world, state, causes):
    ready(world, "False", CONTAINERD)
    networks(world)
    network_evidence.network(world, modules={"xt_conntrack": state})
    result = world.judge(faults=frozenset(("KM519", "KM520")))
    (found,) = [item for item in result.findings if item.code == "KM519"]
    assert found.because == causes


@pytest.mark.parametrize(
    ("owner", "kernel", "options", "words"),
    [
        ("DaemonSet/cilium", "3.10.0-957.el7", None, ("mount-cgroup ends", "older than Cilium")),
        ("DaemonSet/cilium", "5.15.0-kvm", {"NET_CLS_ACT": "n"}, ("without CONFIG_NET_CLS_ACT",)),
        ("DaemonSet/cilium", "5.15.0-kvm", {"NET_CLS_ACT": "y"}, ("mount-cgroup ends",)),
        ("DaemonSet/calico-node", "3.10.0-957.el7", None, ("mount-cgroup ends",)),
        ("ReplicaSet/app", "3.10.0-957.el7", None, ()),
        ("DaemonSet/log-shipper", "3.10.0-957.el7", None, ()),
    ],
)
def test_the_pod_of_the_plugin_that_does_not_stay_up(world, owner, kernel, options, words):
    ready(world, "False", CONTAINERD)
    networks(world)
    network_evidence.network(world, kernel_options=options)
    world.data("w1", "system")["kernel"] = kernel
    said = "Back-off restarting failed container mount-cgroup in pod x_kube-system(1)"
    waiting_pods.wait(world, "w1", owner, 1, "Init:CrashLoopBackOff", event=("BackOff", said))
    _verdicts, (found,) = judged(world, "KM519")
    assert all(word in found.summary for word in words)
    assert ("mount-cgroup" in found.summary) is bool(words)
    assert ("Cilium needs" in found.summary) is (len(words) == 2 or "without" in "".join(words))
    if words:
        assert "-c mount-cgroup --previous" in found.remedy or "without" in words[0]


@pytest.mark.parametrize(
    ("server", "said", "is_named"),
    [
        ("10.96.0.10", "lookup quay.io on 127.0.0.53:53: server misbehaving", True),
        ("192.0.2.53", "lookup quay.io on 127.0.0.53:53: server misbehaving", False),
        ("10.96.0.10", "manifest unknown", False),
    ],
)
def test_a_plugin_whose_image_needs_the_dns_that_needs_the_plugin(world, server, said, is_named):
    ready(world, "False", CONTAINERD)
    networks(world)
    network_evidence.network(world)["resolvers"] = [
        {"path": "/etc/resolv.conf", "nameservers": [server], "search": []}
    ]
    world.data("w1", "kubelet")["argv"] = ["kubelet", "--cluster-dns=10.96.0.10"]
    event = ("Failed", f'Failed to pull image "quay.io/calico/node": {said}')
    owner = "DaemonSet/calico-node"
    waiting_pods.wait(world, "w1", owner, 1, "Init:ImagePullBackOff", event=event)
    _verdicts, (found,) = judged(world, "KM519")
    assert ("its name server is 10.96.0.10 alone" in found.summary) is is_named
    assert ("name server outside the cluster" in found.remedy) is is_named


@pytest.mark.parametrize(("container", "is_named"), [("aws-node", True), ("kube-proxy", False)])
def test_a_plugin_that_ends_says_why_in_its_own_file(world, container, is_named):
    ready(world, "False", CONTAINERD)
    networks(world)
    own = {"path": "/x.log", "lines": ['{"level":"error","msg":"no table nat"}'], "error": None}
    end(world, pod=f"{container}-bcdfg", container=container, own=own)
    _verdicts, (found,) = judged(world, "KM519")
    assert (f"{container} ends there again and again: no table nat" in found.summary) is is_named


@pytest.mark.parametrize(
    ("runtime", "names", "is_named"),
    [
        ("cri-o://1.17.2", ("10-cilium.conflist",), True),
        ("cri-o://1.17.2", (), False),
        ("containerd://1.7.0", ("10-cilium.conflist",), False),
    ],
)
def test_a_configuration_that_cri_o_did_not_take(world, runtime, names, is_named):
    ready(
        world,
        "False",
        "Network plugin returns error: Missing CNI default network; NetworkReady=false",
    )
    node(world)["runtime_version"] = runtime
    networks(world, "w1", *names)
    _verdicts, (found,) = judged(world, "KM519")
    assert ("CRI-O has not taken it (Missing CNI default network)" in found.summary) is is_named
    assert ("restart crio" in found.remedy) is is_named


@pytest.mark.parametrize(
    ("programs", "folders", "is_told"),
    [
        ([], ["/opt/cni/bin"], True),
        (["loopback"], ["/opt/cni/bin"], False),
        (None, ["/opt/cni/bin"], False),
        (None, None, False),
    ],
)
def test_a_folder_without_programs_is_named(world, programs, folders, is_told):
    networks(world)
    ready(world, "False", DOCKER)
    answer = {"folder": "/etc/cni/net.d", "files": [], "bin_dirs": folders, "programs": programs}
    world.documents["w1"]["collectors"]["cni"] = {"status": "ok", "data": answer}
    _verdict, (found,) = judged(world, "KM519")
    assert ("/opt/cni/bin has no programs" in found.summary) is is_told
    assert ("/opt/cni/bin" in {proof.path for proof in found.evidence}) is is_told
    assert found.remedy.startswith("put the programs of CNI into /opt/cni/bin") is is_told
