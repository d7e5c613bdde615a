# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clause and an advice for each class of messages."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import exit_cause
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import message_class
from tests.messages import classify


def test_each_class_of_the_table_has_words() -> None:
    assert set(message_class.CLASSES) == classify.CLASSES - {"wrapper"}
    assert set(exit_cause.OF_CLASS) == set(message_class.CLASSES)


def test_a_clause_is_no_sentence() -> None:
    for known in message_class.CLASSES.values():
        assert known.clause[0].islower()
        assert known.advice[-1] != "."
