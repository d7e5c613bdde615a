# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that keep a component from its work, and others that healthy components repeat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import repeated_lines
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    repeated_errors as evidence,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import repeated_errors
from tests.unit.support import answers

CAPTURES = Path(__file__).parents[4] / "fixtures" / "node" / "v1.36.3" / "repeated-errors.json"
NOW = 1_800_000_000.0
HEAD = "E1126 18:00:00.000001       1 x.go:1] "
REFUSED = HEAD + '"Failed to ensure lease exists, will retry" err="Unauthorized" interval="7s"'


def entry(line: str = REFUSED, **more) -> evidence.RepeatedError:
    values = {"count": 60, "minutes": 10, "first": NOW - 590, "last": NOW - 5, "line": line}
    return evidence.RepeatedError(**{**values, **more})


def worst(component: str, *entries: evidence.RepeatedError) -> repeated_errors.Repeated | None:
    row = evidence.ComponentErrors(component=component, since=NOW - 600, entries=entries)
    return repeated_errors.worst(row, NOW)


# What keeps each component from its work: (component, line)
OBSTACLES = (
    (
        "rke2",
        HEAD + "Aborting sync. Failed to run iptables-restore: exit status 2 (iptables-restore"
        " v1.8.11 (nf_tables): Set KUBE-SRC-A doesn't exist.",
    ),
    ("kubelet", REFUSED),
    (
        "kube-controller-manager",
        HEAD + "k8s.io/client-go/dynamic/dynamicinformer/informer.go:90: Failed to list"
        " acme.example.com/v1, Resource=challenges: conversion webhook for acme.example.com/v1,"
        " Kind=Challenge failed: Post https://w.acme.svc:443/convert?timeout=30s: service"
        ' "w" not found',
    ),
    (
        "kubelet",
        HEAD + r'"Failed to watch" err="failed to list *v1.Node: nodes \"w1\" is forbidden: User'
        r" \"system:node:w1\" cannot list resource \"nodes\" in API group \"\" at the cluster"
        r' scope" logger="UnhandledError" reflector="k8s.io/client-go/informers/factory.go:160"'
        ' type="*v1.Node"',
    ),
    (
        "kubelet",
        HEAD + r'"Unable to register node with API server" err="Post \"https://api:6443/api/v1/'
        r'nodes\": dial tcp: lookup api on 10.0.0.2:53: no such host" node="w1"',
    ),
    (
        "kubelet",
        HEAD + '"Error updating node status, will retry" err="error getting node \\"w1\\": nodes'
        ' \\"w1\\" not found"',
    ),
    (
        "kube-apiserver",
        HEAD + "cacher (x.y.io): unexpected ListAndWatch error: failed to list y.io/v1, Kind=X:"
        ' conversion webhook for y.io/v1alpha2, Kind=X failed: Post "https://w.y.svc:443/convert":'
        " dial tcp 10.96.1.2:443: connect: no route to host; reinitializing...",
    ),
    (
        "kube-scheduler",
        HEAD + "k8s.io/client-go/informers/factory.go:135: Failed to list *v1.StorageClass: Get"
        " https://192.168.187.142:6443/apis/storage.k8s.io/v1/storageclasses?limit=500: x509:"
        " certificate signed by unknown authority",
    ),
    (
        "kube-controller-manager",
        HEAD + "error retrieving resource lock kube-system/kube-controller-manager: Get"
        ' "https://10.0.0.1:6443/apis": dial tcp 10.0.0.1:6443: i/o timeout',
    ),
    (
        "kube-controller-manager",
        HEAD + r'"Failed to update lock" err="Internal error occurred: failed calling webhook'
        r" \"gone.example.com\": failed to call webhook: Post \"https://gone.default.svc:443/\":"
        r' service \"gone\" not found"',
    ),
    (
        "kube-apiserver",
        "W1126 18:00:00.000001       1 logging.go:59] [core] [Channel #1 SubChannel #3]grpc:"
        ' addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", }. Err: connection'
        ' error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect:'
        ' connection refused"',
    ),
    (
        "kube-apiserver",
        "W1126 18:00:00.000001       1 dispatcher.go:225] Failed calling webhook, failing closed"
        ' gone.example.com: failed calling webhook "gone.example.com": failed to call webhook: Post'
        ' "https://gone.default.svc:443/v?timeout=10s": dial tcp 10.96.1.1:443: connect: no route',
    ),
    (
        "etcd",
        '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"rafthttp/probing_status.go:68",'
        '"msg":"prober detected unhealthy status","remote-peer-id":"f7","rtt":"0s","error":"dial'
        ' tcp 10.0.0.2:2380: connect: no route to host"}',
    ),
    (
        "containerd",
        'time="2026-11-26T18:00:00Z" level=error msg="cannot write" error="mkdir'
        ' /var/lib/containerd/x: read-only file system"',
    ),
)
# What healthy components say, and what is about users' objects: (component, line)
OTHERS = (
    (
        "rke2",
        HEAD + r'"Could not set up iptables canary" err="error creating chain'
        r" \"KUBE-KUBELET-CANARY\": exit status 3: ip6tables v1.8.4 (legacy): can\'t initialize"
        " ip6tables table `nat': Table does not exist (do you need to insmod?)\"",
    ),
    (
        "kubelet",
        HEAD + r'"Failed to get system container stats" err="failed to get cgroup stats for'
        r' \"/system.slice/kubelet.service\": failed to get container info"',
    ),
    ("kubelet", HEAD + '"Unable to read config path" err="path does not exist, ignoring"'),
    (
        "kubelet",
        HEAD + r'"Partial failure issuing cadvisor.ContainerInfoV2" err="partial failures:'
        r' [\"/a\": RecentStats: unable to find data in memory cache]"',
    ),
    (
        "kubelet",
        HEAD + r'"Eviction manager: failed to get summary stats" err="failed to get node info:'
        r' node \"w1\" not found"',
    ),
    (
        "kubelet",
        HEAD + r'"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"a\" with'
        r" ImagePullBackOff: \"Back-off pulling image \\\"x\\\": dial tcp: lookup reg.lan: no such"
        r' host\"" pod="default/web-1"',
    ),
    (
        "kubelet",
        HEAD + r'"Failed to watch" err="failed to list *v1.Secret: secrets \"s\" is forbidden:'
        r" User \"system:node:w1\" cannot list resource \"secrets\" in API group \"\" in the"
        r" namespace \"a\": no relationship found between node 'w1' and this object\""
        r' reflector="object-\"a\"/\"s\"" type="*v1.Secret"',
    ),
    (
        "kubelet",
        HEAD + r'"MountVolume.SetUp failed" err="mount failed: dial tcp 10.0.0.7:2049: i/o timeout"'
        ' pod="default/web-1"',
    ),
    ("kubelet", HEAD + r'"Probe errored" err="rpc error: code = Unknown desc = exec: timeout"'),
    # KM223 tells of it
    (
        "kube-controller-manager",
        HEAD + r'"Unhandled Error" err="sync \"default/web-7d\" failed with Internal error'
        r" occurred: failed calling webhook \"gone.example.com\": failed to call webhook: Post"
        r' \"https://gone.default.svc:443/v?timeout=10s\": service \"gone\" not found"',
    ),
    (
        "kube-controller-manager",
        HEAD + r'"Unhandled Error" err="sync \"a/b\" failed with Operation cannot be fulfilled on'
        r" replicasets.apps \"b\": the object has been modified; please apply your changes to the"
        ' latest version and try again"',
    ),
    (
        "kube-controller-manager",
        HEAD + '"Unhandled Error" err="unable to retrieve the complete list of server APIs:'
        ' metrics.k8s.io/v1beta1: the server is currently unable to handle the request"',
    ),
    (
        "kube-controller-manager",
        HEAD + r'"Unhandled Error" err="sync \"a/b\" failed with pods \"b-\" is forbidden: exceeded'
        ' quota: q, requested: pods=1, used: pods=1, limited: pods=1"',
    ),
    (
        "kube-controller-manager",
        HEAD + r'"Failed to watch" err="failed to list *v1.PartialObjectMetadata: the server could'
        ' not find the requested resource"',
    ),
    (
        "kube-controller-manager",
        HEAD + r'"Unhandled Error" err="error syncing claim \"a/c\": failed to provision: dial tcp'
        ' 10.0.0.9:443: connect: connection refused"',
    ),
    (
        "kube-apiserver",
        HEAD + "watch chan error: etcdserver: mvcc: required revision has been compacted",
    ),
    (
        "kube-apiserver",
        HEAD + '"Unable to authenticate the request" err="[x509: certificate has expired or is not'
        " yet valid: current time 2026-11-26T18:00:00Z is after 2026-01-01T00:00:00Z, invalid"
        ' bearer token]"',
    ),
    (
        "kube-apiserver",
        HEAD + '"Timeout or abort while handling" err="context deadline exceeded" method="GET"',
    ),
    (
        "kube-apiserver",
        HEAD + r'"Unhandled Error" err="v1beta1.metrics.k8s.io failed with: failing or missing'
        r" response from https://10.1.1.1:443/apis/metrics.k8s.io/v1beta1: Get \"https://10.1.1.1"
        r':443/apis\": context deadline exceeded"',
    ),
    (
        "kube-apiserver",
        "W1126 18:00:00.000001       1 logging.go:59] [core] [Channel #9 SubChannel #10]grpc:"
        ' addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", }. Err: connection'
        ' error: desc = "transport: authentication handshake failed: context canceled"',
    ),
    (
        "etcd",
        '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"txn/util.go:93","msg":"apply request'
        ' took too long","took":"120ms","expected-duration":"100ms","error":"context deadline'
        ' exceeded"}',
    ),
    (
        "etcd",
        '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"wal/wal.go:1","msg":"slow fdatasync"'
        ',"took":"1.2s","expected-duration":"1s"}',
    ),
    (
        "etcd",
        '{"level":"warn","ts":"2026-11-26T18:00:00Z","msg":"rejected connection on client'
        ' endpoint","remote-addr":"10.0.0.1:1","error":"remote error: tls: bad certificate"}',
    ),
    (
        "containerd",
        'time="2026-11-26T18:00:00Z" level=error msg="failed to load cni during init, please check'
        ' CRI plugin status before setting up network for pods" error="cni config load failed: no'
        ' network config found in /etc/cni/net.d: cni plugin not initialized"',
    ),
    (
        "containerd",
        r'time="2026-11-26T18:00:00Z" level=error msg="ExecSync for \"1\" failed" error="failed to'
        ' exec in container: open /a/b: no space left on device"',
    ),
    (
        "kubelet",
        "W1129 02:55:19.044725    1148 watcher.go:87] Error while processing event"
        ' ("/sys/fs/cgroup/memory/system.slice/run-r02.scope": 0x40000100 == IN_CREATE|IN_ISDIR):'
        " inotify_add_watch /sys/fs/cgroup/memory/system.slice/run-r02.scope: no such file or"
        " directory",
    ),
    (
        "kubelet",
        "W1129 02:50:08.368238     612 server.go:669] grpc: Server.Serve failed to create"
        ' ServerTransport: connection error: desc = "transport: http2Server.HandleStreams failed to'
        ' receive the preface from client: EOF"',
    ),
    (
        "containerd",
        r'time="2026-11-26T18:00:00Z" level=error msg="PullImage \"reg.lan/a:1\" failed"'
        ' error="failed to do request: dial tcp: lookup reg.lan: no such host"',
    ),
)


@pytest.mark.parametrize(("component", "line"), OBSTACLES)
def test_what_keeps_a_component_from_its_work(component, line):
    error = worst(component, entry(line))
    assert error is not None
    assert error.is_obstacle
    assert error.answer is not None


@pytest.mark.parametrize(("component", "line"), OTHERS)
def test_what_healthy_components_say_is_nothing(component, line):
    assert worst(component, entry(line, pods=int("pod=" in line or "PullImage" in line))) is None


@pytest.mark.parametrize(
    "more",
    [
        {"last": NOW - 130},  # it ended
        {"last": NOW - 50},  # it was said each ten seconds
        {"minutes": 3},  # of a restart
        {"count": 4},
        {"last": None},
    ],
)
def test_what_does_not_go_on_is_nothing(more):
    assert worst("kubelet", entry(**more)) is None


def test_an_error_that_is_said_once_a_minute_goes_on():
    assert worst("kubelet", entry(count=8, last=NOW - 100)) is not None


# A kubelet tries an operation that fails again after 2m2s at most, and says so.
WAITS = (
    HEAD + 'Operation for "{}" failed. No retries permitted until 2020-05-14 19:52:30 -0700 PDT'
    " m=+7665.38 (durationBeforeRetry {}). Error: {}"
)
SOCKET = "/var/lib/kubelet/plugins_registry/x/csi.sock"
NO_REGISTRAR = (
    f'"RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket {SOCKET}, err:'
    ' rpc error: code = Unimplemented desc = unknown service pluginregistration.Registration"'
)
NOT_REGISTERED = "RegisterPlugin error -- plugin registration failed with err: rpc error: odd"
OF_POD = 'MountVolume.SetUp failed for volume "v" (UniqueName: "v") pod "a" (UID: "b") : {}'


def waiting(line: str, wait: str = "2m2s", **more) -> evidence.RepeatedError:
    values = {"count": 4, "minutes": 4, "first": NOW - 480, "last": NOW - 110}
    return entry(WAITS.format(SOCKET, wait, line), **{**values, **more})


@pytest.mark.parametrize(
    ("line", "more", "is_obstacle"),
    [
        (NO_REGISTRAR, {}, True),
        (NO_REGISTRAR, {"last": NOW - 160}, True),
        (NO_REGISTRAR, {"count": 3, "minutes": 3, "first": NOW - 360}, True),
        (NOT_REGISTERED, {}, False),
        (OF_POD.format("mkdir /var/lib/kubelet/x: read-only file system"), {"pods": 1}, True),
    ],
)
def test_an_operation_that_waits_longest_goes_on(line, more, is_obstacle):
    error = worst("kubelet", waiting(line, **more))
    assert error is not None
    assert error.is_obstacle is is_obstacle


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (NO_REGISTRAR, {"wait": "1m4s"}),
        (NO_REGISTRAR, {"last": NOW - 170}),
        (NO_REGISTRAR, {"count": 2}),
        (NO_REGISTRAR, {"first": NOW - 300}),
        (NO_REGISTRAR, {"first": None}),
        (NO_REGISTRAR, {"last": None}),
        (OF_POD.format('secret "s" not found'), {"pods": 1}),
        (OF_POD.format("of which nothing is known"), {"pods": 1}),
    ],
)
def test_an_operation_that_does_not_wait_longest_or_is_of_a_pod_is_nothing(line, more):
    assert worst("kubelet", waiting(line, **more)) is None


def test_the_same_error_of_many_pods_is_the_machines():
    line = (
        'time="2026-11-26T18:00:00Z" level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:a}'
        ' failed, error" error="mkdir /run/containerd/x: no space left on device"'
    )
    assert worst("containerd", entry(line, pods=1)) is None
    error = worst("containerd", entry(line, pods=3))
    assert error is not None
    assert error.is_obstacle


def test_images_that_no_registry_gives():
    line = (
        r'time="2026-11-26T18:00:00Z" level=error msg="PullImage \"reg.lan/a:1\" failed"'
        ' error="failed to do request: dial tcp: lookup reg.lan: no such host"'
    )
    error = worst("containerd", entry(line, pods=3))
    assert error is not None
    assert error.is_obstacle


def test_a_machine_that_keeps_pods_from_starting_is_found_by_its_kubelet():
    line = (
        HEAD + '"MountVolume.SetUp failed" err="mkdir /var/lib/kubelet/pods/1: read-only file'
        ' system" pod="a/b"'
    )
    assert worst("kubelet", entry(line, pods=2)) is None
    error = worst("kubelet", entry(line, pods=3))
    assert error is not None
    assert error.is_obstacle


@pytest.mark.parametrize(
    ("reason", "minutes", "count", "is_obstacle"),
    [
        ("read-only file system", 4, 5, True),
        # A container that just ended leaves such an error too.
        ("no such file or directory", 4, 5, False),
        ("no such file or directory", 7, 20, False),
        ("no such file or directory", 8, 19, False),
        ("no such file or directory", 8, 20, True),
    ],
)
def test_how_long_an_error_about_one_pod_has_to_be_said(reason, minutes, count, is_obstacle):
    line = (
        HEAD + '"CreatePodSandbox for pod failed" err="open'
        f' /sys/fs/cgroup/memory/kubepods/x/cgroup.procs: {reason}" pod="a/b"'
    )
    error = worst("kubelet", entry(line, pods=1, minutes=minutes, count=count))
    assert (error is not None and error.is_obstacle) == is_obstacle


STATUS = '"Error updating node status, will retry" err="error getting node \\"w1\\": '


@pytest.mark.parametrize(
    ("component", "reason", "takes_long"),
    [
        ("kubelet", STATUS + 'Get https://10.0.0.1:6443/x: context deadline exceeded"', True),
        ("kubelet", STATUS + 'Get https://10.0.0.1:6443/x: net/http: TLS handshake timeout"', True),
        ("kubelet", STATUS + 'etcdserver: request timed out"', True),
        ("kubelet", STATUS + 'etcdserver: leader changed"', True),
        ("kubelet", STATUS + 'etcdserver: no leader"', False),
        ("kubelet", STATUS + 'dial tcp 10.0.0.1:6443: i/o timeout"', False),
        ("kubelet", STATUS + 'dial tcp 10.0.0.1:6443: connect: connection timed out"', False),
        ("kubelet", STATUS + 'dial tcp 10.0.0.1:6443: connect: connection refused"', False),
        (
            "kube-scheduler",
            "error retrieving resource lock kube-system/kube-scheduler: Get https://10.0.0.1/x:"
            " context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            True,
        ),
    ],
)
def test_a_server_that_is_slow_at_times_keeps_no_component_from_its_work(
    component, reason, takes_long
):
    short = worst(component, entry(HEAD + reason, minutes=7, count=60))
    assert (short is None) == takes_long
    seldom = worst(component, entry(HEAD + reason, minutes=10, count=19))
    assert (seldom is None) == takes_long
    lasting = worst(component, entry(HEAD + reason, minutes=8, count=20))
    assert lasting is not None
    assert lasting.is_obstacle


def test_an_unknown_error_that_is_said_all_the_time_is_quoted():
    line = HEAD + '"Something new" err="of which nothing is known"'
    error = worst("kubelet", entry(line))
    assert error is not None
    assert (error.is_obstacle, error.answer) == (False, None)
    assert worst("kubelet", entry(line, minutes=7)) is None
    assert worst("kubelet", entry(line, count=19)) is None
    assert worst("kubelet", entry(line, pods=1)) is None


def test_a_cgroup_that_is_not_watched_for_another_reason_is_quoted():
    line = (
        'W1129 02:55:19.044725    1148 watcher.go:87] Error while processing event ("/sys/fs/cgroup'
        '/pids/a": 0x40000100 == IN_CREATE|IN_ISDIR): inotify_add_watch /sys/fs/cgroup/pids/a:'
        " operation not supported"
    )
    assert worst("kubelet", entry(line)) is not None


def test_a_cause_comes_before_what_follows_from_it():
    line = (
        HEAD + r'"Unable to register mirror pod because node is not registered yet" err="node'
        r' \"w1\" not found" node="w1"'
    )
    error = worst("kubelet", entry(line, count=5000), entry())
    assert error is not None
    assert error.entry.line == REFUSED


WAITS_LINE = HEAD + "failed to sync resource monitors: timed out waiting for quota monitor sync"
GC_LINE = HEAD + '"timed out waiting for dependency graph builder sync during GC sync"'
KIND = "Failed to list acme.cert-manager.io/v1alpha3, Resource=challenges: "
CONVERSION = (
    'conversion webhook for acme.cert-manager.io/v1alpha2, Kind=Challenge failed: Post "https://x.y'
    '.svc:443/convert?timeout=30s": service "x" not found'
)
PARTIAL = "Failed to watch *v1.PartialObjectMetadata: failed to list *v1.PartialObjectMetadata: "


@pytest.mark.parametrize(
    ("lines", "quoted", "waits"),
    [
        ([WAITS_LINE, HEAD + KIND + CONVERSION], KIND, 1),
        ([GC_LINE, WAITS_LINE, HEAD + KIND + CONVERSION], KIND, 2),
        ([WAITS_LINE, HEAD + PARTIAL + "operation not supported"], PARTIAL, 1),
        ([HEAD + KIND + CONVERSION], KIND, 0),
        ([WAITS_LINE], "timed out waiting for quota monitor sync", 0),
    ],
)
def test_what_a_controller_waits_for_is_because_of_a_kind_that_it_cannot_list(lines, quoted, waits):
    found = worst("kube-controller-manager", *map(entry, lines))
    assert found is not None
    assert found.is_obstacle
    assert quoted in found.message
    assert len(found.waiting) == waits


def test_a_known_cause_of_another_kind_comes_before_what_waits():
    other = HEAD + "error retrieving resource lock kube-system/x: Unauthorized"
    found = worst("kube-controller-manager", *map(entry, (other, WAITS_LINE)))
    assert found is not None
    assert found.waiting == ()


def test_an_obstacle_comes_before_what_is_more_frequent():
    error = worst("kubelet", entry(HEAD + '"Something new"', count=900), entry())
    assert error is not None
    assert error.is_obstacle


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"since": NOW - 20}, ""),  # it was started a moment ago
        ({"error": "denied"}, "denied"),
        ({"cut": True, "since": NOW - 200}, "not all of it was read, from 07:56:40Z on"),
        # an error that is said each minute is not seen often enough in a part of the window
        ({"cut": True, "since": NOW - 400}, "not all of it was read, from 07:53:20Z on"),
        ({"cut": True, "since": NOW - 479}, "not all of it was read, from 07:52:01Z on"),
        ({"cut": True, "since": NOW - 480}, ""),  # eight minutes are enough
        # it started nine minutes ago, and journald left out what it said too fast
        (
            {"cut": True, "since": NOW - 500, "started": NOW - 620},
            "not all of it was read, from 07:51:40Z on",
        ),
        # further errors of the window were left out
        ({"cut": True}, "not all of it was read, from 07:50:00Z on"),
        ({"cut": True, "since": None}, "not all of it was read"),
    ],
)
def test_a_log_that_was_not_read_as_a_whole(more, words):
    row = evidence.ComponentErrors(component="kubelet", **{"since": NOW - 600, **more})
    assert repeated_errors.gap(row, NOW) == words


def test_what_the_collector_keeps_is_what_may_go_on():
    assert (repeated_lines.MINUTES, repeated_lines.COUNT) == (
        repeated_errors.MINUTES,
        repeated_errors.COUNT,
    )
    assert repeated_lines.TRIES == repeated_errors.TRIES


@pytest.mark.parametrize(
    ("capture", "kinds"),
    [
        # seven minutes after a cluster was made, on a busy machine
        ("healthy/m1", {}),
        ("healthy/w1", {}),
        # the binding of the scheduler's role is gone; a webhook of pods does not exist
        ("broken/m1", {"kube-scheduler": "forbidden", "kube-apiserver": "webhook"}),
        # the name of the API server is not resolved, and runc is gone
        ("broken/w1", {"kubelet": "name", "containerd": "runtime"}),
        # two minutes after both were undone
        ("gone/m1", {}),
        ("gone/w1", {}),
        # leases of nodes go to a webhook that does not exist
        ("lease/m1", {"kubelet": "webhook", "kube-apiserver": "webhook"}),
        ("lease/w1", {"kubelet": "webhook"}),
    ],
)
def test_captures_of_a_real_cluster(capture, kinds):
    raw = json.loads(CAPTURES.read_text(encoding="utf-8"))[capture]
    answer = answers.typed(evidence.RepeatedErrors, raw)
    errors = {
        row.component: repeated_errors.worst(row, answer.read_at) for row in answer.components
    }
    assert {
        component: error.answer and error.answer.kind
        for component, error in errors.items()
        if error is not None
    } == kinds
    assert all(error.is_obstacle for error in errors.values() if error is not None)


SYNC = HEAD + '"MountVolume.SetUp failed" err="something"'
RUNTIME_LINE = 'time="2026-11-26T18:00:00Z" level=error msg="x" error="something"'


@pytest.fixture
def answer(monkeypatch):
    """Return a function that lets each line have an answer of this kind."""

    def give(kind):
        found = repeated_errors.Answer(kind, "something is wrong", "see it")
        monkeypatch.setattr(repeated_errors.error_answer, "read", lambda line, component: found)

    return give


def is_obstacle(component: str, line: str, pods: int) -> bool:
    error = worst(component, entry(line, pods=pods))
    return error is not None and error.is_obstacle


@pytest.mark.parametrize("kind", ["machine", "disk", "resources", "cgroup", "kernel", "runtime"])
def test_kinds_of_the_machine(answer, kind):
    answer(kind)
    assert is_obstacle("containerd", RUNTIME_LINE, 0)
    assert not is_obstacle("containerd", RUNTIME_LINE, 1)
    assert is_obstacle("kubelet", SYNC, 3)
    assert not is_obstacle("kubelet", SYNC, 2)


@pytest.mark.parametrize("kind", ["name", "refused", "unreachable", "timeout", "certificate"])
def test_kinds_of_the_network(answer, kind):
    answer(kind)
    assert is_obstacle("containerd", RUNTIME_LINE, 3)
    assert not is_obstacle("containerd", RUNTIME_LINE, 2)
    assert not is_obstacle("containerd", RUNTIME_LINE, 0)
    assert not is_obstacle("kubelet", SYNC, 3)
    assert is_obstacle("kubelet", REFUSED, 0)


@pytest.mark.parametrize("kind", ["conflict", "invalid", "denied", "slow", "busy"])
def test_kinds_that_pass(answer, kind):
    answer(kind)
    for component, line in (("kubelet", REFUSED), ("containerd", RUNTIME_LINE)):
        assert not is_obstacle(component, line, 0)
        assert not is_obstacle(component, line, 3)


def test_a_line_of_the_components_work_about_many_pods_is_its_own(answer):
    answer("forbidden")
    line = HEAD + '"PLEG: something" err="x"'
    assert [is_obstacle("kubelet", line, pods) for pods in (0, 1, 2, 3)] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("ago", "count", "goes_on"), [(119, 6, True), (121, 6, False), (100, 6, True)]
)
def test_what_was_said_within_two_minutes_goes_on(ago, count, goes_on):
    error = worst("kubelet", entry(count=count, last=NOW - ago))
    assert (error is not None) == goes_on


@pytest.mark.parametrize(
    ("minutes", "count", "is_quoted"), [(8, 20, True), (7, 20, False), (8, 19, False)]
)
def test_an_unknown_error_is_quoted_from_so_many_on(minutes, count, is_quoted):
    line = HEAD + '"Something new" err="of which nothing is known"'
    error = worst("kubelet", entry(line, minutes=minutes, count=count))
    assert (error is not None) == is_quoted


def test_the_most_frequent_unknown_error_is_quoted():
    lines = [HEAD + f'"Something {word}" err="nothing is known"' for word in ("new", "old")]
    error = worst("kubelet", entry(lines[0], count=30), entry(lines[1], count=60))
    assert error is not None
    assert error.entry.line == lines[1]


@pytest.mark.parametrize(("length", "is_whole"), [(243, True), (244, False)])
def test_a_long_message_is_quoted_by_its_ends(length, is_whole):
    message = "ab" * (length // 2) + "c" * (length % 2)
    row = evidence.ComponentErrors(component="kubelet")
    error = repeated_errors.Repeated(row, entry(HEAD + message), None, False)
    assert (error.message == message) == is_whole
    assert error.message.startswith(message[:120])
    assert error.message.endswith(message[-120:])


def of_node(component: str, *entries: evidence.RepeatedError) -> repeated_errors.NodeError | None:
    rows = [{"component": component, "entries": [vars(item) for item in entries]}]
    data = {"read_at": NOW, "components": rows}
    return repeated_errors.of_node(
        {"collectors": {"repeated_errors": {"status": "ok", "data": data}}}
    )


HUGEPAGES = (
    HEAD + 'Error updating node status, will retry: failed to patch status "{… [900 bytes] …}" for'
    ' node "w1": Node "w1" is invalid: [status.capacity.hugepages-2Mi: Invalid value: x: may not'
    " have pre-allocated hugepages for multiple page sizes]"
)


def test_what_a_kubelet_repeats_of_its_node():
    found = of_node("kubelet", entry(HUGEPAGES), entry(HEAD + "something else", count=900))
    assert found is not None
    assert "hugepages of more than one size" in found.clause
    assert "kubectl delete node" in found.advice
    assert found.message.endswith("for multiple page sizes]")


@pytest.mark.parametrize(
    ("component", "item"),
    [
        ("kube-scheduler", entry(HUGEPAGES)),
        ("kubelet", entry(HUGEPAGES, last=NOW - 300)),
        ("kubelet", entry(HUGEPAGES, minutes=2)),
        ("kubelet", entry(HEAD + "PLEG is not healthy")),
    ],
)
def test_what_is_no_error_of_a_node(component, item):
    assert of_node(component, item) is None


NO_STATE = (
    'time="2026-11-26 18:00:00.000000000Z" level=error msg="Killing container '
    + "5a" * 32
    + " failed: `crun --root /run/crun kill x KILL` failed: error opening file"
    ' `/run/crun/x/status`: No such file or directory"'
)


def of_runtime(component: str, *entries: evidence.RepeatedError):
    rows = [{"component": component, "entries": [vars(item) for item in entries]}]
    data = {"read_at": NOW, "components": rows}
    return repeated_errors.of_runtime(
        {"collectors": {"repeated_errors": {"status": "ok", "data": data}}}
    )


def test_what_keeps_a_runtime_from_its_work():
    found = of_runtime("crio", entry(NO_STATE), entry('time="x" level=error msg="y"', count=900))
    assert found is not None
    assert found.component == "crio"
    assert "/run/crun" in found.clause
    assert "default_runtime" in found.advice


@pytest.mark.parametrize(
    ("component", "item"),
    [
        ("kubelet", entry(REFUSED)),
        ("crio", entry(NO_STATE, last=NOW - 300)),
        ("crio", entry('time="x" level=error msg="nothing that is known"')),
    ],
)
def test_what_is_no_obstacle_of_a_runtime(component, item):
    assert of_runtime(component, item) is None


UNHEARD = (
    'time="x" level=error msg="Handler for GET /v1.40/containers/json returned error: write unix'
    ' /var/run/docker.sock->@: write: broken pipe"'
)


@pytest.mark.parametrize(
    ("component", "item", "is_told"),
    [
        ("dockerd", entry(UNHEARD), True),
        ("dockerd", entry(UNHEARD, last=NOW - 300), False),
        ("dockerd", entry('time="x" level=error msg="write: broken pipe"'), False),
        ("containerd", entry(UNHEARD), False),
    ],
)
def test_answers_of_docker_whose_client_has_gone(component, item, is_told):
    rows = [{"component": component, "entries": [vars(item)]}]
    data = {"read_at": NOW, "components": rows}
    document = {"collectors": {"repeated_errors": {"status": "ok", "data": data}}}
    line = repeated_errors.unheard_docker(document)
    assert line.startswith("Handler for GET") is is_told
    assert bool(line) is is_told


OF_KUBELET = HEAD + '"Failed to start" err="open /dev/kmsg: operation not permitted"'
OF_PODS = HEAD + (
    '"Error syncing pod" err="failed to set bridge addr: \\"cni0\\" already has an IP address'
    ' different from 10.244.1.1/24"'
)


@pytest.mark.parametrize(
    ("line", "pods", "is_told"),
    [
        (OF_KUBELET, 0, True),
        (OF_KUBELET, 1, True),  # no event of a pod has it, so that no other finding tells it
        (OF_KUBELET, 3, True),
        (OF_PODS, 0, True),
        (OF_PODS, 1, False),
        (OF_PODS, 3, True),
    ],
)
def test_a_known_message_that_events_have_too_is_told_of_many_pods(line, pods, is_told):
    error = worst("kubelet", entry(line, pods=pods))
    assert (error is not None and error.is_obstacle) is is_told
