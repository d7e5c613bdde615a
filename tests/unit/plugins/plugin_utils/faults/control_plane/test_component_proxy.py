# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM181: what components of the control plane ask through the proxy of their manifests."""

from __future__ import annotations

from typing import Any

import pytest

SERVER, MANAGER, ETCD = "kube-apiserver", "kube-controller-manager", "etcd"
PROXY = "http://user:geheim@proxy.example:3128"
FLAGS = (
    "--advertise-address=192.0.2.11",
    "--service-cluster-ip-range=10.96.0.0/12",
)
WHOLE = ".svc,.cluster.local,10.96.0.0/12,192.0.2.0/24"
EVERYTHING = ("webhooks", "API groups", "kubelet")
PATH = "/etc/kubernetes/manifests"


def give(
    world: Any,
    env: dict[str, str],
    component: str = SERVER,
    flags: tuple[str, ...] = FLAGS,
) -> None:
    """Give m1 a manifest with flags and an environment."""
    world.manifest("m1", component, *flags)
    files = world.data("m1", "manifests")["files"]
    file = next(row for row in files if row["name"] == f"{component}.yaml")
    rows = "".join(f"    - name: {name}\n      value: '{env[name]}'\n" for name in env)
    file["text"] = file["text"].replace("    image: ", f"    env:\n{rows}    image: ")


def found(world: Any) -> list[Any]:
    result = world.judge(faults={"KM181"})
    return [item for item in result.findings if item.code == "KM181"]


def verdict(world: Any, host: str = "m1") -> str:
    rows = world.judge(faults={"KM181"}).verdicts
    return next(row.verdict for row in rows if row.code == "KM181" and row.host == host)


def destinations(world: Any) -> list[str]:
    [finding] = found(world)
    return [name for name in EVERYTHING if name in finding.summary.partition(" because ")[0]]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy"])
def test_a_proxy_without_exceptions_gets_all_that_the_server_asks(
    world: Any, variable: str
) -> None:
    give(world, {"http_proxy": PROXY, variable: PROXY})
    [finding] = found(world)
    assert (finding.host, finding.component, finding.severity) == ("m1", SERVER, "warning")
    assert destinations(world) == list(EVERYTHING)
    [proof] = finding.evidence
    assert (proof.path, proof.text) == (f"{PATH}/{SERVER}.yaml", f"name: {variable}")
    line = world.data("m1", "manifests")["files"][-1]["text"].splitlines()[proof.line - 1]
    assert line.strip() == f"- name: {variable}"
    assert all(item in finding.remedy for item in (".svc,10.96.0.0/12,192.0.2.11", "NO_PROXY"))


def test_a_report_has_no_password_of_a_proxy(world: Any) -> None:
    give(world, {"https_proxy": PROXY})
    [finding] = found(world)
    assert "proxy.example:3128" in finding.summary
    assert "geheim" not in repr(finding)
    assert "user" not in repr(finding)


@pytest.mark.parametrize("value", ["*" * 24, "http://user:gehe im@", "user:geheim"])
def test_a_proxy_whose_place_is_not_known_is_not_quoted(world: Any, value: str) -> None:
    give(world, {"https_proxy": value})
    [finding] = found(world)
    assert "asks a proxy (https_proxy" in finding.summary


@pytest.mark.parametrize(
    ("exceptions", "missing"),
    [
        (WHOLE, ()),
        ("svc,10.0.0.0/8,192.0.2.11", ()),
        ("*.svc,10.96.0.0/12,192.0.2.11", ()),
        ("*", ()),
        # one address of the range is not the range
        (".svc,10.96.0.1,192.0.2.0/24", ("API groups",)),
        (".svc,10.96.0.0/16,192.0.2.0/24", ("API groups",)),
        # a webhook is asked by a name that ends with .svc
        (".cluster.local,10.96.0.0/12,192.0.2.0/24", ("webhooks",)),
        (".svc,10.96.0.0/12", ("kubelet",)),
        ("localhost,127.0.0.1,10.*", EVERYTHING),
    ],
)
def test_exceptions_are_read_as_go_reads_them(
    world: Any, exceptions: str, missing: tuple[str, ...]
) -> None:
    give(world, {"https_proxy": PROXY, "no_proxy": exceptions})
    if not missing:
        assert verdict(world) == "clear"
        return
    assert destinations(world) == list(missing)
    assert "add to the value of no_proxy" in found(world)[0].remedy


def test_capital_letters_win(world: Any) -> None:
    give(world, {"https_proxy": PROXY, "no_proxy": WHOLE, "NO_PROXY": "localhost"})
    assert destinations(world) == list(EVERYTHING)


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"http_proxy": PROXY, "HTTP_PROXY": PROXY},  # nothing within a cluster is http
        {"Https_Proxy": PROXY},  # Go does not know it
        {"https_proxy": "", "no_proxy": ""},
    ],
)
def test_no_proxy_for_https_is_clear(world: Any, env: dict[str, str]) -> None:
    give(world, env)
    assert verdict(world) == "clear"


def test_a_server_that_asks_pods_does_not_ask_services(world: Any) -> None:
    flags = (*FLAGS, "--enable-aggregator-routing=true")
    give(world, {"https_proxy": PROXY, "no_proxy": ".svc,192.0.2.0/24"}, flags=flags)
    assert verdict(world) == "clear"


def test_a_controller_manager_asks_the_server_of_its_kubeconfig(world: Any) -> None:
    row = {"component": MANAGER, "path": "/etc/kubernetes/controller-manager.conf"}
    row["server"] = "https://192.0.2.11:6443"
    uses = {"uses": [], "files": [], "keys": [], "served": [], "kubeconfigs": [row]}
    world.documents["m1"]["collectors"]["certificates"] = {"status": "ok", "data": uses}
    give(world, {"HTTPS_PROXY": PROXY, "NO_PROXY": ".svc"}, MANAGER, ())
    [finding] = found(world)
    assert finding.component == MANAGER
    assert "https://192.0.2.11:6443" in finding.summary
    row["server"] = "https://127.0.0.1:6443"
    assert verdict(world) == "clear"


def test_a_controller_manager_without_a_known_server_is_unknown(world: Any) -> None:
    give(world, {"HTTPS_PROXY": PROXY}, MANAGER, ())
    world.documents["m1"]["collectors"]["certificates"] = {"status": "timeout", "data": None}
    assert verdict(world) == "unknown"


def test_a_member_of_etcd_asks_the_others(world: Any) -> None:
    members = "m1=https://192.0.2.11:2380,m2=https://192.0.2.12:2380"
    flags = ("--name=m1", f"--initial-cluster={members}")
    give(world, {"https_proxy": PROXY}, ETCD, flags)
    [finding] = found(world)
    assert "m2 of etcd (192.0.2.12)" in finding.summary
    assert "192.0.2.11" not in finding.summary
    give(world, {"https_proxy": PROXY, "no_proxy": "192.0.2.12"}, ETCD, flags)
    assert verdict(world) == "clear"


def test_what_the_server_logs_of_its_proxy_is_named(world: Any) -> None:
    line = (
        'E0112 10:00:00.000000 1 dispatcher.go:214] "failed calling webhook" err="failed calling'
        ' webhook \\"a.example\\": failed to call webhook: Post'
        ' \\"https://a.b.svc:443/validate?timeout=10s\\": proxyconnect tcp: dial tcp'
        ' 198.51.100.7:3128: i/o timeout"'
    )
    entry = {"line": line, "count": 7, "first": 1.0, "last": 2.0, "minutes": 5, "pods": 0}
    row = {"component": SERVER, "source": "/var/log/pods/api/0.log", "error": None}
    row |= {"started": None, "since": 1.0, "lines": 10, "errors": 7, "cut": False}
    data = {"read_at": 3.0, "components": [{**row, "entries": [entry]}]}
    world.documents["m1"]["collectors"]["repeated_errors"] = {"status": "ok", "data": data}
    give(world, {"https_proxy": PROXY})
    [finding] = found(world)
    assert [proof.kind for proof in finding.evidence] == ["file", "log"]
    assert "7 times" in finding.summary
    assert "proxyconnect" in finding.summary


def test_masked_exceptions_are_unknown(world: Any) -> None:
    give(world, {"https_proxy": PROXY, "no_proxy": "*" * 30})
    assert verdict(world) == "unknown"


def test_a_worker_has_no_manifest_to_judge(world: Any) -> None:
    assert verdict(world, "w1") == "not_applicable"
