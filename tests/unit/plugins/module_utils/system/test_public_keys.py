# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of public keys, as cryptography computes them."""

import hashlib

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ansible_collections.kubemend.remediation.plugins.module_utils.system import public_keys
from tests.unit.support.pki import Authority

PEM = serialization.Encoding.PEM
PLAIN = serialization.NoEncryption()
FORMATS = (
    serialization.PrivateFormat.PKCS8,
    serialization.PrivateFormat.TraditionalOpenSSL,
)
KEYS = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
}


def digest(key):
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def private(key, form=FORMATS[0], encryption=PLAIN):
    return key.private_bytes(PEM, form, encryption).decode("ascii")


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_private_key_has_the_digest_of_its_public_one(name, form):
    assert public_keys.digests(private(KEYS[name], form)) == [digest(KEYS[name])]


@pytest.mark.parametrize("name", KEYS)
def test_a_public_key(name):
    text = (
        KEYS[name].public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    assert public_keys.digests(text.decode("ascii")) == [digest(KEYS[name])]


def test_a_public_key_of_rsa_alone():
    key = KEYS["rsa"]
    text = key.public_key().public_bytes(PEM, serialization.PublicFormat.PKCS1)
    assert public_keys.digests(text.decode("ascii")) == [digest(key)]


def test_a_certificate_and_several_keys():
    pair = Authority("kubernetes", 1_800_000_000.0).pair
    text = pair.pem + private(KEYS["rsa"])
    assert public_keys.digests(text) == [pair.digest, digest(KEYS["rsa"])]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no key in it"),
        ("not PEM", "no key in it"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA", "a block without an end"),
        ("-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----", "not read"),
        ("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "not read"),
        ("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----", "not read"),
        (private(ed25519.Ed25519PrivateKey.generate()), "without its public part"),
        (
            private(KEYS["rsa"], encryption=serialization.BestAvailableEncryption(b"secret")),
            "an encrypted key",
        ),
    ],
)
def test_a_key_that_is_not_read_says_why_and_quotes_nothing(text, reason):
    with pytest.raises(public_keys.KeyFileError, match=reason) as error:
        public_keys.digests(text)
    assert "MII" not in str(error.value)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("cut", [1, 7, 20, -1])
def test_a_key_that_is_cut_is_refused(name, cut):
    lines = private(KEYS[name]).splitlines()
    text = "\n".join([lines[0], "".join(lines[1:-1])[: cut * 4], lines[-1]])
    with pytest.raises(public_keys.KeyFileError):
        public_keys.digests(text)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RSA-2048"),
        (rsa.generate_private_key(65537, 3072), "RSA-3072"),
        (ec.generate_private_key(ec.SECP256R1()), "ECDSA-P256"),
        (ec.generate_private_key(ec.SECP384R1()), "ECDSA-P384"),
        (ec.generate_private_key(ec.SECP521R1()), ""),
        (ed25519.Ed25519PrivateKey.generate(), ""),
    ],
)
def test_the_algorithm_of_a_key_as_kubeadm_writes_it(key, algorithm):
    info = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert public_keys.algorithm(info) == algorithm
