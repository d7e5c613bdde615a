# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates that components of a node use."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    certificates,
)
from tests.unit.support import pki

RAW = pki.answer(
    pki.argvs("m1", "10.0.0.1"),
    pki.Pki(1_800_000_000.0).files("m1", "10.0.0.1"),
    "0" * 64,
    "https://10.0.0.1:6443",
    1_790_000_000.0,
)


def test_all_of_it_is_decoded() -> None:
    decoded = decode.decode(certificates.Certificates, RAW)
    assert decoded.malformed == ()
    assert len(decoded.answer.uses) == len(RAW["uses"])
    assert decoded.answer.files[0].key_beside is True
    assert decoded.answer.served[0].port == 6443
    assert decoded.answer.kubeconfigs[0].users == 1
    assert decode.encode(decoded.answer)["keys"] == RAW["keys"]


def test_values_of_another_type_are_named() -> None:
    wrong = {**RAW, "keys": [{"component": 7, "digests": ["a", 5]}], "served": [{"port": "22"}]}
    decoded = decode.decode(certificates.Certificates, wrong)
    assert set(decoded.malformed) == {
        "keys[0].component",
        "keys[0].digests[1]",
        "served[0].port",
    }
