# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way to the Kubernetes API: a `kubectl proxy` of kubemend on a control-plane node.

kubectl authenticates, and no proxy outlives the object that started it.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from .client import JSON, ApiError, Client, Deadline, one_line

PROBE_SECONDS = 5
MAX_LOG = 65536
FOLDER = "kubemend-api-"
# Former releases of kubectl (1.18) answer 502 without a message where they reached no API server or
# did not accept its certificate, and write the reason into their log (net/http/httputil); newer
# ones answer 500 with the reason.
BAD_GATEWAY, PROXY_FAILED = 502, 500
PROXY_ERROR = b"http: proxy error: "


@contextlib.contextmanager
def folder():
    """Yield a fresh 0700 directory for sockets, removed at the end, also at SIGTERM and SIGHUP.

    It first removes the directories of killed runs.
    """
    base = "/run" if os.access("/run", os.W_OK) else tempfile.gettempdir()
    space = _pid_space()
    _sweep(base, space)
    former = _signals()
    path = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid():d}-{space}-", dir=base)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        for number, handler in former.items():
            signal.signal(number, handler)


def _pid_space():
    """Return the number of this process's PID namespace; empty where it is not known.

    Containers may share /run with their host: a process id means nothing in another namespace.
    """
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def _sweep(base, space):
    """Remove the directories of ended processes of this PID namespace."""
    for name in os.listdir(base):
        match = re.match(rf"{re.escape(FOLDER)}(\d+)-{space}-", name)
        path = os.path.join(base, name)
        if match and not os.path.exists("/proc/" + match.group(1)) and not os.path.islink(path):
            with contextlib.suppress(OSError):
                if os.lstat(path).st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)


def _signals():
    """Let an ended session unwind like an exception, so that proxies end and folders go."""

    def leave(number, dummy):
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]
    return {number: signal.signal(number, leave) for number in numbers}


def _die_with_parent():
    """Return what the child runs before it becomes kubectl.

    The kernel ends it with its parent, even when that is killed.
    """
    library, parent = ctypes.CDLL(None, use_errno=True), os.getpid()

    def before_exec():
        library.prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


class ApiProxy(Client):
    """One `kubectl proxy`, started without waiting, so that several start at once.

    The first request waits until it listens.
    """

    WRITES = "^(POST|PUT|PATCH|DELETE|CONNECT)$"

    def __init__(  # noqa: PLR0913, PLR0917 - kubectl's options
        self,
        directory,
        name,
        kubectl,
        kubeconfig,
        deadline,
        server=None,
        tls_server_name=None,
        read_only=True,
    ):
        super().__init__(os.path.join(directory, name + ".sock"), deadline)
        self.log = os.path.join(directory, name + ".log")
        argv = [kubectl, "--kubeconfig=" + kubeconfig]
        environment = dict(os.environ)
        if server:
            argv.append("--server=" + server)
            # the address of one API server is meant, not a way to it through a proxy of the
            # environment
            host = urllib.parse.urlsplit(server).hostname or ""
            for variable in ("NO_PROXY", "no_proxy"):
                environment[variable] = ",".join(
                    part for part in (environment.get(variable), host) if part
                )
        if tls_server_name:
            argv.append("--tls-server-name=" + tls_server_name)
        argv += ["proxy", "--unix-socket=" + self.path]
        if read_only:
            argv.append("--reject-methods=" + self.WRITES)
        self.up = False
        with open(self.log, "wb") as log:
            # No AnsibleModule where this runs as a program on standard input, and its run_command
            # cannot leave one running.
            self.process = subprocess.Popen(  # pylint: disable=ansible-bad-function
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=environment,
                close_fds=True,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - no thread runs yet
            )

    def get(self, path, query=None, accept=JSON, seconds=None, unmanaged=False):
        """Return what Client.get returns, after waiting for the proxy to listen."""
        if not self.up:
            self._wait(Deadline(PROBE_SECONDS if seconds is None else seconds, self.deadline))
        return super().get(path, query, accept, seconds, unmanaged)

    def _exchange(self, *arguments):
        """Return what Client._exchange returns, with the reason where kubectl only logs it."""
        code, headers, body = super()._exchange(*arguments)
        if code == BAD_GATEWAY and not body.strip():
            reason = self._proxy_error()
            if reason:
                return PROXY_FAILED, headers, reason
        return code, headers, body

    def _proxy_error(self):
        """Return the newest reason in kubectl's log why it reached no API server, or ""."""
        with contextlib.suppress(OSError), open(self.log, "rb") as log:
            log.seek(max(0, os.path.getsize(self.log) - MAX_LOG))
            _before, mark, reason = log.read(MAX_LOG).rpartition(PROXY_ERROR)
            return reason.partition(b"\n")[0] if mark else b""
        return b""

    def _wait(self, deadline):
        while not self.up:
            if self.process.poll() is not None:
                raise ApiError(
                    "error",
                    "kubectl proxy ended: "
                    + (self._said() or f"exit code {self.process.returncode:d}"),
                )
            deadline.remaining()
            probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                probe.connect(self.path)
                self.up = True
            except OSError:
                time.sleep(0.004)
            finally:
                probe.close()

    def _said(self):
        with contextlib.suppress(OSError), open(self.log, "rb") as log:
            lines = [
                line
                for line in log.read(MAX_LOG).decode("utf-8", "replace").splitlines()
                if line.strip()
            ]
            return one_line(lines[-1] if lines else "")
        return ""

    def close(self):
        """End the proxy and reap it."""
        self.connection.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        self.close()
