# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each collector has a type, and the types lose nothing of what collectors recorded."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry as collectors,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract, decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import registry

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures"
RECORDED = sorted((FIXTURES / "recorded").glob("*/evidence"))


def kept(raw, value, path):
    """Give the paths of what a decoded value lost or changed."""
    if dataclasses.is_dataclass(value):
        names = {decode.key_of(entry): entry.name for entry in dataclasses.fields(value)}
        lost = [f"{path}.{key}" for key in raw.keys() - names.keys()]
        for key in raw.keys() & names.keys():
            lost += kept(raw[key], getattr(value, names[key]), f"{path}.{key}")
        return lost
    if isinstance(value, tuple) and len(value) == len(raw):
        return [
            place for pair in zip(raw, value, strict=False) for place in kept(*pair, path + "[]")
        ]
    if isinstance(value, dict) and value.keys() == raw.keys():
        return [place for key in raw for place in kept(raw[key], value[key], f"{path}.{key}")]
    return [] if raw == value else [path]


def test_every_collector_has_a_type_and_no_type_is_without_one():
    assert list(registry.NODE) == [one.name for one in collectors.COLLECTORS]
    assert list(registry.CLUSTER) == list(collector_names.CLUSTER)
    assert len(registry.COLLECTORS) == len(registry.NODE) + len(registry.CLUSTER)


def test_every_type_can_be_made_without_a_value():
    for kind in registry.COLLECTORS:
        assert decode.decode(kind, {}) == decode.Decoded(kind())
        assert hash(kind()) is not None


def test_there_are_recordings():
    assert len(RECORDED) > 90


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.parent.name)
def test_what_was_recorded_is_of_these_types_and_nothing_of_it_is_lost(folder):
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert contract.checked(document) is document
        kinds = registry.kinds_of(document)
        for name, record in document["collectors"].items():
            if record["data"] is not None:
                decoded = decode.decode(kinds[name], record["data"])
                assert decoded.malformed == ()
                assert kept(record["data"], decoded.answer, name) == []
