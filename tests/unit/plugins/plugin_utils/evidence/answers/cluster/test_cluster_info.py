# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How new nodes find the cluster."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    cluster_info,
)


def test_the_address_and_the_authority() -> None:
    raw = {"server": "https://m1:6443", "pem": "-----BEGIN", "key": "0" * 64}
    decoded = decode.decode(cluster_info.ClusterInfo, raw)
    assert decoded.malformed == ()
    assert decode.encode(decoded.answer) == raw


def test_values_of_another_type_are_named() -> None:
    decoded = decode.decode(cluster_info.ClusterInfo, {"pem": 7})
    assert decoded.malformed == ("pem",)
    assert decoded.answer.pem is None
