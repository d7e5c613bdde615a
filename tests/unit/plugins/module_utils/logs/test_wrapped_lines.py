# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of several lines are joined to one."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    repeated_lines,
    wrapped_lines,
)

KLOG = "E1126 18:00:00.000001     270 pod_workers.go:1301] "
HEAD = KLOG + '"Error syncing pod, skipping" err=<'
WHOLE = KLOG + r'"Error syncing pod, skipping" err="a: exit status 1 b \"c\"" pod="x/y"'
REST = ("\ta: exit status 1", '\tb "c"', ' > pod="x/y"')
NEXT = "I1126 18:00:01.000001     270 a.go:1] b"


def journal(*texts: str, identifier: str = "kubelet[270]") -> list[str]:
    return [f"2026-11-26T18:00:00+0000 w1 {identifier}: {text}" for text in texts]


def of_journal(lines: list[str]) -> list[str]:
    """Return the error lines of a journal, which is printed newest first."""
    data = "\n".join(reversed(lines)).encode()
    return [
        wrapped_lines.joined(match.group(3), wrapped_lines.journal_texts(data, match)).decode()
        for match in repeated_lines.IN_JOURNAL.finditer(data)
        if match.group(3).endswith(wrapped_lines.BEGIN)
    ]


def of_file(lines: list[str]) -> list[str]:
    data = ("\n".join(lines) + "\n").encode()
    return [
        wrapped_lines.joined(text, wrapped_lines.file_texts(data, match)).decode()
        for match in repeated_lines.IN_FILE.finditer(data)
        for text in [wrapped_lines.log_lines.written(match.group())[3]]
    ]


def cri(text: str) -> str:
    return f"2026-11-26T18:00:00.123456789Z stderr F {text}"


def docker(text: str) -> str:
    entry = {"log": text + "\n", "stream": "stderr", "time": "2026-11-26T18:00:00.1Z"}
    return json.dumps(entry, separators=(",", ":"))


def test_of_the_journal():
    assert of_journal(journal(NEXT, HEAD, *REST, NEXT)) == [WHOLE]


def test_of_an_old_journald_that_strips_lines():
    assert of_journal(journal(HEAD, *(text.strip() for text in REST), NEXT)) == [WHOLE]


def test_lines_of_other_programs_in_between_are_left_out():
    other = journal('time="x" level=error msg="of another"', identifier="containerd[270]")
    another = journal("\tof another", identifier="kubelet[271]")
    lines = journal(HEAD, *REST, NEXT)
    assert of_journal([lines[0], *other, lines[1], *another, *lines[2:]]) == [WHOLE]


@pytest.mark.parametrize("write", [cri, docker])
def test_of_a_file(write):
    assert of_file([write(text) for text in (NEXT, HEAD, *REST, NEXT)]) == [WHOLE]


def test_a_value_without_an_end_ends_at_the_next_message():
    expected = KLOG + '"Error syncing pod, skipping" err="a: exit status 1"'
    assert of_file([cri(text) for text in (HEAD, REST[0], NEXT, *REST)]) == [expected]
    assert of_file([cri(text) for text in (HEAD, REST[0])]) == [expected]
    assert of_journal(journal(HEAD, REST[0])) == [expected]


def test_two_values_of_several_lines():
    texts = (HEAD, "\ta", ' > pod="x/y" output=<', "\tb", " >")
    expected = KLOG + '"Error syncing pod, skipping" err="a" pod="x/y" output="b"'
    assert of_file([cri(text) for text in texts]) == [expected]


def test_at_most_so_many_lines_are_joined():
    lines = [cri(text) for text in (HEAD, *["\ta"] * 1000, " >")]
    (text,) = of_file(lines)
    assert text.count(" a") == wrapped_lines.MAX_LINES - 1
    (text,) = of_journal(journal(HEAD, *["\ta"] * 1000, " >"))
    assert text.count(" a") == wrapped_lines.MAX_LINES - 1


def test_a_key_of_several_lines_is_masked():
    key = ("\t-----BEGIN RSA PRIVATE KEY-----", "\tMIIEsecret", "\t-----END RSA PRIVATE KEY-----")
    (text,) = of_file([cri(text) for text in (HEAD, *key, ' > pod="x/y"')])
    assert "MIIEsecret" not in text
    assert text.endswith('pod="x/y"')


def test_a_line_of_json_ends_a_value():
    (text,) = of_file([cri(text) for text in (HEAD, REST[0], '{"ts":1.5,"msg":"x"}', REST[1])])
    assert text.endswith('err="a: exit status 1"')


def test_the_limits():
    assert (wrapped_lines.MAX_LINES, wrapped_lines.MAX_SCANNED) == (40, 200)
