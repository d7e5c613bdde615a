# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a PEM text: dates, names, keys, and by which authority each is signed. Pure."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

# ansible-core needs it itself, and only ansible-test imports plugins where it is not.
try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = None

from ...module_utils.shared.cluster_key import CERTIFICATE

MAX_CERTIFICATES = 64
MAX_CHAIN = 8
MAX_NAME = 200
UNREADABLE: tuple[type[Exception], ...] = (ValueError, TypeError, AttributeError, OverflowError)
if x509 is not None:
    UNREADABLE += (
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
        UnsupportedAlgorithm,
    )


@dataclass(frozen=True)
class Certificate:
    """One certificate.

    digest: SHA-256 of the whole certificate. key: SHA-256 of its public key, as the collector
    computes it of key files. names: its alternative names, addresses included.
    """

    subject: str
    issuer: str
    serial: int
    begins: datetime
    ends: datetime
    digest: str
    key: str
    names: frozenset[str]
    is_authority: bool
    x509: Any = field(default=None, repr=False, compare=False)

    @property
    def is_self_signed(self) -> bool:
        """Tell whether the certificate names itself as its issuer."""
        return bool(self.x509.subject == self.x509.issuer)


def read(pem: str | None) -> tuple[Certificate, ...]:
    """Return the certificates of a text that can be read, in their order."""
    if not pem or x509 is None:
        return ()
    return tuple(_read(pem))


def _read(pem: str) -> Iterator[Certificate]:
    for block in CERTIFICATE.findall(pem)[:MAX_CERTIFICATES]:
        try:
            yield _loaded(block)
        except UNREADABLE:
            continue


def _loaded(block: str) -> Certificate:
    """Return one certificate; authorities that old releases made have the serial number 0."""
    with warnings.catch_warnings():
        # The library warns of it on standard error, in the middle of a report.
        warnings.simplefilter("ignore")
        return _certificate(x509.load_pem_x509_certificate(block.encode("ascii")))


def _certificate(read_certificate: Any) -> Certificate:
    der = read_certificate.public_bytes(Encoding.DER)
    key = read_certificate.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    names, is_authority = _extensions(read_certificate)
    return Certificate(
        _name(read_certificate.subject),
        _name(read_certificate.issuer),
        read_certificate.serial_number,
        _date(read_certificate, "not_valid_before"),
        _date(read_certificate, "not_valid_after"),
        hashlib.sha256(der).hexdigest(),
        hashlib.sha256(key).hexdigest(),
        names,
        is_authority,
        read_certificate,
    )


def _name(name: Any) -> str:
    """Return the common name, else the whole name."""
    common = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    if common:
        return str(common[0].value)[:MAX_NAME]
    return str(name.rfc4514_string())[:MAX_NAME]


def _date(certificate: Any, name: str) -> datetime:
    """Return a date with its zone, which newer libraries (42) give; they warn of the other."""
    date: datetime = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    if date.tzinfo:
        return date
    return date.replace(tzinfo=timezone.utc)


def _extensions(certificate: Any) -> tuple[frozenset[str], bool]:
    names: frozenset[str] = frozenset()
    is_authority = False
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.BasicConstraints):
            is_authority = bool(extension.value.ca)
        elif isinstance(extension.value, x509.SubjectAlternativeName):
            names = frozenset(
                str(name.value).lower()
                for name in extension.value
                if isinstance(name, (x509.DNSName, x509.IPAddress))
            )
    return names, is_authority


def covers(certificate: Certificate, name: str) -> bool:
    """Tell whether a certificate is valid for a name or an address of a server."""
    plain = name.lower().rstrip(".")
    parent = plain.partition(".")[2]
    return plain in certificate.names or (bool(parent) and f"*.{parent}" in certificate.names)


def is_signed(chain: Iterable[Certificate], authorities: Iterable[Certificate]) -> bool | None:
    """Tell whether one of these authorities signed the first certificate, by the others or not.

    None stands for a signature of a kind that is not verified here.
    """
    leaf, *rest = chain
    roots = list(authorities)
    is_open = False
    for _count in range(MAX_CHAIN):
        if any(root.digest == leaf.digest for root in roots):
            return True
        answers = [_is_by(leaf, root) for root in roots]
        if True in answers:
            return True
        is_open = is_open or None in answers
        parent = next((other for other in rest if _is_by(leaf, other)), None)
        if parent is None:
            break
        rest.remove(parent)
        leaf = parent
    return None if is_open else False


def _is_by(certificate: Certificate, authority: Certificate) -> bool | None:
    """Tell whether an authority signed a certificate itself."""
    if certificate.x509.issuer != authority.x509.subject:
        return False
    signed = certificate.x509
    try:
        key = authority.x509.public_key()
        arguments: tuple[Any, ...] | None = None
        if isinstance(key, rsa.RSAPublicKey) and _is_plain_rsa(signed):
            arguments = (padding.PKCS1v15(), signed.signature_hash_algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey) and _is_ecdsa(signed):
            arguments = (ec.ECDSA(signed.signature_hash_algorithm),)
        if arguments is None:
            # also of bundles without names: their certificates are signed with another kind of key
            return None
        key.verify(signed.signature, signed.tbs_certificate_bytes, *arguments)
    except InvalidSignature:
        return False
    except UNREADABLE:
        return None
    return True


def _is_plain_rsa(certificate: Any) -> bool:
    return str(certificate.signature_algorithm_oid.dotted_string) in (
        "1.2.840.113549.1.1.5",
        "1.2.840.113549.1.1.11",
        "1.2.840.113549.1.1.12",
        "1.2.840.113549.1.1.13",
    )


def _is_ecdsa(certificate: Any) -> bool:
    return str(certificate.signature_algorithm_oid.dotted_string).startswith("1.2.840.10045.4.")
