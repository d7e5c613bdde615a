# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What components and etcd say: captures of both versions, and small servers that misbehave."""

import json
import socket
import threading
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Absent,
    Context,
    Denied,
    Failed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_http,
    etcd,
    kubelet,
    system,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    files,
    http_client,
)


@pytest.fixture
def server():
    """Return a server that answers every connection with given bytes, in pieces."""
    listening, opened = [], []

    def start(*pieces, pause=0.0):
        one = socket.create_server(("127.0.0.1", 0))
        listening.append(one)

        def serve():
            while True:
                try:
                    connection = one.accept()[0]
                except OSError:
                    return
                opened.append(connection)
                connection.recv(65536)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(pause)
                    connection.close()
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        return one.getsockname()[1]

    yield start
    for one in listening + opened:
        one.close()


def _chunked(*parts):
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "status", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], 200, "ok"),
        ([b"HTTP/1.1 200 OK\r\nContent-", b"Length: 4\r\n\r", b"\no", b"ka", b"y"], 200, "okay"),
        (
            [
                b"HTTP/1.1 500 Bad\r\nTransfer-Encoding: chunked\r\n\r\n",
                _chunked(b"a", b"bc")[:6],
                _chunked(b"a", b"bc")[6:],
            ],
            500,
            "abc",
        ),
        ([b"HTTP/1.0 403 Forbidden\r\n\r\nto the end"], 403, "to the end"),
        ([b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n"], 204, ""),
    ],
)
def test_http(server, pieces, status, body):
    assert http_client.get("127.0.0.1", server(*pieces, pause=0.01), "/", 120) == {
        "status": status,
        "body": body,
        "error": None,
    }


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([b"SSH-2.0-OpenSSH\r\n\r\n"], "the answer is no HTTP"),
        ([b""], "the connection was closed"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"], "the connection was closed"),
        ([b"x" * 70000, b"y" * 70000], "the answer is no HTTP"),
    ],
)
def test_http_that_is_none(server, pieces, error):
    assert http_client.get("127.0.0.1", server(*pieces), "/", 120)["error"] in (
        error,
        "Connection reset by peer",
    )


def test_http_that_drips_ends_at_its_deadline(server):
    begin = time.monotonic()
    assert (
        http_client.get("127.0.0.1", server(*[b"H"] * 3000, pause=0.1), "/", 0.5)["error"]
        == "timed out"
    )
    assert time.monotonic() - begin < 100  # of 300


def test_http_refused():
    assert http_client.get("127.0.0.1", 1, "/", 120)["error"] == "Connection refused"


@pytest.mark.parametrize("port", [102480, 65536])
def test_a_port_that_is_none_is_no_answer(port):
    """A typo in healthzPort ends the kubelet; it must not end what tells of it."""
    assert "port must be 0-65535" in http_client.get("127.0.0.1", port, "/", 120)["error"]
    found = kubelet._healthz(["kubelet"], [f"healthzPort: {port}\n"])
    assert found["status"] is None
    assert found["url"] == f"http://127.0.0.1:{port}/healthz"
    assert found["error"]


def test_metrics_are_read_line_by_line(server):
    body = (
        b"# HELP leader_election_master_status x\nnoise 1\n" * 500
        + b'leader_election_master_status{name="a"} 1\n'
    )
    body += b'other{b="leader_election_master_status{"} 2\n'
    port = server(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + _chunked(*[body[at : at + 7] for at in range(0, len(body), 7)])
    )
    kept = http_client.Connection("127.0.0.1", port, 120).request(
        "/metrics", keep=component_http.METRICS
    )
    assert kept == (200, b'leader_election_master_status{name="a"} 1')


@pytest.mark.parametrize(
    ("port", "component"), [(10259, "kube-scheduler"), (10257, "kube-controller-manager")]
)
def test_captures(capture, port, component):
    found = component_http.configz(200, capture(f"configz-{port}.json").encode())
    lower = {key.lower(): value for key, value in found["leader_election"].items()}
    assert lower["leaderelect"] is True
    assert lower["resourcename"] == component
    assert found["error"] is None
    told = component_http.metrics(200, capture(f"metrics-{port}.txt").encode())
    assert told["leader_election_master_status"] in ({component: 0}, {component: 1})
    # the scheduler of 1.18 has no kubernetes_build_info
    assert told["git_version"] == (
        None if (capture.version, port) == ("v1.18.4", 10259) else capture.version
    )
    assert component_http.has_check(capture(f"healthz-{port}.txt")) is True


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("[+]ping ok\nhealthz check passed\n", False),
        ("[+]ping ok\n[-]leaderElection failed: reason withheld\n", True),
        ("ok", None),
        ("", None),
        (None, None),
    ],
)
def test_leader_election_check(body, expected):
    assert component_http.has_check(body) is expected


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (403, b"{}", "HTTP 403"),
        (200, b"<html>", "the answer is no JSON"),
        (200, b"[]", "no leader election in it"),
        (200, b'{"componentconfig": 1}', "no leader election in it"),
    ],
)
def test_configz_of_another_shape(status, body, error):
    assert component_http.configz(status, body) == {
        "status": status,
        "leader_election": None,
        "error": error,
    }


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], [("127.0.0.1", 10259, True), ("127.0.0.1", 10251, False)]),
        (["--port=0"], [("127.0.0.1", 10259, True)]),
        (
            ["--bind-address=::", "--secure-port=1"],
            [("::1", 1, True), ("127.0.0.1", 1, True), ("127.0.0.1", 10251, False)],
        ),
        (["--secure-port=0", "--address=10.0.0.1", "--port=7"], [("10.0.0.1", 7, False)]),
        (["--secure-port=0", "--port=0"], []),
        (["--bind-address=10.1.1.1", "--port=0"], [("10.1.1.1", 10259, True)]),
    ],
)
def test_doors(argv, expected):
    assert component_http.doors("kube-scheduler", argv) == expected


def _process(component, *argv, **more):
    return {
        "component": component,
        "pid": 1,
        "argv": [component, *argv],
        "host_network": True,
        "started_at": 1.0,
        **more,
    }


def test_only_what_is_in_this_network_is_asked():
    for processes in (
        [],
        [_process("kube-scheduler", host_network=False)],
        [_process("kube-apiserver")],
    ):
        with pytest.raises(Absent):
            component_http.collect(Context({}, [], {"instances": {"processes": processes}}))


@pytest.mark.parametrize(
    ("collect", "component"), [(component_http.collect, "kube-scheduler"), (etcd.collect, "etcd")]
)
def test_without_root_nothing_is_called_absent(collect, component):
    with pytest.raises(Denied):
        collect(
            Context({}, [], {"instances": {"processes": [_process(component, host_network=None)]}})
        )


def test_who_cannot_be_told_is_named():
    processes = [_process("kube-scheduler"), _process("kube-scheduler", host_network=None, pid=7)]
    with pytest.raises(Denied, match="pid 7 "):
        base.in_this_network(
            Context({}, [], {"instances": {"processes": processes}}), ("kube-scheduler",)
        )


def test_insecure_component(server):
    port = server(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n[+]ping ok\n")
    context = Context(
        {},
        [],
        {
            "instances": {
                "processes": [_process("kube-scheduler", "--secure-port=0", f"--port={port}")]
            }
        },
        time.monotonic() + 600,
    )
    found = component_http.collect(context)["components"][0]
    assert (found["address"], found["port"], found["leader_election_check"]) == (
        "127.0.0.1",
        port,
        False,
    )
    assert found["configz"]["error"] == "the answer is no JSON"


def test_a_component_that_hangs_does_not_hide_the_other(server, monkeypatch):
    """Every wait ends before the collector's own limit, so that what is known gets home."""
    monkeypatch.setattr(component_http, "EACH", 600)
    monkeypatch.setattr(base, "MARGIN", 60)  # as far before it as a slow machine may need
    hanging = server(*[b"H"] * 6000, pause=0.1)
    good = server(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n[+]ping ok\n")
    processes = [
        _process(component, "--secure-port=0", f"--port={port}")
        for component, port in (("kube-controller-manager", good), ("kube-scheduler", hanging))
    ]
    begin = time.monotonic()
    found = component_http.collect(
        Context({}, [], {"instances": {"processes": processes}}, time.monotonic() + 65)
    )["components"]
    assert time.monotonic() - begin < 65
    assert found[0]["healthz"]["status"] == 200
    assert found[1]["healthz"]["error"] == "timed out"


def test_one_that_just_started_and_refuses_is_asked_again(server, monkeypatch):
    monkeypatch.setattr(component_http, "PATIENCE", 1)
    monkeypatch.setattr(component_http, "PAUSE", 0.1)
    port = server(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}")
    process = _process(
        "kube-scheduler", "--secure-port=0", f"--port={port}", started_at=time.time()
    )
    begin = time.monotonic()
    found = component_http.collect(
        Context({}, [], {"instances": {"processes": [process]}}, time.monotonic() + 600)
    )["components"][0]
    assert 0.5 < time.monotonic() - begin < 300
    assert found["configz"]["status"] == found["metrics"]["status"] == 403
    assert found["credential"] is None


def test_silent_component():
    context = Context(
        {},
        [],
        {
            "instances": {
                "processes": [_process("kube-controller-manager", "--secure-port=1", "--port=0")]
            }
        },
        time.monotonic() + 600,
    )
    found = component_http.collect(context)["components"][0]
    assert (
        found["healthz"]["error"]
        == found["configz"]["error"]
        == found["metrics"]["error"]
        == "Connection refused"
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
            {"instances": {"processes": [_process("kube-apiserver", servers, "--etcd-prefix=/r")]}},
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
        {"instances": {"processes": [_process("etcd", "--listen-client-urls=http://127.0.0.1:1")]}},
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


def test_own_addresses(capture):
    assert system.ipv4(capture("fib_trie.txt"))[0].startswith("10.89.")
    assert not any(address.startswith("127.") for address in system.ipv4(capture("fib_trie.txt")))


def test_addresses_behind_the_first_page_are_read(tmp_path, monkeypatch):
    """The kernel gives a page of such a file at each read."""
    read = files.os.read
    monkeypatch.setattr(
        files.os, "read", lambda descriptor, size: read(descriptor, min(size, 4096))
    )
    text = "".join(
        f"|-- 10.0.{number // 250}.{number % 250 + 1}\n/32 host LOCAL\n" for number in range(500)
    )
    (tmp_path / "trie").write_text(text)
    assert len(text) > 8192
    assert len(system.ipv4(files.whole(str(tmp_path / "trie")))) == 500
    assert files.whole("/nowhere") is None


@pytest.mark.parametrize(
    ("count", "cut"), [(3, False), (system.MAX_ADDRESSES, False), (system.MAX_ADDRESSES + 1, True)]
)
def test_more_addresses_than_are_kept_are_said(monkeypatch, count, cut):
    text = "".join(
        f"|-- 10.{number // 250}.{number % 250}.1\n/32 host LOCAL\n" for number in range(count)
    )
    monkeypatch.setattr(
        system.files, "whole", lambda path, limit: text if path.endswith("fib_trie") else ""
    )
    context = Context({}, [], {})
    assert (len(system.collect(context)["addresses"]), context.truncated) == (
        min(count, system.MAX_ADDRESSES),
        cut,
    )


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("fd000000000000000000000000000001", "fd00::1"),
        ("20010db8000000010000000000000001", "2001:db8:0:1::1"),
        ("0" * 32, "::"),
        ("1" * 32, ":".join(["1111"] * 8)),
    ],
)
def test_ipv6(digits, expected):
    assert system.short(digits) == expected
    assert system.ipv6(f"{digits} 02 40 00 80 eth0\n{'f' * 32} 02 40 20 80 eth0\n") == [expected]
