# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From lines of a journal to the error of a component: lines of one workload are none."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import repeated_lines
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    repeated_errors as evidence,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import repeated_errors

NOW = 1_800_000_000.0
EVERY = 5  # seconds
KLOG = "E1126 18:00:00.000001    1234 pod_workers.go:1301] "
STAMP = 'time="2026-11-26T18:00:00.123456789Z" level=error msg='
CRIO = 'time="2026-11-26 18:00:00.123456789Z" level=error msg='
TASK = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc"
    " create failed: unable to start container process: "
)
ID = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"


def worst(component: str, *texts: str) -> repeated_errors.Repeated | None:
    """Return the error of a component that says these lines in turn for ten minutes."""
    counter = repeated_lines.Counter()
    for number in range(600 // EVERY):
        text = texts[number % len(texts)]
        line = f"2026-11-26T18:00:00+0000 w1 {component}[7]: {text}".encode()
        match = repeated_lines.IN_JOURNAL.match(line)
        assert match, f"the collector does not take this for an error: {text}"
        counter.add(NOW - 1 - EVERY * number, match.group(3))
    entries = tuple(evidence.RepeatedError(**row) for row in counter.most_frequent())
    row = evidence.ComponentErrors(component=component, since=NOW - 600, entries=entries)
    return repeated_errors.worst(row, NOW)


def replicas(text: str, *names: str) -> list[str]:
    return [text.replace("POD", name) for name in names]


# Of one workload: neither a warning nor an information of the node.
WORKLOADS = (
    # the kubelet
    (
        "kubelet",
        KLOG + r'"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"app\" with'
        r" CrashLoopBackOff: \"back-off 5m0s restarting failed container=app"
        r' pod=web-7d4b9c8f6d-x2bzx_default(5bfc)\"" pod="default/web-7d4b9c8f6d-x2bzx"',
    ),
    (
        "kubelet",
        KLOG + r'"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"app\" with'
        rf" RunContainerError: \"{TASK}exec: \\\"/app\\\": stat /app: no such file or"
        r' directory: unknown\"" pod="default/web-1"',
    ),
    (
        "kubelet",
        KLOG + r'"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"app\" with'
        r" RunContainerError: \"failed to create containerd task: failed to create shim task: OCI"
        r" runtime create failed: error mounting \\\"/x\\\" to rootfs at \\\"/proc/y\\\": open"
        r' /data/y: read-only file system: unknown\"" pod="default/web-1"',
    ),
    (
        "kubelet",
        KLOG + r'"Unhandled Error" err="container &Container{Name:app,Command:[],} start failed in'
        r" pod web-1_default(5bfc0000-1111-2222-3333-444455556666): CreateContainerConfigError:"
        r' couldn\'t find key a in ConfigMap default/cfg" logger="UnhandledError"',
    ),
    (
        "kubelet",
        KLOG + "container start failed in pod web-1_default(5bfc): RunContainerError: open /data/a:"
        " read-only file system",
    ),
    (
        "kubelet",
        KLOG + '"Server rejected event (will not retry!)" err="namespaces \\"gone\\" not found"'
        ' event="&Event{}"',
    ),
    (
        "kubelet",
        KLOG + r'"Server rejected event (will not retry!)" err="events \"web.17f\" is forbidden:'
        r" User \"system:node:w1\" cannot patch resource \"events\" in API group \"\" in the"
        r' namespace \"a\"" event="&Event{}"',
    ),
    (
        "kubelet",
        KLOG + '"Image garbage collection failed multiple times in a row" err="failed to garbage'
        " collect required amount of images. Attempted to free 123456 bytes, but only found 0"
        ' bytes eligible to free."',
    ),
    (
        "kubelet",
        KLOG + '"Image garbage collection failed once. Stats initialization may not have completed'
        ' yet" err="failed to get imageFs info: rpc error: code = DeadlineExceeded desc = context'
        ' deadline exceeded"',
    ),
    (
        "kubelet",
        KLOG + 'Operation for "{volumeName:kubernetes.io/configmap/5bfc-cfg podName:5bfc'
        ' nodeName:}" failed. No retries permitted until 2026-11-26 18:02:03.1 +0000 UTC m=+9.1'
        ' (durationBeforeRetry 2m2s). Error: MountVolume.SetUp failed for volume "cfg" (UniqueName:'
        ' "kubernetes.io/configmap/5bfc-cfg") pod "web-1" (UID: "5bfc") : configmap "cfg" not'
        " found",
    ),
    (
        "kubelet",
        KLOG + 'Couldn\'t get configMap default/cfg: configmap "cfg" not found',
    ),
    (
        "kubelet",
        KLOG + '"Unable to retrieve pull secret, the image pull may not succeed."'
        ' pod="default/web-1" secret="" err="secret \\"pull\\" not found"',
    ),
    (
        "kubelet",
        KLOG + 'Unable to retrieve pull secret default/pull for default/web-1 due to secret "pull"'
        " not found.  The image pull may not succeed.",
    ),
    (
        "kubelet",
        KLOG + '"Probe errored" err="rpc error: code = Unknown desc = failed to exec in container:'
        ' open /run/x: no space left on device" probeType="Readiness" pod="default/web-1"',
    ),
    (
        "kubelet",
        KLOG + r'"Failed creating a mirror pod for" err="namespaces \"gone\" not found"'
        ' pod="gone/static-w1"',
    ),
    (
        "kubelet",
        KLOG + '"PLEG: Write status" err="rpc error: code = Unknown desc = open /run/a: read-only'
        ' file system" pod="default/web-1"',
    ),
    (
        "kubelet",
        KLOG + '"Failed to get pod status" err="node \\"w1\\" not found" pod="default/web-1"',
    ),
    (
        "kubelet",
        '{"ts":1795719694000.1,"caller":"kubelet/pod_workers.go:1301","msg":"Error syncing pod,'
        ' skipping","pod":{"name":"web-1","namespace":"default"},"err":"failed to create it:'
        ' open /data/a: read-only file system"}',
    ),
    (
        "kubelet",
        KLOG + '"CreateContainer in sandbox from runtime service failed" err="rpc error: code ='
        f' Unknown desc = something new" podSandboxID="{ID}"',
    ),
    # containerd
    (
        "containerd",
        f'{STAMP}"StartContainer for \\"{ID}\\" failed" error="{TASK}exec:'
        ' \\"/app\\": stat /app: no such file or directory: unknown"',
    ),
    (
        "containerd",
        f'{STAMP}"StartContainer for \\"{ID}\\" failed" error="{TASK}error mounting'
        ' \\"/x\\": mkdir /data/x: read-only file system: unknown"',
    ),
    (
        "containerd",
        f'{STAMP}"CreateContainer within sandbox \\"{ID}\\" for'
        ' &ContainerMetadata{Name:app,Attempt:0,} failed" error="failed to create containerd'
        ' container: mkdir /data/x: no space left on device"',
    ),
    (
        "containerd",
        f'{STAMP}"RunPodSandbox for name:\\"web-1\\" uid:\\"5bfc\\" namespace:\\"default\\"'
        ' failed, error" error="rpc error: code = Unknown desc = open /data/x: read-only file'
        ' system"',
    ),
    (
        "containerd",
        f'{STAMP}"PullImage \\"reg.lan/a:1\\" failed" error="failed to pull and unpack image'
        ' \\"reg.lan/a:1\\": write /var/lib/containerd/a: no space left on device"',
    ),
    (
        "containerd",
        f'{STAMP}"StartContainer for \\"{ID}\\" failed" error="of which nothing is known"',
    ),
    (
        "containerd",
        f'{STAMP}"Exec for \\"{ID}\\" failed" error="failed to exec in container: something new"',
    ),
    # the program of a RuntimeClass
    (
        "containerd",
        f'{STAMP}"RunPodSandbox for name:\\"web-1\\" uid:\\"5bfc\\" namespace:\\"default\\"'
        ' failed, error" error="failed to start shim: exec: \\"containerd-shim-kata-v2\\":'
        ' executable file not found in $PATH"',
    ),
    # CRI-O and dockerd
    (
        "crio",
        f'{CRIO}"Container creation error: {TASK}exec: \\"/app\\": permission denied"'
        f" id={ID[:36]} name=/runtime.v1.RuntimeService/CreateContainer",
    ),
    (
        "crio",
        f'{CRIO}"Failed to start container {ID}: open /data/x: read-only file system" id=5bfc',
    ),
    (
        "dockerd",
        f'{STAMP}"Handler for POST /v1.41/containers/{ID}/start returned error: OCI runtime create'
        ' failed: open /data/x: read-only file system"',
    ),
    (
        "dockerd",
        f'{STAMP}"{ID} cleanup: failed to delete container from containerd: no such container"',
    ),
)


@pytest.mark.parametrize(("component", "line"), WORKLOADS)
def test_the_error_of_one_workload_is_none_of_its_node(component, line):
    assert worst(component, line) is None


REPLICAS = (
    "web-7d4b9c8f6d-x2bzx",
    "web-7d4b9c8f6d-kkjjz",
    "web-7d4b9c8f6d-zxcvb",
    "web-6b8f-22222",
)
JOBS = ("job-29392320-x2bzx", "job-29392325-kkjjz", "job-29392330-zxcvb", "job-29392335-4444z")
MEMBERS = ("db-0", "db-1", "db-2", "db-10")
MANY = (
    (
        "kubelet",
        KLOG + '"MountVolume.SetUp failed" err="mkdir /var/lib/kubelet/pods/1: read-only file'
        ' system" pod="default/POD"',
    ),
    (
        "kubelet",
        '{"ts":1795719694000.1,"caller":"a.go:1","msg":"MountVolume.SetUp failed","pod":{"name":'
        '"POD","namespace":"default"},"err":"mkdir /var/lib/kubelet/pods/1: read-only file'
        ' system"}',
    ),
    (
        "containerd",
        f'{STAMP}"RunPodSandbox for name:\\"POD\\" uid:\\"5bfc\\" namespace:\\"default\\" failed,'
        ' error" error="open /var/lib/x: read-only file system"',
    ),
    (
        "containerd",
        f'{STAMP}"RunPodSandbox for &PodSandboxMetadata{{Name:POD,Uid:5bfc,Namespace:default,'
        'Attempt:0,} failed, error" error="open /var/lib/x: read-only file system"',
    ),
    (
        "crio",
        f'{CRIO}"Error creating sandbox of pod default/POD: open /a/b: read-only file system"',
    ),
)


@pytest.mark.parametrize(("component", "line"), MANY)
@pytest.mark.parametrize("names", [REPLICAS, JOBS, MEMBERS])
def test_pods_of_one_workload_are_one(component, line, names):
    assert worst(component, *replicas(line, *names)) is None


@pytest.mark.parametrize(("component", "line"), MANY)
def test_pods_of_three_workloads_are_the_machines(component, line):
    assert worst(component, *replicas(line, "web-7d4b9c8f6d-x2bzx", "db-0")) is None
    error = worst(component, *replicas(line, "web-7d4b9c8f6d-x2bzx", "db-0", "cache-lmnpq"))
    assert error is not None
    assert error.is_obstacle


# Of the component itself, or of the node: a warning.
OWN = (
    (
        "kubelet",
        KLOG + r'"Failed creating a mirror pod for" err="Internal error occurred: failed calling'
        r' webhook \"a.example.com\": failed to call webhook: EOF" pod="kube-system/etcd-m1"',
    ),
    (
        "kubelet",
        KLOG + '"Container garbage collection failed" err="rpc error: code = DeadlineExceeded desc'
        ' = context deadline exceeded"',
    ),
    (
        "containerd",
        f'{STAMP}"StartContainer for \\"{ID}\\" failed" error="failed to create containerd task:'
        ' failed to start shim: exec: \\"containerd-shim-runc-v2\\": executable file not found in'
        ' $PATH"',
    ),
    (
        "containerd",
        f'{STAMP}"RunPodSandbox for name:\\"web-1\\" uid:\\"5bfc\\" namespace:\\"default\\"'
        ' failed, error" error="failed to create shim task: exec: \\"runc\\": executable file not'
        ' found in $PATH"',
    ),
    (
        "containerd",
        f'{STAMP}"cannot write metadata" error="open /var/lib/containerd/m: read-only file system"',
    ),
)


@pytest.mark.parametrize(("component", "line"), OWN)
def test_an_error_of_the_component_is_an_obstacle(component, line):
    error = worst(component, line)
    assert error is not None
    assert error.is_obstacle


@pytest.mark.parametrize(
    "text",
    [
        '"Something about the container runtime" err="of which nothing is known"',
        '"Skipping pod synchronization" err="of which nothing is known"',
    ],
)
def test_an_unknown_error_about_the_runtime_is_an_information(text):
    error = worst("kubelet", KLOG + text)
    assert error is not None
    assert not error.is_obstacle


CGROUP_OF_EXEC = (
    "OCI runtime exec failed: exec failed: unable to start container process: can't open cgroup:"
    f" openat2 /sys/fs/cgroup/kubepods.slice/cri-containerd-{ID}.scope: no such file or directory"
)
PROBES = (
    ("kubelet", f'{KLOG}"ExecSync cmd from runtime service failed" err="{CGROUP_OF_EXEC}"'),
    ("k3s", f'{KLOG}"Probe errored" err="{CGROUP_OF_EXEC}" pod="default/web-1"'),
    ("containerd", f'{STAMP}"ExecSync for \\"{ID}\\" failed" error="{CGROUP_OF_EXEC}"'),
    (
        "kubelet",
        f'{KLOG}"PullImage from image service failed" err="failed to extract layer sha256:12: open'
        " /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/4/fs/a: operation"
        ' not permitted"',
    ),
)


@pytest.mark.parametrize(("component", "line"), PROBES)
def test_an_error_about_one_pod_is_of_its_node_where_no_pod_brings_it_about(component, line):
    error = worst(component, line)
    assert error is not None
    assert error.is_obstacle
    assert error.message.endswith(("no such file or directory", "operation not permitted"))


def test_what_the_end_of_a_container_causes_too_has_to_be_said_for_long():
    component, line = PROBES[0]
    seldom = evidence.RepeatedError(10, 6, NOW - 500, NOW - 5, 1, line)
    often = evidence.RepeatedError(60, 10, NOW - 590, NOW - 5, 1, line)
    found = [
        repeated_errors.worst(evidence.ComponentErrors(component, entries=(entry,)), NOW)
        for entry in (seldom, often)
    ]
    assert [error is not None for error in found] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "cannot exec in a stopped container",
        f"write /sys/fs/cgroup/cri-containerd-{ID}.scope/cgroup.procs: no such process",
        'exec: \\"/probe.sh\\": permission denied',
        "open /data/x: operation not permitted",
    ],
)
def test_a_probe_of_a_workload_is_its_own(text):
    line = f'{KLOG}"Probe errored" err="OCI runtime exec failed: exec failed: {text}"'
    assert worst("kubelet", line) is None
