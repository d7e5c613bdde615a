# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a kubelet's journal.

When it is asked for, what of it is kept, what leaves the node.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    kubelet_end,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command, files

NOW = 1795375430.0
UP = {"name": "kubelet.service", "active_state": "active", "sub_state": "running", "n_restarts": 0}
PREFIX = "2026-11-22T18:31:29+0000 w1 kubelet[20288]: "
SYSTEMD = "2026-11-22T18:31:29+0000 w1 systemd[1]: "
# v1.18.4: klog.Fatal prints every goroutine
STACK = [
    PREFIX + "F1122 18:31:29.346075   20288 server.go:157] unknown flag: --nope",
    PREFIX + "goroutine 1 [running]:",
    PREFIX + "k8s.io/kubernetes/vendor/k8s.io/klog.stacks(0xc000010001, 0xc0000cc000, 0x5a, 0xb3)",
    PREFIX + "\t/workspace/vendor/k8s.io/klog/klog.go:875 +0xb8",
    PREFIX + "main.main()",
    PREFIX + "\t/workspace/cmd/kubelet/kubelet.go:37 +0xe2",
    PREFIX + "goroutine 19 [chan receive, 2 minutes]:",
    PREFIX + "created by k8s.io/kubernetes/vendor/k8s.io/klog.init.0",
    PREFIX + "\t/workspace/vendor/k8s.io/klog/klog.go:411 +0xd8",
    SYSTEMD + "kubelet.service: Main process exited, code=exited, status=255/n/a",
]


@pytest.mark.parametrize(
    ("changes", "started", "wanted"),
    [
        ({}, NOW - 5, False),
        ({"n_restarts": 3}, NOW - 5, True),
        ({"n_restarts": 3}, NOW - 601, False),
        ({"n_restarts": None}, NOW - 5, True),
        ({"n_restarts": None}, NOW - 601, False),
        ({"n_restarts": 3}, None, False),
        ({"active_state": "activating", "sub_state": "auto-restart"}, None, True),
        ({"active_state": "inactive", "sub_state": "dead"}, None, True),
        ({"active_state": "failed", "sub_state": "failed"}, None, True),
    ],
)
def test_when_the_journal_is_asked(changes, started, wanted):
    assert (
        kubelet_end.is_relevant(dict(UP, **changes), started and {"started_at": started}, NOW)
        is wanted
    )


@pytest.mark.parametrize(
    "known", [None, {}, {"unit": None}, {"unit": UP, "process": {"started_at": NOW}}]
)
def test_a_kubelet_that_runs_costs_nothing(known, monkeypatch):
    def never(*dummy):
        raise AssertionError("journalctl was called")

    monkeypatch.setattr(command, "run", never)
    with pytest.raises(base.Absent):
        kubelet_end.collect(base.Context({}, [], {"kubelet": known}))


def test_the_newest_lines_first_from_journald_the_oldest_first_in_evidence(monkeypatch):
    asked = []

    def run(argv, seconds, limit):
        asked.append((argv, limit))
        return "\n".join(
            [
                SYSTEMD + "Stopped kubelet.service - kubelet.",
                PREFIX + "token=abcdefghijklmnopqrstuvwxyz",
                "",
            ]
        )

    monkeypatch.setattr(command, "run", run)
    context = base.Context(
        {}, [], {"kubelet": {"unit": dict(UP, active_state="inactive", sub_state="dead")}}
    )
    found = kubelet_end.collect(context)
    assert found["unit"] == "kubelet.service"
    assert not context.truncated
    assert found["lines"] == [
        PREFIX + "token=" + "*" * 26,
        SYSTEMD + "Stopped kubelet.service - kubelet.",
    ]
    assert asked[0][0][-2:] == ["-u", "kubelet.service"]
    assert "-r" in asked[0][0]
    assert "-q" not in asked[0][0]
    assert asked[0][1] == kubelet_end.READ_BYTES


@pytest.mark.parametrize(
    ("error", "uid", "raised"),
    [(command.CommandError("late"), 0, base.Failed), (command.Silent("no"), 1000, base.Denied)],
)
def test_no_answer_is_not_an_empty_one(error, uid, raised, monkeypatch):
    def run(*dummy):
        raise error

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(kubelet_end.os, "geteuid", lambda: uid)
    with pytest.raises(raised):
        kubelet_end.collect(
            base.Context({}, [], {"kubelet": {"unit": dict(UP, active_state="failed")}})
        )


def test_stacks_are_left_out_and_last_words_are_not():
    assert kubelet_end.last(STACK) == [STACK[0], STACK[-1]]
    words = [
        PREFIX + 'E1122 18:31:29.346075   20288 run.go:72] "command failed" err="x(y.z)"',
        PREFIX + "\t/a.go:1",
        PREFIX + "panic: f.g(x)",
        PREFIX + "\t/b.go:2",
    ]
    assert kubelet_end.last(words) == [words[0], words[2]]


def test_what_is_indented_stays_so_and_nothing_else_is_unprintable():
    assert kubelet_end.last(
        [PREFIX + "\tF1122 18:31:29.346075   20288 x.go:1] unknown flag: --x\x1b[31m"]
    ) == [PREFIX + "\tF1122 18:31:29.346075   20288 x.go:1] unknown flag: --x [31m"]


def test_bounded_in_lines_in_bytes_and_in_each_line():
    many = [PREFIX + f"{number}" for number in range(2000)]
    assert kubelet_end.last(many) == many[-kubelet_end.KEPT :]
    assert len(kubelet_end.last([PREFIX + "x" * 100000])[0]) == kubelet_end.LONGEST
    long = kubelet_end.last([PREFIX + "x" * 100000] * 300)
    assert sum(map(len, long)) <= kubelet_end.KEPT_BYTES
    (cut,) = kubelet_end.last([PREFIX + "wrapped: " * 1000 + "password=hunter2 the cause"])
    assert cut.endswith("* the cause")
    assert "hunter2" not in cut
    assert len(cut) == kubelet_end.LONGEST
    assert len(long) > 50


def test_an_empty_certificate_says_so(tmp_path):
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "other.pem").write_text("x")
    assert [files.pem(str(tmp_path / name))["error"] for name in ("empty.pem", "other.pem")] == [
        "it is empty",
        "no certificate in it",
    ]


def test_a_secret_at_the_cut_is_masked_as_a_whole():
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    line = PREFIX + "x" * (kubelet_end.LONGEST - len(PREFIX) - 20) + " " + token
    (kept,) = kubelet_end.last([line])
    assert "eyJ" not in kept
    assert len(kept) == kubelet_end.LONGEST


@pytest.mark.parametrize(
    ("process", "wanted"),
    [
        (None, True),
        ({"started_at": NOW - 5}, True),
        ({"started_at": NOW - 601}, False),
        ({"started_at": None}, True),
    ],
)
def test_a_unit_of_rke2_runs_while_its_kubelet_ends(process, wanted):
    unit = dict(UP, name="rke2-agent.service")
    assert kubelet_end.is_relevant(unit, process, NOW) is wanted
    assert kubelet_end.is_relevant(dict(UP, name="k3s.service"), process, NOW) is False


def of_rke2(folder):
    row = {"line": 1, "key": "data-dir", "value": str(folder)}
    files_of = [{"path": "/etc/rancher/rke2/config.yaml", "error": None, "settings": [row]}]
    return {"program": "rke2", "files": files_of}


@pytest.fixture
def rke2(tmp_path, monkeypatch):
    monkeypatch.setattr(kubelet_end, "read", lambda *_args: SYSTEMD + "Starting")
    known = {"unit": dict(UP, name="rke2-agent.service"), "distribution": of_rke2(tmp_path)}
    context = base.Context({}, [], {"kubelet": known})
    path = tmp_path / "agent" / "logs" / "kubelet.log"
    path.parent.mkdir(parents=True)
    return path, context


def test_the_file_of_rke2_s_kubelet_is_read(rke2):
    path, context = rke2
    lines = ["old " + "x" * 1000] * 500 + ["E1122 18:31:29.346075 9 x.go:1] token=topsecret", "end"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = kubelet_end.collect(context)["file"]
    assert found["path"] == str(path)
    assert found["lines"][-1] == "end"
    assert "topsecret" not in "".join(found["lines"])
    assert 50 < len(found["lines"]) <= kubelet_end.FILE_LINES


def test_the_stacks_of_go_in_that_file_are_left_out(rke2):
    path, context = rke2
    path.write_text("panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/b.go:3 +0x1\nend\n")
    assert kubelet_end.collect(context)["file"]["lines"] == ["panic: x", "end"]


def test_a_file_that_is_not_there_is_said(rke2):
    assert kubelet_end.collect(rke2[1])["file"]["error"] == "missing"


@pytest.mark.parametrize(
    ("program", "said", "has_file"),
    [
        ("k3s", 'level=error msg="containerd exited: exit status 1"', True),
        ("rke2", 'level=error msg="containerd exited: exit status 1"', True),
        ("k3s", "containerd: exit status 1", True),
        ("k3s", 'level=fatal msg="no-deploy flag is deprecated"', False),
        (None, 'level=error msg="containerd exited: exit status 1"', False),
    ],
)
def test_the_log_of_a_containerd_that_ended(tmp_path, monkeypatch, program, said, has_file):
    folder = tmp_path / "agent" / "containerd"
    folder.mkdir(parents=True)
    (folder / "containerd.log").write_text("level=info\nlevel=fatal token=abcdef0123456789\n")
    setting = {"line": 1, "key": "data-dir", "value": str(tmp_path)}
    unit = dict(UP, active_state="failed", sub_state="failed")
    known = {"unit": unit, "process": None}
    if program:
        known["distribution"] = {"program": program, "files": [{"settings": [setting]}]}
    monkeypatch.setattr(kubelet_end, "read", lambda *_arguments: PREFIX + said)
    found = kubelet_end.collect(base.Context({}, [], {"kubelet": known}))["runtime_file"]
    assert (found is not None) is has_file
    if found is not None:
        assert found["error"] is None
        assert found["lines"][0] == "level=info"
        assert "abcdef0123456789" not in found["lines"][1]


DUMP = [
    PREFIX + "goroutine 1 [running]:",
    PREFIX + "example.org/x.(*Y).z(0x1)",
    PREFIX + "\t/src/x.go:7 +0x1",
    PREFIX + "goroutine 2 [select]:",
    *(PREFIX + "example.org/x.wait()", PREFIX + "\t/src/x.go:9 +0x1") * 60,
    SYSTEMD + "kubelet.service: Main process exited, code=exited, status=2/INVALIDARGUMENT",
]
WORDS = [PREFIX + "panic: the reason", PREFIX + "[signal SIGSEGV: segmentation violation]"]


@pytest.mark.parametrize("has_patterns", [True, False])
def test_why_a_program_ended_is_read_where_its_stacks_fill_the_last_lines(
    monkeypatch, has_patterns
):
    asked = []

    def run(argv, dummy_seconds, dummy_limit):
        asked.append(argv)
        if "-g" in argv:
            if not has_patterns:
                raise command.Silent("compiled without pattern matching support")
            words = [
                f"17953.{9 - age} w1 kubelet[20288]: {line.partition(']: ')[2]}"
                for age, line in enumerate(WORDS[::-1])
            ]
            return "\n".join([*words, "17952.1 w1 kubelet[7]: panic: another one", ""])
        if "-r" in argv:
            return "\n".join([*DUMP[:-41:-1], ""])
        other = SYSTEMD + "something else"
        return "\n".join([other, *WORDS, *DUMP[:9], PREFIX + "cut off"])

    monkeypatch.setattr(command, "run", run)
    lines = kubelet_end.last(kubelet_end.read("kubelet.service", 5, 40).split("\n")[::-1])
    assert lines[-1] == DUMP[-1]
    assert lines[:-1] == ([*WORDS, DUMP[1]] if has_patterns else [])
    if has_patterns:
        assert "--since=@17953.8" in asked[-1]


def test_lines_without_stacks_are_read_once(monkeypatch):
    asked = []

    def run(argv, dummy_seconds, dummy_limit):
        asked.append(argv)
        return "".join(f"{PREFIX}line {number}\n" for number in range(40))

    monkeypatch.setattr(command, "run", run)
    kubelet_end.read("kubelet.service", 5, 40)
    assert len(asked) == 1


def test_of_the_end_with_stacks_another_program_and_a_frame_that_is_cut_are_left_out(monkeypatch):
    said = [
        *WORDS,
        SYSTEMD + "x " * 200 + " kubelet[20288]: ",
        *DUMP[:2],
        PREFIX + "example.org/x.cut(0x1)",
        "cut off",
    ]

    def run(argv, dummy_seconds, dummy_limit):
        if "-g" in argv:
            return "17953.8 w1 kubelet[20288]: panic: the reason\n"
        return "\n".join(said if "-r" not in argv else [*DUMP[:-41:-1], ""])

    monkeypatch.setattr(command, "run", run)
    text = kubelet_end.read("kubelet.service", 5, 40)
    begin = text[text.rindex(DUMP[4]) :].split("\n")
    assert not any("x.cut" in row for row in begin)
    assert not any("x x x" in row for row in begin)
    assert WORDS[0] in begin


def test_a_text_of_as_many_bytes_as_are_read_may_have_lost_its_begin(monkeypatch):
    asked = []

    def run(argv, dummy_seconds, dummy_limit):
        asked.append(argv)
        return "\n".join(DUMP[::-1])

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(kubelet_end, "READ_BYTES", 1000)
    kubelet_end.read("kubelet.service", 5)
    assert any("-g" in argv for argv in asked)
