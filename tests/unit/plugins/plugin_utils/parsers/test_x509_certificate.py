# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    x509_certificate,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.x509_certificate import (
    Certificate,
)
from tests.unit.support.pki import Authority, name_of

AUTHORITY = Path(__file__).resolve().parents[4] / "fixtures/kubeadm-1.18-authority.pem"
NOW = 1_800_000_000.0
CA = Authority("kubernetes", NOW)


def first(pem: str) -> Certificate:
    return x509_certificate.read(pem)[0]


def test_what_a_certificate_says() -> None:
    pair = CA.issue("kube-apiserver", ["m1", "10.0.0.1", "FD00::1"], begins=-1, ends=1)
    certificate = first(pair.pem)
    assert (certificate.subject, certificate.issuer) == ("kube-apiserver", "kubernetes")
    assert certificate.names == {"m1", "10.0.0.1", "fd00::1"}
    assert f"{certificate.ends:%Y-%m-%dT%H:%M:%S%z}" == "2027-01-16T08:00:00+0000"
    assert certificate.key == pair.digest
    assert not certificate.is_authority
    assert first(CA.pair.pem).is_authority
    assert first(CA.pair.pem).is_self_signed
    assert not certificate.is_self_signed


def test_a_serial_number_of_0_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    """Authorities that kubeadm made up to 1.18 have it."""
    (certificate,) = x509_certificate.read(AUTHORITY.read_text(encoding="utf-8"))
    assert (certificate.subject, certificate.serial) == ("kubernetes", 0)
    assert not recwarn.list


@pytest.mark.parametrize("text", [None, "", "no PEM", CA.pair.pem.replace("MII", "AAA")])
def test_a_text_without_a_certificate(text: str | None) -> None:
    assert x509_certificate.read(text) == ()


def test_a_certificate_that_cannot_be_read_costs_itself_only() -> None:
    text = CA.pair.pem.replace("MII", "AAA") + CA.pair.pem
    assert [item.subject for item in x509_certificate.read(text)] == ["kubernetes"]


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("m1", True),
        ("M1.", True),
        ("10.0.0.1", True),
        ("10.0.0.2", False),
        ("a.example", True),
        ("a.b.example", False),
        ("example", False),
    ],
)
def test_the_names_that_a_certificate_is_valid_for(name: str, is_valid: bool) -> None:
    certificate = first(CA.issue("server", ["m1", "10.0.0.1", "*.example"]).pem)
    assert x509_certificate.covers(certificate, name) is is_valid


@pytest.mark.parametrize("kind", ["the same", "renewed", "same name", "other"])
def test_an_authority_is_known_by_its_signature(kind: str) -> None:
    chain = x509_certificate.read(CA.issue("client").pem)
    authorities = {
        "the same": CA,
        "renewed": Authority("kubernetes", NOW, key=CA.key, ends=9000),
        "same name": Authority("kubernetes", NOW),
        "other": Authority("etcd-ca", NOW),
    }
    trusted = x509_certificate.read(authorities[kind].pair.pem)
    assert x509_certificate.is_signed(chain, trusted) is (kind in ("the same", "renewed"))


def test_an_intermediate_of_the_same_file_leads_to_the_authority() -> None:
    middle = Authority("middle", NOW)
    signed = CA.issue("middle", key=middle.key)
    leaf = middle.issue("server")
    trusted = x509_certificate.read(CA.pair.pem)
    assert x509_certificate.is_signed(x509_certificate.read(leaf.pem + signed.pem), trusted)
    assert x509_certificate.is_signed(x509_certificate.read(leaf.pem), trusted) is False


def test_a_signature_of_another_kind_is_not_decided() -> None:
    """A bundle without names has such certificates."""
    leaf = CA.issue("client").certificate
    builder = x509.CertificateBuilder(
        name_of("kubernetes"),
        name_of("client"),
        leaf.public_key(),
        1,
        leaf.not_valid_before_utc,
        leaf.not_valid_after_utc,
    )
    signed = builder.sign(ed25519.Ed25519PrivateKey.generate(), None)
    text = signed.public_bytes(serialization.Encoding.PEM).decode("ascii")
    trusted = x509_certificate.read(CA.pair.pem)
    assert x509_certificate.is_signed(x509_certificate.read(text), trusted) is None


def test_signatures_of_rsa() -> None:
    key = rsa.generate_private_key(65537, 2048)
    ca = Authority("rsa", NOW, key=key)  # type: ignore[arg-type]
    chain = x509_certificate.read(ca.issue("client").pem)
    assert x509_certificate.is_signed(chain, x509_certificate.read(ca.pair.pem)) is True
    assert x509_certificate.is_signed(chain, x509_certificate.read(CA.pair.pem)) is False
