# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal cut into the starts of its unit, and quotes taken out of a text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    unit_journal,
)

PROFILE = settings(deadline=None, database=None, derandomize=True, max_examples=150)


def line(text, ident="kubelet", pid=10, stamp="2026-11-22T18:31:29+0000"):
    return f"{stamp} w1 {ident}[{pid}]: {text}"


def systemd(text):
    return line(text, "systemd", 1)


def shape(lines):
    return [([said.text for said in one.lines], one.exit) for one in unit_journal.starts(lines)]


# systemd 219 (minikube#11966), 237 (minikube#4172), 241 (minikube#5660), 249 and newer
# (microk8s#4342)
ENDS = [
    [
        systemd("kubelet.service: main process exited, code=exited, status=255/n/a"),
        systemd("Unit kubelet.service entered failed state."),
        systemd("kubelet.service failed."),
        systemd("kubelet.service holdoff time over, scheduling restart."),
    ],
    [
        systemd("kubelet.service: Main process exited, code=exited, status=255/n/a"),
        systemd("kubelet.service: Unit entered failed state."),
        systemd("kubelet.service: Failed with result 'exit-code'."),
        systemd("kubelet.service: Service hold-off time over, scheduling restart."),
    ],
    [
        systemd("kubelet.service: Main process exited, code=exited, status=255/EXCEPTION"),
        systemd("kubelet.service: Service RestartSec=600ms expired, scheduling restart."),
    ],
    [
        systemd("kubelet.service: Main process exited, code=exited, status=255/EXCEPTION"),
        systemd("kubelet.service: Failed with result 'exit-code'."),
        systemd("kubelet.service: Scheduled restart job, restart counter is at 5."),
    ],
]


@pytest.mark.parametrize("end", ENDS)
def test_generations_of_systemd(end):
    assert shape([line("a"), *end, line("b", pid=11), *end]) == [
        (["a"], ("exited", 255)),
        (["b"], ("exited", 255)),
    ]


def test_an_end_without_a_line_about_the_next_start():
    ended = systemd("kubelet.service: main process exited, code=exited, status=255/n/a")
    lines = [line("a"), line("b"), ended, line("late"), line("c", pid=11), ended]
    failed = ("exited", 255)
    assert shape(lines) == [(["a", "b", "late"], failed), (["c"], failed)]
    assert shape([line("a"), ended, ended]) == [(["a"], failed), ([], failed)]


def test_late_words_go_where_their_pid_is():
    end = ENDS[3]
    assert shape([line("a"), *end, line("late"), line("b", pid=11), line("later")]) == [
        (["a", "late", "later"], ("exited", 255)),
        (["b"], None),
    ]
    assert shape([*end, *end]) == [([], ("exited", 255))] * 2


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-11-22T18:31:29+0000",
        "2026-11-22T18:31:29+00:00",
        "2026-11-22T18:31:29.123456+0100",
        "Nov 22 18:31:29",
        "Nov  2 18:31:29",
    ],
)
def test_stamps(stamp):
    assert shape([line("a: b [c]: d", stamp=stamp)]) == [(["a: b [c]: d"], None)]


@pytest.mark.parametrize(
    "text",
    [
        "-- Logs begin at Sat 2019-06-29 04:36:53 UTC. --",
        "",
        "a",
        "Hint: x",
        "-- Boot x --",
        "    w1 kubelet[1]: x",
    ],
)
def test_what_is_no_entry_is_passed_over(text):
    assert shape([line("a"), text, line("b", pid=11)]) == [(["a", "b"], None)]


@pytest.mark.parametrize("text", ["-- Reboot --", "-- Boot 0123456789abcdef0123456789abcdef --"])
def test_a_boot_begins_a_start(text):
    assert shape([line("a"), text, line("b", pid=11)]) == [(["a"], None), (["b"], None)]


def test_only_the_manager_speaks_for_the_unit():
    said = "kubelet.service: Main process exited, code=exited, status=205/LIMITS"
    assert shape([line(said)]) == [([said], None)]
    assert shape([line(said, "systemd", 900)]) == [([said], None)]


def test_the_newest_lines_are_kept():
    found = unit_journal.starts([line(str(number)) for number in range(unit_journal.MAX_LINES + 5)])
    assert [found[0].lines[0].text, len(found[0].lines)] == ["5", unit_journal.MAX_LINES]


@PROFILE
@given(st.lists(st.text(alphabet="ab\" \\'0", max_size=8), min_size=1, max_size=5))
def test_what_is_quoted_is_hidden_and_kept(names):
    text = " x ".join(json.dumps(name) for name in names)
    said, parts = unit_journal.masked(text)
    assert said == " x ".join(f'"{number}"' for number in range(len(names)))
    assert [json.loads(f'"{part}"') for part in parts] == names


@PROFILE
@given(st.text(alphabet='ab"\\\0 5', max_size=30))
def test_every_number_in_quotes_is_ours(text):
    said, parts = unit_journal.masked(text)
    assert said.split('"')[1::2] == [str(number) for number in range(len(parts))]
    assert said.count('"') == 2 * len(parts)


@pytest.mark.parametrize(
    ("text", "is_logrus"),
    [
        ('time="2022-09-05T23:36:37Z" level=fatal msg="starting kubernetes: x"', True),
        ('E0905 23:36:37.000001 7 a.go:1] time="2022-09-05T23:36:37Z" level=fatal msg="x"', False),
        ("Error: unknown flag", False),
    ],
)
def test_lines_of_logrus(text, is_logrus):
    line = f"2022-09-05T23:36:37+0000 m1 k3s[7]: {text}"
    assert unit_journal.is_logrus(line) is is_logrus


HEADER = "E1202 08:59:28.939510    {0} kubelet.go:1384] "
FAILS = HEADER + '"Failed to start ContainerManager" err="x"'


@pytest.mark.parametrize(
    ("lines", "is_own"),
    [
        ([line(FAILS.format(10))], True),
        ([line(FAILS.format(34))], False),
        ([line(FAILS.format(34), "wrapper")], True),
        ([line(HEADER.format(34) + "x", "wrapper"), line(FAILS.format(34), "wrapper")], True),
        ([line(HEADER.format(33) + "x", "wrapper"), line(FAILS.format(34), "wrapper")], False),
        ([line(HEADER.format(34) + "x"), line(FAILS.format(34), "wrapper")], False),
    ],
)
def test_a_program_may_log_for_the_one_kubelet_that_it_runs(lines, is_own):
    (start,) = unit_journal.starts(lines)
    assert unit_journal.last(start).own is is_own


ODD = 'E1124 07:00:00.000000 10 server.go:1] "Failed to do a thing" err="odd"'
CLOSED = 'E1124 07:00:00.100000 10 server.go:1] "Failed to serve" err="http: Server closed"'
CANCELLED = 'time="2022-01-31T19:32:29Z" level=error msg="Failed to check it: context canceled"'
REMOVED = '{"level":"warn","msg":"data-dir used by this member must be removed"}'


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ([ODD, CLOSED], ODD),
        ([CLOSED, CANCELLED], CANCELLED),
        ([REMOVED, CANCELLED], REMOVED),
        (["I1124 07:00:00.000000 10 server.go:1] Failed to say more"], ""),
    ],
)
def test_the_last_error_is_none_that_the_end_brought_about(texts, error):
    (start,) = unit_journal.starts([line(text) for text in texts])
    found = unit_journal.last_error(start)
    assert found.partition("]: ")[2] == error


def test_the_lines_of_the_units_own_program():
    before, own = line("not found", "modprobe", 9), line("ended", "k3s", 10)
    (start,) = unit_journal.starts([before, own])
    argv = ("/usr/local/bin/k3s", "server")
    assert [said.text for said in unit_journal.of_program(start.lines, argv)] == ["ended"]
    assert unit_journal.of_program(start.lines, ("/snap/bin/other",)) == start.lines
    assert unit_journal.of_program(start.lines, ()) == start.lines


def test_the_errors_of_a_program_before_its_last_line():
    lines = [
        line("modprobe: FATAL: not found", "modprobe", 9),
        line('time="x" level=error msg="no"', "k3s", 10),
        line('time="x" level=warning msg="it failed"', "k3s", 10),
        line('time="x" level=error msg="no more"', "k3s", 10),
        systemd("Started."),
        line("ended", "k3s", 10),
    ]
    # It went on behind the first error.
    assert unit_journal.errors_before(lines, lines[5]) == [lines[4], lines[3]]
    assert unit_journal.errors_before(lines, "no entry of a journal") == lines[::-1]


STOPPING = systemd("Stopping kubelet.service - kubelet...")


@pytest.mark.parametrize(
    ("lines", "has_stop_job"),
    [
        ([line("a"), STOPPING, line("b"), *ENDS[3]], True),
        ([line("a"), *ENDS[3]], False),
        # It had ended by itself before.
        ([line("a"), *ENDS[3], STOPPING], False),
        ([line("a"), line("Stopping kubelet.service"), *ENDS[3]], False),
    ],
)
def test_whether_systemd_stopped_a_start(lines, has_stop_job):
    assert unit_journal.starts(lines)[0].has_stop_job is has_stop_job


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("containerd: exit status 1", "containerd exited: exit status 1"),
        ("containerd: signal: killed", "containerd exited: signal: killed"),
        ("the containerd: exit status 1", None),
    ],
)
def test_how_an_old_k3s_says_that_its_containerd_ended(text, said):
    (start,) = unit_journal.starts([line(text, "k3s")])
    last = unit_journal.last(start)
    assert (last and (last.text, last.status)) == (said and (said, 1))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('time="x" level=fatal msg="no \\"a\\"" error=b', 'error in the journal of k3s: no "a": b'),
        ("E1124 07:00:00.000000 10 a.go:1] odd", "error in the journal of k3s: E1124"),
        ("I1124 07:00:00.000000 10 a.go:1] odd", "line in the journal of k3s: I1124"),
        ("it is odd: x", "line in the journal of k3s: it is odd: x"),
        ("Failed to x", "error in the journal of k3s: Failed to x"),
    ],
)
def test_how_a_line_is_quoted(text, quoted):
    assert f"the last {quoted}" in unit_journal.quoted(line(text, "k3s"), "k3s")
    assert "k3s[10]" not in unit_journal.quoted(line(text, "k3s"), "k3s")
