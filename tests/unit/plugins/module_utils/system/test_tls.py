# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS with a client certificate that never touches a disk."""

import ssl
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import tls
from ansible_collections.kubemend.remediation.plugins.module_utils.system.http_client import (
    HttpError,
)
from tests.unit.support.fake_step import certificate


def test_servers_of_this_node_are_not_verified() -> None:
    context = tls.context()
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)


def test_with_an_authority_they_are() -> None:
    pem = certificate()
    authority = pem[: pem.index(b"-----BEGIN PRIVATE")]
    context = tls.context(authority=authority)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) + context.cert_store_stats()["x509"] > 0


def test_a_pair_is_loaded_and_leaves_no_descriptor() -> None:
    pem = certificate()
    at = pem.index(b"-----BEGIN PRIVATE")
    before = len(list(Path("/proc/self/fd").iterdir()))
    tls.context(pem[:at], pem[at:])
    tls.context(pem)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_cannot_be_used_is_named() -> None:
    pem = certificate()
    at = pem.index(b"-----BEGIN PRIVATE")
    with pytest.raises(HttpError, match="the client certificate cannot be used"):
        tls.context(pem[:at])
    with pytest.raises(HttpError, match="the client certificate cannot be used"):
        tls.context(b"none", b"none")
    with pytest.raises(HttpError, match="the CA cannot be used"):
        tls.context(authority=b"none")
