# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes, as /proc of real nodes shows them."""

import errno
import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import procfs

HEX = "04ae77399e948388cae6af53a97fe81e296b25374008019f64600d4aee358fd9"
POD = "0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f"


def test_static_pod_of_a_real_node(capture):
    found = procfs.cgroup(capture("cgroup-static-pod.txt"))
    assert found["static"] is True
    assert len(found["pod_uid"]) == 32
    assert len(found["container_id"]) == 64
    assert found["unit"] is None


def test_unit_of_a_real_kubelet(capture):
    assert procfs.cgroup(capture("cgroup-kubelet.txt")) == {
        "pod_uid": None,
        "static": None,
        "container_id": None,
        "unit": "kubelet.service",
    }


@pytest.mark.parametrize(
    ("path", "uid", "static", "container"),
    [
        (
            (
                "/kubepods.slice/kubepods-burstable.slice"
                f"/kubepods-burstable-pod{POD.replace('-', '_')}.slice/cri-containerd-{HEX}.scope"
            ),
            POD,
            False,
            HEX,
        ),
        (
            f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/crio-{HEX}.scope",
            POD,
            False,
            HEX,
        ),
        (
            (
                "/system.slice/containerd.service"
                f"/kubepods-burstable-pod{'a' * 32}.slice:cri-containerd:{HEX}"
            ),
            "a" * 32,
            True,
            HEX,
        ),
        # a cluster in a pod: the outermost counts
        (
            f"/kubepods/besteffort/pod{POD}/{HEX}/kubepods/burstable/pod{'b' * 32}/{'c' * 64}",
            POD,
            False,
            HEX,
        ),
        # CRI-O's monitor in the pod's cgroup (conmon_cgroup = "pod") is not the container; by
        # systemd and by cgroupfs
        (
            f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/crio-conmon-{HEX}.scope",
            POD,
            False,
            None,
        ),
        (f"/kubepods/burstable/pod{POD}/crio-conmon-{HEX}", POD, False, None),
        (f"/kubepods/burstable/pod{POD}/crio-{HEX}", POD, False, HEX),
        (f"/docker/{HEX}", None, None, None),
        ("/", None, None, None),
        ("/user.slice/podman-1234.scope", None, None, None),
    ],
)
def test_cgroup(path, uid, static, container):
    found = procfs.cgroup(f"12:memory:/\n0::{path}\n")
    assert (found["pod_uid"], found["static"], found["container_id"]) == (uid, static, container)


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["k", "--config=/a", "--config=/b"], "config", "/b"),
        (["k", "--pod_manifest_path", "/x"], "pod-manifest-path", "/x"),
        (["k", "--leader-elect", "--v=2"], "leader-elect", ""),
        (["k", "-v=2"], "v", "2"),
        (["k", "x"], "x", None),
        (["k", "--a"], "a", ""),
    ],
)
def test_flag(argv, name, value):
    assert procfs.flag(argv, name) == value


@pytest.mark.parametrize(
    ("comm", "argv", "expected"),
    [
        ("kubelet", ["kubelet"], "kubelet"),
        ("kube-controller", ["x"], "kube-controller-manager"),
        ("cloud-controlle", ["x"], "cloud-controller-manager"),
        ("hyperkube", ["/hyperkube", "--x", "kube-scheduler"], "kube-scheduler"),
        ("hyperkube", ["/hyperkube", "controller-manager"], "kube-controller-manager"),
        ("hyperkube", ["/hyperkube"], None),
        ("k3s", ["k3s", "server"], "kubelet"),
        ("k3s", ["k3s", "kubectl"], None),
        ("k3s-server", ["k3s server"], "kubelet"),
        ("kubelite", ["kubelite"], "kubelet"),
        ("rke2", ["rke2", "server"], None),
        ("bash", ["kubelet"], None),
    ],
)
def test_component(comm, argv, expected):
    assert procfs.component(comm, argv) == expected


def test_start_of_a_process_whose_name_has_brackets(capture):
    stat = capture("stat-scheduler.txt")
    ticks = int(stat.rsplit(")", 1)[1].split()[19])
    assert procfs.start_of(
        stat.replace("(kube-scheduler)", "(a) b) c)"), "1000000.00 1.0", 2000000.0, 100
    ) == pytest.approx(1000000 + ticks / 100)
    assert procfs.start_of("cut", "1 1", 0, 100) is None


def test_host_path_by_mounts(capture):
    """A scheduler has its kubeconfig as a mount that kubeadm makes.

    The file has the same name there, and comes from the node's own file system.
    """
    path = "/etc/kubernetes/scheduler.conf"
    assert (
        procfs.host_path(path, capture("mountinfo-scheduler.txt"), capture("mountinfo-host.txt"))
        == path
    )


def test_host_path_under_another_name():
    host = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    container = (
        "30 1 0:99 / / rw - overlay overlay rw\n31 30 8:1 /etc/k8s\\040config /config rw - ext4"
        " /dev/sda1 rw\n"
    )
    assert procfs.host_path("/config/s.yaml", container, host) == "/etc/k8s config/s.yaml"
    assert procfs.host_path("/other", container, host) is None


def test_names_only_of_what_is_of_interest(tmp_path):
    for pid, comm in ((10, "kubelet"), (11, "bash"), (9, "etcd")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(comm + "\n")
    (tmp_path / "12").mkdir()  # gone in between
    (tmp_path / "net").mkdir()
    assert procfs.of_interest(str(tmp_path)) == [(9, "etcd"), (10, "kubelet")]


@pytest.mark.parametrize(
    ("stat", "expected"),
    [("7 (etcd) T 1 7", "T"), ("7 (a) b) S 1 7", "S"), ("7 (etcd)", None), (None, None)],
)
def test_the_state_of_a_process(tmp_path, stat, expected):
    if stat is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "stat").write_text(stat)
    assert procfs.state(7, str(tmp_path)) == expected


def test_a_file_of_a_process_and_of_one_that_has_ended(tmp_path):
    path = tmp_path / "ca.crt"
    path.write_bytes(b"host")
    inside = tmp_path / "7" / "root" / str(path).lstrip("/")
    inside.parent.mkdir(parents=True)
    with pytest.raises(FileNotFoundError):
        procfs.file_of(7, str(path), 100, str(tmp_path))
    inside.write_bytes(b"its own")
    assert procfs.file_of(7, str(path), 100, str(tmp_path)) == b"its own"
    assert procfs.file_of(8, str(path), 100, str(tmp_path)) == b"host"


@pytest.mark.parametrize(
    ("error", "ended"), [(errno.ENOENT, True), (errno.ESRCH, True), (errno.EACCES, False)]
)
def test_a_process_whose_root_is_denied_has_not_ended(monkeypatch, error, ended):
    def fail(_path):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(procfs.os, "stat", fail)
    assert procfs.has_ended("/proc/7/root") is ended


def test_a_process_that_runs_has_not_ended():
    assert not procfs.has_ended("/proc/self/root")
