# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server that is slow, busy, broken, cut off or of another age.

Evidence ends in time, and what it lacks is unknown, never guessed.

The tests use a real socket, so that half an answer is half an answer. The evidence is judged
together with the recorded evidence of the hosts. A fault of the API may make a verdict unknown. It
must make none present or clear that was not.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import random
import re
import shutil
import socketserver
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    runner as cluster_runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import session
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    client as kubeapi_client,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    kubeconfig,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests.fault_injection import judged

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CASES = {"v1.18.4": "v1.18.4-two-leaders", "v1.36.3": "v1.36.3-two-leaders"}
SECONDS = 6
STATUSES = {"ok", "absent", "denied", "error", "timeout", "not_asked"}
Answer = tuple[int, dict[str, str], bytes]
EXPIRED = (
    b'Get "https://10.0.0.9:6443/version": tls: failed to verify certificate: x509: certificate has'
    b" expired or is not yet valid: current time is after\n"
)


class Server(socketserver.ThreadingUnixStreamServer):
    """Recorded answers, and what is done to them."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: str, version: str, wrong: Callable[[int, str, Answer], Any]) -> None:
        super().__init__(path, Handler)
        self.answers = json.loads(
            (FIXTURES / "api" / f"{version}.json").read_text(encoding="utf-8")
        )
        self.wrong, self.count = wrong, itertools.count()

    def recorded(self, target: str) -> Answer:
        parts = urllib.parse.urlsplit(target)
        query = [
            pair
            for pair in urllib.parse.parse_qsl(parts.query)
            if pair[0] not in ("limit", "continue")
        ]
        found = self.answers.get(
            parts.path + ("?" + "&".join("=".join(pair) for pair in query) if query else "")
        )
        found = found or self.answers.get(parts.path + "?" + urllib.parse.urlencode(query))
        if found is None and query:
            found = {"kind": "List", "items": []}
        if found is None:
            return (
                404,
                {},
                json.dumps(
                    {
                        "kind": "Status",
                        "message": "the server could not find the requested resource",
                    }
                ).encode(),
            )
        return 200, {}, json.dumps(found).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            code, headers, body = self.server.wrong(
                next(self.server.count), self.path, self.server.recorded(self.path)
            )
            drip, length = headers.pop("drip", None), headers.pop("length", str(len(body)))
            self.send_response(code)
            for name, value in {**headers, "Content-Length": length}.items():
                self.send_header(name, value)
            self.end_headers()
            for at in range(0, len(body), 1) if drip else (0,):
                self.wfile.write(body[at : at + 1] if drip else body)
                if drip:
                    time.sleep(float(drip))
            if length != str(len(body)):
                self.close_connection = True


def status(code: int, message: str, **headers: str) -> Answer:
    return (
        code,
        headers,
        json.dumps(
            {"kind": "Status", "status": "Failure", "message": message, "code": code}
        ).encode(),
    )


def slow(seconds: float) -> Callable[[int, str, Answer], Answer]:
    def wait(_number: int, _path: str, answer: Answer) -> Answer:
        time.sleep(seconds)
        return answer

    return wait


def always(answer: Answer) -> Callable[[int, str, Answer], Answer]:
    return lambda number, path, true: answer


def sometimes(answer: Answer, share: float = 0.5) -> Callable[[int, str, Answer], Answer]:
    """Give the answer to some requests, which the commit draws.

    Another commit draws other requests.
    """
    chance = random.Random(f"{judged.seed()} {share}")
    return lambda number, path, true: (
        answer if chance.random() < share and path != "/version" else true
    )


def body(
    change: Callable[[bytes], bytes], length: bool = False
) -> Callable[[int, str, Answer], Answer]:
    """Return an answer whose body is changed.

    length: whether Content-Length promises the whole body
    """

    def changed(_number: int, path: str, answer: Answer) -> Answer:
        if path == "/version":
            return answer
        return answer[0], ({"length": str(len(answer[2]))} if length else {}), change(answer[2])

    return changed


def endless(number: int, path: str, answer: Answer) -> Answer:
    """Answer with a list that always has another page."""
    item = json.loads(answer[2])
    if "items" in item:
        item.setdefault("metadata", {})["continue"] = f"more-{number}"
    return answer[0], {}, json.dumps(item).encode()


def gone(_number: int, path: str, answer: Answer) -> Answer:
    """Answer with a list that expires when its second page is requested."""
    if "continue=" in path:
        return status(410, "The provided continue parameter is too old")
    return endless(0, path, answer)


def past(_number: int, path: str, answer: Answer) -> Answer:
    """Answer as a stale cache: locks of ten minutes ago, and half of a list by an older version."""
    item = json.loads(answer[2])
    if "items" in item:
        item["items"] = item["items"][: (len(item["items"]) + 1) // 2]
        item.setdefault("metadata", {})["resourceVersion"] = "7"
    text = json.dumps(item)
    return (
        answer[0],
        {},
        re.sub(
            r"(renewTime[^0-9]{1,8}20[0-9]{2}-[0-9-]{5}T)([0-9]{2})",
            lambda one: f"{one[1]}{max(0, int(one[2]) - 1):02d}",
            text,
        ).encode(),
    )


def hidden(*parts: str, code: int = 404) -> Callable[[int, str, Answer], Answer]:
    return lambda number, path, true: (
        status(code, "the server could not find the requested resource")
        if any(part in path for part in parts)
        else true
    )


WRONG: dict[str, Callable[[int, str, Answer], Answer]] = {
    "slow": slow(0.7),
    "silent": slow(30),
    "dripping": lambda number, path, true: (true[0], {"drip": "0.05"}, true[2]),
    "429 for ever": always(
        status(429, "Too many requests, please try again later.", **{"Retry-After": "1"})
    ),
    "429 until tomorrow": sometimes(status(429, "busy", **{"Retry-After": "86400"})),
    "429 without a word": sometimes(status(429, "busy")),
    "500": always(status(500, "etcdserver: request timed out")),
    "500 at times": sometimes(status(500, "etcdserver: leader changed")),
    "503": sometimes(status(503, "the server is currently unable to handle the request")),
    "504": sometimes(status(504, "Timeout: request did not complete")),
    "expired client certificate": always(status(401, "Unauthorized")),
    "expired server certificate": always((500, {}, EXPIRED)),
    "forbidden": sometimes(status(403, "nodes is forbidden"), 0.7),
    "cut JSON": body(lambda data: data[: len(data) // 2]),
    "cut connection": body(lambda data: data[: len(data) // 2], length=True),
    "nothing": body(lambda data: b""),
    "a login page": body(lambda data: b"<html><title>Sign in</title></html>"),
    "null": body(lambda data: b"null"),
    "a list": body(lambda data: b"[]"),
    "an empty object": body(lambda data: b"{}"),
    "items that are none": body(lambda data: b'{"kind":"List","items":[null,1,"x",[],{}]}'),
    "items that are no list": body(lambda data: b'{"items":"many","metadata":[],"spec":3}'),
    "not UTF-8": body(lambda data: data.replace(b"m", b"\xff\xfe")),
    "endless pages": endless,
    "answers from the past": past,
    "pages that expire": gone,
    "1.14": hidden("/apis/coordination.k8s.io", "/apis/discovery.k8s.io"),
    "without metadata-only lists": hidden("as=Partial", code=406),
}


@contextlib.contextmanager
def served(
    version: str,
    wrong: Callable[[int, str, Answer], Answer],
    monkeypatch: pytest.MonkeyPatch,
    pem: str | None,
) -> Iterator[Server]:
    """Behind every door of the collector."""
    path = Path(tempfile.mkdtemp(prefix="kmapi"))
    server = Server(str(path / "sock"), version, wrong)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    class Door(kubeapi_client.Client):
        def __init__(
            self,
            _where: str,
            _name: str,
            _kubectl: str,
            _config: str,
            deadline: Any,
            _server: Any = None,
            _tls: Any = None,
        ) -> None:
            super().__init__(str(path / "sock"), deadline)

        def close(self) -> None:
            self.connection.close()

    well = {"status": 200, "body": "ok", "error": None}
    monkeypatch.setattr(cluster_runner.http_client, "get", lambda *_place: well)
    (path / "admin.conf").touch()
    monkeypatch.setattr(session, "ApiProxy", Door)
    monkeypatch.setattr(
        session.served_certificates,
        "read",
        lambda places, _seconds: [{"error": None}] * len(places),
    )
    monkeypatch.setattr(
        kubeconfig, "view", lambda _kubectl, _path, _deadline: ("https://10.0.0.9:6443", pem)
    )
    monkeypatch.setattr(kubeconfig, "find_kubectl", lambda asked=None: "/usr/bin/kubectl")
    monkeypatch.setattr(kubeconfig, "KUBECONFIGS", (str(path / "admin.conf"),))
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(path)


def verdicts(
    folder: Path, document: dict[str, Any] | None
) -> dict[tuple[Any, ...], tuple[str, list[Any]]]:
    """Evaluate the recorded hosts with this evidence of the API in place of the recorded one."""
    if document is not None:
        for path in folder.glob("*.cluster.json"):
            whole = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(
                json.dumps(
                    {**whole, **{key: document[key] for key in ("status", "reason", "collectors")}}
                ),
                encoding="utf-8",
            )
    result = fault_engine.evaluate(evidence_sources.stream([str(folder)]), deep=True)
    return {
        (one.code, one.host, one.component): (one.verdict, [str(lack) for lack in one.missing])
        for one in result.verdicts
    }


def collected(
    version: str, wrong: Callable[[int, str, Answer], Answer], **more: Any
) -> tuple[dict[str, Any], float]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(version, wrong, monkeypatch, None):
        begin = time.monotonic()
        found = cluster_runner.collect({"timeout": SECONDS, "deep": True, **more})
        return found, time.monotonic() - begin


@pytest.fixture(scope="module")
def true_ones(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, dict[tuple[Any, ...], tuple[str, list[Any]]]]:
    found = {}
    for version in CASES:
        document, _seconds = collected(version, lambda number, path, answer: answer, timeout=600)
        assert document["status"] == "ok", document["reason"]
        found[version] = verdicts(copied(version, tmp_path_factory.mktemp("true")), document)
    return found


def copied(version: str, folder: Path) -> Path:
    return Path(
        shutil.copytree(FIXTURES / "recorded" / CASES[version] / "evidence", folder / "evidence")
    )


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("version", CASES)
def test_what_the_api_does_wrong_is_unknown(
    version: str, name: str, tmp_path: Path, true_ones: Any, record_property: Any
) -> None:
    record_property("injected", 1)
    document, seconds = collected(version, WRONG[name])
    assert seconds < SECONDS + 60, (name, seconds)  # what is endless would not end at all
    json.dumps(document)
    for collector, record in document["collectors"].items():
        assert record["status"] in STATUSES, (name, collector, record)
        assert record["status"] in ("ok", "absent", "not_asked") or record["error"], (
            name,
            collector,
            record,
        )
        assert "\n" not in (record["error"] or ""), (name, collector, record)
    assert document["status"] == "ok" or document["reason"], name
    true, now = true_ones[version], verdicts(copied(version, tmp_path), document)
    guessed = {
        key: (found[0], true.get(key, ("none",))[0])
        for key, found in now.items()
        if found[0] in ("present", "clear") and true.get(key, ("none",))[0] not in (found[0],)
    }
    assert not guessed, (name, guessed)
    assert all(found[1] for found in now.values() if found[0] == "unknown"), name


def pod_list(numbers: range) -> dict[str, Any]:
    items = [
        {
            "metadata": {"namespace": "n", "name": f"p{one}", "uid": f"u{one}"},
            "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "w1"},
            "status": {"phase": "Running", "conditions": []},
        }
        for one in numbers
    ]
    return {"kind": "PodList", "items": items}


def pod_table(numbers: range) -> dict[str, Any]:
    return {
        "kind": "Table",
        "columnDefinitions": [{"name": name} for name in ("Name", "Status", "Node")],
        "rows": [{"cells": [f"p{one}", "Running", "w1"]} for one in numbers],
    }


def test_fifty_thousand_pods_end_in_time(record_property: Any) -> None:
    """Pages of 500 as an API server gives them, to every collector that lists pods.

    What is not read in time is said to be cut.
    """
    count, size = (50_000 if judged.WHOLE else 10_000), 500
    pages: dict[tuple[bool, int], bytes] = {}

    def page(_number: int, path: str, answer: Answer) -> Answer:
        parts = urllib.parse.urlsplit(path)
        if parts.path != "/api/v1/pods":
            return answer
        query = dict(urllib.parse.parse_qsl(parts.query))
        is_table, at = "includeObject" in query, int(query.get("continue", "0"))
        if (is_table, at) not in pages:
            following = {"continue": str(at + size)} if at + size < count else {}
            made = pod_table if is_table else pod_list
            pages[is_table, at] = json.dumps(
                {"metadata": following, **made(range(at, at + size))}
            ).encode()
        return 200, {}, pages[is_table, at]

    document, seconds = collected("v1.36.3", page, timeout=60)
    record_property("injected", 1)
    record_property("seconds", round(seconds, 1))
    assert seconds < 180
    assert document["status"] == "ok"
    for name, record in document["collectors"].items():
        assert record["status"] in ("ok", "timeout", "absent"), (
            name,
            record["status"],
            record["error"],
        )
        assert record["status"] != "timeout" or record["error"], (
            name,
            record["status"],
            record["error"],
        )
