# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Last log lines of public threads, read as the findings read them."""

from __future__ import annotations

import pytest

from tests.messages import classify, judge, public, tables

MESSAGES = list(public.messages())


@pytest.mark.parametrize(
    "message", MESSAGES, ids=lambda message: message.link.partition(".com/")[2]
)
def test_the_class_of_a_public_message(message: public.Message) -> None:
    meaning, keys = public.answer(message)
    assert meaning == (message.meaning or judge.UNKNOWN)
    assert set(message.keys.split()) <= set(keys.replace(":", " ").split())


def test_the_table_of_public_messages() -> None:
    assert {message.component for message in MESSAGES} <= set(tables.COMPONENTS)
    assert {message.meaning for message in MESSAGES} <= classify.CLASSES | {""}
    assert all(message.link.startswith("https://github.com/") for message in MESSAGES)
    assert len({(message.component, message.form, message.text) for message in MESSAGES}) == len(
        MESSAGES
    )
