# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector etcd: what it asks the member that answers, in which form releases answer.

The tests also check what it makes of other answers.
"""

import http.server
import json
import os
import threading
import types

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
    Failed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import etcd
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    http_client,
    served_certificates,
    tls,
)

MEMBERS = {
    "header": {"cluster_id": "7"},
    "members": [
        {"ID": "11", "name": "m1", "peerURLs": ["https://10.0.0.1:2380"], "clientURLs": []}
    ],
}
# as etcd 3.6 answers: numbers of 64 bits are strings, what is 0 or false is left out
STATUS = {
    "header": {"cluster_id": "7", "member_id": "11", "revision": "9", "raft_term": "3"},
    "version": "3.6.4",
    "dbSize": "2097152",
    "leader": "11",
    "raftIndex": "90",
    "raftTerm": "3",
    "raftAppliedIndex": "90",
    "dbSizeInUse": "1048576",
    "storageVersion": "3.6.0",
    "dbSizeQuota": "1000000",
}
ALARM = {"header": {}, "alarms": [{"memberID": "11", "alarm": "NOSPACE"}]}


class Fake(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        """Silent."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.path, body))
        code, value = self.server.answers.get(self.path, (404, {"error": "Not Found"}))
        sent = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_POST = do_GET = answer  # noqa: N815 - named by http.server


@pytest.fixture
def member():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.daemon_threads = True
    server.seen, server.answers = (
        [],
        {
            "/v3/cluster/member/list": (200, MEMBERS),
            "/v3/maintenance/status": (200, STATUS),
            "/v3/maintenance/alarm": (200, {"header": {}}),
        },
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def context(port, *etcd_flags, metrics=None):
    api = {
        "component": "kube-apiserver",
        "pid": 1,
        "argv": ["kube-apiserver", f"--etcd-servers=http://127.0.0.1:{port}"],
        "host_network": True,
    }
    flags = [*etcd_flags, *([f"--listen-metrics-urls={metrics}"] if metrics else [])]
    stacked = {"component": "etcd", "pid": 2, "argv": ["etcd", *flags], "host_network": True}
    return Context({}, [], {"instances": {"processes": [api, stacked]}})


def test_the_member_that_answers_says_how_it_does(member):
    found = etcd.collect(context(member.server_port))
    assert found["status"] == {
        "version": "3.6.4",
        "member_id": "11",
        "cluster_id": "7",
        "leader": "11",
        "raft_term": 3,
        "raft_index": 90,
        "db_size": 2097152,
        "db_size_in_use": 1048576,
        "quota": 1000000,
        "quota_source": "status",
        "learner": False,
        "errors": [],
        "endpoint": f"http://127.0.0.1:{member.server_port}",
    }
    assert found["alarms"] == []
    assert found["members"][0]["name"] == "m1"
    assert found["health"] is None
    # what goes through consensus is asked side by side
    assert member.seen[0] == ("/v3/maintenance/status", b"{}")
    assert sorted(member.seen[1:3]) == [
        ("/v3/cluster/member/list", b"{}"),
        ("/v3/maintenance/alarm", b'{"action":"GET"}'),
    ]
    assert [path for path, _body in member.seen[3:]] == ["/v3/kv/range"]  # it is over its quota


def test_alarms(member):
    member.answers["/v3/maintenance/alarm"] = (200, ALARM)
    member.answers["/v3/maintenance/status"] = (
        200,
        dict(STATUS, errors=["memberID:11 alarm:NOSPACE "]),
    )
    found = etcd.collect(context(member.server_port))
    assert found["alarms"] == [{"member_id": "11", "alarm": "NOSPACE"}]
    assert found["status"]["errors"] == ["memberID:11 alarm:NOSPACE"]


def test_a_member_without_a_leader_is_not_asked_what_goes_through_consensus(member):
    told = {name: value for name, value in STATUS.items() if name != "leader"}
    member.answers["/v3/maintenance/status"] = (200, dict(told, errors=["etcdserver: no leader"]))
    member.answers["/v3/cluster/member/list"] = (
        503,
        {"error": "etcdserver: no leader", "code": 14, "message": "etcdserver: no leader"},
    )
    with pytest.raises(Failed) as caught:
        etcd.collect(context(member.server_port))
    data = caught.value.data
    assert data["status"]["leader"] == "0"
    assert data["alarms"] is None
    assert "HTTP 503: etcdserver: no leader" in data["error"]
    assert "/v3/maintenance/alarm" not in [path for path, dummy in member.seen]


def test_the_prefix_of_an_older_release(member):
    member.answers = {
        path.replace("/v3/", "/v3beta/"): value for path, value in member.answers.items()
    }
    found = etcd.collect(context(member.server_port))
    assert found["status"]["version"] == "3.6.4"
    assert found["members"]
    assert [path for path, dummy in member.seen].count("/v3/maintenance/status") == 1
    assert "/v3/cluster/member/list" not in [path for path, dummy in member.seen]


@pytest.mark.parametrize(
    ("flags", "said", "quota", "source"),
    [
        ([], 5, 5, "status"),
        ([], -1, None, "status"),
        ([], None, etcd.DEFAULT_QUOTA, "default"),
        (["--quota-backend-bytes=77"], None, 77, "flag"),
        (["--quota-backend-bytes=0"], None, etcd.DEFAULT_QUOTA, "flag"),
        (["--quota-backend-bytes=-1"], None, None, "flag"),
        (["--quota-backend-bytes=much"], None, None, "flag"),
    ],
)
def test_the_quota(member, flags, said, quota, source):
    told = {name: value for name, value in STATUS.items() if name != "dbSizeQuota"}
    member.answers["/v3/maintenance/status"] = (
        200,
        told if said is None else dict(told, dbSizeQuota=str(said)),
    )
    status = etcd.collect(context(member.server_port, *flags))["status"]
    assert (status["quota"], status["quota_source"]) == (quota, source)


@pytest.mark.parametrize(
    "answer",
    [
        (404, {}),
        (500, b"oops"),
        (200, b""),
        (200, b"[]"),
        (200, b"\xff"),
        (200, {"version": 7}),
        (200, {}),
        (403, {"error": "permission denied"}),
    ],
)
def test_a_status_that_is_none_costs_the_status_only(member, answer):
    member.answers["/v3/maintenance/status"] = answer
    found = etcd.collect(context(member.server_port))
    assert found["status"] is None
    assert found["members"]


@pytest.mark.parametrize("answer", [(500, b""), (200, b"no"), (403, {})])
def test_alarms_that_are_not_told_are_not_known(member, answer):
    member.answers["/v3/maintenance/alarm"] = answer
    found = etcd.collect(context(member.server_port))
    assert found["status"]
    assert found["alarms"] is None
    assert found["members"]


def test_real_answers_of_3_6_16():
    """The answers are of three members, the first at a quota of 100000 bytes, later the only one.

    A field that is 0 is left out, and the alarm is among the errors.
    """
    full = (
        b'{"header":{"cluster_id":"17300438976491492131","member_id":"13668033151171901709","rev'
        b'ision":"4","raft_term":"2"},"version":"3.6.16",'
        b'"dbSize":"184320","leader":"185828541645115251","raftIndex":"16","raftTerm":"2","raftA'
        b'ppliedIndex":"16",'
        b'"errors":["memberID:13668033151171901709 alarm:NOSPACE'
        b' "],"dbSizeInUse":"180224","storageVersion":"3.6.0","dbSizeQuota":"100000",'
        b'"downgradeInfo":{}}'
    )
    told = etcd.status_of(full)
    assert (told["leader"], told["member_id"], told["db_size"], told["quota"]) == (
        "185828541645115251",
        "13668033151171901709",
        184320,
        100000,
    )
    alone = full.replace(b'"leader":"185828541645115251",', b"").replace(
        b'"errors":[', b'"errors":["etcdserver: no leader",'
    )
    told = etcd.status_of(alone)
    assert told["leader"] == "0"
    assert told["errors"] == [
        "etcdserver: no leader",
        "memberID:13668033151171901709 alarm:NOSPACE",
    ]
    assert etcd.alarms(
        b'{"header":{"member_id":"13668033151171901709"},"alarms":[{"memberID":"1366803315117190'
        b'1709","alarm":"NOSPACE"}]}'
    ) == [{"member_id": "13668033151171901709", "alarm": "NOSPACE"}]
    assert (
        etcd.refusal(b'{"code":4,"message":"context deadline exceeded"}')
        == ": context deadline exceeded"
    )


@pytest.mark.parametrize("value", [None, True, [], {}, 1.5, "x", "9" * 40, 10**30])
def test_values_of_another_type_are_none(value):
    told = etcd.status_of(
        json.dumps(
            {
                "version": "3.5.9",
                "dbSize": value,
                "leader": value,
                "raftTerm": value,
                "errors": value,
                "header": value,
            }
        ).encode()
    )
    assert told["db_size"] is None
    assert told["leader"] == "0"
    assert told["raft_term"] is None
    assert told["errors"] == []
    assert told["member_id"] is None
    assert etcd.alarms(json.dumps({"alarms": value}).encode()) == []


def test_what_is_kept_is_bounded():
    many = etcd.alarms(
        json.dumps({"alarms": [{"memberID": "1", "alarm": "x" * 999}] * 999 + [7]}).encode()
    )
    assert len(many) == etcd.MAX_ALARMS
    assert len(many[0]["alarm"]) == etcd.MAX_TEXT
    told = etcd.status_of(json.dumps(dict(STATUS, errors=["e\n" * 999] * 999)).encode())
    assert len(told["errors"]) == etcd.MAX_ERRORS
    assert all("\n" not in one and len(one) <= etcd.MAX_TEXT for one in told["errors"])
    for broken in (b"", b"7", b"[" * 100000):
        with pytest.raises(http_client.HttpError):
            etcd.alarms(broken)


def test_without_a_credential_its_health_is_asked(member):
    member.answers = {"/health": (503, {"health": "false", "reason": "ALARM NOSPACE"})}
    with pytest.raises(Failed) as caught:
        etcd.collect(
            context(1, metrics=f"https://127.0.0.1:1,http://127.0.0.1:{member.server_port}")
        )
    data = caught.value.data
    assert data["status"] is None
    assert data["health"]["status"] == 503
    assert "NOSPACE" in data["health"]["body"]
    with pytest.raises(Failed) as caught:
        etcd.collect(context(1))
    assert caught.value.data["health"] is None


METRICS = b"""etcd_mvcc_db_total_size_in_bytes 2097152
etcd_server_has_leader 1
etcd_server_id{server_id="b"} 1
etcd_network_active_peers{Local="b",Remote="c"} 0
"""


def test_the_member_of_this_node_has_settings_and_metrics(member, tmp_path):
    member.answers["/metrics"] = (200, METRICS)
    metrics = f"http://127.0.0.1:{member.server_port}"
    flags = ("--name=m1", f"--data-dir={tmp_path}", "--quota-backend-bytes=77")
    found = etcd.collect(context(member.server_port, *flags, metrics=metrics))["local"]
    assert found["settings"]["name"] == "m1"
    assert (found["quota"], found["quota_source"]) == (77, "flag")
    assert found["metrics"]["member_id"] == "11"
    assert found["metrics"]["peers"] == [
        {"id": "12", "active": False, "sent_failures": None, "round_trip": None}
    ]
    assert found["metrics_url"] == metrics
    assert found["folder"]["path"] == str(tmp_path)
    assert found["embedded"] is False


def test_without_an_address_of_metrics_that_of_clients_has_them(member):
    member.answers["/metrics"] = (200, METRICS)
    url = f"http://127.0.0.1:{member.server_port}"
    found = etcd.collect(context(member.server_port, f"--listen-client-urls={url}"))["local"]
    assert found["metrics"]["has_leader"] == 1.0
    assert found["metrics_url"] == url


@pytest.mark.parametrize("answer", [(404, b""), (200, b"something else\n"), (500, b"\xff")])
def test_metrics_that_are_none_have_a_reason(member, answer):
    member.answers["/metrics"] = answer
    metrics = f"http://127.0.0.1:{member.server_port}"
    found = etcd.collect(context(member.server_port, metrics=metrics))
    assert found["local"]["metrics"] is None
    assert metrics in found["local"]["metrics_error"]
    assert found["status"]["version"] == "3.6.4"


def test_what_is_known_of_this_node_is_kept_where_no_member_answers(member):
    member.answers = {"/metrics": (200, METRICS)}
    metrics = f"http://127.0.0.1:{member.server_port}"
    with pytest.raises(Failed) as caught:
        etcd.collect(context(member.server_port, metrics=metrics))
    assert caught.value.data["local"]["metrics"]["has_leader"] == 1.0


def test_a_host_without_an_etcd_of_its_own_has_no_local_member(member):
    asked = context(member.server_port)
    del asked.data["instances"]["processes"][1]
    assert etcd.collect(asked)["local"] is None


def test_the_etcd_within_k3s_is_known_by_its_file(member, monkeypatch, tmp_path):
    member.answers["/metrics"] = (200, METRICS)
    url = f"http://127.0.0.1:{member.server_port}"
    config = tmp_path / "config"
    config.write_text(
        f"data-dir: {tmp_path}\nlisten-client-urls: {url}\nlisten-metrics-urls: {url}\n"
        "name: m1-0a1b2c3d\n"
    )
    monkeypatch.setattr(etcd, "EMBEDDED_FILE", str(config))
    process = os.getpid()
    found = etcd.collect(Context({}, [(process, "k3s-server")], {"instances": {"processes": []}}))
    assert found["local"]["embedded"] is True
    assert found["local"]["settings"]["name"] == "m1-0a1b2c3d"
    assert found["members"][0]["name"] == "m1"
    # a server of k3s with another database has no such file
    monkeypatch.setattr(etcd, "EMBEDDED_FILE", str(tmp_path / "none"))
    assert etcd.embedded([(process, "k3s-server")]) == []
    assert etcd.embedded([(process, "kubelet")]) == []


def test_an_etcd_that_does_not_answer_is_asked_for_metrics_once(member, monkeypatch):
    asked = []

    def hang(address, port, seconds, encryption=None):
        asked.append(port)
        raise http_client.HttpError("timed out")

    monkeypatch.setattr(etcd.etcd_metrics, "read", hang)
    url = f"http://127.0.0.1:{member.server_port}"
    found = etcd.collect(
        context(member.server_port, f"--listen-client-urls={url}", metrics=f"{url}")
    )["local"]
    assert found["metrics_error"] == f"{url}: timed out"
    assert asked == [member.server_port]


def counted(member, deep=False, **status):
    """Return what the collector counted, and how many questions that took."""
    member.answers["/v3/maintenance/status"] = (200, {**STATUS, **status})
    member.answers["/v3/kv/range"] = (200, {"header": {}, "count": "812"})
    asked = context(member.server_port)
    asked.params["deep"] = deep
    objects = etcd.collect(asked)["objects"]
    return objects, [body for path, body in member.seen if path == "/v3/kv/range"]


@pytest.mark.parametrize(
    ("deep", "status", "is_counted"),
    [
        (False, {"dbSizeQuota": "99000000"}, False),
        (True, {"dbSizeQuota": "99000000"}, True),
        (False, {"dbSizeQuota": "2500000"}, True),
        (False, {"dbSizeQuota": "99000000", "errors": ["memberID:1 alarm:NOSPACE "]}, True),
        (True, {"leader": "0"}, False),
    ],
)
def test_objects_are_counted_where_the_database_is_full(member, deep, status, is_counted):
    objects, questions = counted(member, deep, **status)
    assert (objects is not None) is is_counted
    assert bool(questions) is is_counted
    if is_counted:
        assert objects[0] == {"resource": "events", "count": 812}
        assert all(json.loads(question)["count_only"] is True for question in questions)


def test_objects_are_counted_where_the_alarm_is_listed(member):
    member.answers["/v3/maintenance/alarm"] = (200, ALARM)
    assert counted(member, dbSizeQuota="99000000")[0]


@pytest.mark.parametrize("answer", [(403, {}), (200, b"<html>")])
def test_objects_that_cannot_be_counted_are_none(member, answer):
    member.answers["/v3/maintenance/alarm"] = (200, ALARM)
    member.answers["/v3/maintenance/status"] = (200, STATUS)
    member.answers["/v3/kv/range"] = answer
    found = etcd.collect(context(member.server_port))
    assert found["objects"] is None
    assert found["members"]


def test_an_etcd_that_does_not_answer_is_asked_for_nothing_else(monkeypatch):
    """It gets one request with one credential, and metrics at the same time."""
    asked = []

    def hang(connection, address, port, *_context):
        asked.append(port)
        raise http_client.HttpError("timed out")

    monkeypatch.setattr(http_client.Connection, "_connected", hang)
    monkeypatch.setattr(etcd, "usual_pairs", lambda: [(b"a", b"b"), (b"c", b"d")])
    monkeypatch.setattr(tls, "context", lambda *_credentials: None)
    flags = ["--listen-client-urls=https://127.0.0.1:1"]
    flags.append("--listen-metrics-urls=http://127.0.0.1:2")
    stacked = {"component": "etcd", "pid": 2, "argv": ["etcd", *flags], "host_network": True}
    with pytest.raises(Failed) as failed:
        etcd.collect(Context({}, [], {"instances": {"processes": [stacked]}}))
    assert sorted(asked) == [1, 2]
    assert failed.value.data["error"] == "https://127.0.0.1:1: timed out"
    assert failed.value.data["health"]["error"] == "timed out"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # as where members refuse each other's certificates: without quorum, no client is served
        ("timed out", ["127.0.0.1"]),
        ("Connection refused", ["127.0.0.1", "10.0.0.1"]),
    ],
)
def test_another_address_of_a_process_that_says_nothing_is_not_tried(monkeypatch, error, expected):
    asked, tried = [], []

    def connected(connection, address, *_more):
        asked.append(address)
        raise http_client.HttpError(error)

    def handshakes(places, _seconds):
        tried.extend(address for address, _port in places)
        return [{"error": None} for _place in places]

    monkeypatch.setattr(http_client.Connection, "_connected", connected)
    monkeypatch.setattr(served_certificates, "read", handshakes)
    monkeypatch.setattr(etcd, "usual_pairs", lambda: [(b"a", b"b")])
    monkeypatch.setattr(tls, "context", lambda *_credentials: None)
    urls = "--listen-client-urls=https://127.0.0.1:1,https://10.0.0.1:1"
    stacked = {"component": "etcd", "pid": 2, "argv": ["etcd", urls], "host_network": True}
    with pytest.raises(Failed):
        etcd._Question(
            Context({}, [], {"instances": {"processes": [stacked]}}),
            {"status": {}},
            [(b"a", b"b")],
            (stacked, "trusted-ca-file"),
            is_one=True,
        ).ask(["https://127.0.0.1:1", "https://10.0.0.1:1"])
    assert (asked, tried) == (expected, expected[1:])


def test_the_addresses_on_which_an_etcd_listens_are_those_of_one_process(monkeypatch):
    asked = []

    def connected(connection, address, *_more):
        asked.append(address)
        raise http_client.HttpError("timed out")

    monkeypatch.setattr(http_client.Connection, "_connected", connected)
    monkeypatch.setattr(etcd, "usual_pairs", lambda: [(b"a", b"b")])
    monkeypatch.setattr(tls, "context", lambda *_credentials: None)
    urls = "--listen-client-urls=https://127.0.0.1:1,https://10.0.0.1:1"
    flags = [urls, "--listen-metrics-urls=http://127.0.0.2:2"]
    stacked = {"component": "etcd", "pid": 2, "argv": ["etcd", *flags], "host_network": True}
    with pytest.raises(Failed) as failed:
        etcd.collect(Context({}, [], {"instances": {"processes": [stacked]}}))
    assert failed.value.data["error"] == "https://127.0.0.1:1: timed out"
    assert "10.0.0.1" not in asked


def test_of_many_endpoints_those_that_say_nothing_are_left_out(monkeypatch):
    """Where the first does not answer, the others are tried by one handshake side by side."""
    urls = [f"https://10.0.0.{number}:2379" for number in (1, 2, 3, 4)]
    asked, tried = [], []

    def connected(connection, address, *_more):
        asked.append(address)
        raise http_client.HttpError("timed out" if address == "10.0.0.1" else "Connection refused")

    def handshakes(places, _seconds):
        tried.extend(places)
        errors = {"10.0.0.2": "timed out", "10.0.0.3": None, "10.0.0.4": "Connection refused"}
        return [{"error": errors[address]} for address, _port in places]

    monkeypatch.setattr(http_client.Connection, "_connected", connected)
    monkeypatch.setattr(served_certificates, "read", handshakes)
    monkeypatch.setattr(tls, "context", lambda *_credentials: None)
    api = {
        "component": "kube-apiserver",
        "pid": 1,
        "argv": ["kube-apiserver", "--etcd-servers=" + ",".join(urls)],
        "host_network": True,
    }
    with pytest.raises(Failed) as failed:
        etcd.collect(Context({}, [], {"instances": {"processes": [api]}}))
    assert asked == ["10.0.0.1", "10.0.0.3", "10.0.0.4"]
    assert [address for address, _port in tried] == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    # the causes are named for each endpoint, also for one that was not asked
    assert failed.value.data["error"].split("; ") == [
        f"{urls[0]}: timed out",
        f"{urls[1]}: timed out",
        f"{urls[2]}: Connection refused",
        f"{urls[3]}: Connection refused",
    ]


class _WithoutGateway(etcd.etcd_endpoint.EtcdEndpoint):
    """An endpoint without a gateway, whose calls of gRPC have these answers."""

    answers = types.MappingProxyType({})
    asked = ()

    def _ask_gateway(self, path, body):
        return 404, b"404 page not found"

    def _call_grpc(self, path, body):
        type(self).asked += (path,)
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return 200, json.dumps(answer).encode()


@pytest.fixture
def grpc(monkeypatch):
    answers = {etcd.STATUS: STATUS, etcd.MEMBERS: MEMBERS, etcd.ALARMS: ALARM}
    answers["/kv/range"] = {"header": {}, "count": "7"}
    monkeypatch.setattr(_WithoutGateway, "answers", answers)
    monkeypatch.setattr(_WithoutGateway, "asked", ())
    monkeypatch.setattr(etcd.etcd_endpoint, "EtcdEndpoint", _WithoutGateway)
    return answers


def test_without_a_gateway_the_evidence_is_the_same(grpc, member, monkeypatch):
    called = etcd.collect(context(1))
    assert called["alarms"] == [{"member_id": "11", "alarm": "NOSPACE"}]
    assert called["objects"][0] == {"resource": "events", "count": 7}
    monkeypatch.setattr(etcd.etcd_endpoint, "EtcdEndpoint", _WithoutGateway.__base__)
    member.answers["/v3/maintenance/alarm"] = (200, ALARM)
    member.answers["/v3/kv/range"] = (200, grpc["/kv/range"])
    posted = etcd.collect(context(member.server_port))
    assert called["status"].pop("endpoint") != posted["status"].pop("endpoint")
    for name in ("cluster_id", "members", "error", "status", "alarms", "objects"):
        assert called[name] == posted[name]


def test_a_call_that_is_refused_costs_its_own_answer_only(grpc):
    grpc[etcd.STATUS] = http_client.Refused("gRPC status 7 (permission denied)")
    found = etcd.collect(context(1))
    assert (found["status"], found["alarms"]) == (None, None)
    assert found["members"][0]["id"] == "11"
    grpc[etcd.MEMBERS] = http_client.Refused("gRPC status 14 (unavailable)")
    with pytest.raises(Failed) as caught:
        etcd.collect(context(1))
    assert caught.value.data["error"] == "http://127.0.0.1:1: gRPC status 14 (unavailable)"


def test_where_neither_the_gateway_nor_grpc_answers_one_error_names_both(grpc):
    grpc[etcd.STATUS] = http_client.HttpError("the answer is no gRPC")
    with pytest.raises(Failed) as caught:
        etcd.collect(context(1))
    error = caught.value.data["error"]
    assert error == "http://127.0.0.1:1: HTTP 404: no gRPC either (the answer is no gRPC)"
    assert _WithoutGateway.asked == (etcd.STATUS,)


def test_an_endpoint_that_says_nothing_to_grpc_is_asked_once(grpc):
    grpc[etcd.STATUS] = http_client.HttpError(http_client.TIMED_OUT)
    with pytest.raises(Failed) as caught:
        etcd.collect(context(1))
    assert caught.value.data["error"] == "http://127.0.0.1:1: timed out"
    assert _WithoutGateway.asked == (etcd.STATUS,)
