# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller that is killed, or only held, at a point of its run.

The module also has the moments that a node itself can name.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import time
from pathlib import Path

from tests.lab.support import playbook

MARK = "KUBEMEND_LAB_CONTROLLER"
CALLBACKS = Path(__file__).parents[1] / "callbacks"
# Waits for the write of a step on its node, without anybody's polling from outside, and says which
# process does it.
_WRITTEN = """
import glob, json, sys, time
path, want, end = sys.argv[1], sys.argv[2].encode(), time.monotonic() + 120
while time.monotonic() < end:
    if want in open(path, "rb").read():
        for name in sorted(glob.glob("/var/lib/kubemend/journal/*/proof-*.json"), reverse=True):
            record = json.load(open(name))
            if record["state"] == "awaited":
                print(json.dumps({"pid": record["by"]["pid"], "run_id": record["run_id"]}))
                sys.exit(0)
    time.sleep(0.02)
sys.exit(1)
"""

# Waits for the end of the process that a step restarts, and says which program is to prove it.
_STOPPED = """
import glob, json, os, sys, time
component, end = sys.argv[1], time.monotonic() + 150
while time.monotonic() < end:
    for name in sorted(glob.glob("/var/lib/kubemend/journal/*/proof-*.json"), reverse=True):
        record = json.load(open(name))
        is_awaited = record["state"] == "awaited" and record["component"] == component
        if is_awaited and not os.path.exists("/proc/%d" % record["former"]["pid"]):
            print(json.dumps({
                "pid": record["by"]["pid"], "run_id": record["run_id"], "step": record["step"]
            }))
            sys.exit(0)
    time.sleep(0.02)
sys.exit(1)
"""


class Controller:
    """One ansible-playbook with every process that it makes, as if it were a machine of its own."""

    def __init__(
        self,
        cluster,
        folder: Path,
        *arguments: str,
        at: str | None = None,
        env: dict[str, str] | None = None,
        name: str = "remediate",
    ):
        folder.mkdir()
        self.folder, self.report, self._held, self._id = (
            folder,
            folder / "report",
            folder / "held",
            secrets.token_hex(8),
        )
        environment = {
            MARK: self._id,
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            **(env or {}),
        }
        if at:
            environment.update(
                ANSIBLE_CALLBACK_PLUGINS=str(CALLBACKS),
                ANSIBLE_CALLBACKS_ENABLED="hold",
                LAB_HOLD_AT=at,
                LAB_HOLD_FILE=str(self._held),
            )
        with (folder / "output").open("w", encoding="utf-8") as output:
            self._process = playbook.start(
                name,
                cluster.inventory,
                *arguments,
                report=str(self.report),
                env=environment,
                output=output,
            )

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text(encoding="utf-8")

    def wait_held(self, timeout: float = 120) -> None:
        end = time.monotonic() + timeout
        while not self._held.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the run never came to that task:\n{self.output[-3000:]}")
            time.sleep(0.05)

    def wait(self, timeout: float = 240) -> tuple[int, dict]:
        """Return its exit code and its report, when it ends by itself."""
        code = self._process.wait(timeout)
        return code, json.loads((self.report / "report.json").read_text(encoding="utf-8"))

    def wait_failed(self, timeout: float = 240) -> int:
        """Return its exit code, when it ends before there is a report."""
        return self._process.wait(timeout)

    def kill(self) -> None:
        """Kill all of it, its workers and ssh included, by the mark in their environments.

        The kill is repeated until no new process appears.
        """
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        while mine := list(self._processes()):
            for pid in mine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self._process.wait(10)

    def interrupt(self, timeout: float = 60) -> int:
        """Ctrl-C in its terminal; its exit code."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(timeout)

    def _processes(self):
        wanted = f"{MARK}={self._id}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if (
                    wanted in path.read_bytes().split(b"\0")
                    and b") Z " not in (path.parent / "stat").read_bytes()
                ):
                    yield int(path.parent.name)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.kill()


def wait_written(cluster, node: str, path: str, text: str) -> dict:
    """Wait for the program that has written `text` to a file and not verified it yet.

    The result is {pid, run_id}.
    """
    return json.loads(
        cluster.exec(node, ["python3", "-I", "-S", "-c", _WRITTEN, path, text], timeout=150).stdout
    )


def wait_stopped(cluster, node: str, component: str) -> dict:
    """Wait for the program that has ended the component's process and not seen another yet.

    The result is {pid, run_id, step}.
    """
    return json.loads(
        cluster.exec(node, ["python3", "-I", "-S", "-c", _STOPPED, component], timeout=180).stdout
    )


def proof(cluster, node: str, found: dict) -> dict:
    """Return the record of a step of wait_stopped as it is now."""
    return json.loads(
        cluster.read(
            node, f"/var/lib/kubemend/journal/{found['run_id']}/proof-{found['step']}.json"
        )
    )


def left_over(cluster) -> list[str]:
    """Return what no run may leave on masters.

    Dotfiles, changes without an end, steps without a proof, services of a capture, somebody's
    lock.
    """
    found = []
    for node in cluster.of_role("master"):
        said = cluster.exec(
            node,
            "ls -d /etc/systemd/system/kubemend-* /var/lib/kubemend/levels 2>/dev/null; cd"
            " /var/lib/kubemend/journal 2>/dev/null && for i in */[0-9]*.json; do case $i in"
            " *.end.json) ;; *) test ! -e $i || test -e ${i%.json}.end.json || echo open $i;; esac;"
            ' done; grep -l \'"state": *"awaited"\' /var/lib/kubemend/journal/*/proof-*.json'
            " 2>/dev/null; find /etc/kubernetes/manifests /var/lib/kubemend -name '.*' -not -name ."
            " ; ls /var/lib/kubemend/lock 2>/dev/null; true",
        )
        found += [f"{node.name}: {line}" for line in said.stdout.decode().splitlines()]
    return found


def remove_locks(cluster) -> None:
    """Remove the locks of killed runs from the masters, so that the next tests find none.

    The next repair would take them; on masters where nothing is to be restored they stay until then
    or until their time is over.
    """
    for node in cluster.of_role("master"):
        cluster.exec(node, ["rm", "-f", "/var/lib/kubemend/lock"])


def rewrite(cluster, node: str, path: str, program: str) -> None:
    """Rewrite a JSON file on a node with a program: `d` is its content."""
    code = (
        f"import json; p = {path!r}; d = json.load(open(p)); {program}; json.dump(d, open(p, 'w'))"
    )
    cluster.exec(node, f"python3 -I -S -c {shlex.quote(code)}")
