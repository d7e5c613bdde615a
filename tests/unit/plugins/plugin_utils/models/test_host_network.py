# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host's network counts for pods."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import host_network
from tests.unit.support import network_evidence


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.53", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("169.254.25.10", False),
        ("fe80::1%eth0", False),
        ("not an address", False),
    ],
)
def test_addresses_of_loopback(address, own):
    assert host_network.is_loopback(address) is own


@pytest.mark.parametrize(
    ("servers", "argv", "asked"),
    [
        (["10.96.0.10"], ["--cluster-dns=10.96.0.10"], ("10.96.0.10",)),
        (["127.0.0.53"], ["--cluster-dns=10.96.0.10"], ()),
        (["10.96.0.10", "192.0.2.53"], ["--cluster-dns=10.96.0.10"], ()),
        (["192.0.2.53"], ["--cluster-dns=10.96.0.10"], ()),
        (["169.254.25.10"], ["--cluster-dns=169.254.25.10"], ()),
        (["10.96.0.10"], [], ()),
        ([], ["--cluster-dns=10.96.0.10"], ()),
    ],
)
def test_a_host_that_asks_the_cluster_alone_for_names(world, servers, argv, asked):
    network_evidence.network(world)["resolvers"] = [
        {"path": "/etc/resolv.conf", "nameservers": ["127.0.0.53"], "search": []},
        {"path": "/run/x", "nameservers": servers, "search": []},
    ]
    world.data("w1", "kubelet")["argv"] = ["kubelet", *argv]
    assert host_network.extract(world.documents["w1"]).asked_in_cluster == asked


@pytest.mark.parametrize(
    ("argv", "path"),
    [(["kubelet"], "/etc/resolv.conf"), (["kubelet", "--resolv-conf=/run/x"], "/run/x")],
)
def test_the_resolver_that_the_kubelet_is_told(world, argv, path):
    data = network_evidence.network(world)
    data["resolvers"].insert(0, {"path": "/run/x", "nameservers": ["192.0.2.1"]})
    world.data("w1", "kubelet")["argv"] = argv
    assert host_network.extract(world.documents["w1"]).resolver.path == path


def test_routes_are_kept_where_network_manager_may_change_them(world):
    network_evidence.network(world, network_manager=network_evidence.service(active=False))
    assert host_network.extract(world.documents["w1"]).answer.routes is None
    network_evidence.network(world, network_manager=network_evidence.service())
    assert len(host_network.extract(world.documents["w1"]).answer.routes) == 1


def test_lines_that_set_rp_filter(world):
    network_evidence.network(world)
    files = [
        {
            "path": "/etc/sysctl.d/a.conf",
            "text": "# rp_filter\nnet.ipv4.ip_forward=1\nnet.ipv4.conf.*.rp_filter = 2\n",
        }
    ]
    world.documents["w1"]["collectors"]["limits"] = {
        "status": "ok",
        "data": {"sysctl_files": files},
    }
    extract = host_network.extract(world.documents["w1"])
    assert extract.rp_filter_lines == (
        ("/etc/sysctl.d/a.conf", 3, "net.ipv4.conf.*.rp_filter = 2"),
    )


def test_a_host_that_did_not_answer(world):
    assert host_network.extract(world.documents["w1"]) == host_network.HostNetwork()
