# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against a server that refuses, hurries, drips, lies and never ends."""

import json
import socket
import threading
import time
import types

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    client as kubeapi_client,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import (
    ApiError,
    Client,
    Deadline,
)
from tests.unit.support.waiting import until


def answer(code, body=b"{}", **headers):
    """Return one HTTP answer as bytes."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    headers = {
        "Content-Length": len(body),
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    lines = [f"HTTP/1.1 {code} X"] + [
        f"{key}: {value}" for key, value in headers.items() if value is not None
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture
def serve(tmp_path):  # noqa: C901, PLR0915 - one server, told in one place
    """Start servers of a script, each with its client and paths; entry n answers request n.

    Callables write themselves.
    """
    listeners = []

    def start(*script, seconds=120, max_body=kubeapi_client.MAX_BODY):
        path, seen, queue = str(tmp_path / "s"), [], list(script)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(5)
        listeners.append(listener)

        def loop():
            while True:
                try:
                    peer, _address = listener.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(peer,), daemon=True).start()

        def talk(peer):
            with peer, peer.makefile("rb") as reader:
                while True:
                    request = reader.readline()
                    while request and reader.readline().strip():
                        pass
                    if not request:
                        return
                    seen.append(request.decode().split()[1])
                    step = queue.pop(0)
                    try:
                        if callable(step):
                            step(peer)
                            return
                        peer.sendall(step)
                    except OSError:
                        return

        threading.Thread(target=loop, daemon=True).start()
        return Client(path, Deadline(seconds), max_body), seen

    yield start
    for listener in listeners:
        listener.close()


def drip(piece, pause=0.05):
    def write(peer):
        while True:
            peer.sendall(piece)
            time.sleep(pause)

    return write


def status_of(error):
    return error.value.status, error.value.code


def test_an_object_arrives_parsed_over_one_connection(serve):
    client, seen = serve(answer(200, {"a": 1}), answer(200, {"a": 2}))
    assert client.get("/x", {"limit": 1, "continue": "a b"}) == {"a": 1}
    assert client.get("/y") == {"a": 2}
    assert seen == ["/x?limit=1&continue=a+b", "/y"]


@pytest.fixture
def naps(monkeypatch):
    """Return how long the client means to sleep, which is exact.

    The machine decides how long it really sleeps.
    """
    asked = []
    monkeypatch.setattr(
        kubeapi_client,
        "time",
        types.SimpleNamespace(
            monotonic=time.monotonic,
            time=time.time,
            sleep=lambda seconds: asked.append(seconds) or time.sleep(seconds),
        ),
    )
    return asked


def test_429_waits_as_long_as_it_was_told(serve, naps):
    client, seen = serve(answer(429, Retry_After="1"), answer(200, {"ok": True}))
    begun = time.monotonic()
    assert client.get("/x") == {"ok": True}
    assert time.monotonic() - begun >= 1
    assert naps == [1.0]
    assert len(seen) == 2


def test_429_beyond_the_time_limit_fails_at_once_and_says_so(serve, naps):
    client, _seen = serve(answer(429, Retry_After="600"))
    with pytest.raises(ApiError, match="try again after 600 s") as error:
        client.get("/x")
    assert status_of(error) == ("error", 429)
    assert error.value.retry_after == "600"
    assert naps == []


def test_429_for_ever_ends(serve):
    client, seen = serve(*[answer(429, {"kind": "Status", "message": "busy"}, Retry_After="0")] * 9)
    with pytest.raises(ApiError, match="busy"):
        client.get("/x")
    assert len(seen) == kubeapi_client.MAX_TRIES


def test_a_budget_without_retry_after_keeps_its_causes(serve):
    body = {
        "kind": "Status",
        "message": "Cannot evict pod",
        "details": {"causes": [{"message": "needs 2 healthy pods"}]},
    }
    client, _seen = serve(answer(429, body))
    with pytest.raises(ApiError) as error:
        client.get("/x")
    assert error.value.body["details"]["causes"][0]["message"] == "needs 2 healthy pods"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (401, "denied"),
        (403, "denied"),
        (404, "absent"),
        (504, "timeout"),
        (500, "error"),
        (409, "error"),
    ],
)
def test_refusals_have_an_evidence_status(serve, code, status):
    client, _seen = serve(answer(code, {"kind": "Status", "message": "no \x1b[31mway"}))
    with pytest.raises(ApiError, match=r"HTTP \d+ no \[31mway") as error:
        client.get("/x")
    assert status_of(error) == (status, code)


def test_an_error_of_the_proxy_itself_is_no_answer_of_the_api(serve):
    client, _seen = serve(answer(500, b"dial tcp 10.0.0.1:6443: connect: connection refused\n"))
    with pytest.raises(ApiError, match="connection refused") as error:
        client.get("/x")
    assert status_of(error) == ("error", None)


def test_the_page_of_a_load_balancer_is_its_words(serve):
    page = b"<html><body><h1>503 Service Unavailable</h1>\nNo server is available.</body></html>"
    client, _seen = serve(answer(503, page))
    with pytest.raises(ApiError) as caught:
        client.get("/version")
    assert (caught.value.code, caught.value.status) == (503, "error")
    assert "a proxy before the API server: 503 Service Unavailable No server is" in str(
        caught.value
    )
    assert "<" not in str(caught.value)


@pytest.mark.parametrize("body", [b'{"a": ', b"<html>", b"[1]", b"", b"\xff\xfe"])
def test_what_is_no_json_object_is_an_error(serve, body):
    client, _seen = serve(answer(200, body))
    with pytest.raises(ApiError, match="no JSON object"):
        client.get("/x")


def test_a_body_that_ends_early_is_read_again_once(serve):
    def short(peer):
        peer.sendall(answer(200, b'{"a"', Content_Length="400"))

    client, _seen = serve(short, answer(200, {"a": 1}))
    assert client.get("/x") == {"a": 1}


def test_a_body_that_always_ends_early_is_an_error(serve):
    def short(peer):
        peer.sendall(answer(200, b'{"a"', Content_Length="400"))

    client, seen = serve(short, short, short)
    with pytest.raises(ApiError, match="IncompleteRead"):
        client.get("/x")
    assert len(seen) == 2


@pytest.mark.parametrize(
    "start", [b"", answer(200, b"{", Content_Length="400"), b"HTTP/1.1 200 OK\r\n"]
)
def test_slow_bytes_end_at_the_time_limit(serve, start):
    def write(peer):
        peer.sendall(start)
        drip(b"A" if start else b"")(peer)

    begin = time.monotonic()  # before the deadline starts
    client, _seen = serve(write, seconds=0.6)
    with pytest.raises(ApiError) as error:
        client.get("/x")
    assert error.value.status == "timeout"
    assert 0.6 <= time.monotonic() - begin < 60


def test_an_endless_body_is_cut_off(serve):
    def write(peer):
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        drip(b"x" * 65536, 0)(peer)

    client, _seen = serve(write, max_body=1 << 20)
    with pytest.raises(ApiError, match="more than 1048576 bytes") as error:
        client.get("/x")
    assert error.value.status == "error"


def test_a_server_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ApiError, match="No such file"):
        Client(str(tmp_path / "none"), Deadline(60)).get("/x")


def page(*names, token=None):
    return answer(
        200, {"metadata": {"continue": token or ""}, "items": [{"name": name} for name in names]}
    )


def test_lists_are_read_page_by_page(serve):
    client, seen = serve(page("a", "b", token="t/1"), page("c"))
    assert [item["name"] for item in client.items("/x", {"labelSelector": "job-name"})] == [
        "a",
        "b",
        "c",
    ]
    assert seen == [
        "/x?labelSelector=job-name&limit=500",
        "/x?labelSelector=job-name&limit=500&continue=t%2F1",
    ]


def test_the_next_page_is_asked_for_before_the_present_one_is_taken(serve):
    client, seen = serve(page("a", token="t"), page("b", token="u"), page("c"))
    listed = client.items("/x")
    assert next(listed) == {"name": "a"}
    _until(lambda: len(seen) == 2)
    assert [item["name"] for item in listed] == ["b", "c"]
    assert seen == ["/x?limit=500", "/x?limit=500&continue=t", "/x?limit=500&continue=u"]
    assert client.requests == 3


def test_whoever_takes_objects_may_ask_for_others_in_between(serve):
    def following(peer):
        time.sleep(0.3)
        peer.sendall(page("b"))

    client, seen = serve(page("a", token="t"), following, answer(200, {"other": 1}))
    listed = client.items("/x")
    assert next(listed) == {"name": "a"}
    _until(lambda: len(seen) == 2)  # its answers are given in the order of what it was asked
    assert client.get("/y") == {"other": 1}
    assert list(listed) == [{"name": "b"}]


def test_a_page_that_did_not_come_is_asked_for_again(serve):
    client, seen = serve(
        page("a", token="t"),
        lambda peer: peer.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{"),
        page("b"),
    )
    assert [item["name"] for item in client.items("/x")] == ["a", "b"]
    assert seen[1:] == ["/x?limit=500&continue=t"] * 2


def test_whoever_wants_no_more_leaves_nothing_open(serve):
    client, _seen = serve(page("a", token="t"), drip(b"x"))
    listed = client.items("/x")
    assert next(listed) == {"name": "a"}
    assert client.ahead.open
    listed.close()
    assert not client.ahead.open


def test_an_object_that_looks_like_a_head_ends_no_list(serve):
    """What was asked for by mistake is dropped: what the list itself says counts."""
    decoy = answer(200, b'{"fake": {"continue": "t"}, "items": [{"name": "a"}]}')
    client, _seen = serve(decoy, page("never"))
    assert list(client.items("/x")) == [{"name": "a"}]
    assert not client.ahead.open


def test_a_table_is_rows_by_their_columns(serve):
    columns, rows = (
        [{"name": "Name"}, {"name": "Node"}],
        [
            {"cells": ["a", "w1"], "object": None},
            {"cells": "odd"},
        ],
    )
    first = {
        "kind": "Table",
        "metadata": {"continue": "t"},
        "columnDefinitions": columns,
        "rows": rows,
    }
    client, _seen = serve(answer(200, first), answer(200, {**first, "metadata": {}, "rows": None}))
    assert list(client.items("/x", accept=kubeapi_client.TABLE)) == [{"Name": "a", "Node": "w1"}]


def test_whoever_asked_for_no_table_gets_none(serve):
    client, _seen = serve(answer(200, {"kind": "Table", "rows": [{"cells": ["a"]}]}))
    with pytest.raises(kubeapi_client.ApiError, match="no list of objects"):
        list(client.items("/x"))


def _until(met):
    assert until(met, pause=0.01)


def test_a_list_that_expired_begins_again(serve):
    gone = answer(410, {"kind": "Status", "message": "expired"})
    client, seen = serve(page("a", token="t"), gone, page("a", token="u"), page("b"))
    assert [item["name"] for item in client.items("/x")] == ["a", "a", "b"]
    assert "continue" not in seen[2]


def test_a_list_that_always_expires_ends(serve):
    gone = answer(410, {"kind": "Status", "message": "expired"})
    client, _seen = serve(*[page("a", token="t"), gone] * 4)
    with pytest.raises(ApiError, match="expired") as error:
        list(client.items("/x"))
    assert error.value.code == 410


@pytest.mark.parametrize(
    "answered", [{}, {"items": {}}, {"items": "x"}, {"items": [None]}, {"items": [{}, 3]}]
)
def test_what_is_no_list_of_objects_is_no_empty_list(serve, answered):
    """Otherwise the collector would take it for the proof that there is nothing."""
    client, _seen = serve(answer(200, answered))
    with pytest.raises(kubeapi_client.ApiError, match="no list of objects"):
        list(client.items("/x"))


@pytest.mark.parametrize("items", [None, []])
def test_lists_of_nothing(serve, items):
    client, _seen = serve(answer(200, {"items": items}))
    assert list(client.items("/x")) == []


def test_one_line_is_printable_and_bounded():
    assert kubeapi_client.one_line("a\n\x1b[1mb\t c") == "a [1mb c"
    assert len(kubeapi_client.one_line("x" * 999)) == 300


def managed(manager="kubectl", fields=None, **more):
    """Give an object as an API server writes it.

    The notes of its fields are the last of its metadata.
    """
    notes = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-21T09:45:38Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": (
                fields
                or {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        'k:{"name":"web","ports":[1]}': {".": {}, "f:image": {}},
                        "f:list": {'v:["a"]': {}},
                    },
                }
            ),
        }
    ]
    return {
        "metadata": {
            "name": "a",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": "Job"}],
            "managedFields": notes * 2,
        },
        "spec": {"containers": [{"name": "web"}]},
        **more,
    }


HOSTILE = (
    ',"managedFields":[',
    ']},"spec":',
    '\\"]},"spec":{"x":[',
    '"managedFields":[]},"spec":{}',
    "\\",
    "]}",
)


@pytest.mark.parametrize("word", HOSTILE)
def test_notes_of_managers_are_left_out_and_nothing_else(word):
    items = [
        managed(word),
        managed(fields={f"f:{word}": {}}),
        managed(status={"message": word}),
        {"metadata": {"name": word}, "spec": {"x": [word]}},
        {
            "metadata": {"annotations": {word: json.dumps(managed(word), separators=(",", ":"))}},
            "spec": {"x": []},
        },
        managed(word),
    ]
    page = json.dumps(
        {"metadata": {"resourceVersion": "1"}, "items": items}, separators=(",", ":")
    ).encode()
    for one in items:
        one["metadata"].pop("managedFields", None)
    assert json.loads(kubeapi_client._unmanaged(page))["items"] == items


def test_of_objects_without_a_spec_they_stay():
    items = [
        {"metadata": managed()["metadata"], "data": {"a": "b"}},
        {"metadata": managed()["metadata"]},
    ]
    page = json.dumps({"items": items}, separators=(",", ":")).encode()
    assert kubeapi_client._unmanaged(page) == page
    # nor does an object lose what stands between another's notes and its own
    mixed = json.dumps({"items": [*items, managed()]}, separators=(",", ":")).encode()
    kept = json.loads(kubeapi_client._unmanaged(mixed))["items"]
    assert kept[:2] == items
    assert "managedFields" not in kept[2]["metadata"]


def test_only_who_says_so_reads_without_them(serve):
    page = json.dumps({"metadata": {}, "items": [managed()]}, separators=(",", ":")).encode()
    client, _dummy = serve(answer(200, page), answer(200, page))
    (whole,) = client.items("/x")
    (lean,) = client.items("/x", unmanaged=True)
    assert len(whole["metadata"].pop("managedFields")) == 2
    assert lean == whole


def test_a_server_without_an_answer_is_asked_for_nothing_else(serve):
    """Where a client has patience, one request that nothing answers is enough."""
    client, seen = serve(lambda _peer: time.sleep(60))[:2]
    client.patience = 0.5
    with pytest.raises(ApiError) as first:
        client.get("/api/v1/namespaces/kube-system")
    for path in ("/api/v1/nodes", "/version"):
        with pytest.raises(ApiError) as again:
            client.get(path, seconds=30)
        assert again.value.status == first.value.status == "timeout"
        assert again.value.code is None
        assert str(again.value).startswith("not asked: GET /api/v1/namespaces/kube-system: ")
    assert len(seen) == 1


def test_without_patience_the_next_request_is_made(serve):
    client, seen = serve(lambda _peer: time.sleep(60), answer(200, {"a": 1}))[:2]
    with pytest.raises(ApiError):
        client.get("/first", seconds=0.5)
    assert client.get("/second", seconds=60) == {"a": 1}
    assert len(seen) == 2
