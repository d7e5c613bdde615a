# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are looked up below a search domain of the nodes: a part of KM560."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support import network_evidence
from tests.unit.support.saying_pods import say
from tests.unit.support.waiting_pods import judged

ASKED = "[ERROR] plugin/errors: 2 {}. A: read udp 10.0.0.2:1->192.0.2.53:53: i/o timeout"
SHOWN = (
    'E0115 07:59:00.000000 1 agent.go:9] Get "https://{1}/v2/": tls: failed to verify certificate:'
    " x509: certificate is valid for {0}, not {1}"
)
DNS = {"pod": "coredns-bcdfg", "container": "coredns", "count": 60}


@pytest.fixture
def nodes(world: Any) -> Any:
    """Return a world whose kubelets give pods the search domain lan.example."""
    for host in ("m1", "w1"):
        data = network_evidence.network(world, host)
        data["resolvers"][0]["search"] = ["lan.example."]
    return world


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        (ASKED.format("github.com.lan.example"), True),
        (ASKED.format("kubernetes.default.svc.cluster.local.LAN.example"), True),
        (ASKED.format("cart.shop.svc.lan.example"), True),
        (SHOWN.format("*.lan.example, lan.example", "registry-1.docker.io"), True),
        # names within that domain, and names of no search domain
        (ASKED.format("printer.lan.example"), False),
        (ASKED.format("db.prod.lan.example"), False),
        (ASKED.format("github.com"), False),
        (ASKED.format("github.com.other.example"), False),
        (ASKED.format("github.com.vlan.example"), False),
        (SHOWN.format("registry.lan.example", "mirror.lan.example"), False),
        (SHOWN.format("*.example.org", "registry-1.docker.io"), False),
        (SHOWN.format("*.lan.example", "10.96.0.1"), False),
    ],
)
def test_a_name_below_the_search_domain(nodes, line, is_named):
    say(nodes, line, **DNS)
    (found,) = judged(nodes, "KM560")[1]
    assert ("search domain lan.example" in found.summary) is is_named
    assert ("UseDomains=no" in found.remedy) is is_named
    if is_named:
        assert "kubelets of m1, w1 give to pods (/etc/resolv.conf)" in found.summary
        assert found.evidence[-1].text == "search lan.example"


def test_a_kubelet_that_gives_no_file_of_its_node_to_pods(nodes):
    for host in ("m1", "w1"):
        nodes.data(host, "kubelet")["argv"] = ["kubelet", "--resolv-conf="]
    say(nodes, ASKED.format("github.com.lan.example"), **DNS)
    (found,) = judged(nodes, "KM560")[1]
    assert "search domain" not in found.summary


@pytest.mark.parametrize("search", [[], ["."]])
def test_no_search_domain(nodes, search):
    for host in ("m1", "w1"):
        nodes.data(host, "network")["resolvers"][0]["search"] = search
    say(nodes, ASKED.format("github.com.lan.example"), **DNS)
    (found,) = judged(nodes, "KM560")[1]
    assert "search domain" not in found.summary


@pytest.mark.parametrize(
    ("name", "is_whole"),
    [(f"example.{end}", True) for end in ("com", "org", "net", "io", "dev", "cloud", "gov", "edu")]
    + [("nas.local", True), ("x.svc", True), ("community", False), ("x.common", False)],
)
def test_ends_of_whole_names(nodes, name, is_whole):
    say(nodes, ASKED.format(f"{name}.lan.example"), **DNS)
    (found,) = judged(nodes, "KM560")[1]
    assert ("search domain lan.example" in found.summary) is is_whole


@pytest.mark.parametrize("names", ["lan.example", "*.lan.example", "x, www.lan.example"])
def test_a_certificate_of_the_domain_itself_or_below_it(nodes, names):
    say(nodes, SHOWN.format(names, "registry-1.docker.io"), **DNS)
    (found,) = judged(nodes, "KM560")[1]
    assert "search domain lan.example" in found.summary
