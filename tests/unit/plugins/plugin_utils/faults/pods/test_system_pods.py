# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that end again and again, KM550, and what follows from them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.pods import system_pods
from tests.unit.support import network_evidence, unmade_pods
from tests.unit.support.ended_pods import SAID, end
from tests.unit.support.waiting_pods import judged, note_of, wait

LIMIT = (
    "E1124 07:00:00.000000 1 server.go:494] unable to set conntrack:"
    " open /proc/sys/net/netfilter/nf_conntrack_max: permission denied"
)
CRASH = (
    "CrashLoopBackOff",
    "back-off 5m0s restarting failed container=kube-proxy pod=kube-proxy-bcdfg_kube-system(1)",
)


def test_a_healthy_cluster_and_missing_evidence(world):
    assert judged(world, "KM550") == (["clear"], [])
    world.documents["w1"]["collectors"]["system_pods"] = {"status": "denied", "data": None}
    assert judged(world, "KM550") == (["unknown"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM550")[0]) <= {"not_applicable"}


def test_the_last_word_of_kube_proxy(world):
    end(world)
    verdicts, (found,) = judged(world, "KM550")
    assert verdicts == ["present"]
    assert (found.host, found.node, found.severity) == ("w1", "w1", "critical")
    assert found.component == "kube-proxy"
    assert found.summary.startswith(
        f"kube-system/kube-proxy on w1 ends again and again (7 starts before): {SAID}"
    )
    assert "Services have no rules on the node" in found.summary
    assert "/var/log/pods/kube-system_kube-proxy-bcdfg_1/kube-proxy/6.log" in found.remedy
    assert [proof.text for proof in found.evidence] == [SAID]


def test_a_file_that_it_may_not_open_is_explained_by_the_rule(world):
    end(world, line="failed complete: open /var/lib/kube-proxy/config.conf: permission denied")
    (found,) = judged(world, "KM550")[1]
    assert "/var/lib/kube-proxy/config.conf" in found.summary.partition("Known cause")[2]


OWN = "/var/log/aws-routed-eni/ipamd.log"
FAILS = 'no table \\"nat\\"\\nis there'


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([f'{{"level":"error","caller":"x","msg":"{FAILS}"}}'], 'no table "nat" is there'),
        (["2026|00012|dpif|ERR|no vport"], "2026|00012|dpif|ERR|no vport"),
        ([], None),
    ],
)
def test_what_a_program_says_in_a_file_of_its_own(world, lines, told):
    own = {"path": OWN, "lines": lines, "error": None}
    end(world, pod="aws-node-bcdfg", container="aws-node", line="Retrying", own=own)
    (found,) = judged(world, "KM550")[1]
    assert "Retrying" in found.summary
    assert (f"its own log on the node ({OWN}) says: {told}" in found.summary) is bool(told)
    assert ((OWN, told) in [(proof.path, proof.text) for proof in found.evidence]) is bool(told)
    assert (OWN in found.remedy) is bool(told)


@pytest.mark.parametrize(
    ("line", "is_file"),
    [
        ("F1124 main.go:85] listen unix /var/run/kms/socket.sock: bind: address already in use", 1),
        ("F1124 main.go:85] listen unix @kms: bind: address already in use", 0),
        ("F1124 main.go:85] listen tcp :8080: bind: address already in use", 0),
    ],
)
def test_a_socket_file_that_a_killed_run_left(world, line, is_file):
    end(world, line=line)
    (found,) = judged(world, "KM550")[1]
    assert ("A file is at the place of its socket" in found.summary) is bool(is_file)
    assert ("rm /var/run/kms/socket.sock" in found.remedy) is bool(is_file)


def test_a_limit_of_connections_that_a_container_may_not_write(world):
    end(world, line=LIMIT)
    (found,) = judged(world, "KM550")[1]
    assert "Known cause: It may not write the kernel's limit of connections" in found.summary
    assert "conntrack: {maxPerCore: 0, min: 0}" in found.remedy


HELPER = (
    'level=fatal msg="failed to probe helper" error="load program: invalid argument: 0: (85) call'
    ' bpf_set_retval#187: R1 is not a scalar"'
)


@pytest.mark.parametrize(
    ("pod", "container", "line", "is_told"),
    [
        ("cilium-bcdfg", "cilium-agent", HELPER, True),
        ("cilium-bcdfg", "cilium-agent", "RTNETLINK answers: Operation not supported", True),
        ("cilium-bcdfg", "cilium-agent", "level=fatal msg=Unauthorized", False),
        ("metrics-server-bcdfg", "metrics-server", HELPER, False),
    ],
)
def test_a_kernel_that_refuses_an_agent_of_the_network_is_named(
    world, pod, container, line, is_told
):
    world.data("w1", "system")["kernel"] = "7.2.0-1-default"
    end(world, pod=pod, container=container, line=line)
    (found,) = judged(world, "KM550")[1]
    assert ("the kernel 7.2.0-1-default refuses it" in found.summary) == is_told
    assert ("boot the kernel before" in found.remedy) == is_told


def test_pods_of_one_cause_are_one_finding(world):
    end(world, line=LIMIT)
    end(world, host="m1", pod="kube-proxy-hjklm", line=LIMIT.replace("07:00:00", "07:00:31"))
    end(world, host="m2", pod="kube-proxy-npqrs")
    findings = judged(world, "KM550")[1]
    assert sorted((found.host, len(found.evidence)) for found in findings if found.host) == [
        ("m2", 1)
    ]
    (shared,) = [found for found in findings if found.host is None]
    assert " on m1, w1 " in shared.summary
    assert len(shared.evidence) == 2


@pytest.mark.parametrize(
    ("pod", "container", "severity", "words"),
    [
        ("calico-node-bcdfg", "calico-node", "critical", "get no network"),
        ("kube-flannel-ds-bcdfg", "install-cni-plugin", "critical", "get no network"),
        (
            "cloud-controller-manager-7c4d5b6f8d-bcdfg",
            "a",
            "critical",
            "nodes that join are not initialised",
        ),
        ("coredns-7c4d5b6f8d-bcdfg", "coredns", "warning", "names of Services"),
        ("kops-controller-bcdfg", "kops-controller", "warning", "neither certificates nor labels"),
        ("metrics-server-7c4d5b6f8d-bcdfg", "metrics-server", "warning", "ends again and again"),
    ],
)
def test_what_each_part_of_the_cluster_does(world, pod, container, severity, words):
    end(world, pod=pod, container=container)
    (found,) = judged(world, "KM550")[1]
    assert found.severity == severity
    assert words in found.summary
    name = "cloud-controller-manager" if container == "a" else pod[: -len("-bcdfg")]
    assert found.summary.startswith(f"kube-system/{name.replace('-7c4d5b6f8d', '')} on w1 ")


@pytest.mark.parametrize(
    ("changed", "is_present"),
    [
        ({}, True),
        # it stays up since its last start
        ({"begun": 900, "written": 0}, False),
        # the start before it was long ago
        ({"first": 7200}, False),
        # only the newest log is left
        ({"first": 60, "last": 59}, True),
        ({"first": 60, "last": 59, "written": 800}, False),
        ({"begun": 3000, "first": 3000, "written": 1}, False),
    ],
)
def test_one_that_came_up_is_over(world, changed, is_present):
    end(world, **changed)
    assert (judged(world, "KM550")[0] == ["present"]) == is_present


def test_after_a_boot_some_end_a_few_times(world):
    end(world)
    world.data("w1", "system")["uptime_s"] = 300.0
    assert judged(world, "KM550") == (["clear"], [])


TAKEN = "F0525 08:41:53.928635 6 main.go:63] port 80 is already in use. Please check the flag"


@pytest.mark.parametrize(
    ("line", "is_present"), [(f"{TAKEN} --http-port", True), ("F0525 6 main.go:63] odd", False)]
)
def test_of_an_add_on_only_an_end_of_a_known_cause_counts(world, line, is_present):
    names = {"namespace": "ingress-nginx", "pod": "x-bcdfg", "container": "controller"}
    end(world, line=line, **names)
    found = judged(world, "KM550")[1]
    assert bool(found) == is_present
    if found:
        assert "Known cause: " in found[0].summary


def test_logs_that_were_left_out_are_unknown(world):
    world.data("w1", "system_pods").update(more=2, more_pods=["kube-system/x"])
    assert judged(world, "KM550") == (["unknown"], [])
    assert note_of(world, "KM550").startswith("w1: 2 logs ")
    assert "such as kube-system/x: kubectl" in note_of(world, "KM550")
    end(world)
    assert len(judged(world, "KM550")[1]) == 1
    assert note_of(world, "KM550").startswith("w1: 1 of 3 logs ")
    world.data("w1", "system")["uptime_s"] = 300.0
    assert judged(world, "KM550") == (["clear"], [])


def crash(world, **changed):
    """Let the API tell that a pod of kube-proxy waits for its next start."""
    wait(world, owner="DaemonSet/kube-proxy", state="CrashLoopBackOff", message=CRASH[1], **changed)
    world.data("api", "pod_start")["pods"][-1].update(
        namespace="kube-system", names=["kube-proxy-bcdfg"]
    )


def test_what_the_api_alone_tells(world):
    crash(world)
    (found,) = judged(world, "KM550")[1]
    assert "its log was not read here" in found.summary
    assert (found.host, found.severity) == ("w1", "critical")
    assert "kubectl -n kube-system logs kube-proxy-bcdfg -c kube-proxy --previous" in found.remedy
    assert found.evidence[0].object == "Pod kube-system/kube-proxy-bcdfg"


HOOK = (
    'Error: failed to start container "kube-proxy": Error response from daemon: OCI runtime create'
    " failed: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: container"
    " error: cgroup subsystem devices not found: unknown"
)


@pytest.mark.parametrize(("reason", "is_told"), [("Failed", True), ("BackOff", False)])
def test_what_the_kubelet_says_of_a_container_without_a_log(world, reason, is_told):
    crash(world, event=(reason, HOOK))
    world.data("api", "pod_start")["events"][-1]["pod"] = "kube-system/kube-proxy-bcdfg"
    (found,) = judged(world, "KM550")[1]
    assert ("cgroup subsystem devices not found" in found.summary) is is_told
    assert ("Known cause: The node has cgroup v2" in found.summary) is is_told
    assert ("its log was not read here" in found.summary) is not is_told


def test_the_api_and_the_log_of_one_pod_are_one_finding(world):
    end(world, begun=900, written=899)  # by its logs alone it is over
    crash(world)
    (found,) = judged(world, "KM550")[1]
    assert SAID in found.summary
    assert judged(world, "KM610") == (["clear"], [])


DRIVER = {"namespace": "rook-ceph", "pod": "csi-rbdplugin-bcdfg", "container": "csi-rbdplugin"}


@pytest.mark.parametrize("by", ["log", "api"])
def test_a_driver_of_csi_in_another_namespace(world, by):
    message = (
        "back-off 5m0s restarting failed container=csi-rbdplugin"
        " pod=csi-rbdplugin-bcdfg_rook-ceph(1)"
    )
    wait(world, owner="DaemonSet/csi-rbdplugin", state="CrashLoopBackOff", message=message)
    row = world.data("api", "pod_start")["pods"][-1]
    row.update(namespace="rook-ceph", names=["csi-rbdplugin-bcdfg"])
    assert judged(world, "KM550") == (["clear"], [])
    assert judged(world, "KM610")[0] == ["present"]
    if by == "log":
        end(world, **DRIVER)
    else:
        row["agent"] = True
    (found,) = judged(world, "KM550")[1]
    assert found.summary.startswith("rook-ceph/csi-rbdplugin on w1 ends again and again")
    assert "volumes of its driver are not mounted" in found.summary
    assert found.severity == "warning"
    assert judged(world, "KM610") == (["clear"], [])


def test_a_driver_whose_image_cannot_load_a_module(world):
    line = (
        "rbd_util.go:303] modprobe failed: \"modprobe: ERROR: could not insert 'rbd': Exec format"
    )
    end(world, **DRIVER, line=line)
    (found,) = judged(world, "KM550")[1]
    assert "the kernel's module rbd is not loaded" in found.summary
    assert "/etc/modules-load.d" in found.remedy


def test_a_young_one_and_one_of_a_workload(world):
    crash(world, since="2027-01-15T07:58:00Z")
    wait(world, owner="Job/b", state="CrashLoopBackOff", message=CRASH[1])
    assert judged(world, "KM550") == (["clear"], [])


def test_a_log_without_a_line_and_one_that_cannot_be_read(world):
    end(world, lines=[])
    (found,) = judged(world, "KM550")[1]
    assert "; its log has no line" in found.summary
    world.data("w1", "system_pods")["pods"][0]["error"] = "Input/output error"
    (found,) = judged(world, "KM550")[1]
    assert "; its log cannot be read: Input/output error" in found.summary


@pytest.mark.parametrize(("servers", "cause"), [(["127.0.0.53"], ("KM533",)), (["192.0.2.1"], ())])
def test_a_coredns_that_asks_itself(world, servers, cause):
    for host in world.documents:
        network_evidence.network(world, host)
    world.data("w1", "network")["resolvers"][0]["nameservers"] = servers
    end(world, pod="coredns-7c4d5b6f8d-bcdfg", container="coredns", line="plugin/loop: Loop")
    (found,) = [
        row for row in world.judge(faults={"KM550", "KM533"}).findings if row.code == "KM550"
    ]
    assert tuple(found.because) == cause


def ready(world, message):
    for item in world.data("api", "nodes")["items"]:
        if item["name"] == "w1":
            item.update(ready="False", conditions=[{"type": "Ready", "status": "False"}])
            item["conditions"][0].update(
                reason="KubeletNotReady", message=message, since="2027-01-15T07:00:00Z"
            )


@pytest.mark.parametrize(("container", "causes"), [("calico-node", ("KM550",)), ("kube-proxy", ())])
def test_a_node_without_a_network_whose_agent_ends(world, container, causes):
    ready(world, "container runtime network not ready: cni plugin not initialized")
    end(world, pod=f"{container}-bcdfg", container=container)
    (found,) = judged(world, "KM519")[1]
    assert found.because == causes


@pytest.mark.parametrize(("is_known", "cause"), [(True, "KM176"), (False, "KM223")])
def test_a_node_without_a_network_whose_agents_are_refused(world, is_known, cause):
    ready(world, "container runtime network not ready: cni plugin not initialized")
    unmade_pods.refuse(world, kind="DaemonSet", namespace="kube-system", name="calico-node")
    if is_known:
        unmade_pods.add_dead_webhook(world)
    (found,) = judged(world, "KM519")[1]
    assert found.because == (cause,)


CLOUD = {"pod": "cloud-controller-manager-bcdfg", "container": "cloud-controller-manager"}


@pytest.mark.parametrize(("pod", "causes"), [(CLOUD, ("KM550",)), ({}, ())])
def test_a_node_that_waits_for_a_cloud_controller_manager_that_ends(world, pod, causes):
    for item in world.data("api", "nodes")["items"]:
        if item["name"] == "w1":
            taint = "node.cloudprovider.kubernetes.io/uninitialized"
            item["taints"] = [{"key": taint, "value": "true", "effect": "NoSchedule"}]
            item["created"] = "2027-01-15T07:40:00Z"
    end(world, host="m1", **pod)
    (found,) = judged(world, "KM514")[1]
    assert found.because == causes


def test_hosts_whose_logs_were_left_out_are_not_all_named():
    assert system_pods.notes(["", *(f"w{number}: x" for number in range(1, 8))]) == (
        "w1: x; w2: x; w3: x; w4: x; w5: x; and of 2 more hosts"
    )


PROBE = (
    "Liveness probe failed: F0129 main.go:159] Kubelet plugin registration hasn't succeeded yet,"
    " file=/var/lib/kubelet/plugins/smb.csi.k8s.io/registration doesn't exist."
)
STARTS = "I0129 12:42:31.100000 1 node_register.go:53] Starting Registration Server"
UNREACHED = (
    "E1204 10:00:00.000000 1 main.go:227] Failed to create SubnetManager: error retrieving pod spec"
    " for 'kube-flannel/kube-flannel-ds-bcdfg': Get"
    ' "https://10.96.0.1:443/api/v1/namespaces/kube-flannel/pods/x": dial tcp 10.96.0.1:443: i/o'
    " timeout"
)


def fail_probe(world, message=PROBE):
    row = {"namespace": "kube-system", "pod": "csi-smb-node-bcdfg", "node": "w1"}
    row |= {"container": "node-driver-registrar", "message": message, "count": 40}
    row |= {"first": "2027-01-15T07:30:00Z", "last": "2027-01-15T07:58:00Z"}
    world.data("api", "pod_start")["unhealthy"].append(row)


@pytest.mark.parametrize(
    ("message", "is_told"), [(PROBE, True), (PROBE.replace("Liveness", "Readiness"), False)]
)
def test_a_container_that_the_kubelet_ends_for_its_probe(world, message, is_told):
    end(world, pod="csi-smb-node-bcdfg", container="node-driver-registrar", line=STARTS)
    fail_probe(world, message)
    world.data("w1", "kubelet")["argv"] = ["kubelet", "--root-dir=/var/lib/k0s/kubelet"]
    (found,) = judged(world, "KM550")[1]
    assert ("its probe fails: Liveness" in found.summary) is is_told
    assert ("/var/lib/k0s/kubelet" in found.summary) is is_told
    assert ("/var/lib/k0s/kubelet" in found.remedy) is is_told


@pytest.mark.parametrize("is_down", [True, False])
def test_a_service_address_whose_proxy_ends(world, is_down):
    end(world, pod="kube-flannel-ds-bcdfg", container="kube-flannel", line=UNREACHED)
    if is_down:
        end(world)
    found = next(hit for hit in judged(world, "KM550")[1] if hit.component == "kube-flannel")
    assert ("kube-proxy of that node" in found.summary.partition("Known cause")[0]) is is_down


# flatcar/Flatcar#635
AVC = (
    'type=AVC msg=audit(1.0:2): avc:  denied  {{ write }} for  pid=3 comm="{program}" name="{name}"'
    " scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=system_u:object_r:usr_t:s0"
    " tclass=dir permissive=0"
)
COPY = "cp: can't create '/opt/cni/bin/flannel': Permission denied"


@pytest.mark.parametrize(
    ("enforce", "program", "is_known"), [("1", "cp", True), ("0", "cp", False), ("1", "mv", False)]
)
def test_a_file_that_selinux_denies_a_container(world, enforce, program, is_known):
    line = AVC.format(program=program, name="bin")
    world.data("w1", "boot").update(
        selinux={"enforce": enforce, "config": "enforcing"},
        denials={"count": 1, "lines": [line], "cut": False, "since": True},
    )
    end(world, pod="kube-flannel-ds-bcdfg", container="install-cni-plugin", line=COPY)
    (found,) = judged(world, "KM550")[1]
    assert found.summary.count("Known cause") == 1
    assert ("SELinux of w1 denies /opt/cni/bin/flannel" in found.summary) is is_known
    assert ("container_file_t" in found.remedy) is is_known
    assert ("namei -l" not in found.remedy) is is_known
    assert ("/var/log/audit/audit.log" in [proof.path for proof in found.evidence]) is is_known


RPF = (
    "2019-04-19 16:56:55.642 [FATAL][1436] int_dataplane.go 824: Kernel's RPF check is set to"
    " 'loose'.  This would allow endpoints to spoof their IP address."
)


@pytest.mark.parametrize(("value", "because"), [(2, ("KM534",)), (1, ())])
def test_the_filter_that_calico_refuses_is_why(world, value, because):
    network_evidence.network(world, rp_filter=value)
    end(world, pod="calico-node-bcdfg", container="calico-node", line=RPF)
    result = world.judge(faults={"KM534", "KM550"})
    (found,) = [item for item in result.findings if item.code == "KM550"]
    assert found.because == because
