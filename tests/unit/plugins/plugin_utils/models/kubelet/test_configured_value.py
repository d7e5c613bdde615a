# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a kubelet's configuration for one release, for all of them, and for unknown ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    configured_value,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet.config import (
    Setting,
)

SET = Setting("x", "k: x", "/c.yaml", 3)


def kubelet(release=None, setting=None, gates=None):
    config = SimpleNamespace(setting=lambda _key, _flag: setting)
    return configured_value.ConfiguredKubelet(
        SimpleNamespace(release=release, gates=gates or {}, config=config)
    )


@pytest.mark.parametrize(
    ("release", "refuses", "answer"),
    [
        ((1, 30), (1, 20), configured_value.Refusal("k", "why 1.30", (SET,))),
        ((1, 18), (1, 20), None),
        (
            None,
            (1, 14),
            configured_value.Refusal("k", f"why 1.{configured_value.ALL[-1][1]}", (SET,)),
        ),
        (None, (1, 20), configured_value.Unsure),
        ((1, 12), (1, 1), None),
    ],
)
def test_a_value_is_refused_where_every_possible_release_refuses_it(release, refuses, answer):
    def judge(release):
        return f"why {configured_value.release_name(release)}" if release >= refuses else ""

    found = kubelet(release).refused("k", (1, 14), judge, SET, None)
    if answer is None:
        assert found == []
    elif answer is configured_value.Unsure:
        (unsure,) = found
        assert isinstance(unsure, configured_value.Unsure)
        assert "not known" in unsure.why
    else:
        assert found == [answer]


def test_a_release_newer_than_what_is_known_is_named():
    newer = (1, configured_value.NEWEST[1] + 5)
    (unsure,) = kubelet(newer).refused("k", (1, 14), lambda _release: None)
    assert isinstance(unsure, configured_value.Unsure)
    assert configured_value.release_name(newer) in unsure.why


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        (None, ("usual", None)),
        (SET, ("x", SET)),
        (Setting("", "k:", "/c.yaml", 3), ("usual", None)),
        (Setting("", "--k="), ("", Setting("", "--k="))),
    ],
)
def test_an_empty_value_is_the_default_in_a_file_and_not_in_a_flag(setting, value):
    assert kubelet(setting=setting).scalar("k", "k", "usual") == value


@pytest.mark.parametrize(
    ("gates", "is_on"),
    [
        ({}, False),
        ({"X": "true"}, True),
        ({"AllBeta": "true"}, True),
        ({"X": "false", "AllBeta": "true"}, False),
    ],
)
def test_a_gate_has_its_own_value_before_that_of_its_stage(gates, is_on):
    assert kubelet(gates=gates).gate("X", False, "AllBeta") is is_on


def test_values_in_words():
    assert configured_value.listed(("a",)) == "a"
    assert configured_value.listed(("a", "b", "c")) == "a, b and c"
