# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dates of a kubelet's client certificate."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    client_certificate,
)


def test_a_date_that_cannot_be_asked_for_tells_nothing():
    assert client_certificate.read({"collectors": {}}) is None
