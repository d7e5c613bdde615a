# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors in the syntax of kubectl's -l.

The API cannot select workloads by the labels of their templates, so that the selector is evaluated
here.
"""

import re

MAX_TEXT = 2000
_KEY = (
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==?|!=)\s*({_VALUE})\s*")
_AMONG = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*")


def parse(text):
    """Return the requirements, each (key, whether it must match, its values or None for any).

    ValueError is raised with the reason where the selector is invalid.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"longer than {MAX_TEXT} characters")
    return [_requirement(part) for part in re.split(r",(?![^()]*\))", text)]


def _requirement(part):
    match = _EQUAL.fullmatch(part)
    if match:
        return match.group(1), match.group(2) != "!=", frozenset([match.group(3)])
    match = _AMONG.fullmatch(part)
    if match:
        values = [value.strip() for value in match.group(3).split(",")]
        if all(re.fullmatch(_VALUE, value) for value in values):
            return match.group(1), match.group(2) == "in", frozenset(values)
    match = _EXISTS.fullmatch(part)
    if match:
        return match.group(2), not match.group(1), None
    raise ValueError(
        "{} is no requirement".format(repr(part.strip()[:60]) if part.strip() else "nothing")
    )


def matches(requirements, labels):
    """Return whether these labels meet every requirement.

    An absent key meets != and notin, as in the API.
    """
    for key, is_positive, values in requirements:
        if values is None:
            met = key in labels
        else:
            met = key in labels and labels[key] in values
        if met is not is_positive:
            return False
    return True
