# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of proxies' sockets, and the reasons that a proxy answers or only logs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import proxy
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import (
    ApiError,
    Deadline,
)

SPACE = proxy._pid_space()
ENDED = 2**22 + 1  # above the kernel's highest process id


# The processes of a parallel run compare the ids of their tests, so that no id holds a process id
# or a namespace.
@pytest.mark.parametrize(
    ("template", "is_removed"),
    [
        ("{folder}{ended}-{space}-abc", True),
        ("{folder}{running}-{space}-abc", False),
        ("{folder}{ended}-1-abc", False),
        ("{folder}x-{space}-abc", False),
        ("other-{ended}-{space}-abc", False),
    ],
)
def test_directories_of_ended_processes_of_this_namespace_are_removed(
    tmp_path, template, is_removed
):
    name = template.format(folder=proxy.FOLDER, ended=ENDED, running=os.getpid(), space=SPACE)
    (tmp_path / name).mkdir()
    proxy._sweep(str(tmp_path), SPACE)
    assert (tmp_path / name).exists() is not is_removed


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="unshare needs root"
)
def test_a_run_in_another_pid_namespace_removes_no_directory_that_is_in_use():
    program = f"from {proxy.__name__} import folder\nwith folder():\n    pass\n"
    apart = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", program]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with proxy.folder() as path:
        subprocess.run(apart, env=environment, check=True, timeout=120)
        assert Path(path).is_dir()


# A kubectl such as 1.18 that reaches no API server: one line in its log for each request.
FORMER_KUBECTL = """#!{python}
import http.server, socketserver, sys
path = next(word.partition("=")[2] for word in sys.argv if word.startswith("--unix-socket="))

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        for line in {log!r}:
            sys.stderr.write(line + self.path + chr(10))
        sys.stderr.flush()
        self.send_response({code})
        self.send_header("Content-Length", str(len({body!r})))
        self.end_headers()
        self.wfile.write({body!r})

    def log_message(self, *_arguments):
        pass

    def address_string(self):
        return ""

socketserver.UnixStreamServer(path, Handler).serve_forever()
"""
LOGGED = "2026/11/28 05:20:00 http: proxy error: x509: certificate is valid for 10.0.0.1, not "


def refusal_by(tmp_path, log, code=502, body=b""):
    """Return the error of a request through a kubectl that logs and answers so."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        FORMER_KUBECTL.format(python=sys.executable, log=log, code=code, body=body), "utf-8"
    )
    kubectl.chmod(0o755)
    with (
        proxy.folder() as where,
        proxy.ApiProxy(where, "0", str(kubectl), "x.conf", Deadline(30)) as api,
    ):
        with pytest.raises(ApiError):
            api.get("/first", seconds=20)
        with pytest.raises(ApiError) as caught:
            api.get("/second", seconds=20)
    return caught.value


def test_the_reason_that_a_former_kubectl_only_logs(tmp_path):
    error = refusal_by(tmp_path, [LOGGED])
    assert (error.code, error.status) == (None, "error")
    assert str(error) == "x509: certificate is valid for 10.0.0.1, not /second"


@pytest.mark.parametrize(
    ("log", "code", "body"),
    [
        ([], 502, b""),
        (["another line "], 502, b""),
        # what another server says is an answer
        ([LOGGED], 502, b"bad gateway"),
        ([LOGGED], 503, b""),
    ],
)
def test_an_answer_stays_where_the_proxy_logs_no_reason_for_it(tmp_path, log, code, body):
    error = refusal_by(tmp_path, log, code, body)
    assert error.code == code
    assert "x509" not in str(error)
