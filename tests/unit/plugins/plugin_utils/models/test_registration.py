# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What evaluating a cluster keeps of how a kubelet comes to its Node. Tables."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import registration


def read(kubelet=None, components=None):
    collectors = {"kubelet": {"status": "ok", "data": kubelet or {}}}
    if components is not None:
        data = {"read_at": 5.0, "components": components}
        collectors["repeated_errors"] = {"status": "ok", "data": data}
    return registration.extract({"host": "w1", "collectors": collectors})


def test_of_a_host_without_a_kubelet_nothing_is_known():
    assert read() == registration.Registration()


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (None, None),
        ({"text": "clusters: []"}, ""),
        ({"error": "missing"}, "missing"),
        ({"error": "denied"}, "denied"),
    ],
)
def test_the_kubeconfig(record, kept):
    assert read({"kubeconfig": record}).kubeconfig == kept


@pytest.mark.parametrize(
    ("argv", "text", "kept"),
    [
        ([], "", ""),
        (["--register-node=false"], "", "--register-node=false"),
        (["--register-node"], "registerNode: false", ""),
        ([], "registerNode: false\n", "registerNode: false"),
    ],
)
def test_a_kubelet_that_is_not_to_register(argv, text, kept):
    config = {"path": "/var/lib/kubelet/config.yaml", "kind": "file", "text": text}
    assert read({"argv": ["kubelet", *argv], "config": config}).unregistered == kept


@pytest.mark.parametrize(
    ("process", "kept"),
    [
        ({"pid": 1}, ("", "")),
        ({"pid": 1, "proxy": {}}, ("", "")),
        ({"pid": 1, "proxy": {"HTTPS_PROXY": "[unreadable]"}}, ("", "")),
        (
            {"pid": 1, "proxy": {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a,b"}},
            ("http://p:1", "a,b"),
        ),
    ],
)
def test_the_proxy_of_its_process(process, kept):
    found = read({"process": process})
    assert (found.proxy, found.no_proxy) == kept


def test_of_its_log_a_few_lines_about_its_node():
    lines = [
        *(f'"Unable to register node with API server" err="{number}"' for number in range(9)),
        'certificate_manager.go:562] "Failed while requesting a signed certificate from the'
        ' control plane" err="cannot create certificate signing request: Unauthorized"',
        '"Error getting the current node from lister" err="node \\"w1\\" not found"',
        '"Error syncing pod, skipping" err="back-off"',
    ]
    rows = [
        {"component": "containerd", "entries": [{"line": lines[0]}]},
        {"component": "kubelet", "entries": [{"line": line} for line in lines]},
    ]
    found = read(components=rows)
    assert found.read_at == 5.0
    assert [entry.line for entry in found.errors.entries] == [*lines[:3], lines[-2]]
    assert read(components=rows[:1]).errors is None


def test_when_its_host_was_read():
    document = {"host": "w1", "collected_at": "2027-01-15T08:00:00Z", "collectors": {}}
    assert registration.extract(document).collected_at == "2027-01-15T08:00:00Z"
