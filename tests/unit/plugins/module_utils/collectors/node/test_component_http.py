# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the components of a control plane answer over HTTP."""

import threading
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Absent,
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_http,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    client_certificates,
    http_client,
)
from tests.unit.support.fake_sockets import answering, chunked
from tests.unit.support.instance_rows import component_process
from tests.unit.support.pki import Authority


@pytest.fixture
def server():
    with answering() as start:
        yield start


def test_metrics_are_read_line_by_line(server):
    body = (
        b"# HELP leader_election_master_status x\nnoise 1\n" * 500
        + b'leader_election_master_status{name="a"} 1\n'
    )
    body += b'other{b="leader_election_master_status{"} 2\n'
    port = server(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunked(*[body[at : at + 7] for at in range(0, len(body), 7)])
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


def test_only_what_is_in_this_network_is_asked():
    for processes in (
        [],
        [component_process("kube-scheduler", host_network=False)],
        [component_process("kube-apiserver")],
    ):
        with pytest.raises(Absent):
            component_http.collect(Context({}, [], {"instances": {"processes": processes}}))


def test_insecure_component(server):
    port = server(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n[+]ping ok\n")
    context = Context(
        {},
        [],
        {
            "instances": {
                "processes": [
                    component_process("kube-scheduler", "--secure-port=0", f"--port={port}")
                ]
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
        component_process(component, "--secure-port=0", f"--port={port}")
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
    process = component_process(
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
                "processes": [
                    component_process("kube-controller-manager", "--secure-port=1", "--port=0")
                ]
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


@pytest.mark.parametrize(("ends", "error"), [(-1, component_http.EXPIRED), (1, "HTTP 403")])
def test_a_client_certificate_that_has_expired_is_not_tried(monkeypatch, ends, error):
    """A component refuses it again and again, which is no reason to wait."""
    pair = Authority("kubernetes", time.time()).issue("admin", ends=ends)
    clients = [("/etc/kubernetes/admin.conf", pair.pem.encode(), pair.private.encode())]
    monkeypatch.setattr(
        client_certificates, "of_components", lambda _params, _processes: iter(clients)
    )

    def refuse(record, *_rest):
        record["configz"].update(status=403, error="HTTP 403")
        return False

    def find_door(record, *_rest):
        record["healthz"] = {"status": 403, "body": "", "error": None}
        return True

    monkeypatch.setattr(component_http, "_inside", refuse)
    monkeypatch.setattr(component_http, "_find_door", find_door)
    monkeypatch.setattr(component_http, "PATIENCE", 0)
    process = component_process("kube-scheduler", started_at=time.time())
    data = {"instances": {"processes": [process]}}
    (found,) = component_http.collect(Context({}, [], data, time.monotonic() + 600))["components"]
    assert found["configz"]["error"] == error


SERVED = {"status": 200, "body": "ok", "error": None}
TIMED_OUT = {"status": None, "body": None, "error": "timed out"}
KUBECONFIG = {"text": "clusters:\n- cluster:\n    server: https://10.0.0.1:6443\n"}


@pytest.mark.parametrize(
    ("server", "kubeconfig", "limits"),
    [
        (SERVED, KUBECONFIG, [1.5, 5]),
        ({"status": 403, "body": "", "error": None}, KUBECONFIG, [1.5, 5]),
        ({"status": 500, "body": "[-]etcd", "error": None}, KUBECONFIG, [1.5]),
        (TIMED_OUT, KUBECONFIG, [1.5]),
        ({"status": None, "body": None, "error": "Connection refused"}, KUBECONFIG, [1.5]),
        # the way to a name is not known here: patience
        (TIMED_OUT, {"text": "server: https://api.example:6443\n"}, [1.5, 5]),
        (TIMED_OUT, None, [1.5, 5]),
    ],
    ids=["well", "refuses", "without-etcd", "silent", "gone", "a-name", "no-kubeconfig"],
)
def test_an_answer_that_needs_the_api_is_waited_for_where_the_api_answers(
    monkeypatch, server, kubeconfig, limits
):
    """A component asks its API server whether a client may read, and waits for it."""
    asked, places = [], []

    def ask(_process, _usable, seconds, _tls, _patience):
        asked.append(seconds())
        parts = {part: {"error": None} for part in ("healthz", "configz", "metrics")}
        return {**parts, "configz": {"error": "timed out"}}

    def get(address, port, path, _seconds, _client):
        places.append((address, port, path))
        return server

    monkeypatch.setattr(component_http, "_ask", ask)
    monkeypatch.setattr(http_client, "get", get)
    process = component_process("kube-scheduler", kubeconfig=kubeconfig)
    component_http.collect(Context({}, [], {"instances": {"processes": [process]}}))
    assert asked == limits
    assert set(places) <= {("10.0.0.1", 6443, "/readyz")}


def test_components_are_asked_side_by_side(monkeypatch):
    """One that hangs costs no time of another one."""
    together = threading.Barrier(2, timeout=60)
    answer = {part: {"error": None} for part in ("healthz", "configz", "metrics")}

    def ask(process, *_more):
        together.wait()
        return dict(answer, component=process["component"])

    monkeypatch.setattr(component_http, "_ask", ask)
    names = ["kube-scheduler", "kube-controller-manager"]
    data = {"instances": {"processes": [component_process(name) for name in names]}}
    found = component_http.collect(Context({}, [], data))["components"]
    assert [row["component"] for row in found] == names
