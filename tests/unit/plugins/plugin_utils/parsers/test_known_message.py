# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

try:
    from re import _constants, _parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as _constants  # type: ignore[no-redef]
    import sre_parse as _parser  # type: ignore[no-redef]

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import lines
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import Row
from tests import measures
from tests.docs import known_messages as page
from tests.gate import machine

FILES = known_message.files()
ROWS = [row for rows in FILES.values() for row in rows]
LINES = [line for name in FILES for line in page.examples(name)]
LONGEST_REPEAT = 400
SLOW = 0.05  # seconds of CPU for one pattern over the longest text
BY_ID = {row.id: row for row in ROWS}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_columns(name: str) -> None:
    lines = (known_message.FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    assert tuple(lines[0].split("\t")) == known_message.COLUMNS
    assert all(len(line.split("\t")) == len(known_message.COLUMNS) for line in lines[1:])


def test_a_name_is_used_once() -> None:
    names = Counter(row.id for row in ROWS)
    assert [name for name, count in names.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name) for name in names)


def test_each_row_has_an_example_and_each_example_a_row() -> None:
    assert {row for row, _place, _text in LINES} == {row.id for row in ROWS}


@pytest.mark.parametrize(("name", "place", "text"), LINES, ids=[line[0] for line in LINES])
def test_a_row_matches_its_own_example(name: str, place: str, text: str) -> None:
    found = known_message.find((place,), text)
    assert found is not None
    assert found.id == name


@pytest.mark.parametrize(("name", "place", "text"), LINES, ids=[line[0] for line in LINES])
def test_a_node_masks_nothing_that_tells_the_cause(name: str, place: str, text: str) -> None:
    masked = lines.Cleaner().clean(text.encode(), False).decode()
    found = known_message.find((place,), masked)
    assert found is not None
    assert found.id == name


@pytest.mark.parametrize(("name", "place", "text"), LINES, ids=[line[0] for line in LINES])
def test_no_other_row_of_its_places_matches_an_example(name: str, place: str, text: str) -> None:
    whole = known_message.plain(text)
    rows = known_message._of_places(BY_ID[name].places)
    assert place in BY_ID[name].places or known_message.ANY in BY_ID[name].places
    assert [row.id for row in rows if row.pattern.search(whole)] == [name]


# Lines of programs that are well, or that name another cause: a row, who says it, and the line.
HARMLESS = [
    (
        "etcd-peer-of-another-authority",
        "etcd",
        '{"level":"warn","msg":"rejected connection on peer endpoint",'
        '"remote-addr":"192.0.2.7:54022","server-name":"","error":"EOF"}',
    ),
    (
        "configuration-of-another-release",
        "kube-apiserver",
        "cacher (podsecuritypolicies.policy): unexpected ListAndWatch error: failed to list"
        ' *policy.PodSecurityPolicy: no kind "PodSecurityPolicy" is registered for version'
        ' "policy/v1beta1" in scheme',
    ),
    (
        "rbd-image-missing",
        "event",
        "rbd error output: rbd: failed to load rbd kernel module (1)rbd: sysfs write failed"
        "rbd: map failed: (2) No such file or directory",
    ),
    (
        "cinder-device-not-found",
        "event",
        "Unable to find Device path for volume: couldn't get device path from metadata service:"
        " dial tcp 169.254.169.254:80: i/o timeout",
    ),
    (
        "zfs-pool-missing",
        "csi",
        "Error ENOENT: no such pool 'replicapool'",
    ),
    (
        "kms-cannot-decrypt",
        "kube-apiserver",
        "failed to decrypt DEK, error: rpc error: code = Unavailable desc = connection error:"
        ' desc = "transport: dial unix /run/kms.sock: connect: no such file or directory"',
    ),
    (
        "ebs-device-not-found",
        "event",
        "Failed to find device path /dev/xvdaa. Refusing to mount /dev/nvme1n1 because it claims to"
        " be vol01 but should be vol02",
    ),
    (
        "azure-network-service-not-there",
        "event",
        "Readiness probe failed: dial tcp 127.0.0.1:10090: connect: connection refused",
    ),
    (
        "azure-network-service-not-there",
        "event",
        'Liveness probe failed: Get "http://127.0.0.1:10090/healthz": dial tcp 127.0.0.1:10090:'
        " connect: connection refused",
    ),
    (
        "cilium-envoy-low-port",
        "network",
        "listener: cannot bind '0.0.0.0:8080': Permission denied",
    ),
    (
        "iptables-in-use-by-another",
        "network",
        "running [/usr/bin/agent]: exit status 4: fork: Resource temporarily unavailable",
    ),
    (
        "calico-certificates-not-made",
        "event",
        'MountVolume.SetUp failed for volume "tls" : secret "node-certs" not found',
    ),
    (
        "openshift-node-changed-by-hand",
        "machine-config-daemon",
        "Marking Degraded due to: unexpected on-disk state validating against rendered-worker-1a2b:"
        ' expected target osImageURL "quay.io/a@sha256:1", have "quay.io/a@sha256:2"',
    ),
    (
        "systemd-not-reached-by-runc",
        "kubelet",
        "Failed to start node shutdown manager: dial unix /run/dbus/system_bus_socket: connect: no"
        " such file or directory",
    ),
    (
        "fuse-not-loaded",
        "event",
        "fusermount: failed to open /etc/fuse.conf: Permission denied",
    ),
    (
        "csi-socket-in-another-folder",
        "kubelet",
        "RegisterPlugin error -- plugin validation failed with err: none of the versions is known",
    ),
    (
        "file-system-not-grown",
        "csi",
        "dumpe2fs: Bad magic number in super-block while trying to open /dev/vdb Couldn't find"
        " valid filesystem superblock.",
    ),
    (
        "no-common-tls-version",
        "etcd",
        '{"level":"warn","msg":"rejected connection on peer endpoint","remote-addr":'
        '"10.0.0.7:53412","error":"remote error: tls: protocol version not supported"}',
    ),
    (
        "apparmor-stops-signals-of-runtime",
        "kernel",
        'audit: type=1400 audit(1714500000.123:456): apparmor="DENIED" operation="signal"'
        ' class="signal" profile="web" pid=12345 comm="runc" requested_mask="receive"'
        ' denied_mask="receive" signal=term peer="unconfined"',
    ),
    (
        "gpu-controller-halted",
        "kernel",
        "NVRM: Xid (PCI:0000:01:00): 69, pid=3728, name=python3, Class Error: channel 0",
    ),
    (
        "no-common-tls-version",
        "kube-apiserver",
        "I0301 10:00:00.000000 1 log.go:245] http: TLS handshake error from 10.0.0.7:53412: remote"
        " error: tls: protocol version not supported",
    ),
    (
        "inotify-watches-used-up",
        "kubelet",
        "E0301 10:00:00.000000 1234 a.go:10] write /var/lib/kubelet/x: no space left on device",
    ),
    (
        "inotify-instances-used-up",
        "kube-proxy",
        "E0301 10:00:00.000000 1 server.go:10] open /proc/net/tcp: too many open files",
    ),
    (
        "memory-errors-not-corrected",
        "kernel",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
    ),
    (
        "node-name-differs-from-certificate",
        "kubelet",
        'nodes "w1" is forbidden: User "system:node:w1" cannot get resource "nodes"',
    ),
    (
        "systemd-resolved-without-answer",
        "kubelet",
        "dial tcp: lookup localhost on 127.0.0.53:53: server misbehaving",
    ),
    (
        "spdk-without-huge-pages",
        "csi",
        "EAL: No free 2048 kB hugepages reported on node 1",
    ),
    (
        "spdk-without-huge-pages",
        "csi",
        "EAL: No available 1048576 kB hugepages reported",
    ),
    (
        "shim-of-containerd-ended",
        "containerd",
        'time="2025-01-21T11:03:48.722299976+08:00" level=error msg="collecting metrics for 1234"'
        ' error="ttrpc: closed: unknown"',
    ),
    (
        "shim-of-containerd-ended",
        "event",
        "Readiness probe errored: rpc error: code = Unknown desc = failed to exec in container:"
        ' failed to start exec "1234": ttrpc: closed: unknown',
    ),
    (
        "sandbox-image-of-another-architecture",
        "event",
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to start sandbox"
        ' container "1234": failed to create shim task: fork/exec /usr/bin/runc: exec format error',
    ),
    (
        "kata-without-vhost-vsock",
        "event",
        "failed to create shim task: open /dev/vhost-vsock: permission denied",
    ),
    (
        "etcd-disk-full",
        "k3s",
        "write /var/lib/rancher/k3s/agent/images/a.tmp: no space left on device",
    ),
    (
        "device-agent-without-rights",
        "device-plugin",
        'pods is forbidden: User "system:serviceaccount:web:hydra-intelligence" cannot list'
        ' resource "pods" in API group "" at the cluster scope',
    ),
    (
        "api-server-sheds-requests",
        "kube-apiserver",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    ),
    (
        "iptables-rule-not-in-kernel",
        "network",
        "Warning: Extension MASQUERADE revision 0 not supported, missing kernel module?"
        " iptables v1.8.10 (nf_tables):  RULE_APPEND failed (No such file or directory): rule in"
        " chain POSTROUTING",
    ),
    (
        "card-e1000e-hangs",
        "kernel",
        "NETDEV WATCHDOG: eno1 (e1000e): transmit queue 0 timed out",
    ),
    (
        "service-address-by-proxy",
        "network",
        'Get "https://10.96.0.1:443/api/v1/nodes/w1": dial tcp 10.96.0.1:443: i/o timeout',
    ),
    (
        "azure-linked-action-denied",
        "cloud",
        "The client 'x' does not have permission to perform action 'Microsoft.Network/write' at"
        " scope '/subscriptions/s'",
    ),
    (
        "azure-api-throttled",
        "cloud",
        "Retriable: false, RetryAfter: 0s, HTTPStatusCode: 404, RawError: not found",
    ),
    (
        "aws-quota",
        "cloud",
        "RequestLimitExceeded: Request limit exceeded",
    ),
    (
        "dns-without-forward",
        "dns",
        "[ERROR] plugin/errors: 2 example.com. A: plugin/loop: no next hop",
    ),
    (
        "cinder-zone-invalid",
        "csi",
        "The requested availability zone is not available",
    ),
    (
        "metrics-server-low-port",
        "metrics-server",
        "failed to listen on 0.0.0.0:10250: listen tcp 0.0.0.0:10250: bind: address already in use",
    ),
    (
        "ebs-driver-without-node-data",
        "ebs-plugin",
        'E0814 14:33:48.216738 1 metadata.go:72] "Retrieving IMDS metadata failed" err="could not'
        ' get IMDS metadata: operation error ec2imds: GetInstanceIdentityDocument"',
    ),
    (
        "k3s-sqlite-locked",
        "k3s",
        'time="2024-11-08T10:00:00Z" level=info msg="Slow SQL: database is not locked"',
    ),
    (
        "rbac-role-missing",
        "kube-scheduler",
        'User "system:kube-scheduler" cannot list resource "pods" in API group "" at the cluster'
        ' scope: RBAC: clusterrole.rbac.authorization.k8s.io "system:kube-scheduler" not found',
    ),
    (
        "provider-id-of-another-cloud",
        "cloud",
        "E1102 13:36:37.503965 1 node_lifecycle_controller.go:185] error checking if node i-0 is"
        " shutdown: Invalid format for AWS instance ()",
    ),
    (
        "node-local-dns-without-dummy",
        "dns",
        "[ERROR] Failed to add non-existent interface nodelocaldns: file exists",
    ),
    (
        "oidc-claim-missing",
        "kube-apiserver",
        'oidc: parse groups claim "groups": json: cannot unmarshal string into Go value',
    ),
    (
        "authority-of-the-same-name",
        "etcd",
        '"error":"x509: certificate signed by unknown authority (possibly because of \\"x509:'
        ' invalid signature: parent certificate cannot sign this kind of certificate\\" while'
        ' trying to verify candidate authority certificate \\"etcd\\")"',
    ),
    (
        "definition-not-installed",
        "cluster-autoscaler",
        'no matches for kind "PodDisruptionBudget" in version "policy/v1beta1"',
    ),
    (
        "definition-not-installed",
        "kube-scheduler",
        'no matches for kind "ResourceSlice" in version "resource.k8s.io/v1"',
    ),
    (
        "removed-api-asked-for",
        "speaker",
        'no matches for kind "BGPPeer" in version "metallb.io/v1beta2"',
    ),
    (
        "removed-api-watched",
        "csi-snapshotter",
        "E0301 10:00:00.000000 1 reflector.go:138] Failed to list *v1beta1.VolumeSnapshotClass: the"
        " server could not find the requested resource",
    ),
    (
        "no-name-server-configured",
        "containerd",
        "dial tcp: lookup registry.example.com on 127.0.0.53:53: server misbehaving",
    ),
    (
        "netfilter-extension-missing",
        "kube-proxy",
        "exit status 2: Warning: Extension MARK revision 0 not supported, missing kernel module?",
    ),
    (
        "kernel-without-mark-for-ipv6",
        "kube-proxy",
        'exit status 2: iptables-restore v1.4.21: unknown option "--random-fully"',
    ),
    (
        "certificate-for-no-names",
        "kube-apiserver",
        'failed calling webhook "v.example.com": failed to call webhook: Post "https://w.ns.svc:443'
        '/validate?timeout=10s": x509: certificate is not valid for any names, but wanted to match'
        " w.ns.svc",
    ),
    (
        "corefile-line-not-taken",
        "dns",
        "/etc/coredns/Corefile:5 - Error during parsing: Unknown directive 'proxy'",
    ),
    (
        "dns-port-taken",
        "dns",
        "Listen: listen tcp 169.254.25.10:53: bind: address already in use",
    ),
    (
        "k3s-server-not-reached",
        "k3s",
        'time="2023-09-19T12:49:13Z" level=error msg="failed to get CA certs:'
        ' https://127.0.0.1:6444/cacerts: 401 Unauthorized"',
    ),
    (
        "k3s-token-refused",
        "k3s",
        'time="2024-03-01T10:00:00Z" level=info msg="Waiting for agent configuration; server'
        ' is not ready: https://127.0.0.1:6444/v1-k3s/config: 503 Service Unavailable"',
    ),
    (
        "k3s-etcd-join-fails",
        "k3s",
        "etcd cluster join failed: duplicate node name found, please use a unique name for this"
        " node",
    ),
    (
        "webhook-ends-connection",
        "kube-apiserver",
        "W0319 15:31:55.948307 1 dispatcher.go:225] Failed calling webhook, failing open a.b.c:"
        ' failed calling webhook "a.b.c": failed to call webhook: Post "https://a.b.svc/x": EOF',
    ),
    (
        "metrics-api-not-installed",
        "kube-controller-manager",
        "unable to fetch metrics from resource metrics API: the server is currently unable to"
        " handle the request (get pods.metrics.k8s.io)",
    ),
    (
        "haproxy-configuration",
        "haproxy",
        "[ALERT] (1) : config : parsing [/etc/haproxy/haproxy.cfg:22]: Missing LF on last line,"
        " file might have been truncated at position 40.",
    ),
    (
        "service-account-token-expired",
        "kube-apiserver",
        '"Unable to authenticate the request" err="[invalid bearer token, service account token has'
        ' been invalidated]"',
    ),
    (
        "etcd-refuses-api-server",
        "kube-apiserver",
        "I0301 10:00:00.000000 1 log.go:245] http: TLS handshake error from 10.0.0.7:53412: remote"
        " error: tls: bad certificate",
    ),
    (
        "calico-role-of-another-release",
        "network",
        "error getting ClusterInformation: connection is unauthorized: Unauthorized",
    ),
    (
        "aws-action-denied",
        "cluster-autoscaler",
        "UnauthorizedOperation: You are not authorized to perform this operation. User:"
        " arn:aws:sts::111122223333:assumed-role/node/i-0 is not authorized to perform:"
        " ec2:DescribeInstances",
    ),
    (
        "module-not-found",
        "containerd",
        'time="2024-03-01T10:00:00Z" level=info msg="skip loading plugin'
        ' \\"io.containerd.snapshotter.v1.aufs\\"..." error="aufs is not supported (modprobe aufs'
        ' failed: exit status 1 \\"modprobe: FATAL: Module aufs not found in directory'
        ' /lib/modules/5.15.0-100-generic\\\\n\\"): skip plugin" type=io.containerd.snapshotter.v1',
    ),
    (
        "module-not-found",
        "kubeadm",
        "[preflight] The system verification failed. Printing the output from the verification:"
        ' failed to parse kernel config: unable to load kernel module: "configs", output:'
        ' "modprobe: FATAL: Module configs not found in directory'
        ' /lib/modules/5.15.0-100-generic\\n", err: exit status 1',
    ),
    (
        "plain-server-or-proxy",
        "etcd",
        '{"level":"warn","ts":"2024-03-01T10:00:00.000Z","caller":"embed/config_logging.go:169",'
        '"msg":"rejected connection","remote-addr":"127.0.0.1:52622","server-name":"",'
        '"error":"tls: first record does not look like a TLS handshake"}',
    ),
    (
        "plain-server-or-proxy",
        "etcd",
        '2020-03-01 10:00:00.000000 I | embed: rejected connection from "127.0.0.1:52622" (error'
        ' "tls: first record does not look like a TLS handshake", ServerName "")',
    ),
    (
        "plain-server-or-proxy",
        "kube-apiserver",
        "I0301 10:00:00.000000       1 log.go:245] http: TLS handshake error from 10.0.0.7:53412:"
        " tls: first record does not look like a TLS handshake",
    ),
    (
        "plain-server-or-proxy",
        "kubelet",
        "I0301 10:00:00.000000    1234 log.go:245] http: TLS handshake error from [::1]:8124: tls:"
        " first record does not look like a TLS handshake",
    ),
    (
        "etcd-request-too-large",
        "kubelet",
        'E0301 10:00:00.000000    1234 remote_runtime.go:390] "ListContainers with filter from'
        ' runtime service failed" err="rpc error: code = ResourceExhausted desc = grpc: trying to'
        ' send message larger than max (16777343 vs. 16777216)" filter="nil"',
    ),
    (
        "layers-from-a-blocked-host",
        "event",
        'Failed to pull image "registry.example.com/team/app:1": failed to pull and unpack image'
        ' "registry.example.com/team/app:1": failed to copy: httpReadSeeker: failed open:'
        " unexpected status code https://registry.example.com/v2/team/app/blobs/sha256:1234: 403"
        " Forbidden",
    ),
    (
        "webhook-certificate-expired",
        "kube-apiserver",
        "W0301 10:00:00.000000       1 dispatcher.go:180] Failed calling webhook, failing closed"
        ' v.example.com: failed calling webhook "v.example.com": failed to call webhook: Post'
        ' "https://w.ns.svc:443/validate?timeout=10s": x509: certificate has expired or is not yet'
        " valid: current time 2024-03-01T10:00:00Z is before 2024-03-01T11:00:00Z",
    ),
    (
        "processes-used-up",
        "network",
        "/install-cni.sh: fork: Cannot allocate memory",
    ),
    (
        "seccomp-library-too-old",
        "event",
        "Error: failed to create containerd task: failed to create shim task: OCI runtime create"
        " failed: unable to retrieve OCI runtime error (open /run/containerd/"
        "io.containerd.runtime.v2.task/k8s.io/1234/log.json: no such file or directory): runc did"
        " not terminate successfully: exit status 127: unknown",
    ),
    (
        "iptables-table-missing",
        "kube-proxy",
        'I0301 10:00:00.000000       1 server_linux.go:60] "No iptables support for family"'
        ' ipFamily="IPv6" error="error listing chain \\"POSTROUTING\\" in table \\"nat\\": exit'
        " status 3: ip6tables v1.8.9 (legacy): can't initialize ip6tables table `nat': Table does"
        " not exist (do you need to insmod?)\\nPerhaps ip6tables or your kernel needs to be"
        ' upgraded.\\n"',
    ),
    (
        "conntrack-module-missing",
        "k3s",
        'time="2024-03-01T10:00:00Z" level=error msg="Failed to set sysctl: open'
        ' /proc/sys/net/netfilter/nf_conntrack_max: no such file or directory"',
    ),
    (
        "flannel-interface-missing",
        "network",
        "E0101 10:00:00.000000 1 main.go:227] Failed to find any valid interface to use: failed to"
        " get default interface: unable to find default route",
    ),
    (
        "flannel-interface-missing",
        "network",
        "I0101 10:00:00.000000 1 main.go:553] Could not find valid interface matching eth1: error"
        " looking up interface eth1: route ip+net: no such network interface",
    ),
    (
        "sata-disk-fails",
        "kernel",
        "ata1.00: failed command: READ LOG DMA EXT",
    ),
    (
        "modules-of-kernel-not-there",
        "kubeadm",
        'failed to parse kernel config: unable to load kernel module: "configs", output: "modprobe:'
        " ERROR: ../libkmod/libkmod.c:586 kmod_search_moddep() could not open moddep file"
        " '/lib/modules/5.15.0-100-generic/modules.dep.bin'\\n\", err: exit status 1",
    ),
    (
        "sysctl-of-pod-unknown",
        "k3s",
        'time="2024-03-01T10:00:00Z" level=error msg="Failed to set sysctl: open'
        ' /proc/sys/net/netfilter/nf_conntrack_max: no such file or directory"',
    ),
    (
        "sysctl-of-pod-unknown",
        "event",
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to set up sandbox"
        ' container "1234" network for pod "web-0": NetworkPlugin cni failed to set up pod'
        ' "web-0_default" network: open /proc/sys/net/ipv6/conf/eth0/accept_dad: no such file or'
        " directory",
    ),
    (
        "netfilter-extension-missing",
        "kube-proxy",
        "Warning: Extension MASQUERADE revision 0 not supported, missing kernel module?",
    ),
    (
        "serving-certificate-not-approved",
        "kubelet",
        "E0301 10:00:00.000000    1234 certificate_manager.go:488] kubernetes.io/kube-apiserver-"
        "client-kubelet: certificate request was not signed: timed out waiting for the condition",
    ),
    (
        "lease-namespace-missing",
        "kubelet",
        'E0301 10:00:00.000000    1234 event.go:359] "Server rejected event (will not retry!)"'
        ' err="namespaces \\"web\\" not found"',
    ),
    (
        "node-without-address",
        "event",
        "Error: host IP unknown; known addresses: [{Hostname w1}]",
    ),
    (
        "namespaces-used-up",
        "event",
        "Error: failed to create containerd task: failed to create shim task: mkdir"
        " /run/containerd/io.containerd.runtime.v2.task/k8s.io/1234: no space left on device",
    ),
    (
        "mount-point-in-read-only-volume",
        "event",
        'MountVolume.SetUp failed for volume "data" : mkdir /var/lib/kubelet/pods/1234/volumes:'
        " read-only file system",
    ),
    (
        "user-of-image-unknown",
        "event",
        'Readiness probe failed: {"error": "no users found"}',
    ),
    (
        "selinux-relabel-refused",
        "event",
        "Error: failed to create containerd task: failed to create shim task: OCI runtime create"
        " failed: runc create failed: unable to start container process: exec: /app: permission"
        " denied: unknown",
    ),
    (
        "systemd-does-not-answer",
        "event",
        "Readiness probe failed: sd-bus call: Permission denied",
    ),
    (
        "docker-configuration-not-json",
        "dockerd",
        "unable to configure the Docker daemon with file /etc/docker/daemon.json: the following"
        " directives are specified both as a flag and in the configuration file: hosts",
    ),
    (
        "nvidia-device-unknown",
        "event",
        "Error: failed to create containerd task: nvidia-container-cli: device error: /dev/nvidia0:"
        " no such file or directory: unknown",
    ),
    (
        "calico-datastore-not-reached",
        "network",
        "2025-04-10 06:23:30.692 [INFO][9] startup/startup.go 459: Hit error connecting to"
        ' datastore - retry error=Get "https://10.96.0.1:443/api/v1/nodes/foo": x509: certificate'
        " is valid for 127.0.0.1, not 10.96.0.1",
    ),
    (
        "cni-programs-not-written",
        "network",
        '2024-03-01 10:00:00.123 [INFO][1] cni-installer/install.go 150: "Using CNI binaries from'
        ' /opt/cni/bin, destination /host/opt/cni/bin"',
    ),
    (
        "cni-program-killed",
        "event",
        'plugin type="multus" failed (add): netplugin failed: "panic: runtime": exit status 2',
    ),
    (
        "dhcp-server-silent",
        "event",
        "error calling DHCP.Allocate: error DHCP lease: NAK from 192.0.2.1",
    ),
    (
        "nfs-option-refused",
        "event",
        "mount.nfs: rpc.statd is not running but is required for remote locking. mount.nfs: Either"
        " use '-o nolock' to keep locks local, or start statd. mount.nfs: an incorrect mount option"
        " was specified",
    ),
    (
        "nfs-access-denied",
        "event",
        "mount.nfs4: access denied by server while mounting 127.0.0.1:/",
    ),
    (
        "storage-program-missing",
        "event",
        'OCI runtime exec failed: exec failed: unable to start container process: exec: "sh":'
        " executable file not found in $PATH: unknown",
    ),
    (
        "secret-provider-not-on-node",
        "event",
        'model provider not found: "gpt"',
    ),
    (
        "iscsi-connection-lost",
        "kernel",
        "connection1:0: is operational after recovery (1 attempts)",
    ),
    (
        "gpu-recovery-needed",
        "kernel",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x2 to 0x0 (None)",
    ),
    (
        "thin-pool-full",
        "kernel",
        "device-mapper: thin: 253:4: reached low water mark for data device: sending event.",
    ),
    (
        "gpu-taken-by-reload",
        "device-plugin",
        "Failed to initialize NVML: could not load NVML library.",
    ),
    (
        "image-in-frozen-registry",
        "event",
        'Failed to create pod sandbox: failed to get sandbox image "k8s.gcr.io/pause:3.10": failed'
        ' to resolve reference "k8s.gcr.io/pause:3.10": k8s.gcr.io/pause:3.10: not found',
    ),
    (
        "registry-of-aws-refuses-node",
        "event",
        'failed to get sandbox image "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/pause:3.5":'
        " pulling from host 602401143452.dkr.ecr.us-east-1.amazonaws.com failed with status code"
        " [manifests 3.5]: 401 Unauthorized",
    ),
    (
        "registry-of-aws-refuses-node",
        "event",
        'Failed to pull image "123456789012.dkr.ecr.us-east-1.amazonaws.com/app:1": failed to copy:'
        " httpReadSeeker: failed open: unexpected status code https://prod-us-east-1-starport-layer"
        "-bucket.s3.us-east-1.amazonaws.com/1234: 403 Forbidden",
    ),
    (
        "image-of-bitnami-moved",
        "event",
        'Failed to pull image "docker.io/bitnamilegacy/redis:9": failed to resolve reference'
        ' "docker.io/bitnamilegacy/redis:9": docker.io/bitnamilegacy/redis:9: not found',
    ),
    (
        "image-pull-without-progress",
        "event",
        'Failed to pull image "registry.example.com/app:1": failed to pull and unpack image'
        ' "registry.example.com/app:1": context deadline exceeded',
    ),
    (
        "calico-plugin-without-api",
        "event",
        'plugin type="calico" failed (add): error getting ClusterInformation: connection is'
        " unauthorized: Unauthorized",
    ),
    (
        "cni-plugin-without-api",
        "event",
        'plugin type="multus" failed (add): error getting pod: pods "web-0" is forbidden: User'
        ' "system:serviceaccount:kube-system:multus" cannot get resource "pods"',
    ),
    (
        "crio-runtime-not-in-path",
        "crio",
        'level=info msg="runtime validation: crun found in $PATH"',
    ),
    (
        "calico-nft-crashes",
        "network",
        "[WARNING] felix/table.go 924: Failed to program nftables, will retry error=error"
        " performing nft transaction: exit status 1",
    ),
    (
        "certificate-signed-with-old-hash",
        "containerd",
        'x509: certificate signed by unknown authority (possibly because of "x509: cannot verify'
        ' signature: algorithm unimplemented" while trying to verify candidate authority'
        ' certificate "Example CA")',
    ),
    (
        "authority-of-the-same-name",
        "kube-apiserver",
        'conversion webhook for a.io/v1, Kind=B failed: Post "https://c.b.svc:443/c": '
        "x509: certificate signed by unknown authority (possibly because of"
        ' "crypto/rsa: verification error" while trying to verify candidate authority certificate'
        ' "openshift-service-serving-signer@1700000000")',
    ),
    (
        "authority-of-the-same-name",
        "kube-apiserver",
        "failing or missing response from https://10.96.0.9:443/apis/a.io/v1: Get: "
        "x509: certificate signed by unknown authority (possibly because of"
        ' "crypto/rsa: verification error" while trying to verify candidate authority certificate'
        ' "openshift-service-serving-signer@1700000000")',
    ),
    (
        "cilium-setting-refused",
        "network",
        'level=warning msg="Failed to sysctl -w" error="could not open the sysctl file'
        ' /host/proc/sys/kernel/timer_migration" sysParamName=kernel.timer_migration',
    ),
    (
        "iptables-extension-missing",
        "dockerd",
        "iptables v1.4.21: Couldn't load target `DOCKER':No such file or directory",
    ),
    (
        "haproxy-configuration",
        "haproxy",
        "[WARNING] 028/000017 (1) : parsing [/etc/haproxy/haproxy.cfg:45] : 'option httplog' not"
        " usable with frontend 'k8s' (needs 'mode http'). Falling back to 'option tcplog'.",
    ),
    (
        "haproxy-configuration-cut",
        "haproxy",
        "[WARNING] 028/000017 (1) : parsing [/etc/haproxy/haproxy.cfg:45]: Missing LF on last"
        " line, file might have been truncated at position 4. This will become a hard error in"
        " HAProxy 2.3.",
    ),
    (
        "haproxy-server-name",
        "haproxy",
        "[WARNING] (1) : [/etc/haproxy/haproxy.cfg:30] : 'server a/m1' : could not resolve address"
        " 'm1.example.com', disabling server.",
    ),
    (
        "removed-api-asked-for",
        "cloud",
        'no matches for kind "ServiceCIDR" in version "networking.k8s.io/v1beta1"',
    ),
    (
        "removed-api-asked-for",
        "cloud",
        'no matches for kind "ValidatingAdmissionPolicyBinding" in version'
        ' "admissionregistration.k8s.io/v1beta1"',
    ),
    (
        "storage-program-missing",
        "event",
        "Liveness probe failed: OCI runtime exec failed: exec failed: unable to start container"
        ' process: exec: "findmnt": executable file not found in $PATH: unknown',
    ),
    (
        "storage-program-missing",
        "kubelet",
        "OCI runtime create failed: container_linux.go:349: starting container process caused"
        ' "exec: \\"rbd\\": executable file not found in $PATH": unknown',
    ),
    (
        "conntrack-program-missing",
        "kubelet",
        "Error: OCI runtime create failed: runc create failed: unable to start container process:"
        ' exec: "conntrack": executable file not found in $PATH: unknown',
    ),
    (
        "rootless-remount-of-subpath",
        "k3s",
        'E0517 16:32:03.967271     927 kubelet_pods.go:364] "Failed to prepare subPath for'
        ' volumeMount of the container" err=<',
    ),
    (
        "rootless-remount-of-subpath",
        "kubelet",
        'E0225 10:23:27.660819      52 kubelet_pods.go:245] "Failed to prepare subPath for'
        ' volumeMount of the container" err="error resolving symlinks in x: permission denied"',
    ),
    (
        "definition-not-installed",
        "speaker",
        'no matches for kind "PodMetrics" in version "metrics.k8s.io/v1beta1"',
    ),
]


@pytest.mark.parametrize(("name", "place", "text"), HARMLESS)
def test_a_row_leaves_out_what_is_harmless_or_has_another_cause(
    name: str, place: str, text: str
) -> None:
    assert name in {row.id for row in known_message._of_places(frozenset((place,)))}
    found = known_message.find((place,), text)
    assert found is None or found.id != name


CERTIFICATE = "x509: certificate has expired or is not yet valid"
BEFORE = f"{CERTIFICATE}: current time 2024-03-01T10:00:00Z is before 2024-03-01T11:00:00Z"
AFTER = f"{CERTIFICATE}: current time 2024-03-01T10:00:00Z is after 2024-03-01T09:00:00Z"


@pytest.mark.parametrize(
    ("place", "text", "expired"),
    [
        (
            "kube-apiserver",
            "conversion webhook for a.example.com/v1, Kind=A failed: Post"
            ' "https://w.ns.svc:443/convert?timeout=30s": {}',
            "conversion-webhook-certificate-expired",
        ),
        (
            "kube-apiserver",
            'failed calling webhook "v.example.com": failed to call webhook: Post'
            ' "https://w.ns.svc:443/validate?timeout=10s": {}',
            "webhook-certificate-expired",
        ),
        (
            "kube-apiserver",
            'oidc authenticator: initializing plugin: Get "https://id.example.com/.well-known/'
            'openid-configuration": {}',
            "identity-provider-certificate",
        ),
        (
            "konnectivity-agent",
            '"cannot connect once" err="rpc error: code = Unavailable desc = connection error:'
            ' desc = \\"transport: authentication handshake failed: tls: {}\\""',
            "konnectivity-agent-certificate",
        ),
        ("kubelet", 'Get "https://192.0.2.1:6443/api/v1/nodes": {}', "certificate-expired-at"),
    ],
)
def test_a_clock_that_is_behind_is_no_certificate_that_expired(
    place: str, text: str, expired: str
) -> None:
    before = known_message.find((place,), text.format(BEFORE))
    after = known_message.find((place,), text.format(AFTER))
    assert before is not None
    assert after is not None
    assert (before.id, after.id) == ("clock-before-certificate", expired)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_row_is_whole(row: Row) -> None:
    assert row.source.startswith("https://")
    assert row.places
    assert "" not in row.places
    for words in (row.cause, row.advice):
        assert 20 <= len(words) <= 900, words
        assert not measures.WORDS.search(words)
        assert words == words.strip(" .")
        for group in re.findall(r"\{([a-z_]{1,20})\}", words):
            assert group in row.pattern.groupindex, group


LIMITED = [row for row in ROWS if row.since or row.until]


@pytest.mark.parametrize("row", LIMITED, ids=[row.id for row in LIMITED])
def test_a_cause_names_the_releases_that_it_is_about(row: Row) -> None:
    """Where the release of a program is not known, its user compares it."""
    words = re.findall(r"\d+(?:\.\d+)+", row.cause)
    assert {row.since, row.until} - {""} <= set(words)


PAGES = page.pages()
ENTRIES = {
    part.partition("\n")[0]: (path, part)
    for path, text in PAGES.items()
    if path != page.PAGE
    for part in text.split("\n## ")[1:]
}


def test_the_pages_have_each_row_once_and_lead_to_it_from_each_of_its_places() -> None:
    titles = [title for text in PAGES.values() for title in re.findall(r"(?m)^## (.+)$", text)]
    assert [name for name, count in Counter(titles).items() if count > 1] == []
    lists = dict(re.findall(r"(?m)^- ([\w -]+): (.+)$", PAGES[page.PAGE]))
    for row in ROWS:
        path, _part = ENTRIES[row.id]
        for place in row.places:
            name = "any program" if place == known_message.ANY else place
            link = f"[{row.id}]({page.PARTS.name}/{path.name}#{row.id})"
            assert link in lists[name].split(", ")


def test_galaxy_takes_each_page() -> None:
    """It refuses a page of more than 512 KiB in the folder docs itself."""
    assert len(PAGES[page.PAGE].encode()) < 400 * 1024


def test_the_page_names_no_finding_about_a_program_for_what_a_workload_brings_about() -> None:
    for name, (_path, part) in ENTRIES.items():
        if name in known_message.OF_WORKLOADS:
            assert "[KM610](../faults/KM610.md)" in part
            assert not [code for code in page.OF_PROGRAMS if code in part]


@pytest.mark.parametrize(
    "name",
    [
        "ceph-pool-missing",
        "cifs-share-missing",
        "ebs-volume-gone",
        "token-account-missing",
        "volume-owner-slow",
    ],
)
def test_no_node_corrects_a_volume_or_an_account_that_is_gone(name: str) -> None:
    lines = [(place, text) for row, place, text in LINES if row == name]
    assert lines
    for place, text in lines:
        found = known_message.find((place,), text)
        assert found is not None
        assert found.is_of_workload
        assert known_message.first((place,), (text,), is_of_program=True) is None


def test_the_page_gives_shared_advice_once() -> None:
    text = "\n".join(PAGES.values())
    for name, passage in known_message.shared().items():
        assert text.count(page._escaped(passage.advice[1:])) == 1
        users = [row for row in ROWS if f"[[{name}]]" in row.wording]
        assert text.count(f"[{passage.title}](../{page.PAGE.name}#{name})") == len(users)
    assert "[[" not in text.replace("\\[", "[")


STOPS = [row for row in ROWS if re.search(r"manifest.{0,60} out of the folder", row.advice)]


@pytest.mark.parametrize("row", STOPS, ids=[row.id for row in STOPS])
def test_a_manifest_that_is_moved_away_is_put_back(row: Row) -> None:
    """kube-apiserver follows its etcd."""
    moved = row.advice.index("out of the folder")
    back = row.advice.index("put its manifest back", moved)
    assert row.advice[back:].startswith("put its manifest back, and that of kube-apiserver once")
    assert "systemctl enable --now etcd" in row.advice[moved:]


# What an advice says next to a command that can take something away.
WARNINGS = [
    ("DNSStubListener=no", "/run/systemd/resolve/resolv.conf"),
    ("mkfs.xfs -n", "deletes all"),
    ("LimitNOFILE=1048576", "live-restore"),
    ("lower default_ulimits", "live-restore"),
    ("backlog_wait_time", "loses records"),
    ("disable multipathd", "multipath -ll shows no disk"),
    ('echo "InitiatorName=', "Only where it is missing or empty"),
    ("phase upload-config kubeadm", "overwrite the ConfigMap kubelet-config"),
    ("UNLOAD_STORAGE_MODULES=true", "drain it"),
    ("wc -c of that file", "is a secret"),
    ("vm.nr_hugepages=1024", "never set a lower number"),
    ("libnvidia-container is older", "1.35"),
    ("restart kube-apiserver of all", "one after the other"),
    ("add {action} to a policy", "explicit deny"),
    ("lvextend --poolmetadatasize", "lvconvert --repair"),
    ("rm -rf /var/lib/containers/storage", "podman"),
    ("fingerprint -in /etc/kubernetes/pki/ca.crt", "A registry"),
    ("hop-limit 2", "which lets each pod there take the role of the node"),
    ("apply the whole manifest", "kubectl diff -f first"),
    ("ceph osd blocklist rm", "reboot"),
    ("machine-config-daemon-force", "reboots the node"),
    ('{"metadata":{"finalizers":null}}', "its file system is lost"),
    ("conmon_cgroup =", "on a drained node"),
    ("the same driver (KM524)", "drain the node"),
    ("or hostUsers: true", "root of the node"),
    ("CATTLE_CA_CHECKSUM", "settings.management.cattle.io cacerts"),
    ("/dev/{array} --add", "do not --add"),
    ("stop and start the instance", "instance store"),
    ("systemReservedCgroup: /system.slice", "kills sshd"),
    ("crictl ps -a --state Exited -q | xargs", "drain the node"),
    ("mv {file} {file}.bad", "kubectl ko nb kick"),
    ("disable multipathd", "multipath -ll"),
]


@pytest.mark.parametrize(("command", "warning"), WARNINGS)
def test_an_advice_says_what_its_command_can_take_away(command: str, warning: str) -> None:
    rows = [row for row in ROWS if command in f"{row.cause} {row.advice}"]
    assert rows
    assert [row.id for row in rows if warning not in row.advice] == []


def test_one_modprobe_of_several_modules_takes_all_as_modules() -> None:
    """Without -a, modprobe gives all names after the first one to that module as parameters."""
    several = re.compile(r"modprobe (?!-)\w+(?: [a-z0-9]+_\w+)+")
    assert several.search("modprobe ip_tables iptable_nat")
    assert [row.id for row in ROWS if several.search(row.advice)] == []


def test_a_node_that_is_to_register_again_is_drained_and_no_member_of_etcd() -> None:
    """K3s and RKE2 remove the member of etcd of a Node that is deleted."""
    advice = [row.advice for row in ROWS if "cloud" in row.places]
    deleting = [text for text in advice if "kubectl delete node" in text]
    assert deleting
    for text in deleting:
        assert "drain" in text.partition("kubectl delete node")[0]
        assert "K3s or RKE2 with etcd" in text


def test_a_damaged_member_of_k3s_is_not_made_a_cluster_of_its_own() -> None:
    found = known_message.find(("k3s",), "walpb: crc mismatch")
    assert found is not None
    assert "K3s, RKE2 (only with server: in config.yaml)" in found.advice


def test_shared_advice_is_whole_and_used_by_several() -> None:
    used = Counter(name for row in ROWS for name in re.findall(r"\[\[(.*?)\]\]", row.wording))
    assert set(used) == set(known_message.shared())
    assert min(used.values()) > 1
    for name, passage in known_message.shared().items():
        assert name not in BY_ID
        assert passage.title
    for row in ROWS:
        assert "[[" not in row.advice
        values = {name: row.advice for name, row in known_message.shared().items()}
        assert row.advice == known_message.with_shared(row.wording, values)


def test_long_advice_of_several_messages_is_shared() -> None:
    ends = Counter(row.wording[-200:] for row in ROWS if len(row.wording) > 300)
    assert [end for end, count in ends.items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_pattern_repeats_within_bounds(row: Row) -> None:
    parsed = _parser.parse(row.pattern.pattern)
    assert all(most <= LONGEST_REPEAT for most in _repeats(parsed))
    assert not row.pattern.search("")


def _repeats(parsed: Any) -> Iterator[int]:
    """Yield how often each part of a pattern may be repeated."""
    if isinstance(parsed, (_parser.SubPattern, list, tuple)):
        items = list(parsed)
        if len(items) == 2 and items[0] in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            yield int(items[1][1])
        for item in items:
            yield from _repeats(item)


def _hostile(row: Row) -> Iterator[str]:
    """Yield long texts that begin as a pattern wants it, again and again."""
    words = re.findall(r"[A-Za-z][A-Za-z .:/-]{2,}", row.pattern.pattern)
    yield from ("a" * 2048, " " * 2048, "/a" * 1024, '"a' * 1024, "a: " * 700, "0." * 1024)
    yield from ((f"{word} " * 2048)[:2048] for word in words[:6])
    yield (" ".join(words) * 2048)[:2048]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_pattern_takes_little_time(row: Row) -> None:
    for text in _hostile(row):
        begun = time.process_time()
        row.pattern.search(text)
        assert time.process_time() - begun < SLOW, text[:60]


def _row(**fields: Any) -> Row:
    values = {
        "id": "x",
        "places": frozenset(("kubelet",)),
        "pattern": re.compile(r"cannot open (?P<path>\S{1,200})"),
        "since": "",
        "until": "",
        "cause": "The file {path} is not there",
        "advice": "ls -l {path} {other}",
        "source": "https://example.com/1",
    }
    return Row(**{**values, **fields})


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Row]]:
    """Yield the rows of a table that a test fills."""
    made: list[Row] = []
    monkeypatch.setattr(known_message, "files", lambda: {"x": tuple(made)})
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()
    yield made
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()


def test_groups_stand_in_cause_and_advice(rows: list[Row]) -> None:
    rows.append(_row())
    found = known_message.find(("kubelet",), 'err="cannot open /etc/a-b.conf"')
    assert found is not None
    assert found.cause == 'The file /etc/a-b.conf" is not there'  # what the pattern matches
    assert found.advice.startswith("ls -l PATH {other} (")
    found = known_message.find(("kubelet",), "cannot open /etc/a-b.conf")
    assert found is not None
    assert found.cause == "The file /etc/a-b.conf is not there"
    assert found.advice == "ls -l /etc/a-b.conf {other} (see https://example.com/1)"
    assert found.clause == "the file /etc/a-b.conf is not there"


@pytest.mark.parametrize("value", ["$(reboot)", "-rf", "a;b", "`id`", "a'b", "{other}"])
def test_what_a_shell_would_run_is_not_in_an_advice(rows: list[Row], value: str) -> None:
    rows.append(_row())
    found = known_message.find(("kubelet",), f"cannot open {value}")
    assert found is not None
    assert found.advice.startswith("ls -l PATH {other}")


def test_of_groups_side_by_side_only_one_has_a_value(rows: list[Row]) -> None:
    pattern = re.compile(r"cannot (?:open (?P<path>\S{1,200})|read (?P<other>\S{1,200}))")
    rows.append(_row(pattern=pattern, cause="{path}{other} fails", advice="ls {path}{other}"))
    found = known_message.find(("kubelet",), "cannot read /b")
    assert found is not None
    assert found.cause == "/b fails"
    assert found.advice.startswith("ls /b (")


def test_only_who_says_it_has_the_message(rows: list[Row]) -> None:
    rows.append(_row())
    text = "cannot open /a"
    assert known_message.find(("etcd",), text) is None
    assert known_message.find(("k3s",), text) is not None
    rows[0] = _row(places=frozenset((known_message.ANY,)))
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()
    assert known_message.find(("etcd",), text) is not None


IN_K3S = {
    "k3s",
    "kubelet",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "etcd",
    "kube-proxy",
    "network",
    "cloud",
}


@pytest.mark.parametrize(
    ("place", "known"),
    [
        ("dockerd", {"dockerd", "cri-dockerd", "containerd"}),
        ("cri-dockerd", {"dockerd", "cri-dockerd", "containerd"}),
        ("containerd", {"containerd"}),
        ("cloud-controller-manager", {"cloud"}),
        ("cloud", {"cloud"}),
        ("crio", {"crio"}),
        ("kube-proxy", {"kube-proxy"}),
        ("k3s", IN_K3S),
        ("rke2", IN_K3S | {"rke2"}),
        ("k0s", IN_K3S | {"k0s"}),
        ("kubelite", IN_K3S | {"kubelite"}),
    ],
)
def test_a_program_has_the_messages_of_those_within_it(
    rows: list[Row], place: str, known: set[str]
) -> None:
    names = {"dockerd", "cri-dockerd", "containerd", "crio", "rke2", "k0s", "kubelite", *IN_K3S}
    for name in names:
        pattern = re.compile(f"{name} fails")
        rows.append(_row(id=name, places=frozenset((name,)), pattern=pattern))
    found = {name for name in names if known_message.find((place,), f"{name} fails")}
    assert found == known


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/a\x1b[2J/b", "/a [2J/b"),
        ("/a\x00\u202e/b", "/a /b"),
        ("/" + "a" * 190, "/" + "a" * (known_message.VALUE - 2) + "…"),
    ],
)
def test_a_value_is_shown_in_one_line(rows: list[Row], value: str, shown: str) -> None:
    rows.append(_row())
    found = known_message.find(("kubelet",), f"cannot open {value}")
    assert found is not None
    assert found.cause == f"The file {shown} is not there"
    assert found.advice.startswith("ls -l PATH {other}")


@pytest.mark.parametrize(
    ("release", "is_known"),
    [
        ("v1.19.9", False),
        ("v1.20.0", True),
        ("1.20.0-rc.1", True),
        ("Kubernetes v1.22.17", True),
        ("v1.23.0", False),
        (None, True),
        ("?", True),
    ],
)
def test_a_message_has_a_cause_in_some_releases(
    rows: list[Row], release: str | None, is_known: bool
) -> None:
    rows.append(_row(since="1.20", until="1.22"))
    found = known_message.find(("kubelet",), "cannot open /a", release)
    assert (found is not None) is is_known


@pytest.mark.parametrize(
    ("release", "is_known"), [("1.4.3", True), ("1.4.4", False), ("1.4.3-rc.1", True)]
)
def test_a_patch_release_ends_it(rows: list[Row], release: str, is_known: bool) -> None:
    rows.append(_row(until="1.4.3"))
    found = known_message.find(("kubelet",), "cannot open /a", release)
    assert (found is not None) is is_known


def test_the_row_that_matches_most_counts(rows: list[Row]) -> None:
    rows.append(_row())
    rows.append(_row(id="y", pattern=re.compile("cannot open /a: of the disk")))
    found = known_message.find(("kubelet",), "cannot open /a: of the disk")
    assert found is not None
    assert found.id == "y"
    found = known_message.first(("kubelet",), ["", "nothing", "cannot open /a"])
    assert found is not None
    assert found.id == "x"
    assert known_message.first(("kubelet",), ["nothing"]) is None


def test_quotes_and_spaces_of_a_logger_do_not_count(rows: list[Row]) -> None:
    rows.append(_row(pattern=re.compile('a "b" c d')))
    assert known_message.find(("kubelet",), 'err="a \\\\\\"b\\\\\\" c\\nd"') is not None
    assert known_message.find(("kubelet",), f'{"x" * known_message.LONGEST}a "b" c d') is None


def test_the_page_names_each_finding_whose_own_page_leads_to_the_table():
    leading = {
        path.stem
        for path in (machine.ROOT / "docs" / "faults").glob("KM*.md")
        if "known-messages.md" in path.read_text(encoding="utf-8")
    }
    told = {code for codes in page.FINDINGS.values() for code in codes}
    assert leading == told | set(page.OF_PODS)


@pytest.mark.parametrize(
    ("component", "text", "last"),
    [
        ("kube-apiserver", "Error: unknown flag: --cloud-provider", "1.32"),
        ("kube-scheduler", "Error: unknown flag: --policy-config-file", "1.22"),
        ("kube-apiserver", "Error: unknown flag: --policy-config-file", None),  # never had it
        ("kube-apiserver", "Error: unknown flag: --storage-dir", None),
        (
            "kube-controller-manager",
            'for "--feature-gates" flag: unrecognized feature gate: TTLAfterFinished',
            "1.24",
        ),
    ],
)
def test_the_last_release_of_a_flag_or_a_gate_is_told(component, text, last):
    found = known_message.find((component,), text)
    assert found is not None
    assert re.findall(r"\b\d\.\d\d\b", found.cause) == ([last] if last else [])


def test_a_proxy_beside_any_program_says_nothing_of_node_exporter() -> None:
    line = "failed to listen on secure address: listen tcp :9443: bind: address already in use"
    found = known_message.find(("kube-rbac-proxy", "manager"), line)
    assert found is None or found.id != "node-exporter-port-taken"
    known = known_message.find(("kube-rbac-proxy", "node-exporter"), line)
    assert known is not None
    assert known.id == "node-exporter-port-taken"
