# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_end.

The tests check whose logs it looks at, which log it takes, what it keeps, and what leaves the node.
"""

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_end,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

UID, OTHER = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
MANIFEST = "kind: Pod\nspec:\n  containers:\n  - name: %s\n    command: [%s]\n"
LINE = "2026-11-24T07:00:0%d.000000000Z stderr F %s\n"


def process(component="kube-scheduler", age=3600.0, static=True):
    return {"component": component, "static": static, "started_at": time.time() - age}


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Return a folder of logs, and what the kubelet said.

    Context(processes, components, kubelet's config).
    """
    asked = []

    def run(argv, dummy_seconds, dummy_limit):
        asked.append(argv)
        return (
            'x kubelet[1]: E1124 "Error syncing pod, skipping"'
            ' err="token=abcdefghijklmnopqrstuvwxyz" pod="kube-system/kube-scheduler-m1"\nx'
            ' kubelet[1]: older: Error syncing pod 1 ("kube-scheduler-m1_kube-system(1)")\n'
        )

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(component_end, "PODS", str(tmp_path))

    def context(processes=(), components=("kube-scheduler",), config=""):
        files = [{"text": MANIFEST % (one, one)} for one in components] + [{"text": None}]
        return base.Context(
            {},
            [],
            {
                "manifests": {"files": files},
                "instances": {"processes": list(processes)},
                "kubelet": {"unit": {"name": "kubelet.service"}, "config": {"text": config}},
            },
        )

    context.asked = asked
    return context


def log(
    root,
    number,
    *lines,
    component="kube-scheduler",
    pod="kube-system_kube-scheduler-m1_" + UID,
    age=0,
):
    folder = root / pod / component
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{number}.log")
    path.write_text(
        "".join(LINE % (index, line) for index, line in enumerate(lines)), encoding="utf-8"
    )
    os.utime(str(path), (time.time() - age, time.time() - age))
    return str(path)


@pytest.mark.parametrize(
    ("processes", "components"),
    [
        ([process()], ("kube-scheduler",)),
        ([], ()),
        ([], ("kube-proxy",)),
        ([process(), process("etcd")], ("kube-scheduler", "etcd")),
    ],
)
def test_where_all_run_nothing_is_read(node, processes, components):
    with pytest.raises(base.Absent):
        component_end.collect(node(processes, components))
    assert node.asked == []


@pytest.mark.parametrize(("uid", "raised"), [(0, base.Absent), (1000, base.Denied)])
def test_manifests_that_nobody_read(uid, raised, monkeypatch):
    monkeypatch.setattr(component_end.os, "geteuid", lambda: uid)
    with pytest.raises(raised):
        component_end.collect(base.Context({}, [], {"manifests": None}))


def test_of_one_that_does_not_run_the_log_of_its_last_start_and_the_kubelets_word(node, tmp_path):
    log(tmp_path, 6, "the start before")
    path = log(
        tmp_path, 7, "I1124 07:00:00.000000       1 a.go:1] begins", "Error: unknown flag: --x"
    )
    (row,) = component_end.collect(node())["components"]
    assert (row["component"], row["running"], row["restart"], row["path"]) == (
        "kube-scheduler",
        False,
        7,
        path,
    )
    assert row["lines"] == [
        "I1124 07:00:00.000000       1 a.go:1] begins",
        "Error: unknown flag: --x",
    ]
    assert row["last"] - row["first"] == 1
    assert row["kubelet"].endswith(
        'err="token=**************************" pod="kube-system/kube-scheduler-m1"'
    ), "the newest comes first, secrets do not"
    assert node.asked[0][-2:] == ["-u", "kubelet.service"]


@pytest.mark.parametrize("age", [5, 599])
def test_of_one_that_was_started_of_late_the_log_of_the_start_before(node, tmp_path, age):
    path = log(tmp_path, 6, "Error: the start before")
    log(tmp_path, 7, "the present one")
    (row,) = component_end.collect(node([process(age=age)]))["components"]
    assert (row["running"], row["restart"], row["path"], row["lines"], row["kubelet"]) == (
        True,
        6,
        path,
        ["Error: the start before"],
        None,
    )
    assert node.asked == []


def test_a_first_start_has_none_before_it(node, tmp_path):
    log(tmp_path, 0, "the present one")
    (row,) = component_end.collect(node([process(age=5)]))["components"]
    assert (row["restart"], row["path"], row["lines"]) == (None, None, [])


def test_an_ordinary_pod_does_not_stand_for_a_static_one(node, tmp_path):
    log(
        tmp_path,
        3,
        "of an ordinary pod",
        pod="kube-system_kube-scheduler-x_aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    )
    (row,) = component_end.collect(node([process(static=False)]))["components"]
    assert (row["running"], row["path"]) == (False, None)


def test_of_several_pods_the_one_that_wrote_last(node, tmp_path):
    log(tmp_path, 9, "of a manifest before", age=60)
    path = log(tmp_path, 0, "of this one", pod="kube-system_kube-scheduler-m1_" + OTHER)
    (row,) = component_end.collect(node())["components"]
    assert (row["path"], row["restart"]) == (path, 0)


def test_a_folder_of_its_own_for_logs(node, tmp_path, monkeypatch):
    monkeypatch.setattr(component_end, "PODS", "/nowhere")
    path = log(tmp_path, 1, "here")
    context = node(config=f"podLogsDir: {tmp_path}\n")
    assert component_end.collect(context)["components"][0]["path"] == path
    assert context.source == str(tmp_path)


def test_journald_that_does_not_tell_costs_its_words_only(node, monkeypatch):
    def run(*dummy):
        raise command.CommandError("late")

    monkeypatch.setattr(command, "run", run)
    assert component_end.collect(node())["components"][0]["kubelet"] is None


def test_what_is_kept_of_a_log(monkeypatch):
    stack = [
        "panic: boom",
        "",
        "goroutine 1 [running]:",
        "main.main()",
        "\t/go/src/main.go:7 +0x1d",
    ]
    lines = "".join(
        LINE % (index, line) for index, line in enumerate(["password=hunter2hunter2", *stack])
    ).encode()
    first, last, kept = component_end.ends(lines, lines)
    assert last - first == 5
    assert kept == ["password=**************", "panic: boom"]
    pieces = b"2026-11-24T07:00:00Z stderr P one \n2026-11-24T07:00:01Z stderr F line\n"
    assert component_end.ends(pieces, pieces)[2] == ["one line"]
    docker = b'{"log":"of docker\\n","stream":"stderr","time":"2026-11-24T07:00:00Z"}\n'
    assert component_end.ends(docker, docker)[2] == ["of docker"]
    assert component_end.ends(b"", b"") == (None, None, [])
    assert component_end.ends(b"\xff\n", b"\xff\n") == (None, None, [])
    many = (LINE % (1, "x" * 5000)).encode() * 100
    kept = component_end.ends(many, many)[2]
    assert len(kept) == component_end.BEGUN + component_end.KEPT
    assert all(len(line) < component_end.LONGEST + 40 for line in kept)


# etcd 3.6.16, built with -trimpath
PANIC = "panic: tocommit(2154) is out of range [lastIndex(0)]. Was the raft log corrupted?"
TRIMMED = (
    PANIC,
    "",
    "goroutine 134 [running]:",
    "go.uber.org/zap/zapcore.(*CheckedEntry).Write(0x286aef1a85b0, {0x0, 0x0, 0x0})",
    "\tgo.uber.org/zap@v1.27.0/zapcore/entry.go:262 +0x26e",
    *(
        "go.etcd.io/raft/v3.(*raftLog).commitTo(0x286aef1517c0, 0x86a)",
        "\tgo.etcd.io/raft/v3@v3.6.0/log.go:324 +0xef",
    )
    * 12,
    "created by go.etcd.io/raft/v3.RestartNode in goroutine 1",
    "\tgo.etcd.io/raft/v3@v3.6.0/node.go:287 +0x245",
)


def test_the_last_words_before_a_stack_with_paths_of_modules_are_kept():
    lines = "".join(LINE % (index % 10, line) for index, line in enumerate(TRIMMED)).encode()
    assert component_end.ends(lines, lines)[2] == [PANIC, TRIMMED[3], *[TRIMMED[5]] * 3]


@pytest.mark.parametrize(
    "line",
    ["\tsee a.go: for more", "\tat k8s.io/x.go:12 in it", "x.go:12", "\tmain.go:twelve"],
)
def test_what_is_no_frame_is_kept(line):
    raw = (LINE % (1, "first") + LINE % (2, line)).encode()
    assert component_end.ends(raw, raw)[2] == ["first", line]


def test_the_cause_at_the_end_of_a_long_line_is_kept():
    line = "Error: " + "wrapped: " * 400 + "password=hunter2hunter2 the cause"
    (kept,) = component_end.ends(*[(LINE % (1, line)).encode()] * 2)[2]
    assert kept.startswith("Error: wrapped: ")
    assert kept.endswith("* the cause")
    assert "hunter2" not in kept


def test_what_a_program_says_before_its_usage_is_kept():
    """kube-controller-manager v1.18.4 prints its error first, v1.36.3 last."""
    lines = "".join(
        LINE % (1, line)
        for line in [
            "Error: unknown flag: --x",
            *(f"      --flag-{number}" for number in range(400)),
        ]
    ).encode()
    for head, tail in ((lines, lines), (lines, lines[-2000:].partition(b"\n")[2])):
        kept = component_end.ends(head, tail)[2]
        assert kept[0] == "Error: unknown flag: --x"
        assert kept[-1] == "      --flag-399"
        assert len(kept) == component_end.BEGUN + component_end.KEPT


def test_the_end_of_a_long_log_begins_with_a_whole_line(tmp_path):
    path = log(tmp_path, 0, *(["x" * 100] * 5))
    with Path(path).open("ab") as handle:
        handle.write(b"y" * component_end.READ + b"\n" + (LINE % (9, "the last")).encode())
    head, tail = component_end.read(path)
    assert len(head) == component_end.READ
    assert tail == (LINE % (9, "the last")).encode()


@pytest.mark.parametrize(
    "line",
    ["a kube-scheduler-m1 of another matter", "Error syncing pod of another component: etcd-m1"],
)
def test_other_words_of_the_kubelet_are_not_taken(line):
    assert component_end.find_start_failure([line], "kube-scheduler") is None


def test_what_the_kubelet_said_hours_ago_is_not_asked(node):
    component_end.collect(node())
    (since,) = [word for word in node.asked[0] if word.startswith("--since=@")]
    assert 3590 <= time.time() - int(since.partition("@")[2]) <= 3610


def test_a_secret_at_the_cut_of_the_kubelets_line_is_masked_as_a_whole():
    start = "Error syncing pod kube-scheduler-m1 "
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    line = start + "x" * (2 * component_end.LONGEST - len(start) - 20) + " " + token
    assert "eyJ" not in component_end.find_start_failure([line], "kube-scheduler")


def test_why_a_program_ended_is_read_above_stacks_that_fill_the_end_of_its_log(tmp_path):
    frames = ["example.org/x.wait(0x1)", "\t/src/x.go:9 +0x1"]
    rows = ["I1 began", PANIC, "", "goroutine 1 [running]:", *frames, "goroutine 2 [select]:"]
    log = tmp_path / "3.log"
    log.write_text("".join(LINE % (1, row) for row in (*rows, *frames * 2000)))
    _first, last, lines = component_end.ends(*component_end.read(str(log)))
    assert lines[-2:] == [PANIC, frames[0]]
    assert last is not None


WAIT = ["example.org/x.wait(0x1)", "\t/src/x.go:9 +0x1"]
ENDED = ["I1 the one before", PANIC, "", "goroutine 1 [running]:", *WAIT, "goroutine 2 [select]:"]


@pytest.mark.parametrize(
    ("rows", "is_told"),
    [
        ([*ENDED, *WAIT * 2000], True),
        # a start that went on after such an end: what is quoted is of the newer one
        ([*ENDED, *["I1 it goes on"] * 3000], False),
    ],
)
def test_an_end_in_the_middle_of_a_log_is_read_where_stacks_follow(tmp_path, rows, is_told):
    log = tmp_path / "3.log"
    begin = [f"I1 line {number}" for number in range(3000)]
    log.write_text("".join(LINE % (1, row) for row in (*begin, *rows)))
    _head, tail = component_end.read(str(log))
    assert (PANIC in tail.decode()) is is_told
    assert b"the one before" not in tail


def test_an_end_far_above_the_end_of_a_log_is_not_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(component_end, "READ_BEFORE", component_end.READ)
    log = tmp_path / "3.log"
    log.write_text("".join(LINE % (1, row) for row in (*ENDED, *WAIT * 3000)))
    assert PANIC not in component_end.read(str(log))[1].decode()
