# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows the name of a secret: the words of an error, or its value."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    redaction_errors,
    redaction_spans,
)

WORDS = "failed to x"


@pytest.mark.parametrize(
    ("before", "key", "value", "expected"),
    [
        ("fetch ", "token", WORDS, True),
        ("list *", "core.Secret", WORDS, True),
        ("/run/", "token", WORDS, True),
        ("keys[0]", ".secret", WORDS, True),
        ("err: ", "ExpiredToken", "The security token included in it has expired", True),
        ("err: ", "token", WORDS, False),
        ("err: ", "TOKEN", WORDS, False),
        ("", "token", WORDS, False),
        ("- ", "token", WORDS, False),
        ("{", "token", WORDS, False),
        ('"', "token", WORDS, False),
        ("fetch ", "token", "hunter2", False),
        ("/oauth2/", "token", "401 Unauthorized", True),
        ("/oauth2/", "token", "4012", False),
        ("/oauth2/", "token", "hunter2", False),
        ('for volume "', "x-token", "anything", True),
        ("for volume ", "x-token", "anything", False),
    ],
)
def test_words_of_an_error_follow_a_name(before, key, value, expected):
    text = f"{before}{key}: {value}"
    mark = len(before) + len(key)
    assert redaction_errors.follow(text, len(before), mark) is expected


@pytest.mark.parametrize(
    ("word", "is_opaque"),
    [
        ("abcdef.0123456789abcdef", True),
        ("0123456789ABCDEF0123456789abcdef", True),
        ("QUJDRDEyMzRhYmNkZWZnaA==", True),
        ("K10abcDEF0123456789::server:x", True),
        ("kube-api-access-abcde", False),
        ("default-token-0pxb1", False),
        ("/var/lib/Kubelet/0123456789", False),
        ("*v1.PersistentVolumeClaim", False),
        ("https://Example1.com/oauth2/token", False),
        ("hunter2", False),
    ],
)
def test_words_that_may_be_secrets(word, is_opaque):
    text = f"a token: failed to read {word}."
    spans = redaction_spans.Spans(1000)
    redaction_errors.opaque_words(text, len("a token"), spans)
    assert [text[begin:end] for begin, end in spans] == [word] * is_opaque


def test_the_work_is_counted():
    with pytest.raises(redaction_spans.TooMuchWork):
        redaction_errors.opaque_words("token: " + "x" * 100, 5, redaction_spans.Spans(50))
