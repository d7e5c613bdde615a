# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One level: raised and journalled, refused, lost on the way, put back, taken back.

Some tests ask for it over a real port.
"""

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    klog_level as level,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    klog_verbosity,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    level_target,
    pending_changes,
    revert_plan,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    interrupted_changes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_endpoints,
    component_process,
)
from tests.unit.support.fake_verbosity import KUBELET, NEXT, RUN, SCHEDULER, Killed, Levels, digest
from tests.unit.support.waiting import Clock

THIRD = "20261121T110000Z-aaaaaa"
LOST = level.LevelError("it does not answer")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Levels:
    return Levels(tmp_path / "kubemend", monkeypatch)


levels_of, REAL_ASK = klog_verbosity.explicit_verbosity, level.Levels._ask


def present(node: Levels, number: int = 0, run_id: str = RUN) -> "str | None":
    item = journal.read_run(run_id, node.root)[number]
    return level_target.present(run_id, item["entry"], item["intent"], node.root)


@pytest.mark.parametrize(
    "real",
    [
        "level:kubelet/../x",
        "level:kubelet/w1/../../secrets",
        "level:kubelet/..",
        "level:kubelet/w1/proxy",
        "level:kubelet/w1?x=1",
        "level:kubelet/w1#",
        "level:kubelet/w1\n",
        "level:kubelet/W1",
        "level:kubelet/",
        "level:kubelet",
        "level:kubelet/%2e%2e",
        "level:kubelet/w1-",
        "level:kube-proxy",
        "level:etcd",
        "level:kube-scheduler/w1",
        "level:kube-scheduler\n",
        "xlevel:kube-scheduler",
        "levelXkube-scheduler",
        "/etc/passwd",
        "",
    ],
)
def test_what_names_no_level_is_never_asked_for(node: Levels, real: str) -> None:
    with pytest.raises(storage.ChangeError, match="names no log level"):
        node.up(real)
    assert not node.asked
    assert journal.open_entries(node.root) == []


def test_raised_and_put_back(node: Levels) -> None:
    seen: list[Any] = []
    node.at_put = lambda real: seen.append(
        [item["intent"]["real"] for item in journal.open_entries(node.root)]
    )
    assert node.up() == f"{RUN}/001-raise"
    assert seen == [[SCHEDULER]]  # the intent is on the disk before it is asked for
    (item,) = journal.read_run(RUN, node.root)
    assert item["end"]["result"] == "committed"
    assert item["intent"]["path"] == "log level of kube-scheduler"
    assert (item["intent"]["former"], item["intent"]["level"], item["intent"]["seconds"]) == (
        "2",
        "4",
        60,
    )
    assert journal.former_bytes(item, node.root) == b"2"
    assert item["intent"]["clock"][0] == storage.clock()[0]
    assert node.levels[SCHEDULER] == 4
    assert node.raised() == [SCHEDULER]
    assert present(node) == digest(4)
    assert node.down() == f"{RUN}/002-restore"
    assert node.levels[SCHEDULER] == 2
    assert node.raised() == []
    assert present(node) == present(node, 1) == digest(2)
    assert (
        journal.read_run(RUN, node.root)[1]["intent"]["what"]
        == "put back: log level of kube-scheduler"
    )
    assert node.results() == ["committed"] * 2
    assert list(node.puts()) == [
        (SCHEDULER, 4),
        (SCHEDULER, 2),
    ]


def test_levels_of_others_are_told_apart(node: Levels) -> None:
    node.up()
    node.up(KUBELET, 0, run_id=NEXT)
    assert node.raised() == [SCHEDULER, KUBELET]
    assert present(node, run_id=NEXT) == digest(4)
    item = level_target.raised(node.root)[0]
    with node.step().exclusive() as root_fd, level.Levels() as levels:
        level.put_back(levels, item, node.step(THIRD), root_fd)
    assert node.raised() == [KUBELET]
    assert present(node) == digest(2)


@pytest.mark.parametrize(
    ("code", "text", "word"),
    [
        (404, "404 page not found", "without profiling"),
        (404, "", "offers no /debug/flags/v"),
        (405, "debug endpoints are disabled.", "without profiling"),
        (401, "Unauthorized", "does not let us"),
        (403, "Forbidden", "HTTP 403 Forbidden"),
        (500, "no", "HTTP 500"),
    ],
)
def test_what_is_not_offered(node: Levels, code: int, text: str, word: str) -> None:
    node.answers[SCHEDULER] = code, text
    with level.Levels() as levels, pytest.raises(level.LevelError, match=word):
        levels.offered(SCHEDULER)
    assert not list(node.puts())


@pytest.mark.parametrize(
    ("real", "word"),
    [(KUBELET, "enableDebuggingHandlers"), ("level:kube-controller-manager", "before 1.23")],
)
def test_why_it_is_not_offered(node: Levels, real: str, word: str) -> None:
    node.answers[real] = 404, ""
    with level.Levels() as levels, pytest.raises(level.LevelError, match=word):
        levels.offered(real)


def test_offered_changes_nothing(node: Levels) -> None:
    with level.Levels() as levels:
        levels.offered(SCHEDULER)  # 406: the method alone is wrong
    assert node.asked == [("GET", SCHEDULER, None)]
    assert not Path(node.root).exists()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405])
def test_a_no_changed_nothing(node: Levels, code: int) -> None:
    """nodes/proxy may be granted for get alone: what is refused must not stand open for ever."""
    node.answers[KUBELET] = code, "Forbidden"
    with pytest.raises(
        level.LevelError, match=f"kubelet of w1 did not take level 4 .HTTP {code} Forbidden"
    ):
        node.up(KUBELET, 0)
    (item,) = journal.read_run(RUN, node.root)
    assert item["end"]["result"] == "not_done"
    assert "did not take" in item["end"]["reason"]
    assert node.raised() == []
    assert present(node) == digest(0)
    assert revert_plan.plan_revert(RUN, node.root) == []


@pytest.mark.parametrize(
    "answer",
    [
        (500, "error trying to reach service: EOF"),
        (503, ""),
        (408, ""),
        (200, "something else"),
        LOST,
    ],
)
def test_an_answer_that_tells_nothing_leaves_it_open(node: Levels, answer: Any) -> None:
    node.answers[SCHEDULER] = answer
    with pytest.raises(level.LevelError):
        node.up()
    assert node.results() == [None]
    assert node.raised() == []
    with pytest.raises(storage.ChangeError, match="KM902"):
        present(node)
    (pending,) = pending_changes.pending(node.root)
    assert pending["state"] == "unknown"
    assert "cannot be read back" in pending["error"]
    assert pending["temp"] is None
    (one,) = revert_files.revert(RUN, node.step(NEXT))
    assert (one["result"], one["changed"]) == ("refused", False)
    assert "KM902" in one["reason"]
    del node.answers[SCHEDULER]
    (ended,) = interrupted_changes.recover_all(node.step(NEXT))
    assert (ended["result"], ended["sha256"]) == ("not_done", digest(2))
    assert node.levels[SCHEDULER] == 2
    assert node.results() == ["not_done"]
    assert present(node) == digest(2)
    assert pending_changes.pending(node.root) == []


@pytest.mark.parametrize(("real", "former"), [(SCHEDULER, 2), (KUBELET, 0)])
def test_killed_between_the_answer_and_the_record(node: Levels, real: str, former: int) -> None:
    node.killed = True
    with pytest.raises(Killed):
        node.up(real, former)
    node.killed = False
    assert node.levels[real] == 4
    assert node.results() == [None]
    assert interrupted_changes.recover_all(node.step(NEXT, check=True))[0]["result"] == "not_done"
    assert node.levels[real] == 4
    assert node.results() == [None]
    assert interrupted_changes.recover_all(node.step(NEXT))[0]["result"] == "not_done"
    assert node.levels[real] == former
    assert node.results() == ["not_done"]
    assert interrupted_changes.recover_all(node.step(NEXT)) == []


def test_what_does_not_answer_stays_open_and_keeps_no_other_from_its_end(node: Levels) -> None:
    for real, former in ((SCHEDULER, 2), (KUBELET, 0)):
        node.answers[real] = LOST
        with pytest.raises(level.LevelError):
            node.up(real, former)
    del node.answers[SCHEDULER]
    first, second = interrupted_changes.recover_all(node.step(NEXT))
    assert (first["result"], second["result"]) == (
        "not_done",
        None,
    )
    assert "does not answer" in second["error"]
    assert node.results() == ["not_done", None]


@pytest.mark.parametrize(("real", "former"), [(SCHEDULER, 2), (KUBELET, 0)])
def test_a_putting_back_that_was_interrupted_never_raises_again(
    node: Levels, monkeypatch: pytest.MonkeyPatch, real: str, former: int
) -> None:
    node.up(real, former)

    def killed(dummy: Any) -> None:
        raise Killed

    # what kills is only there meanwhile
    with monkeypatch.context() as during:
        during.setattr(journal_entry.Entry, "commit", killed)
        with pytest.raises(Killed):
            node.down()
    assert node.results() == ["committed", None]
    assert node.raised() == [real]
    assert interrupted_changes.recover_all(node.step(NEXT))[0]["result"] == "not_done"
    assert node.levels[real] == former
    assert list(node.puts())[1:] == [(real, former)] * 2
    node.down(NEXT)
    assert node.raised() == []
    assert node.levels[real] == former


def test_a_process_that_is_gone_took_its_level_with_it(node: Levels) -> None:
    node.up()
    node.argv, asked = None, len(node.asked)
    node.down()
    assert len(node.asked) == asked
    assert node.raised() == []


def test_an_open_entry_of_a_process_that_is_gone_ends(node: Levels) -> None:
    node.answers[SCHEDULER] = LOST
    with pytest.raises(level.LevelError):
        node.up()
    node.argv, asked = None, len(node.asked)
    assert interrupted_changes.recover_all(node.step(NEXT))[0]["result"] == "not_done"
    assert len(node.asked) == asked


def test_what_cannot_be_put_back_stays_raised(node: Levels) -> None:
    node.up(KUBELET, 0)
    for answer in ((500, ""), (403, "Forbidden"), LOST):
        node.answers[KUBELET] = answer
        with pytest.raises(level.LevelError):
            node.down()
        assert node.raised() == [KUBELET]
        assert node.results() == ["committed"]


def test_taken_back_by_revert(node: Levels) -> None:
    node.up()
    (one,) = revert_plan.plan_revert(RUN, node.root)
    assert (one["state"], one["path"], one["real"]) == (
        "restore",
        "log level of kube-scheduler",
        SCHEDULER,
    )
    assert (one["sha256_left"], one["sha256_former"], one["sha256_present"]) == (
        digest(4),
        digest(2),
        digest(4),
    )
    (checked,) = revert_files.revert(RUN, node.step(NEXT, check=True))
    assert checked["result"] == "restored"
    assert node.levels[SCHEDULER] == 4
    assert node.raised() == [SCHEDULER]
    (one,) = revert_files.revert(RUN, node.step(NEXT))
    assert (one["result"], one["changed"], one["entry"]) == ("restored", True, f"{NEXT}/001-raise")
    assert node.levels[SCHEDULER] == 2
    assert node.raised() == []
    asked = len(node.asked)
    (one,) = revert_files.revert(RUN, node.step(NEXT))
    assert (one["result"], one["changed"]) == ("already", False)
    (one,) = revert_files.revert(NEXT, node.step(THIRD))
    assert (one["result"], one["changed"]) == (
        "kept",
        False,
    )
    assert "raised again by capture_logs only" in one["reason"]
    assert len(node.asked) == asked
    assert node.levels[SCHEDULER] == 2
    assert journal.list_runs(node.root)[1]["reverts"] == [RUN]


def test_what_the_run_put_back_itself_is_already_there(node: Levels) -> None:
    node.up()
    node.down()
    (one,) = revert_plan.plan_revert(RUN, node.root)
    assert one["state"] == "already"
    assert len(one["entries"]) == 2
    assert one["sha256_present"] == one["sha256_former"] == digest(2)


def test_a_level_raised_twice_by_one_run_is_put_back_once_more(node: Levels) -> None:
    node.up()
    node.down()
    node.up(to=5)
    assert node.raised() == [SCHEDULER]
    assert present(node, 2) == digest(5)
    assert present(node) == digest(2)
    assert revert_files.revert(RUN, node.step(NEXT))[0]["result"] == "restored"
    assert node.levels[SCHEDULER] == 2
    assert node.raised() == []


def test_a_revert_that_is_not_answered_is_refused_and_can_be_tried_again(node: Levels) -> None:
    node.up()
    node.answers[SCHEDULER] = LOST
    assert revert_files.revert(RUN, node.step(NEXT))[0]["result"] == "refused"
    assert node.raised() == [SCHEDULER]
    del node.answers[SCHEDULER]
    assert revert_files.revert(RUN, node.step(NEXT))[0]["result"] == "restored"


# Over a real port of 127.0.0.1.


class Serving:
    """answers: (code, text) one after the other, the last for ever; None closes without one."""

    def __init__(self, *answers: "tuple[int, str] | None") -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, bytes]] = []
        serving = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                serving.asked.append((self.command, self.path, body))
                answer = serving.answers.pop(0) if len(serving.answers) > 1 else serving.answers[0]
                if answer is None:
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1].encode("ascii"))

            do_GET = do_PUT  # noqa: N815 - named by http.server

            def log_message(self, *dummy: Any) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = []

    def start(*answers: "tuple[int, str] | None", started: "float | None" = None) -> Serving:
        one = Serving(*answers)
        made.append(one)
        monkeypatch.setattr(
            component_process,
            "instances",
            lambda dummy: [SimpleNamespace(argv=["kube-scheduler"], started_at=started)],
        )
        monkeypatch.setattr(
            component_endpoints, "doors", lambda *dummy: [("127.0.0.1", one.port, False)]
        )
        return one

    yield start
    for one in made:
        one.server.shutdown()
        one.server.server_close()


def test_put_over_the_wire(serve: Any) -> None:
    one = serve((200, "successfully set klog.logging.verbosity to 6"))
    with level.Levels() as levels:
        levels.put(SCHEDULER, 6)
    assert one.asked == [("PUT", "/debug/flags/v", b"6")]


def test_get_over_the_wire_has_no_body(serve: Any) -> None:
    one = serve((406, "unrecognized http method"))
    with level.Levels() as levels:
        levels.offered(SCHEDULER)
    assert one.asked == [("GET", "/debug/flags/v", b"")]


def test_a_component_that_has_just_started_is_asked_again(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level, "PATIENCE", 120)
    one = serve((403, "Forbidden"), (200, "successfully set"), started=time.time())
    with level.Levels() as levels:
        levels.put(SCHEDULER, 6)
    assert len(one.asked) == 2


def test_patience_ends(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    clock = Clock()
    monkeypatch.setattr(level, "PATIENCE", 0.5)
    monkeypatch.setattr(
        level,
        "time",
        SimpleNamespace(
            time=clock.time,
            monotonic=clock.monotonic,
            sleep=lambda seconds: (
                naps.append(seconds)
                or (clock.sleep(seconds) if len(naps) < 3 else pytest.fail("for ever"))
            ),
        ),
    )
    one = serve((403, "Forbidden"), started=clock.now)
    with level.Levels() as levels, pytest.raises(level.LevelError, match="HTTP 403"):
        levels.put(SCHEDULER, 6)
    assert len(one.asked) == 2
    assert naps == [1]


@pytest.mark.parametrize(("second", "code"), [((200, "successfully set"), 200), ((401, "no"), 401)])
def test_certificates_are_tried_one_after_the_other(
    serve: Any, monkeypatch: pytest.MonkeyPatch, second: tuple[int, str], code: int
) -> None:
    one, used = serve((403, "Forbidden"), second), []
    monkeypatch.setattr(
        component_endpoints, "doors", lambda *dummy: [("127.0.0.1", one.port, True)]
    )
    monkeypatch.setattr(level.tls, "context", lambda *pair: used.append(pair))
    with level.Levels() as levels:
        levels.certificates = [("/a", "/a.key"), ("/b", "/b.key")]
        found, text = levels._ask("kube-scheduler", None, "PUT", b"4")
    assert found == code
    assert used == [("/a", "/a.key"), ("/b", "/b.key")]
    assert len(one.asked) == 2
    assert (text == "successfully set") == (code == 200)
    assert ("certificate" in text) == (code != 200)


def test_of_two_processes_the_youngest_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_process, "instances", lambda dummy: ["young", "old"])
    assert level.process("kube-scheduler") == "young"


@pytest.mark.parametrize("started", [None, 1.0])
def test_an_old_one_is_not(serve: Any, started: "float | None") -> None:
    one = serve((403, "Forbidden"), started=started)
    with level.Levels() as levels, pytest.raises(level.LevelError, match="HTTP 403") as error:
        levels.put(SCHEDULER, 6)
    assert len(one.asked) == 1
    assert error.value.refused


def test_a_lost_answer_is_no_refusal(serve: Any) -> None:
    one = serve(None)
    silent = pytest.raises(level.LevelError, match="kube-scheduler does not answer at its port")
    with level.Levels() as levels, silent as error:
        levels.put(SCHEDULER, 6)
    assert not error.value.refused
    assert len(one.asked) == 1


def test_no_escape_sequence_of_an_answer_is_passed_on(serve: Any) -> None:
    serve((400, "\x1b[31mno\r\nno"))
    with level.Levels() as levels, pytest.raises(level.LevelError) as error:
        levels.put(SCHEDULER, 6)
    assert "\x1b" not in str(error.value)
    assert "\n" not in str(error.value)


def test_without_a_process_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component_process, "instances", lambda dummy: [])
    refused = pytest.raises(level.LevelError, match="no static pod of kube-scheduler runs")
    with refused, level.Levels() as levels:
        levels.put(SCHEDULER, 6)


def test_a_kubelet_is_asked_through_one_door_to_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    import contextlib

    opened, asked = [], []

    @contextlib.contextmanager
    def reached(via: Any, read_only: bool, seconds: int) -> Iterator[Any]:
        opened.append((via, read_only))

        def text(*what: Any) -> tuple[int, str]:
            asked.append(what[:3])
            if len(asked) > 2:
                raise ApiError("timeout", "timed out")
            return 200, "successfully set"

        yield SimpleNamespace(text=text), {}
        opened.append("closed")

    monkeypatch.setattr(level, "reached", reached)
    with level.Levels({"kubectl": "/x"}) as levels:
        levels.put(KUBELET, 4)
        levels.put("level:kubelet/w2", 5)
        with pytest.raises(
            level.LevelError, match="the kubelet of w1 cannot be asked through the API"
        ) as error:
            levels.put(KUBELET, 4)
    assert not error.value.refused
    assert opened == [({"kubectl": "/x"}, False), "closed"]
    assert asked[:2] == [
        ("PUT", "/api/v1/nodes/w1/proxy/debug/flags/v", b"4"),
        ("PUT", "/api/v1/nodes/w2/proxy/debug/flags/v", b"5"),
    ]


@pytest.mark.parametrize(
    ("argv", "level"),
    [
        (["kubelet", "-v6"], 6),
        (["kubelet", "-v=5"], 5),
        (["kubelet", "--v", "3"], 3),
        (["kubelet", "--v=1", "-v2"], 2),
        (["kubelet", "--v=0"], 0),
        (["kubelet"], None),
        (["kubelet", "--version"], None),
        (["kubelet", "--v=x"], 0),
        (["kubelet", "--v=" + "9" * 5000], 0),
        ([7, None], None),
    ],
)
def test_the_level_that_a_command_line_sets(argv: Any, level: "int | None") -> None:
    assert levels_of(argv) == level


def test_a_node_that_is_gone_took_its_level_with_it(
    node: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server's own 404 names the Node.

    The kubelet's, which offers no such endpoint, does not.
    """

    class Api:
        text_of = (
            '{"kind":"Status","message":"nodes \\"w1\\" not'
            ' found","reason":"NotFound","details":{"name":"w1","kind":"nodes"},"code":404}'
        )

        def text(self, *dummy: Any) -> "tuple[int, str]":
            return 404, self.text_of

    levels = level.Levels()
    levels.api = Api()
    monkeypatch.setattr(level.Levels, "_ask", REAL_ASK)
    with pytest.raises(level.NodeGone, match="knows no Node w1"):
        levels.put(KUBELET, 4)
    level._put(levels, {"real": KUBELET, "former": "0", "level": "4", "reverts": None})
    Api.text_of = "404 page not found"
    with pytest.raises(level.LevelError) as told:
        level._put(levels, {"real": KUBELET, "former": "0", "level": "4", "reverts": None})
    assert not isinstance(told.value, level.NodeGone)
    assert told.value.refused
