# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of a container, and what a component asks through it."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import component_proxy
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.pod_manifest import (
    Container,
)

RANGE = "--service-cluster-ip-range=10.96.0.0/12"
MEMBERS = "--initial-cluster=m1=https://192.0.2.11:2380,m2=https://192.0.2.12:2380"


def proxy(**env: str) -> component_proxy.Proxy | None:
    return component_proxy.of_container(Container("server", "image", (), env))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("http://user:secret@proxy.example:3128", "proxy.example:3128"),
        ("proxy.example:3128/", "proxy.example:3128"),
        ("http://[2001:db8::1]:3128", "[2001:db8::1]:3128"),
        ("********", ""),
        ("http://user:se cret", ""),
    ],
)
def test_of_the_address_of_a_proxy_only_host_and_port_are_shown(value: str, place: str) -> None:
    found = proxy(HTTPS_PROXY=value)
    assert found is not None
    assert (found.variable, found.place) == ("HTTPS_PROXY", place)


@pytest.mark.parametrize("env", [{}, {"HTTP_PROXY": "http://p:1"}, {"Https_Proxy": "http://p:1"}])
def test_other_variables_are_no_proxy_for_https(env: dict[str, str]) -> None:
    assert proxy(**env) is None


@pytest.mark.parametrize(
    ("component", "words", "exceptions", "entries"),
    [
        ("kube-apiserver", [RANGE], "", [".svc", "10.96.0.0/12"]),
        ("kube-apiserver", [RANGE], ".svc,10.96.0.0/12", []),
        ("kube-apiserver", [RANGE, "--enable-aggregator-routing=true"], ".svc", []),
        ("etcd", ["--name=m1", MEMBERS], "", ["192.0.2.12"]),
        ("etcd", ["--name=m1", MEMBERS], "192.0.2.0/24", []),
        ("kube-scheduler", [], "", ["192.0.2.10"]),
        ("kube-scheduler", [], "192.0.2.10", []),
        ("kube-proxy", [], "", []),
    ],
)
def test_what_a_component_asks_through_its_proxy(
    component: str, words: list[str], exceptions: str, entries: list[str]
) -> None:
    given = proxy(https_proxy="http://proxy:3128", no_proxy=exceptions)
    assert given is not None
    servers = ["https://192.0.2.10:6443"]
    found = component_proxy.through(component, words, given, servers)
    assert [item.entry for item in found] == entries


@pytest.mark.parametrize(("exceptions", "is_readable"), [(".svc", True), ("xxxxxxxx", False)])
def test_masked_exceptions_are_not_read(exceptions: str, is_readable: bool) -> None:
    given = proxy(https_proxy="http://proxy:3128", no_proxy=exceptions)
    assert given is not None
    assert component_proxy.is_readable(given) is is_readable
