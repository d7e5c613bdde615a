# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plausible texts of forms: their verbs filled with what an operator would see there."""

from __future__ import annotations

import re

from tests.messages.tables import Row

NESTED = "context deadline exceeded"
_VERB = re.compile(r"%[-+# 0]*\d*(?:\.\d+)?(?:\[\d+\])?([a-zA-Z%])")
_PATH = re.compile(r"(?i)(?:file|path|director\w*|folder|dir|socket|endpoint|open|stat|mkdir)\W*$")
_NAMES = (
    (_PATH, "/var/lib/kubelet/example"),
    (re.compile(r"(?i)(?:node|host)(?: name)?\W*$"), "node-1"),
    (re.compile(r"(?i)(?:pod)\W*$"), "web-0"),
    (re.compile(r"(?i)(?:cgroup)\W*$"), "/kubelet.slice"),
    (re.compile(r"(?i)(?:cidr|ip|address)\W*$"), "10.0.0.1"),
    (re.compile(r"(?i)(?:gate|feature)\W*$"), "ExampleGate"),
    (re.compile(r"(?i)(?:policy|option|mode|scope)\W*$"), "example"),
    (re.compile(r"(?i)(?:error|err|:|failed|with|due to|because)\W*$"), NESTED),
)
_NUMBERS = frozenset("dxXobcpUfgeG")


def filled(row: Row, nested: str = NESTED) -> str:
    """Return a form with values instead of its verbs.

    nested: the error that stands in it, if it has a place for one
    """
    parts, last = [], 0
    verbs = list(_VERB.finditer(row.form))
    for verb in verbs:
        before = row.form[: verb.start()]
        at_end = row.nested and not row.form[verb.end() :].strip(" )].")
        inner = nested if at_end else ""
        parts += [row.form[last : verb.start()], _value(verb.group(1), before, inner)]
        last = verb.end()
    return "".join((*parts, row.form[last:]))


def _value(kind: str, before: str, nested: str) -> str:
    if kind in "%t":
        return {"%": "%", "t": "true"}[kind]
    if kind in _NUMBERS:
        return "3"
    if kind == "q" and nested:
        return f'"{nested}"'
    if kind == "w" or nested:
        return nested or NESTED
    name = next((value for words, value in _NAMES if words.search(before[-24:])), "example")
    if kind == "q":
        return f'"{name}"'
    return name
