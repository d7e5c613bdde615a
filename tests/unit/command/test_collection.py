# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command reads of the collection that it carries."""

from __future__ import annotations

import pytest
from kubemend import collection
from kubemend.wrong_input import WrongInput

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
    symptoms,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variables


def test_the_catalogue_has_every_fault():
    assert list(collection.faults()) == list(CATALOGUE)


def test_every_symptom_is_known_with_its_title():
    assert collection.symptoms() == {
        name: symptom.title for name, symptom in symptoms.SYMPTOMS.items()
    }


def test_the_names_of_formats_and_variables_are_those_of_the_collection():
    assert collection.formats() == variables.FORMATS
    assert collection.variables() == tuple(variables.VARIABLES)


def test_a_package_without_a_collection_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(collection, "ROOT", tmp_path)
    with pytest.raises(WrongInput, match="carries no collection"):
        collection.faults()
