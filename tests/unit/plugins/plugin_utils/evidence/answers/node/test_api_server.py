# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What API servers answer, as the collector writes it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    api_server,
)
from tests.unit.support import answers

# Of Kubernetes 1.36.3, two of whose three etcd members were stopped.
WITHOUT_ETCD = {
    "servers": [
        {
            "pid": 1689,
            "address": "127.0.0.1",
            "port": 6443,
            "livez": {"status": 500, "checks": 35, "failed": ["etcd"], "error": None}
            | {"seconds": 0.001},
            "readyz": {"status": 500, "checks": 37, "failed": ["etcd", "etcd-readiness"]}
            | {"error": None, "seconds": 2.002},
            "version": {"status": 200, "checks": 0, "failed": [], "error": None, "seconds": 0.001},
        }
    ],
    "ports": [],
    "unseen": False,
    "used_up": [],
}
# Of the same cluster, where another program was given the port.
PORT = {
    "servers": [],
    "ports": [
        {"port": 6443, "pid": 1003, "comm": "python3", "unit": None, "pod_uid": None}
        | {"static": None, "component": "kube-apiserver"}
    ],
    "unseen": False,
    "used_up": [],
}


def test_a_server_without_etcd():
    answer = answers.typed(api_server.ApiServerAnswers, WITHOUT_ETCD)
    (server,) = answer.servers
    assert (server.readyz.status, server.readyz.failed) == (500, ("etcd", "etcd-readiness"))
    assert (server.livez.failed, server.version.status) == (("etcd",), 200)


def test_who_has_a_port():
    (row,) = answers.typed(api_server.ApiServerAnswers, PORT).ports
    assert (row.component, row.port, row.comm, row.static) == (
        "kube-apiserver",
        6443,
        "python3",
        None,
    )


def test_checks_that_are_no_list_are_malformed():
    decoded = answers.changed(
        api_server.ApiServerAnswers, WITHOUT_ETCD, "servers", 0, "readyz", "failed", value="etcd"
    )
    assert decoded.malformed == ("servers[0].readyz.failed",)
    assert decoded.answer.servers[0].readyz.failed == ()
