# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose port that of an address usually is."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import usual_ports


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        (":10256", "kube-proxy"),
        ("127.0.0.1:10249", "kube-proxy"),
        ("[::]:10250", "kubelet"),
        ("*:9099", "Felix"),
    ],
)
def test_a_usual_port_has_an_owner(address: str, owner: str) -> None:
    assert owner in usual_ports.clause(address)


@pytest.mark.parametrize("address", ["", ":8080", "10256", ":102561", "10.0.0.1:10256/x"])
def test_another_port_has_none(address: str) -> None:
    assert usual_ports.clause(address) == ""
