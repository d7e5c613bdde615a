# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import etcd_client

SERVER = "kube-apiserver"
REFUSED = "authentication handshake failed: remote error: tls: bad certificate"
HTTPS, HTTP = "--etcd-servers=https://127.0.0.1:2379", "--etcd-servers=http://127.0.0.1:2379"
FILE, KEY = "--etcd-certfile=/pki/etcd.crt", "--etcd-keyfile=/pki/etcd.key"


@pytest.mark.parametrize(
    ("component", "argv", "text", "flags"),
    [
        (SERVER, [HTTPS], REFUSED, ("--etcd-certfile", "--etcd-keyfile")),
        (SERVER, [HTTPS, FILE], REFUSED, ("--etcd-keyfile",)),
        (SERVER, [HTTPS, FILE, KEY], REFUSED, ()),
        (SERVER, [HTTPS], "context deadline exceeded", ()),
        (SERVER, [HTTP], REFUSED, ()),
        (SERVER, ["/bin/sh", "-c", "start.sh"], REFUSED, ()),
        ("etcd", [HTTPS], REFUSED, ()),
    ],
)
def test_the_flags_that_an_api_server_lacks(component, argv, text, flags):
    found = etcd_client.lacking(component, argv, ["a line", text])
    assert found == flags
    assert bool(etcd_client.clause(found)) is bool(flags)
    assert bool(etcd_client.advice(found)) is bool(flags)
