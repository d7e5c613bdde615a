# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewalls that remove or drop what the network of pods needs: KM534."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence, saying_pods
from tests.unit.support.firewall_records import red_hat
from tests.unit.support.loaded_rules import DEBIAN, FLUSH, RED_HAT, loader
from tests.unit.support.network_evidence import interface

KUBELET = 1799990000.0
LATER = KUBELET + 3600
CLOCK = KUBELET + 86400
LOST = (
    "[ERROR] plugin/kubernetes: Failed to watch *v1.Service: failed to list *v1.Service: Get"
    ' "https://10.96.0.1:443/api/v1/services?limit=500&resourceVersion=0": dial tcp 10.96.0.1:443:'
    " i/o timeout"
)


@pytest.fixture
def node(world):
    network_evidence.network(world)
    world.data("w1", "kubelet")["process"] = {
        "pid": 7,
        "argv": ["kubelet"],
        "started_at": KUBELET,
    }
    world.data("w1", "system").update(
        clock=CLOCK,
        uptime_s=CLOCK - KUBELET + 30,
        os_release={"id": "debian", "version_id": "12", "pretty_name": "Debian 12"},
    )
    return world


def judged(world, **firewalls):
    world.data("w1", "boot")["firewall"] = firewalls
    result = world.judge(faults={"KM534"})
    return [
        (item.severity, item.component) for item in result.findings if item.host == "w1"
    ], result.findings


WARNING = [("warning", "firewall rules")]


@pytest.mark.parametrize(
    ("record", "rows"),
    [
        (loader(*DEBIAN, FLUSH, since=LATER), WARNING),
        # a boot starts it, and the kubelet after it
        (loader(*DEBIAN, FLUSH, since=KUBELET - 20), []),
        (loader(*DEBIAN, FLUSH, since=KUBELET + 20), []),
        (loader(*DEBIAN, FLUSH, since=None), []),
        (loader(*DEBIAN, FLUSH, since=LATER, active=False), []),
        (loader(*DEBIAN, since=LATER), []),
        # the case of k0s: RHEL's configuration has no flush, and its stop has one
        (loader(*RED_HAT, since=LATER, enabled_at=KUBELET - 90000), WARNING),
        (
            loader(*DEBIAN, FLUSH, since=KUBELET - 20, changed_at=LATER, reload_failed=False),
            WARNING,
        ),
    ],
)
def test_nftables(node, record, rows):
    assert judged(node, nftables=record)[0] == rows


def test_what_is_said_of_nftables(node):
    _rows, (finding,) = judged(node, nftables=loader(*DEBIAN, FLUSH, since=LATER))
    places = [(ref.object, ref.path, ref.line) for ref in finding.evidence]
    assert places == [
        ("nftables.service", None, None),
        (None, "/etc/nftables.conf", 3),
    ]
    assert "2027-01-15T" in finding.summary
    assert "/etc/nftables.conf:3" in finding.remedy


@pytest.mark.parametrize(
    ("tables", "nft", "count"),
    [
        ([], None, 1),
        (["filter", "nat"], True, 1),
        (["filter", "nat"], None, 0),  # of iptables-legacy
        (["filter", "nat"], False, 0),
        (None, None, 0),
    ],
)
def test_where_the_rules_are(node, tables, nft, count):
    node.data("w1", "network")["iptables"] = {"tables": tables, "legacy": bool(nft), "nft": nft}
    rows = judged(node, nftables=loader(*DEBIAN, FLUSH, since=LATER))[0]
    assert rows.count(WARNING[0]) == count


def test_a_service_of_iptables(node):
    rules = ("/etc/iptables/rules.v4", 2, "*filter")
    rows, (finding,) = judged(node, **{"netfilter-persistent": loader(rules, since=LATER)})
    assert rows == WARNING
    assert "IPTABLES_RESTORE_NOFLUSH=yes" in finding.remedy


@pytest.mark.parametrize(
    ("since", "version", "rows"),
    [
        (LATER, "1.3.3", WARNING),
        (KUBELET - 20, "1.3.3", [("info", "firewall rules")]),
        (None, "1.3.3", [("info", "firewall rules")]),
        (LATER, "2.1.1", []),
        (LATER, None, []),
    ],
)
def test_firewalld(node, since, version, rows):
    found = red_hat()
    found["firewalld"].update(since=since, version=version)
    assert judged(node, **found)[0] == rows


def test_firewalld_on_a_node_of_rke2(node):
    kubelet = node.data("w1", "kubelet")
    kubelet["unit"] = {"name": "rke2-agent.service", "active_state": "active"}
    kubelet["distribution"] = {"program": "rke2", "files": []}
    found = red_hat()
    found["firewalld"].update(since=None, version="0.9.11")
    rows, (finding, *_others) = judged(node, **found)
    assert rows == WARNING
    assert "k8s-app=canal" in finding.remedy


def test_evidence_of_a_release_that_did_not_ask(node):
    assert judged(node, **red_hat())[0] == []


@pytest.mark.parametrize(
    ("message", "container", "plugin", "version", "way", "count"),
    [
        (LOST, "coredns", "cilium_host", "1.3.4", None, 1),
        (LOST, "coredns", "cilium_host", None, None, 1),
        (LOST, "coredns", "cilium_host", "1.1.1", None, 0),
        (LOST, "coredns", "cali*", "1.3.4", None, 0),
        (LOST, "coredns", "cilium_host", "1.3.4", "connection", 0),
        (LOST, "kube-proxy", "cilium_host", "1.3.4", None, 0),
        (LOST.replace("i/o timeout", "connect: no route to host"), *("coredns", "cilium_host"))
        + ("1.3.4", None, 0),
    ],
)
def test_firewalld_and_cilium(node, message, container, plugin, version, way, count):
    node.data("w1", "network")["interfaces"].append(interface(plugin))
    node.documents["w1"]["collectors"]["system_pods"] = {
        "status": "ok",
        "data": {"pods": [], "running": []},
    }
    pod = f"{container}-7db6d8ff4d-6gczx"
    saying_pods.say(node, message, pod=pod, container=container)
    if way:
        node.documents["w1"]["collectors"]["api_way"] = {"status": "ok", "data": {"failed": way}}
    found = red_hat()
    found["firewalld"]["version"] = version
    rows = [row for row in judged(node, **found)[0] if row[0] == "critical"]
    assert rows == [("critical", "firewalld")] * count
