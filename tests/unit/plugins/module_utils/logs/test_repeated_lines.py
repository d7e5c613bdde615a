# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error lines, counted by their text."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    repeated_lines,
)

HEAD = 'E1126 18:00:00.000001       1 pod_workers.go:1301] "Error syncing pod, skipping" '
KLOG = "E1126 18:00:00.000001    2252 controller.go:145] "
STAMP = "2026-11-26T18:00:00.123456789Z"


def counted(*lines: str) -> list[dict]:
    counter = repeated_lines.Counter()
    for number, line in enumerate(lines):
        counter.add(1000.0 - 60 * number, line.encode())
    return counter.most_frequent()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # another time, process and line of source
        (KLOG + '"Failed"', 'E1126 18:09:59.9 9 controller.go:146] "Failed"'),
        # pods of one ReplicaSet, of a Job, of another workload
        (
            HEAD + r'err="x pod=web-7d4b9c8f6d-x2bzx_default(5bfc0000-1)" pod="default/web-1"',
            HEAD + r'err="x pod=web-7d4b9c8f6d-kkjjz_default(9bfc0000-1)" pod="other/db-0"',
        ),
        (KLOG + 'a pod "job-x2bzx" b', KLOG + 'a pod "job-zxcvb" b'),
        # addresses, ports, ids and durations
        (KLOG + "dial tcp 10.0.0.1:6443: refused", KLOG + "dial tcp 10.0.0.22:443: refused"),
        (KLOG + "container 0a1b2c3d4e5f took 1.2s", KLOG + "container ff00aa11bb22 took 120.5ms"),
        (KLOG + r"Get \"https://a:1/x?y=1\": EOF", KLOG + r"Get \"https://a:1/z\": EOF"),
        # a line of etcd at another time, about another peer
        (
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","msg":"prober detected unhealthy'
            ' status","remote-peer-id":"91bc3c398fb3c146","rtt":"0s"}',
            '{"level":"warn","ts":"2026-11-26T18:00:05Z","msg":"prober detected unhealthy'
            ' status","remote-peer-id":"a1bc3c398fb3c146","rtt":"1.2ms"}',
        ),
        (
            'time="2026-11-26T18:00:00Z" level=error msg="RunPodSandbox for'
            ' &PodSandboxMetadata{Name:a-1,Uid:1,Attempt:0,} failed, error" error="no"',
            'time="2026-11-26T18:00:09Z" level=error msg="RunPodSandbox for'
            ' &PodSandboxMetadata{Name:a-2,Uid:2,Attempt:7,} failed, error" error="no"',
        ),
        (
            "2020-05-26 14:05:31.201337 W | rafthttp: health check for peer 91bc could not connect",
            "2020-05-26 14:05:36.201337 W | rafthttp: health check for peer 91bd could not connect",
        ),
    ],
)
def test_lines_about_the_same_are_one(first, second):
    rows = counted(first, second)
    assert [row["count"] for row in rows] == [2]
    assert rows[0]["line"] == first


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (KLOG + 'err="Unauthorized"', KLOG + 'err="Forbidden"'),
        (
            KLOG + r'err="is forbidden: User \"a\" cannot list resource \"pods\""',
            KLOG + r'err="is forbidden: User \"a\" cannot list resource \"nodes\""',
        ),
        (
            KLOG + r'err="failed calling webhook \"a.example.com\": EOF"',
            KLOG + r'err="failed calling webhook \"b.example.com\": EOF"',
        ),
        (KLOG + "lookup api.lan: no such host", KLOG + "lookup db.lan: no such host"),
    ],
)
def test_what_tells_who_refuses_what_is_kept_apart(first, second):
    assert [row["count"] for row in counted(first, second)] == [1, 1]


def test_counts_minutes_times_and_pods():
    rows = counted(
        HEAD + 'pod="a/b"', KLOG + '"other"', HEAD + 'pod="a/c"', HEAD + 'pod="a/c"', "E x"
    )
    assert rows[0] == {
        "count": 3,
        "minutes": 3,
        "first": 820.0,
        "last": 1000.0,
        "pods": 2,
        "line": HEAD + 'pod="a/b"',
    }


def test_secrets_are_masked_and_long_lines_cut():
    line = KLOG + 'err="refused" authorization="Bearer abcdefghijklmnopqrstuv" ' + "x" * 5000
    (row,) = counted(line)
    assert "abcdefghij" not in row["line"]
    assert len(row["line"]) < 1000


def test_at_most_so_many_errors_are_kept_and_so_many_texts_are_folded():
    counter = repeated_lines.Counter()
    for number in range(repeated_lines.MAX_FOLDS + 10):
        text = "".join(chr(ord("g") + int(digit)) for digit in str(number))
        counter.add(1.0, f"{KLOG}{text}".encode())
    assert len(counter.most_frequent()) == repeated_lines.SHOWN
    assert counter.cut
    assert counter.lines == repeated_lines.MAX_FOLDS + 10


@pytest.mark.parametrize(
    "line",
    [
        STAMP + " stderr F " + KLOG + "x",
        # containerd writes the zone of the machine; the beginning of a line that it cuts
        "2026-11-26T19:00:00.123456789+01:00 stderr P " + KLOG + "x",
        STAMP + " stderr F F1126 18:00:00.000001       1 x.go:1] x",
        STAMP + ' stderr F {"level":"warn","ts":"2026-11-26T18:00:00Z","msg":"x"}',
        STAMP + " stderr F 2020-05-26 14:05:31.201337 E | etcdserver: x",
        STAMP + ' stderr F {"ts":1580306777.04,"caller":"a.go:1","msg":"x","err":"y"}',
        STAMP + " stderr F W1126 18:00:00.000001       1 logging.go:59] [core] grpc: x",
        STAMP + " stderr F W1126 18:00:00.000001       1 dispatcher.go:225] Failed calling",
        r'{"log":"E1126 18:00:00.000001       1 a.go:1] x\n","stream":"stderr","time":"x"}',
        r'{"log":"{\"level\":\"error\",\"msg\":\"x\"}\n","stream":"stderr","time":"x"}',
    ],
)
def test_errors_in_a_file_are_found(line):
    data = (STAMP + " stderr F I1126 a\n" + line + "\n" + STAMP + " stderr F I1126 b\n").encode()
    assert [match.group().decode() for match in repeated_lines.IN_FILE.finditer(data)] == [line]


@pytest.mark.parametrize(
    "line",
    [
        STAMP + " stderr F I1126 18:00:00.000001       1 a.go:1] E1126 18:00:00 x",
        STAMP + " stderr F W1126 18:00:00.000001       1 reflector.go:1] failed to list",
        STAMP + ' stderr F {"level":"info","msg":"error"}',
        STAMP + ' stderr F {"ts":1580306777.04,"caller":"a.go:1","msg":"x","v":0,"err":"y"}',
        STAMP + " stderr F Error syncing",
        r'{"log":"I1126 18:00:00 E1126\n","stream":"stderr","time":"x"}',
    ],
)
def test_other_lines_are_none(line):
    assert list(repeated_lines.IN_FILE.finditer(line.encode())) == []


@pytest.mark.parametrize(
    ("line", "identifier"),
    [
        ("2026-11-26T18:00:00+0000 w1 kubelet[234]: " + KLOG + "x", "kubelet"),
        (
            '2026-11-26T18:00:00+01:00 w1 containerd[7]: time="2026-11-26T17:00:00.1Z" level=error'
            ' msg="x"',
            "containerd",
        ),
        ("2026-11-26T18:00:00+0000 w1 cri-dockerd[7]: " + KLOG + "x", "cri-dockerd"),
        ("2026-11-26T18:00:00+0000 w1 kubelet[234]: I1126 18:00:00.000001 1 a.go:1] x", None),
        ('2026-11-26T18:00:00+0000 w1 containerd[7]: time="x" level=warning msg="x"', None),
    ],
)
def test_errors_in_the_journal_are_found(line, identifier):
    match = repeated_lines.IN_JOURNAL.search(("a\n" + line + "\nb").encode())
    assert (match and match.group(2).decode()) == identifier
    assert match is None or line.endswith(match.group(3).decode())


def test_the_cause_at_the_end_of_a_long_line_is_kept():
    line = KLOG + 'failed to patch status "' + "x" * 5000 + '": for node "w1": the cause'
    (row,) = counted(line)
    assert row["line"].startswith(KLOG + "failed to patch status")
    assert row["line"].endswith('for node "w1": the cause')
    assert len(row["line"]) < repeated_lines.LONGEST + 40


@pytest.mark.parametrize("before", range(380, 480, 7))
def test_a_secret_in_the_middle_of_a_long_line_is_masked_whole(before):
    line = KLOG + "x" * before + " password=" + "hunter2" * 80 + " the cause"
    (row,) = counted(line)
    assert "hunter2" not in row["line"]
    assert row["line"].endswith("the cause")
