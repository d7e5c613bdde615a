# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error says of an answer, by lines of public threads and of the sources."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import error_answer

GO = "E1126 18:00:00.000001       1 reflector.go:204] "
HUB = "https://github.com/"
# (component, line, kind, what the clause names, link)
PUBLIC = (
    (
        "k3s",
        "E1129 15:19:22.288917   10169 network_policy_controller.go:334] Aborting sync. Failed to"
        " run iptables-restore: failed to call ip6tables-restore: exit status 2 (ip6tables-restore"
        " v1.8.11 (nf_tables): Set inet6:KUBE-SRC-AFKSJT2XXJJQSY4S doesn't exist.",
        "program",
        "ip6tables-restore, which it runs, ends with status 2",
        HUB + "k3s-io/k3s/issues/13272",
    ),
    (
        "kubelet",
        "E1009 12:52:21.590612    4226 kubelet_node_status.go:377] Error updating node status, will"
        ' retry: error getting node "ip-172-26-0-213.ec2.internal": Unauthorized',
        "unauthorized",
        "401",
        HUB + "kubernetes/kubernetes/issues/69576",
    ),
    (
        "kubelet",
        'E0124 15:11:57.110928    2252 controller.go:146] "Failed to ensure lease exists, will'
        ' retry" err="Unauthorized" interval="7s"',
        "unauthorized",
        "401",
        HUB + "kubernetes/kubernetes/issues/83230",
    ),
    (
        "kubelet",
        'E0805 06:34:04.492431     109 controller.go:146] "Failed to ensure lease exists, will'
        r' retry" err="Get \"https://gffw-compute-a-001:6443/apis/coordination.k8s.io/v1/namespaces'
        r"/kube-node-lease/leases/gffw-compute-a-002?timeout=10s\": dial tcp: lookup"
        ' gffw-compute-a-001 on 10.0.101.3:53: no such host" interval="7s"',
        "name",
        "gffw-compute-a-001 (asked 10.0.101.3:53)",
        HUB + "rootless-containers/usernetes/issues/281",
    ),
    (
        "kubelet",
        'E1004 00:52:20.275852  108940 controller.go:145] "Failed to ensure lease exists, will'
        r' retry" err="leases.coordination.k8s.io \"rocky\" is forbidden: User'
        r" \"system:node:localhost.localdomain\" cannot get resource \"leases\" in API group"
        r" \"coordination.k8s.io\" in the namespace \"kube-node-lease\": can only access node lease"
        ' with the same name as the requesting node" interval="7s"',
        "forbidden",
        "system:node:localhost.localdomain may not get leases",
        HUB + "portainer/kubesolo/issues/56",
    ),
    (
        "kubelet",
        'E0307 10:32:54.036084     768 event.go:355] "Unable to write event (may retry after'
        r' sleeping)" err="Post \"https://kubernetes.docker.internal:6443/api/v1/namespaces'
        r"/kube-system/events\": dial tcp 192.168.65.3:6443: connect: connection refused\""
        ' event="&Event{}"',
        "refused",
        "192.168.65.3:6443",
        HUB + "docker/for-win/issues/13822",
    ),
    (
        "kubelet",
        "E0930 09:26:26.000000    1715 controller.go:115] failed to ensure node lease exists, will"
        " retry in 7s, error: Get https://10.204.243.89:6443/apis/coordination.k8s.io/v1beta1"
        "/namespaces/kube-node-lease/leases/10.204.60.13?timeout=10s: net/http: request canceled"
        " (Client.Timeout exceeded while awaiting headers)",
        "timeout",
        "10.204.243.89:6443",
        HUB + "kubernetes/kubernetes/issues/83230",
    ),
    (
        "kube-scheduler",
        "E1015 11:56:46.971210    2901 reflector.go:178] k8s.io/client-go/informers/factory.go:135:"
        " Failed to list *v1.StorageClass: Get https://192.168.187.142:6443/apis/storage.k8s.io/v1"
        "/storageclasses?limit=500&resourceVersion=0: x509: certificate signed by unknown"
        " authority",
        "certificate",
        "signed by unknown authority",
        HUB + "kubernetes/kubernetes/issues/95582",
    ),
    (
        "kube-apiserver",
        "E0609 12:38:55.188303       1 controller.go:223] unable to sync kubernetes service: Post"
        ' "https://[::1]:6443/api/v1/namespaces": x509: certificate has expired or is not yet'
        " valid: current time 2023-06-09T12:38:55Z is after 2022-02-27T10:42:05Z",
        "certificate",
        "2022-02-27T10:42:05Z",
        HUB + "rancher/rancher/issues/41776",
    ),
    (
        "kube-apiserver",
        "W0112 21:16:43.831033       1 clientconn.go:1331] [core] grpc: addrConn.createTransport"
        " failed to connect to {127.0.0.1:2379 127.0.0.1 <nil> 0 <nil>}. Err: connection"
        ' error: desc = "transport: Error while dialing dial tcp 127.0.0.1:2379: connect:'
        ' connection refused".'
        " Reconnecting...",
        "refused",
        "127.0.0.1:2379",
        HUB + "kubernetes/kubernetes/issues/107491",
    ),
    (
        "kube-apiserver",
        "W0324 04:27:16.870658       1 logging.go:55] [core] [Channel #2 SubChannel #4]grpc:"
        ' addrConn.createTransport failed to connect to {Addr: "etcd-client.karmada-system.svc'
        '.cluster.local:2379", ServerName: "etcd-client.karmada-system.svc.cluster.local:2379", }.'
        ' Err: connection error: desc = "transport: authentication handshake failed: EOF"',
        "timeout",
        "etcd-client.karmada-system.svc.cluster.local:2379",
        HUB + "karmada-io/karmada/issues/6226",
    ),
    (
        "etcd",
        '{"level":"warn","ts":"2024-11-27T13:48:13.28801Z","caller":"rafthttp/probing_status.go:68"'
        ',"msg":"prober detected unhealthy status","round-tripper-name":"ROUND_TRIPPER_SNAPSHOT",'
        '"remote-peer-id":"f73dbd56eea24556","rtt":"0s","error":"dial tcp 10.27.50.152:2380:'
        ' connect: connection refused"}',
        "peer",
        "10.27.50.152:2380",
        HUB + "etcd-io/etcd/issues/18958",
    ),
    (
        "etcd",
        "health check for peer b3f3866109be751a could not connect: dial tcp 10.2.176.82:2380:"
        ' connect: no route to host (prober "ROUND_TRIPPER_SNAPSHOT")',
        "peer",
        "10.2.176.82:2380",
        HUB + "opsnull/follow-me-install-kubernetes-cluster/issues/412",
    ),
    (
        "kube-controller-manager",
        GO + r'"Unhandled Error" err="Internal error occurred: failed calling webhook'
        r" \"objects.hnc.x-k8s.io\": failed to call webhook: Post"
        r" \"https://hnc-webhook-service.hnc-system.svc:443/validate-objects?timeout=2s\": no"
        r' endpoints available for service \"hnc-webhook-service\""',
        "webhook",
        "objects.hnc.x-k8s.io",
        HUB + "kubernetes-retired/hierarchical-namespaces/issues/242",
    ),
    (
        "kube-controller-manager",
        "E0504 11:58:34.876608       1 leaderelection.go:330] error retrieving resource lock"
        ' kube-system/x: leases.coordination.k8s.io "x" is forbidden: User "system:anonymous"'
        ' cannot get resource "leases" in API group "coordination.k8s.io" in the namespace'
        ' "kube-system"',
        "forbidden",
        "system:anonymous may not get leases",
        HUB + "kubernetes/kubernetes/issues/129374",
    ),
)
# Texts of the sources: (component, text of an error, kind, what the clause names)
SOURCES = (
    (
        "kubelet",
        'nodes \\"w1\\" is forbidden: is not allowed to set the following labels: a.io/b',
        "forbidden",
        "labels: a.io/b",
    ),
    (
        "kubelet",
        'Get \\"https://10.0.0.1:6443/x\\": proxyconnect tcp: dial tcp 10.1.1.1:3128: i/o timeout',
        "proxy",
        "10.1.1.1:3128",
    ),
    (
        "containerd",
        'Head \\"https://registry.k8s.io/v2/pause/manifests/3.9\\": Proxy Authentication Required',
        "proxy",
        "Proxy Authentication Required",
    ),
    ("kubelet", "the server has asked for the client to provide credentials", "unauthorized", ""),
    (
        "kubelet",
        'nodes \\"w2\\" is forbidden: node \\"w1\\" is not allowed to modify node \\"w2\\"',
        "forbidden",
        'node "w1" is not allowed to modify node "w2"',
    ),
    (
        "kube-controller-manager",
        'admission webhook \\"p.example.com\\" denied the request: no',
        "denied",
        "p.example.com",
    ),
    (
        "kube-controller-manager",
        "ValidatingAdmissionPolicy 'limit' with binding 'all' denied request: no",
        "denied",
        "limit",
    ),
    ("kubelet", "dial tcp: lookup api on 127.0.0.53:53: server misbehaving", "name", "api"),
    (
        "kubelet",
        "dial tcp: lookup api on [::1]:53: read udp [::1]:1->[::1]:53: read: connection refused",
        "name",
        "api (asked [::1]:53)",
    ),
    (
        "kubelet",
        "dial tcp 10.0.0.1:6443: connect: no route to host",
        "unreachable",
        "10.0.0.1:6443",
    ),
    ("kubelet", "dial tcp 10.0.0.1:6443: i/o timeout", "timeout", "10.0.0.1:6443"),
    (
        "kube-scheduler",
        'Get \\"https://10.0.0.1:6443/api\\": net/http: TLS handshake timeout',
        "timeout",
        "10.0.0.1:6443",
    ),
    (
        "kubelet",
        "tls: failed to verify certificate: x509: certificate is valid for 10.96.0.1, not 10.0.0.9",
        "certificate",
        "valid for 10.96.0.1, not 10.0.0.9",
    ),
    ("etcd", "remote error: tls: expired certificate", "certificate", "expired certificate"),
    ("kube-apiserver", "etcdserver: mvcc: database space exceeded", "quota", "quota"),
    ("kube-apiserver", "etcdserver: leader changed", "no_leader", "leader changed"),
    ("kube-apiserver", "etcdserver: no leader", "no_leader", "no leader"),
    ("etcd", "request sent was ignored by remote peer due to cluster ID mismatch", "peer", ""),
    ("etcd", "slow fdatasync", "slow", "disk"),
    (
        "kube-scheduler",
        "the server has received too many requests and has asked us to try again later",
        "busy",
        "429",
    ),
    (
        "kube-controller-manager",
        'Operation cannot be fulfilled on nodes \\"w1\\": the object has been modified',
        "conflict",
        "409",
    ),
    ("kube-scheduler", "the server could not find the requested resource", "gone", ""),
    ("kubelet", 'nodes \\"w1\\" not found', "not_found", "404"),
    (
        "containerd",
        'failed to create shim task: OCI runtime create failed: exec: \\"runc\\": executable file'
        " not found in $PATH: unknown",
        "runtime",
        "runc",
    ),
    (
        "containerd",
        "failed to start shim: fork/exec /usr/bin/containerd-shim-runc-v2: permission denied",
        "runtime",
        "/usr/bin/containerd-shim-runc-v2",
    ),
    (
        "containerd",
        'runtime \\"io.containerd.runc.v2\\" binary not installed'
        ' \\"containerd-shim-runc-v2\\": file does not exist',
        "runtime",
        "containerd-shim-runc-v2",
    ),
    (
        "containerd",
        "Killing container abc failed: `/usr/libexec/crio/crun --root /run/crun --systemd-cgroup"
        " kill abc KILL` failed: error opening file `/run/crun/abc/status`: No such file or"
        " directory : exit status 1",
        "runtime",
        "state below /run/crun is gone",
    ),
    (
        "containerd",
        "`/usr/bin/runc --root /run/runc --systemd-cgroup kill abc 9` failed: container does not"
        " exist : exit status 1",
        "runtime",
        "state below /run/runc is gone",
    ),
    (
        "containerd",
        "runc did not terminate successfully: exit status 1: container abc does not exist",
        "runtime",
        "runc does not know a container",
    ),
    (
        "containerd",
        "failed to mkdir: mkdir /var/lib/containerd/x: read-only file system",
        "machine",
        "/var/lib/containerd/x",
    ),
    (
        "kubelet",
        "getting credentials: exec: executable aws failed with exit code 255",
        "credentials",
        "the program aws, which its kubeconfig runs, does not work (failed with exit code 255)",
    ),
    (
        "kube-controller-manager",
        "unable to retrieve the complete list of server APIs: a.example/v1: stale GroupVersion"
        " discovery: a.example/v1",
        "discovery",
        "does not discover a.example/v1",
    ),
    (
        "kubelet",
        "open /var/lib/kubelet/x: too many open files",
        "machine",
        "/var/lib/kubelet/x",
    ),
)


def check(component, line, kind, named):
    answer = error_answer.read(line, component)
    assert answer is not None
    assert (answer.kind, named in answer.clause) == (kind, True), answer.clause
    assert answer.advice


@pytest.mark.parametrize(("component", "line", "kind", "named", "link"), PUBLIC)
def test_lines_of_public_threads(component, line, kind, named, link):
    check(component, line, kind, named)


@pytest.mark.parametrize(("component", "text", "kind", "named"), SOURCES)
def test_texts_of_the_sources(component, text, kind, named):
    line = GO + f'"Failed" err="{text}"'
    if component == "containerd":
        line = f'time="2026-11-26T18:00:00Z" level=error msg="Failed" error="{text}"'
    check(component, line, kind, named)


@pytest.mark.parametrize(
    "line",
    [
        "",
        GO + '"Something else" err="of which nothing is known"',
        GO + '"Failed" err="context canceled"',
        # what a user's container lacks is not the runtime's
        'time="x" level=error msg="x" error="exec: \\"sh\\": executable file not found in $PATH"',
    ],
)
def test_lines_that_tell_of_no_answer(line):
    assert error_answer.read(line, "containerd") is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("dial tcp 10.0.0.1:6443: connect: connection refused", "10.0.0.1:6443"),
        ("dial tcp [fd00::1]:6443: i/o timeout", "[fd00::1]:6443"),
        (
            "dial unix /run/containerd/containerd.sock: connect: no",
            "/run/containerd/containerd.sock",
        ),
        ('Get "https://api.lan:6443/x": EOF', "api.lan:6443"),
        ("nothing", ""),
    ],
)
def test_the_address(text, address):
    assert error_answer.address(text) == address
