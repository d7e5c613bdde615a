# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM114: a control plane node of kubeadm whose kubelet reads no manifest of a component."""

from __future__ import annotations

from typing import Any

import pytest

USUAL, OTHER = "/etc/kubernetes/manifests", "/etc/kubelet.d"
ADMIN = "/etc/kubernetes/admin.conf"
LEFT = ["etcd.yaml", "kube-apiserver.yaml"]


def without(
    world: Any, folder: str | None = OTHER, usual: Any = (), is_absent: bool = False
) -> None:
    """Let m2 have no component, and a kubelet that reads another folder."""
    world.data("m2", "instances")["processes"] = []
    world.data("m2", "kubelet")["static_pod_path"] = folder
    data = {"folder": folder, "files": [], "ignored": [], "is_mount": False, "usual": usual}
    record = {"status": "ok", "data": data}
    if is_absent:
        record = {"status": "absent", "data": None}
    world.documents["m2"]["collectors"]["manifests"] = record
    installer(world, [ADMIN])


def installer(world: Any, paths: list[str]) -> None:
    data = {"paths": paths, "kubelet_exe": "/usr/bin/kubelet", "traces": ["/etc/kubernetes"]}
    world.documents["m2"]["collectors"]["installer"] = {"status": "ok", "data": data}


def way(
    world: Any,
    address: str | None = None,
    failed: str | None = "connection",
    error: str | None = "[Errno 111] Connection refused",
) -> None:
    own = world.data("m2", "system")["addresses"][0]
    data = {"server": f"https://{address or own}:6443", "address": address or own}
    data |= {"failed": failed, "error": error}
    world.documents["m2"]["collectors"]["api_way"] = {"status": "ok", "data": data}


def found(world: Any) -> list[Any]:
    result = world.judge(faults={"KM114"})
    return [row for row in result.findings if row.host == "m2"]


@pytest.mark.parametrize(
    ("folder", "usual", "is_absent", "words"),
    [
        (OTHER, LEFT, False, [OTHER, "has no manifest", "etcd.yaml, kube-apiserver.yaml lie in"]),
        (OTHER, None, False, [OTHER, "Nothing listens"]),
        (OTHER, None, True, [OTHER, "does not exist"]),
        (USUAL, [], False, [USUAL, "has no manifest", "Nothing listens"]),
        (None, None, True, ["staticPodPath is not set"]),
    ],
)
def test_no_manifest_of_a_component(world, folder, usual, is_absent, words):
    without(world, folder, usual, is_absent)
    way(world)
    (hit,) = found(world)
    component = "etcd" if usual == LEFT else "kube-apiserver"
    assert (hit.severity, hit.component, hit.host) == ("critical", component, "m2")
    for word in words:
        assert word in hit.summary
    assert ("bring the manifests back" in hit.remedy) is (folder == USUAL)
    assert ADMIN in [proof.path for proof in hit.evidence]


def test_manifests_in_the_usual_folder_tell_it_behind_a_load_balancer(world):
    without(world, usual=LEFT)
    way(world, "192.0.2.10", None, None)
    (hit,) = found(world)
    assert "etcd.yaml" in hit.summary


@pytest.mark.parametrize(
    ("address", "failed", "error"),
    [
        ("192.0.2.10", "connection", "[Errno 111] Connection refused"),
        (None, None, None),
        (None, "connection", "timed out"),
        (None, "certificate", "certificate verify failed"),
    ],
)
def test_without_a_sign_of_a_control_plane_nothing_is_told(world, address, failed, error):
    without(world, usual=["kube-vip.yaml"])
    way(world, address, failed, error)
    assert found(world) == []


def test_a_worker_or_another_installer_is_none(world):
    without(world)
    way(world)
    installer(world, ["/etc/rancher/k3s"])
    assert found(world) == []


def test_components_that_run_or_have_a_unit_are_none(world):
    processes = list(world.data("m2", "instances")["processes"])
    without(world, usual=LEFT)
    way(world)
    world.data("m2", "instances")["processes"] = processes[:1]
    assert found(world) == []


def test_a_kubelet_that_does_not_run_or_files_that_are_not_read(world):
    without(world, usual=LEFT)
    way(world)
    world.data("m2", "kubelet")["process"] = None
    assert found(world) == []
    without(world, usual=LEFT)
    world.documents["m2"]["collectors"]["manifests"] = {"status": "denied", "data": None}
    assert found(world) == []


def test_the_setting_and_both_folders_are_evidence(world):
    without(world, usual=LEFT)
    config = {"text": f"staticPodPath: {OTHER}\n", "path": "/var/lib/kubelet/config.yaml"}
    world.data("m2", "kubelet")["config"] = {"masked": [], "error": None, **config}
    (hit,) = found(world)
    assert [proof.path for proof in hit.evidence] == [config["path"], OTHER, USUAL, ADMIN]
    assert hit.evidence[2].text == "etcd.yaml, kube-apiserver.yaml"


def test_without_a_folder_no_folder_is_evidence(world):
    without(world, None, None, is_absent=True)
    way(world)
    (hit,) = found(world)
    assert None not in [proof.path for proof in hit.evidence]
    assert "" not in [proof.path for proof in hit.evidence]


def test_a_server_whose_address_is_not_known(world):
    without(world, OTHER, None)
    way(world)
    world.data("m2", "api_way")["address"] = None
    world.data("m2", "system")["addresses"] = None
    assert found(world) == []
