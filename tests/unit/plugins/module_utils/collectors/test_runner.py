# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner: whatever a collector does, it costs only itself."""

import contextlib
import faulthandler
import json
import os
import resource
import signal
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    channels,
    registry,
    runner,
    worker,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import limits
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    systemd,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_collector import FakeCollector, hang, run_collectors


def _crash(context):
    raise KeyError("members\nof a strange\x1bshape")


def _absent(context):
    raise base.Absent("not here")


def _denied(context):
    raise PermissionError(13, "Permission denied")


def _failed(context):
    raise base.Failed("no answer", {"kept": 1})


def _killed(context):
    os.kill(os.getpid(), 9)


def _huge(context):
    return "x" * (channels.MAX_COLLECTOR + 1)


def _unmarshallable(context):
    return object()


def _loud(context):
    os.write(1, b"noise")
    os.write(2, b"noise")
    return {"fine": True}


@pytest.mark.parametrize(
    ("function", "status", "error"),
    [
        (_crash, "error", "KeyError: 'members\\nof a strange\\x1bshape'"),
        (_absent, "absent", "not here"),
        (_denied, "denied", "[Errno 13] Permission denied"),
        (_failed, "error", "no answer"),
        (_killed, "error", "the collector's process ended without an answer"),
        (_huge, "error", f"more than {channels.MAX_COLLECTOR} bytes"),
        (_unmarshallable, "error", "the collector's process ended without an answer"),
    ],
)
def test_one_that_fails_costs_itself(function, status, error):
    found = run_collectors(
        FakeCollector("bad", function),
        FakeCollector("good", lambda context: {"a": [1, 2.5, None, True, "ü"]}),
    )
    assert (found["bad"]["status"], found["bad"]["error"]) == (status, error)
    assert found["good"]["status"] == "ok"
    assert found["good"]["data"] == {"a": [1, 2.5, None, True, "ü"]}
    if function is _failed:
        assert found["bad"]["data"] == {"kept": 1}
    if function is _huge:
        assert found["bad"]["truncated"] is True


def test_one_that_hangs_is_left_behind():
    begin = time.monotonic()
    found = run_collectors(
        FakeCollector("slow", hang, timeout=0.3),
        FakeCollector("after", lambda context: context.data.get("slow"), needs=("slow",)),
        FakeCollector("good", lambda context: 1),
    )
    assert time.monotonic() - begin < 100
    assert [found[name]["status"] for name in ("slow", "after", "good")] == ["timeout", "ok", "ok"]


def test_the_whole_has_a_deadline():
    begin = time.monotonic()
    found = run_collectors(
        FakeCollector("slow", hang, timeout=3000),
        FakeCollector("next", hang, timeout=3000, needs=("slow",)),
        timeout=2,
    )
    assert time.monotonic() - begin < 100
    assert {one["status"] for one in found.values()} == {"timeout"}


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("timeout", "longest", "question"), [(30, 10, 2), (120, 40, 8)])
def test_more_time_for_all_is_more_time_for_each(timeout, longest, question, waits):
    def left(context):
        return context.deadline - time.monotonic(), context.seconds(2)

    collector = FakeCollector("one", left, timeout=10, waits=waits)
    found = runner.run({"timeout": timeout}, [collector], [])
    seconds, one_question = found["one"]["data"]
    assert longest / 2 < seconds <= longest
    assert one_question == question


def test_nothing_of_a_child_reaches_our_output(capfd):
    assert run_collectors(FakeCollector("loud", _loud))["loud"]["status"] == "ok"
    assert capfd.readouterr() == ("", "")


def test_data_reaches_those_that_need_it():
    found = run_collectors(
        FakeCollector("b", lambda context: context.data["a"] + 1, needs=("a",)),
        FakeCollector("a", lambda context: 1),
    )
    assert found["b"]["data"] == 2


def test_without_its_component_it_is_absent_and_not_even_started():
    found = run_collectors(
        FakeCollector("x", hang, components=("etcd",)), processes=[(1, "kubelet")]
    )
    assert found["x"]["status"] == "absent"
    assert (
        run_collectors(
            FakeCollector("x", _absent, components=("etcd",)), processes=[(1, "hyperkube")]
        )["x"]["error"]
        == "not here"
    )


@pytest.mark.parametrize(
    ("processes", "exists", "status"),
    [
        ([(1, "etcd")], False, "ok"),
        ([(1, "k3s-server")], True, "ok"),
        ([(1, "k3s-server")], False, "absent"),
    ],
)
def test_its_component_or_its_path_has_to_be_there(tmp_path, processes, exists, status):
    path = tmp_path / "db"
    if exists:
        path.mkdir()
    collector = FakeCollector("x", lambda context: 1, components=("etcd",), path=str(path))
    assert run_collectors(collector, processes=processes)["x"]["status"] == status


class Asking(FakeCollector):
    """One that asks systemctl what the collector limits asks."""

    __slots__ = ()

    def module(self):
        return limits


def _shows(context):
    return sorted(systemd._told), len(systemd.show(*limits.question()[:2]))


def test_those_that_ask_systemd_wait_for_one_answer(systemctl):
    found = run_collectors(
        Asking("a", _shows, asks=True),
        Asking("b", _shows, asks=True),
        FakeCollector("c", lambda context: 3),
    )
    names, properties, _files = limits.question()
    assert found["a"]["data"] == found["b"]["data"] == ([(tuple(names), tuple(properties))], 3)
    assert found["c"]["data"] == 3
    assert set(found) == {"a", "b", "c"}  # what they asked is no evidence of its own


def test_one_alone_asks_for_itself(systemctl):
    assert run_collectors(Asking("a", _shows, asks=True))["a"]["data"] == ([], 4)


def test_one_whose_module_is_broken_costs_only_itself(systemctl):
    class Broken(Asking):
        __slots__ = ()

        def module(self):
            raise SyntaxError("broken")

    found = run_collectors(
        Broken("a", lambda context: 1, asks=True), Asking("b", lambda context: 2, asks=True)
    )
    assert found["b"]["data"] == 2


def test_what_one_asks_is_what_it_shows():
    for collector in registry.COLLECTORS:
        if collector.asks:
            names, properties, files = collector.module().question()
            assert names
            assert "Id" in properties
            assert isinstance(files, bool)


def test_needs_are_chosen_too():
    assert [one.name for one in registry.select(["etcd"])] == ["instances", "etcd"]
    assert [one.name for one in registry.select()] == [
        one.name for one in registry.COLLECTORS if one.tier == registry.CORE
    ]
    assert set(registry.BY_NAME) >= {need for one in registry.COLLECTORS for need in one.needs}


def test_the_document_is_bounded(monkeypatch):
    monkeypatch.setattr(runner, "MAX_DOCUMENT", 3000)
    monkeypatch.setattr(
        runner,
        "gather",
        lambda params: {
            "collectors": {
                "a": {"data": "x" * 5000, "status": "ok"},
                "b": {"data": "y", "status": "ok"},
            }
        },
    )
    found = json.loads(runner.collect({}))["collectors"]
    facts(found["a"].pop("error"), "3000 bytes")
    assert found["a"] == {"data": None, "status": "error", "truncated": True}
    assert found["b"]["data"] == "y"


def test_the_document_of_this_machine():
    document = runner.gather({"timeout": 20, "collectors": ["system", "installer"]})
    assert set(document["collectors"]) == set(registry.BY_NAME)
    assert document["collectors"]["system"]["status"] == "ok"
    assert document["collectors"]["kubelet"]["status"] == "not_asked"


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def _pid(context):
    return os.getpid()


def test_collectors_share_a_process_but_not_with_those_that_wait_or_are_deep():
    found = run_collectors(
        FakeCollector("a", _pid),
        FakeCollector("b", _pid, needs=("net",)),
        FakeCollector("net", _pid, waits=True),
        FakeCollector("deep", _pid, tier=registry.DEEP),
    )
    pids = {name: record["data"] for name, record in found.items()}
    assert pids["a"] == pids["b"]
    assert len({*pids.values(), os.getpid()}) == 4


def test_each_gets_a_copy_of_the_data_that_it_needs_and_no_other():
    def spoil(context):
        context.data["a"].append(2)
        return sorted(context.data)

    found = run_collectors(
        FakeCollector("a", lambda context: [1]),
        FakeCollector("other", lambda context: 0),
        FakeCollector("b", spoil, needs=("a",)),
        FakeCollector("c", lambda context: context.data["a"], needs=("a", "b")),
    )
    assert found["b"]["data"] == ["a"]
    assert found["a"]["data"] == found["c"]["data"] == [1]


def _ends(context):
    os._exit(3)


def _faults(context):
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def _leaves(context):
    raise SystemExit


@pytest.mark.parametrize("function", [_ends, _faults, _leaves, _killed, _huge, _unmarshallable])
@pytest.mark.parametrize("waits", [False, True])
def test_what_ends_its_process_does_not_end_the_others(function, waits):
    found = run_collectors(
        FakeCollector("first", _pid),
        FakeCollector("net", lambda context: "net", waits=True),
        FakeCollector("bad", function, waits=waits, needs=("first",)),
        FakeCollector("all", lambda context: context.data, needs=("bad", "net")),
        FakeCollector("last", _pid, needs=("bad",)),
    )
    assert found["bad"]["status"] == "error"
    assert found["bad"]["truncated"] is (function is _huge)
    assert found["all"]["data"] == {"bad": None, "net": "net"}
    # Who shared its process goes on in another one.
    assert (found["first"]["data"] == found["last"]["data"]) is waits


def test_one_that_waits_goes_on_where_another_ends_its_process(pipe):
    found = run_collectors(
        FakeCollector("net", lambda context: os.read(pipe[0], 1), waits=True),
        FakeCollector("bad", _ends),
        FakeCollector("go", lambda context: os.write(pipe[1], b"x"), needs=("bad",)),
        FakeCollector("after", lambda context: context.data, needs=("net",)),
    )
    assert _statuses(found, "net", "bad", "go", "after") == ["ok", "error", "ok", "ok"]
    assert found["after"]["data"] == {"net": b"x"}


def test_of_several_that_end_their_process_each_costs_itself():
    bad = [FakeCollector(f"bad{number}", _ends) for number in range(6)]
    found = run_collectors(*bad, FakeCollector("good", lambda context: 1))
    assert [found[one.name]["status"] for one in bad] == ["error"] * 6
    assert found["good"]["data"] == 1


def _statuses(found, *names):
    return [found[name]["status"] for name in names]


def test_one_that_opens_a_fifo_is_left_behind(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)

    def read(context):
        return os.open(path, os.O_RDONLY)

    found = run_collectors(
        FakeCollector("fifo", read, timeout=0.3),
        FakeCollector("net", read, timeout=0.3, waits=True),
        FakeCollector("good", lambda context: 1),
    )
    assert _statuses(found, "fifo", "net", "good") == ["timeout", "timeout", "ok"]
    assert found["fifo"]["error"] == found["net"]["error"] == "no answer within 0 s"


def test_one_that_cannot_be_killed_holds_up_nothing(monkeypatch):
    """As in uninterruptible sleep: the signal has no effect while the kernel waits."""
    stuck = set()
    monkeypatch.setattr(channels, "kill", stuck.add)
    try:
        found = run_collectors(
            FakeCollector("stuck", hang, timeout=0.3),
            FakeCollector("net", hang, timeout=0.3, waits=True),
            FakeCollector("good", lambda context: 1, needs=("stuck", "net")),
        )
    finally:
        for pid in stuck:
            os.kill(pid, signal.SIGKILL)
    assert _statuses(found, "stuck", "net", "good") == ["timeout", "timeout", "ok"]
    assert len(stuck) == 2


@pytest.mark.parametrize("bound", ["PATIENCE", "SHARE"])
def test_the_rest_does_not_wait_for_one_that_is_slow(monkeypatch, pipe, bound):
    monkeypatch.setattr(runner, bound, 0)
    found = run_collectors(
        FakeCollector("slow", lambda context: os.read(pipe[0], 1)),
        FakeCollector("next", lambda context: os.write(pipe[1], b"x")),
        FakeCollector("after", lambda context: context.data["slow"], needs=("slow",)),
    )
    assert [found[name]["data"] for name in ("slow", "next", "after")] == [b"x", 1, b"x"]


def test_where_no_process_can_be_made_one_does_all(monkeypatch):
    fork, runner_pid = os.fork, os.getpid()

    def failing_fork():
        if os.getpid() != runner_pid:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", failing_fork)
    found = run_collectors(FakeCollector("a", _pid), FakeCollector("net", _pid, waits=True))
    assert found["a"]["data"] == found["net"]["data"] != runner_pid


def test_more_may_wait_than_there_are_pipes(monkeypatch):
    monkeypatch.setattr(runner, "SLOTS", 2)
    found = run_collectors(
        *(FakeCollector(f"n{number}", lambda context: 1, waits=True) for number in range(5))
    )
    assert [record["data"] for record in found.values()] == [1] * 5


def test_long_answers_come_whole():
    """They are longer than a pipe holds, in both directions."""
    text = "x" * (channels.MAX_COLLECTOR - 1000)
    found = run_collectors(
        FakeCollector("net", lambda context: text, waits=True),
        FakeCollector("a", lambda context: text + "a"),
        FakeCollector("b", lambda context: len(context.data["net"]), needs=("net", "a")),
    )
    assert found["net"]["data"] == text
    assert found["a"]["data"] == text + "a"
    assert found["b"]["data"] == len(text)


def test_what_follows_runs_after_another_process_took_over(monkeypatch):
    more = FakeCollector("more", lambda context: 1, needs=("first",), follows="first")
    monkeypatch.setattr(registry, "COLLECTORS", (more,))
    found = run_collectors(
        FakeCollector("first", lambda context: {"used_up": ["x"]}),
        FakeCollector("bad", _ends, needs=("first",)),
    )
    assert found["more"]["data"] == 1


@pytest.mark.parametrize("names", [None, ["bad", "last"]])
def test_what_follows_one_that_is_slow_runs_in_a_plain_audit(monkeypatch, names):
    rows = (
        FakeCollector("bad", _ends),
        FakeCollector("last", lambda context: 2),
        FakeCollector("why", lambda context: 1, tier=registry.DEEP, follows=registry.SLOW),
        FakeCollector("deep", lambda context: 1, tier=registry.DEEP),
    )
    monkeypatch.setattr(registry, "COLLECTORS", rows)
    found = runner.run({"timeout": 20, "collectors": names}, None, [])
    assert found["last"]["data"] == 2
    assert set(found) - {"bad", "last"} == (set() if names else {"why"})


def test_what_follows_one_that_is_slow_does_not_run_where_none_is(monkeypatch):
    rows = (
        FakeCollector("well", lambda context: 2),
        FakeCollector("why", lambda context: 1, tier=registry.DEEP, follows=registry.SLOW),
    )
    monkeypatch.setattr(registry, "COLLECTORS", rows)
    assert set(runner.run({"timeout": 20}, None, [])) == {"well"}


def test_another_process_has_the_answer_of_systemd_too(systemctl):
    found = run_collectors(
        FakeCollector("bad", _ends),
        Asking("a", _shows, asks=True),
        Asking("b", _shows, asks=True, needs=("bad",)),
    )
    names, properties, _files = limits.question()
    assert found["a"]["data"] == found["b"]["data"] == ([(tuple(names), tuple(properties))], 3)


def test_workers_that_end_before_they_begin_anything_are_not_made_forever(monkeypatch):
    monkeypatch.setattr(worker, "_not_here", lambda collector, processes: os._exit(1))
    found = run_collectors(FakeCollector("a", _pid), FakeCollector("b", _pid))
    assert {record["error"] for record in found.values()} == {
        "the collector's process ended without an answer"
    }
    assert set(found) == {"a", "b"}


def test_a_worker_that_says_nothing_is_replaced(monkeypatch):
    monkeypatch.setattr(runner, "SILENCE", 0.3)
    monkeypatch.setattr(worker, "_not_here", lambda collector, processes: time.sleep(6000))
    assert _statuses(run_collectors(FakeCollector("a", _pid)), "a") == ["error"]


@pytest.mark.parametrize("waits", [False, True])
def test_at_the_end_of_all_what_was_not_begun_is_late_or_absent(waits):
    found = run_collectors(
        FakeCollector("slow", hang, timeout=3000, waits=waits),
        FakeCollector("next", hang, timeout=3000, needs=("slow",)),
        FakeCollector("absent", hang, needs=("slow",), path="/nowhere"),
        timeout=2,
    )
    assert _statuses(found, "slow", "next", "absent") == ["timeout", "timeout", "absent"]
    assert found["next"]["error"] == "no answer within 0 s"


def test_a_worker_that_cannot_say_what_is_late_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(runner, "GRACE", 0)
    found = run_collectors(
        FakeCollector("slow", hang, timeout=3000),
        FakeCollector("next", hang, timeout=3000, needs=("slow",)),
        timeout=2,
    )
    assert _statuses(found, "slow", "next") == ["timeout", "timeout"]


def test_a_program_that_cannot_begin_is_one_error(monkeypatch):
    def broken(*_values):
        raise SyntaxError("broken")

    monkeypatch.setattr(worker, "work", broken)
    assert json.loads(runner.collect({})) == {"failed": "SyntaxError: broken"}


def test_a_first_process_that_ends_at_once_is_one_error(monkeypatch):
    monkeypatch.setattr(worker, "work", lambda *_values: os._exit(1))
    assert set(json.loads(runner.collect({}))) == {"failed"}


def _descriptors():
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_no_descriptor_and_no_process_remains():
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)  # those that other tests killed
    before = _descriptors()
    run_collectors(
        FakeCollector("a", lambda context: 1),
        FakeCollector("net", lambda context: 1, waits=True),
        FakeCollector("b", lambda context: 1, needs=("net",)),
    )
    assert _descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    run_collectors(FakeCollector("a", _ends), FakeCollector("b", hang, timeout=0.2))
    assert _descriptors() == before


def _pipes():
    links = set()
    for fd in range(200):
        with contextlib.suppress(OSError):
            links.add(str(Path(f"/proc/self/fd/{fd}").readlink()))
    return sorted(link for link in links if link.startswith("pipe:"))


def test_a_collector_holds_no_other_pipe_of_the_runner():
    """Else the end of one process would not be seen while another one works."""
    here = _pipes()

    def pipes(context):
        return len(set(_pipes()).difference(here))

    found = run_collectors(
        FakeCollector("net", pipes, waits=True),
        FakeCollector("bad", _ends),  # so that all that follows has a process of its own
        FakeCollector("a", pipes, needs=("bad",)),
        FakeCollector("b", pipes, needs=("bad",)),
    )
    assert [found[name]["data"] for name in ("net", "a", "b")] == [1, 1, 1]


@pytest.mark.parametrize("waits", [False, True])
def test_where_the_runner_is_killed_no_collector_begins(waits):
    said, alive, go = os.pipe(), os.pipe(), os.pipe()

    def first(context):
        os.write(said[1], b"1")
        os.read(go[0], 1)

    def second(context):
        os.write(said[1], b"2")

    pid = os.fork()
    if pid == 0:
        try:
            for end in (said[0], alive[0], go[1]):
                os.close(end)
            run_collectors(
                FakeCollector("first", first, waits=waits),
                FakeCollector("second", second, needs=("first",)),
            )
        finally:
            os._exit(0)
    for end in (said[1], alive[1], go[0]):
        os.close(end)
    assert os.read(said[0], 1) == b"1"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(go[1])
    assert os.read(alive[0], 1) == b""  # every process has ended
    assert os.read(said[0], 1) == b""
    for end in (said[0], alive[0]):
        os.close(end)


def test_ends_of_children_may_be_ignored():
    """The kernel reaps them then, and every wait for one fails."""
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = run_collectors(
            FakeCollector("a", lambda context: 1),
            FakeCollector("net", lambda context: 1, waits=True),
            FakeCollector("bad", _ends),
        )
    finally:
        signal.signal(signal.SIGCHLD, former)
    assert _statuses(found, "a", "net", "bad") == ["ok", "ok", "error"]


def test_signals_may_be_blocked():
    blocked = {signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE}
    former = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        found = run_collectors(
            FakeCollector("bad", _ends),
            FakeCollector("slow", hang, timeout=0.3),
            FakeCollector("net", lambda context: 1, waits=True),
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
    assert _statuses(found, "bad", "slow", "net") == ["error", "timeout", "ok"]


def _in_child(collectors, prepare):
    """Return the records of collectors that run in a process prepared in this way."""
    answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(answer[1], 9)
            prepare()
            records = run_collectors(*collectors)
            channels.write(9, json.dumps(records).encode())
        finally:
            os._exit(0)
    os.close(answer[1])
    with os.fdopen(answer[0]) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text)


@pytest.mark.parametrize("limit", [20, 40, 64])
def test_few_files_may_be_open(limit):
    def prepare():
        os.closerange(10, 4096)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    names = ("a", "net", "b", "c")
    collectors = [
        FakeCollector("a", lambda context: 1),
        FakeCollector("net", lambda context: 1, waits=True),
        FakeCollector("bad", _ends),  # another worker, which wants more pipes
        FakeCollector("b", lambda context: 1, needs=("bad",)),
        FakeCollector("c", lambda context: 1, needs=("bad",)),
    ]
    assert _statuses(_in_child(collectors, prepare), *names) == ["ok"] * 4


@pytest.mark.parametrize("closed", [(0,), (0, 2), (0, 1, 2), (1, 2)])
def test_standard_streams_may_be_closed(closed):
    def prepare():
        for fd in closed:
            os.close(fd)

    collectors = [
        FakeCollector("a", lambda context: 1),
        FakeCollector("net", lambda context: 1, waits=True),
    ]
    assert _statuses(_in_child(collectors, prepare), "a", "net") == ["ok", "ok"]


def test_where_no_worker_can_be_made_no_pipe_remains(monkeypatch):
    def failing_fork():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", failing_fork)
    before = _descriptors()
    with pytest.raises(BlockingIOError):
        run_collectors(FakeCollector("a", _pid))
    assert _descriptors() == before


@pytest.mark.parametrize("waits", [False, True])
def test_a_process_that_a_collector_leaves_behind_holds_up_no_answer(pipe, waits):
    """Such as a command that never begins, because its program is on a dead mount."""

    def leave(context):
        if os.fork() == 0:
            os.read(pipe[0], 1)
            os._exit(0)
        return 1

    found = run_collectors(
        FakeCollector("first", leave, waits=waits),
        FakeCollector("net", lambda context: 1, waits=True, needs=("first",)),
        FakeCollector("last", lambda context: 1, needs=("net",)),
    )
    os.write(pipe[1], b"x")
    assert _statuses(found, "first", "net", "last") == ["ok", "ok", "ok"]


@pytest.fixture
def idle_worker():
    read, write = os.pipe()
    yield channels.Worker(0, read, write, [])
    os.close(read)
    os.close(write)


def _wait_for_patience(monkeypatch, pipe, runnable):
    """Run one that is slow until another one begins; return whether that came to pass."""
    monkeypatch.setattr(runner, "PATIENCE", 0.1 / base.scale({"timeout": 600}))
    monkeypatch.setattr(channels, "runnable", lambda pid: (0.0, 0.0 if pid == "self" else runnable))
    return run_collectors(
        FakeCollector("slow", lambda context: os.read(pipe[0], 1), timeout=1),
        FakeCollector("next", lambda context: os.write(pipe[1], b"x")),
    )


def test_one_that_waits_for_a_processor_is_not_relieved(monkeypatch, pipe):
    found = _wait_for_patience(monkeypatch, pipe, runnable=1000.0)
    assert _statuses(found, "slow", "next") == ["timeout", "ok"]


def test_one_that_does_not_wait_for_a_processor_is_relieved(monkeypatch, pipe):
    found = _wait_for_patience(monkeypatch, pipe, runnable=0.0)
    assert _statuses(found, "slow", "next") == ["ok", "ok"]


@pytest.mark.parametrize(
    ("elapsed", "spent", "records", "is_relieved"),
    [
        (9.0, 9.0, 0, False),  # there is time to see its pace
        (11.0, 9.0, 0, True),
        (11.0, 10.0, 6, False),  # 7 s more
        (11.0, 10.0, 3, True),  # 23 s more
        (20.0, 10.0, 6, True),  # it began late
        (24.0, 20.0, 10, False),
    ],
)
def test_a_starved_worker_goes_on_while_it_will_end_in_time(
    monkeypatch, idle_worker, elapsed, spent, records, is_relieved
):
    monkeypatch.setattr(channels, "runnable", lambda pid: (0.0, 1000.0))
    run = runner._Run({"timeout": 31})
    run.end, run.names = 130.0, dict.fromkeys(map(str, range(10)))
    run.records = dict.fromkeys(map(str, range(records)))
    idle_worker.job, idle_worker.spent = channels.Job("a", "reads", 100.0 + elapsed, 130.0), spent
    assert (run._patience(idle_worker, 100.0 + elapsed) <= 0) is is_relieved


@pytest.mark.parametrize(("timeout", "is_relieved"), [(30, True), (120, False)])
def test_more_time_for_all_is_more_patience_with_one_that_is_blocked(
    monkeypatch, idle_worker, timeout, is_relieved
):
    monkeypatch.setattr(channels, "runnable", lambda pid: (0.0, 0.0))
    run = runner._Run({"timeout": timeout})
    begin = run.end - run.seconds
    idle_worker.job = channels.Job("a", "reads", begin, begin + 30.0)
    assert (run._patience(idle_worker, begin + 4.0) <= 0) is is_relieved


@pytest.mark.parametrize(
    ("processors", "begun", "is_relieved"), [(1, 11.0, False), (1, 4.0, True), (2, 11.0, True)]
)
def test_a_worker_with_the_only_processor_goes_on(
    monkeypatch, idle_worker, processors, begun, is_relieved
):
    monkeypatch.setattr(channels, "runnable", lambda pid: (1000.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(processors)))
    run = runner._Run({"timeout": 31})
    run.end, run.names = 130.0, dict.fromkeys(map(str, range(10)))
    idle_worker.job, idle_worker.spent = channels.Job("a", "reads", 100.0 + begun, 130.0), 11.0
    assert (run._patience(idle_worker, 112.0) <= 0) is is_relieved


def test_one_whose_path_blocks_costs_only_itself(monkeypatch):
    not_here = worker._not_here

    def blocking(collector, processes):
        if collector.path:
            time.sleep(6000)
        return not_here(collector, processes)

    monkeypatch.setattr(worker, "_not_here", blocking)
    found = run_collectors(
        FakeCollector("dead", lambda context: 1, path="/dead", timeout=0.3),
        FakeCollector("net", lambda context: 1, waits=True),
        FakeCollector("good", lambda context: 1),
    )
    assert _statuses(found, "dead", "net", "good") == ["timeout", "ok", "ok"]


def test_one_that_is_relieved_while_its_path_is_looked_for_has_its_record(monkeypatch, pipe):
    monkeypatch.setattr(runner, "PATIENCE", 0)
    not_here = worker._not_here

    def slow(collector, processes):
        if collector.path:
            os.read(pipe[0], 1)
        return not_here(collector, processes)

    monkeypatch.setattr(worker, "_not_here", slow)
    found = run_collectors(
        FakeCollector("absent", lambda context: 1, path="/nowhere"),
        FakeCollector("next", lambda context: os.write(pipe[1], b"x")),
        FakeCollector("after", lambda context: 1, needs=("absent",)),
    )
    assert _statuses(found, "absent", "next", "after") == ["absent", "ok", "ok"]


def test_a_first_worker_may_take_all_the_time_to_begin(monkeypatch):
    monkeypatch.setattr(runner, "SILENCE", 0)
    release = os.pipe()
    former = worker.procfs.of_interest

    def slow():
        os.read(release[0], 1)
        return former()

    monkeypatch.setattr(worker.procfs, "of_interest", slow)
    run = runner._Run({"timeout": 600}, [FakeCollector("a", _pid)])
    run._start_worker()
    assert run._limit(run.main) == run.end
    os.write(release[1], b"x")
    while run.channels:
        for fd, _event in run.poll.poll():
            run._take(fd, run.channels[fd])
    assert _statuses(run.records, "a") == ["ok"]
    for end in release:
        os.close(end)


def test_the_time_limit_holds_for_all():
    run = runner._Run({"timeout": 30})
    assert run.end + runner.GRACE <= time.monotonic() + 30
