# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of certificates without a library, compared with those that a library reads."""

import datetime
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_fields,
    public_keys,
)
from tests.unit.support import pki

NOW = 1_800_000_000.0


def pair(ends=300, names=("m1", "10.0.0.1")):
    return pki.Authority("kubernetes", NOW).issue("kube-apiserver", names, ends=ends)


@pytest.mark.parametrize("ends", [300, 365 * 30])  # the second has the long form of a time
def test_fields_are_those_of_a_library(ends):
    made = pair(ends)
    fields = certificate_fields.first(made.pem)
    assert fields.serial == made.certificate.serial_number
    assert fields.subject == made.certificate.subject.public_bytes()
    assert fields.issuer == made.certificate.issuer.public_bytes()
    assert (fields.begins, fields.ends) == (NOW - 35 * pki.DAY, NOW + ends * pki.DAY)
    assert fields.key == made.digest == public_keys.digests(made.private)[0]
    assert fields.algorithm == "ECDSA-P256"
    der = made.certificate.public_bytes(serialization.Encoding.DER)
    assert fields.digest == hashlib.sha256(der).hexdigest()


def test_names_are_compared_without_their_order():
    one, other = pair(names=("m1", "10.0.0.1")), pair(names=("10.0.0.1", "m1"))
    assert certificate_fields.first(one.pem).names == certificate_fields.first(other.pem).names
    assert certificate_fields.first(pair(names=()).pem).names == frozenset()
    assert certificate_fields.first(pair(names=("m1",)).pem).names != (
        certificate_fields.first(one.pem).names
    )


def test_a_key_of_rsa():
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM).decode()
    fields = certificate_fields.first("text before\n" + pem + pair().pem)
    assert (fields.serial, fields.algorithm) == (7, "RSA-2048")
    assert certificate_fields.date_text(fields.ends) == "2020-01-02 00:00:00 UTC"


def test_a_subject_is_compared_by_its_values():
    """The kind of text of a name depends on the program that writes it."""
    authority, key = pki.Authority("kubernetes", NOW), pki.new_key()
    made = []
    for kind in (x509.name._ASN1Type.UTF8String, x509.name._ASN1Type.PrintableString):
        attributes = [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes-admin", kind),
        ]
        begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(attributes))
            .issuer_name(authority.pair.certificate.subject)
            .public_key(key.public_key())
            .serial_number(7)
            .not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days=1))
        )
        pem = builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        made.append(certificate_fields.first(pem.decode()))
    one, other = made
    assert one.subject != other.subject
    assert one.subject_values == other.subject_values
    assert len(one.subject_values) == 2
    assert one.subject_values != certificate_fields.first(pair().pem).subject_values


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nMIIB",
        pair().private,
    ],
)
def test_what_is_no_certificate(text):
    with pytest.raises(ValueError, match=r"."):
        certificate_fields.first(text)


def test_every_cut_is_an_error():
    lines = pair().pem.splitlines()
    for count in range(1, len(lines) - 1):
        with pytest.raises(ValueError, match=r"."):
            certificate_fields.first("\n".join([*lines[:count], lines[-1]]))
