# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities as the API reads them, and equal however they are written."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import quantity

NUMBERS = st.integers(0, 10**6)
DECIMAL = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "m": Fraction(1, 10**3),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0", 0),
        ("1000m", 1),
        ("500m", Fraction(1, 2)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("2.", 2),
        ("+1", 1),
        ("-1", -1),
        ("1Gi", 2**30),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1E", 10**18),
        ("128974848", 128974848),
        ("129e6", 129000000),
        (2, 2),
        (0.5, Fraction(1, 2)),
        (" 1 ", 1),
        # rounded away from zero, as the API does
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("16Ei", 2**63 - 1),
        ("1e999", 2**63 - 1),
        ("1e-999", Fraction(1, 10**9)),
    ],
)
def test_what_a_text_is_worth(text, value):
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "1K",
        "1ki",
        "1i",
        "1 Gi",
        "1Gib",
        "one",
        "0x10",
        "1,5",
        "1_000",
        "1e",
        "1e1000000000",
        "1e3Mi",
        "--1",
        "1/2",
        "٣",
        "1" * 65,
        "nan",
        "inf",
        None,
        True,
        [],
        {},
    ],
)
def test_what_is_none(text):
    assert quantity.parse(text) is None
    assert not (quantity.same(text, text))
    assert not (quantity.whole(text))
    assert not (quantity.positive(text))


@given(NUMBERS, st.sampled_from(sorted(DECIMAL)), st.sampled_from(sorted(DECIMAL)))
def test_two_ways_of_writing_are_equal_where_their_values_are(number, one, other):
    value = number * Fraction(DECIMAL[one])
    rewritten = value / DECIMAL[other]
    if rewritten.denominator == 1 and rewritten < 10**40:
        assert quantity.same(f"{number}{one}", f"{rewritten}{other}")


@given(NUMBERS, NUMBERS, st.sampled_from(sorted({**DECIMAL, **BINARY})))
def test_equal_only_where_the_numbers_are(one, other, suffix):
    capped = min(one, other) * {**DECIMAL, **BINARY}[suffix] >= quantity.MOST
    assert quantity.same(f"{one}{suffix}", f"{other}{suffix}") is (one == other or capped)


@given(NUMBERS, st.sampled_from(sorted(BINARY)))
def test_a_binary_suffix_is_1024_of_the_one_before(number, suffix):
    before = [name for name, value in BINARY.items() if value * 1024 == BINARY[suffix]] or [""]
    assert (
        quantity.same(f"{number}{suffix}", f"{number * 1024}{before[0]}")
        or number * BINARY[suffix] > quantity.MOST
    )


@given(NUMBERS, st.integers(-9, 12))
def test_an_exponent_is_a_shift(number, exponent):
    assert (
        quantity.parse(f"{number}e{exponent}")
        == quantity.parse(f"{number}E{exponent}")
        == number * Fraction(10) ** exponent
    )


@given(st.integers(1, 10**6))
def test_whole_cpus(milli):
    assert quantity.whole(f"{milli}m") is (milli % 1000 == 0)
    assert quantity.positive(f"{milli}m")


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    value = quantity.parse(text)
    assert value is None or -quantity.MOST <= value <= quantity.MOST


@pytest.mark.parametrize("text", ["0", "0m", "-1", "0.0"])
def test_nothing_is_neither_whole_nor_positive(text):
    assert not quantity.whole(text)
    assert not quantity.positive(text)
