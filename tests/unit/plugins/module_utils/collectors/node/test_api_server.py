# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server of a node answers, and who has the ports of what does not run."""

import os
import socket
import time
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    api_server,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    client_certificates,
    http_client,
    tls,
)
from tests.unit.support.fake_sockets import answering
from tests.unit.support.instance_rows import component_process

READY = (
    b"[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n"
    b"[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n"
)
MANIFEST = (
    "metadata:\n  name: {0}\nspec:\n  containers:\n  - command:\n    - {0}\n{1}    name: {0}\n"
)


def http(status, body=b"", reason="x"):
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.fixture
def server(monkeypatch):
    """Return a server without TLS: what is tested is what is asked, and what is kept."""
    monkeypatch.setattr(tls, "context", lambda *_credentials: None)
    with answering() as start:
        yield start


def context(*processes, manifests=(), **params):
    files = [{"path": f"/m/{name}.yaml", "text": text} for name, text in manifests]
    data = {
        "instances": {"processes": list(processes)},
        "manifests": {"folder": "/m", "files": files},
    }
    return base.Context(params, [], data)


def api_server_process(port, **more):
    more = {"static": True, "host_network": True, **more}
    return component_process("kube-apiserver", f"--secure-port={port}", **more)


def test_what_is_kept_of_the_answers(server, monkeypatch):
    replies = [http(200, b"[+]ping ok\n"), http(500, READY), http(200, b"{}")]
    monkeypatch.setattr(
        http_client.Connection,
        "request",
        lambda self, path, **_more: (
            (200, b"[+]ping ok\n")
            if "livez" in path
            else (500, READY)
            if "readyz" in path
            else (200, b"{}")
        ),
    )
    port = server(*replies)
    answer = api_server.collect(context(api_server_process(port)))
    (row,) = answer["servers"]
    assert (row["address"], row["port"], row["pid"]) == ("127.0.0.1", port, 1)
    assert row["livez"]["status"] == 200
    assert row["readyz"]["failed"] == ["etcd", "poststarthook/rbac/bootstrap-roles"]
    assert row["readyz"]["checks"] == 4
    assert row["version"]["failed"] == []
    assert answer["used_up"] == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ({"status": 429, "seconds": 0.1}, True),
        ({"status": 200, "seconds": 1.5}, True),
        ({"status": None, "error": "timed out", "seconds": 2.5}, True),
        ({"status": 200, "seconds": 0.9}, False),
        ({"status": None, "seconds": None}, False),
        ({"status": 403, "seconds": 0.0}, False),
    ],
)
def test_when_its_load_is_asked_for(version, expected):
    ready = {"status": 200, "failed": []}
    assert api_server._is_overloaded({"version": version, "readyz": ready}) is expected


@pytest.mark.parametrize(
    "probes",
    [
        {"readyz": {"status": 500, "failed": ["etcd"]}},
        {"readyz": {"status": None}, "livez": {"status": 500, "failed": ["etcd"]}},
        {"readyz": {"status": None}, "livez": {"status": None}},
    ],
    ids=["etcd-fails", "etcd-fails-by-livez", "silent"],
)
def test_load_is_not_the_cause_where_etcd_fails_or_nothing_answers(probes):
    version = {"status": None, "error": "timed out", "seconds": 3.0}
    assert api_server._is_overloaded({"version": version, **probes}) is False


def test_a_server_that_refuses_the_connection(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    (row,) = api_server.collect(context(api_server_process(port)))["servers"]
    assert row["livez"]["status"] is None
    assert "refused" in row["livez"]["error"]
    assert row["readyz"]["error"] == row["livez"]["error"]


def test_a_server_that_hangs_is_waited_for_once(server, monkeypatch):
    """All requests wait at the same time, and no other address of it is tried."""
    monkeypatch.setattr(api_server, "HANDSHAKE_SECONDS", 0.4)
    monkeypatch.setattr(api_server, "SOON_SECONDS", 0.1)
    tried = []

    def hangs(connection, address, *_place):
        tried.append(address)
        time.sleep(connection._left())
        raise http_client.HttpError("timed out")

    monkeypatch.setattr(http_client.Connection, "_connected", hangs)
    process = component_process("kube-apiserver", "--advertise-address=10.0.0.1", static=True)
    (row,) = api_server.collect(context(process))["servers"]
    assert tried == ["127.0.0.1"] * 3
    for name in ("version", "readyz", "livez"):
        assert row[name]["error"] == "timed out"
        assert row[name]["status"] is None
    assert row["address"] == "127.0.0.1"


class Paths:
    """A server whose answers take as long as a test says: {path: (seconds, status, body)}.

    An iterator of such tuples has one for each request.
    """

    def __init__(self, monkeypatch, **answers):
        self.answers, self.asked = answers, []
        monkeypatch.setattr(http_client.Connection, "_connected", lambda *_place: self)
        monkeypatch.setattr(http_client.Connection, "request", self.request)

    def request(self, path, **_more):
        name = path.strip("/").partition("?")[0]
        self.asked.append(name)
        answer = self.answers[name]
        if not isinstance(answer, tuple):
            answer = next(answer)
        seconds, status, body = answer
        time.sleep(seconds)
        if status is None:
            raise http_client.HttpError("timed out")
        return status, body

    def close(self):
        pass


def failing(*names):
    return 500, "".join(f"[-]{name} failed: reason withheld\n" for name in names).encode()


WELL = (200, b"[+]ping ok\n")


@pytest.mark.parametrize(
    ("rounds", "status", "failed"),
    [
        ([failing("etcd-readiness"), WELL], 200, []),
        ([failing("etcd"), failing("etcd"), WELL], 200, []),
        ([failing("etcd", "a"), failing("etcd", "b"), failing("b", "etcd")], 500, ["etcd"]),
        ([failing("a"), failing("b")], 500, []),
        ([failing("etcd"), (None, b""), failing("etcd")], 500, ["etcd"]),
        ([failing("etcd"), (None, b""), (None, b"")], 500, ["etcd"]),
    ],
)
def test_a_check_fails_where_it_fails_each_time(server, monkeypatch, rounds, status, failed):
    monkeypatch.setattr(api_server, "PAUSE", 0.01)
    readyz = iter([(0.0, *answer) for answer in rounds])
    Paths(monkeypatch, version=(0.0, 200, b"{}"), livez=(0.0, *WELL), readyz=readyz)
    (row,) = api_server.collect(context(api_server_process(6443)))["servers"]
    assert (row["readyz"]["status"], row["readyz"]["failed"]) == (status, failed)
    assert list(readyz) == []


def test_liveness_is_well_where_readiness_is_well_later(server, monkeypatch):
    monkeypatch.setattr(api_server, "PAUSE", 0.01)
    readyz = iter([(0.0, None, b""), (0.0, *WELL)])
    livez = (0.0, *failing("etcd"))
    Paths(monkeypatch, version=(0.0, 200, b"{}"), livez=livez, readyz=readyz)
    (row,) = api_server.collect(context(api_server_process(6443)))["servers"]
    assert row["readyz"]["status"] == 200
    assert row["livez"]["failed"] == []


def test_what_is_on_its_way_is_not_waited_for_when_etcd_is_known_to_fail(server, monkeypatch):
    monkeypatch.setattr(api_server, "EACH", 60)
    slow = (60.0, 500, READY)
    Paths(monkeypatch, readyz=slow, version=slow, livez=(0.0, 500, b"[-]etcd failed: x\n"))
    begun = time.monotonic()
    (row,) = api_server.collect(context(api_server_process(6443)))["servers"]
    assert time.monotonic() - begun < 30
    assert row["livez"]["failed"] == ["etcd"]
    assert row["readyz"]["error"] == row["version"]["error"] == "timed out"


def test_a_slow_server_has_all_of_its_time(server, monkeypatch):
    """A server that answers late is no server without an answer."""
    for name in ("EACH", "LONG_SECONDS", "HANDSHAKE_SECONDS"):
        monkeypatch.setattr(api_server, name, 60)
    monkeypatch.setattr(api_server, "SOON_SECONDS", 0.1)
    good = (0.5, 200, b"[+]ping ok\n")
    Paths(monkeypatch, readyz=(1.0, 200, READY), version=good, livez=good)
    (row,) = api_server.collect(context(api_server_process(6443)))["servers"]
    assert [row[name]["status"] for name in ("readyz", "version", "livez")] == [200, 200, 200]


def test_a_late_version_is_late_after_some_seconds_where_readyz_is_good(server, monkeypatch):
    monkeypatch.setattr(api_server, "EACH", 60)
    paths = Paths(monkeypatch, readyz=(0.0, 200, b"[+]ping ok\n"), version=(60.0, 200, b"{}"))
    begun = time.monotonic()
    answer = api_server.collect(context(api_server_process(6443)))
    assert time.monotonic() - begun < 30
    (row,) = answer["servers"]
    assert row["version"]["error"] == "timed out"
    assert row["version"]["seconds"] >= api_server.SLOW_SECONDS
    assert answer["used_up"] == ["requests"]
    assert sorted(paths.asked) == ["readyz", "version"]


def test_the_administrator_where_anonymous_clients_are_refused(server, monkeypatch):
    monkeypatch.setattr(api_server, "REPETITIONS", 0)
    asked = []

    def answers(_address, _port, client, _deadline):
        asked.append(client)
        status = 200 if client else 401
        empty = {"status": status, "checks": 0, "failed": [], "error": None, "seconds": 0.0}
        return {"livez": empty, "readyz": dict(empty, failed=["ping"] if client else [])} | {
            "version": empty
        }

    monkeypatch.setattr(api_server, "_answers", answers)
    monkeypatch.setattr(tls, "context", lambda *credentials: credentials or None)
    monkeypatch.setattr(
        client_certificates, "of_components", lambda *_more: iter([("/a.conf", b"c", b"k")])
    )
    (row,) = api_server.collect(context(api_server_process(6443)))["servers"]
    assert asked == [None, (b"c", b"k")]
    assert row["readyz"]["failed"] == ["ping"]


def test_nothing_to_ask():
    with pytest.raises(base.Absent):
        api_server.collect(context(component_process("kube-scheduler", static=True)))


def test_an_unknown_network_is_denied():
    with pytest.raises(base.Denied):
        api_server.collect(context(api_server_process(6443, host_network=None)))


@pytest.mark.parametrize(
    ("component", "text", "ports"),
    [
        ("kube-apiserver", "- --secure-port=8443\n", [8443]),
        ("kube-apiserver", "- --v=2\n", [6443]),
        ("kube-scheduler", "", [10259]),
        (
            "etcd",
            "- --listen-client-urls=https://127.0.0.1:2379,https://10.0.0.1:2379\n"
            "- --listen-peer-urls=https://[fd00::1]:2380\n",
            [2379, 2380],
        ),
        ("etcd", "", [2379]),
    ],
)
def test_the_ports_of_a_component(component, text, ports):
    assert api_server.ports_of(component, text) == ports


def test_who_has_the_port_of_a_component_that_does_not_run():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        text = MANIFEST.format("kube-apiserver", f"    - --secure-port={port}\n")
        answer = api_server.collect(context(manifests=[("kube-apiserver", text)]))
    (row,) = answer["ports"]
    assert (row["component"], row["port"], row["pid"]) == ("kube-apiserver", port, os.getpid())
    assert row["comm"]
    assert answer["servers"] == []
    assert answer["unseen"] is False


def test_nobody_has_the_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = MANIFEST.format("kube-apiserver", f"    - --secure-port={port}\n")
    answer = api_server.collect(context(manifests=[("kube-apiserver", text)]))
    assert (answer["ports"], answer["unseen"]) == ([], False)


# kube-apiserver 1.36, as it writes it
LEVELS = """\
PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, \
DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests
exempt, 0, false, false, 0, 3, 880, 0, 0, 0
global-default, 1, false, false, {waiting}, 1, 120, 0, 0, 0
workload-low, 0, true, false, 0, 0, 90, 0, 0, 0
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LEVELS.format(waiting=4), 4),
        (LEVELS.format(waiting=0), 0),
        (LEVELS.format(waiting="many"), 0),
        ("PriorityLevelName, IsIdle\nexempt, true\n", None),
        ("", None),
    ],
)
def test_how_many_requests_wait(text, expected):
    assert api_server.waiting_of(text) == expected


@pytest.mark.parametrize(
    ("answer", "waiting"),
    [
        ((200, LEVELS.format(waiting=4).encode()), 4),
        ((200, LEVELS.format(waiting=0).encode()), 0),
        ((429, b""), 1),
        ((403, b""), None),  # before 1.20, or a credential without that right
        (None, 1),
    ],
)
def test_a_server_whose_queues_are_full_is_overloaded_though_it_answers_at_once(
    server, monkeypatch, answer, waiting
):
    """The flood of one client fills the queues of its own level."""
    paths = Paths(monkeypatch, readyz=(0, 200, b"[+]ping ok\n"), version=(0, 200, b"{}"))
    name = api_server.LEVELS.strip("/")
    paths.answers[name] = (0, *(answer or (None, b"")))
    monkeypatch.setattr(tls, "context", lambda *credentials: credentials or None)
    monkeypatch.setattr(
        client_certificates, "of_components", lambda *_more: iter([("/a.conf", b"c", b"k")])
    )
    answered = api_server.collect(context(api_server_process(6443)))
    assert answered["servers"][0]["waiting"] == waiting
    assert answered["used_up"] == (["requests"] if waiting else [])


def test_a_server_that_has_no_time_for_an_answer_does_not_wait(monkeypatch):
    monkeypatch.setattr(
        client_certificates, "of_components", lambda *_words: [("/a", b"certificate", b"key")]
    )
    monkeypatch.setattr(tls, "context", lambda *_words: None)
    late = SimpleNamespace(params={}, seconds=lambda _most: 0.0)
    record = {"address": "127.0.0.1", "port": 1}
    assert api_server._waiting(late, record, []) is None
