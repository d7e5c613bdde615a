# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a static pod of kube-vip reaches the API."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import kube_vip
from tests.unit.support import vip_manifest


def read(text, **more):
    record = vip_manifest.record(text, **more)
    data = {"folder": "/etc/kubernetes/manifests", "files": [record]}
    return kube_vip.extract({"collectors": {"manifests": {"status": "ok", "data": data}}})


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (vip_manifest.text(), ("192.0.2.10", "", kube_vip.ADMIN, True)),
        (vip_manifest.text(tag="v1.2.3"), ("192.0.2.10", "", kube_vip.ADMIN, False)),
        (vip_manifest.text(tag="v1.2.20"), ("192.0.2.10", "", kube_vip.ADMIN, False)),
        (
            vip_manifest.text(kubernetes_addr="https://10.0.0.1:6443"),
            ("192.0.2.10", "https://10.0.0.1:6443", kube_vip.ADMIN, True),
        ),
        (vip_manifest.text(k8s_config_file="/etc/vip.conf"), ("192.0.2.10", "", "", False)),
    ],
)
def test_what_a_manifest_tells(text, fields):
    vip = read(text)
    assert (vip.address, vip.own_server, vip.kubeconfig, vip.takes_server) == fields


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("kind: Pod\nmetadata: {name: kube-vip}\nspec: {containers: [{name: a, image: b}]}", {}),
        ("kube-vip: [", {}),
        ("kube-vip", {}),
        (vip_manifest.text(), {"truncated": True}),
        (None, {}),
    ],
)
def test_what_is_no_kube_vip(text, more):
    assert read(text, **more) is None
