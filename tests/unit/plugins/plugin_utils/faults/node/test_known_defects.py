# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM536: a release with a known defect is blamed only where its symptoms are in the evidence."""

from __future__ import annotations

import pytest

SINCE = "2027-01-15T07:30:00Z"
PLEG = "PLEG is not healthy: pleg was last seen active 11m54.676753691s ago; threshold is 3m0s"
SLICE = (
    "unable to ensure pod container exists: failed to create container for [kubepods burstable"
    " pod6c1b4b1c] : Unit kubepods-burstable-pod6c1b4b1c.slice already exists."
)
SUBPATH = (
    'Error: failed to mkdir "/var/lib/kubelet/pods/a/volume-subpaths/config/app/0": mkdir'
    " /var/lib/kubelet/pods/a/volume-subpaths/config/app/0: file exists"
)
MOUNT = 'Error: failed to prepare subPath for volumeMount "config" of container "app"'


def node(world, name="w1"):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def not_ready(world, message=PLEG):
    node(world).update(
        ready="False",
        conditions=[
            {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
        ],
    )


def waiting(world, message="", owners=2):
    world.api["collectors"]["pod_start"] = {
        "status": "ok",
        "data": {
            "read": 20,
            "pods": [
                {
                    "node": "w1",
                    "namespace": "shop",
                    "owner": f"ReplicaSet/cart-{number}",
                    "state": "ContainerCreating",
                    "pods": 2,
                    "names": [f"cart-{number}-0", f"cart-{number}-1"],
                    "since": SINCE,
                    "times": [SINCE] * 2,
                    "message": message,
                    "event": None,
                }
                for number in range(owners)
            ],
            "events": [],
            "nodes": [{"node": "w1", "waiting": 2 * owners, "states": {}}],
            "attachments": None,
        },
    }


def pinning(world, **fields):
    world.documents["w1"]["collectors"]["pinning"] = {"status": "ok", "data": fields}


def verdict(world):
    return {item.verdict for item in world.judge(faults={"KM536"}, deep=True).verdicts}


def found(world):
    findings = world.judge(faults={"KM536"}, deep=True).findings
    return [(item.component, item.node, item.severity) for item in findings]


@pytest.fixture
def quiet(world):
    waiting(world, owners=0)
    return world


def test_a_cluster_without_symptoms_is_clear(quiet):
    assert verdict(quiet) == {"clear"}


@pytest.mark.parametrize(
    ("release", "shown"),
    [("runc version 1.0.0-rc93", True), ("runc version 1.0.0-rc94", False), ("crun 1.2", False)],
)
def test_runc_that_hangs_is_named_where_the_kubelet_waits(quiet, release, shown):
    pinning(quiet, runc=release)
    assert found(quiet) == []
    not_ready(quiet)
    assert found(quiet) == [("runc", "w1", "warning")] * shown


def test_another_reason_of_not_ready_is_no_symptom(quiet):
    pinning(quiet, runc="runc version 1.0.0-rc93")
    not_ready(quiet, "container runtime is down")
    assert verdict(quiet) == {"clear"}


def test_a_release_that_is_not_known_is_not_clear(quiet):
    not_ready(quiet)
    pinning(quiet)
    assert verdict(quiet) == set()
    judged = quiet.judge(faults={"KM536"}, deep=True).not_judged
    assert [(item.code, item.reason) for item in judged] == [("KM536", "tier")]
    quiet.documents["w1"]["collectors"]["pinning"] = {"status": "error", "error": "no"}
    assert verdict(quiet) == {"unknown"}


@pytest.mark.parametrize(
    ("runtime", "owners", "shown"),
    [
        ("containerd://1.4.4", 2, True),
        ("containerd://1.4.4", 1, False),
        ("containerd://1.4.5", 2, False),
        ("docker://1.4.4", 2, False),
    ],
)
def test_containerd_is_named_where_pods_of_several_workloads_wait(quiet, runtime, owners, shown):
    node(quiet)["runtime_version"] = runtime
    pinning(quiet, runc="runc version 1.0.0")
    waiting(quiet, owners=owners)
    assert found(quiet) == [("containerd", "w1", "warning")] * shown


@pytest.mark.parametrize(
    ("release", "message", "shown"),
    [
        ("v1.21.1", SLICE, True),
        ("v1.21.4-eks-1", SLICE, True),
        ("v1.21.5", SLICE, False),
        ("v1.20.9", SLICE, False),
        ("v1.21.1", "no such file or directory", False),
    ],
)
def test_a_kubelet_is_named_whose_slices_already_exist(quiet, release, message, shown):
    node(quiet)["kubelet_version"] = release
    waiting(quiet, message)
    assert found(quiet) == [("kubelet", "w1", "warning")] * shown


@pytest.mark.parametrize(
    ("mount", "message", "shown"),
    [
        ("mount from util-linux 2.41 (libmount 2.41.0: btrfs)", SUBPATH, True),
        ("mount from util-linux 2.41 (libmount 2.41.0: btrfs)", MOUNT, True),
        ("mount from util-linux 2.40.4 (libmount 2.40.4: btrfs)", SUBPATH, False),
        ("mount from util-linux 2.41 (libmount 2.41.0: btrfs)", "file exists", False),
    ],
)
def test_mount_is_named_that_binds_no_subpath(quiet, mount, message, shown):
    pinning(quiet, mount=mount, runc="runc version 1.1.0")
    waiting(quiet, message)
    assert found(quiet) == [("util-linux", "w1", "warning")] * shown


@pytest.mark.parametrize(
    ("host", "release", "text", "shown"),
    [
        ("m1", "v1.35.0", 'KUBELET_KUBEADM_ARGS=""\n', True),
        ("m1", "v1.35.1", 'KUBELET_KUBEADM_ARGS=""\n', False),
        ("m1", "v1.35.0", 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n', False),
        ("w1", "v1.35.0", 'KUBELET_KUBEADM_ARGS=""\n', False),
    ],
)
def test_kubeadm_that_refuses_a_file_without_flags_is_told(quiet, host, release, text, shown):
    node(quiet, host)["kubelet_version"] = release
    unit = quiet.data(host, "kubelet")["unit"]
    unit["environment_files"] = [{"path": "/var/lib/kubelet/kubeadm-flags.env", "text": text}]
    assert found(quiet) == [("kubeadm", host, "info")] * shown


@pytest.mark.parametrize(
    ("systemd", "driver", "shown"),
    [(237, "systemd", True), (242, "systemd", False), (237, "cgroupfs", False)],
)
def test_systemd_may_hang_with_its_cgroup_driver(quiet, systemd, driver, shown):
    pinning(quiet, runc="runc version 1.0.0")
    quiet.data("w1", "swap")["systemd"] = systemd
    quiet.data("w1", "kubelet")["config"] = {
        "path": "/var/lib/kubelet/config.yaml",
        "text": f"kind: KubeletConfiguration\ncgroupDriver: {driver}\n",
    }
    assert found(quiet) == []
    not_ready(quiet)
    assert found(quiet) == [("systemd", "w1", "warning")] * shown
    if shown:
        only = quiet.judge(faults={"KM536"}, deep=True).findings[0]
        assert "may show" in only.summary


def test_it_explains_what_does_not_start(quiet):
    node(quiet)["kubelet_version"] = "v1.21.1"
    waiting(quiet, SLICE)
    findings = {item.code: item for item in quiet.judge(deep=True).findings}
    assert "KM536" in findings["KM600"].because


@pytest.mark.parametrize(
    ("runtime", "kind", "shown"),
    [
        ("containerd 1.7.5", "io.containerd.runtime.v1.linux", True),
        ("containerd 1.6.20", "io.containerd.runc.v1", True),
        ("containerd 1.7.5", "io.containerd.runc.v2", False),
        ("containerd 2.1.0", "io.containerd.runc.v1", False),
        ("cri-o 1.30.0", "io.containerd.runc.v1", False),
    ],
)
def test_shims_of_the_first_version_are_named(quiet, runtime, kind, shown):
    node(quiet)["runtime_version"] = runtime.replace(" ", "://")
    row = {"line": 4, "table": "a.runc", "key": "runtime_type", "value": f'"{kind}"'}
    file = {"path": "/etc/containerd/config.toml", "version": 2, "error": None, "lines": [row]}
    quiet.documents["w1"]["collectors"]["cri"] = {"status": "ok", "data": {"files": [file]}}
    assert found(quiet) == ([("containerd", "w1", "warning")] if shown else [])


PULL = (
    'failed to pull and unpack image "registry.example.com/a:1": failed to resolve reference'
    ' "registry.example.com/a:1": failed to do request: dial tcp 192.0.2.10:443: connect: refused'
)


@pytest.mark.parametrize(
    ("release", "version", "message", "shown"),
    [
        ("2.0.0-beta.2", 2, PULL, True),
        ("2.0.0-beta.2", 3, PULL, False),
        ("2.0.0-beta.2", 2, "no space left on device", False),
        ("2.0.0-rc.1", 2, PULL, False),
    ],
)
def test_mirrors_that_containerd_does_not_take_over(quiet, release, version, message, shown):
    node(quiet)["runtime_version"] = f"containerd://{release}"
    file = {"path": "/etc/containerd/config.toml", "version": version, "error": None, "lines": []}
    quiet.documents["w1"]["collectors"]["cri"] = {"status": "ok", "data": {"files": [file]}}
    waiting(quiet, message)
    assert found(quiet) == ([("containerd", "w1", "warning")] if shown else [])


@pytest.mark.parametrize(
    ("release", "changed", "started", "shown"),
    [
        ("v1.22.8", 1520, 1500, True),
        ("v1.27.0", 1520, 1500, False),
        ("v1.22.8", 9000, 1500, False),  # the manifest is older
        ("v1.22.8", 120, 100, False),  # it may still be at it
    ],
)
def test_static_pods_that_changed_while_the_kubelet_started(
    quiet, release, changed, started, shown
):
    clock = quiet.data("m1", "system")["clock"]
    quiet.data("m1", "kubelet")["process"] = {
        "pid": 1,
        "argv": ["kubelet"],
        "started_at": clock - started,
    }
    for item in quiet.data("api", "nodes")["items"]:
        item["kubelet_version"] = release
    for row in quiet.data("m1", "manifests")["files"]:
        row["mtime"] = clock - changed
    assert found(quiet) == []
    running = quiet.data("m1", "instances")["processes"]
    running[:] = [row for row in running if row["component"] != "kube-scheduler"]
    assert found(quiet) == [("kubelet", "m1", "warning")] * shown
