# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import pki
from tests.unit.support.pki import FOLDER, Pki


@pytest.fixture
def expired(world: Any) -> Any:
    pki.certify(world, Pki(world.data("m1", "system")["clock"]))
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    pairs = made.files("m1", "10.0.0.1", ends=-1)
    for name in ("apiserver", "etcd/server"):
        pki.set_file(world.data("m1", "certificates"), f"{FOLDER}/{name}.crt", pairs[name])
    return world


def remedy(world: Any) -> str:
    (hit,) = world.judge(faults={"KM120"}).findings
    return str(hit.remedy)


@pytest.mark.parametrize(
    ("version", "command"),
    [("v1.19.16", "kubeadm alpha certs renew"), ("v1.20.0", "kubeadm certs renew")],
)
def test_the_command_is_that_of_the_release(expired: Any, version: str, command: str) -> None:
    for row in expired.data("m1", "component_http")["components"]:
        row["metrics"]["git_version"] = version
    for record in expired.data("m1", "manifests")["files"]:
        record["text"] = record["text"].replace("v1.30.1", version)
    assert f"{command} apiserver" in remedy(expired)


def test_etcd_is_restarted_before_the_api_server(expired: Any) -> None:
    assert "restart etcd, kube-apiserver, one after the other" in remedy(expired)


def test_the_folder_of_kubespray_is_named(expired: Any) -> None:
    text = "/etc/kubernetes/ssl"
    data = expired.data("m1", "certificates")
    for row in (*data["uses"], *data["files"], *data["keys"]):
        row["path"] = row["path"].replace(FOLDER, text)
    assert f"kubeadm certs renew --cert-dir {text} apiserver" in remedy(expired)


def test_without_the_key_of_the_authority_nothing_can_be_renewed_here(expired: Any) -> None:
    for record in expired.data("m1", "certificates")["files"]:
        record["key_beside"] = False
    text = remedy(expired)
    assert "kubemend and kubeadm cannot renew them" in text
    assert "certs renew apiserver" not in text


def test_certificates_that_kubeadm_does_not_know_are_signed_by_their_authority(
    expired: Any,
) -> None:
    data = expired.data("m1", "certificates")
    for row in (*data["uses"], *data["files"]):
        row["path"] = row["path"].replace(FOLDER, "/srv/kubernetes")
    assert "have the authority that signed them" in remedy(expired)


@pytest.mark.parametrize(
    ("unit", "command"),
    [
        ("k3s.service", "systemctl restart k3s.service"),
        ("rke2-server.service", "systemctl restart rke2-server.service"),
    ],
)
def test_k3s_and_rke2_renew_at_their_start(expired: Any, unit: str, command: str) -> None:
    expired.data("m1", "kubelet")["unit"]["name"] = unit
    assert remedy(expired).startswith(command)


def test_another_installer_is_named(expired: Any) -> None:
    expired.data("m1", "kubelet")["unit"]["name"] = "snap.microk8s.daemon-kubelite.service"
    assert "microk8s renews them" in remedy(expired)


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/var/lib/kubelet/pki/kubelet-server-current.pem", "kubectl certificate approve"),
        ("/etc/ssl/kubelet.pem", "renew /etc/ssl/kubelet.pem where it was made"),
    ],
)
def test_the_serving_certificate_of_a_kubelet(world: Any, path: str, advice: str) -> None:
    made = Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    pair = made.ca.issue("w1", ["w1"], begins=-400, ends=-3)
    use = {"component": "kubelet", "flag": "tls-cert-file", "path": path, "file": 0}
    data = {"uses": [use], "files": [{"path": path, "pem": pair.pem}]}
    world.documents["w1"]["collectors"]["certificates"] = {"status": "ok", "data": data}
    assert advice in remedy(world)
