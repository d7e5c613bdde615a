# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One task for all hosts says of each host what a task per host says, and leaves no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import fleet_evidence_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.ansible_message import (
    never_began,
)
from tests.unit.support import loopback_sshd, unusual_hosts
from tests.unit.support.unusual_hosts import HOSTS

PLAYBOOK_FIXTURES = {"runs"}
# How the processes of one test are told from all others: by their environment.
MARK = "KUBEMEND_TEST_OF_FLEET"
# What Ansible says of a client that ended before it wrote to its input.
UNSENT, BROKEN_PIPE = "Data could not be sent to remote host", "Broken pipe"


@pytest.fixture(scope="module", params=["ssh", "auto"])
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("fleet")
    if request.param == "ssh":
        unusual_hosts.write(folder, HOSTS)
        yield {"transport": "ssh", **found(folder)}
        return
    pytest.importorskip("asyncssh")
    more = f"ForceCommand {folder}/node"
    addresses = ("127.0.0.1", *unusual_hosts.ADDRESSES.values())
    with loopback_sshd.running(folder, addresses, more) as server:
        hosts = unusual_hosts.behind(server, HOSTS)
        unusual_hosts.write(folder, hosts)
        yield {"transport": "auto", **found(folder)}
        unusual_hosts.end_hanging(folder)


def found(folder: Path) -> dict[str, Any]:
    started = {way: unusual_hosts.start(folder, f"{way}.yml", "-vvv") for way in ("task", "fleet")}
    outputs = {way: process.communicate(timeout=900)[0] for way, process in started.items()}
    answer: dict[str, Any] = {"outputs": outputs}
    answer["rc"] = {way: process.returncode for way, process in started.items()}
    for way in started:
        answer[way] = {
            path.stem: json.loads(path.read_text()) for path in (folder / way).glob("*.json")
        }
    assert (folder / "fleet.json").is_file(), outputs["fleet"][-4000:]
    answer["result"] = json.loads((folder / "fleet.json").read_text())
    assert (folder / "messages.json").is_file(), outputs["task"][-4000:]
    answer["messages"] = json.loads((folder / "messages.json").read_text())
    return answer


def test_no_host_is_a_failure(runs: dict[str, Any]) -> None:
    assert runs["rc"] == {"task": 0, "fleet": 0}
    assert set(runs["fleet"]) == set(HOSTS)
    assert runs["result"]["left"] == []


@pytest.mark.parametrize("host", HOSTS)
def test_status_and_reason_are_those_of_a_task_per_host(runs: dict[str, Any], host: str) -> None:
    document, as_task = runs["fleet"][host], runs["task"].get(host)
    if as_task is None:
        reason = never_began(runs["messages"][host])
        as_task = {"status": "error", "reason": reason, "groups": ["node"], "collectors": {}}
        assert host in runs["result"]["broken"]
    for name in ("status", "groups"):
        assert document[name] == as_task[name]
    assert is_same(document["reason"] or "", as_task["reason"] or "")
    assert set(document["collectors"]) == set(as_task["collectors"])
    assert runs["result"]["hosts"][host]["status"] == document["status"]


def is_same(reason: str, of_task: str) -> bool:
    """Compare reasons; that of a client which ends at once depends on when Ansible writes to it."""
    if BROKEN_PIPE in reason + of_task:
        return reason.startswith(UNSENT) and of_task.startswith(UNSENT)
    return reason == of_task


def test_only_a_broken_pipe_has_another_reason() -> None:
    sent = f"{UNSENT} 'a': Permission denied (publickey)."
    assert is_same(sent, f"{UNSENT} 'a': {BROKEN_PIPE}")
    assert not is_same(sent, f"{UNSENT} 'b': Permission denied (publickey).")
    assert not is_same("Host key verification failed.", f"{UNSENT} 'a': {BROKEN_PIPE}")


def test_each_host_has_one_line(runs: dict[str, Any]) -> None:
    lines = [line for line in runs["outputs"]["fleet"].splitlines() if line.startswith("kubemend:")]
    for host in HOSTS:
        assert sum(line.startswith(f"kubemend: {host}: ") for line in lines) == 1


def test_the_command_line_of_a_client_is_shown_with_vvv(runs: dict[str, Any]) -> None:
    assert "ESTABLISH SSH CONNECTION FOR USER" in runs["outputs"]["fleet"]
    assert "ControlMaster=no" in runs["outputs"]["fleet"]


def test_asyncssh_reads_the_hosts_that_it_can(runs: dict[str, Any]) -> None:
    output = runs["outputs"]["fleet"]
    assert ("ASYNCSSH: EXEC" in output) == (runs["transport"] == "auto")
    if runs["transport"] == "auto":
        for name in ("noisy", "root-x", "hang"):
            address = unusual_hosts.ADDRESSES[name]
            assert f"<{address}> ASYNCSSH: EXEC" in output
            assert f"<{address}> SSH: EXEC" not in output


def test_a_password_is_in_no_output_and_in_no_other_connection(runs: dict[str, Any]) -> None:
    assert "secret-of" not in runs["outputs"]["fleet"]
    assert "secret-of" not in json.dumps(runs["fleet"])


@pytest.mark.playbook
def test_a_password_is_in_no_other_hosts_connection(tmp_path: Path) -> None:
    become = {"kubemend_become": True, "ansible_become_password": "secret-of-b"}
    hosts = {
        "a": {"kubemend_become": True},
        "b": become,
        "c": {"kubemend_become": True},
        "d": {"ansible_password": "secret-of-d"},
        "e": {},
        "f": {**become, "ansible_become_password": "secret-of-f", "ansible_connection": "local"},
        "g": {"kubemend_become": True, "ansible_become_method": "su"},
    }
    unusual_hosts.write(tmp_path, hosts)
    output = unusual_hosts.start(tmp_path, "ready.yml").communicate(timeout=600)[0]
    assert (tmp_path / "secrets.json").is_file(), output
    expected = {name: [] for name in hosts}
    for name in ("b", "d", "f"):
        expected[name] = [f"secret-of-{name}"]
    assert json.loads((tmp_path / "secrets.json").read_text()) == expected


def processes(mark: str) -> list[int]:
    """Return the living processes whose environment has the mark; no others count."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark.encode() in (path / "environ").read_bytes()
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marked and state not in ("Z", "X"):
            found.append(int(path.name))
    return found


def wait_until(is_so: Any) -> None:
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


ENDS = pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
    ids=["ctrl-c", "sigterm", "sigkill"],
)


def end(folder: Path, number: int, whole_group: bool) -> None:
    """End a play while its hosts hang; no process with the mark is left."""
    mark = f"{MARK}={folder}"
    process = unusual_hosts.start(folder, "fleet.yml")
    try:
        wait_until(lambda: len(list(folder.glob("hanging-*"))) >= 3)
        if whole_group:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)
        wait_until(lambda: not processes(mark))
    finally:
        for pid in processes(mark):
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=100)


@pytest.mark.playbook
@ENDS
def test_an_end_leaves_no_process(
    number: int, whole_group: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    hang = {"ansible_host": "hang", "kubemend_timeout": 3000}
    by_worker = {**hang, "ansible_ssh_transfer_method": "piped", "ansible_become_password": "x"}
    by_worker.update(kubemend_become=True, ansible_become_method="su")
    unusual_hosts.write(tmp_path, {"m1": hang, "m2": hang, "m3": by_worker})
    end(tmp_path, number, whole_group)


@pytest.mark.playbook
@ENDS
def test_an_end_leaves_no_process_of_asyncssh(
    number: int, whole_group: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("asyncssh")
    hang = {"ansible_host": "hang", "kubemend_timeout": 3000}
    hosts = {"m1": hang, "m2": hang, "m3": hang}
    more, addresses = f"ForceCommand {tmp_path}/node", (unusual_hosts.ADDRESSES["hang"],)
    with loopback_sshd.running(tmp_path, ("127.0.0.1", *addresses), more) as server:
        monkeypatch.setenv(MARK, str(tmp_path))
        unusual_hosts.write(tmp_path, unusual_hosts.behind(server, hosts))
        end(tmp_path, number, whole_group)
        unusual_hosts.end_hanging(tmp_path)


@pytest.mark.playbook
def test_a_killed_task_leaves_no_process_and_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    mark = f"{MARK}={tmp_path}"
    hang = {"ansible_host": "hang", "kubemend_timeout": 3000}
    unusual_hosts.write(tmp_path, {"m1": hang, "m2": hang})
    process: subprocess.Popen[str] = unusual_hosts.start(tmp_path, "fleet.yml")
    try:
        wait_until(lambda: len(list(tmp_path.glob("hanging-*"))) >= 2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)
        process.communicate(timeout=100)
        wait_until(lambda: not processes(mark))
        assert process.returncode != 0
    finally:
        for pid in processes(mark):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("transport", "installed", "expected", "notices"),
    [("auto", True, True, 0), ("auto", False, False, 1), ("ssh", True, False, 0)],
)
def test_asyncssh_is_used_only_where_it_is_installed_and_wanted(
    transport: str,
    installed: bool,
    expected: bool,
    notices: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: list[str] = []
    monkeypatch.setattr(fleet_evidence_info.library, "is_installed", lambda: installed)
    monkeypatch.setattr(fleet_evidence_info.Display, "v", lambda _self, text: texts.append(text))
    assert fleet_evidence_info._with_asyncssh({"transport": transport}) == expected
    assert len(texts) == notices
