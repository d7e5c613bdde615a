# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process an entry about a log level names."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    level_target,
)


@pytest.mark.parametrize(
    ("real", "parts", "named"),
    [
        ("level:kube-scheduler", ("kube-scheduler", None), "kube-scheduler"),
        ("level:kube-apiserver", ("kube-apiserver", None), "kube-apiserver"),
        (
            "level:kube-controller-manager",
            ("kube-controller-manager", None),
            "kube-controller-manager",
        ),
        (
            "level:kubelet/w1.example.org",
            ("kubelet", "w1.example.org"),
            "kubelet of w1.example.org",
        ),
        ("level:kubelet/w", ("kubelet", "w"), "kubelet of w"),
    ],
)
def test_whose_level_it_is(real: str, parts: tuple[str, "str | None"], named: str) -> None:
    assert level_target.parts(real) == parts
    assert level_target.named(real) == named
