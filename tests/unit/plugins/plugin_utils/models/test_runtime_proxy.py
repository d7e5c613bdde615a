# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of a container runtime, and what a plugin of the CNI asks through it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import runtime_proxy
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.runtime_proxy import (
    RuntimeProxy,
)

PATH = "/etc/default/rke2-server"
HIDDEN = "CONTAINERD_HTTPS_PROXY=********\nCONTAINERD_NO_PROXY=****\n"
KNOWN = RuntimeProxy("http://proxy.example.org:3128", "example.org")
MASKED = RuntimeProxy("", None, PATH, 1)
ANOTHER = (
    "tls: failed to verify certificate: x509: certificate is valid for 10.0.0.1, not 10.43.0.1"
)


def message(reason: str, server: str = "10.43.0.1:443", plugin: str = "calico") -> str:
    return (
        f'failed to setup network for sandbox "57fb": plugin type="{plugin}" failed (add): error'
        f' getting ClusterInformation: Get "https://{server}/apis/x/y": {reason}'
    )


def extracted(text: str | None = None, proxy: Any = None, **process: Any) -> RuntimeProxy:
    files = [{"path": PATH, "text": text}] if text is not None else []
    data = {
        "kubelet": {"unit": {"environment_files": files}, "process": process or None},
        "runtime": {"kind": "docker" if process else "embedded", "proxy": proxy},
    }
    collectors = {name: {"status": "ok", "data": row} for name, row in data.items()}
    return runtime_proxy.extract({"host": "w1", "collectors": collectors})


@pytest.mark.parametrize(
    ("arguments", "proxy"),
    [
        ({"text": HIDDEN}, MASKED),
        ({"text": f"# here\n{HIDDEN}"}, RuntimeProxy("", None, PATH, 2)),
        (
            {"text": "CONTAINERD_HTTPS_PROXY=http://p\nCONTAINERD_NO_PROXY='10.0.0.0/8'\n"},
            RuntimeProxy("", "10.0.0.0/8", PATH, 1),
        ),
        ({"text": "CONTAINERD_HTTPS_PROXY=http://p\n"}, RuntimeProxy("", "", PATH, 1)),
        ({"text": "HTTPS_PROXY=****\nCONTAINERD_HTTPS_PROXY=\n"}, RuntimeProxy()),
        ({"text": "#CONTAINERD_HTTPS_PROXY=http://p\n"}, RuntimeProxy()),
        ({"text": HIDDEN, "proxy": {}}, RuntimeProxy()),  # it runs without
        (
            {"text": HIDDEN, "proxy": {"HTTPS_PROXY": "http://p", "NO_PROXY": "a"}},
            RuntimeProxy("http://p", "a", PATH, 1),
        ),
        ({"proxy": {"HTTPS_PROXY": "http://p"}}, RuntimeProxy("http://p", "")),
        ({"pid": 1, "proxy": None}, RuntimeProxy()),
        ({}, RuntimeProxy()),
    ],
)
def test_the_proxy_of_a_node(arguments, proxy):
    assert extracted(**arguments) == proxy


def test_with_docker_the_kubelet_runs_the_plugins():
    process = {"proxy": {"HTTPS_PROXY": "http://p", "NO_PROXY": "a"}}
    data = {"kubelet": {"process": process}, "runtime": {"kind": "docker"}}
    collectors = {name: {"status": "ok", "data": row} for name, row in data.items()}
    found = runtime_proxy.extract({"host": "w1", "collectors": collectors})
    assert found == RuntimeProxy("http://p", "a")


@pytest.mark.parametrize(
    "reason",
    [
        ANOTHER,
        "x509: certificate is not valid for any names, but wanted to match 10.43.0.1",
        "proxyconnect tcp: dial tcp 192.0.2.1:3128: connect: connection refused",
        "Forbidden",
        "Proxy Authentication Required",
        "Service Unavailable",
    ],
)
@pytest.mark.parametrize("proxy", [KNOWN, MASKED])
def test_what_a_proxy_answers(proxy, reason):
    found = proxy.trouble(message(reason))
    assert found is not None
    assert found.kind == runtime_proxy.KIND
    assert "10.43.0.1" in found.what
    assert "NO_PROXY" in found.what
    assert "10.43.0.1" in found.cure


@pytest.mark.parametrize("reason", ["EOF", "dial tcp 192.0.2.1:443: i/o timeout"])
def test_any_failure_counts_where_the_exceptions_are_known(reason):
    assert KNOWN.trouble(message(reason)) is not None
    assert MASKED.trouble(message(reason)) is None


@pytest.mark.parametrize("plugin", ["cilium-cni", "multus", "whereabouts", "flannel"])
def test_other_plugins(plugin):
    assert KNOWN.trouble(message("Forbidden", plugin=plugin)) is not None


def test_a_message_of_a_kubelet_with_docker():
    text = (
        'networkPlugin cni failed to set up pod "a" network: Get \\"https://10.43.0.1:443/api\\":'
        " Forbidden"
    )
    assert KNOWN.trouble(text) is not None


@pytest.mark.parametrize(
    ("proxy", "text"),
    [
        (RuntimeProxy(), message("Forbidden")),
        (RuntimeProxy("http://p", "10.43.0.0/16"), message(ANOTHER)),
        (RuntimeProxy("", "10.43.0.0/16", PATH, 1), message(ANOTHER)),
        (MASKED, message("x509: certificate is valid for 10.0.0.1, not other.example.org")),
        (MASKED, message("x509: certificate signed by unknown authority")),
        (KNOWN, 'failed to pull image: Get "https://10.43.0.1:443/v2/": Forbidden'),
        (KNOWN, 'plugin type="calico" failed (add): no IP addresses'),
    ],
)
def test_what_tells_of_no_proxy(proxy, text):
    assert proxy.trouble(text) is None


def test_where_the_proxy_is_named():
    (named,) = MASKED.proof("w1")
    assert (named.path, named.line) == (PATH, 1)
    (process,) = KNOWN.proof("w1")
    assert "http://proxy.example.org:3128" in process.text
