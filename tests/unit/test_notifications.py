# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/notifications against receivers of this machine: what arrives, and what is not sent."""

from __future__ import annotations

import contextlib
import email
import email.policy
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "notifications" / "notify.py"
KEY = "0123456789abcdef"


def finding(code="KM101", severity="critical", host="m1", **more):
    return {
        "code": code,
        "severity": severity,
        "cluster": KEY,
        "host": host,
        "node": None,
        "component": None,
        "summary": "a <!channel> & b",
        "remedy": "repair it",
        "since": "2026-11-20T09:00:00Z",
        **more,
    }


FINDINGS = (
    finding("KM407", "warning", "w1"),
    finding(component="kube-scheduler"),
    finding("KM410", "info"),
    finding("KM502", waived={"reason": "r"}),
    finding("KM901", "warning", None, node="w\n2"),
)


@pytest.fixture(name="folder")
def _folder(tmp_path):
    write(tmp_path, FINDINGS)
    return tmp_path


def write(folder, findings, mode="observe"):
    report = {
        "mode": mode,
        "started": "2026-11-27T09:00:00Z",
        "clusters": [{"key": KEY, "name": "prod"}],
        "hosts": [{"status": "ok"}, {"status": "not_asked"}],
        "findings": list(findings),
        "summary": {"critical": 1, "warning": 2, "unknown": 0},
    }
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    (folder / "report.txt").write_text("the report … of a run\n.\n" * 3, encoding="utf-8")


def notify(folder, *words, **env):
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *words],
        env={**os.environ, "HOME": str(folder), "NO_PROXY": "127.0.0.1", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextlib.contextmanager
def served(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(name="receiver")
def _receiver():
    """Serve HTTP; yield (address, the requests, the code of the answers)."""
    requests, code = [], [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(code[0])
            if 300 <= code[0] < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_words):
            pass

    with served(http.server.HTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}", requests, code


def test_alertmanager_gets_alerts_of_its_api_v2(folder, receiver):
    address, requests, _code = receiver
    done = notify(folder, "alertmanager", address + "/", "--hours", "2", KUBEMEND_TOKEN="T")
    assert (done.returncode, done.stdout) == (0, "notify: 3 findings sent\n"), done.stderr
    ((path, headers, alerts),) = requests
    assert path == "/api/v2/alerts"
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Bearer T"
    first = alerts[0]
    assert first["labels"] == {
        "alertname": "KubemendFinding",
        "code": "KM101",
        "severity": "critical",
        "cluster": "prod",
        "host": "m1",
        "component": "kube-scheduler",
    }
    assert first["annotations"] == {"summary": "a <!channel> & b", "description": "repair it"}
    assert first["startsAt"] == "2026-11-20T09:00:00Z"
    assert {alert["labels"]["code"] for alert in alerts} == {"KM101", "KM407", "KM901"}
    for alert in alerts:
        # postableAlert: labels and annotations map texts to texts, times are RFC 3339
        texts = [*alert["labels"].values(), *alert["annotations"].values()]
        assert all(isinstance(text, str) and text for text in texts)
        assert alert.keys() == {"labels", "annotations", "startsAt", "endsAt"}
        times = [datetime.fromisoformat(alert[key][:-1]) for key in ("startsAt", "endsAt")]
        assert times[0] < times[1] == datetime(2026, 11, 27, 11)


def test_a_chat_gets_one_message_whose_text_is_no_markup(folder, receiver):
    address, requests, _code = receiver
    done = notify(folder, "chat", KUBEMEND_WEBHOOK=address + "/services/x")
    assert done.returncode == 0, done.stderr
    ((path, _headers, message),) = requests
    assert path == "/services/x"
    assert message["text"].splitlines() == [
        "kubemend: 1 host, 1 critical, 2 warning, 0 unknown",
        ":red_circle: KM101 m1 kube-scheduler: a &lt;!channel&gt; &amp; b",
        ":large_yellow_circle: KM407 w1: a &lt;!channel&gt; &amp; b",
        ":large_yellow_circle: KM901 w 2: a &lt;!channel&gt; &amp; b",
    ]


def test_many_findings_are_cut_in_a_chat(folder, receiver):
    write(folder, [finding(host=f"m{number}") for number in range(50)])
    notify(folder, "chat", KUBEMEND_WEBHOOK=receiver[0])
    lines = receiver[1][0][2]["text"].splitlines()
    assert (len(lines), lines[-1]) == (22, "and 30 more")


class Smtp(socketserver.StreamRequestHandler):
    """A server that takes one mail; the server's `mails` has it."""

    def handle(self):
        self.wfile.write(b"220 x\r\n")
        envelope = []
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word in (b"MAIL", b"RCPT"):
                envelope.append(line.decode().strip())
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                data = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    data += part.removeprefix(b".")
                self.server.mails.append((envelope, data))
            if word == b"EHLO":
                self.wfile.write(b"250-x\r\n250 8BITMIME\r\n")
            else:
                self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


@pytest.fixture(name="mails")
def _mails():
    server = socketserver.TCPServer(("127.0.0.1", 0), Smtp)
    server.mails = []
    with served(server) as port:
        yield f"127.0.0.1:{port}", server.mails


def test_a_mail_has_the_report_of_the_terminal(folder, mails):
    done = notify(folder, "mail", mails[0], "k@example.com", "a@example.com", "b@example.com")
    assert (done.returncode, done.stdout) == (0, "notify: 3 findings sent\n"), done.stderr
    ((envelope, data),) = mails[1]
    assert [line.split(":")[1].split()[0] for line in envelope] == [
        "<k@example.com>",
        "<a@example.com>",
        "<b@example.com>",
    ]
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert message["Subject"] == "kubemend: 1 host, 1 critical, 2 warning, 0 unknown"
    assert message["Auto-Submitted"] == "auto-generated"
    content = message.get_content().replace("\r\n", "\n")
    assert content == (folder / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("findings", [(), (finding("KM410", "info"), finding(waived={}))])
def test_without_a_finding_that_counts_nothing_is_sent(folder, receiver, mails, findings):
    write(folder, findings)
    for words in (
        ("alertmanager", receiver[0]),
        ("chat",),
        ("mail", mails[0], "k@example.com", "a@example.com"),
    ):
        done = notify(folder, *words, KUBEMEND_WEBHOOK=receiver[0])
        assert (done.returncode, done.stdout) == (0, "notify: 0 findings sent\n")
    assert receiver[1] == mails[1] == []


def test_the_newest_run_is_meant_by_last(folder, receiver):
    for name in ("20261126T090000Z-1a2b3c", "20261127T090000Z-1a2b3c"):
        run = folder / ".kubemend" / "runs" / name
        run.mkdir(parents=True)
        write(run, [finding(host=name[:8])])
    (folder / ".kubemend" / "runs" / "20261128T090000Z-1a2b3c").mkdir()
    replay = folder / ".kubemend" / "runs" / "20261129T090000Z-1a2b3c"
    replay.mkdir()
    write(replay, [finding(host="replayed")], mode="replay")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "last", "chat"],
        env={**os.environ, "HOME": str(folder), "KUBEMEND_WEBHOOK": receiver[0]},
        check=False,
    )
    assert done.returncode == 0
    assert "20261127" in receiver[1][0][2]["text"]


@pytest.mark.parametrize(
    ("words", "env", "sentence"),
    [
        (("chat",), {}, "'KUBEMEND_WEBHOOK' is missing"),
        (("chat",), {"KUBEMEND_WEBHOOK": "http://127.0.0.1:1"}, "nothing was sent: "),
        (("chat",), {"KUBEMEND_WEBHOOK": "x"}, "nothing was sent: "),
        (("mail", "127.0.0.1:1", "k@example.com", "a@example.com"), {}, "nothing was sent: "),
        (("mail", "127.0.0.1:x", "k@example.com", "a@example.com"), {}, "nothing was sent: "),
        (
            ("mail", "127.0.0.1:1", "k@example.com", "a@example.com"),
            {"KUBEMEND_SMTP_USER": "u", "KUBEMEND_SMTP_PASSWORD": "p"},
            "KUBEMEND_SMTP_USER needs --starttls",
        ),
    ],
)
def test_what_is_not_sent_is_one_sentence_and_code_1(folder, words, env, sentence):
    done = notify(folder, *words, **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("notify: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307])
def test_a_redirect_is_not_followed(folder, receiver, code):
    receiver[2][0] = code
    done = notify(folder, "alertmanager", receiver[0], KUBEMEND_TOKEN="T")
    assert (done.returncode, f"HTTP Error {code}" in done.stderr) == (1, True)
    assert len(receiver[1]) == 1


def test_a_refusal_of_the_receiver_is_a_failure(folder, receiver):
    receiver[2][0] = 403
    done = notify(folder, "alertmanager", receiver[0])
    assert (done.returncode, "HTTP Error 403" in done.stderr) == (1, True)


@pytest.mark.parametrize("text", ["", "[]", "{}", "5"])
def test_a_file_that_is_no_report_is_one_sentence(folder, text):
    (folder / "report.json").write_text(text, encoding="utf-8")
    done = notify(folder, "chat", KUBEMEND_WEBHOOK="http://127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
