# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that asyncssh asks over a real sshd, in the loop over all hosts, without Ansible."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    guard,
    library,
    loop,
    ways,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.display import (
    Lines,
)
from tests.unit.support import fake_fleet, loopback_sshd
from tests.unit.support.fake_fleet import ANSWER, Fleet, Host

pytest.importorskip("asyncssh")
WIDTHS = {"client": 32, "jump": 2, "plugin": 2}
READ = f"cat >/dev/null; {ANSWER}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[loopback_sshd.Server]:
    with loopback_sshd.running(tmp_path_factory.mktemp("sshd")) as running:
        yield running


class Client(fake_fleet.Client):
    """A client with the command line of a real one."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.line = [os.fsencode(word) for word in host.line_words]


@pytest.fixture(autouse=True)
def by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "Client", Client)
    monkeypatch.setattr(ways, "way_of", lambda _host: ways.CLIENT)


def children() -> set[str]:
    """Return the processes of this one; the sshd is one of them."""
    paths = Path("/proc/self/task").glob("*/children")
    return {pid for path in paths for pid in path.read_text("ascii").split()}


class Run:
    """What came of hosts, and which of them an ssh client asked, with the reasons."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_ssh: list[str] = []
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        popen = subprocess.Popen

        def start(line: list[bytes], *args: Any, **named: Any) -> Any:
            if os.fsdecode(line[0]) == "ssh":
                self.by_ssh.append(os.fsdecode(line[-1]))
            return popen(line, *args, **named)

        monkeypatch.setattr(subprocess, "Popen", start)
        show = library.Display
        monkeypatch.setattr(show, "vv", lambda _self, text, **_named: self.reasons.append(text))
        monkeypatch.setattr(show, "warning", lambda _self, text: self.warnings.append(text))

    def ask(self, *hosts: Any, **named: Any) -> dict[str, dict[str, Any]]:
        fleet = Fleet(*hosts)
        lines: Any = Lines(len(hosts), lambda _text: None)
        before, beside = guard.open_descriptors(), children()
        asked = loop.Loop(cast(Any, fleet), WIDTHS, lines, with_asyncssh=True, **named)
        done = asked.run(fleet.hosts)
        assert len(guard.open_descriptors()) == len(before)
        assert children() == beside
        assert (done.broken, done.left) == ({}, [])
        return done.results


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(monkeypatch)


def host(name: str, line: list[bytes], **named: Any) -> Host:
    made = Host(name, **named)
    made.line_words = tuple(os.fsdecode(word) for word in line)
    return made


def test_many_hosts_are_read_by_one_process(server: loopback_sshd.Server, run: Run) -> None:
    hosts = [host(f"m{number}", server.line(command=READ)) for number in range(20)]
    results = run.ask(*hosts)
    assert {result["status"] for result in results.values()} == {"ok"}
    assert (run.by_ssh, run.warnings, run.reasons) == ([], [], [])


def test_the_program_arrives_whole_and_the_answer_leaves_whole(
    server: loopback_sshd.Server, run: Run
) -> None:
    size = 5_000_000
    command = (
        f'test $(wc -c) = 300000 || exit 1; printf \'KUBEMEND-1 {{"collectors": "\';'
        f" head -c {size} /dev/zero | tr '\\0' x; echo '\"}}'; exit 3"
    )
    results = run.ask(host("m1", server.line(command=command)))
    assert results["m1"]["status"] == "ok"
    assert run.by_ssh == []


def test_the_program_waits_until_the_node_has_become_root(
    server: loopback_sshd.Server, run: Run
) -> None:
    command = f"sleep 0.3; echo BECOME-1; {READ}"
    asked = host("m1", server.line(command=command))
    asked.success = "BECOME-1"
    assert run.ask(asked)["m1"]["status"] == "ok"
    assert run.by_ssh == []


def test_variables_are_sent_as_ssh_sends_them(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_KUBEMEND", "42")
    command = f'test "$LC_KUBEMEND" = 42 || exit 1; {READ}'
    with loopback_sshd.running(tmp_path, more="AcceptEnv LC_*") as server:
        sent = host("m1", server.line("SendEnv=LC_*", command=command))
        assert run.ask(sent)["m1"]["status"] == "ok"
    assert run.by_ssh == []


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("StrictHostKeyChecking=yes", "UserKnownHostsFile={folder}/changed"), "unreachable"),
        (("StrictHostKeyChecking=yes", "UserKnownHostsFile={folder}/none"), "unreachable"),
        (
            ("StrictHostKeyChecking=accept-new", "UserKnownHostsFile={folder}/changed"),
            "unreachable",
        ),
        (("StrictHostKeyChecking=accept-new", "UserKnownHostsFile={folder}/new"), "ok"),
        (("StrictHostKeyChecking=no", "UserKnownHostsFile={folder}/changed"), "ok"),
    ],
    ids=["changed", "unknown", "changed-accept-new", "new", "changed-not-checked"],
)
def test_ssh_itself_decides_on_a_host_key_that_is_not_known(
    server: loopback_sshd.Server, run: Run, options: tuple[str, ...], status: str
) -> None:
    words = [option.format(folder=server.folder) for option in options]
    result = run.ask(host("m1", server.line(*words, command=READ)))["m1"]
    assert result["status"] == status
    assert len(run.by_ssh) == 1
    assert len(run.reasons) == 1
    if status == "unreachable":
        assert "verification failed" in result["reason"] or "CHANGED" in result["reason"]


def test_a_host_key_counts_nowhere_only_where_ssh_keeps_it_nowhere(
    server: loopback_sshd.Server, run: Run
) -> None:
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
    assert run.ask(host("m1", server.line(*options, command=READ)))["m1"]["status"] == "ok"
    assert run.by_ssh == []


@pytest.mark.parametrize("key", ["other", "missing"])
def test_a_key_that_may_not_log_in_has_the_reason_of_ssh(
    server: loopback_sshd.Server, run: Run, key: str
) -> None:
    result = run.ask(host("m1", server.line(command=READ, key=key)))["m1"]
    assert result["status"] == "unreachable"
    assert "Permission denied" in result["reason"]
    assert len(run.by_ssh) == 1


def test_an_address_that_refuses_is_said_as_ssh_says_it(run: Run) -> None:
    port = loopback_sshd.free_port()
    words = ["ssh", "-F", "none", "-o", f"Port={port}", "-o", "StrictHostKeyChecking=no"]
    words += ["-o", "UserKnownHostsFile=/dev/null", loopback_sshd.ADDRESS, READ]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr.strip()
    # Only a key makes asyncssh try.
    line = [os.fsencode(word) for word in words]
    result = run.ask(host("m1", line))["m1"]
    assert result["status"] == "unreachable"
    assert said in result["reason"]


def test_a_refusal_needs_no_ssh_client(server: loopback_sshd.Server, run: Run) -> None:
    options = (f"Port={loopback_sshd.free_port()}", "StrictHostKeyChecking=no")
    line = server.line(*options, "UserKnownHostsFile=/dev/null", command=READ)
    result = run.ask(host("m1", line))["m1"]
    assert "Connection refused" in result["reason"]
    assert run.by_ssh == []


def test_a_host_that_hangs_in_the_banner_is_left_to_ssh(
    server: loopback_sshd.Server, run: Run
) -> None:
    with socket.socket() as silent:  # the kernel takes connections, nothing else does
        silent.bind((loopback_sshd.ADDRESS, 0))
        silent.listen()
        options = ("ConnectTimeout=1", f"Port={silent.getsockname()[1]}")
        options += ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
        result = run.ask(host("m1", server.line(*options, command=READ)))["m1"]
    assert result["status"] == "unreachable"
    assert "timed out" in result["reason"]
    assert len(run.by_ssh) == 1
    assert "key exchange" in run.reasons[0]


def test_a_host_that_hangs_in_its_answer_costs_its_limit(
    server: loopback_sshd.Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "GRACE", 0)
    command = "cat >/dev/null; printf 'KUBEMEND-1 {'; exec sleep 60"
    hangs = host("m1", server.line(command=command), limit=3)
    results = run.ask(hangs, host("m2", server.line(command=READ)))
    assert results["m1"]["status"] == "unreachable"
    assert "no answer within 3 seconds" in results["m1"]["reason"]
    assert results["m2"]["status"] == "ok"
    assert run.by_ssh == []


def test_a_flood_is_ended(server: loopback_sshd.Server, run: Run) -> None:
    floods = host("m1", server.line(command="exec cat /dev/zero"))
    results = run.ask(floods, host("m2", server.line(command=READ)))
    assert (results["m1"]["status"], results["m1"]["reason"]) == (
        "error",
        "the answer is too large",
    )
    assert results["m2"]["status"] == "ok"


def test_a_host_that_dies_is_asked_once_more_by_ssh(server: loopback_sshd.Server, run: Run) -> None:
    dies = host("m1", server.line(command="cat >/dev/null; kill -9 $PPID"))
    results = run.ask(dies, host("m2", server.line(command=READ)))
    assert results["m1"]["status"] == "unreachable"
    assert "closed by remote host" in results["m1"]["reason"]
    assert results["m2"]["status"] == "ok"
    assert len(run.by_ssh) == 1


def test_what_is_no_answer_goes_to_a_worker_at_once(
    server: loopback_sshd.Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop.Worker, "start", fake_worker(monkeypatch))
    result = run.ask(host("m1", server.line(command="cat >/dev/null; exit 126")))["m1"]
    assert result == fake_fleet.WORKER
    assert run.by_ssh == []


def fake_worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import plugin

    # Ansible refuses it outside of its own workers.
    monkeypatch.setattr(plugin.Display, "set_queue", lambda _self, _queue: None)
    return loop.Worker.start


@pytest.mark.parametrize(
    "option",
    [
        "HostKeyAlias=other",
        "CertificateFile=/nowhere",
        "PKCS11Provider=/usr/lib/none.so",
        "IdentityAgent=/nowhere",
        "ForwardAgent=yes",
        "SetEnv=A=b",
        "KnownHostsCommand=/bin/false",
        "CheckHostIP=yes",
        "PreferredAuthentications=password",
        "PubkeyAuthentication=no",
        "BindAddress=127.0.0.1",
    ],
)
def test_an_option_that_is_not_honoured_leads_to_ssh(
    server: loopback_sshd.Server, run: Run, option: str
) -> None:
    run.ask(host("m1", server.line(option, command=READ), limit=20))
    assert len(run.by_ssh) == 1
    assert option.partition("=")[0].lower() in run.reasons[0]


def test_a_jump_host_is_left_to_ssh(
    server: loopback_sshd.Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_fleet.client, "MAX_PAUSE_SECONDS", 0)
    jump = host("m1", server.line("ProxyJump=127.0.0.1:1", command=READ))
    assert run.ask(jump)["m1"]["status"] == "unreachable"
    assert run.by_ssh
    assert run.reasons == []


def test_a_jump_host_of_a_file_is_left_to_ssh(
    server: loopback_sshd.Server, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("Match host 127.0.0.1 exec true\n ProxyJump 127.0.0.1:1\n")
    line = server.line(command=READ)
    line[2] = os.fsencode(tmp_path / "config")
    assert run.ask(host("m1", line))["m1"]["status"] == "unreachable"
    assert len(run.by_ssh) == 1
    assert "proxyjump" in run.reasons[0]


def test_the_algorithms_of_the_options_are_the_ones_that_are_used(tmp_path: Path, run: Run) -> None:
    more = (
        "KexAlgorithms ecdh-sha2-nistp384\nCiphers aes256-ctr\nMACs hmac-sha2-512-etm@openssh.com"
    )
    same = ("KexAlgorithms=ecdh-sha2-nistp384", "Ciphers=aes256-ctr")
    with loopback_sshd.running(tmp_path, more=more) as server:
        result = run.ask(host("m1", server.line(*same, command=READ)))["m1"]
        assert (result["status"], run.by_ssh) == ("ok", [])
        other = server.line("KexAlgorithms=curve25519-sha256", command=READ)
        assert run.ask(host("m2", other))["m2"]["status"] == "unreachable"


def test_keys_of_an_agent_log_in(
    server: loopback_sshd.Server, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not place.exists() and time.monotonic() < end:
            time.sleep(0.05)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        subprocess.run(["ssh-add", "-q", str(server.folder / "key")], check=True)
        hosts = [host(f"m{n}", server.line(command=READ, key="missing")) for n in range(3)]
        fleet_of_agent = {asked.name: asked for asked in hosts}
        only_files = server.line("IdentitiesOnly=yes", command=READ, key="missing")
        lines: Any = Lines(4, lambda _text: None)
        fleet = Fleet(*hosts, host("only", only_files))
        asked = loop.Loop(cast(Any, fleet), WIDTHS, lines, with_asyncssh=True)
        results = asked.run(fleet.hosts).results
    finally:
        agent.terminate()
        agent.wait()
    assert {results[name]["status"] for name in fleet_of_agent} == {"ok"}
    assert results["only"]["status"] == "unreachable"
    assert len(run.by_ssh) == 1


def test_a_process_that_dies_leaves_its_hosts_to_ssh(
    server: loopback_sshd.Server, run: Run, tmp_path: Path
) -> None:
    command = f"[ -e {tmp_path}/x ] || {{ touch {tmp_path}/x; sleep 600; }}; {READ}"
    killed: list[int] = []

    class Killing(Lines):
        def waiting(self, since: Any) -> None:
            if (tmp_path / "x").exists() and not killed and asked._library is not None:
                killed.append(asked._library.process.pid)
                os.kill(killed[0], signal.SIGKILL)

    fleet = Fleet(host("m1", server.line(command=command)))
    lines = Killing(1, lambda _text: None)
    asked = loop.Loop(cast(Any, fleet), WIDTHS, lines, with_asyncssh=True)
    assert asked.run(fleet.hosts).results["m1"]["status"] == "ok"
    assert killed
    assert len(run.by_ssh) == 1


def test_without_asyncssh_ssh_reads_all_with_one_warning(
    server: loopback_sshd.Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "asyncssh", None)
    hosts = [host(f"m{number}", server.line(command=READ)) for number in range(3)]
    results = run.ask(*hosts)
    assert {result["status"] for result in results.values()} == {"ok"}
    assert len(run.by_ssh) == 3
    assert len(run.warnings) == 1
