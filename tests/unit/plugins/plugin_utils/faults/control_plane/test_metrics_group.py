# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM177 of metrics-server: certificates that kubelets made for themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.pki import Authority

HOST = "w1"


def serve(world: Any, ends: float, authority: str = f"{HOST}-ca@1700000000") -> None:
    """Let the kubelet of the worker serve a certificate that ends in so many days."""
    made = Authority(authority, world.data("m1", "system")["clock"])
    place = {"address": "127.0.0.1", "port": 10250, "pid": 7, "error": None}
    pem = made.issue(HOST, [HOST], begins=-400, ends=ends).pem
    row = {"component": "kubelet", "flag": "tls-cert-file", "pem": pem, **place}
    data = {"uses": [], "files": [], "keys": [], "kubeconfigs": [], "served": [row]}
    world.documents[HOST]["collectors"]["certificates"] = {"status": "ok", "data": data}


def judge(world: Any, name: str = "v1beta1.metrics.k8s.io") -> Any:
    row = {"name": name, "namespace": "kube-system", "service": "metrics-server"}
    row.update(reason="MissingEndpoints", message="no addresses", since="2027-01-15T07:00:00Z")
    data = {"listed": 1, "items": [row]}
    world.api["collectors"]["api_services"] = {"status": "ok", "data": data}
    (one,) = [item for item in world.judge().findings if item.code == "KM177"]
    return one


@pytest.mark.parametrize(
    ("ends", "authority", "name", "is_told", "is_advised"),
    [
        (-30, f"{HOST}-ca@1700000000", "v1beta1.metrics.k8s.io", True, True),
        (90, f"{HOST}-ca@1700000000", "v1beta1.metrics.k8s.io", False, True),
        (-30, "kubernetes", "v1beta1.metrics.k8s.io", False, False),
        (-30, f"{HOST}-ca@1700000000", "v1beta1.custom.metrics.k8s.io", False, False),
    ],
)
def test_what_metrics_server_cannot_verify(world, ends, authority, name, is_told, is_advised):
    serve(world, ends, authority)
    one = judge(world, name)
    assert (f"kubelets of {HOST} made for themselves have ended" in one.summary) is is_told
    assert ("serverTLSBootstrap" in one.remedy) is is_advised
    assert [proof.host for proof in one.evidence if proof.kind == "http"] == [HOST] * is_told


def test_a_kubelet_whose_certificate_is_not_known(world):
    world.documents[HOST]["collectors"].pop("certificates", None)
    assert "serverTLSBootstrap" not in judge(world).remedy
