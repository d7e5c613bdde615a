# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log lines about the settings of a kubelet's resource managers."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import manager_error


@pytest.mark.parametrize(
    ("text", "quoted", "setting"),
    [
        ('unknown policy: "1"', ("x", "sttic"), "policy: sttic"),
        ('error: unknown policy: "0"', ("a",), "policy: a"),
        ('an unknown policy: "0"', ("a",), None),
        ('unknown policy: "9"', ("a",), "policy: "),
        ('unknown policy: "99999999"', ("a",), "policy: "),
        ("reserved-cpus: 0-99 is not a subset of online-cpus: 0-3", (), "reservedSystemCPUs: 0-99"),
        (
            'Failed to enforce Kube Reserved Cgroup Limits on "0": ["1"] cgroup does not exist',
            ("/kube", "x"),
            "kubeReservedCgroup: /kube",
        ),
        ("the kubelet is well", (), None),
    ],
)
def test_the_setting_that_a_line_refuses(
    text: str, quoted: tuple[str, ...], setting: str | None
) -> None:
    assert manager_error.meant(text, quoted) == setting


def test_a_static_policy_without_a_reservation_is_another_fault() -> None:
    line = "unable to determine reserved CPU resources for static policy"
    assert manager_error.unreserved(line)
    assert manager_error.meant(line, ()) is None
    assert not manager_error.unreserved("static policy")
