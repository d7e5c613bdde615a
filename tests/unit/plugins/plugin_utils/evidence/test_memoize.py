# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reading that several faults ask for is made once for each document.

It is never given for another document.
"""

from __future__ import annotations

import contextlib

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    memoize,
)


def test_the_same_evidence_is_read_once_and_another_anew():
    read = []

    @memoize.last
    def name(document):
        """Tell what it is for."""
        read.append(document)
        return document["name"]

    first, second, alike = {"name": "a"}, {"name": "b"}, {"name": "a"}
    assert [name(one) for one in (first, first, second, second, first, alike)] == [
        "a",
        "a",
        "b",
        "b",
        "a",
        "a",
    ]
    assert [id(one) for one in read] == [id(first), id(second), id(first), id(alike)]
    assert name.__doc__ == "Tell what it is for."


def test_evidence_that_is_gone_is_not_taken_for_what_stands_at_its_place():
    @memoize.last
    def name(document):
        return document["name"]

    assert [name({"name": str(number)}) for number in range(100)] == [
        str(number) for number in range(100)
    ]


def test_what_could_not_be_read_is_tried_again():
    tried = []

    @memoize.last
    def name(document):
        tried.append(1)
        return document["name"]

    document = {}
    for _attempt in range(2):
        with contextlib.suppress(KeyError):
            name(document)
    assert len(tried) == 2
