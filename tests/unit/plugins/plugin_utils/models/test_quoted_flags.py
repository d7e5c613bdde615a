# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotes that no shell took away."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import quoted_flags


@pytest.mark.parametrize(
    "word",
    [
        # kubernetes-the-hard-way#552, and an item of a manifest
        "--runtime-config='api/all=true'",
        '--service-account-issuer="https://kubernetes.default.svc"',
    ],
)
def test_quotes_within_a_word(word):
    argv = ("kube-apiserver", "--v=2", word)
    assert word in quoted_flags.clause(argv)
    assert "quotes" in quoted_flags.advice(argv)


@pytest.mark.parametrize(
    "word",
    ["--v=2", "--a=b'c'", '--x=\'{"json":"value"}\'', "'--v=2'", "--name", '--x="a', "name='x'"],
)
def test_what_is_no_such_word(word):
    assert quoted_flags.clause(("kube-apiserver", word)) == ""
    assert quoted_flags.advice(("kube-apiserver", word)) == ""
