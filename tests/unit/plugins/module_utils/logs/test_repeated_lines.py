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
LOGRUS = 'time="2026-11-26T18:00:00.123456789Z" level=error msg='
ZAP = ("error", "dpanic", "panic", "fatal")
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
        (KLOG + "took 120.5ms", KLOG + "took 120.5µs"),
        (KLOG + "dial tcp [::1]:2379: refused", KLOG + "dial tcp [fd00::12]:2379: refused"),
        (KLOG + "dial tcp [fe80::1%eth0]:2379: refused", KLOG + "dial tcp [fe80::2]:2379: refused"),
        (KLOG + "lookup api on 2001:db8::1: no", KLOG + "lookup api on 2001:db8:0:5::2: no"),
        (
            KLOG + "uid fabcdeab-1234-4abc-8abc-abcdefabcdef x",
            KLOG + "uid 01234567-1234-4abc-8abc-0bcdefabcdef x",
        ),
        (
            KLOG + "container abcdefabcdefabcdefabcdef died",
            KLOG + "container 01cdefabcdefabcdefabcdef died",
        ),
        (
            KLOG + "at 2026-11-26 18:00:00.1 +0000 UTC m=+9.1 x",
            KLOG + "at 2026-11-26 18:02:00.123 +0000 UTC m=+1209.5 x",
        ),
        (
            KLOG + '"until" err="no retries until 2026-11-26T18:00:00Z (durationBeforeRetry 2m2s)"',
            KLOG
            + '"until" err="no retries until 2026-11-26T19:00:00.5Z (durationBeforeRetry 500ms)"',
        ),
        (KLOG + 'rv "12345" of web-dfgkmtbcd-kkjjz x', KLOG + 'rv "9" of web-7d4b9c8f6d-x2bzx x'),
        (KLOG + "resourceVersion: 1 x", KLOG + "resourceVersion: 123456 x"),
        (KLOG + "ptr 0xc000123456 x", KLOG + "ptr 0xc0deadbeef x"),
        (
            KLOG + "Error syncing pod 0a1b2c3d-1111-2222-3333-444455556666"
            ' ("web-7d4b9c8f6d-x2bzx_default(0a1b2c3d-1111-2222-3333-444455556666)"), skipping: no',
            KLOG + "Error syncing pod 1a1b2c3d-1111-2222-3333-444455556666"
            ' ("db-0_other(1a1b2c3d-1111-2222-3333-444455556666)"), skipping: no',
        ),
        (KLOG + 'pod="a/b" err="x"', KLOG + 'pod="longer/name-of-it" err="x"'),
        (KLOG + '"Failed" err="x" pods=["a/b","c/d"]', KLOG + '"Failed" err="x" pods=["e/f"]'),
        (
            KLOG + "Port 8080 10.1.1.1:80->10.2.2.2:55 reset",
            KLOG + "Port 1 10.1.1.255:80->10.2.2.2:65535 reset",
        ),
        (
            '{"level":"warn","ts":"2026-11-26T18:00:00.1Z","caller":"a.go:1",'
            '"msg":"failed","error":"EOF","took":"1.2µs"}',
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"a.go:12","msg":"failed",'
            '"error":"EOF","took":"5s"}',
        ),
        (
            '{"ts":1795719694000.1,"caller":"a.go:1","msg":"Failed","pod":{"name":"a",'
            '"namespace":"b"},"err":"EOF"}',
            '{"ts":17957196940,"caller":"b.go:1","msg":"Failed","pod":{"name":"longer-c",'
            '"namespace":"d"},"err":"EOF"}',
        ),
        (
            LOGRUS + '"StartContainer for \\"0a1b\\" failed" error="no"',
            LOGRUS + '"StartContainer for \\"ffffff\\" failed" error="no"',
        ),
        (
            LOGRUS + '"PullImage \\"reg.lan/a:1\\" failed" error="lookup reg: no"',
            LOGRUS + '"PullImage \\"other.lan/b@sha256:abc\\" failed" error="lookup reg: no"',
        ),
        (
            'time="2026-11-26 18:00:00.123456789Z" level=error msg="x"'
            " id=0a1b2c3d-1111 name=/runtime.v1.RuntimeService/X",
            'time="2026-11-26 18:00:00.123456789Z" level=error msg="x"'
            " id=fabcdeff-1111 name=/runtime.v1.RuntimeService/X",
        ),
        (KLOG + 'volume "pvc-0a1b2c3d-1111-2222-3333-444455556666" x', KLOG + 'volume "cfg" x'),
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
        (KLOG + '"Failed" err="x"', KLOG + '"Unknown" err="x"'),
        (KLOG + '"F" err="EOF"', KLOG + '"F" err="timeout"'),
        (
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"a.go:1","msg":"failed",'
            '"error":"EOF"}',
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"a.go:1","msg":"failed",'
            '"error":"timeout"}',
        ),
        (
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"a.go:1","msg":"failed",'
            '"error":"EOF"}',
            '{"level":"warn","ts":"2026-11-26T18:00:00Z","caller":"a.go:1",'
            '"msg":"overloaded","error":"EOF"}',
        ),
        (
            '{"ts":1.1,"caller":"a.go:1","msg":"Failed","err":"EOF"}',
            '{"ts":1.1,"caller":"a.go:1","msg":"Failed","err":"refused"}',
        ),
        (KLOG + "status code 401 x", KLOG + "status code 503 x"),
        (
            KLOG + "unexpected status: 401 Unauthorized",
            KLOG + "unexpected status: 404 Unauthorized",
        ),
        (
            KLOG + '"w" err="failed to list *v1.Node: Get \\"https://a:1/b\\": dial tcp'
            ' 1.1.1.1:1: refused"',
            KLOG + '"w" err="failed to list *v1.Secret: Get \\"https://a:1/c\\": dial'
            ' tcp 1.1.1.1:1: refused"',
        ),
        (
            KLOG + '"w" err="failed to list *v1beta1.CSI: x"',
            KLOG + '"w" err="failed to list *v1beta1.Other: x"',
        ),
        (
            KLOG + 'exec: \\"runc\\": executable file not found',
            KLOG + 'exec: \\"app\\": executable file not found',
        ),
        (
            KLOG + "x509: certificate has expired",
            KLOG + "x509: certificate signed by unknown authority",
        ),
        (
            KLOG + "lookup api.lan on 10.0.0.1:53: no such host",
            KLOG + "lookup api.lan on 10.0.0.1:53: server misbehaving",
        ),
        (KLOG + 'cannot get path \\"/healthz\\"', KLOG + 'cannot get path \\"/metrics\\"'),
        (KLOG + 'User \\"a\\" cannot get', KLOG + 'User \\"b\\" cannot get'),
        (
            KLOG + "open /var/lib/a: read-only file system",
            KLOG + "open /var/lib/a: no space left on device",
        ),
        (LOGRUS + '"x" error="EOF"', LOGRUS + '"x" error="canceled"'),
        (KLOG + "code = Unavailable desc = x", KLOG + "code = Unknown desc = x"),
        (
            KLOG + 'admission webhook \\"a.b\\" denied the request',
            KLOG + 'admission webhook \\"c.d\\" denied the request',
        ),
        (
            KLOG + "dial unix /run/a.sock: connect: refused",
            KLOG + "dial unix /run/b.sock: connect: refused",
        ),
        (LOGRUS + '"failed"', LOGRUS + '"stopped"'),
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
        *(STAMP + f' stderr F {{"level":"{level}","msg":"x"}}' for level in ZAP),
        *(
            STAMP + f" stderr F 2020-05-26 14:05:31.201337 {level} | etcdserver: x"
            for level in "WEC"
        ),
        STAMP + " stdout F " + KLOG + "x",
        STAMP + " stderr F 2020-05-26 14:05:31.201337 E | etcdserver: x",
        STAMP + ' stderr F {"ts":1580306777.04,"caller":"a.go:1","msg":"x","err":"y"}',
        STAMP + " stderr F W1126 18:00:00.000001       1 logging.go:59] [core] grpc: x",
        STAMP + " stderr F W1126 18:00:00.000001       1 dispatcher.go:225] Failed calling",
        r'{"log":"E1126 18:00:00.000001       1 a.go:1] x\n","stream":"stderr","time":"x"}',
        r'{"log":"{\"level\":\"error\",\"msg\":\"x\"}\n","stream":"stderr","time":"x"}',
        # past the logger
        STAMP + " stderr F panic: runtime error: invalid memory address or nil pointer dereference",
        STAMP + " stderr F fatal error: concurrent map writes",
        STAMP + " stderr F failed to fetch hugetlb info",
        r'{"log":"Error: unknown flag: --x\n","stream":"stderr","time":"x"}',
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
        STAMP + " stderr F goroutine 1 [running]:",
        STAMP + " stderr F \tfailed to fetch hugetlb info",
        STAMP + " stderr F k8s.io/kubernetes/vendor/github.com/opencontainers/runc/libcontainer.x",
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
        ('2026-11-26T18:00:00+0000 w1 crio[7]: time="2026-11-26 1" level=fatal msg="x"', "crio"),
        ('2026-11-26T18:00:00+0000 w1 crio[7]: time="2026-11-26 1" level=panic msg="x"', "crio"),
        # logrus of containerd with [debug] format = "json", and of dockerd --log-format=json
        *(
            (
                "2026-11-26T18:00:00+0000 w1 containerd[7]: "
                f'{{"error":"a: \\"b\\"","level":"{level}","msg":"x","time":"2026-11-26"}}',
                "containerd",
            )
            for level in ("error", "fatal", "panic")
        ),
        (
            '2026-11-26T18:00:00+0000 w1 dockerd[7]: {"level":"error","msg":"x","time":"x"}',
            "dockerd",
        ),
        (
            '2026-11-26T18:00:00+0000 w1 containerd[7]: {"error":"x","level":"warning","msg":"x"}',
            None,
        ),
        # within a value, as a user of a container may have named it
        (
            "2026-11-26T18:00:00+0000 w1 containerd[7]:"
            r' {"id":"x\",\"level\":\"error\",\"","level":"info","msg":"x"}',
            None,
        ),
        ("2026-11-26T18:00:00+0000 w1 kubelet[234]: failed to fetch hugetlb info", "kubelet"),
        ("2026-11-26T18:00:00+0000 w1 kubelet[234]:         /go/src/x/hugetlb.go:35", None),
        ("2026-11-26T18:00:00+0000 w1 kubelet[234]: I1126 18:00:00.000001 1 a.go:1] x", None),
        ('2026-11-26T18:00:00+0000 w1 containerd[7]: time="x" level=warning msg="x"', None),
    ],
)
def test_errors_in_the_journal_are_found(line, identifier):
    match = repeated_lines.IN_JOURNAL.search(("a\n" + line + "\nb").encode())
    assert (match and match.group(2).decode()) == identifier
    assert match is None or line.endswith(match.group(3).decode())


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (['pod="a/web-7d4b9c8f6d-x2bzx"', 'pod="a/web-6b8f5c-22222"', 'pod="a/web-0"'], 1),
        (['pod="a/db-0"', 'pod="b/db-0"'], 2),
        (['pods=["a/x-kkjjz","a/y"]', 'pods=["a/x-zxcvb","a/y"]'], 1),
        (['sync "a/b" failed', 'sync "a/c" failed'], 2),
        (['PullImage "r.lan/a:1"', 'PullImage "r.lan/a@sha256:0"', 'PullImage "r.lan/b:1"'], 2),
        (["in pod a-kkjjz_x(5bfc00)", "in pod a-zxcvb_x(6bfc00)", "in pod a_y(7bfc00)"], 2),
        (["of pod x/a-kkjjz: no", "of pod x/b: no"], 2),
        (["get_value(abort)"], 0),
        (["a.go: no pod"], 0),
        ([f'x pod="a/pod{number}"' for number in range(20)], repeated_lines.MAX_PODS),
        (["x" * repeated_lines.NAMED_BYTES + ' pod="a/b"'], 0),
    ],
)
def test_of_how_many_workloads_lines_name_pods(lines, count):
    rows = counted(*(f"{KLOG}{line}" for line in lines))
    assert len(rows) == 1
    assert rows[0]["pods"] == count


def said(errors: dict[str, tuple[int, int]]) -> repeated_lines.Counter:
    """Return a counter of errors: how often each was said, and how many seconds apart."""
    counter = repeated_lines.Counter()
    for text, (count, every) in errors.items():
        for number in range(count):
            counter.add(6000.0 - every * number, f"{KLOG}{text}".encode())
    return counter


def letters(count: int) -> list[str]:
    return [
        "error " + "xy"[number // 16] + "ghijklmnopqrstuv"[number % 16] for number in range(count)
    ]


def test_an_error_that_goes_on_comes_before_a_burst():
    errors = {**dict.fromkeys(letters(repeated_lines.SHOWN), (500, 0)), "error z": (5, 60)}
    counter = said(errors)
    assert counter.most_frequent()[0]["count"] == 5
    assert not counter.cut


@pytest.mark.parametrize(("count", "is_first"), [(3, True), (2, False)])
def test_an_operation_that_a_kubelet_tries_rarely_comes_before_a_burst(count, is_first):
    waits = "Operation failed. No retries permitted (durationBeforeRetry 2m2s). Error: odd"
    errors = {**dict.fromkeys(letters(repeated_lines.SHOWN), (500, 0)), waits: (count, 122)}
    assert (said(errors).most_frequent()[0]["count"] == count) is is_first


@pytest.mark.parametrize(
    ("number", "count", "every", "is_cut"),
    [
        (repeated_lines.SHOWN, 5, 60, False),
        (repeated_lines.SHOWN + 1, 5, 60, True),
        (repeated_lines.SHOWN + 1, 4, 60, False),
        (repeated_lines.SHOWN + 1, 7, 20, False),  # in three minutes
        (repeated_lines.SHOWN + 1, 10, 20, True),  # in four
    ],
)
def test_errors_that_may_go_on_and_are_left_out_are_a_cut(number, count, every, is_cut):
    assert said(dict.fromkeys(letters(number), (count, every))).cut == is_cut


def test_long_lines_with_another_cause_at_their_end_are_kept_apart():
    line = LOGRUS + '"RunPodSandbox failed" error="' + "failed to create shim task: " * 40
    assert len(line) < repeated_lines.FOLDED_BYTES
    rows = counted(line + 'no space left on device"', line + 'read-only file system"')
    assert [row["count"] for row in rows] == [1, 1]


def test_lines_that_differ_behind_what_is_compared_are_one():
    line = KLOG + "a " * repeated_lines.FOLDED_BYTES
    assert [row["count"] for row in counted(line + "b", line + "c")] == [2]


def test_the_limits():
    limits = (repeated_lines.MAX_FOLDS, repeated_lines.LONGEST, repeated_lines.SHOWN)
    assert limits == (1500, 900, 12)


def test_of_equal_errors_the_one_that_was_said_last_comes_first():
    counter = repeated_lines.Counter()
    for moment, text in ((1000.0, "late"), (900.0, "early")):
        counter.add(moment, f"{KLOG}{text}".encode())
    assert [row["last"] for row in counter.most_frequent()] == [1000.0, 900.0]
    counter = repeated_lines.Counter()
    for moment, text in ((900.0, "early"), (1000.0, "late")):
        counter.add(moment, f"{KLOG}{text}".encode())
    assert [row["last"] for row in counter.most_frequent()] == [1000.0, 900.0]


def test_what_a_terminal_would_obey_is_a_space():
    (row,) = counted(KLOG + "a\x1b[31mb\tc")
    assert row["line"] == KLOG + "a [31mb c"


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
