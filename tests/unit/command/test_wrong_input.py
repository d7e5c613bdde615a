# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences about words that are not known."""

from __future__ import annotations

import pytest
from kubemend import wrong_input


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("audti", "the nearest one is audit"),
        ("AUDIT", "the nearest one is audit"),
        ("xyz", "there are audit, replay"),
    ],
)
def test_a_wrong_word_has_the_nearest_one_or_all(word, end):
    assert wrong_input.nearest(word, ("audit", "replay")) == end


def test_a_word_is_shown_on_one_line():
    assert wrong_input.shown("a\nb\x1b[31m") == "a?b?[31m"
    assert len(wrong_input.shown("x" * 5000)) == wrong_input.SHOWN + 1
