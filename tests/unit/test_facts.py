# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from tests.unit.support.facts import facts, facts_of_each

TEXT = "/etc/x:3 says 512, and w1 (10.0.0.7) has 1024 of 1024: sysctl -w a.b=7."
STATED = ("/etc/x:3", "512", "w1", "10.0.0.7", "1024 of 1024", "sysctl -w a.b=7")


def test_facts_that_a_text_states() -> None:
    facts(TEXT, *STATED)
    facts(f"By w1: {TEXT}", "w1", *STATED)
    facts(f"{TEXT} That is w1.", *STATED)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("512", "5120"),
        ("512", "1512"),
        ("512", "512.5"),
        ("w1", "w10"),
        ("w1", "w1, w2"),
        ("w1", "w1-a"),
        ("10.0.0.7", "10.0.0.70"),
        ("/etc/x:3", "/etc/x:30"),
        ("/etc/x:3", "/a/etc/x:3"),
        ("1024 of", "1000 of"),
        ("a.b=7", "a.b=7 b=8"),
    ],
)
def test_another_value_or_one_more_is_noticed(right: str, wrong: str) -> None:
    with pytest.raises(AssertionError):
        facts(TEXT.replace(right, wrong, 1), *STATED)


def test_the_order_counts() -> None:
    with pytest.raises(AssertionError):
        facts("lacks w1 and holds m3 twice", "m3", "w1")


def test_no_text_states_nothing() -> None:
    with pytest.raises(AssertionError):
        facts(None, "w1")


def test_each_text_has_its_facts() -> None:
    facts_of_each(["m1: 7 s", "m2"], ("m1", "7 s"), ("m2",))
    for rows in ((("m1", "7 s"),), (("m2",), ("m1", "7 s")), (("m1", "7 s"), ("m2",), ())):
        with pytest.raises(AssertionError):
            facts_of_each(["m1: 7 s", "m2"], *rows)
