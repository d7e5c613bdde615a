# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import known_causes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection

HIT = Detection("it says x", (), "look at x")
FLAG = "Error: unknown flag: --snapshot-threshold"


@pytest.mark.parametrize(
    ("unit", "place"),
    [
        ("snap.microk8s.daemon-k8s-dqlite.service", "/var/snap/microk8s/current/args/k8s-dqlite"),
        (
            "snap.microk8s.daemon-containerd.service",
            "/var/snap/microk8s/current/args/containerd-template.toml",
        ),
        ("cri-docker.service", "cri-docker.service"),
        ("kube-proxy", "ConfigMap kube-system/kube-proxy"),
    ],
)
def test_the_place_of_the_settings_is_that_of_the_layout(unit: str, place: str) -> None:
    found = known_causes.with_rule(HIT, [FLAG], known_causes.Source(name=unit))
    assert "--snapshot-threshold" in found.summary
    assert place in found.summary
    assert found.remedy.endswith("; look at x")


def test_a_program_whose_settings_are_not_known() -> None:
    found = known_causes.with_rule(HIT, [FLAG], known_causes.Source(name="other.service"))
    assert "--snapshot-threshold" in found.summary
    assert "Its settings" not in found.summary


@pytest.mark.parametrize(
    "hit",
    [replace(HIT, severity="info"), replace(HIT, summary="it says x. Known cause: the disk")],
)
def test_what_weighs_little_or_is_told_stays(hit: Detection) -> None:
    assert known_causes.with_rule(hit, [FLAG]) is hit


def test_what_no_rule_has_stays() -> None:
    assert known_causes.with_rule(HIT, ["context deadline exceeded"]) is HIT
