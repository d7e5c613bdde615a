# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors as kubectl's -l takes them."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    label_selector,
)

LABELS = {"app": "db", "tier": "back", "example.org/pin": "", "v": "1.2_3-x"}


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("app=db", True),
        ("app==db", True),
        ("app=web", False),
        ("app!=web", True),
        ("app!=db", False),
        ("none!=x", True),
        ("app=db,tier=back", True),
        ("app=db,tier=front", False),
        (" app = db , tier ", True),
        ("tier", True),
        ("none", False),
        ("!none", True),
        ("!app", False),
        ("app in (db, cache)", True),
        ("app in (web,cache)", False),
        ("app notin (web)", True),
        ("app notin (db)", False),
        ("none notin (x)", True),
        ("none in (x)", False),
        ("example.org/pin", True),
        ("example.org/pin=", True),
        ("app=", False),
        ("v=1.2_3-x", True),
        ("app in (a,b),tier=back", False),
        ("app in (db,b),tier notin (x,y),!none", True),
    ],
)
def test_which_labels_it_selects(text, met):
    assert label_selector.matches(label_selector.parse(text), LABELS) is met


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "app=db,",
        "=db",
        "app db",
        "app in db",
        "app in (db",
        "app in (d b)",
        "a=b=c",
        "app>1",
        "-app",
        "app=-x",
        "a/b/c=d",
        "app in ((a))",
        "x" * 64,
        "app=" + "x" * 64,
        "a=b;c=d",
        "a=b," * 600 + "a",
    ],
)
def test_what_is_none(text):
    with pytest.raises(ValueError):  # noqa: PT011 - each case has words of its own
        label_selector.parse(text)
