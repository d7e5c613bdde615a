# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop over all hosts, with clients that a shell script plays and workers that are forked."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    guard,
    loop,
    plugin,
    ways,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.display import (
    Lines,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.hosts import (
    BrokenHost,
)
from tests.unit.support import fake_fleet
from tests.unit.support.fake_fleet import ANSWER, WORKER, Fleet, Host

WIDTHS = {"client": 4, "jump": 2, "plugin": 2}


@pytest.fixture(autouse=True)
def by_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "Client", fake_fleet.Client)
    # Ansible refuses it outside of its own workers.
    monkeypatch.setattr(plugin.Display, "set_queue", lambda _self, _queue: None)
    monkeypatch.setattr(ways, "way_of", lambda host: ways.CLIENT if host.script else ways.PLUGIN)


def asked(*hosts: Any, told: list[str] | None = None, **named: Any) -> loop.Results:
    """Ask these hosts; no descriptor and no child is left."""
    texts: list[str] = [] if told is None else told
    fleet = Fleet(*hosts)
    before = guard.open_descriptors()
    lines: Any = Lines(len(hosts), texts.append)
    done = loop.Loop(cast(Any, fleet), WIDTHS, lines, **named).run(fleet.hosts)
    assert len(guard.open_descriptors()) == len(before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    return done


def test_every_host_answers_whatever_its_way() -> None:
    told: list[str] = []
    hosts = [Host(f"c{number}", f"cat >/dev/null; {ANSWER}") for number in range(9)]
    done = asked(*hosts, Host("p0", ""), Host("p1", ""), Host("p2", ""), told=told)
    assert {result["status"] for result in done.results.values()} == {"ok"}
    assert set(done.results) == {host.name for host in hosts} | {"p0", "p1", "p2"}
    assert (done.broken, done.left) == ({}, [])
    assert len(told) == 12


def test_a_host_with_which_ansible_cannot_begin_costs_itself() -> None:
    done = asked(BrokenHost("no such plugin"), Host("m1"), AttributeError("_connection"))
    assert done.broken == {"x0": "no such plugin"}
    assert done.left == ["x2"]
    assert set(done.results) == {"m1"}


def test_what_is_no_answer_is_asked_again_by_a_worker() -> None:
    done = asked(
        Host("shell", "cat >/dev/null; echo no shell here >&2; exit 1"),
        Host("cut", "cat >/dev/null; echo 'KUBEMEND-1 {'"),
        Host("missing", "exec /opt/none/ssh"),
    )
    assert {result["reason"] for result in done.results.values()} == {WORKER["reason"]}


def test_a_failure_of_ssh_is_no_answer_and_no_worker() -> None:
    done = asked(Host("m1", "echo 'ssh: connect to host m1: timed out' >&2; exit 255"))
    result = done.results["m1"]
    assert result["status"] == "unreachable"
    assert 'host "m1"' in result["reason"]
    assert "connect to host m1: timed out" in result["reason"]


def test_the_retries_of_the_ssh_plugin(tmp_path: Path) -> None:
    script = f"echo x >>{tmp_path}/tries; exit 255"
    asked(Host("m1", script, reconnection_retries=1))
    assert (tmp_path / "tries").read_text() == "x\nx\n"


def test_a_jump_host_that_drops_a_client_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "jumps", lambda words: True)
    monkeypatch.setattr(fake_fleet.client, "MAX_PAUSE_SECONDS", 0)
    script = (
        f"echo x >>{tmp_path}/tries; [ $(wc -l <{tmp_path}/tries) -gt 2 ] ||"
        " { echo kex_exchange_identification: closed >&2; exit 255; }; cat >/dev/null; "
    )
    assert asked(Host("m1", script + ANSWER)).results["m1"]["status"] == "ok"
    assert (tmp_path / "tries").read_text() == "x\n" * 3


def test_a_host_that_says_nothing_costs_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "GRACE", 0)
    hosts = [Host(f"s{number}", "exec sleep 600", limit=0.5) for number in range(3)]
    done = asked(*hosts, Host("m1", f"cat >/dev/null; {ANSWER}"))
    assert [done.results[f"s{number}"]["status"] for number in range(3)] == ["unreachable"] * 3
    assert done.results["m1"]["status"] == "ok"


def test_three_hundred_hosts_of_which_a_tenth_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "GRACE", 0)
    hosts = [
        Host(f"h{number}", "exec sleep 600", limit=1)
        if number % 10 == 0
        else Host(f"h{number}", f"cat >/dev/null; {ANSWER}")
        for number in range(300)
    ]
    monkeypatch.setitem(WIDTHS, "client", 64)
    done = asked(*hosts)
    statuses = [done.results[host.name]["status"] for host in hosts]
    assert statuses == ["unreachable" if place % 10 == 0 else "ok" for place in range(300)]


def test_a_flood_is_ended_and_the_sum_of_answers_is_bounded() -> None:
    most: list[int] = []

    class Counting(loop.Loop):
        def _read(self, is_busy: bool) -> None:
            super()._read(is_busy)
            most.append(sum(task.process.size for task in self._running))

    hosts = [Host(f"f{number}", "exec cat /dev/zero") for number in range(4)]
    fleet = Fleet(*hosts)
    lines = Lines(4, lambda _text: None)
    runs = Counting(cast(Any, fleet), WIDTHS, lines, max_held=8 * 1024 * 1024)
    done = runs.run(fleet.hosts)
    assert {(result["status"], result["reason"]) for result in done.results.values()} == {
        ("error", "the answer is too large")
    }
    assert max(most) < 48 * 1024 * 1024


def test_the_program_waits_until_the_node_has_become_root() -> None:
    host = Host("m1", "sleep 0.3; echo BECOME-1; cat | wc -c >&2; " + ANSWER)
    host.success = "BECOME-1"
    assert asked(host).results["m1"]["status"] == "ok"


def test_a_flood_before_become_is_left_to_a_worker() -> None:
    host = Host("m1", "exec cat /dev/zero")
    host.success = "BECOME-1"
    assert asked(host).results["m1"]["reason"] == WORKER["reason"]


def dies(number: int) -> Callable[[], dict[str, Any]]:
    def ask() -> dict[str, Any]:
        os.kill(os.getpid(), number)
        time.sleep(600)
        return {}

    return ask


def test_a_worker_that_is_killed_costs_its_host() -> None:
    killed, raises, other = Host("m1", ""), Host("m2", ""), Host("m3", "")
    killed.asks = dies(signal.SIGKILL)
    raises.asks = lambda: {}["missing"]
    done = asked(killed, raises, other)
    assert done.results["m1"]["status"] == "error"
    assert "9" in done.results["m1"]["reason"]
    assert "KeyError" in done.results["m2"]["reason"]
    assert done.results["m3"] == WORKER


def test_a_worker_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "GRACE", 0)
    monkeypatch.setattr(loop, "WORKER_GRACE_SECONDS", 0)
    host = Host("m1", "", limit=0.5)
    host.asks = lambda: time.sleep(600) or {}
    assert asked(host).results["m1"]["status"] == "error"


def test_what_a_worker_starts_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)

    def ask() -> dict[str, Any]:
        subprocess.Popen(["sleep", "600"], close_fds=False)
        return dies(signal.SIGKILL)()

    host = Host("m1", "")
    host.asks = ask
    asked(host)
    os.close(write)
    assert os.read(read, 1) == b""  # nobody holds the other end
    os.close(read)


def test_no_worker_holds_the_pipes_of_another_host() -> None:
    """A client whose standard input stays open in a worker would wait for ever."""
    slow = Host("p0", "")
    slow.asks = lambda: time.sleep(2) or dict(WORKER)
    begin = time.monotonic()
    ended: dict[str, float] = {}

    class Timed(Lines):
        def ended(self, host: str, status: str, reason: str) -> None:
            ended[host] = time.monotonic() - begin

    fleet = Fleet(Host("c0", f"cat >/dev/null; {ANSWER}"), slow)
    lines = Timed(2, lambda _text: None)
    loop.Loop(cast(Any, fleet), WIDTHS, lines).run(fleet.hosts)
    assert ended["c0"] < ended["p0"]


@pytest.mark.parametrize("script", ["", ANSWER])
def test_without_a_process_a_host_is_left(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_named: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, "no process")

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert asked(Host("m1", script), Host("m2", script)).left == ["m1", "m2"]


def test_a_client_that_cannot_be_executed_is_left_to_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_args: Any, **_named: Any) -> Any:
        raise FileNotFoundError(errno.ENOENT, "no ssh")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert asked(Host("m1")).results["m1"] == WORKER


def test_a_run_that_nobody_waits_for_ends_at_once() -> None:
    turns = iter([False] * 5)
    host, other = Host("m1", "exec sleep 600"), Host("m2", "")
    other.asks = dies(signal.SIGSTOP)
    with pytest.raises(SystemExit):
        asked(host, other, abandoned=lambda: next(turns, True))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_handlers_of_signals_stay_as_they_were() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    former = [signal.getsignal(number) for number in numbers]
    asked(Host("m1"), Host("m2", ""))
    assert [signal.getsignal(number) for number in numbers] == former


def test_what_a_worker_displays_goes_through_its_own_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(plugin, "show", lambda kind, content: shown.append((kind, content)))
    queues: list[Any] = []
    monkeypatch.setattr(plugin.Display, "set_queue", lambda _self, queue: queues.append(queue))

    def ask() -> dict[str, Any]:
        queues[0].send_display("display", "a text", color="red")
        return dict(WORKER)

    host = Host("m1", "")
    host.asks = ask
    assert asked(host).results["m1"] == WORKER
    assert shown == [(plugin.SHOWN, {"args": ["a text"], "named": {"color": "red"}})]
