# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What components and etcd say: captures of both versions, and small servers that misbehave."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
    Denied,
    Failed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_http,
    etcd,
)
from tests.unit.support.fake_sockets import answering
from tests.unit.support.instance_rows import component_process


@pytest.fixture
def server():
    with answering() as start:
        yield start


@pytest.mark.parametrize(
    ("collect", "component"), [(component_http.collect, "kube-scheduler"), (etcd.collect, "etcd")]
)
def test_without_root_nothing_is_called_absent(collect, component):
    with pytest.raises(Denied):
        collect(
            Context(
                {},
                [],
                {"instances": {"processes": [component_process(component, host_network=None)]}},
            )
        )


def test_etcd_members(capture):
    found = etcd.members(capture("etcd-members.json").encode())
    assert sorted(one["name"] for one in found["members"]) == ["m1", "m2", "m3"]
    assert found["cluster_id"].isdigit()
    assert all(
        one["peer_urls"][0].endswith(":2380") and one["client_urls"] and one["id"].isdigit()
        for one in found["members"]
    )


def test_etcd_asks_one_after_another(server):
    member = {"ID": "1", "name": "a", "peerURLs": [], "clientURLs": [], "isLearner": True}
    answer = json.dumps({"header": {"cluster_id": "7"}, "members": [member]}).encode()
    port = server(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
    servers = f"--etcd-servers=http://127.0.0.1:1,http://127.0.0.1:{port}"
    found = etcd.collect(
        Context(
            {},
            [],
            {
                "instances": {
                    "processes": [component_process("kube-apiserver", servers, "--etcd-prefix=r/")]
                }
            },
        )
    )
    assert found["endpoint"] == f"http://127.0.0.1:{port}"
    assert found["cluster_id"] == "7"
    assert found["members"][0]["learner"] is True
    assert found["api_server"] == {
        "etcd_servers": servers.split("=")[1].split(","),
        "etcd_prefix": "/r",
    }


def test_etcd_that_does_not_answer():
    context = Context(
        {},
        [],
        {
            "instances": {
                "processes": [component_process("etcd", "--listen-client-urls=http://127.0.0.1:1")]
            }
        },
    )
    with pytest.raises(Failed) as caught:
        etcd.collect(context)
    assert caught.value.data["error"] == "http://127.0.0.1:1: Connection refused"
    assert caught.value.data["members"] == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://127.0.0.1:2379", ("https", "127.0.0.1", 2379)),
        ("https://[::1]:2379", ("https", "::1", 2379)),
        ("http://0.0.0.0:1/", ("http", "127.0.0.1", 1)),
        ("https://etcd.local", ("https", "etcd.local", 2379)),
    ],
)
def test_etcd_url(url, expected):
    assert etcd.parsed(url) == expected
