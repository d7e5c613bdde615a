# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of variables has what its pages need."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import log_defaults
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import limits
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.variables import (
    COMPONENTS,
    TOPICS,
    VARIABLES,
)


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable_has_a_topic_and_a_meaning_of_short_sentences(name):
    variable = VARIABLES[name]
    assert variable.topic in TOPICS
    sentences = re.split(r"(?<=[.]) ", variable.meaning)
    assert all(sentence.endswith(".") for sentence in sentences)
    assert max(len(sentence.split()) for sentence in sentences) <= 25


def test_each_topic_has_variables():
    assert {variable.topic for variable in VARIABLES.values()} == set(TOPICS)


def test_the_meaning_of_a_limit_names_the_target_that_it_replaces():
    for setting, target in limits.TARGETS.items():
        meaning = VARIABLES[limits.VARIABLES[setting]].meaning
        assert setting in meaning
        assert str(target) in meaning


def test_captured_components_are_those_of_the_module():
    default = VARIABLES["kubemend_capture_components"].default
    assert set(default) < set(COMPONENTS) == set(log_defaults.COMPONENTS)
