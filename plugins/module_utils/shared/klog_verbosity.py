# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log verbosity (klog's -v) that a command line sets."""

import re

SHORT = re.compile(r"-v(?:=)?([0-9]+)\Z")
MAX_VERBOSITY = 99


def explicit_verbosity(argv):
    """Return the verbosity of the last --v, or of its short form -v6; None without one."""
    words = [str(word) for word in argv]
    verbosity = None
    for word, following in zip(words, words[1:] + [""]):
        value = _value(word, following)
        if value is not None:
            verbosity = _number(value)
    return verbosity


def of_argv(argv):
    """Return the verbosity of a command line; 0 where it sets none."""
    return explicit_verbosity(argv) or 0


def without(argv):
    """Return a command line without what sets the verbosity."""
    kept, skip = [], False
    for index, word in enumerate(argv):
        value_follows = not skip and word in ("--v", "-v") and index + 1 < len(argv)
        if not (skip or value_follows or _sets_verbosity(word)):
            kept.append(word)
        skip = value_follows
    return kept


def _sets_verbosity(word):
    return bool(SHORT.match(word)) or word.startswith(("--v=", "-v="))


def _value(word, following):
    """Return the text that a word gives as the verbosity, or None."""
    short = SHORT.match(word)
    if short:
        return short.group(1)
    key, equal, value = word.lstrip("-").partition("=")
    if not word.startswith("-") or key != "v":
        return None
    if equal:
        return value
    return "" if following.startswith("-") else following


def _number(value):
    if not value.isdecimal() or len(value) >= 10:
        return 0
    return min(int(value), MAX_VERBOSITY)
