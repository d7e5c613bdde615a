# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates rebuilt with other names: what changes of them, and what stays."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    evidence as anonymize_evidence,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    x509_certificate,
)
from tests.unit.support import pki
from tests.unit.support.pki import Pki

SECRET = b"of the test"


def of(*documents, **more):
    return anonymize_evidence.Anonymizer(
        [{"host": "h", "collectors": {}, **one} for one in documents] or [more], SECRET
    )


def certificate(name, *others, authority=False):
    key = Ed25519PrivateKey.generate()
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, name),
        ]
    )
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    builder = x509.CertificateBuilder(
        issuer,
        subject,
        key.public_key(),
        7,
        datetime.datetime(2026, 1, 1),
        datetime.datetime(2027, 1, 1),
    )
    builder = builder.add_extension(x509.BasicConstraints(authority, None), True)
    if others:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(
                [
                    (
                        x509.IPAddress(ipaddress.ip_address(one))
                        if one[0].isdigit()
                        else x509.DNSName(one)
                    )
                    for one in others
                ]
            ),
            False,
        )
    return builder.sign(key, None).public_bytes(Encoding.PEM).decode()


def test_a_certificate_that_names_a_host_is_made_again_and_one_that_does_not_stays():
    pem, ca = (
        certificate("system:node:db7", "db7.acme.com", "10.7.7.7"),
        certificate("kubernetes", authority=True),
    )
    change = of(
        {
            "host": "db7",
            "collectors": {
                "kubelet": {"data": {"client_certificate": {"pem": pem}, "ca": {"pem": ca}}}
            },
        }
    )
    made = x509.load_pem_x509_certificate(change.text(pem).encode())
    old = x509.load_pem_x509_certificate(pem.encode())
    assert made.subject.rfc4514_string() == f"CN=system:node:{change.text('db7')},O=system:nodes"
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in named] == [
        change.text("db7.acme.com"),
        change.text("10.7.7.7"),
    ]
    assert (made.serial_number, made.not_valid_after_utc, made.public_key()) == (
        7,
        old.not_valid_after_utc,
        old.public_key(),
    )
    assert change.text(ca) == ca
    broken = "-----BEGIN CERTIFICATE-----\nMIIDdb7\n-----END CERTIFICATE-----"
    assert "MIIDdb7" not in change.text(broken)


def test_faults_of_certificates_are_the_same_without_names():
    """Addresses of IPv6 in certificates stay addresses, and signatures are not judged any more."""
    now = 1_800_000_000.0
    made = Pki(now)
    document = {
        "host": "m1",
        "node": "m1",
        "cluster_key": "a" * 64,
        "status": "ok",
        "collectors": {},
    }
    document.update(groups=[], collected_at="2027-01-15T08:00:00Z", received_at=now)
    pairs = made.files("m1", "10.0.0.1")
    pairs["etcd/server"] = made.etcd.issue("m1", ["m1", "127.0.0.1", "::1", "fd00::10"])
    argvs = pki.argvs("m1", "10.0.0.1")
    tokens = pki.digest_of(made.tokens)
    data = pki.answer(argvs, pairs, tokens, "https://10.0.0.1:6443", now - pki.DAY)
    document["collectors"]["certificates"] = {"status": "ok", "data": data}
    changed = of(document).document(document)
    text = json.dumps(changed["collectors"]["certificates"]["data"]["kubeconfigs"])
    subjects = [one.subject for one in x509_certificate.read(text.replace("\\n", "\n"))]
    assert subjects
    assert "m1" not in " ".join(subjects)
    # base64 has any two letters somewhere
    assert "m1" not in re.sub("BEGIN CERTIFICATE.*?END CERTIFICATE", "", text)
    codes = frozenset(("KM120", "KM121", "KM122", "KM124", "KM126"))
    rows = [engine.evaluate([each], faults=codes).verdicts for each in (document, changed)]
    first, second = [[(row.code, row.verdict) for row in verdicts] for verdicts in rows]
    assert first == second
    assert ("KM124", "clear") in second
