# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kube-vip that asks for its lease at the address that it has to take, in KM178."""

from __future__ import annotations

import pytest

from tests.unit.support import saying_pods, vip_manifest

ADDRESS = "192.0.2.10"
URL = "https://{}:6443/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plndr-cp-lock"
LINE = (
    'E0811 10:02:14.381240       1 leaderelection.go:448] "Error retrieving lease lock" err="Get'
    ' \\"{}\\": dial tcp {}:6443: connect: connection refused" lock="kube-system/plndr-cp-lock"'
)


def found(world, text, line, pod="kube-vip-m2"):
    for host in ("m1", "m2", "m3", "w1"):
        data = {"server": f"https://{ADDRESS}:6443", "address": ADDRESS}
        data |= {"failed": "connection", "error": "[Errno 111] Connection refused"}
        world.documents[host]["collectors"]["api_way"] = {"status": "ok", "data": data}
    world.data("m2", "manifests")["files"].append(vip_manifest.record(text))
    saying_pods.say(world, line, "m2", pod, "kube-vip")
    (one,) = world.judge(faults={"KM178"}).findings
    return one


@pytest.mark.parametrize(
    ("tag", "is_of_release"), [("v1.2.2", True), ("v1.2.3", False), ("v0.8.9", False)]
)
def test_the_lease_is_asked_for_at_the_address_itself(world, tag, is_of_release):
    one = found(world, vip_manifest.text(tag), LINE.format(URL.format(ADDRESS), ADDRESS))
    assert "kube-vip of m2" in one.summary
    assert "plndr-cp-lock at that same address" in one.summary
    assert "/etc/kubernetes/admin.conf names it" in one.summary
    assert ("v1.2.2" in one.summary) is is_of_release
    assert f"in {vip_manifest.PATH} of each control-plane node set" in one.remedy
    assert "kubernetes_addr" in one.remedy
    assert ("hostAliases" in one.remedy) is is_of_release
    assert f"ip address add {ADDRESS}/32" in one.remedy
    assert "systemd-networkd" not in one.remedy
    assert one.evidence[-1].object == "kube-system/kube-vip-m2"


@pytest.mark.parametrize(
    ("text", "line", "pod"),
    [
        # its own API server, which does not answer
        (vip_manifest.text(), LINE.format(URL.format("kubernetes"), "127.0.0.1"), "kube-vip-m2"),
        # of another address
        (
            vip_manifest.text(address="192.0.2.9"),
            LINE.format(URL.format(ADDRESS), ADDRESS),
            "kube-vip-m2",
        ),
        # with the token of its account
        (
            vip_manifest.text(k8s_config_file="/none"),
            LINE.format(URL.format(ADDRESS), ADDRESS),
            "kube-vip-m2",
        ),
        # another program
        (vip_manifest.text(), LINE.format(URL.format(ADDRESS), ADDRESS), "kube-scheduler-m2"),
    ],
)
def test_where_it_is_not_sure(world, text, line, pod):
    one = found(world, text, line, pod)
    assert "same address" not in one.summary
    assert "kubernetes_addr" not in one.remedy
    assert "systemd-networkd" in one.remedy
