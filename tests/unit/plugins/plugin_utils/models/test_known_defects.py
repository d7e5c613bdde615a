# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each known defect is data that can be used."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.known_defects import (
    DEFECTS,
    READY,
    UNREAD_REGISTRY,
    WAITING,
    Symptom,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.release_number import (
    parse,
)


def test_a_symptom_is_of_its_place():
    symptom = Symptom((READY,), "PLEG")
    assert symptom.is_in(READY, "PLEG is not healthy")
    assert not symptom.is_in(WAITING, "PLEG is not healthy")
    assert not symptom.is_in(READY, "runtime")


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect.program}-{defect.first}")
def test_each_defect_has_a_range_symptoms_and_links(defect):
    assert parse(defect.first) < parse(defect.fixed)
    assert defect.symptoms
    assert all(re.compile(symptom.text) for symptom in defect.symptoms)
    assert len(defect.links) >= 2
    assert all(link.startswith("https://github.com/") for link in defect.links)


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("v2.0.0-beta.2", True),
        ("2.0.0-beta.1", True),
        ("2.0.0-rc.0", True),
        ("2.0.0-beta.0", False),
        ("2.0.0-rc.1", False),
        ("2.0.0", False),
        ("1.7.13", False),
        (None, False),
    ],
)
def test_betas_are_those_that_are_named(version, has):
    assert UNREAD_REGISTRY.has(version) is has
