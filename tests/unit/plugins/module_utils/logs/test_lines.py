# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times, the formats of runtimes and of journald, which lines are kept.

The tests also check that secrets in lines are removed.
"""

import json
from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import lines as log_lines

# klog's text and JSON formats as v1.18 to v1.36 write them, as containerd, CRI-O and docker keep
# them.
CONTAINERD = (
    b"2026-11-21T20:01:02.123456789Z stderr F I1121 20:01:02.123401       1 schedule_one.go:252]"
    b' "Successfully bound pod to node" pod="default/a" node="w1" evaluatedNodes=1 feasibleNodes=1'
)
CRIO = (
    b"2026-11-21T21:01:02.500000001+01:00 stdout F E1121 21:01:02.499 1 leaderelection.go:330]"
    b" error retrieving resource lock"
)
DOCKER = json.dumps(
    {
        "log": '{"ts":1795291262123.4,"caller":"app/server.go:151","msg":"hello","v":0}\n',
        "stream": "stderr",
        "time": "2026-11-21T20:01:02.123456789Z",
    }
).encode()
MOMENT = 1795291262.0
PLUS_MIDNIGHT = 1795305599.0  # 2026-11-21T23:59:59Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T20:01:02Z", MOMENT),
        ("2026-11-21T20:01:02.123456789Z", MOMENT + 0.123456),
        ("2026-11-21T20:01:02.5Z", MOMENT + 0.5),
        ("2026-11-21T22:01:02.25+02:00", MOMENT + 0.25),
        ("2026-11-21T14:31:02-0530", MOMENT),
        ("2026-11-22T00:59:59+01:00", PLUS_MIDNIGHT),
        ("2026-11-21T23:59:60Z", PLUS_MIDNIGHT + 1),
        ("1969-12-31T23:59:59Z", -1.0),
        ("2024-02-29T00:00:00Z", 1709164800.0),
        ("2023-02-29T00:00:00Z", None),
        ("2026-11-21T24:00:00Z", None),
        ("2026-11-21T20:60:00Z", None),
        ("2026-11-21T20:01:02", None),
        ("", None),
        ("2026-11-21T20:01:02.Z", None),
        ("2026-11-21T20:01:02Z\n", None),
        ("٢٠٢٦-11-21T20:01:02Z", None),
        ("0000-01-01T00:00:00Z", None),
    ],
)
def test_times(text, expected):
    assert log_lines.seconds(text) == expected


@given(
    st.datetimes(min_value=datetime(1980, 1, 1), max_value=datetime(2106, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
    st.integers(0, 999),
)
def test_any_time_in_any_zone(moment, minutes, nanoseconds):
    zone = timezone(timedelta(minutes=minutes))
    there = moment.replace(tzinfo=timezone.utc).astimezone(zone)
    sign, rest = ("-", -minutes) if minutes < 0 else ("+", minutes)
    text = (
        f"{there:%Y-%m-%dT%H:%M:%S}.{there.microsecond:06d}{nanoseconds:03d}"
        f"{sign}{rest // 60:02d}:{rest % 60:02d}"
    )
    found = log_lines.seconds(text)
    assert round(found * 1e6) == (there - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
        microseconds=1
    )
    assert log_lines.stamp(found) == f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


@pytest.mark.parametrize(
    ("raw", "moment", "stream", "more", "begin"),
    [
        (
            CONTAINERD,
            MOMENT + 0.123456,
            "stderr",
            False,
            b"I1121 20:01:02.123401       1 schedule_one.go:252]",
        ),
        (CRIO, MOMENT + 0.5, "stdout", False, b"E1121 21:01:02.499 1 leaderelection.go"),
        (DOCKER, MOMENT + 0.123456, "stderr", False, b'{"ts":1795291262123.4,'),
        (b"2026-11-21T20:01:02Z stdout P part", MOMENT, "stdout", True, b"part"),
        (b"2026-11-21T20:01:02Z stdout F:x:y  two", MOMENT, "stdout", False, b" two"),
        (b"2026-11-21T20:01:02Z stdout F ", MOMENT, "stdout", False, b""),
        (b"2026-11-21T20:01:02Z stdout F", MOMENT, "stdout", False, b""),
        (
            b'{"log":"no end","stream":"stdout","time":"2026-11-21T20:01:02Z"}',
            MOMENT,
            "stdout",
            True,
            b"no end",
        ),
    ],
)
def test_formats(raw, moment, stream, more, begin):
    found = log_lines.written(raw)
    assert found[:3] == (moment, stream, more)
    assert found[3].startswith(begin)
    assert bool(begin) == bool(found[3])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"root:x:0:0:root:/root:/bin/sh",
        b"2026-11-21T20:01:02Z stdlog F x",
        b"2026-11-21T20:01:02Z stdout Q x",
        b"yesterday stdout F x",
        b'{"log": 1, "time": "2026-11-21T20:01:02Z"}',
        b'{"log":"x"}',
        b'{"log":"x","time":null}',
        b'{"log":"x","ti',
        b"{",
        b"\xff\xfe stdout F x",
    ],
)
def test_what_is_no_line_of_a_runtime(raw):
    """A process that may write to /var/log may link any file there: nothing of it gets out."""
    assert log_lines.written(raw) is None


@pytest.mark.parametrize(
    ("fields", "moment", "message"),
    [
        (
            {"__REALTIME_TIMESTAMP": "1795291262123456", "MESSAGE": "I1121 x"},
            MOMENT + 0.123456,
            b"I1121 x",
        ),
        (
            {
                "__REALTIME_TIMESTAMP": "1",
                "_SOURCE_REALTIME_TIMESTAMP": "1795291262000001",
                "MESSAGE": [104, 255, 10],
            },
            MOMENT + 0.000001,
            b"h\xff\n",
        ),
        ({"__REALTIME_TIMESTAMP": "1795291262000000", "MESSAGE": ["a", [98]]}, MOMENT, b"a\nb"),
        ({"__REALTIME_TIMESTAMP": "1795291262000000", "MESSAGE": None}, MOMENT, b""),
    ],
)
def test_entries_of_journald(fields, moment, message):
    assert log_lines.entry(json.dumps(fields).encode())[:2] == (moment, message)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"-- No entries --",
        b"[]",
        b"{}",
        b'{"__REALTIME_TIMESTAMP":"x"}',
        b'{"__REALTIME_TIMESTAMP":"1","MESSAGE":[999]}',
    ],
)
def test_what_is_no_entry(raw):
    assert log_lines.entry(raw) is None


@given(
    st.binary(max_size=300),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
    st.integers(1, 60),
)
def test_lines_whatever_the_blocks(data, sizes, limit):
    blocks, position = [], 0
    for size in sizes * 300:
        blocks.append(data[position : position + size])
        position += size
        if position >= len(data):
            break
    expected = [line[:limit] for line in data.split(b"\n")]
    if not expected[-1]:
        expected.pop()
    assert list(log_lines.split(iter([*filter(None, blocks), b""]).__next__, limit)) == expected


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("stdout", "stderr")),
            st.lists(
                st.binary(max_size=20).filter(lambda part: b"\n" not in part),
                min_size=1,
                max_size=4,
            ),
        ),
        max_size=8,
    ),
    st.randoms(),
)
def test_pieces_of_both_streams_however_they_mix(lines, random):
    """Give back whole what a runtime cut, in order of its end, at its first piece's time."""
    waiting = {"stdout": [], "stderr": []}
    for number, (stream, parts) in enumerate(lines):
        waiting[stream] += [
            (float(number * 10 + index), stream, index + 1 < len(parts), part)
            for index, part in enumerate(parts)
        ]
    joiner, found = log_lines.Joiner(), {"stdout": [], "stderr": []}
    while any(waiting.values()):
        stream = random.choice([name for name, pieces in waiting.items() if pieces])
        line = joiner.feed(waiting[stream].pop(0))
        if line:
            found[stream].append(line)
    for stream, got in found.items():
        assert got == [
            (float(number * 10), b"".join(parts), len(b"".join(parts)))
            for number, (mine, parts) in enumerate(lines)
            if mine == stream
        ]
    assert joiner.rest() == []


def test_a_line_without_end_is_bounded_and_not_lost(monkeypatch):
    monkeypatch.setattr(log_lines, "LONGEST", 10)
    joiner = log_lines.Joiner()
    for number in range(4):
        assert joiner.feed((float(number), "stdout", True, b"abcdef")) is None
    assert joiner.rest() == [(0.0, b"abcdefabcd", 24)]
    assert joiner.rest() == []


@pytest.mark.parametrize(
    ("needles", "pattern", "kept"),
    [
        ((), None, True),
        (("uid-1",), None, True),
        (("uid-2",), None, False),
        (("uid-2", "pod"), None, True),
        (("uid-2",), "p.d", True),
        ((), "^E", False),
        ((), "uid-\\d", True),
        (("größe",), None, True),
        ((), "gr.ße", True),
        (("UID-1",), None, False),
        ((), "(?i)UID-1", True),
    ],
)
def test_which_lines_are_kept(needles, pattern, kept):
    assert log_lines.LineFilter(needles, pattern)("pod uid-1 größe".encode()) is kept


@pytest.mark.parametrize("pattern", ["(", "[a", "*x", "(?P<a>x)(?P<a>y)", "a{99999999999999}"])
def test_no_regular_expression(pattern):
    assert log_lines.unusable(pattern)
    assert log_lines.unusable("a|b") is None


# What has to vanish stands in « ».
SECRETS = {
    "header": "request.go:1] Authorization: Bearer «abc»",
    "header of go": "round_trippers.go:469] map[Authorization:[Bearer «abc»]]",
    "header as JSON": '{"msg":"x","Authorization":"Basic «dTpw»"}',
    "another scheme": "Authorization: Negotiate «YII»",
    "token in JSON": '{"kind":"TokenRequest","status":{"token":"«abc»","x":1}}',
    "token in klog": 'I1121 20:01:02.1 1 a.go:1] "Got it" token="«abc»" pod="default/a"',
    "JSON in klog": (
        'I1121 20:01:02.1 1 request.go:1] Response Body: {"data":{"password":"«cHc=»"}}'
    ),
    "flag": 'I1121 20:01:02.1 1 flags.go:64] FLAG: --bearer-token="«abc»"',
    "url": "proxy https://user:«pw»@proxy:3128/x",
    "url with a token for a user": "GET https://«ghp0123»@example.org/x",
    "web token": "x «eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl» y",
    "key in one line": 'data: "-----BEGIN PRIVATE KEY-----«\\nMIIabc\\n»-----END PRIVATE KEY-----"',
    "a line of a key alone": "«MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj»",
}
HARMLESS = [
    CONTAINERD[40:].decode(),
    'I1121 20:01:02.1 1 authorization.go:73] "Forbidden" URI="/healthz"',
    "--authorization-mode=Node,RBAC",
    (
        'Get "https://10.0.0.1:6443/api/v1/nodes/m1?timeout=10s": dial tcp 10.0.0.1:6443: connect:'
        " connection refused"
    ),
    "leaderelection.go:293] successfully acquired lease kube-system/kube-scheduler",
    "größe ü",
    "container " + "0123456789abcdef" * 4,
]


def _cleaned(*lines):
    cleaner = log_lines.Cleaner()
    return [cleaner.clean(raw, cleaner.within_key(raw)) for raw in lines]


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_secrets(text):
    plain = text.replace("«", "").replace("»", "").encode()
    cleaned = _cleaned(plain)[0]
    secret = text.split("«")[1].split("»")[0].encode()
    for word in secret.split(b"\\n"):
        assert not word or word not in cleaned
    assert len(cleaned) == len(plain)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none(text):
    assert _cleaned(text.encode()) == [text.encode()]


def test_a_key_over_many_lines():
    lines = [
        b"x",
        b"-----BEGIN RSA PRIVATE KEY-----",
        b"MIIabc",
        b"short",
        b"==-----END RSA PRIVATE KEY----- y",
        b"MIIabc",
    ]
    assert _cleaned(*lines) == [
        b"x",
        lines[1],
        b"******",
        b"*****",
        b"**-----END RSA PRIVATE KEY----- y",
        b"MIIabc",
    ]


def test_a_key_that_is_never_closed_ends_with_the_next_message():
    lines = [
        b"-----BEGIN PRIVATE KEY-----",
        b"MIIabc",
        b"I1121 20:01:02.1 1 a.go:1] next",
        b"MIIabc",
    ]
    assert _cleaned(*lines)[1:] == [b"******", lines[2], b"MIIabc"]
    assert _cleaned(b"-----BEGIN CERTIFICATE-----", b"MIIabc")[1] == b"MIIabc"


@given(st.binary(max_size=200))
def test_cleaning_keeps_the_length(raw):
    assert len(_cleaned(raw)[0]) == len(raw)


@pytest.mark.parametrize(
    ("raw", "length", "limit", "expected"),
    [
        (b"abc", 3, 3, "abc"),
        (b"abcd", 4, 3, "abc… [1 more byte]"),
        ("aß".encode(), 3, 2, "a… [2 more bytes]"),
        (b"abc", 90000, 2, "ab… [89998 more bytes]"),
        (b"a\xff", 2, 9, "a\ufffd"),
    ],
)
def test_long_lines(raw, length, limit, expected):
    assert log_lines.cut(raw, length, limit) == expected


@pytest.mark.parametrize(
    ("raw", "length", "limit", "expected"),
    [
        (b"abcd", 4, 4, "abcd"),
        (b"abcdefgh", 8, 4, "ab… [4 bytes] …gh"),
        # never within a character
        ("aßcdeßg".encode(), 9, 4, "a… [7 bytes] …g"),
        # of a line that is only begun, the end is not known
        (b"abcd", 90000, 3, "abc… [89997 more bytes]"),
    ],
)
def test_both_ends_of_long_lines(raw, length, limit, expected):
    assert log_lines.ends(raw, length, limit) == expected


@pytest.mark.parametrize(
    "year", [0, 1, 4, 100, 400, 1899, 1900, 1970, 1999, 2000, 2024, 2026, 9999]
)
@pytest.mark.parametrize("month", [0, 1, 2, 3, 4, 12, 13])
@pytest.mark.parametrize("day", [0, 1, 28, 29, 30, 31, 32])
def test_a_date_is_that_of_the_calendar(year, month, day):
    try:
        expected = (date(year, month, day) - date(1970, 1, 1)).days * 86400.0
    except ValueError:
        expected = None
    assert log_lines.seconds(f"{year:04}-{month:02}-{day:02}T00:00:00Z") == expected
