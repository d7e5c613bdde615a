# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of the API servers."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    endpoints,
)
from tests.unit.support import answers

ENDPOINTS = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "endpoints")


def test_the_addresses_keep_their_order():
    endpoint = answers.typed(endpoints.Endpoints, ENDPOINTS)
    assert endpoint.addresses == ("10.89.0.12:6443", "10.89.0.13:6443")


def test_an_address_that_is_no_text_is_dropped():
    decoded = answers.changed(endpoints.Endpoints, ENDPOINTS, "addresses", 0, value=6443)
    assert decoded.malformed == ("addresses[0]",)
    assert decoded.answer.addresses == ("10.89.0.13:6443",)


def test_one_text_is_no_list_of_addresses():
    decoded = answers.changed(endpoints.Endpoints, ENDPOINTS, "addresses", value="10.89.0.12:6443")
    assert (decoded.malformed, decoded.answer.addresses) == (("addresses",), ())
