# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of a cluster."""

import base64

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.cluster_key import (
    cluster_key,
)

PEM = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"
CA = PEM % base64.b64encode(b"one").decode()


def test_cluster_key_depends_on_certificates_not_on_their_order() -> None:
    two = PEM % base64.b64encode(b"two").decode()
    assert cluster_key(CA + two) == cluster_key("# note\n" + two + CA + CA)
    assert cluster_key(CA) != cluster_key(two)
    assert cluster_key(None) is None
