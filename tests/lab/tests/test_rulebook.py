# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts to a real ansible-rulebook: the right playbook, its diagnosis.

A second alert in time starts none, and no two runs are at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.gate import machine, venvs
from tests.lab.support import repairing

TOKEN = "of-this-test-only"
SECONDS = 120


def post(port: int, *alerts: str, status: str = "firing", token: str = TOKEN) -> int:
    """Post what Alertmanager's webhook sends; return the code of the answer."""
    body = {
        "version": "4",
        "status": status,
        "commonLabels": {},
        "alerts": [{"status": status, "labels": {"alertname": name}} for name in alerts],
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/endpoint",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def waited(condition, what: str, log: Path):
    """Return the condition's value once it is true; else fail with the output after SECONDS."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(
        f"{what} did not happen in {SECONDS} s:\n{log.read_text(errors='replace')[-3000:]}"
    )


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Runs:
    """The reports of the runs that the rulebook began, the oldest first."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, count: int) -> list[dict]:
        """Return the reports once there are that many whole ones, else nothing."""
        found = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(self.home.glob(".kubemend/runs/*/report.json"))
        ]
        return found if len(found) >= count else []


@pytest.fixture
def rulebook(cluster, tmp_path):
    """(port, runs, log) of a rulebook that listens for this cluster."""
    if machine.need({"java": "default-jre-headless"}):
        repairing.impossible(
            "ansible-rulebook needs Java: install the package default-jre-headless"
        )
    home, port, log = venvs.ensure("rulebook"), free_port(), tmp_path / "rulebook.log"
    # Reports go to the user's folder; ssh's sockets too, whose paths may not be as long as that.
    sockets = tempfile.mkdtemp(prefix="km-")
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
        HOME=str(tmp_path),
        KUBEMEND_TOKEN=TOKEN,
        ANSIBLE_SSH_CONTROL_PATH_DIR=sockets,
        JAVA_HOME=str(Path(os.path.realpath(shutil.which("java") or "")).parents[1]),
    )
    env["PATH"] = os.pathsep.join(
        [str(home / "bin"), str(Path(sys.executable).parent), env["PATH"]]
    )
    settings = tmp_path / "vars.yml"
    settings.write_text(json.dumps({"kubemend_port": port}), encoding="utf-8")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                str(home / "bin" / "ansible-rulebook"),
                "--rulebook",
                "kubemend.remediation.alertmanager",
                "-i",
                str(cluster.inventory),
                "--vars",
                str(settings),
                "--env-vars",
                "KUBEMEND_TOKEN",
            ],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        waited(lambda: listens(port), "listening", log)
        yield port, Runs(tmp_path), log
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(sockets, ignore_errors=True)


def test_an_alert_ends_in_a_diagnosis(cluster, rulebook):
    port, runs, log = rulebook
    with repairing.broken(cluster, "kubelet-stopped", target="w1"):
        before = repairing.state(cluster)
        assert post(port, "KubeletDown", token="another") == 401
        assert (
            post(port, "KubeletDown", status="resolved"),
            post(port, "Watchdog"),
            post(port, "NotKubeletDown"),
        ) == (200, 200, 200)
        assert post(port, "Watchdog", "KubeletDown") == 200
        (report,) = waited(lambda: runs(1), "the run", log)
        assert (report["symptom"]["name"], report["mode"], report["steps"]) == (
            "node_unreachable",
            "observe",
            [],
        ), report["mode"]
        assert "KM502" in {
            finding["code"] for finding in report["findings"] if finding["host"] == "w1"
        }
        # Of the same kind: answered by that run. Of others: one run each, one after the other.
        assert (
            post(port, "KubeNodeNotReady"),
            post(port, "KubeletDown"),
            post(port, "KubePodNotReady"),
            post(port, "NodeFileDescriptorLimit"),
        ) == (200,) * 4
        reports = waited(lambda: runs(3), "two more runs", log)
        assert [one["symptom"]["name"] for one in reports] == [
            "node_unreachable",
            "pods_stay_pending",
            "too_many_open_files",
        ]
        assert all(
            earlier["finished"] <= later["started"]
            for earlier, later in itertools.pairwise(reports)
        )
        time.sleep(5)
        assert len(runs(1)) == 3
        repairing.untouched(cluster, before)
        stopped = (
            cluster.exec("w1", ["systemctl", "is-active", "kubelet"], check=False)
            .stdout.decode()
            .strip()
        )
        assert stopped == "inactive"
