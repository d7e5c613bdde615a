# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture of a leading scheduler in plain text."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    cache_dump,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import scheduler_capture

CAPTURE = {
    "host": "m1",
    "pid": 77,
    "version": "v1.36.3",
    "verdict": cache_dump.SHORT,
    "sentence": "its cache lacks w2",
    "nodes": {"api": 4, "cached": 3, "counted": 3, "reasons": None},
    "message": "",
    "waiting": [],
    "mismatch": [],
    "dump": {"reason": ""},
    "level": {"raised": False, "restored": False, "reason": "", "level": "", "former": ""},
    "files": {},
}


class Page:
    """Stand for a page: keep what is written on it."""

    def __init__(self):
        self.rows = []

    def line(self, text):
        self.rows.append((text, {}))

    def prose(self, text, **more):
        self.rows.append((text, more))


def rows(**more):
    page = Page()
    scheduler_capture.render(page, {**CAPTURE, **more})
    return page.rows


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [(cache_dump.SHORT, "present"), (cache_dump.UNKNOWN, "unknown"), ("another", "info")],
)
def test_the_conclusion_comes_first_in_the_kind_of_its_verdict(verdict, kind):
    head, conclusion, *_rest = rows(verdict=verdict)
    assert all(word in head[0] for word in ("m1", "77", "v1.36.3"))
    assert conclusion == ("its cache lacks w2", {"label": "nodes: ", "kind": kind})


def test_a_count_that_is_not_known_is_no_number():
    counts = rows()[2][0]
    assert counts.startswith("4 in the API, 3 in its cache, 3 in its message")
    assert counts.endswith("not known")


@pytest.mark.parametrize(("waiting", "names"), [([], ""), (["n/a", "n/b"], "(n/a, n/b)")])
def test_a_message_names_the_pods_that_wait(waiting, names):
    (text,) = [text for text, _more in rows(message="0/3 nodes", waiting=waiting) if "0/3" in text]
    assert text.endswith(": 0/3 nodes")
    assert names in text


def test_mismatches_a_failed_dump_and_the_files_have_lines_of_their_own():
    plain = len(rows())
    written = rows(
        mismatch=["w2 is missing", "w3 too"],
        dump={"reason": "timed out"},
        files={"lines": "/r/all.log", "dump": "/r/dump.log", "other": "/r/x"},
    )
    texts = [text for text, _more in written]
    assert len(written) == plain + 5
    assert texts[-2].endswith(": /r/dump.log")
    assert texts[-1].endswith(": /r/all.log")
    assert "the dump: timed out" in texts


@pytest.mark.parametrize(
    ("level", "part"),
    [
        ({"raised": True, "restored": True, "level": "10", "former": "2"}, "is 2 again"),
        ({"raised": True, "restored": False, "reason": "it is still 10"}, "it is still 10"),
        ({}, "not raised"),
    ],
)
def test_the_log_level_says_what_became_of_it(level, part):
    assert part in rows(level={**CAPTURE["level"], **level})[-1][0]
