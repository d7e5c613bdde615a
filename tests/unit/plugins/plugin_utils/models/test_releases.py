# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases that the evidence of a host tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    control_plane,
    machine,
    releases,
)


def document(**collectors):
    rows = {name: {"status": "ok", "data": data} for name, data in collectors.items()}
    return {"host": "w1", "collectors": rows}


def flags(text, path="/var/lib/kubelet/kubeadm-flags.env"):
    return document(kubelet={"unit": {"environment_files": [{"path": path, "text": text}]}})


def test_an_empty_evidence_tells_nothing():
    assert releases.extract({"host": "w1", "collectors": {}}) == releases.Releases()


def test_each_program_has_its_version():
    found = releases.extract(
        document(
            pinning={
                "runc": "runc version 1.1.5",
                "mount": "mount from util-linux 2.38.1 (libmount)",
            },
            swap={"systemd": 252},
        )
    )
    assert found.version("runc") == "runc version 1.1.5"
    assert found.version("util-linux") == "2.38.1"
    assert found.version("systemd") == "252"
    assert found.version("containerd") is None


def test_a_mount_that_is_not_of_util_linux_has_no_version():
    said = "BusyBox v1.36.1 multi-call binary"
    assert releases.extract(document(pinning={"mount": said})).version("util-linux") is None


@pytest.mark.parametrize(
    ("text", "is_without"),
    [
        ('KUBELET_KUBEADM_ARGS=""\n', True),
        ("KUBELET_KUBEADM_ARGS=\n", True),
        ("KUBELET_KUBEADM_ARGS=' '\n", True),
        ('KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n', False),
        ("", False),
        (None, False),
    ],
)
def test_a_file_without_flags_is_told(text, is_without):
    path = "/var/lib/kubelet/kubeadm-flags.env"
    assert releases.extract(flags(text)).without_flags == (path if is_without else "")
    assert releases.extract(flags(text, "/etc/default/kubelet")).without_flags == ""


def test_the_cgroup_driver_is_that_of_the_configuration():
    config = {"path": "/var/lib/kubelet/config.yaml", "text": "cgroupDriver: systemd\n"}
    argv = ["kubelet", "--config=/var/lib/kubelet/config.yaml"]
    kubelet = {"argv": argv, "config": config}
    assert releases.extract(document(kubelet=kubelet)).cgroup_driver == "systemd"
    assert releases.extract(document(kubelet={})).cgroup_driver == ""


def kubelet_of(version, is_replaced=False, program=None):
    distribution = program and {"program": program, "files": []}
    process = {"exe": "/usr/bin/kubelet", "exe_deleted": is_replaced}
    evidence = document(
        pinning={"kubelet_version": version},
        kubelet={"process": process, "distribution": distribution},
    )
    return releases.extract(evidence, machine.extract(evidence))


def test_a_kubelet_has_the_release_of_its_program():
    assert kubelet_of("Kubernetes v1.30.1").version("kubelet") == "v1.30.1"
    assert kubelet_of(None).version("kubelet") is None
    # the one that runs is another one
    assert kubelet_of("Kubernetes v1.30.1", is_replaced=True).version("kubelet") is None


@pytest.mark.parametrize(
    ("program", "known"),
    [
        ("k3s", {"k3s", "kubelet", "kube-apiserver", "kube-scheduler"}),
        ("rke2", {"rke2", "kubelet"}),
        (None, {"kubelet"}),
    ],
)
def test_what_is_one_with_a_kubelet_has_its_release(program, known):
    found = kubelet_of("Kubernetes v1.30.1+k3s1", program=program)
    names = ("k3s", "rke2", "kubelet", "kube-apiserver", "kube-scheduler", "etcd", "kube-proxy")
    assert {name for name in names if found.version(name)} == known


def test_a_component_has_the_release_of_its_process_or_of_its_image(world):
    evidence = world.documents["m1"]
    plane = control_plane.extract(evidence)
    assert releases.extract(evidence, plane=plane).version("kube-scheduler") == "v1.30.1"
    without = replace(plane, processes=())
    assert releases.extract(evidence, plane=without).version("kube-scheduler") == "v1.30.1"
    files = tuple(replace(use, tag="latest", version=None) for use in plane.files)
    without = replace(plane, processes=(), files=files)
    assert releases.extract(evidence, plane=without).version("kube-scheduler") is None


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ([{"path": "/etc/containerd/config.toml", "version": 2}], "/etc/containerd/config.toml"),
        ([{"path": "/etc/containerd/config.toml"}], "/etc/containerd/config.toml"),
        ([{"path": "/etc/containerd/config.toml", "version": 3}], ""),
        ([{"path": "/etc/containerd/config.toml", "version": 2, "error": "denied"}], ""),
        (
            [
                {"path": "/etc/containerd/config.toml", "version": 2},
                {"path": "/etc/containerd/a.toml", "lines": [{"key": "runtime_type"}]},
            ],
            "",
        ),
        ([], ""),
    ],
)
def test_an_older_configuration_of_containerd_without_runtimes(files, path):
    document = {"collectors": {"cri": {"status": "ok", "data": {"files": files}}}}
    assert releases.extract(document).without_runtimes == path
