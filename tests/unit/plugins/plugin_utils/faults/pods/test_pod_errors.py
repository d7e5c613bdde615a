# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that run and repeat an error, KM560."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence
from tests.unit.support.saying_pods import DOWN, say
from tests.unit.support.waiting_pods import judged, note_of, wait

MODULE = (
    'E0524 12:11:36.123456 1 proxier.go:857] "Failed to ensure chain exists" err="error creating'
    " chain: exit status 3: modprobe: ERROR: could not insert 'ip_tables': Exec format error\""
)
TIMEOUT = "[ERROR] plugin/errors: 2 example.org. A: read udp 10.0.0.2:1->192.0.2.53:53: i/o timeout"
NVML = "Failed to initialize NVML: could not load NVML library."
PLUGIN = {"pod": "nvidia-device-plugin-bcdfg", "container": "ctr", "entries": [], "told": [NVML]}


def test_a_healthy_cluster_and_missing_evidence(world):
    assert judged(world, "KM560") == (["clear"], [])
    del world.data("m1", "system_pods")["running"]  # of an older release
    assert judged(world, "KM560") == (["not judged"], [])
    world.documents["w1"]["collectors"]["system_pods"] = {"status": "denied", "data": None}
    assert judged(world, "KM560") == (["unknown"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM560")[0]) <= {"not_applicable"}


def test_what_an_agent_of_the_network_says_all_the_time(world):
    say(world)
    verdicts, (found,) = judged(world, "KM560")
    assert verdicts == ["present"]
    assert (found.host, found.node, found.severity) == ("w1", "w1", "warning")
    assert found.summary.startswith("kube-system/calico-node on w1 repeats an error, 60 times in")
    assert DOWN in found.summary
    assert "pods of the node may not reach others" in found.summary
    assert "/calico-node/0.log" in found.remedy
    assert [proof.text for proof in found.evidence] == [DOWN]


def test_a_module_that_kube_proxy_cannot_load(world):
    say(world, MODULE, pod="kube-proxy-bcdfg", container="kube-proxy", count=20)
    (found,) = judged(world, "KM560")[1]
    assert "module ip_tables is not loaded" in found.summary
    assert "/etc/modules-load.d" in found.remedy
    assert "has not loaded" not in found.summary
    assert "refuses it" not in found.summary  # the kernel was not asked


@pytest.mark.parametrize(
    ("container", "line", "is_told"),
    [
        ("kube-proxy", MODULE, True),
        ("kube-proxy", TIMEOUT, False),
        ("calico-node", MODULE, False),
    ],
)
def test_other_modules_that_kube_proxy_needs_are_named(world, container, line, is_told):
    states = {"xt_comment": "available", "nf_conntrack": "loaded", "xt_mark": "absent"}
    network_evidence.network(world, modules=states)
    say(world, line, pod=f"{container}-bcdfg", container=container, count=20)
    (found,) = judged(world, "KM560")[1]
    words = "of what it needs, the host has not loaded xt_comment, xt_mark either"
    assert (words in found.summary) == is_told


def test_felix_that_starts_again_for_the_interface_of_kube_proxy(world):
    line = (
        "2024-06-19 02:12:07.689 [INFO][13926] felix/int_dataplane.go 1347: kube-proxy mode"
        ' changed. Restart felix. ipvsIfaceState="down" ipvsSupport=false'
    )
    say(world, line, count=20)
    (found,) = judged(world, "KM560")[1]
    assert "the interface kube-ipvs0 of kube-proxy" in found.summary
    assert "ip link delete kube-ipvs0" in found.remedy
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("address", "is_named"), [("127.0.0.1:38031", True), ("10.96.0.1:443", False)]
)
def test_a_balancer_of_the_node_that_kube_proxy_does_not_reach(world, address, is_named):
    line = f"E1206 20:01:26.9 1 r.go:1] Failed to list *v1.Service: Get https://{address}/api: dial"
    line += f" tcp {address}: connect: connection refused"
    say(world, line, pod="kube-proxy-bcdfg", container="kube-proxy", count=20)
    (found,) = judged(world, "KM560")[1]
    assert ("kubectl -n kube-system delete pod kube-proxy-bcdfg" in found.remedy) is is_named


def test_a_static_kube_proxy_is_started_again_by_its_manifest(world):
    line = "E1206 20:01:26.9 1 r.go:1] Get https://127.0.0.1:6444/api: dial tcp 127.0.0.1:6444:"
    say(world, f"{line} connect: connection refused", pod="kube-proxy-w1", container="kube-proxy")
    (found,) = judged(world, "KM560")[1]
    assert "kubectl -n" not in found.remedy
    assert "mv /var/lib/rancher/rke2/agent/pod-manifests/kube-proxy.yaml" in found.remedy
    assert "k3s" not in found.remedy


def test_a_server_that_a_resolver_does_not_reach(world):
    say(world, TIMEOUT, pod="coredns-7c4d5b6f8d-bcdfg", container="coredns", count=9, minutes=5)
    (found,) = judged(world, "KM560")[1]
    assert "192.0.2.53:53" in found.summary
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("container", "line", "effect"),
    [
        ("coredns", TIMEOUT, "; names outside the cluster, which it forwards, are not resolved"),
        ("node-cache", TIMEOUT, "; names that it forwards there are not resolved"),
        (
            "coredns",
            "[ERROR] plugin/kubernetes: dial tcp 10.96.0.1:443: connect: no route to host",
            "; names are not resolved where it answers",
        ),
    ],
)
def test_names_that_a_dns_server_forwards_and_those_that_it_knows(world, container, line, effect):
    say(world, line, pod="coredns-7c4d5b6f8d-bcdfg", container=container)
    (found,) = judged(world, "KM560")[1]
    assert found.summary.partition(". Known cause: ")[0].endswith(effect)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (DOWN, {"last": 300}),  # it has ended
        (DOWN, {"count": 9, "minutes": 9}),  # not all the time, and its meaning is not known
        (DOWN, {"count": 60, "minutes": 3}),
        ("E0524 12:11:36.1 1 a.go:1] watch: context canceled", {}),
        # about one object of users
        ('E0524 12:11:36.1 1 a.go:1] pods "a" not found', {"container": "x", "minutes": 5}),
    ],
)
def test_what_is_no_finding(world, line, changed):
    say(world, line, **changed)
    assert judged(world, "KM560") == (["clear"], [])


def test_another_program_s_error_of_an_unknown_meaning_is_an_information(world):
    say(world, "E0524 12:11:36.1 1 a.go:1] odd", pod="x-bcdfg", container="x")
    (found,) = judged(world, "KM560")[1]
    assert found.severity == "info"
    say(world, "E0524 12:11:36.1 1 a.go:1] Unauthorized", pod="y-bcdfg", container="y")
    assert sorted(found.severity for found in judged(world, "KM560")[1]) == ["info", "warning"]


def test_pods_of_one_cause_are_one_finding(world):
    say(world)
    say(world, host="m1", pod="calico-node-hjklm")
    (found,) = judged(world, "KM560")[1]
    assert found.host is None
    assert " on m1, w1 " in found.summary
    assert len(found.evidence) == 2


def test_pods_that_wait_for_such_a_network_follow_from_it(world):
    say(world)
    wait(
        world,
        pods=3,
        event=("FailedCreatePodSandBox", 'plugin type="calico" failed (add): no route to host'),
    )
    (found,) = judged(world, "KM600")[1]
    assert "KM560" in found.because
    (cause,) = judged(world, "KM560")[1]
    assert cause.because == ()


def test_a_log_that_cannot_be_read_is_unknown(world):
    say(world, entries=[], error="Permission denied")
    assert judged(world, "KM560") == (["unknown"], [])
    note = note_of(world, "KM560")
    assert note.startswith("w1: the logs of kube-system/calico-node-bcdfg cannot be read there; ")
    assert "kubectl -n NAMESPACE logs POD" in note


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, ("w1: 3 logs", "were not read")),
        ({"read": 24}, ("w1: 24 of 27 logs",)),
        ({"read": 24, "unread_pods": ["kube-system/a\nb"]}, ("such as kube-system/a b: kubectl",)),
    ],
)
def test_logs_that_were_left_out_are_unknown(world, values, words):
    world.data("w1", "system_pods").update(values, unread=3)
    assert judged(world, "KM560") == (["unknown"], [])
    note = note_of(world, "KM560")
    assert all(word in note for word in (*words, "kubectl -n NAMESPACE logs POD"))
    say(world)
    assert len(judged(world, "KM560")[1]) == 1


def devices(world, **devices):
    next(row for row in world.data("api", "nodes")["items"] if row["name"] == "w1")["devices"] = {
        "nvidia.com/gpu": devices["gpu"]
    }


@pytest.mark.parametrize(("gpu", "is_present"), [([0, 0], True), ([2, 2], False), (None, False)])
def test_a_device_plugin_of_a_node_without_devices(world, gpu, is_present):
    if gpu is not None:
        devices(world, gpu=gpu)
    say(world, **PLUGIN)
    found = judged(world, "KM560")[1]
    assert bool(found) == is_present
    if found:
        assert found[0].summary.startswith("w1 has 0 nvidia.com/gpu; its device plugin")
        assert NVML in found[0].summary
        assert "delete pod nvidia-device-plugin-bcdfg" in found[0].remedy


def test_what_a_node_says_is_bounded(world):
    say(world, "E0524 12:11:36.1 1 a.go:1] \x1b" + "x" * 9000, pod="\x1b" * 900)
    (found,) = judged(world, "KM560")[1]
    assert "\x1b" not in found.summary
    assert len(found.summary) < 1200


LOCK = (
    'E0301 10:00:00.000000 1 proxier.go:1564] "Failed to execute iptables-restore" err="exit status'
    ' 4 (Another app is currently holding the xtables lock. Stopped waiting after 5s.)"'
)


def test_the_cause_of_a_known_message_is_told(world):
    say(world, LOCK, pod="kube-proxy-bcdfg", container="kube-proxy", count=8, minutes=6)
    (found,) = judged(world, "KM560")[1]
    assert "Known cause: Another program of that node holds the lock of iptables" in found.summary
    assert "lsof /run/xtables.lock" in found.remedy
    assert found.severity == "warning"


def test_a_known_message_counts_of_any_pod_of_the_cluster(world):
    line = 'level=fatal msg=x error="listen unix /csi/csi.sock: bind: address already in use"'
    say(world, line, pod="ebs-csi-node-bcdfg", container="ebs-plugin", count=8, minutes=6)
    (found,) = judged(world, "KM560")[1]
    assert "/csi/csi.sock" in found.remedy


METALLB = (
    '{"caller":"main.go:139","error":"no MetalLB configuration in cluster","level":"error",'
    '"msg":"configuration is missing, MetalLB will not function","op":"setConfig"}'
)
REFUSED = "E0524 12:11:36.1 1 a.go:1] dial tcp 192.0.2.9:443: connect: connection refused"


@pytest.mark.parametrize(
    ("namespace", "line", "verdict"),
    [
        ("metallb-system", METALLB, "present"),
        ("metallb-system", REFUSED, "clear"),  # it may be about one object of users
        ("kube-system", REFUSED, "present"),
    ],
)
def test_of_an_add_on_only_what_has_a_known_cause_counts(world, namespace, line, verdict):
    say(world, line, namespace=namespace, pod="controller-bcdfg", container="controller")
    assert judged(world, "KM560")[0] == [verdict]


def test_the_log_of_an_add_on_that_cannot_be_read_is_no_gap(world):
    say(world, namespace="cert-manager", container="webhook", entries=[], error="Permission denied")
    assert judged(world, "KM560") == (["clear"], [])


def test_the_known_cause_of_what_a_device_plugin_misses(world):
    say(world, **PLUGIN)
    devices(world, gpu=[0, 0])
    (found,) = judged(world, "KM560")[1]
    assert "Known cause: The device plugin finds no library of the NVIDIA driver" in found.summary
    assert found.remedy.startswith("nvidia-smi on the node")


REPLACED = "The libraries of the NVIDIA driver were upgraded"
MISMATCH = "nvml error: driver/library version mismatch"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([NVML, MISMATCH], REPLACED),
        ([MISMATCH, NVML], "The device plugin finds no library of the NVIDIA driver"),
        ([MISMATCH, "it gave up"], REPLACED),
    ],
)
def test_the_newest_of_a_device_plugins_lines_with_a_known_cause_counts(world, told, words):
    say(world, **{**PLUGIN, "told": told})
    devices(world, gpu=[0, 0])
    (found,) = judged(world, "KM560")[1]
    assert f"Known cause: {words}" in found.summary


@pytest.mark.parametrize(
    ("interface", "text", "line", "is_told"),
    [
        ("tunl0", "br_netfilter\nipip\n", DOWN, True),
        ("tunl0", "br_netfilter\n# ipip\n", DOWN, False),
        ("vxlan.calico", "ipip\n", DOWN, False),
        ("tunl0", "ipip\n", "bird: Netlink: File exists, error", False),
    ],
)
def test_a_tunnel_that_a_boot_makes_before_calico(world, interface, text, line, is_told):
    data = network_evidence.network(world)
    data["interfaces"].append(network_evidence.interface(interface))
    record = {"path": "/etc/modules-load.d/k8s.conf", "kind": "file", "text": text}
    world.data("w1", "boot")["modules_files"] = [record]
    say(world, line)
    (found,) = judged(world, "KM560")[1]
    assert ("loads the module ipip by /etc/modules-load.d/k8s.conf:" in found.summary) == is_told
    assert ("modprobe -r ipip on the drained node" in found.remedy) == is_told


MIG = "nvidia.com/mig.config.state"
NOT_FOUND = "error setting MIGConfig: error initializing NVML: ERROR_LIBRARY_NOT_FOUND"


def label(world, state):
    for item in world.data("api", "nodes")["items"]:
        if item["name"] == "w1":
            item["labels"] = {MIG: state}


@pytest.mark.parametrize(("state", "is_present"), [("failed", True), ("success", False)])
def test_gpus_that_the_mig_manager_could_not_divide(world, state, is_present):
    manager = {"namespace": "gpu-operator", "pod": "nvidia-mig-manager-bcdfg", "container": "a"}
    say(world, **{**PLUGIN, **manager, "told": [NOT_FOUND]})
    label(world, state)
    found = judged(world, "KM560")[1]
    assert bool(found) == is_present
    for hit in found:
        assert (hit.host, hit.node, hit.component) == ("w1", "w1", "nvidia-mig-manager")
        assert NOT_FOUND in hit.summary
        assert "Known cause" in hit.summary


def test_a_mig_manager_whose_log_is_not_known(world):
    label(world, "failed")
    (found,) = judged(world, "KM560")[1]
    assert (found.severity, len(found.evidence)) == ("warning", 1)


def test_a_mig_manager_is_no_device_plugin(world):
    say(world, **{**PLUGIN, "pod": "nvidia-mig-manager-bcdfg"})
    for item in world.data("api", "nodes")["items"]:
        item["devices"] = {"nvidia.com/gpu": [0, 0]}
    assert judged(world, "KM560")[1] == []


# coreos/fedora-coreos-tracker#927
XTABLES = (
    "E0816 09:14:07.2 1 iptables.go:115] Failed to ensure iptables rules: running [/sbin/iptables"
    " --wait]: exit status 4: Fatal: can't open lock file /run/xtables.lock: Permission denied"
)
AVC = (
    'type=AVC msg=audit(1.0:2): avc:  denied  {{ read }} for  pid=3 comm="iptables" name="{name}"'
    " scontext=system_u:system_r:container_t:s0:c1,c2"
    " tcontext=system_u:object_r:iptables_var_run_t:s0 tclass=file permissive=0"
)


@pytest.mark.parametrize(("name", "is_known"), [("xtables.lock", True), ("other.lock", False)])
def test_a_file_that_selinux_denies_a_container(world, name, is_known):
    line = AVC.format(name=name)
    world.data("w1", "boot").update(
        selinux={"enforce": "1", "config": "enforcing"},
        denials={"count": 1, "lines": [line], "cut": False, "since": True},
    )
    say(world, XTABLES, pod="kube-flannel-bcdfg", container="kube-flannel", count=20)
    (found,) = judged(world, "KM560")[1]
    assert ("SELinux of w1 denies /run/xtables.lock" in found.summary) is is_known
    assert ("privileged: true" in found.remedy) is is_known
    assert ("/var/log/audit/audit.log" in [proof.path for proof in found.evidence]) is is_known


BPF_DENIED = (
    'type=AVC msg=audit(1.0:2): avc:  denied  { prog_run } for  pid=3 comm="bpftool"'
    " scontext=system_u:system_r:spc_t:s0 tcontext=system_u:system_r:container_runtime_t:s0"
    " tclass=bpf permissive=0"
)
UNREACHED = (
    "E0613 18:01:55.1 1 reflector.go:127] Failed to watch *v1.Service: failed to list *v1.Service:"
    ' Get "https://10.96.0.1:443/api/v1/services": dial tcp 10.96.0.1:443: {}'
)


@pytest.mark.parametrize(
    ("error", "line", "causes"),
    [
        ("i/o timeout", BPF_DENIED, ("KM528",)),
        ("connect: no route to host", BPF_DENIED, ("KM528",)),
        ("connect: connection refused", BPF_DENIED, ()),
        ("i/o timeout", AVC.format(name="other.lock"), ()),
    ],
)
def test_a_network_that_selinux_denies_its_programs(world, error, line, causes):
    world.data("w1", "boot").update(
        selinux={"enforce": "1", "config": "enforcing"},
        denials={"count": 1, "lines": [line], "cut": False, "since": True},
    )
    say(world, UNREACHED.format(error), pod="coredns-bcdfg", container="coredns", count=20)
    (found,) = judged(world, "KM560")[1]
    assert found.because == causes


EMPTY = "E0119 10:14:24.2 1 nodemanager.go:182] shakeOutNodeIDLookup failed. Err=nodeID is empty"


@pytest.mark.parametrize(
    ("argv", "is_named"),
    [(["kubelet"], True), (["kubelet", "--cloud-provider=external"], False)],
)
def test_kubelets_without_the_cloud_provider_are_named(world, argv, is_named):
    world.data("w1", "kubelet")["argv"] = argv
    say(world, EMPTY, pod="vsphere-cloud-controller-manager-bcdfg", container="vsphere", count=20)
    (found,) = judged(world, "KM560")[1]
    assert "spec.providerID" in found.summary
    clause = found.summary.partition("Without --cloud-provider=external run")[2]
    assert ("w1" in clause) is is_named
