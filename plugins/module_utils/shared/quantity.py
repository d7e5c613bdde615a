# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities as the API reads them: 500m, 1, 1e3, 1Gi.

Nodes and controller share this one parser.
"""

import re
from fractions import Fraction

# More digits are no quantity of anything; it also bounds what an exponent may cost.
MAX_TEXT = 64
MOST = Fraction(2**63 - 1)
NANO = 10**9
_QUANTITY = re.compile(
    r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|([KMGTPE]i|[numkMGTPE])|)"
)
_SUFFIXES = dict(
    [
        ("n", Fraction(1, 10**9)),
        ("u", Fraction(1, 10**6)),
        ("m", Fraction(1, 1000)),
        ("k", Fraction(1000)),
    ]
    + [(letter, Fraction(1000**power)) for power, letter in enumerate("MGTPE", 2)]
    + [(letter + "i", Fraction(1024**power)) for power, letter in enumerate("KMGTPE", 1)]
)


def parse(text):
    """Return the exact value in units (CPUs, bytes) as a Fraction, None where it is no quantity.

    As the API does, the function rounds fractions finer than a billionth away from zero, and limits
    a value to 2^63 - 1. It accepts numbers too, because YAML and JSON do not quote every quantity.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        return None
    text = str(text).strip()
    if len(text) <= MAX_TEXT:
        match = _QUANTITY.fullmatch(text)
    else:
        match = None
    if match is None:
        return None
    sign, number, exponent, suffix = match.groups()
    if exponent:
        scale = Fraction(10) ** int(exponent)
    else:
        scale = _SUFFIXES.get(suffix, Fraction(1))
    value = min(Fraction(-(-Fraction(number) * scale * NANO // 1), NANO), MOST)
    if sign == "-":
        return -value
    return value


def same(quantity, other):
    """Whether two quantities are equal, however they are written; False where either is none."""
    first, second = parse(quantity), parse(other)
    return first is not None and first == second


def positive(text):
    """Return whether it is a quantity above zero: the API counts a limit of 0 as none."""
    value = parse(text)
    return value is not None and value > 0


def whole(text):
    """Return whether a quantity is a whole number above zero.

    The static policy of the CPU manager allocates exclusive CPUs only for such a quantity.
    """
    value = parse(text)
    return value is not None and value > 0 and value.denominator == 1
