# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of every generation of klog, taken apart.

Texts as kubelets of 1.18, 1.21 and 1.36 write them.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import klog

HEAD = "I1121 20:01:02.113402   14090 kubelet.go:2102] "


@pytest.mark.parametrize(
    "prefix", ["", "Nov 21 20:01:02 w1 kubelet[14090]: ", "2026-11-21T20:01:02.113499Z stderr F "]
)
@pytest.mark.parametrize(
    ("rest", "message", "fields"),
    [
        ('SyncLoop (ADD, "api"): "a_n(u-1)"', 'SyncLoop (ADD, "api"): "a_n(u-1)"', {}),
        (
            '"SyncLoop ADD" source="api" pods=[n/a n/b]',
            "SyncLoop ADD",
            {"source": "api", "pods": "[n/a n/b]"},
        ),
        (
            '"SyncLoop ADD" source="api" pods=["n/a","n/b"]',
            "SyncLoop ADD",
            {"source": "api", "pods": '["n/a","n/b"]'},
        ),
        (
            '"SyncLoop (PLEG): event for pod" pod="n/a" event=&{ID:u Type:ContainerStarted Data:x}',
            "SyncLoop (PLEG): event for pod",
            {"pod": "n/a", "event": "&{ID:u Type:ContainerStarted Data:x}"},
        ),
        (
            '"Pod admission denied" podUID="u" message="no \\"gpu\\"\\n" logger="k"',
            "Pod admission denied",
            {"podUID": "u", "message": 'no "gpu" ', "logger": "k"},
        ),
        ('"Starting"', "Starting", {}),
        ('"quoted" words of an old line', '"quoted" words of an old line', {}),
        ("", "", {}),
    ],
)
def test_the_text_format(prefix, rest, message, fields):
    line = klog.parse(prefix + HEAD + rest)
    assert (line.message, dict(line.fields), line.text, line.time) == (message, fields, rest, None)


@pytest.mark.parametrize("prefix", ["", "Jun 18 19:42:34 w1 kubelet[5656]: "])
def test_the_json_format(prefix):
    line = klog.parse(
        prefix + '{"ts":1655581354264.5642,"caller":"kubelet/kubelet.go:2092","msg":"SyncLoop'
        ' ADD","v":2,"source":"api","pods":[{"name":"a","namespace":"n"},{"name":"b"}],"count":3}'
    )
    assert (line.message, line.time, dict(line.fields)) == (
        "SyncLoop ADD",
        1655581354.2645642,
        {"source": "api", "pods": "[n/a b]", "count": "3"},
    )
    assert line.text == "SyncLoop ADD source=api pods=[n/a b] count=3"


@pytest.mark.parametrize(
    "text",
    ["", "panic: x", '{"msg": 1}', '{"a', "[" * 9000, '{"msg":"' + "x" * 99999, '{"":' * 5000],
)
def test_what_is_no_log_line_is_kept_as_it_is(text):
    line = klog.parse(text)
    assert line.fields == {}
    assert line.message == text[: klog.LONGEST].strip()


@settings(deadline=None, database=None, derandomize=True)
@given(
    st.text()
    | st.builds(lambda rest: HEAD + rest, st.text())
    | st.dictionaries(st.text(), st.integers() | st.text()).map(
        lambda found: json.dumps({"msg": "m", "ts": 10**400, **found})
    )
)
def test_nothing_makes_it_crash(text):
    assert isinstance(klog.parse(text).message, str)
