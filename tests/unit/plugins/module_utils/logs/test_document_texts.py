# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in the answer of another collector."""

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import document_texts

ANSWER = {
    "units": [{"name": "a", "lines": ["a port in use", "well"]}, {"lines": ["b in use"]}],
    "count": 3,
    "error": None,
}


def test_texts_at_any_depth_in_their_order():
    assert document_texts.having(ANSWER, ("in use",)) == ["a port in use", "b in use"]
    assert document_texts.having(None, ("in use",)) == []


def test_the_number_of_texts_and_the_depth_are_bounded():
    texts = document_texts.having(["in use"] * 1000, ("in use",))
    assert len(texts) == document_texts.MOST
    deep = "in use"
    for _level in range(100):
        deep = [deep]
    assert document_texts.having(deep, ("in use",)) == []
