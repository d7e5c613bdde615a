# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of connections to etcd, and what they mean."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import api_server
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.control_plane import (
    ControlPlane,
    FileUse,
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("connect: connection refused", api_server.REFUSED),
        ("Connection refused", api_server.REFUSED),
        ("x509: certificate has expired or is not yet valid", api_server.CERTIFICATE),
        ("TLS: CERTIFICATE_VERIFY_FAILED", api_server.CERTIFICATE),
        ("dial tcp 10.0.0.1:2379: i/o timeout", api_server.TIMEOUT),
        ("timed out", api_server.TIMEOUT),
        ("No route to host", api_server.TIMEOUT),
        ("dial tcp: lookup etcd1 on 10.0.0.53:53: no such host", api_server.NAME),
        ("etcdserver: no leader", api_server.OTHER),
        ("", api_server.OTHER),
    ],
)
def test_the_sort_of_an_error(text, kind):
    assert api_server.kind_of(text) == kind


def use(*words: str) -> FileUse:
    words = ("kube-apiserver", *words)
    return FileUse(
        "/m/a.yaml", "kube-system/a", "kube-apiserver", words, None, None, 0.0, None, True
    )


def test_the_endpoints_of_the_flags():
    plane = ControlPlane((use("--etcd-servers=https://a:2379,https://b:2379"), use("--v=2")))
    assert api_server.endpoints(plane) == ["https://a:2379", "https://b:2379"]
    assert api_server.endpoints(ControlPlane()) == []
