# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of k3s and RKE2 that take their tunnel off the loopback: a part of KM536 and KM177."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.support.api_nodes import node

ADDRESS, BIND = ("kubelet-arg", "address=192.0.2.21"), ("bind-address", "192.0.2.21")
DISABLED = ("egress-selector-mode", "disabled")
URL = "https://10.43.146.55:443/apis/metrics.k8s.io/v1beta1"
GROUP = f'failing or missing response from {URL}: Get "{URL}": dial tcp {{}}: connect: {{}}'


def unit(world: Any, host: str, name: str, *settings: tuple[str, str], error: Any = None) -> None:
    program = name.partition("-")[0].partition(".")[0]
    rows = [{"line": 3, "key": key, "value": value} for key, value in settings]
    path = f"/etc/rancher/{program}/config.yaml"
    kubelet = world.data(host, "kubelet")
    kubelet["unit"] |= {"name": name, "start_words": [], "fragment_path": f"/etc/x/{name}"}
    files = [{"path": path, "error": error, "settings": rows}]
    kubelet["distribution"] = {"program": program, "files": files}


def release(world: Any, version: str) -> None:
    for host in ("m1", "m2", "m3", "w1"):
        node(world, host)["kubelet_version"] = version


@pytest.fixture
def rancher(world: Any) -> Any:
    """Return a world of k3s, with a release that has the tunnel."""
    for host in ("m1", "m2", "m3"):
        unit(world, host, "k3s.service")
    unit(world, "w1", "k3s-agent.service")
    release(world, "v1.26.3+k3s1")
    return world


def found(world: Any) -> list[Any]:
    result = world.judge(faults={"KM536"})
    return [row for row in result.findings if row.code == "KM536"]


def test_usual_settings(rancher):
    assert found(rancher) == []


@pytest.mark.parametrize(
    ("host", "name"),
    [("w1", "k3s-agent.service"), ("m2", "k3s.service"), ("w1", "rke2-agent.service")],
)
def test_a_kubelet_that_does_not_listen_at_the_loopback(rancher, host, name):
    unit(rancher, host, name, ADDRESS)
    (one,) = found(rancher)
    assert (one.host, one.node, one.severity) == (host, host, "warning")
    assert "kubelet-arg: address=192.0.2.21" in one.summary
    assert "config.yaml:3" in one.summary
    assert "metrics-server" not in one.summary  # which asks the kubelet itself
    assert "egress-selector-mode: disabled" in one.remedy
    assert one.evidence[0].line == 3


@pytest.mark.parametrize("value", ["address=0.0.0.0", "address=127.0.0.1", "max-pods=250"])
def test_other_arguments_of_a_kubelet(rancher, value):
    unit(rancher, "w1", "k3s-agent.service", ("kubelet-arg", value))
    assert found(rancher) == []


@pytest.mark.parametrize("settings", [(ADDRESS,), (BIND,)])
def test_servers_without_a_tunnel(rancher, settings):
    release(rancher, "v1.24.1+k3s1")
    unit(rancher, "w1", "k3s-agent.service", ADDRESS)
    for host in ("m1", "m2", "m3"):
        unit(rancher, host, "k3s.service", DISABLED, *settings)
    assert found(rancher) == []


def test_servers_whose_configuration_is_not_known(rancher):
    unit(rancher, "w1", "k3s-agent.service", ADDRESS)
    for host in ("m1", "m2", "m3"):
        unit(rancher, host, "k3s.service", error="denied")
    assert found(rancher) == []


@pytest.mark.parametrize("version", ["v1.23.6+k3s1", "", None])
def test_releases_that_may_have_no_such_tunnel(rancher, version):
    unit(rancher, "w1", "k3s-agent.service", ADDRESS)
    release(rancher, version)
    assert found(rancher) == []


@pytest.mark.parametrize(("version", "hits"), [("v1.26.3+k3s1", 1), ("v1.31.2+k3s1", 0)])
def test_a_later_tunnel_follows_the_address_that_k3s_binds_to(rancher, version, hits):
    unit(rancher, "w1", "k3s-agent.service", ADDRESS, BIND)
    release(rancher, version)
    assert len(found(rancher)) == hits
    unit(rancher, "w1", "k3s-agent.service", ADDRESS, ("bind-address", "192.0.2.99"))
    assert len(found(rancher)) == 1


@pytest.mark.parametrize(
    ("version", "hits"),
    [
        ("v1.24.0+k3s1", 1),
        ("v1.24.2+k3s1", 1),
        ("v1.24.3+k3s1", 0),
        ("v1.26.3+k3s1", 0),
        ("v1.23.6+k3s1", 0),
    ],
)
def test_servers_that_look_for_themselves_at_the_loopback(rancher, version, hits):
    release(rancher, version)
    for host in ("m1", "m2"):
        unit(rancher, host, "k3s.service", BIND)
    rows = found(rancher)
    assert len(rows) == hits
    for row in rows:
        assert "of m1, m2 looks for its tunnel" in row.summary
        assert "127.0.0.1:6443" in row.summary
        assert "bind-address: 192.0.2.21" in row.summary


def test_rke2_is_not_meant_by_defects_of_k3s(rancher):
    for host in ("m1", "m2", "m3"):
        unit(rancher, host, "rke2-server.service", BIND)
    for version in ("v1.24.1+rke2r1", "v1.30.2+rke2r1"):
        release(rancher, version)
        assert found(rancher) == []


@pytest.mark.parametrize(
    ("version", "hits"), [("v1.30.2+k3s1", 1), ("v1.30.3+k3s1", 0), ("v1.29.6+k3s2", 1)]
)
def test_releases_whose_kubelet_listens_where_k3s_binds(rancher, version, hits):
    release(rancher, version)
    unit(rancher, "m1", "k3s.service", BIND)
    rows = found(rancher)
    assert [row.host for row in rows] == ["m1"] * hits
    for row in rows:
        assert "https://github.com/k3s-io/k3s/pull/10480" in row.remedy


def groups(world: Any, address: str, reason: str = "connection refused") -> Any:
    item = {"name": "v1beta1.metrics.k8s.io", "namespace": "kube-system"}
    item |= {"service": "metrics-server", "reason": "FailedDiscoveryCheck"}
    item |= {"message": GROUP.format(address, reason), "since": "2027-01-15T07:00:00Z"}
    data = {"listed": 1, "items": [item]}
    world.api["collectors"]["api_services"] = {"status": "ok", "data": data}
    (one,) = [row for row in world.judge(faults={"KM177"}).findings if row.code == "KM177"]
    return one


def test_an_api_group_behind_a_tunnel_that_is_not_found(rancher):
    release(rancher, "v1.24.1+k3s1")
    unit(rancher, "m1", "k3s.service", BIND)
    one = groups(rancher, "127.0.0.1:6443")
    assert "through a tunnel of its own machine at 127.0.0.1:6443" in one.summary
    assert "bind-address: 192.0.2.21" in one.summary
    assert "its container ends" not in one.summary
    assert one.remedy.startswith("update k3s to 1.24.3")
    assert "/etc/rancher/k3s/config.yaml" in [proof.path for proof in one.evidence]


def test_an_api_group_whose_own_server_refuses(rancher):
    release(rancher, "v1.24.1+k3s1")
    unit(rancher, "m1", "k3s.service", BIND)
    one = groups(rancher, "10.43.146.55:443")
    assert "nothing listens at its address: its container ends" in one.summary
    assert "bind-address" not in one.summary


def test_a_tunnel_at_the_loopback_that_other_settings_explain(rancher):
    one = groups(rancher, "127.0.0.1:6443")
    assert "through a tunnel of its own machine" in one.summary
    assert "looks for its tunnel" not in one.summary


def test_a_proxy_that_refuses_is_no_server_of_the_group(rancher):
    one = groups(rancher, "127.0.0.1:3128")
    assert "127.0.0.1:3128" in one.summary
    proxied = GROUP.replace("dial tcp", "proxyconnect tcp: dial tcp")
    item = rancher.api["collectors"]["api_services"]["data"]["items"][0]
    item["message"] = proxied.format("192.0.2.1:3128", "connection refused")
    (one,) = [row for row in rancher.judge(faults={"KM177"}).findings if row.code == "KM177"]
    assert "by the proxy of its environment (HTTPS_PROXY)" in one.summary
    assert "nothing listens at its address" not in one.summary


def test_a_node_of_another_kind_beside_them(rancher):
    rancher.data("m3", "kubelet")["unit"]["name"] = "kubelet.service"
    unit(rancher, "w1", "k3s-agent.service", ADDRESS)
    assert [row.host for row in found(rancher)] == ["w1"]


@pytest.mark.parametrize(("version", "hits"), [("v1.27.16+k3s1", 0), ("v1.27.15+k3s1", 1)])
def test_the_first_release_whose_tunnel_follows(rancher, version, hits):
    unit(rancher, "w1", "k3s-agent.service", ADDRESS, BIND)
    release(rancher, version)
    assert len(found(rancher)) == hits


def test_an_address_of_the_kubelets_own_counts_before_that_of_k3s(rancher):
    release(rancher, "v1.30.2+k3s1")
    unit(rancher, "w1", "k3s-agent.service", BIND, ("kubelet-arg", "address=192.0.2.99"))
    (one,) = found(rancher)
    assert "kubelet-arg: address=192.0.2.99" in one.summary


def test_an_api_group_of_servers_that_do_without_the_tunnel(rancher):
    release(rancher, "v1.24.1+k3s1")
    for host in ("m1", "m2", "m3"):
        unit(rancher, host, "k3s.service", BIND, DISABLED)
    assert "looks for its tunnel" not in groups(rancher, "127.0.0.1:6443").summary
