# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of several hosts as one.

Order, clocks, what is said to be missing, and documents that no honest node writes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import log_merge
from tests.unit.support.facts import facts_of_each

NOW = 1795291262.0


def line(time: Any, text: Any = "x", component: Any = "kubelet", **more: Any) -> dict[str, Any]:
    return {"time": time, "component": component, "source": "kubelet.service", "text": text, **more}


def source(
    status: str = "ok", *notes: Any, component: str = "kubelet", **more: Any
) -> dict[str, Any]:
    return {
        "component": component,
        "source": "kubelet.service",
        "status": status,
        "lines_seen": 1,
        "lines_kept": 1,
        "truncated": False,
        "notes": list(notes),
        **more,
    }


def document(
    host: str, *lines: Any, ahead: float = 0.0, way: float = 0.2, **more: Any
) -> dict[str, Any]:
    """Return the logs of a host as it answers.

    ahead: seconds that the node's clock is ahead
    way: seconds to the node, and back
    """
    return {
        "schema": "kubemend.logs/1",
        "host": host,
        "status": "ok",
        "reason": "",
        "asked_at": NOW,
        "clock_begin": NOW + way + ahead,
        "clock": NOW + way + 1 + ahead,
        "received_at": NOW + 2 * way + 1,
        "seconds_back": 60.0,
        "lines": list(lines),
        "sources": [source()],
        **more,
    }


def test_the_order() -> None:
    found = log_merge.merge(
        [
            document("m2", line(2.0, "c"), line(1.0, "a"), line(2.0, "d")),
            document("m1", line(2.0, "b", "kubelet"), line(2.0, "a2", "kube-scheduler")),
        ]
    )
    assert [(one.host, one.component, one.text) for one in found] == [
        ("m2", "kubelet", "a"),
        ("m1", "kube-scheduler", "a2"),
        ("m1", "kubelet", "b"),
        ("m2", "kubelet", "c"),
        ("m2", "kubelet", "d"),
    ]


def test_the_text() -> None:
    lines = log_merge.merge(
        [
            document(
                "m1", line(NOW + 0.123456, "I1121 x\x1b[31m\nnext \u202e ü", "kube-scheduler")
            ),
            document("m10", line(NOW, "a")),
        ]
    )
    assert (
        log_merge.render(lines) == "2026-11-21T20:01:02.000000Z m10 kubelet         a\n"
        "2026-11-21T20:01:02.123456Z m1  kube-scheduler  I1121 x\\x1b[31m\\nnext \\u202e ü\n"
    )
    assert log_merge.render([]) == ""


@pytest.mark.parametrize(
    ("ahead", "way", "shift"),
    [
        (0.0, 0.2, 0.0),
        (1.9, 0.2, 0.0),
        (-2.1, 0.2, 0.0),
        (5.0, 0.2, 5.0),
        (-3600.0, 0.2, -3600.0),
        (0.0, 30.0, 0.0),
        (20.0, 30.0, 0.0),
        (40.0, 30.0, 40.0),
    ],
)
def test_a_clock_that_is_off_is_corrected_and_named(ahead: float, way: float, shift: float) -> None:
    """A slow way there or back is no wrong clock."""
    one = document("m1", line(NOW + ahead), ahead=ahead, way=way)
    assert [found.time for found in log_merge.merge([one])] == [
        pytest.approx(NOW + ahead - shift, abs=1e-6)
    ]
    said = [notice for notice in log_merge.notices([one]) if "clock" in notice]
    assert len(said) == bool(shift)
    if shift:
        assert (
            f"m1: its clock is {abs(shift):.1f} s {'ahead of' if shift > 0 else 'behind'} the"
            " controller's" in said[0]
        )
        assert f"shifted by {-shift:+.1f} s" in said[0]


@pytest.mark.parametrize(
    "change",
    [
        {"asked_at": None},
        {"received_at": "x"},
        {"clock": True},
        {"clock_begin": math.nan},
        {"clock": 10**400},
        {"clock_begin": NOW + 9},
    ],
)
def test_a_clock_that_nobody_can_tell(change: dict[str, Any]) -> None:
    one = {**document("m1", line(NOW), ahead=100.0), **change}
    assert log_merge.clock_of(one) is None
    assert [found.time for found in log_merge.merge([one])] == [NOW]
    facts_of_each(log_merge.notices([one]), ("m1", "clock", "not known"))


def test_what_is_missing() -> None:
    found = log_merge.notices(
        [
            document(
                "m1",
                sources=[
                    source(
                        "ok", "journald suppressed 7 messages of kubelet.service, by its rate limit"
                    ),
                    source("ok", truncated=True),
                    source(
                        "timeout",
                        "the time ended\x1b[0m before it was read to its end",
                        component="kube-apiserver",
                    ),
                ],
            ),
            document(
                "w1",
                sources=[
                    source("absent", "no static pod", component="kube-scheduler"),
                    source("denied"),
                ],
            ),
            document("w2", sources=[source("absent", "no static pod", component="kube-scheduler")]),
            {"host": "w3", "status": "unreachable", "reason": "timed out"},
            {"host": "w4", "status": "<b>", "reason": None},
        ]
    )
    facts_of_each(
        found,
        (
            "m1",
            "kubelet",
            "journald suppressed 7 messages of kubelet.service, by its rate limit",
            "kubelet.service",
        ),
        ("m1", "kubelet", "not all", "kubelet.service"),
        ("m1", "kube-apiserver", "in time", "kubelet.service"),
        (
            "m1",
            "kube-apiserver",
            "the time ended [0m before it was read to its end",
            "kubelet.service",
        ),
        ("w1", "kubelet", "may not", "kubelet.service"),
        ("w3", "unreachable", "timed out"),
        ("w4", "no known status"),
        ("kube-scheduler", "w1, w2", "no static pod"),
    )
    assert log_merge.notices([document("m1", line(NOW))]) == []


@pytest.mark.parametrize(
    "bad",
    [
        None,
        1,
        "x",
        [],
        {},
        line("1"),
        line(None),
        line(math.inf),
        line(-5.0),
        line(1e300),
        line(True),
        line(1.0, None),
        line(1.0, "x", 7),
        line(10**400),
    ],
)
def test_lines_of_no_known_shape(bad: Any) -> None:
    one = document("m1", line(NOW, "good"), bad)
    assert [found.text for found in log_merge.merge([one])] == ["good"]
    facts_of_each(log_merge.notices([one]), ("m1", "1", "left out"))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("time", "component", "source", "text", "status", "notes", "truncated")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(ANY | st.dictionaries(st.sampled_from((*document("x"), "other")), ANY), max_size=3),
    st.booleans(),
)
def test_no_document_stops_the_others(documents: list[Any], ok: bool) -> None:
    documents = [
        {**one, "status": "ok"} if ok and isinstance(one, dict) else one for one in documents
    ]
    lines = log_merge.merge([*documents, document("m1", line(NOW, "good"))])
    assert any(one.text == "good" for one in lines)
    for text in (*log_merge.notices(documents), *log_merge.render(lines).splitlines()):
        assert text.isprintable()


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m1.json").write_text(json.dumps(document("m1", line(NOW, "a"))))
    (tmp_path / "m2%2Fx.json").write_text("{")
    (tmp_path / "m3.json").write_text(json.dumps({"schema": "kubemend.evidence/1", "host": "m3"}))
    (tmp_path / ".writing-x.json").write_text("{")
    found = list(log_merge.load(tmp_path))
    assert [one.text for one in log_merge.merge(found)] == ["a"]
    facts_of_each(
        log_merge.notices(found),
        ("m2/x", "error", "m2%2Fx.json", "JSON"),
        ("m3", "error", "m3.json", "kubemend.logs/1"),
    )
