# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolv.conf that a kubelet gives to pods: KM533. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence

STUB = {"path": "/etc/resolv.conf", "nameservers": ["127.0.0.53"], "search": [], "error": None}
REAL = {"path": "/run/systemd/resolve/resolv.conf", "nameservers": ["192.0.2.53"], "search": []}


@pytest.fixture
def answered(world):
    for host in world.documents:
        network_evidence.network(world, host)
    return world


def judged(world, host="w1"):
    result = world.judge(faults={"KM533"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    return verdicts.get(host, "not judged"), [item for item in result.findings if item.host == host]


def test_name_servers_of_the_network(answered):
    assert judged(answered) == ("clear", [])


@pytest.mark.parametrize(
    ("servers", "severity"),
    [
        (["127.0.0.53"], "warning"),
        (["::1"], "warning"),
        ([], "warning"),
        (["127.0.0.1", "192.0.2.53"], "warning"),
        (["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"], "info"),
    ],
)
def test_name_servers_that_pods_cannot_use(answered, servers, severity):
    answered.data("w1", "network")["resolvers"][0]["nameservers"] = servers
    verdict, (found,) = judged(answered)
    assert (verdict, found.severity, found.node) == ("present", severity, "w1")


def test_the_stub_of_systemd_resolved_names_the_file_beside_it(answered):
    answered.data("w1", "network")["resolvers"] = [STUB, REAL]
    _verdict, (found,) = judged(answered)
    assert "127.0.0.53" in found.summary
    assert "resolvConf: /run/systemd/resolve/resolv.conf" in found.remedy


def test_a_file_that_names_the_cluster_s_own_dns_is_no_better_one(answered):
    answered.data("w1", "network")["resolvers"] = [STUB, {**REAL, "nameservers": ["10.96.0.10"]}]
    answered.data("w1", "kubelet")["argv"] = ["kubelet", "--cluster-dns=10.96.0.10"]
    _verdict, (found,) = judged(answered)
    assert REAL["path"] not in found.remedy
    assert "write the real name servers into a file" in found.remedy


def test_a_kubelet_that_is_told_the_other_file(answered):
    answered.data("w1", "network")["resolvers"] = [STUB, REAL]
    answered.data("w1", "kubelet")["argv"] = ["kubelet", f"--resolv-conf={REAL['path']}"]
    assert judged(answered) == ("clear", [])


def test_a_kubelet_that_is_told_no_file(answered):
    answered.data("w1", "network")["resolvers"] = [STUB]
    answered.data("w1", "kubelet")["argv"] = ["kubelet", "--resolv-conf="]
    assert judged(answered) == ("clear", [])


def test_a_file_that_is_not_there(answered):
    answered.data("w1", "network")["resolvers"][0].update(nameservers=[], error="missing")
    _verdict, (found,) = judged(answered)
    assert found.severity == "critical"


@pytest.mark.parametrize(
    ("pod", "node", "severity"),
    [
        ("kube-system/coredns-7xk2p", "w1", "critical"),
        ("kube-system/coredns-7xk2p", "m1", "warning"),
        ("default/web-1", "w1", "warning"),
    ],
)
def test_coredns_that_ends_there(answered, pod, node, severity):
    answered.data("w1", "network")["resolvers"] = [STUB]
    answered.data("api", "pod_start")["events"] = [{"node": node, "reason": "BackOff", "pod": pod}]
    _verdict, (found,) = judged(answered)
    assert found.severity == severity


@pytest.mark.parametrize("error", ["denied", "error"])
def test_a_file_that_was_not_read_is_unknown(answered, error):
    answered.data("w1", "network")["resolvers"][0].update(nameservers=[], error=error)
    assert judged(answered) == ("unknown", [])


def test_a_path_that_is_not_known_is_unknown(answered):
    answered.data("w1", "network")["resolvers"] = [STUB]
    answered.data("w1", "kubelet")["config"] = {
        "path": "/var/lib/kubelet/config.yaml",
        "text": None,
        "error": "denied",
    }
    assert judged(answered)[0] == "unknown"


def test_a_kubelet_inside_k3s_has_a_resolver_of_its_own(answered):
    answered.data("w1", "network")["resolvers"] = [STUB]
    argv = ["/usr/local/bin/k3s", "agent"]
    answered.data("w1", "kubelet").update(argv=argv, process={"pid": 1, "argv": argv})
    assert judged(answered) == ("not_applicable", [])


def test_older_evidence_is_not_judged(answered):
    for document in answered.documents.values():
        del document["collectors"]["network"]
    assert judged(answered) == ("not judged", [])
